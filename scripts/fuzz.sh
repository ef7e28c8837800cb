#!/usr/bin/env bash
# Fuzzes the readers of what strangers write (tests/fuzz/fuzz_targets.cc), with libFuzzer, AddressSanitizer and
# UndefinedBehaviorSanitizer. Needs Debian's clang.
#
#   scripts/fuzz.sh [SECONDS] [TARGET ...]     60 seconds for each target; all of them
#
# The target random_run makes experiments of the bytes and runs them (tests/fuzz/random). Without
# targets, 200 more come from seeds that start at the time of day: --from the seed that is printed
# makes them again. tests/fuzz/README.md keeps the counts.
#
# New inputs are kept in build/fuzz/corpus, so the next run goes on from there. An input that breaks a
# reader is written to build/fuzz/crashes: mend the reader, then put the input into tests/fuzz/corpus. The
# last line says how many inputs were tried.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-60}
shift || true
cmake --preset fuzz --log-level=WARNING >/dev/null
cmake --build --preset fuzz
fuzzer=build/fuzz/tests/stepsim_fuzz
mkdir -p build/fuzz/crashes

targets=("$@")
if [ $# -eq 0 ]; then mapfile -t targets < <(cd tests/fuzz/corpus && ls); fi

total=0
for target in "${targets[@]}"; do
  mkdir -p "build/fuzz/corpus/$target"
  # What the program declares, and what stands in a file.
  words=build/fuzz/$target.words
  build/fuzz/tests/stepsim_mutated_inputs "$target" --dictionary >"$words"
  if [ -f "tests/fuzz/dictionaries/$target" ]; then cat "tests/fuzz/dictionaries/$target" >>"$words"; fi
  dictionary=()
  if [ -s "$words" ]; then dictionary=("-dict=$words"); fi
  log=build/fuzz/$target.log
  if ! STEPSIM_FUZZ_TARGET=$target "$fuzzer" -max_total_time="$seconds" -max_len=4096 -timeout=10 \
    -rss_limit_mb=2048 -close_fd_mask=1 -print_final_stats=1 "${dictionary[@]}" \
    -artifact_prefix="build/fuzz/crashes/$target-" "build/fuzz/corpus/$target" \
    "tests/fuzz/corpus/$target" >"$log" 2>&1; then
    echo "$target: broken, see $log"
    tail -n 30 "$log"
    exit 1
  fi
  tried=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  total=$((total + tried))
  echo "$target: $tried inputs, nothing broke"
done
echo "$total inputs"
if [ $# -eq 0 ]; then
  build/fuzz/tests/stepsim_random_runs --from "$(date +%s)" --count 200 --laws --require 60 --summary
fi
