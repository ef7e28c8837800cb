PYTORCH_CUDA_ALLOC_CONF='expandable_segments:True' \
NPROC_PER_NODE=8 \
megatron sft \
    --model Qwen/Qwen3-30B-A3B-Instruct-2507 \
    --dataset 'own/data#2000' \
    --tuner_type lora \
    --lora_rank 16 \
    --target_modules all-linear \
    --expert_model_parallel_size 4 \
    --pipeline_model_parallel_size 2 \
    --moe_shared_expert_overlap true \
    --micro_batch_size 2 \
    --global_batch_size 16 \
    --recompute_granularity full \
    --recompute_method uniform \
    --recompute_num_layers 1 \
    --max_length 2048 \
    --packing true \
    --attention_backend flash
