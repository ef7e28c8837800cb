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
                 order: Optional[str] = ...,
                 map: Optional[str] = ...,
                 allow_idle_chips: Optional[bool] = ...,
                 chips_per_domain: Optional[int] = ...,
                 global_batch: Optional[int] = ...,
                 sequence: Optional[int] = ...,
                 vision_tokens: Optional[int] = ...,
                 picture_tokens: Optional[int] = ...,
                 document_length: Optional[int] = ...,
                 microbatch: Optional[int] = ...,
                 sequence_parallel: Optional[bool] = ...,
                 tensor_width: Optional[int] = ...,
                 cp_mode: Optional[Literal["ring", "zigzag_ring", "all_gather", "ulysses"]] = ...,
                 schedule: Optional[Union[str, Sequence[Sequence[str]]]] = ...,
                 chunks: Optional[int] = ...,
                 layout: Optional[str] = ...,
                 microbatch_group: Optional[int] = ...,
                 memory_limit: Optional[int] = ...,
                 overlap_pipeline: Optional[bool] = ...,
                 dispatch: Optional[Literal["all_to_all", "two_level", "auto"]] = ...,
                 expert_node: Optional[int] = ...,
                 node_limit: Optional[int] = ...,
                 overlap_expert_parallel: Optional[bool] = ...,
                 zero: Optional[int] = ...,
                 shard: Optional[int] = ...,
                 overlap_gradients: Optional[bool] = ...,
                 overlap_parameters: Optional[bool] = ...,
                 prefetch: Optional[int] = ...,
                 reshard_after_forward: Optional[bool] = ...,
                 recompute: Optional[Literal["none", "selective", "matmuls", "alternate", "alternate_matmuls", "all_but", "full"]] = ...,
                 recompute_modules: Optional[str] = ...,
                 recompute_keep: Optional[str] = ...,
                 recompute_block: Optional[int] = ...,
                 recompute_layers: Optional[int] = ...,
                 dtype: Optional[Literal["fp32", "bf16", "fp16", "fp8", "int8", "mxfp8", "mxfp4", "nvfp4", "int4", "fp8_block"]] = ...,
                 weight_dtype: Optional[Literal["fp32", "bf16", "fp16", "fp8", "int8", "mxfp8", "mxfp4", "nvfp4", "int4", "fp8_block"]] = ...,
                 activation_dtype: Optional[Literal["fp32", "bf16", "fp16", "fp8", "int8", "mxfp8", "mxfp4", "nvfp4", "int4", "fp8_block"]] = ...,
                 communication_dtype: Optional[Literal["fp32", "bf16", "fp16", "fp8", "int8", "mxfp8", "mxfp4", "nvfp4", "int4", "fp8_block"]] = ...,
                 dispatch_dtype: Optional[Literal["fp32", "bf16", "fp16", "fp8", "int8", "mxfp8", "mxfp4", "nvfp4", "int4", "fp8_block"]] = ...,
                 combine_dtype: Optional[Literal["fp32", "bf16", "fp16", "fp8", "int8", "mxfp8", "mxfp4", "nvfp4", "int4", "fp8_block"]] = ...,
                 optimizer: Optional[Literal["adam", "none", "muon"]] = ...,
                 vision: Optional[Literal["all", "projector", "none"]] = ...,
                 lora_rank: Optional[int] = ...,
                 lora_modules: Optional[str] = ...,
                 frozen_dtype: Optional[Literal["fp32", "bf16", "fp16", "fp8", "int8", "mxfp8", "mxfp4", "nvfp4", "int4", "fp8_block"]] = ...,
                 offload_optimizer: Optional[bool] = ...,
                 offload_activations: Optional[bool] = ...,
                 offload_layers: Optional[int] = ...,
                 copy_checkpoint: Optional[bool] = ...) -> None:
        """A plan: `Plan(tp=8, pp=4, dp=16, microbatch=1, global_batch=1024, sequence=8192)`.

        `catalog` is a plan of the catalog; the keys differ from it. `stepsim help plan` says more about each.

        tp: Tensor parallelism: ranks that divide every matmul of a layer. (default: 1)
        cp: Context parallelism: ranks that divide the tokens of each sequence. (default: 1)
        dp: Data parallelism: replicas that each take a part of the global batch. (default: 1)
        pp: Pipeline parallelism: ranks that each hold a part of the layers. (default: 1)
        ep: Expert parallelism: ranks that divide the routed experts of a layer. (default: 1)
        etp: Expert tensor parallelism: ranks that divide each routed expert. (default: 1)
        order: How ranks are numbered, innermost axis first: neighbours along the first axis sit next to
            each other. (default: tp-cp-dp-pp)
        map: Which axes lie over which levels of the cluster, innermost level first: tp:x/dp:y+z.
        allow_idle_chips: Lets a plan use fewer ranks than the cluster has chips. (default: false)
        chips_per_domain: Chips of each NVLink domain (a node or a rack, the innermost level) that have
            ranks. The others idle.
        global_batch: Sequences of a step. (default: 0)
        sequence: Tokens of a sequence. (default: 0)
        vision_tokens: Tokens of a sequence, or of a new prompt, that a model's vision part makes of
            pictures. 0: text alone, and the vision part is not there. (default: 0)
        picture_tokens: Tokens of one picture: its patches attend to each other. 0: a sequence has one
            picture. (default: 0)
        document_length: Tokens of the documents that each sequence is packed of: attention stays within
            a document. 0: a sequence is one document. (default: 0)
        microbatch: Sequences of a micro-batch, which goes through the layers at once. (default: 1)
        sequence_parallel: With tp above 1: norms, dropout and residual additions are divided along the
            tokens. (default: true)
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
        zero: What the replicas divide between them; each level includes the one before. (default: 0)
        shard: Hybrid sharding: this many neighbouring replicas divide the state, and all such groups
            are alike.
        overlap_gradients: Full buckets are reduced while the last backward goes on. FSDP reduces each
            layer after its backward; with false, the backward before waits for that. (default: true)
        overlap_parameters: Updated parameters are gathered beside the next step's forward. Two steps
            are simulated. (default: false)
        prefetch: FSDP: layers that are gathered ahead of the one that computes. (default: 1)
        reshard_after_forward: FSDP: gathered parameters are dropped after each pass and gathered again.
            (default: true)
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
        optimizer: adam; muon: of matrices, whose updates Newton-Schulz steps make orthogonal and which
            have one moment, and adam of tables, norms and biases; or none: forward and backward only,
            without optimizer state, as the closed forms count a step. (default: adam)
        vision: What of a model's vision part is trained: all, projector (its encoder is frozen) or
            none. (default: all)
        lora_rank: Rank of the low-rank adapters (LoRA) beside each projection of a block, which are all
            that is trained: the model is frozen.
        lora_modules: Projections that have adapters, joined by +: qkv (all in front of attention or of
            a state), out (their last), mlp (of dense MLPs and shared experts). (default: qkv+out+mlp)
        frozen_dtype: Type in which the frozen matrices of a block are held and gathered. A kernel makes
            them wide before each matmul (QLoRA, arXiv 2305.14314; its scales, 0.127 bits a value, count
            for int4).
        offload_optimizer: Master weights and moments live on the host. The chip updates, bucket by
            bucket, two at a time: 2 x optimizer_bytes a parameter over the host's link. (default:
            false)
        offload_activations: What a block keeps goes to the host after its forward and comes back before
            its backward, beside compute. At most two blocks are under way. (default: false)
        offload_layers: offload_activations: only the first so many blocks of each chunk.
        copy_checkpoint: The step has an asynchronous checkpoint beside it: weights (16 bits) and
            optimizer state go to the host, each value from one of the ranks that hold it. The optimizer
            waits for the copy. (default: false)
        """
