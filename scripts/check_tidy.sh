#!/usr/bin/env bash
# Runs clang-tidy (.clang-tidy: bugs and surprises, sizes of functions, names) over the sources.
#
#   scripts/check_tidy.sh                    all .cc files
#   scripts/check_tidy.sh --since main       those that differ from a commit
#   scripts/check_tidy.sh FILE.cc ...        these
#
# A file takes about ten seconds, so this is a check beside scripts/test.sh: run it with --since
# before a change lands. Exit status 1 when clang-tidy finds something.
set -euo pipefail
cd "$(dirname "$0")/.."

tidy=$(command -v clang-tidy-14 || command -v clang-tidy) || {
  echo "check_tidy: clang-tidy is not installed (apt-get install clang-tidy-14)" >&2
  exit 2
}

# Commands of single files, not of the unity build; generated headers must exist.
build=build/tidy
cmake --preset release -B "$build" -DCMAKE_UNITY_BUILD=OFF -DSTEPSIM_TESTS=ON --log-level=WARNING \
  > /dev/null
cmake --build "$build" --target proto/generated/proto/chip.pb.h > /dev/null

case "${1:-}" in
  --since) files=$(git diff --name-only --diff-filter=d "${2:?--since needs a commit}" -- '*.cc') ;;
  "") files=$(git ls-files '*.cc') ;;
  *) files=$(printf '%s\n' "$@") ;;
esac
if [ -z "$files" ]; then
  echo "check_tidy: no .cc file differs"
  exit 0
fi
printf '%s\n' "$files" | xargs -n 1 -P "$(nproc)" "$tidy" -p "$build" --quiet --warnings-as-errors='*'
echo "check_tidy: $(printf '%s\n' "$files" | wc -l) files, nothing found"
