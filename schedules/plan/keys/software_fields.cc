#include "schedules/plan/keys/key_groups.h"
#include "schedules/plan/keys/key_limits.h"
#include "schedules/plan/keys/plan_syntax.h"
#include "sim/chips/data_type_text.h"
#include "sim/fields/quantity_field.h"

namespace stepsim {

template <>
inline constexpr std::size_t kValuesOf<CudaGraphs> = kCudaGraphs;
template <>
inline constexpr std::size_t kValuesOf<LossKernels> = kLossKernels;
template <>
inline constexpr std::size_t kValuesOf<MemoryFigure> = kMemoryFigures;

namespace {

using Plan = ParallelPlan;
using Table = FieldTable<ParallelPlan>;

void add_kernels(Table& table) {
  table.theme("Kernels");
  table.add_inner(
      "fused_attention", &Plan::kernels, &KernelChoices::fused_attention,
      {.help = "Attention is one kernel that keeps scores on the chip (FlashAttention).",
       .advice = "false: scores are written to memory and kept, which grows with the square "
                 "of the sequence."});
  table.add_inner(
      "attention_library", &Plan::kernels, &KernelChoices::attention_library,
      {.help = "Library of the fused attention kernels. A chip says how fast those are that "
               "differ from what training usually has on it (attention_of).",
       .advice = "flash2 for PyTorch's own attention and for FlashAttention-2, which don't "
                 "use the new matrix instructions of Hopper and Blackwell: there they reach "
                 "about half and a quarter of what cuDNN, flash3 and flash4 do.",
       .rules = "Training; needs fused_attention.",
       .unset = "the chip's usual one"});
  table.add_inner(
      "fused_elementwise", &Plan::kernels, &KernelChoices::fused_elementwise,
      {.help = "Elementwise kernels that read the same data are fused.",
       .advice = "false: gradients are rounded by one kernel for each dimension, inputs of "
                 "activations are rounded and widened by kernels of their own, and the "
                 "gradient of the experts' weights has one, too.",
       .rules = "false needs experts, scale_block with narrow matmuls, or a narrow "
                "activation_input_dtype."});
  table.add_inner(
      "eager_elementwise", &Plan::kernels, &KernelChoices::eager_elementwise,
      {.help = "Norms, rotations and gated activations run op by op, as in PyTorch without "
               "torch.compile: each cast, square, sum and product is a kernel.",
       .advice = "true for eager PyTorch. It costs a tenth of a step and more, and keeps an "
                 "fp32 copy of what a norm reads and the result of SiLU for the backward.",
       .rules = "A transformer with RMS norm, rotary positions or a gated MLP."});
  table.add_inner(
      "eager_gate", &Plan::kernels, &KernelChoices::eager_gate,
      {.help = "The activation function of a gated MLP and its product with the other half "
               "are kernels of their own, and the first one's result stays for the "
               "backward; norms and rotations are one kernel each.",
       .advice = "true for software that fuses norms and rotations alone (PaddleNLP).",
       .rules = "A gated MLP; not with eager_elementwise, which has it."});
  table.add_inner(
      "loss", &Plan::loss, &LossChoices::kernels,
      {.help = "Kernels of the cross entropy. fused: fp32 in registers only. in_place: one "
               "fp32 copy of the logits (Megatron-LM). separate: up to three copies, four "
               "over a tensor group (PyTorch, not compiled). chunked: with the head, some "
               "tokens at a time, so that no logits are kept (Liger).",
       .advice = "It decides how many bytes of memory a logit costs, which matters for large "
                 "vocabularies. docs/plans.md has times."});
  table.add_inner(
      "grouped_experts", &Plan::kernels, &KernelChoices::grouped_experts,
      {.help = "The matmuls of a chip's experts are one kernel (DeepGEMM, CUTLASS).",
       .advice = "false: one matmul an expert, one after the other, each of which adds to its "
                 "gradients when it has multiplied (Transformer Engine's GroupedLinear). It "
                 "matters for many experts with few tokens each. Dense models don't change."});
  table.add_inner(
      "sort_copies", &Plan::kernels, &KernelChoices::sort_copies,
      {.help = "dispatch all_to_all: a pass orders the copies that arrive by expert, another "
               "one orders the results by sender, and so in the backward (Megatron-Core's "
               "all-to-all dispatcher).",
       .advice = "true for Megatron-Core. It costs four passes over the copies in a layer, if "
                 "a chip has several experts."});
  table.add_inner(
      "mask_dispatch", &Plan::kernels, &KernelChoices::mask_dispatch,
      {.help = "Tokens are copied into the places of experts by a product with a mask, and "
               "added up by another, for each sequence's tokens on a chip. Experts compute "
               "all places of their capacity, full or not (GShard; MaxText with "
               "sparse_matmul = False).",
       .advice = "Its products grow with the square of the tokens that a chip has of a "
                 "sequence: they take as long as the experts' own at some thousand.",
       .rules = "Needs a model with experts, model.experts.capacity_factor above 0, dispatch "
                "= all_to_all and sort_copies = false. Not in inference."});
  table.add_inner(
      "sm_margin", &Plan::kernels, &KernelChoices::sm_margin, Limits::between(0, kMostUnits),
      {.help = "Units of the chip (streaming multiprocessors) that all kernels leave to "
               "communication, also while there is none.",
       .advice = "Collectives hold these first; only what they take beyond slows kernels. 20 "
                 "of 132 in DeepSeek-V3. Transformer Engine and FlashAttention call it "
                 "sm_margin, DeepGEMM set_num_sms.",
       .rules = "Fewer than the chip has; 0 on chips whose links are driven by DMA."});
}

void add_narrow_types(Table& table) {
  table.theme("Narrow types", "What becomes of operands with fewer bits than 16.");
  table.add_inner("scale_block", &Plan::narrow, &NarrowTypes::scale_block,
                  Limits::between(1, kMostTokens).or_zero(),
                  {.help = "Values of one byte that share an fp32 scale, in what is sent and kept.",
                   .advice = "Smaller blocks are more exact and send more scales. Both operands of "
                             "weight gradients are then rounded along the tokens, too. 128 in "
                             "DeepSeek-V3.",
                   .rules = "Some values have one byte, and no scales of their own as mxfp8 has.",
                   .unset = "one scale a tensor"});
  table.add_inner(
      "scale_rows", &Plan::narrow, &NarrowTypes::scale_rows,
      {.help = "Each row of an operand of a matmul has its own scale (torchao: rowwise).",
       .advice = "true: both operands of weight gradients are also rounded along the tokens, "
                 "in kernels of their own. The scales are too few to count.",
       .rules = "Needs matmuls in fp8 or int8; not with scale_block."});
  table.add_inner(
      "current_scaling", &Plan::narrow, &NarrowTypes::current_scaling,
      {.help = "Operands of fp8 matmuls that share one scale are read once before they are "
               "rounded, for their largest value (torchao: tensorwise; Transformer Engine: "
               "current scaling).",
       .advice = "false: the scale is that of steps before (delayed scaling). Nothing changes "
                 "without such operands."});
  table.add_inner(
      "gather_narrow", &Plan::narrow, &NarrowTypes::gather_narrow,
      {.help = "Under sequence parallelism each tensor rank rounds its own tokens, and the "
               "group gathers what narrow matmuls read in their type (Transformer Engine): "
               "inputs in the forward and for weight gradients, gradients of results. What "
               "is scattered stays in communication_dtype.",
       .advice = "true for Transformer Engine in fp8, mxfp8 or nvfp4: three tenths of what "
                 "tensor ranks send go in fp8, a fifth in mxfp8 and 37 % in nvfp4, whose "
                 "gradients are gathered by rows and along the tokens. Nothing changes "
                 "without such operands.",
       .rules = "Has no effect in inference."});
  table.add_inner(
      "round_weights", &Plan::narrow, &NarrowTypes::round_weights,
      {.help = "Weights are rounded in the forward and in the backward of every micro-batch.",
       .advice = "true for torchao, whose weights are in fp32 or bf16. false: once a step, "
                 "which is not counted."});
  table.add_inner(
      "keep_narrow_weights", &Plan::narrow, &NarrowTypes::keep_narrow_weights,
      {.help = "What narrow matmuls read of weights stays in memory from a step's first "
               "micro-batch on (Transformer Engine: is_first_microbatch): in both directions "
               "if rows or blocks have scales or with transpose_operands, else once. Weights "
               "of that type are one of these themselves.",
       .advice = "true for Transformer Engine: a third of what bf16 weights and gradients "
                 "take, or a sixth. Nothing changes without narrow matmuls, with zero = 3 or "
                 "with round_weights.",
       .rules = "Has no effect in inference."});
  table.add_inner(
      "activation_input_dtype", &Plan::narrow, &NarrowTypes::activation_input_type,
      {.help = "Type in which the input of an MLP's activation function is kept for the "
               "backward (Megatron-Core: activation-func-fp8-input-store).",
       .advice = "fp8 halves what may be the largest activation.",
       .rules = "Not wider than the activations.",
       .unset = "activation_dtype"});
  table.add_inner(
      "attention_result_bits", &Plan::narrow, &NarrowTypes::attention_result_bits,
      Limits::between(1, kMostBitsOfAValue).or_zero(),
      {.help = "Bits in which a value of attention's result is kept for the backward, with "
               "scales of scale_block. One kernel rounds it, another makes it wide again.",
       .advice = "12 in DeepSeek-V3 (E5M6). It keeps less and costs two kernels per layer.",
       .rules = "Fewer than the activations have; fused_attention and cp = 1.",
       .unset = "as the activations"});
  table.add_inner(
      "transpose_weights", &Plan::narrow, &NarrowTypes::transpose_weights,
      {.help = "fp8 weights are transposed for the input gradients of every micro-batch, "
               "because there is no memory for a second copy. Hopper's tensor cores read fp8 "
               "along the inner dimension only.",
       .advice = "false: they are transposed once a step, which is not counted.",
       .rules = "Needs matmuls narrower than the activations."});
  table.add_inner(
      "transpose_operands", &Plan::narrow, &NarrowTypes::transpose_operands,
      {.help = "Kernels of their own transpose the narrow operands of weight gradients that "
               "share one scale: inputs, and gradients of results.",
       .advice = "true for fp8 on Hopper and Ada, whose fp8 matmuls read along the inner "
                 "dimension only; Blackwell reads either way. It costs 2 % of a step. "
                 "Operands whose rows or blocks have scales are rounded both ways anyway."});
}

void add_pieces(Table& table) {
  table.theme("Work of tensor ranks in pieces");
  table.add_inner(
      "tensor_chunks", &Plan::pieces, &TensorPieces::tensor_chunks, Limits::between(1, kMostTokens),
      {.help = "Collective matmuls: a gather and the matmul that reads it, or a matmul and "
               "the scatter of its result, are cut into this many chunks that run side by "
               "side. Input gradients are reduced beside weight gradients.",
       .advice = "4 chunks hide a fifth to a third of tp's communication (docs/plans.md). "
                 "More chunks make the matmuls "
                 "smaller and less efficient. 1 is off.",
       .rules = "Needs tp above 1 and sequence_parallel; cp, ep and etp are 1. Not in "
                "schedules that split the backward."});
  table.add_inner(
      "tensor_pieces", &Plan::pieces, &TensorPieces::tensor_pieces, Limits::between(1, kMostTokens),
      {.help = "Exchanges in pieces (Transformer Engine's userbuffers, tp_comm_overlap): a "
               "gather runs beside the matmul that reads it, and the scatter of a result "
               "beside its matmul, but for one piece of this many. Input gradients are "
               "reduced beside weight gradients.",
       .advice = "The tensor ranks, where a library sends each rank's part while it "
                 "multiplies the parts that are there; 4 for its pipelined scatters. 1 is "
                 "off.",
       .rules = "Needs tp above 1, sequence_parallel and tensor_chunks 1. Not in schedules "
                "that split the backward, nor with lora_rank."});
  table.add_inner(
      "overlap_tensor", &Plan::pieces, &TensorPieces::overlap_tensor,
      {.help = "An input gradient is reduced while its weight gradient is computed.",
       .advice =
           "It hides about a fifth of tp's communication and slows the kernels beside it a little.",
       .rules = "Needs tp above 1 and a schedule with whole backwards."});
  table.add_inner(
      "overlap_shared_experts", &Plan::pieces, &TensorPieces::overlap_shared_experts,
      {.help = "Shared experts run beside the dispatch and, in the backward, beside the way "
               "back (moe-shared-expert-overlap).",
       .advice = "It hides the all-to-alls for as long as the shared experts take.",
       .rules = "Needs shared experts, ep above 1 and tp = 1; not with fused schedules or "
                "overlap_expert_parallel."});
}

void add_messages(Table& table) {
  table.theme("Messages");
  table.add_inner(
      "scatter_messages", &Plan::messages, &MessagePlan::scatter_messages,
      {.help = "Each tensor rank sends its share of a message to the next stage, where the "
               "shares are gathered (Megatron-LM's scatter-gather, DeepSpeed's pipelines).",
       .advice = "It sends tp times less between nodes. It changes nothing with "
                 "sequence_parallel, whose ranks hold shares anyway, or one stage, or "
                 "one tensor rank."});
  table.add_inner(
      "batch_p2p", &Plan::messages, &MessagePlan::batch_p2p,
      {.help = "Messages between stages are posted in batches of sends and receives, and "
               "waited for as the schedule's runtime does (Megatron-LM, DualPipe, zero "
               "bubble).",
       .advice = "Turn it on to reproduce such software: a batch ends with its slowest "
                 "message. By default each message goes alone, as soon as it is made.",
       .rules = "Needs pp above 1 and overlap_pipeline."});
  table.add_inner(
      "gradient_bucket_parameters", &Plan::messages, &MessagePlan::gradient_bucket_parameters,
      Limits::between(1, kMostParameters),
      {.help = "Parameters of a bucket. A bucket of whole layers is reduced once it has this "
               "many; state on the host moves in such parts, too.",
       .advice = "Small buckets start early and pay more latency; large ones leave more to "
                 "do after the last backward.",
       .rules = "With zero = 3 it counts for offload_optimizer only, and is at least "
                "1000000.",
       .unset = "40 million, or a million for each rank of dp if that is more, as in "
                "Megatron Core"});
}

void add_buffers(Table& table) {
  table.theme("Copies and buffers");
  table.add_inner(
      "save_gathered", &Plan::buffers, &Buffers::save_gathered,
      {.help = "FSDP: what a forward gathered stays with the activations that it keeps, until "
               "its backward, which gathers it again all the same. Autograd keeps the weights "
               "of matmuls so unless the software prevents it (DeepSpeed's "
               "mem_efficient_linear does).",
       .advice = "Turn it on to reproduce the memory of such software: all of the rank's "
                 "weights at the end of a forward, but for layers that are recomputed.",
       .rules = "true needs zero = 3 and reshard_after_forward."});
  table.add_inner(
      "keep_root", &Plan::buffers, &Buffers::keep_root,
      {.help = "FSDP: the embedding's weights stay gathered from a micro-batch's forward to the "
               "end of its backward. PyTorch's outermost unit holds what no other unit does, the "
               "embedding, the last norm and the head, and is gathered as one.",
       .advice = "true for PyTorch's FSDP where blocks alone are units of their own. It is a "
                 "gigabyte for a table of 128,000 words of 4,096 values.",
       .rules = "true needs zero = 3 and reshard_after_forward. A table that the head shares is "
                "gathered for the head anyway."});
  table.add_inner(
      "shared_master", &Plan::buffers, &Buffers::shared_master,
      {.help = "FSDP: the divided fp32 weights are the master weights, and are cast when "
               "they are gathered (PyTorch). Otherwise a copy in weight_dtype is held beside "
               "them (DeepSpeed).",
       .advice = "It saves the copy and casts before each gather.",
       .rules = "Needs zero = 3 and optimizer_bytes of at least 4."});
  table.add_inner(
      "fsdp_copies", &Plan::buffers, &Buffers::fsdp_copies,
      {.help = "FSDP copies parameters out of the buffer in which they were gathered, and "
               "gradients into the one that is reduced (PyTorch's FSDP2).",
       .advice = "true for FSDP2: 14 bytes of memory traffic a parameter, with two gathers in "
                 "bf16 and gradients reduced in fp32. FSDP1 has views of its buffers.",
       .rules = "Needs zero = 3."});
  table.add_inner(
      "copy_inputs", &Plan::buffers, &Buffers::copy_inputs,
      {.help = "Tensor ranks without sequence_parallel: each matmul that they divide by "
               "columns copies its input and keeps the copy: query, key and value have "
               "three, gate and up two (PaddlePaddle's c_identity).",
       .advice = "true for PaddlePaddle's ColumnParallelLinear. Each also sums up the "
                 "gradient of its input by itself there, which is not modelled.",
       .rules = "Needs tp above 1; not with sequence_parallel."});
  table.add_inner(
      "hold_logits", &Plan::loss, &LossChoices::hold_logits,
      {.help = "The logits' fp32 copy stays in memory until the loss has run backward, as a "
               "trainer leaves it that still refers to what the model returned.",
       .advice = "Turn it on to reproduce the memory of such software: 4 bytes a logit more, "
                 "and 2 less that were kept for the rounded ones.",
       .rules = "Needs loss separate or in_place."});
  table.add_inner(
      "metric_losses", &Plan::loss, &LossChoices::metric_losses, Limits::between(0, kMostMetrics),
      {.help = "Cross entropies that the trainer computes from the logits of each "
               "micro-batch beside the loss, for figures that it logs.",
       .advice = "2 for Composer (LanguageCrossEntropy and LanguagePerplexity). Each makes "
                 "an fp32 copy of the logits and its log-softmax: a tenth of a step of a "
                 "model of 125 million parameters, little for a large one."});
  table.add_inner(
      "gradient_placeholders", &Plan::buffers, &Buffers::gradient_placeholders,
      {.help = "An empty tensor of each shape of a block's weights stays in memory, as "
               "Transformer Engine leaves it to autograd; those of embedding and head stay "
               "while their backward runs.",
       .advice = "Turn it on to reproduce the memory of such software."});
}

void add_update(Table& table) {
  table.theme("The update");
  table.add_inner(
      "optimizer_bytes", &Plan::update, &OptimizerUpdate::optimizer_bytes,
      Limits::between(1, kMostBytesOfAParameter),
      {.help = "Bytes of optimizer state of a parameter.",
       .advice = "12: an fp32 weight and two fp32 moments. 8: no master weight. 6: moments "
                 "in one byte each.",
       .rules = "Not with optimizer none."});
  table.add_inner(
      "optimizer_scratch_bytes", &Plan::update, &OptimizerUpdate::optimizer_scratch_bytes,
      Limits::between(0, kMostBytesOfAParameter),
      {.help = "Bytes of a parameter that the optimizer needs beside its state while it runs.",
       .advice = "4 for PyTorch's Adam by lists of tensors (foreach, its default): a copy of "
                 "one moment; 2 if moments are in 16 bits. 0 for fused ones.",
       .rules = "Not with optimizer none or offload_optimizer."});
  table.add_inner(
      "second_moment_bytes", &Plan::update, &OptimizerUpdate::second_moment_bytes,
      Limits::between(1, kMostBytesOfAParameter),
      {.help = "Bytes of a second moment, which are part of optimizer_bytes: with optimizer muon "
               "matrices have none.",
       .advice = "4 for fp32, 2 for bf16.",
       .rules = "With muon at most optimizer_bytes."});
  table.add_inner("newton_schulz_steps", &Plan::update, &OptimizerUpdate::newton_schulz_steps,
                  Limits::between(1, 64),
                  {.help = "Steps by which Muon makes the columns of an update orthogonal.",
                   .advice = "5 is the authors' and Megatron Core's.",
                   .rules = "Of effect with optimizer muon."});
  table.add_inner("gradient_bytes", &Plan::update, &OptimizerUpdate::gradient_bytes,
                  Limits::choice_of({{2, "bf16"}, {4, "fp32"}}),
                  {.help = "Bytes of a gradient, in which it is accumulated and reduced.",
                   .advice = "2 halves the memory and the bytes of the reduction."});
  table.add_inner(
      "separate_accumulation", &Plan::update, &OptimizerUpdate::separate_accumulation,
      {.help = "The gradients of a micro-batch are made in 16 bits, stay in memory, and are "
               "added to fp32 sums by kernels of their own (DeepSpeed's BF16_Optimizer).",
       .advice = "It costs 2 bytes of memory a parameter, and 20 bytes of traffic a parameter "
                 "and micro-batch, where matmuls that accumulate have 8.",
       .rules = "A transformer in 16 bits or less; gradient_bytes 4; zero 0 or 1; not with "
                "lora_rank."});
  table.add_inner(
      "free_gradients", &Plan::update, &OptimizerUpdate::free_gradients,
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
  table.add_inner(
      "clip_gradients", &Plan::update, &OptimizerUpdate::clip_gradients,
      {.help = "The norm of all gradients is computed before the optimizer.",
       .advice = "Training runs clip. It brings all ranks together at the end of a step, "
                 "which costs schedules whose bubble is outside each rank's span."});
  table.add_inner(
      "post_validation", &Plan::update, &OptimizerUpdate::post_validation,
      {.help = "The optimizer doesn't wait for the norm of all ranks. It steps by the sum "
               "over its own stage and those before, handed down the pipeline; the whole "
               "sum comes back during the next step, of which rank r goes ahead with at most "
               "2 (pp - 1 - r) forwards. Two steps are simulated (arXiv 2401.10241, section "
               "4).",
       .advice = "It removes the cost of clip_gradients from zero-bubble schedules. Undoing "
                 "a step, which a norm above the limit asks for, is not modelled.",
       .rules = "Needs clip_gradients and pp above 1."});
  table.add_inner(
      "host_optimizer", &Plan::update, &OptimizerUpdate::host_optimizer,
      {.help = "The host updates (ZeRO-Offload): reduced gradients go there beside the "
               "backward, new weights come back.",
       .advice = "It sends less than offload_optimizer alone; the host's memory bounds the "
                 "update.",
       .rules = "Needs offload_optimizer."});
  table.add_inner(
      "host_gradients", &Plan::update, &OptimizerUpdate::host_gradients,
      {.help = "Under host_optimizer the chip holds no sums of gradients: DeepSpeed's flat buffer "
               "of a rank's partition is on the host with the optimizer "
               "(deepspeed/runtime/zero/stage3.py, grad_partitions_flat_buffer), those of "
               "Megatron and verl stay on the chip.",
       .advice = "true for DeepSpeed, false for all others.",
       .rules = "Of effect with host_optimizer and zero 2 or 3."});
}

void add_habits(Table& table) {
  table.theme("Habits", "What the software makes of any model and of what a plan chooses.");
  table.add_inner("dropout", &Plan::habits, &ModelHabits::dropout,
                  {.help = "Models without a gated MLP have dropout: behind the embedding, in "
                           "attention and behind each branch.",
                   .advice = "true for Megatron-LM's GPTs, whose default is 0.1. Any rate costs "
                             "the same. A model may say so itself: model.dropout."});
  table.add_inner("pads_vocabulary", &Plan::habits, &ModelHabits::pads_vocabulary,
                  Limits::between(1, kMostTokens),
                  {.help = "The vocabulary grows to a multiple of this many tokens for each tensor "
                           "rank.",
                   .advice = "128 in Megatron-LM and what is made of it. FLOPs of the model, and "
                             "so MFU, count the model's own vocabulary."});
  table.add_inner("recomputes_as_needed", &Plan::habits, &ModelHabits::recomputes_as_needed,
                  {.help = "recompute full leaves out a block's last matmul, whose result no "
                           "backward reads: it becomes all_but with recompute_keep = down.",
                   .advice = "true for PyTorch's checkpoints that are not reentrant, and for XLA. "
                             "Blocks of experts, and recompute_block, don't change."});
  table.add_inner("recomputes_cudnn", &Plan::habits, &ModelHabits::recomputes_cudnn,
                  {.help = "recompute alternate makes cuDNN's attention again: it becomes "
                           "alternate_matmuls.",
                   .advice = "true for torchtitan up to November 2025."});
}

void add_allocator(Table& table) {
  table.theme("Figures of memory",
              "What a software's own figure of memory counts. Only `stepsim accuracy` reads these: "
              "they change no step.");
  table.add_inner("memory_figure", &Plan::allocator, &Allocator::figure,
                  {.help = "allocated: tensors. reserved: also what the allocator keeps of freed "
                           "ones. device: also context and libraries, as nvidia-smi shows.",
                   .advice = "What the software's log prints."});
  table.add_inner("unused_memory", &Plan::allocator, &Allocator::unused, Limits::between(0, 10),
                  {.help = "What the allocator keeps at the peak beside tensors, as a part of "
                           "them, while there is room.",
                   .advice = "0.05 is the middle of twelve public logs that print both."});
  table.add_inner("flat_gradient_bytes", &Plan::allocator, &Allocator::flat_gradient_bytes,
                  Limits::between(0, kMostBytesOfAParameter),
                  {.help = "Bytes that flat copies of gradients take for each parameter whose "
                           "state the rank has, and that stay reserved.",
                   .advice = "6 for DeepSpeed's ZeRO 1 and 2: a copy in 2 bytes and one in 4.",
                   .rules = "Counts with zero 1 and 2, but for separate_accumulation and "
                            "offload_optimizer."});
}

void add_launches(Table& table) {
  table.theme("Launches by the host");
  table.add_inner(
      "host_launch_cost", &Plan::launches, &HostLaunches::host_launch_cost,
      Limits::between(0, 1).or_zero(),
      {.help = "Time in which the host launches one kernel, message or collective: the framework's "
               "share and the driver's. Ops wait until the host has launched them, one after the "
               "other, in the order of the program.",
       .advice = "5 to 20 us for eager PyTorch; measure it as the time between two launches in a "
                 "trace while the chip is idle. A step with small micro-batches, many experts or "
                 "large tp then waits for its host.",
       .unset = "launching costs nothing"});
  table.add_inner(
      "host_queue_depth", &Plan::launches, &HostLaunches::host_queue_depth,
      Limits::between(1, kMostLaunches),
      {.help = "Launches that the host may be ahead of the chip.",
       .advice = "CUDA's queue holds 1,024. A smaller number keeps the host from hiding "
                 "stretches of short kernels behind long ones.",
       .rules = "Needs host_launch_cost."});
  table.add_inner(
      "cuda_graphs", &Plan::launches, &HostLaunches::cuda_graphs,
      {.help = "What the host launches as a graph. none; blocks: each run of kernels in a "
               "block costs one launch, but for experts whose numbers of tokens the host "
               "reads; step: launching costs nothing.",
       .advice = "blocks is Transformer Engine's make_graphed_callables and Megatron-Core's "
                 "graphs by layer, step its full_iteration. Graphs keep memory of their "
                 "own, which is not counted.",
       .rules = "Needs host_launch_cost. step needs host_reads_counts = false in a model "
                "with experts, but for inference with dispatch = auto, whose passes it holds "
                "where the host waits for nothing."});
  table.add_inner(
      "host_reads_counts", &Plan::launches, &HostLaunches::host_reads_counts,
      {.help = "The host waits in each forward of a layer with experts until it has read how "
               "many tokens go to each expert, and launches on from there.",
       .advice = "false: token counts stay on the chip, or each expert gets a fixed number "
                 "(capacity_factor with padding).",
       .rules = "false needs host_launch_cost, or inference, and a model with experts. In "
                "inference DeepEP's normal kernels wait so, its low-latency kernels and "
                "tensor groups don't (docs/inference.md)."});
}

Table make_software_fields() {
  Table table("Plan");
  add_kernels(table);
  add_narrow_types(table);
  add_pieces(table);
  add_messages(table);
  add_buffers(table);
  add_update(table);
  add_launches(table);
  add_habits(table);
  add_allocator(table);
  return table;
}

}  // namespace

const FieldTable<ParallelPlan>& software_fields() {
  static const Table kTable = make_software_fields();
  return kTable;
}

}  // namespace stepsim
