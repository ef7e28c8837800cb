#!/usr/bin/env bash
# Makes memory and the system fail at every n-th call of each command (tests/faults/faults_test.py), and
# kills a run 200 times. The normal tests try a sample.
#
#   scripts/inject_faults.sh [faults_test.py options]     e.g. --commands run,network --every 10
set -euo pipefail
cd "$(dirname "$0")/.."

cmake --preset release --log-level=WARNING >/dev/null
cmake --build --preset release --target stepsim stepsim_fault_injection
python3 -B tests/faults/faults_test.py build/release/stepsim \
  build/release/tests/libstepsim_fault_injection.so "$@"
STEPSIM_KILLS=200 python3 -B tests/end_to_end/outputs_test.py build/release/stepsim \
  InterruptTest.test_killed_at_any_instant_files_are_whole_or_older
