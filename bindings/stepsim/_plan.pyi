"""Plan: how the work of a step is divided. Made by scripts/generate_python_stubs.py."""
from typing import Any, List, Literal, Optional, Sequence, Union

from ._objects import Part

def schedule_text(ranks: Any) -> str: ...

class Plan(Part):
    def __init__(self, catalog: Optional[str] = ..., *,
                 tp: Optional[int] = ...,
                 cp: Optional[int] = ...,
                 dp: Optional[int] = ...,
                 pp: Optional[int] = ...,
                 ep: Optional[int] = ...,
                 etp: Optional[int] = ...,
                 global_batch: Optional[int] = ...,
                 sequence: Optional[int] = ...,
                 document_length: Optional[int] = ...,
                 microbatch: Optional[int] = ...,
                 order: Optional[str] = ...,
                 map: Optional[str] = ...,
                 allow_idle_chips: Optional[bool] = ...,
                 chips_per_domain: Optional[int] = ...,
                 inference: Optional[Literal["none", "prefill", "decode"]] = ...,
                 batch: Optional[int] = ...,
                 context: Optional[int] = ...,
                 prefill_tokens: Optional[int] = ...,
                 prefill_context: Optional[int] = ...,
                 expert_weight_dtype: Optional[Literal["fp32", "bf16", "fp16", "fp8", "int8", "mxfp8", "mxfp4", "nvfp4", "int4", "fp8_block"]] = ...,
                 expert_dtype: Optional[Literal["fp32", "bf16", "fp16", "fp8", "int8", "mxfp8", "mxfp4", "nvfp4", "int4", "fp8_block"]] = ...,
                 expert_spread: Optional[float] = ...,
                 cache_dtype: Optional[Literal["fp32", "bf16", "fp16", "fp8", "int8", "mxfp8", "mxfp4", "nvfp4", "int4", "fp8_block"]] = ...,
                 cache_split: Optional[Literal["heads", "requests"]] = ...,
                 ffn_chips: Optional[int] = ...,
                 pass_microbatches: Optional[int] = ...,
                 sequence_parallel: Optional[bool] = ...,
                 tensor_chunks: Optional[int] = ...,
                 tensor_pieces: Optional[int] = ...,
                 overlap_tensor: Optional[bool] = ...,
                 tensor_width: Optional[int] = ...,
                 cp_mode: Optional[Literal["ring", "zigzag_ring", "all_gather", "ulysses"]] = ...,
                 schedule: Optional[Union[str, Sequence[Sequence[str]]]] = ...,
                 chunks: Optional[int] = ...,
                 layout: Optional[str] = ...,
                 microbatch_group: Optional[int] = ...,
                 memory_limit: Optional[int] = ...,
                 overlap_pipeline: Optional[bool] = ...,
                 scatter_messages: Optional[bool] = ...,
                 batch_p2p: Optional[bool] = ...,
                 dispatch: Optional[Literal["all_to_all", "two_level", "auto"]] = ...,
                 expert_node: Optional[int] = ...,
                 node_limit: Optional[int] = ...,
                 overlap_expert_parallel: Optional[bool] = ...,
                 overlap_shared_experts: Optional[bool] = ...,
                 grouped_experts: Optional[bool] = ...,
                 sort_copies: Optional[bool] = ...,
                 mask_dispatch: Optional[bool] = ...,
                 zero: Optional[int] = ...,
                 shard: Optional[int] = ...,
                 gradient_bucket_parameters: Optional[int] = ...,
                 overlap_gradients: Optional[bool] = ...,
                 overlap_parameters: Optional[bool] = ...,
                 prefetch: Optional[int] = ...,
                 reshard_after_forward: Optional[bool] = ...,
                 save_gathered: Optional[bool] = ...,
                 keep_root: Optional[bool] = ...,
                 shared_master: Optional[bool] = ...,
                 fsdp_copies: Optional[bool] = ...,
                 recompute: Optional[Literal["none", "selective", "matmuls", "alternate", "alternate_matmuls", "all_but", "full"]] = ...,
                 recompute_modules: Optional[str] = ...,
                 recompute_keep: Optional[str] = ...,
                 recompute_block: Optional[int] = ...,
                 recompute_layers: Optional[int] = ...,
                 software: Optional[str] = ...,
                 dtype: Optional[Literal["fp32", "bf16", "fp16", "fp8", "int8", "mxfp8", "mxfp4", "nvfp4", "int4", "fp8_block"]] = ...,
                 weight_dtype: Optional[Literal["fp32", "bf16", "fp16", "fp8", "int8", "mxfp8", "mxfp4", "nvfp4", "int4", "fp8_block"]] = ...,
                 activation_dtype: Optional[Literal["fp32", "bf16", "fp16", "fp8", "int8", "mxfp8", "mxfp4", "nvfp4", "int4", "fp8_block"]] = ...,
                 communication_dtype: Optional[Literal["fp32", "bf16", "fp16", "fp8", "int8", "mxfp8", "mxfp4", "nvfp4", "int4", "fp8_block"]] = ...,
                 dispatch_dtype: Optional[Literal["fp32", "bf16", "fp16", "fp8", "int8", "mxfp8", "mxfp4", "nvfp4", "int4", "fp8_block"]] = ...,
                 combine_dtype: Optional[Literal["fp32", "bf16", "fp16", "fp8", "int8", "mxfp8", "mxfp4", "nvfp4", "int4", "fp8_block"]] = ...,
                 scale_block: Optional[int] = ...,
                 scale_rows: Optional[bool] = ...,
                 current_scaling: Optional[bool] = ...,
                 gather_narrow: Optional[bool] = ...,
                 round_weights: Optional[bool] = ...,
                 keep_narrow_weights: Optional[bool] = ...,
                 activation_input_dtype: Optional[Literal["fp32", "bf16", "fp16", "fp8", "int8", "mxfp8", "mxfp4", "nvfp4", "int4", "fp8_block"]] = ...,
                 attention_result_bits: Optional[int] = ...,
                 transpose_weights: Optional[bool] = ...,
                 transpose_operands: Optional[bool] = ...,
                 fused_attention: Optional[bool] = ...,
                 attention_library: Optional[Literal["flash1", "flash2", "flash3", "flash4", "triton", "cudnn"]] = ...,
                 fused_elementwise: Optional[bool] = ...,
                 eager_elementwise: Optional[bool] = ...,
                 eager_gate: Optional[bool] = ...,
                 copy_inputs: Optional[bool] = ...,
                 loss: Optional[Literal["fused", "in_place", "separate", "chunked"]] = ...,
                 hold_logits: Optional[bool] = ...,
                 metric_losses: Optional[int] = ...,
                 gradient_placeholders: Optional[bool] = ...,
                 sm_margin: Optional[int] = ...,
                 host_launch_cost: Optional[Union[str, float]] = ...,
                 host_queue_depth: Optional[int] = ...,
                 cuda_graphs: Optional[Literal["none", "blocks", "step"]] = ...,
                 host_reads_counts: Optional[bool] = ...,
                 optimizer: Optional[Literal["adam", "none"]] = ...,
                 lora_rank: Optional[int] = ...,
                 lora_modules: Optional[str] = ...,
                 frozen_dtype: Optional[Literal["fp32", "bf16", "fp16", "fp8", "int8", "mxfp8", "mxfp4", "nvfp4", "int4", "fp8_block"]] = ...,
                 optimizer_bytes: Optional[int] = ...,
                 optimizer_scratch_bytes: Optional[int] = ...,
                 gradient_bytes: Optional[int] = ...,
                 separate_accumulation: Optional[bool] = ...,
                 free_gradients: Optional[bool] = ...,
                 state_bytes: Optional[Literal[10, 12, 16, 18]] = ...,
                 clip_gradients: Optional[bool] = ...,
                 post_validation: Optional[bool] = ...,
                 offload_optimizer: Optional[bool] = ...,
                 host_optimizer: Optional[bool] = ...,
                 offload_activations: Optional[bool] = ...,
                 offload_layers: Optional[int] = ...,
                 copy_checkpoint: Optional[bool] = ...) -> None:
        """A plan: `Plan(tp=8, pp=4, dp=16, microbatch=1, global_batch=1024, sequence=8192)`.

        `catalog` is a plan of the catalog; the keys differ from it. docs/plan-keys.md says more about each.

        tp: Tensor parallelism: ranks that divide every matmul of a layer. (default: 1)
        cp: Context parallelism: ranks that divide the tokens of each sequence. (default: 1)
        dp: Data parallelism: replicas that each take a part of the global batch. (default: 1)
        pp: Pipeline parallelism: ranks that each hold a part of the layers. (default: 1)
        ep: Expert parallelism: ranks that divide the routed experts of a layer. (default: 1)
        etp: Expert tensor parallelism: ranks that divide each routed expert. (default: 1)
        global_batch: Sequences of a step. (default: 0)
        sequence: Tokens of a sequence. (default: 0)
        document_length: Tokens of the documents that each sequence is packed of: attention stays within
            a document. 0: a sequence is one document. (default: 0)
        microbatch: Sequences of a micro-batch, which goes through the layers at once. (default: 1)
        order: How ranks are numbered, innermost axis first: neighbours along the first axis sit next to
            each other. (default: tp-cp-dp-pp)
        map: Which axes lie over which levels of the cluster, innermost level first: tp:x/dp:y+z.
        allow_idle_chips: Lets a plan use fewer ranks than the cluster has chips. (default: false)
        chips_per_domain: Chips of each NVLink domain (a node or a rack, the innermost level) that have
            ranks. The others idle.
        inference: What the pass computes. prefill: new tokens of prompts; decode: the next token of
            each request; none: a training step. (default: none)
        batch: Requests of the pass, in all replicas: another name of global_batch.
        context: Tokens of each request that attention reads: its new ones (sequence), and those in the
            cache before them. Where requests differ, their mean. (default: 0)
        prefill_tokens: Tokens of a prompt that each replica computes in the same pass, beside the
            requests that generate (chunked prefill). (default: 0)
        prefill_context: Tokens of that prompt after the pass: prefill_tokens and those computed before.
            (default: 0)
        expert_weight_dtype: Type in which routed experts are held. The kernel widens it as it reads.
        expert_dtype: Type in which the matmuls of routed experts compute.
        expert_spread: How many times as often as the least popular expert the most popular one is
            chosen. Logarithms of the chances in between are evenly spaced. (default: 1)
        cache_dtype: Type of keys and values, or latents, in the cache.
        cache_split: How the tensor group divides the cache of requests that generate. heads: each chip
            has some key-value heads of all; requests: all heads of some, so that queries and results
            travel by an all-to-all each. (default: heads)
        ffn_chips: Chips that hold the routed experts and nothing else, behind those of tp x dp, which
            do all other work (attention-FFN disaggregation: MegaScale-Infer, Step-3). (default: 0)
        pass_microbatches: Parts that a pass with ffn_chips is cut into. While experts work on one,
            attention works on others (ping-pong pipeline). (default: 1)
        sequence_parallel: With tp above 1: norms, dropout and residual additions are divided along the
            tokens. (default: true)
        tensor_chunks: Collective matmuls: a gather and the matmul that reads it, or a matmul and the
            scatter of its result, are cut into this many chunks that run side by side. Input gradients
            are reduced beside weight gradients. (default: 1)
        tensor_pieces: Exchanges in pieces (Transformer Engine's userbuffers, tp_comm_overlap): a gather
            runs beside the matmul that reads it, and the scatter of a result beside its matmul, but for
            one piece of this many. Input gradients are reduced beside weight gradients. (default: 1)
        overlap_tensor: An input gradient is reduced while its weight gradient is computed. (default:
            false)
        tensor_width: Two-dimensional weight-stationary matmuls: this many neighbouring ranks of tp
            divide the model's width, the others its features. (default: 1)
        cp_mode: How attention sees the keys and values of other context ranks. ring: they go round,
            each rank has one contiguous part. zigzag_ring: the same, but each rank has an early and a
            late part, so that causal work is equal. all_gather: they are gathered first (Llama 3).
            ulysses: all-to-alls give every rank some heads of the whole sequence. (default:
            zigzag_ring)
        schedule: The pipeline schedule: a name, `optimal`, which searches for the best order within
            memory_limit, or a file in the notation of `stepsim schedule`. (default: 1f1b)
        chunks: Parts of the model on each rank, also called virtual stages.
        layout: Layers of each stage, in order: 7,8*14,7 is 7, then 14 times 8, then 7. 14*8 is also
            read as 14 stages of 8 layers where that makes as many stages as the pipeline has. balanced:
            with which a step takes the least time by its bound, as equal stages or others; the chunks
            of a rank count together.
        microbatch_group: Interleaved schedules: micro-batches that a rank takes in turn on one chunk.
        memory_limit: zb_auto_1p, zb_auto_2p, zbv_auto and optimal: how many micro-batches x chunks a
            rank may have in flight.
        overlap_pipeline: Messages between stages travel while ranks compute. (default: true)
        scatter_messages: Each tensor rank sends its share of a message to the next stage, where the
            shares are gathered (Megatron-LM's scatter-gather, DeepSpeed's pipelines). (default: false)
        batch_p2p: Messages between stages are posted in batches of sends and receives, and waited for
            as the schedule's runtime does (Megatron-LM, DualPipe, zero bubble). (default: false)
        dispatch: How tokens travel to their experts. all_to_all: a copy for each expert. two_level: a
            copy for each node, handed on inside it to each rank that has one of the token's experts
            (DeepEP). auto: passes of inference in which all requests generate go by all_to_all, if the
            library has low-latency kernels for as many tokens, others by two_level (SGLang: deepep-mode
            auto). (default: all_to_all)
        expert_node: two_level dispatch: neighbouring ranks of ep that stand in one node.
        node_limit: two_level dispatch: the most nodes that one token is sent to.
        overlap_expert_parallel: Each backward alternates with the forward behind it, so that the all-
            to-alls of one hide behind the compute of the other (Megatron-Core: overlap-moe-expert-
            parallel-comm). (default: false)
        overlap_shared_experts: Shared experts run beside the dispatch and, in the backward, beside the
            way back (moe-shared-expert-overlap). (default: false)
        grouped_experts: The matmuls of a chip's experts are one kernel (DeepGEMM, CUTLASS). (default:
            true)
        sort_copies: dispatch all_to_all: a pass orders the copies that arrive by expert, another one
            orders the results by sender, and so in the backward (Megatron-Core's all-to-all
            dispatcher). (default: false)
        mask_dispatch: Tokens are copied into the places of experts by a product with a mask, and added
            up by another, for each sequence's tokens on a chip. Experts compute all places of their
            capacity, full or not (GShard; MaxText with sparse_matmul = False). (default: false)
        zero: What the replicas divide between them; each level includes the one before. (default: 0)
        shard: Hybrid sharding: this many neighbouring replicas divide the state, and all such groups
            are alike.
        gradient_bucket_parameters: Parameters of a bucket. A bucket of whole layers is reduced once it
            has this many; state on the host moves in such parts, too.
        overlap_gradients: Full buckets are reduced while the last backward goes on. FSDP reduces each
            layer after its backward; with false, the backward before waits for that. (default: true)
        overlap_parameters: Updated parameters are gathered beside the next step's forward. Two steps
            are simulated. (default: false)
        prefetch: FSDP: layers that are gathered ahead of the one that computes. (default: 1)
        reshard_after_forward: FSDP: gathered parameters are dropped after each pass and gathered again.
            (default: true)
        save_gathered: FSDP: what a forward gathered stays with the activations that it keeps, until its
            backward, which gathers it again all the same. Autograd keeps the weights of matmuls so
            unless the software prevents it (DeepSpeed's mem_efficient_linear does). (default: false)
        keep_root: FSDP: the embedding's weights stay gathered from a micro-batch's forward to the end
            of its backward. PyTorch's outermost unit holds what no other unit does, the embedding, the
            last norm and the head, and is gathered as one. (default: false)
        shared_master: FSDP: the divided fp32 weights are the master weights, and are cast when they are
            gathered (PyTorch). Otherwise a copy in weight_dtype is held beside them (DeepSpeed).
            (default: false)
        fsdp_copies: FSDP copies parameters out of the buffer in which they were gathered, and gradients
            into the one that is reduced (PyTorch's FSDP2). (default: false)
        recompute: Activations that are dropped and made again before the backward. selective: the
            recompute_modules of each block. matmuls: all but the results of matmuls with weights.
            alternate: all but the results of attention and of every second matmul outside of routed
            experts (torchtitan). alternate_matmuls: all but those of every second matmul. all_but: all
            but the results in recompute_keep (JAX). full: whole blocks, of which only the input is
            kept. (default: none)
        recompute_modules: recompute selective: the modules that are made again, joined by +.
            norm+activation+latent_up is DeepSeek-V3's choice. (default: attention)
        recompute_keep: recompute all_but: the results that are kept, joined by +: qkv (queries, keys
            and values), attention, out (its last matmul), up and down (an MLP's matmuls). What no
            backward reads is not kept.
        recompute_block: recompute full: this many blocks in a row keep one input. (default: 1)
        recompute_layers: Only the first so many blocks of each stage (chunk) are made again.
        software: Software that the step runs on, as catalog/software has it: megatron-lm-2023,
            megatron-core, nemo, torchtitan-2024.12, torchtitan, llm-foundry, fms-fsdp, ... Its plan
            keys and the efficiencies of its kernels hold where nothing else is given.
        dtype: Type in which matmuls compute. (default: bf16)
        weight_dtype: Type in which weights are held and gathered.
        activation_dtype: Type of everything between matmuls: the residual stream, attention,
            elementwise kernels, and messages between stages.
        communication_dtype: Type of activations between tensor ranks, and of keys and values between
            context ranks.
        dispatch_dtype: Type of tokens on their way to the experts, and of the gradients of their
            results.
        combine_dtype: Type of the experts' results on their way back, and of the gradients of the
            tokens.
        scale_block: Values of one byte that share an fp32 scale, in what is sent and kept.
        scale_rows: Each row of an operand of a matmul has its own scale (torchao: rowwise). (default:
            false)
        current_scaling: Operands of fp8 matmuls that share one scale are read once before they are
            rounded, for their largest value (torchao: tensorwise; Transformer Engine: current scaling).
            (default: false)
        gather_narrow: Under sequence parallelism each tensor rank rounds its own tokens, and the group
            gathers what narrow matmuls read in their type (Transformer Engine): inputs in the forward
            and for weight gradients, gradients of results. What is scattered stays in
            communication_dtype. (default: false)
        round_weights: Weights are rounded in the forward and in the backward of every micro-batch.
            (default: false)
        keep_narrow_weights: What narrow matmuls read of weights stays in memory from a step's first
            micro-batch on (Transformer Engine: is_first_microbatch): in both directions if rows or
            blocks have scales or with transpose_operands, else once. Weights of that type are one of
            these themselves. (default: false)
        activation_input_dtype: Type in which the input of an MLP's activation function is kept for the
            backward (Megatron-Core: activation-func-fp8-input-store).
        attention_result_bits: Bits in which a value of attention's result is kept for the backward,
            with scales of scale_block. One kernel rounds it, another makes it wide again.
        transpose_weights: fp8 weights are transposed for the input gradients of every micro-batch,
            because there is no memory for a second copy. Hopper's tensor cores read fp8 along the inner
            dimension only. (default: false)
        transpose_operands: Kernels of their own transpose the narrow operands of weight gradients that
            share one scale: inputs, and gradients of results. (default: false)
        fused_attention: Attention is one kernel that keeps scores on the chip (FlashAttention).
            (default: true)
        attention_library: Library of the fused attention kernels. A chip says how fast those are that
            differ from what training usually has on it (attention_of).
        fused_elementwise: Elementwise kernels that read the same data are fused. (default: true)
        eager_elementwise: Norms, rotations and gated activations run op by op, as in PyTorch without
            torch.compile: each cast, square, sum and product is a kernel. (default: false)
        eager_gate: The activation function of a gated MLP and its product with the other half are
            kernels of their own, and the first one's result stays for the backward; norms and rotations
            are one kernel each. (default: false)
        copy_inputs: Tensor ranks without sequence_parallel: each matmul that they divide by columns
            copies its input and keeps the copy: query, key and value have three, gate and up two
            (PaddlePaddle's c_identity). (default: false)
        loss: Kernels of the cross entropy. fused: fp32 in registers only. in_place: one fp32 copy of
            the logits (Megatron-LM). separate: up to three copies, four over a tensor group (PyTorch,
            not compiled). chunked: with the head, some tokens at a time, so that no logits are kept
            (Liger). (default: fused)
        hold_logits: The logits' fp32 copy stays in memory until the loss has run backward, as a trainer
            leaves it that still refers to what the model returned. (default: false)
        metric_losses: Cross entropies that the trainer computes from the logits of each micro-batch
            beside the loss, for figures that it logs. (default: 0)
        gradient_placeholders: An empty tensor of each shape of a block's weights stays in memory, as
            Transformer Engine leaves it to autograd; those of embedding and head stay while their
            backward runs. (default: false)
        sm_margin: Units of the chip (streaming multiprocessors) that all kernels leave to
            communication, also while there is none. (default: 0)
        host_launch_cost: Time in which the host launches one kernel, message or collective: the
            framework's share and the driver's. Ops wait until the host has launched them, one after the
            other, in the order of the program.
        host_queue_depth: Launches that the host may be ahead of the chip. (default: 1024)
        cuda_graphs: What the host launches as a graph. none; blocks: each run of kernels in a block
            costs one launch, but for experts whose numbers of tokens the host reads; step: launching
            costs nothing. (default: none)
        host_reads_counts: The host waits in each forward of a layer with experts until it has read how
            many tokens go to each expert, and launches on from there. (default: true)
        optimizer: adam, or none: forward and backward only, without optimizer state, as the closed
            forms count a step. (default: adam)
        lora_rank: Rank of the low-rank adapters (LoRA) beside each projection of a block, which are all
            that is trained: the model is frozen.
        lora_modules: Projections that have adapters, joined by +: qkv (all in front of attention or of
            a state), out (their last), mlp (of dense MLPs and shared experts). (default: qkv+out+mlp)
        frozen_dtype: Type in which the frozen matrices of a block are held and gathered. A kernel makes
            them wide before each matmul (QLoRA, arXiv 2305.14314; its scales, 0.127 bits a value, count
            for int4).
        optimizer_bytes: Bytes of optimizer state of a parameter. (default: 12)
        optimizer_scratch_bytes: Bytes of a parameter that the optimizer needs beside its state while it
            runs. (default: 0)
        gradient_bytes: Bytes of a gradient, in which it is accumulated and reduced. (default: 4)
        separate_accumulation: The gradients of a micro-batch are made in 16 bits, stay in memory, and
            are added to fp32 sums by kernels of their own (DeepSpeed's BF16_Optimizer). (default:
            false)
        free_gradients: Gradients are freed when the optimizer has read them, and made again layer by
            layer in the first backward of the next step (PyTorch's zero_grad(set_to_none=True), its
            default). (default: false)
        state_bytes: All bytes of a parameter; replaces optimizer_bytes and gradient_bytes. 10: bf16
            weight and two fp32 moments. 12: also a bf16 gradient. 16: also an fp32 weight. 18: the
            gradient is fp32.
        clip_gradients: The norm of all gradients is computed before the optimizer. (default: false)
        post_validation: The optimizer doesn't wait for the norm of all ranks. It steps by the sum over
            its own stage and those before, handed down the pipeline; the whole sum comes back during
            the next step, of which rank r goes ahead with at most 2 (pp - 1 - r) forwards. Two steps
            are simulated (arXiv 2401.10241, section 4). (default: false)
        offload_optimizer: Master weights and moments live on the host. The chip updates, bucket by
            bucket, two at a time: 2 x optimizer_bytes a parameter over the host's link. (default:
            false)
        host_optimizer: The host updates (ZeRO-Offload): reduced gradients go there beside the backward,
            new weights come back. (default: false)
        offload_activations: What a block keeps goes to the host after its forward and comes back before
            its backward, beside compute. At most two blocks are under way. (default: false)
        offload_layers: offload_activations: only the first so many blocks of each chunk.
        copy_checkpoint: The step has an asynchronous checkpoint beside it: weights (16 bits) and
            optimizer state go to the host, each value from one of the ranks that hold it. The optimizer
            waits for the copy. (default: false)
        """
