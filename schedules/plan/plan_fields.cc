#include "schedules/plan/plan_fields.h"

#include "schedules/plan/plan_syntax.h"
#include "sim/base/quantity_field.h"
#include "sim/chips/data_type_text.h"

namespace stepsim {

template <>
inline constexpr std::size_t kValuesOf<ContextMode> = kContextModes;
template <>
inline constexpr std::size_t kValuesOf<Dispatch> = kDispatches;
template <>
inline constexpr std::size_t kValuesOf<Inference> = kInferences;
template <>
inline constexpr std::size_t kValuesOf<CudaGraphs> = kCudaGraphs;
template <>
inline constexpr std::size_t kValuesOf<CacheSplit> = kCacheSplits;
template <>
inline constexpr std::size_t kValuesOf<Recompute> = kRecomputes;
template <>
inline constexpr std::size_t kValuesOf<Optimizer> = kOptimizers;
template <>
inline constexpr std::size_t kValuesOf<LossKernels> = kLossKernels;

namespace {

using Plan = ParallelPlan;
using Table = FieldTable<ParallelPlan>;

// The upper limits are far above existing systems. They keep products of sizes in 64 bits.
constexpr double kMostRanks = 1 << 20;  // of an axis
constexpr double kMostSequences = 1 << 24;
constexpr double kMostTokens = 1 << 27;
constexpr double kMostParameters = 1LL << 40;
constexpr double kMostBytesOfAParameter = 64;
constexpr double kMostPrefetch = 1000;
constexpr double kMostBitsOfAValue = 32;
constexpr double kMostUnits = 1'000'000;
constexpr double kMostMetrics = 16;
constexpr double kMostRankOfAdapters = 65'536;
constexpr double kMostLayers = 10'000;  // of a stage
constexpr double kMostLaunches = 1'000'000;

void add_ranks(Table& table) {
  table.theme(
      "Ranks and batch",
      "The ranks of a step are tp x cp x dp x pp. More ranks than the cluster has chips are "
      "refused; fewer need allow_idle_chips.");
  const Limits ranks = Limits::between(1, kMostRanks);
  table.add("tp", &Plan::tp, ranks,
            {.help = "Tensor parallelism: ranks that divide every matmul of a layer.",
             .advice = "Raise it until a layer's weights and activations fit. Every layer then "
                       "gathers and reduces activations twice in each direction, so it is fast "
                       "inside a node (NVLink, up to 8) and usually slow beyond. The default, 1, "
                       "divides nothing.",
             .rules = "Divides the attention heads and the MLP width; divides the key-value heads "
                      "or is a multiple of them."});
  table.add("cp", &Plan::cp, ranks,
            {.help = "Context parallelism: ranks that divide the tokens of each sequence.",
             .advice = "Raise it when activations of a long sequence don't fit. It divides "
                       "activations and attention work, and sends keys and values (see cp_mode); "
                       "weights are replicated, so ZeRO divides over cp x dp.",
             .rules = "Divides the sequence; so does 2 cp with zigzag_ring and all_gather. With "
                      "ulysses it divides the heads and key-value heads of a tensor rank. In "
                      "inference prompts only, and not with cp_mode ulysses."});
  table.add("dp", &Plan::dp, ranks,
            {.help = "Data parallelism: replicas that each take a part of the global batch.",
             .advice = "Use it for the ranks that are left once the model fits. A larger dp leaves "
                       "fewer micro-batches for each replica, which makes pipeline bubbles larger, "
                       "and reduces gradients over more ranks."});
  table.add("pp", &Plan::pp, ranks,
            {.help = "Pipeline parallelism: ranks that each hold a part of the layers.",
             .advice = "Raise it when tp alone doesn't make the model fit: stages send each other "
                       "little. The price is the bubble, about (pp - 1) / micro-batches of the "
                       "step with 1f1b, and uneven stages.",
             .rules = "pp x chunks divides the model's layers, unless layout is given."});
  table.add(
      "ep", &Plan::ep, ranks,
      {.help = "Expert parallelism: ranks that divide the routed experts of a layer.",
       .advice = "A larger ep holds fewer experts on each rank and sends more tokens farther. "
                 "The tp x cp x dp ranks of a stage are divided anew for experts: etp "
                 "innermost, then ep, then edp = tp x cp x dp / (etp x ep).",
       .rules = "Divides the routed experts; etp x ep divides tp x cp x dp. With tp above 1 "
                "it needs sequence_parallel."});
  table.add("etp", &Plan::etp, ranks,
            {.help = "Expert tensor parallelism: ranks that divide each routed expert.",
             .advice = "Leave it at 1 unless single experts are too large: it makes their small "
                       "matmuls smaller still and adds collectives.",
             .rules = "Divides the width of an expert; etp x ep divides tp x cp x dp."});
  table.add("global_batch", &Plan::global_batch, Limits::between(1, kMostSequences),
            {.help = "Sequences of a step.",
             .advice = "The recipe of the training run gives it. A larger batch has more "
                       "micro-batches, so the bubble and the optimizer weigh less.",
             .rules = "A multiple of dp x microbatch.",
             .required = true});
  table.add("sequence", &Plan::sequence, Limits::between(1, kMostTokens),
            {.help = "Tokens of a sequence.",
             .advice = "Activations grow in proportion, attention's work with the square.",
             .required = true});
  table.add("document_length", &Plan::document_length, Limits::between(0, kMostTokens),
            {.help = "Tokens of the documents that each sequence is packed of: attention stays "
                     "within a document. 0: a sequence is one document.",
             .advice = "For fine-tuning on packed examples, and pre-training with masks between "
                       "documents. Where lengths differ, give the sum of their squares divided by "
                       "their sum. It saves attention's work, in fused kernels only; states and "
                       "everything else see the whole sequence. Context ranks divide the sequence, "
                       "not each document.",
             .rules = "Training; a transformer whose attention sees its own sequence, without "
                      "an indexer."});
  table.add("microbatch", &Plan::microbatch_size, Limits::between(1, kMostSequences),
            {.help = "Sequences of a micro-batch, which goes through the layers at once.",
             .advice = "A larger one makes kernels more efficient, needs more memory for "
                       "activations and leaves fewer micro-batches to fill a pipeline. The "
                       "default, 1, is usual for large models with long sequences."});
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
  table.add("allow_idle_chips", &Plan::allow_idle_chips,
            {.help = "Lets a plan use fewer ranks than the cluster has chips.",
             .advice = "The result lists the chips that idle. By default such a plan is taken for "
                       "a mistake."});
  table.add(
      "chips_per_domain", &Plan::chips_per_domain, Limits::between(1, kMostRanks),
      {.help = "Chips of each NVLink domain (a node or a rack, the innermost level) that have "
               "ranks. The others idle.",
       .advice = "64 of 72 on racks of NVL72, so that groups of 4, 8 and 16 lie alike in all of "
                 "them. A number that cuts groups unevenly sends more between domains.",
       .rules = "At most the chips of a domain; the ranks fit into the cluster's domains. "
                "Not with map, nor on a torus.",
       .unset = "all of them; if that cuts groups unevenly and there are spare chips, the "
                "largest number that doesn't"});
}

void add_inference(Table& table) {
  table.theme("Inference",
              "A plan with inference computes one pass over some requests in place of a training "
              "step: forwards only, with a cache of keys and values.");
  table.add("inference", &Plan::inference,
            {.help = "What the pass computes. prefill: new tokens of prompts; decode: the next "
                     "token of each request; none: a training step.",
             .advice = "Not with keys that say how to train."});
  table.add(
      "batch", kBatchSyntax,
      {.help = "Requests of the pass, in all replicas: another name of global_batch.",
       .advice = "A larger batch reads the weights once for more requests; each of them has a "
                 "cache of its own.",
       .rules = "A multiple of dp.",
       .unset = "global_batch"});
  table.add("context", &Plan::context, Limits::between(1, kMostTokens).or_zero(),
            {.help = "Tokens of each request that attention reads: its new ones (sequence), and "
                     "those in the cache before them. Where requests differ, their mean.",
             .advice = "Prompt and answer so far. A decode pass reads the cache of all of them.",
             .rules = "At least sequence. decode needs it.",
             .unset = "prefill: sequence, so that nothing lies in the cache"});
  table.add("prefill_tokens", &Plan::prefill_tokens, Limits::between(1, kMostTokens).or_zero(),
            {.help = "Tokens of a prompt that each replica computes in the same pass, beside the "
                     "requests that generate (chunked prefill).",
             .advice = "A larger chunk ends the prompt in fewer passes, each of which keeps those "
                       "that generate waiting longer.",
             .rules = "Needs inference=decode.",
             .unset = "none"});
  table.add("prefill_context", &Plan::prefill_context, Limits::between(1, kMostTokens).or_zero(),
            {.help = "Tokens of that prompt after the pass: prefill_tokens and those computed "
                     "before.",
             .advice = "Later chunks of a long prompt attend to the earlier ones.",
             .rules = "At least prefill_tokens.",
             .unset = "prefill_tokens"});
  table.add("expert_weight_dtype", &Plan::expert_weight_type,
            {.help = "Type in which routed experts are held. The kernel widens it as it reads.",
             .advice = "mxfp4 for gpt-oss.",
             .rules = "Needs a model with experts.",
             .unset = "weight_dtype; as the model was published, where it says so"});
  table.add(
      "expert_dtype", &Plan::expert_type,
      {.help = "Type in which the matmuls of routed experts compute.",
       .advice = "nvfp4 under dtype=bf16 for checkpoints whose experts alone are in nvfp4; "
                 "mxfp8 for gpt-oss on chips that multiply it with mxfp4.",
       .rules = "Needs inference and a model with experts. The chip has a peak throughput for "
                "it.",
       .unset = "dtype"});
  table.add("expert_spread", &Plan::expert_spread, Limits::between(1, 10'000),
            {.help = "How many times as often as the least popular expert the most popular one is "
                     "chosen. Logarithms of the chances in between are evenly spaced.",
             .advice = "More than 1 lets few tokens visit fewer experts, whose weights are read. "
                       "Experts of published models are 5 to 20 apart.",
             .rules = "Needs inference and a model with experts."});
  table.add("cache_dtype", &Plan::cache_type,
            {.help = "Type of keys and values, or latents, in the cache.",
             .advice = "fp8 halves the cache and what attention reads.",
             .unset = "activation_dtype"});
  table.add(
      "cache_split", &Plan::cache_split,
      {.help = "How the tensor group divides the cache of requests that generate. heads: each "
               "chip has some key-value heads of all; requests: all heads of some, so that "
               "queries and results travel by an all-to-all each.",
       .advice = "requests where tp is above the number of key-value heads, which several "
                 "chips would keep and read else, and for latents.",
       .rules = "requests needs inference and tp above 1; not with states or indexers."});
  table.add(
      "ffn_chips", &Plan::ffn_chips, Limits::between(1, kMostRanks).or_zero(),
      {.help =
           "Chips that hold the routed experts and nothing else, behind those of tp x dp, which "
           "do all other work (attention-FFN disaggregation: MegaScale-Infer, Step-3).",
       .advice = "As many that the experts take as long as attention does (docs/inference.md). The "
                 "requests of all attention chips then meet at few experts, whose weights are read "
                 "once for more tokens.",
       .rules = "Needs inference and a model with routed experts, evenly loaded and without a "
                "capacity; ep x etp = ffn_chips; cp and pp are 1; sequence_parallel with tp above "
                "1; dispatch all_to_all, cache_split heads; no map, no host_launch_cost. At most "
                "4,096 ranks.",
       .unset = "experts are on the chips of all other layers"});
  table.add(
      "pass_microbatches", &Plan::pass_microbatches, Limits::between(1, 64),
      {.help = "Parts that a pass with ffn_chips is cut into. While experts work on one, attention "
               "works on others (ping-pong pipeline).",
       .advice = "2 where tokens travel in no time, 3 or 4 to hide their way. More make kernels "
                 "small, and each part reads the weights again.",
       .rules =
           "Above 1 needs ffn_chips. A pass has no more parts than requests that generate, or "
           "tokens of a prompt. With tp the tokens of a part are padded to a multiple of tp."});
}

void add_tensor(Table& table) {
  table.theme("Tensor and context ranks");
  table.add("sequence_parallel", &Plan::sequence_parallel,
            {.help = "With tp above 1: norms, dropout and residual additions are divided along the "
                     "tokens.",
             .advice = "It saves activation memory for the same bytes on the wire, so it is on. "
                       "Turn it off to compare with software that lacks it. In a pass of inference "
                       "it is off unless it is given: gathers and reduce-scatters in place of "
                       "all-reduces, norms of a part of the tokens.",
             .rules = "tp divides the tokens of a micro-batch; those of a pass are padded."});
  table.add("tensor_chunks", &Plan::tensor_chunks, Limits::between(1, kMostTokens),
            {.help = "Collective matmuls: a gather and the matmul that reads it, or a matmul and "
                     "the scatter of its result, are cut into this many chunks that run side by "
                     "side. Input gradients are reduced beside weight gradients.",
             .advice = "4 chunks hide a fifth to a third of tp's communication (docs/plans.md). "
                       "More chunks make the matmuls "
                       "smaller and less efficient. 1 is off.",
             .rules = "Needs tp above 1 and sequence_parallel; cp, ep and etp are 1. Not in "
                      "schedules that split the backward."});
  table.add("tensor_pieces", &Plan::tensor_pieces, Limits::between(1, kMostTokens),
            {.help = "Exchanges in pieces (Transformer Engine's userbuffers, tp_comm_overlap): a "
                     "gather runs beside the matmul that reads it, and the scatter of a result "
                     "beside its matmul, but for one piece of this many. Input gradients are "
                     "reduced beside weight gradients.",
             .advice = "The tensor ranks, where a library sends each rank's part while it "
                       "multiplies the parts that are there; 4 for its pipelined scatters. 1 is "
                       "off.",
             .rules = "Needs tp above 1, sequence_parallel and tensor_chunks 1. Not in schedules "
                      "that split the backward, nor with lora_rank."});
  table.add(
      "overlap_tensor", &Plan::overlap_tensor,
      {.help = "An input gradient is reduced while its weight gradient is computed.",
       .advice =
           "It hides about a fifth of tp's communication and slows the kernels beside it a little.",
       .rules = "Needs tp above 1 and a schedule with whole backwards."});
  table.add("tensor_width", &Plan::tensor_width, Limits::between(1, kMostRanks),
            {.help = "Two-dimensional weight-stationary matmuls: this many neighbouring ranks of "
                     "tp divide the model's width, the others its features.",
             .advice = "It moves fewer bytes than plain tensor parallelism from about 72 tensor "
                       "ranks on, and more with few. 1 is off. docs/plans.md explains it.",
             .rules = "Divides tp and is less than tp; tp divides the model's width and, in "
                      "training, its key-value heads. Dense models, sequence_parallel (on in "
                      "passes of inference unless given), recompute none or full, without "
                      "tensor_chunks or overlap_tensor; in passes cp is 1."});
  table.add("cp_mode", &Plan::cp_mode,
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
  table.add("chunks", &Plan::chunks, counts,
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
  table.add("microbatch_group", &Plan::microbatch_group, counts,
            {.help = "Interleaved schedules: micro-batches that a rank takes in turn on one chunk.",
             .advice = "A larger group keeps more activations and waits less for messages.",
             .rules = "From pp to the number of micro-batches M; M modulo the group is 0 or at "
                      "least pp.",
             .unset = "M / (M div pp)"});
  table.add("memory_limit", &Plan::memory_limit, counts,
            {.help = "zb_auto_1p, zb_auto_2p, zbv_auto and optimal: how many micro-batches x "
                     "chunks a rank may have in flight.",
             .advice = "A larger limit needs more activation memory and leaves a smaller bubble.",
             .rules = "zbv_auto needs at least 2 x pp.",
             .unset = "pp; 2 x pp for zb_auto_2p and zbv_auto; pp x chunks for optimal"});
  table.add("overlap_pipeline", &Plan::overlap_pipeline,
            {.help = "Messages between stages travel while ranks compute.",
             .advice = "false makes the next pass wait until the messages of the pass before have "
                       "arrived, as some software does."});
  table.add("scatter_messages", &Plan::scatter_messages,
            {.help = "Each tensor rank sends its share of a message to the next stage, where the "
                     "shares are gathered (Megatron-LM's scatter-gather, DeepSpeed's pipelines).",
             .advice = "It sends tp times less between nodes. It changes nothing with "
                       "sequence_parallel, whose ranks hold shares anyway, or one stage, or "
                       "one tensor rank."});
  table.add("batch_p2p", &Plan::batch_p2p,
            {.help = "Messages between stages are posted in batches of sends and receives, and "
                     "waited for as the schedule's runtime does (Megatron-LM, DualPipe, zero "
                     "bubble).",
             .advice = "Turn it on to reproduce such software: a batch ends with its slowest "
                       "message. By default each message goes alone, as soon as it is made.",
             .rules = "Needs pp above 1 and overlap_pipeline."});
}

void add_experts(Table& table) {
  const Limits ranks = Limits::between(1, kMostRanks).or_zero();
  table.theme("Experts");
  table.add(
      "dispatch", &Plan::dispatch,
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
  table.add("expert_node", &Plan::expert_node, ranks,
            {.help = "two_level dispatch: neighbouring ranks of ep that stand in one node.",
             .advice = "Give it to have the placement checked; it must equal the cluster's number.",
             .rules = "Needs dispatch two_level.",
             .unset = "as many as the cluster has in a node"});
  table.add("node_limit", &Plan::node_limit, ranks,
            {.help = "two_level dispatch: the most nodes that one token is sent to.",
             .advice = "A smaller limit sends less between nodes; the model must have been "
                       "trained with it (4 in DeepSeek-V3).",
             .rules = "Needs dispatch two_level.",
             .unset = "no limit"});
  table.add("overlap_expert_parallel", &Plan::overlap_expert_parallel,
            {.help = "Each backward alternates with the forward behind it, so that the all-to-alls "
                     "of one hide behind the compute of the other (Megatron-Core: "
                     "overlap-moe-expert-parallel-comm).",
             .advice = "It hides most of ep's communication. Compute beside it is slower, and "
                       "between stages twice as many micro-batches are in flight.",
             .rules = "Needs ep above 1, zero 0 to 2 and a schedule with such neighbours; dualpipe "
                      "and dualpipev fuse by themselves."});
  table.add("overlap_shared_experts", &Plan::overlap_shared_experts,
            {.help = "Shared experts run beside the dispatch and, in the backward, beside the way "
                     "back (moe-shared-expert-overlap).",
             .advice = "It hides the all-to-alls for as long as the shared experts take.",
             .rules = "Needs shared experts, ep above 1 and tp = 1; not with fused schedules or "
                      "overlap_expert_parallel."});
  table.add(
      "grouped_experts", &Plan::grouped_experts,
      {.help = "The matmuls of a chip's experts are one kernel (DeepGEMM, CUTLASS).",
       .advice = "false: one matmul an expert, one after the other, each of which adds to its "
                 "gradients when it has multiplied (Transformer Engine's GroupedLinear). It "
                 "matters for many experts with few tokens each. Dense models don't change."});
  table.add(
      "sort_copies", &Plan::sort_copies,
      {.help = "dispatch all_to_all: a pass orders the copies that arrive by expert, another "
               "one orders the results by sender, and so in the backward (Megatron-Core's "
               "all-to-all dispatcher).",
       .advice = "true for Megatron-Core. It costs four passes over the copies in a layer, if "
                 "a chip has several experts."});
  table.add("mask_dispatch", &Plan::mask_dispatch,
            {.help = "Tokens are copied into the places of experts by a product with a mask, and "
                     "added up by another, for each sequence's tokens on a chip. Experts compute "
                     "all places of their capacity, full or not (GShard; MaxText with "
                     "sparse_matmul = False).",
             .advice = "Its products grow with the square of the tokens that a chip has of a "
                       "sequence: they take as long as the experts' own at some thousand.",
             .rules = "Needs a model with experts, model.experts.capacity_factor above 0, dispatch "
                      "= all_to_all and sort_copies = false. Not in inference."});
}

void add_data(Table& table) {
  table.theme("Data parallelism",
              "What replicas divide, and how gradients and parameters travel. A replica is one of "
              "the cp x dp ranks that hold the same weights.");
  table.add(
      "zero", &Plan::zero,
      Limits::choice_of(
          {{0, "replicated"}, {1, "optimizer state divided"}, {2, "and gradients"}, {3, "FSDP"}}),
      {.help = "What the replicas divide between them; each level includes the one before.",
       .advice = "1 costs next to nothing. 2 divides gradients too, which needs their "
                 "reduction while the backward goes on. 3 also divides the weights and "
                 "gathers every layer in each pass, unless reshard_after_forward is off."});
  table.add("shard", &Plan::shard, Limits::between(1, kMostRanks).or_zero(),
            {.help = "Hybrid sharding: this many neighbouring replicas divide the state, and all "
                     "such groups are alike.",
             .advice = "A group inside a node gathers fast. A larger one holds less on each rank.",
             .rules = "Divides cp x dp and is at least 2; zero is 1 to 3.",
             .unset = "all cp x dp"});
  table.add("gradient_bucket_parameters", &Plan::gradient_bucket_parameters,
            Limits::between(1, kMostParameters),
            {.help = "Parameters of a bucket. A bucket of whole layers is reduced once it has this "
                     "many; state on the host moves in such parts, too.",
             .advice = "Small buckets start early and pay more latency; large ones leave more to "
                       "do after the last backward.",
             .rules = "With zero = 3 it counts for offload_optimizer only, and is at least "
                      "1000000.",
             .unset = "40 million, or a million for each rank of dp if that is more, as in "
                      "Megatron Core"});
  table.add("overlap_gradients", &Plan::overlap_gradients,
            {.help = "Full buckets are reduced while the last backward goes on. FSDP reduces each "
                     "layer after its backward; with false, the backward before waits for that.",
             .advice = "It hides most of the reduction and slows the compute beside it on GPUs. "
                       "XLA's programs for TPU v4 to v6e hide gathers, but not reduce-scatters.",
             .rules = "zero 2 always does."});
  table.add("overlap_parameters", &Plan::overlap_parameters,
            {.help = "Updated parameters are gathered beside the next step's forward. Two steps "
                     "are simulated.",
             .advice = "It hides the gather after the optimizer.",
             .rules = "Needs zero 1 or 2."});
  table.add("prefetch", &Plan::prefetch, Limits::between(0, kMostPrefetch),
            {.help = "FSDP: layers that are gathered ahead of the one that computes.",
             .advice = "0 exposes every gather. 1 hides most. More need memory for that many "
                       "gathered layers, and help if layers differ in length.",
             .rules = "Needs zero = 3."});
  table.add("reshard_after_forward", &Plan::reshard_after_forward,
            {.help = "FSDP: gathered parameters are dropped after each pass and gathered again.",
             .advice = "false gathers once a step and holds all of the rank's parameters until "
                       "the last backward.",
             .rules = "false needs zero = 3."});
  table.add(
      "save_gathered", &Plan::save_gathered,
      {.help = "FSDP: what a forward gathered stays with the activations that it keeps, until "
               "its backward, which gathers it again all the same. Autograd keeps the weights "
               "of matmuls so unless the software prevents it (DeepSpeed's "
               "mem_efficient_linear does).",
       .advice = "Turn it on to reproduce the memory of such software: all of the rank's "
                 "weights at the end of a forward, but for layers that are recomputed.",
       .rules = "true needs zero = 3 and reshard_after_forward."});
  table.add(
      "keep_root", &Plan::keep_root,
      {.help = "FSDP: the embedding's weights stay gathered from a micro-batch's forward to the "
               "end of its backward. PyTorch's outermost unit holds what no other unit does, the "
               "embedding, the last norm and the head, and is gathered as one.",
       .advice = "true for PyTorch's FSDP where blocks alone are units of their own. It is a "
                 "gigabyte for a table of 128,000 words of 4,096 values.",
       .rules = "true needs zero = 3 and reshard_after_forward. A table that the head shares is "
                "gathered for the head anyway."});
  table.add("shared_master", &Plan::shared_master,
            {.help = "FSDP: the divided fp32 weights are the master weights, and are cast when "
                     "they are gathered (PyTorch). Otherwise a copy in weight_dtype is held beside "
                     "them (DeepSpeed).",
             .advice = "It saves the copy and casts before each gather.",
             .rules = "Needs zero = 3 and optimizer_bytes of at least 4."});
  table.add(
      "fsdp_copies", &Plan::fsdp_copies,
      {.help = "FSDP copies parameters out of the buffer in which they were gathered, and "
               "gradients into the one that is reduced (PyTorch's FSDP2).",
       .advice = "true for FSDP2: 14 bytes of memory traffic a parameter, with two gathers in "
                 "bf16 and gradients reduced in fp32. FSDP1 has views of its buffers.",
       .rules = "Needs zero = 3."});
}

void add_recompute(Table& table) {
  table.theme("Recompute");
  table.add(
      "recompute", &Plan::recompute,
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
  table.add("recompute_block", &Plan::recompute_block, Limits::between(1, kMostLayers),
            {.help = "recompute full: this many blocks in a row keep one input.",
             .advice = "A larger group keeps fewer inputs, and has the activations of all its "
                       "blocks at the peak.",
             .rules = "Above 1 it needs recompute full and a stage with two blocks in a row."});
  table.add("recompute_layers", &Plan::recompute_layers, Limits::between(1, kMostLayers).or_zero(),
            {.help = "Only the first so many blocks of each stage (chunk) are made again.",
             .advice = "Lower it to the smallest number with which the step fits.",
             .rules = "Needs recompute other than none.",
             .unset = "all"});
}

// NOLINTNEXTLINE(readability-function-size): a table
void add_types(Table& table) {
  table.theme("Types and kernels");
  table.add(
      "software", &Plan::software,
      {.help =
           "Software that the step runs on, as catalog/software has it: megatron-lm-2023, "
           "megatron-core, nemo, torchtitan-2024.12, torchtitan, llm-foundry, fms-fsdp, ... Its "
           "plan keys and the efficiencies of its kernels hold where nothing else is given.",
       .advice = "Name it to predict a run on it. Without it, kernels are the best that were "
                 "measured on the chip, and keys have the defaults of this page."});
  table.add("dtype", &Plan::type,
            {.help = "Type in which matmuls compute.",
             .advice = "fp8 halves the time of large matmuls on chips that have it, and adds "
                       "rounding kernels. mxfp8 (scales of 32 values) and nvfp4 (of 16) count "
                       "their scales and round along the tokens, too.",
             .rules = "The chip has a peak throughput for it."});
  const char* const usual = "dtype, but not below bf16";
  table.add("weight_dtype", &Plan::weight_type,
            {.help = "Type in which weights are held and gathered.",
             .advice = "Give it if the software holds weights in another type than it computes in.",
             .unset = usual});
  table.add("activation_dtype", &Plan::activation_type,
            {.help = "Type of everything between matmuls: the residual stream, attention, "
                     "elementwise kernels, and messages between stages.",
             .advice = "A wider type makes memory-bound kernels and activations larger.",
             .unset = usual});
  table.add("communication_dtype", &Plan::communication_type,
            {.help = "Type of activations between tensor ranks, and of keys and values between "
                     "context ranks.",
             .advice = "A narrower type sends less.",
             .rules = "Needs tp or cp above 1, or a model with experts.",
             .unset = "activation_dtype"});
  table.add("dispatch_dtype", &Plan::dispatch_type,
            {.help = "Type of tokens on their way to the experts, and of the gradients of their "
                     "results.",
             .advice = "fp8 halves the bytes of the dispatch (DeepSeek-V3).",
             .rules = "Needs a model with experts.",
             .unset = "communication_dtype"});
  table.add("combine_dtype", &Plan::combine_type,
            {.help = "Type of the experts' results on their way back, and of the gradients of the "
                     "tokens.",
             .advice = "Usually left wide, as results are added up.",
             .rules = "Needs a model with experts and ep above 1.",
             .unset = "activation_dtype"});
  table.add("scale_block", &Plan::scale_block, Limits::between(1, kMostTokens).or_zero(),
            {.help = "Values of one byte that share an fp32 scale, in what is sent and kept.",
             .advice = "Smaller blocks are more exact and send more scales. Both operands of "
                       "weight gradients are then rounded along the tokens, too. 128 in "
                       "DeepSeek-V3.",
             .rules = "Some values have one byte, and no scales of their own as mxfp8 has.",
             .unset = "one scale a tensor"});
  table.add("scale_rows", &Plan::scale_rows,
            {.help = "Each row of an operand of a matmul has its own scale (torchao: rowwise).",
             .advice = "true: both operands of weight gradients are also rounded along the tokens, "
                       "in kernels of their own. The scales are too few to count.",
             .rules = "Needs matmuls in fp8 or int8; not with scale_block."});
  table.add(
      "current_scaling", &Plan::current_scaling,
      {.help = "Operands of fp8 matmuls that share one scale are read once before they are "
               "rounded, for their largest value (torchao: tensorwise; Transformer Engine: "
               "current scaling).",
       .advice = "false: the scale is that of steps before (delayed scaling). Nothing changes "
                 "without such operands."});
  table.add("gather_narrow", &Plan::gather_narrow,
            {.help = "Under sequence parallelism each tensor rank rounds its own tokens, and the "
                     "group gathers what narrow matmuls read in their type (Transformer Engine): "
                     "inputs in the forward and for weight gradients, gradients of results. What "
                     "is scattered stays in communication_dtype.",
             .advice = "true for Transformer Engine in fp8, mxfp8 or nvfp4: three tenths of what "
                       "tensor ranks send go in fp8, a fifth in mxfp8 and 37 % in nvfp4, whose "
                       "gradients are gathered by rows and along the tokens. Nothing changes "
                       "without such operands.",
             .rules = "Has no effect in inference."});
  table.add("round_weights", &Plan::round_weights,
            {.help = "Weights are rounded in the forward and in the backward of every micro-batch.",
             .advice = "true for torchao, whose weights are in fp32 or bf16. false: once a step, "
                       "which is not counted."});
  table.add("keep_narrow_weights", &Plan::keep_narrow_weights,
            {.help = "What narrow matmuls read of weights stays in memory from a step's first "
                     "micro-batch on (Transformer Engine: is_first_microbatch): in both directions "
                     "if rows or blocks have scales or with transpose_operands, else once. Weights "
                     "of that type are one of these themselves.",
             .advice = "true for Transformer Engine: a third of what bf16 weights and gradients "
                       "take, or a sixth. Nothing changes without narrow matmuls, with zero = 3 or "
                       "with round_weights.",
             .rules = "Has no effect in inference."});
  table.add("activation_input_dtype", &Plan::activation_input_type,
            {.help = "Type in which the input of an MLP's activation function is kept for the "
                     "backward (Megatron-Core: activation-func-fp8-input-store).",
             .advice = "fp8 halves what may be the largest activation.",
             .rules = "Not wider than the activations.",
             .unset = "activation_dtype"});
  table.add("attention_result_bits", &Plan::attention_result_bits,
            Limits::between(1, kMostBitsOfAValue).or_zero(),
            {.help = "Bits in which a value of attention's result is kept for the backward, with "
                     "scales of scale_block. One kernel rounds it, another makes it wide again.",
             .advice = "12 in DeepSeek-V3 (E5M6). It keeps less and costs two kernels per layer.",
             .rules = "Fewer than the activations have; fused_attention and cp = 1.",
             .unset = "as the activations"});
  table.add("transpose_weights", &Plan::transpose_weights,
            {.help = "fp8 weights are transposed for the input gradients of every micro-batch, "
                     "because there is no memory for a second copy. Hopper's tensor cores read fp8 "
                     "along the inner dimension only.",
             .advice = "false: they are transposed once a step, which is not counted.",
             .rules = "Needs matmuls narrower than the activations."});
  table.add("transpose_operands", &Plan::transpose_operands,
            {.help = "Kernels of their own transpose the narrow operands of weight gradients that "
                     "share one scale: inputs, and gradients of results.",
             .advice = "true for fp8 on Hopper and Ada, whose fp8 matmuls read along the inner "
                       "dimension only; Blackwell reads either way. It costs 2 % of a step. "
                       "Operands whose rows or blocks have scales are rounded both ways anyway."});
  table.add("fused_attention", &Plan::fused_attention,
            {.help = "Attention is one kernel that keeps scores on the chip (FlashAttention).",
             .advice = "false: scores are written to memory and kept, which grows with the square "
                       "of the sequence."});
  table.add("attention_library", &Plan::attention_library,
            {.help = "Library of the fused attention kernels. A chip says how fast those are that "
                     "differ from what training usually has on it (attention_of).",
             .advice = "flash2 for PyTorch's own attention and for FlashAttention-2, which don't "
                       "use the new matrix instructions of Hopper and Blackwell: there they reach "
                       "about half and a quarter of what cuDNN, flash3 and flash4 do.",
             .rules = "Training; needs fused_attention.",
             .unset = "the chip's usual one"});
  table.add("fused_elementwise", &Plan::fused_elementwise,
            {.help = "Elementwise kernels that read the same data are fused.",
             .advice = "false: gradients are rounded by one kernel for each dimension, inputs of "
                       "activations are rounded and widened by kernels of their own, and the "
                       "gradient of the experts' weights has one, too.",
             .rules = "false needs experts, scale_block with narrow matmuls, or a narrow "
                      "activation_input_dtype."});
  table.add("eager_elementwise", &Plan::eager_elementwise,
            {.help = "Norms, rotations and gated activations run op by op, as in PyTorch without "
                     "torch.compile: each cast, square, sum and product is a kernel.",
             .advice = "true for eager PyTorch. It costs a tenth of a step and more, and keeps an "
                       "fp32 copy of what a norm reads and the result of SiLU for the backward.",
             .rules = "A transformer with RMS norm, rotary positions or a gated MLP."});
  table.add("eager_gate", &Plan::eager_gate,
            {.help = "The activation function of a gated MLP and its product with the other half "
                     "are kernels of their own, and the first one's result stays for the "
                     "backward; norms and rotations are one kernel each.",
             .advice = "true for software that fuses norms and rotations alone (PaddleNLP).",
             .rules = "A gated MLP; not with eager_elementwise, which has it."});
  table.add("copy_inputs", &Plan::copy_inputs,
            {.help = "Tensor ranks without sequence_parallel: each matmul that they divide by "
                     "columns copies its input and keeps the copy: query, key and value have "
                     "three, gate and up two (PaddlePaddle's c_identity).",
             .advice = "true for PaddlePaddle's ColumnParallelLinear. Each also sums up the "
                       "gradient of its input by itself there, which is not modelled.",
             .rules = "Needs tp above 1; not with sequence_parallel."});
  table.add("loss", &Plan::loss,
            {.help = "Kernels of the cross entropy. fused: fp32 in registers only. in_place: one "
                     "fp32 copy of the logits (Megatron-LM). separate: up to three copies, four "
                     "over a tensor group (PyTorch, not compiled). chunked: with the head, some "
                     "tokens at a time, so that no logits are kept (Liger).",
             .advice = "It decides how many bytes of memory a logit costs, which matters for large "
                       "vocabularies. docs/plans.md has times."});
  table.add("hold_logits", &Plan::hold_logits,
            {.help = "The logits' fp32 copy stays in memory until the loss has run backward, as a "
                     "trainer leaves it that still refers to what the model returned.",
             .advice = "Turn it on to reproduce the memory of such software: 4 bytes a logit more, "
                       "and 2 less that were kept for the rounded ones.",
             .rules = "Needs loss separate or in_place."});
  table.add("metric_losses", &Plan::metric_losses, Limits::between(0, kMostMetrics),
            {.help = "Cross entropies that the trainer computes from the logits of each "
                     "micro-batch beside the loss, for figures that it logs.",
             .advice = "2 for Composer (LanguageCrossEntropy and LanguagePerplexity). Each makes "
                       "an fp32 copy of the logits and its log-softmax: a tenth of a step of a "
                       "model of 125 million parameters, little for a large one."});
  table.add("gradient_placeholders", &Plan::gradient_placeholders,
            {.help = "An empty tensor of each shape of a block's weights stays in memory, as "
                     "Transformer Engine leaves it to autograd; those of embedding and head stay "
                     "while their backward runs.",
             .advice = "Turn it on to reproduce the memory of such software."});
  table.add("sm_margin", &Plan::sm_margin, Limits::between(0, kMostUnits),
            {.help = "Units of the chip (streaming multiprocessors) that all kernels leave to "
                     "communication, also while there is none.",
             .advice = "Collectives hold these first; only what they take beyond slows kernels. 20 "
                       "of 132 in DeepSeek-V3. Transformer Engine and FlashAttention call it "
                       "sm_margin, DeepGEMM set_num_sms.",
             .rules = "Fewer than the chip has; 0 on chips whose links are driven by DMA."});
}

void add_launches(Table& table) {
  table.theme("Launches by the host");
  table.add(
      "host_launch_cost", &Plan::host_launch_cost, Limits::between(0, 1).or_zero(),
      {.help = "Time in which the host launches one kernel, message or collective: the framework's "
               "share and the driver's. Ops wait until the host has launched them, one after the "
               "other, in the order of the program.",
       .advice = "5 to 20 us for eager PyTorch; measure it as the time between two launches in a "
                 "trace while the chip is idle. A step with small micro-batches, many experts or "
                 "large tp then waits for its host.",
       .unset = "launching costs nothing"});
  table.add("host_queue_depth", &Plan::host_queue_depth, Limits::between(1, kMostLaunches),
            {.help = "Launches that the host may be ahead of the chip.",
             .advice = "CUDA's queue holds 1,024. A smaller number keeps the host from hiding "
                       "stretches of short kernels behind long ones.",
             .rules = "Needs host_launch_cost."});
  table.add("cuda_graphs", &Plan::cuda_graphs,
            {.help = "What the host launches as a graph. none; blocks: each run of kernels in a "
                     "block costs one launch, but for experts whose numbers of tokens the host "
                     "reads; step: launching costs nothing.",
             .advice = "blocks is Transformer Engine's make_graphed_callables and Megatron-Core's "
                       "graphs by layer, step its full_iteration. Graphs keep memory of their "
                       "own, which is not counted.",
             .rules = "Needs host_launch_cost. step needs host_reads_counts = false in a model "
                      "with experts, but for inference with dispatch = auto, whose passes it holds "
                      "where the host waits for nothing."});
  table.add("host_reads_counts", &Plan::host_reads_counts,
            {.help = "The host waits in each forward of a layer with experts until it has read how "
                     "many tokens go to each expert, and launches on from there.",
             .advice = "false: token counts stay on the chip, or each expert gets a fixed number "
                       "(capacity_factor with padding).",
             .rules = "false needs host_launch_cost, or inference, and a model with experts. In "
                      "inference DeepEP's normal kernels wait so, its low-latency kernels and "
                      "tensor groups don't (docs/inference.md)."});
}

void add_optimizer(Table& table) {
  table.theme("Optimizer and host");
  table.add("optimizer", &Plan::optimizer,
            {.help = "adam, or none: forward and backward only, without optimizer state, as the "
                     "closed forms count a step.",
             .advice = "Use none to compare with formulas."});
  table.add(
      "lora_rank", &Plan::lora_rank, Limits::between(1, kMostRankOfAdapters).or_zero(),
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
  table.add(
      "frozen_dtype", &Plan::frozen_type,
      {.help = "Type in which the frozen matrices of a block are held and gathered. A kernel "
               "makes them wide before each matmul (QLoRA, arXiv 2305.14314; its scales, "
               "0.127 bits a value, count for int4).",
       .advice = "int4 for QLoRA: a quarter of the memory of the frozen model, and more time, "
                 "as weights are made wide two or three times a micro-batch.",
       .rules = "With lora_rank; narrower than weight_dtype.",
       .unset = "weight_dtype"});
  table.add("optimizer_bytes", &Plan::optimizer_bytes, Limits::between(1, kMostBytesOfAParameter),
            {.help = "Bytes of optimizer state of a parameter.",
             .advice = "12: an fp32 weight and two fp32 moments. 8: no master weight. 6: moments "
                       "in one byte each.",
             .rules = "Not with optimizer none."});
  table.add(
      "optimizer_scratch_bytes", &Plan::optimizer_scratch_bytes,
      Limits::between(0, kMostBytesOfAParameter),
      {.help = "Bytes of a parameter that the optimizer needs beside its state while it runs.",
       .advice = "4 for PyTorch's Adam by lists of tensors (foreach, its default): a copy of "
                 "one moment; 2 if moments are in 16 bits. 0 for fused ones.",
       .rules = "Not with optimizer none or offload_optimizer."});
  table.add("gradient_bytes", &Plan::gradient_bytes, Limits::choice_of({{2, "bf16"}, {4, "fp32"}}),
            {.help = "Bytes of a gradient, in which it is accumulated and reduced.",
             .advice = "2 halves the memory and the bytes of the reduction."});
  table.add(
      "separate_accumulation", &Plan::separate_accumulation,
      {.help = "The gradients of a micro-batch are made in 16 bits, stay in memory, and are "
               "added to fp32 sums by kernels of their own (DeepSpeed's BF16_Optimizer).",
       .advice = "It costs 2 bytes of memory a parameter, and 20 bytes of traffic a parameter "
                 "and micro-batch, where matmuls that accumulate have 8.",
       .rules = "A transformer in 16 bits or less; gradient_bytes 4; zero 0 or 1; not with "
                "lora_rank."});
  table.add("free_gradients", &Plan::free_gradients,
            {.help = "Gradients are freed when the optimizer has read them, and made again layer "
                     "by layer in the first backward of the next step (PyTorch's "
                     "zero_grad(set_to_none=True), its default).",
             .advice = "true for PyTorch without flat buffers of gradients. What a forward keeps "
                       "and gradients are then not in memory together: 2 to 4 bytes a parameter "
                       "less where the activations are what fills it.",
             .rules = "Gradients that are held, in memory of their own: not with state_bytes 10 or "
                      "separate_accumulation."});
  table.add("state_bytes", kStateBytesSyntax,
            {.help = "All bytes of a parameter; replaces optimizer_bytes and gradient_bytes. 10: "
                     "bf16 weight and two fp32 moments. 12: also a bf16 gradient. 16: also an fp32 "
                     "weight. 18: the gradient is fp32.",
             .advice = "Give it to reproduce a source that counts so. docs/plans.md has the "
                       "parts.",
             .rules = "10 holds no gradients, so it needs a single micro-batch.",
             .unset = "18, as the parts' defaults add up"});
  table.add("clip_gradients", &Plan::clip_gradients,
            {.help = "The norm of all gradients is computed before the optimizer.",
             .advice = "Training runs clip. It brings all ranks together at the end of a step, "
                       "which costs schedules whose bubble is outside each rank's span."});
  table.add("post_validation", &Plan::post_validation,
            {.help = "The optimizer doesn't wait for the norm of all ranks. It steps by the sum "
                     "over its own stage and those before, handed down the pipeline; the whole "
                     "sum comes back during the next step, of which rank r goes ahead with at most "
                     "2 (pp - 1 - r) forwards. Two steps are simulated (arXiv 2401.10241, section "
                     "4).",
             .advice = "It removes the cost of clip_gradients from zero-bubble schedules. Undoing "
                       "a step, which a norm above the limit asks for, is not modelled.",
             .rules = "Needs clip_gradients and pp above 1."});
  table.add("offload_optimizer", &Plan::offload_optimizer,
            {.help = "Master weights and moments live on the host. The chip updates, bucket by "
                     "bucket, two at a time: 2 x optimizer_bytes a parameter over the host's link.",
             .advice = "It frees the largest part of the state and makes the optimizer as slow as "
                       "the host's link.",
             .rules = "The cluster has a host; not with optimizer none or shared_master."});
  table.add("host_optimizer", &Plan::host_optimizer,
            {.help = "The host updates (ZeRO-Offload): reduced gradients go there beside the "
                     "backward, new weights come back.",
             .advice = "It sends less than offload_optimizer alone; the host's memory bounds the "
                       "update.",
             .rules = "Needs offload_optimizer."});
  table.add("offload_activations", &Plan::offload_activations,
            {.help = "What a block keeps goes to the host after its forward and comes back before "
                     "its backward, beside compute. At most two blocks are under way.",
             .advice = "It saves activation memory without recomputing, as far as the host's link "
                       "keeps up.",
             .rules = "The cluster has a host."});
  table.add("offload_layers", &Plan::offload_layers, Limits::between(1, kMostLayers).or_zero(),
            {.help = "offload_activations: only the first so many blocks of each chunk.",
             .advice = "Lower it until the link keeps up.",
             .rules = "Needs offload_activations.",
             .unset = "all"});
  table.add("copy_checkpoint", &Plan::copy_checkpoint,
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
  add_inference(table);
  add_tensor(table);
  add_pipeline(table);
  add_experts(table);
  add_data(table);
  add_recompute(table);
  add_types(table);
  add_launches(table);
  add_optimizer(table);
  return table;
}

}  // namespace

const FieldTable<ParallelPlan>& plan_fields() {
  static const Table kTable = make_plan_fields();
  return kTable;
}

}  // namespace stepsim
