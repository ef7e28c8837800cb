#!/bin/bash
# A dense model of 8 layers on two nodes.
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
NUM_NODES=${NNODES:-2}
WORLD_SIZE=$(($GPUS_PER_NODE*$NUM_NODES))
DTYPE="fp8"
MODEL_ARGS=(
    --num-layers 8 --hidden-size 2048 --ffn-hidden-size 5632
    --num-attention-heads 16 --group-query-attention --num-query-groups 4
    --seq-length 4096 --max-position-embeddings 4096
    --position-embedding-type rope --swiglu --normalization RMSNorm
    --untie-embeddings-and-output-weights --disable-bias-linear
    --attention-dropout 0.0 --hidden-dropout 0.0  # none
    --vocab-size 32000 --tokenizer-type NullTokenizer
)
TRAIN_ARGS="--micro-batch-size 1 --global-batch-size 64 --lr 1e-4 --bf16 \
    --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather"
if [[ "$DTYPE" == "fp8" ]]; then
    TRAIN_ARGS="$TRAIN_ARGS --fp8-format hybrid --fp8-recipe blockwise"
elif [ -z "${OTHER}" ]; then
    TRAIN_ARGS="$TRAIN_ARGS --fp8-format e4m3"
else
    TRAIN_ARGS="$TRAIN_ARGS --fp16"
fi
torchrun --nproc_per_node $GPUS_PER_NODE --nnodes ${NUM_NODES} pretrain_gpt.py \
    ${MODEL_ARGS[@]} $TRAIN_ARGS --save "$1" \
    --tensor-model-parallel-size 2 --sequence-parallel \
    --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 2 \
    --recompute-granularity selective --recompute-modules core_attn layernorm
