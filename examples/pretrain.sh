#!/usr/bin/env bash
# Llama-3 8B on one node of eight GPUs, as one would start Megatron-LM.
torchrun --nproc_per_node 8 pretrain_gpt.py \
  --tensor-model-parallel-size 2 --context-parallel-size 1 --pipeline-model-parallel-size 1 \
  --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 \
  --group-query-attention --num-query-groups 8 --swiglu --untie-embeddings-and-output-weights \
  --normalization RMSNorm --disable-bias-linear --position-embedding-type rope --vocab-size 128256 \
  --seq-length 8192 --max-position-embeddings 8192 --micro-batch-size 1 --global-batch-size 64 \
  --use-flash-attn --sequence-parallel --use-distributed-optimizer --overlap-grad-reduce --bf16
