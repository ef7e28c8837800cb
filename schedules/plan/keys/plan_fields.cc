#include "schedules/plan/keys/key_groups.h"
#include "schedules/plan/keys/key_limits.h"
#include "schedules/plan/keys/plan_syntax.h"
#include "sim/chips/data_type_text.h"
#include "sim/fields/quantity_field.h"

namespace stepsim {

template <>
inline constexpr std::size_t kValuesOf<ContextMode> = kContextModes;
template <>
inline constexpr std::size_t kValuesOf<Dispatch> = kDispatches;
template <>
inline constexpr std::size_t kValuesOf<Recompute> = kRecomputes;
template <>
inline constexpr std::size_t kValuesOf<Optimizer> = kOptimizers;
template <>
inline constexpr std::size_t kValuesOf<VisionTraining> = kVisionTrainings;

namespace {

using Plan = ParallelPlan;
using Table = FieldTable<ParallelPlan>;

void add_ranks(Table& table) {
  const Limits ranks = Limits::between(1, kMostRanks);
  table.theme(
      "Ranks",
      "The ranks of a step are tp x cp x dp x pp. More ranks than the cluster has chips are "
      "refused; fewer need allow_idle_chips.");
  table.add_inner(
      "tp", &Plan::mesh, &Ranks::tp, ranks,
      {.help = "Tensor parallelism: ranks that divide every matmul of a layer.",
       .advice = "Raise it until a layer's weights and activations fit. Every layer then "
                 "gathers and reduces activations twice in each direction, so it is fast "
                 "inside a node (NVLink, up to 8) and usually slow beyond. The default, 1, "
                 "divides nothing.",
       .rules = "Divides the attention heads and the MLP width; divides the key-value heads "
                "or is a multiple of them."});
  table.add_inner(
      "cp", &Plan::mesh, &Ranks::cp, ranks,
      {.help = "Context parallelism: ranks that divide the tokens of each sequence.",
       .advice = "Raise it when activations of a long sequence don't fit. It divides "
                 "activations and attention work, and sends keys and values (see cp_mode); "
                 "weights are replicated, so ZeRO divides over cp x dp.",
       .rules = "Divides the sequence; so does 2 cp with zigzag_ring and all_gather. With "
                "ulysses it divides the heads and key-value heads of a tensor rank. In "
                "inference prompts only, and not with cp_mode ulysses."});
  table.add_inner(
      "dp", &Plan::mesh, &Ranks::dp, ranks,
      {.help = "Data parallelism: replicas that each take a part of the global batch.",
       .advice = "Use it for the ranks that are left once the model fits. A larger dp leaves "
                 "fewer micro-batches for each replica, which makes pipeline bubbles larger, "
                 "and reduces gradients over more ranks."});
  table.add_inner(
      "pp", &Plan::mesh, &Ranks::pp, ranks,
      {.help = "Pipeline parallelism: ranks that each hold a part of the layers.",
       .advice = "Raise it when tp alone doesn't make the model fit: stages send each other "
                 "little. The price is the bubble, about (pp - 1) / micro-batches of the "
                 "step with 1f1b, and uneven stages.",
       .rules = "pp x chunks divides the model's layers, unless layout is given."});
  table.add_inner(
      "ep", &Plan::mesh, &Ranks::ep, ranks,
      {.help = "Expert parallelism: ranks that divide the routed experts of a layer.",
       .advice = "A larger ep holds fewer experts on each rank and sends more tokens farther. "
                 "The tp x cp x dp ranks of a stage are divided anew for experts: etp "
                 "innermost, then ep, then edp = tp x cp x dp / (etp x ep).",
       .rules = "Divides the routed experts; etp x ep divides tp x cp x dp. With tp above 1 "
                "it needs sequence_parallel."});
  table.add_inner(
      "etp", &Plan::mesh, &Ranks::etp, ranks,
      {.help = "Expert tensor parallelism: ranks that divide each routed expert.",
       .advice = "Leave it at 1 unless single experts are too large: it makes their small "
                 "matmuls smaller still and adds collectives.",
       .rules = "Divides the width of an expert; etp x ep divides tp x cp x dp."});
  table.add("order", kOrderSyntax,
            {.help = "How ranks are numbered, innermost axis first: neighbours along the first "
                     "axis sit next to each other.",
             .advice = "Put the axis that sends most innermost, which is tp: with the default and "
                       "8 GPUs in a node, a tensor group of 8 is a node. docs/plans.md shows what "
                       "another order costs.",
             .rules = "Names tp, cp, dp and pp once each."});
  table.add("map", kMapSyntax,
            {.help = "Which axes lie over which levels of the cluster, innermost level first: "
                     "tp:x/dp:y+z.",
             .advice = "Give it on a torus, where an axis should own whole rings. An axis that is "
                       "mapped fills its levels exactly; the others share the remaining levels in "
                       "order. Levels are gpu, node and scalable_unit, or x, y and z of a torus.",
             .unset = "rank r sits on chip r"});
  table.add_inner(
      "allow_idle_chips", &Plan::mesh, &Ranks::allow_idle_chips,
      {.help = "Lets a plan use fewer ranks than the cluster has chips.",
       .advice = "The result lists the chips that idle. By default such a plan is taken for "
                 "a mistake."});
  table.add_inner(
      "chips_per_domain", &Plan::mesh, &Ranks::chips_per_domain, Limits::between(1, kMostRanks),
      {.help = "Chips of each NVLink domain (a node or a rack, the innermost level) that have "
               "ranks. The others idle.",
       .advice = "64 of 72 on racks of NVL72, so that groups of 4, 8 and 16 lie alike in all of "
                 "them. A number that cuts groups unevenly sends more between domains.",
       .rules = "At most the chips of a domain; the ranks fit into the cluster's domains. "
                "Not with map, nor on a torus.",
       .unset = "all of them; if that cuts groups unevenly and there are spare chips, the "
                "largest number that doesn't"});
}

void add_batch(Table& table) {
  table.theme("Batch");
  table.add_inner("global_batch", &Plan::batch, &BatchShape::global_batch,
                  Limits::between(1, kMostSequences),
                  {.help = "Sequences of a step.",
                   .advice = "The recipe of the training run gives it. A larger batch has more "
                             "micro-batches, so the bubble and the optimizer weigh less.",
                   .rules = "A multiple of dp x microbatch.",
                   .required = true});
  table.add_inner("sequence", &Plan::batch, &BatchShape::sequence, Limits::between(1, kMostTokens),
                  {.help = "Tokens of a sequence.",
                   .advice = "Activations grow in proportion, attention's work with the square.",
                   .required = true});
  table.add_inner(
      "vision_tokens", &Plan::batch, &BatchShape::vision_tokens, Limits::between(0, kMostTokens),
      {.help = "Tokens of a sequence, or of a new prompt, that a model's vision part makes of "
               "pictures. 0: text alone, and the vision part is not there.",
       .advice = "A picture of 1024 x 1024 pixels has 1,024 of them with patches of 16 of which 4 "
                 "make a token.",
       .rules = "At most sequence; needs a model whose vision part is read."});
  table.add_inner(
      "picture_tokens", &Plan::batch, &BatchShape::picture_tokens, Limits::between(0, kMostTokens),
      {.help = "Tokens of one picture: its patches attend to each other. 0: a sequence has one "
               "picture.",
       .advice = "Smaller pictures have fewer pairs of patches.",
       .rules = "Divides vision_tokens."});
  table.add_inner(
      "document_length", &Plan::batch, &BatchShape::document_length,
      Limits::between(0, kMostTokens),
      {.help = "Tokens of the documents that each sequence is packed of: attention stays "
               "within a document. 0: a sequence is one document.",
       .advice = "For fine-tuning on packed examples, and pre-training with masks between "
                 "documents. Where lengths differ, give the sum of their squares divided by "
                 "their sum. It saves attention's work, in fused kernels only; states and "
                 "everything else see the whole sequence. Context ranks divide the sequence, "
                 "not each document.",
       .rules = "Training; a transformer whose attention sees its own sequence, without "
                "an indexer."});
  table.add_inner("microbatch", &Plan::batch, &BatchShape::microbatch_size,
                  Limits::between(1, kMostSequences),
                  {.help = "Sequences of a micro-batch, which goes through the layers at once.",
                   .advice = "A larger one makes kernels more efficient, needs more memory for "
                             "activations and leaves fewer micro-batches to fill a pipeline. The "
                             "default, 1, is usual for large models with long sequences."});
}

void add_tensor(Table& table) {
  table.theme("Tensor and context ranks");
  table.add_inner(
      "sequence_parallel", &Plan::tensor, &TensorContext::sequence_parallel,
      {.help = "With tp above 1: norms, dropout and residual additions are divided along the "
               "tokens.",
       .advice = "It saves activation memory for the same bytes on the wire, so it is on. "
                 "Turn it off to compare with software that lacks it. In a pass of inference "
                 "it is off unless it is given: gathers and reduce-scatters in place of "
                 "all-reduces, norms of a part of the tokens.",
       .rules = "tp divides the tokens of a micro-batch; those of a pass are padded."});
  table.add_inner(
      "tensor_width", &Plan::tensor, &TensorContext::tensor_width, Limits::between(1, kMostRanks),
      {.help = "Two-dimensional weight-stationary matmuls: this many neighbouring ranks of "
               "tp divide the model's width, the others its features.",
       .advice = "It moves fewer bytes than plain tensor parallelism from about 72 tensor "
                 "ranks on, and more with few. 1 is off. docs/plans.md explains it.",
       .rules = "Divides tp and is less than tp; tp divides the model's width and, in "
                "training, its key-value heads. Dense models, sequence_parallel (on in "
                "passes of inference unless given), recompute none or full, without "
                "tensor_chunks or overlap_tensor; in passes cp is 1."});
  table.add_inner(
      "cp_mode", &Plan::tensor, &TensorContext::cp_mode,
      {.help = "How attention sees the keys and values of other context ranks. ring: they go "
               "round, each rank has one contiguous part. zigzag_ring: the same, but each "
               "rank has an early and a late part, so that causal work is equal. all_gather: "
               "they are gathered first (Llama 3). ulysses: all-to-alls give every rank some "
               "heads of the whole sequence.",
       .advice = "zigzag_ring, the default, hides its messages behind attention. all_gather "
                 "exposes one collective but runs attention in one kernel. ulysses sends "
                 "least with many ranks, as far as there are heads.",
       .rules = "Needs cp above 1; rings need fused_attention. Inference has all_gather, the "
                "default there, zigzag_ring and ring."});
}

void add_pipeline(Table& table) {
  const Limits counts = Limits::between(1, kMostSequences);
  table.theme("Pipeline");
  table.add("schedule", kScheduleSyntax,
            {.help = "The pipeline schedule: a name, `optimal`, which searches for the best order "
                     "within memory_limit, or a file in the notation of `stepsim schedule`.",
             .advice = "1f1b, the default, is what most software runs. interleaved_1f1b divides "
                       "its bubble by the chunks and sends more. The zb_ and zbv_ schedules split "
                       "the backward and have little bubble or none. docs/schedules.md lists all.",
             .rules = "Each schedule has rules for pp, the micro-batches and the chunks; the "
                      "message names the nearest values that would do."});
  table.add_inner(
      "chunks", &Plan::pipeline, &PipelinePlan::chunks, counts,
      {.help = "Parts of the model on each rank, also called virtual stages.",
       .advice = "More chunks make the bubble of interleaved schedules smaller, and mean as "
                 "many times more messages between stages.",
       .rules = "Must suit the schedule: 1f1b takes 1.",
       .unset = "1, or 2 where the schedule needs several"});
  table.add("layout", kLayoutSyntax,
            {.help = "Layers of each stage, in order: 7,8*14,7 is 7, then 14 times 8, then 7. "
                     "14*8 is also read as 14 stages of 8 layers where that makes as many stages "
                     "as the pipeline has. balanced: with which a step takes the least time by "
                     "its bound, as equal stages or others; the chunks of a rank count together.",
             .advice = "Give it when pp x chunks doesn't divide the layers, when layers are not "
                       "alike (states, experts, windows), or to relieve the first and last stage, "
                       "which also hold embedding and head.",
             .rules = "Has pp x chunks stages and adds up to the model's layers. Only the first "
                      "and the last stage may have none.",
             .unset = "equally many"});
  table.add_inner(
      "microbatch_group", &Plan::pipeline, &PipelinePlan::microbatch_group, counts,
      {.help = "Interleaved schedules: micro-batches that a rank takes in turn on one chunk.",
       .advice = "A larger group keeps more activations and waits less for messages.",
       .rules = "From pp to the number of micro-batches M; M modulo the group is 0 or at "
                "least pp.",
       .unset = "M / (M div pp)"});
  table.add_inner(
      "memory_limit", &Plan::pipeline, &PipelinePlan::memory_limit, counts,
      {.help = "zb_auto_1p, zb_auto_2p, zbv_auto and optimal: how many micro-batches x "
               "chunks a rank may have in flight.",
       .advice = "A larger limit needs more activation memory and leaves a smaller bubble.",
       .rules = "zbv_auto needs at least 2 x pp.",
       .unset = "pp; 2 x pp for zb_auto_2p and zbv_auto; pp x chunks for optimal"});
  table.add_inner(
      "overlap_pipeline", &Plan::overlap, &OverlapPlan::pipeline,
      {.help = "Messages between stages travel while ranks compute.",
       .advice = "false makes the next pass wait until the messages of the pass before have "
                 "arrived, as some software does."});
}

void add_experts(Table& table) {
  const Limits ranks = Limits::between(1, kMostRanks).or_zero();
  table.theme("Experts");
  table.add_inner(
      "dispatch", &Plan::experts, &ExpertPlacement::dispatch,
      {.help = "How tokens travel to their experts. all_to_all: a copy for each expert. "
               "two_level: a copy for each node, handed on inside it to each rank that has "
               "one of the token's experts (DeepEP). auto: passes of inference in which all "
               "requests generate go by all_to_all, if the library has low-latency kernels "
               "for as many tokens, others by two_level (SGLang: deepep-mode auto).",
       .advice = "two_level sends much less between nodes when a token's experts share "
                 "nodes. In a pass of inference with all_to_all the library takes its "
                 "low-latency kernels for few tokens, if it has some.",
       .rules = "two_level and auto need ep above 1 and ranks of ep that stand in nodes; auto "
                "needs inference.",
       .unset = "all_to_all; auto in passes with tp = 1 where the library has low-latency "
                "kernels and the ranks of ep stand in nodes"});
  table.add_inner(
      "expert_node", &Plan::experts, &ExpertPlacement::expert_node, ranks,
      {.help = "two_level dispatch: neighbouring ranks of ep that stand in one node.",
       .advice = "Give it to have the placement checked; it must equal the cluster's number.",
       .rules = "Needs dispatch two_level.",
       .unset = "as many as the cluster has in a node"});
  table.add_inner("node_limit", &Plan::experts, &ExpertPlacement::node_limit, ranks,
                  {.help = "two_level dispatch: the most nodes that one token is sent to.",
                   .advice = "A smaller limit sends less between nodes; the model must have been "
                             "trained with it (4 in DeepSeek-V3).",
                   .rules = "Needs dispatch two_level.",
                   .unset = "no limit"});
  table.add_inner(
      "overlap_expert_parallel", &Plan::overlap, &OverlapPlan::expert_parallel,
      {.help = "Each backward alternates with the forward behind it, so that the all-to-alls "
               "of one hide behind the compute of the other (Megatron-Core: "
               "overlap-moe-expert-parallel-comm).",
       .advice = "It hides most of ep's communication. Compute beside it is slower, and "
                 "between stages twice as many micro-batches are in flight.",
       .rules = "Needs ep above 1, zero 0 to 2 and a schedule with such neighbours; dualpipe "
                "and dualpipev fuse by themselves."});
}

void add_data(Table& table) {
  table.theme("Data parallelism",
              "What replicas divide, and how gradients and parameters travel. A replica is one of "
              "the cp x dp ranks that hold the same weights.");
  table.add_inner(
      "zero", &Plan::state, &Sharding::zero,
      Limits::choice_of(
          {{0, "replicated"}, {1, "optimizer state divided"}, {2, "and gradients"}, {3, "FSDP"}}),
      {.help = "What the replicas divide between them; each level includes the one before.",
       .advice = "1 costs next to nothing. 2 divides gradients too, which needs their "
                 "reduction while the backward goes on. 3 also divides the weights and "
                 "gathers every layer in each pass, unless reshard_after_forward is off."});
  table.add_inner(
      "shard", &Plan::state, &Sharding::shard, Limits::between(1, kMostRanks).or_zero(),
      {.help = "Hybrid sharding: this many neighbouring replicas divide the state, and all "
               "such groups are alike.",
       .advice = "A group inside a node gathers fast. A larger one holds less on each rank.",
       .rules = "Divides cp x dp and is at least 2; zero is 1 to 3.",
       .unset = "all cp x dp"});
  table.add_inner(
      "overlap_gradients", &Plan::overlap, &OverlapPlan::gradients,
      {.help = "Full buckets are reduced while the last backward goes on. FSDP reduces each "
               "layer after its backward; with false, the backward before waits for that.",
       .advice = "It hides most of the reduction and slows the compute beside it on GPUs. "
                 "XLA's programs for TPU v4 to v6e hide gathers, but not reduce-scatters.",
       .rules = "zero 2 always does."});
  table.add_inner(
      "overlap_parameters", &Plan::overlap, &OverlapPlan::parameters,
      {.help = "Updated parameters are gathered beside the next step's forward. Two steps "
               "are simulated.",
       .advice = "It hides the gather after the optimizer.",
       .rules = "Needs zero 1 or 2."});
  table.add_inner("prefetch", &Plan::state, &Sharding::prefetch, Limits::between(0, kMostPrefetch),
                  {.help = "FSDP: layers that are gathered ahead of the one that computes.",
                   .advice = "0 exposes every gather. 1 hides most. More need memory for that many "
                             "gathered layers, and help if layers differ in length.",
                   .rules = "Needs zero = 3."});
  table.add_inner(
      "reshard_after_forward", &Plan::state, &Sharding::reshard_after_forward,
      {.help = "FSDP: gathered parameters are dropped after each pass and gathered again.",
       .advice = "false gathers once a step and holds all of the rank's parameters until "
                 "the last backward.",
       .rules = "false needs zero = 3."});
}

void add_recompute(Table& table) {
  table.theme("Recompute");
  table.add_inner(
      "recompute", &Plan::recomputing, &RecomputePlan::kind,
      {.help = "Activations that are dropped and made again before the backward. selective: "
               "the recompute_modules of each block. matmuls: all but the results of matmuls "
               "with weights. alternate: all but the results of attention and of every "
               "second matmul outside of routed experts (torchtitan). alternate_matmuls: all but "
               "those of every second matmul. all_but: all but the results in recompute_keep "
               "(JAX). full: whole blocks, of which only the input is kept.",
       .advice =
           "full makes a step about a third longer and keeps least. selective frees activations "
           "that are large and cheap to recompute. docs/plans.md compares them."});
  table.add("recompute_modules", kRecomputeModulesSyntax,
            {.help = "recompute selective: the modules that are made again, joined by +. "
                     "norm+activation+latent_up is DeepSeek-V3's choice.",
             .advice = "norm and activation are cheap. attention frees the scores of unfused "
                       "kernels and next to nothing of fused ones, but is the common default. mlp, "
                       "shared_experts and experts run the whole module again.",
             .rules = "Modules that the model's blocks have; needs recompute selective."});
  table.add(
      "recompute_keep", kRecomputeKeepSyntax,
      {.help = "recompute all_but: the results that are kept, joined by +: qkv (queries, keys "
               "and values), attention, out (its last matmul), up and down (an MLP's matmuls). "
               "What no backward reads is not kept.",
       .advice = "MaxText's save_qkv_proj is qkv, save_dot_except_mlp qkv+out, "
                 "save_dot_except_mlpwi qkv+out+down, minimal qkv+out+up+down, "
                 "minimal_with_context that and attention, save_out_proj out.",
       .rules = "With recompute all_but, and only then.",
       .unset = "none"});
  table.add_inner(
      "recompute_block", &Plan::recomputing, &RecomputePlan::block, Limits::between(1, kMostLayers),
      {.help = "recompute full: this many blocks in a row keep one input.",
       .advice = "A larger group keeps fewer inputs, and has the activations of all its "
                 "blocks at the peak.",
       .rules = "Above 1 it needs recompute full and a stage with two blocks in a row."});
  table.add_inner("recompute_layers", &Plan::recomputing, &RecomputePlan::layers,
                  Limits::between(1, kMostLayers).or_zero(),
                  {.help = "Only the first so many blocks of each stage (chunk) are made again.",
                   .advice = "Lower it to the smallest number with which the step fits.",
                   .rules = "Needs recompute other than none.",
                   .unset = "all"});
}

void add_precision(Table& table) {
  table.theme("Precision");
  table.add_inner(
      "dtype", &Plan::precision, &Precision::type,
      {.help = "Type in which matmuls compute.",
       .advice = "fp8 halves the time of large matmuls on chips that have it, and adds "
                 "rounding kernels. mxfp8 (scales of 32 values) and nvfp4 (of 16) count "
                 "their scales and round along the tokens, too.",
       .rules = "The chip has a peak throughput for it."});
  const char* const usual = "dtype, but not below bf16";
  table.add_inner(
      "weight_dtype", &Plan::precision, &Precision::weight_type,
      {.help = "Type in which weights are held and gathered.",
       .advice = "Give it if the software holds weights in another type than it computes in.",
       .unset = usual});
  table.add_inner("activation_dtype", &Plan::precision, &Precision::activation_type,
                  {.help = "Type of everything between matmuls: the residual stream, attention, "
                           "elementwise kernels, and messages between stages.",
                   .advice = "A wider type makes memory-bound kernels and activations larger.",
                   .unset = usual});
  table.add_inner(
      "communication_dtype", &Plan::precision, &Precision::communication_type,
      {.help = "Type of activations between tensor ranks, and of keys and values between "
               "context ranks.",
       .advice = "A narrower type sends less.",
       .rules = "Needs tp or cp above 1, or a model with experts.",
       .unset = "activation_dtype"});
  table.add_inner(
      "dispatch_dtype", &Plan::precision, &Precision::dispatch_type,
      {.help = "Type of tokens on their way to the experts, and of the gradients of their "
               "results.",
       .advice = "fp8 halves the bytes of the dispatch (DeepSeek-V3).",
       .rules = "Needs a model with experts.",
       .unset = "communication_dtype"});
  table.add_inner(
      "combine_dtype", &Plan::precision, &Precision::combine_type,
      {.help = "Type of the experts' results on their way back, and of the gradients of the "
               "tokens.",
       .advice = "Usually left wide, as results are added up.",
       .rules = "Needs a model with experts and ep above 1.",
       .unset = "activation_dtype"});
}

void add_training(Table& table) {
  table.theme("Optimizer and adapters");
  table.add_inner(
      "optimizer", &Plan::training, &TrainingPlan::optimizer,
      {.help = "adam; muon: of matrices, whose updates Newton-Schulz steps make orthogonal and "
               "which have one moment, and adam of tables, norms and biases; or none: forward and "
               "backward only, without optimizer state, as the closed forms count a step.",
       .advice = "Use none to compare with formulas. muon keeps 4 bytes a parameter less, and its "
                 "matmuls grow with the matrices, not with the tokens: a large batch hides them.",
       .rules = "muon: not with lora_rank or offload_optimizer."});
  table.add_inner(
      "vision", &Plan::training, &TrainingPlan::vision,
      {.help = "What of a model's vision part is trained: all, projector (its encoder is frozen) "
               "or none.",
       .advice =
           "projector is common where an encoder is taken over as it is: it has no backward, no "
           "gradients and no optimizer state.",
       .rules = "Of effect where the model has a vision part."});
  table.add_inner(
      "lora_rank", &Plan::training, &TrainingPlan::lora_rank,
      Limits::between(1, kMostRankOfAdapters).or_zero(),
      {.help = "Rank of the low-rank adapters (LoRA) beside each projection of a block, which "
               "are all that is trained: the model is frozen.",
       .advice = "8 to 64 for fine-tuning. Frozen weights have no gradients, no optimizer "
                 "state and no weight-gradient matmuls: a third of the work goes. Routed "
                 "experts and the router get no adapters.",
       .rules = "A transformer without prediction modules; tensor_chunks, tensor_pieces and "
                "tensor_width 1; "
                "tied embeddings with pp = 1 and zero below 3 only.",
       .unset = "all parameters are trained"});
  table.add("lora_modules", kLoraModulesSyntax,
            {.help = "Projections that have adapters, joined by +: qkv (all in front of attention "
                     "or of a state), out (their last), mlp (of dense MLPs and shared experts).",
             .advice = "qkv is what NVIDIA's performance recipes take (linear_qkv), qkv+out "
                       "MLPerf's Llama 2 70B. Narrow matmuls beside the wide ones of an MLP cost a "
                       "tenth of a step.",
             .rules = "With lora_rank."});
  table.add_inner(
      "frozen_dtype", &Plan::training, &TrainingPlan::frozen_type,
      {.help = "Type in which the frozen matrices of a block are held and gathered. A kernel "
               "makes them wide before each matmul (QLoRA, arXiv 2305.14314; its scales, "
               "0.127 bits a value, count for int4).",
       .advice = "int4 for QLoRA: a quarter of the memory of the frozen model, and more time, "
                 "as weights are made wide two or three times a micro-batch.",
       .rules = "With lora_rank; narrower than weight_dtype.",
       .unset = "weight_dtype"});
}

void add_offload(Table& table) {
  table.theme("Offload to the host");
  table.add_inner(
      "offload_optimizer", &Plan::offload, &OffloadPlan::optimizer,
      {.help = "Master weights and moments live on the host. The chip updates, bucket by "
               "bucket, two at a time: 2 x optimizer_bytes a parameter over the host's link.",
       .advice = "It frees the largest part of the state and makes the optimizer as slow as "
                 "the host's link.",
       .rules = "The cluster has a host; not with optimizer none or shared_master."});
  table.add_inner(
      "offload_activations", &Plan::offload, &OffloadPlan::activations,
      {.help = "What a block keeps goes to the host after its forward and comes back before "
               "its backward, beside compute. At most two blocks are under way.",
       .advice = "It saves activation memory without recomputing, as far as the host's link "
                 "keeps up.",
       .rules = "The cluster has a host."});
  table.add_inner("offload_layers", &Plan::offload, &OffloadPlan::layers,
                  Limits::between(1, kMostLayers).or_zero(),
                  {.help = "offload_activations: only the first so many blocks of each chunk.",
                   .advice = "Lower it until the link keeps up.",
                   .rules = "Needs offload_activations.",
                   .unset = "all"});
  table.add_inner(
      "copy_checkpoint", &Plan::offload, &OffloadPlan::copy_checkpoint,
      {.help = "The step has an asynchronous checkpoint beside it: weights (16 bits) and "
               "optimizer state go to the host, each value from one of the ranks that hold "
               "it. The optimizer waits for the copy.",
       .advice = "Compare the step with one without it: what it is longer is exposed. "
                 "stepsim goodput does so.",
       .rules = "The cluster has a host; not with offload_optimizer, which keeps on the "
                "host what a checkpoint holds."});
}

Table make_plan_fields() {
  Table table("Plan");
  add_ranks(table);
  add_batch(table);
  add_tensor(table);
  add_pipeline(table);
  add_experts(table);
  add_data(table);
  add_recompute(table);
  add_precision(table);
  add_training(table);
  add_offload(table);
  return table;
}

}  // namespace

const FieldTable<ParallelPlan>& plan_fields() {
  static const Table kTable = make_plan_fields();
  return kTable;
}

}  // namespace stepsim
