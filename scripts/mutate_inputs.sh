#!/usr/bin/env bash
# Gives the readers of other software's files changed inputs, without sanitizers, in the release build
# (tests/fuzz/mutated_inputs.cc): crashes, hangs over 5 s, more than 1.5 GB and wrong exceptions end it.
#
#   scripts/mutate_inputs.sh [COUNT] [TARGET ...]     1,000,000 of each; the readers of `stepsim import`
set -euo pipefail
cd "$(dirname "$0")/.."
count=${1:-1000000}
shift || true
targets=("$@")
if [ $# -eq 0 ]; then
  targets=(chakra import_job astra kineto goal aicb nccl_topology slurm_topology ns3_topology htsim_topology msccl megatron torchtitan maxtext nemo deepspeed nccl_tests
    hugging_face)
fi
cmake --preset release -DSTEPSIM_TESTS=ON --log-level=WARNING >/dev/null
cmake --build --preset release --target stepsim_mutated_inputs >/dev/null
for target in "${targets[@]}"; do
  build/release/tests/stepsim_mutated_inputs "$target" --count "$count"
done
