#!/usr/bin/env bash
# Installs what is missing, builds everything (release; with sanitizers, the tests of readers, random runs
# and the binary that results are compared with; with ThreadSanitizer, the binary), and runs the whole test
# suite. Ends with ctest's summary.
#
#   scripts/test.sh           all
#   scripts/test.sh --quick   for a developer's loop: the release build and the tests labelled `unit` and
#                             `program`. Leaves out `docs` (pages show what the program gives now),
#                             `packages` and `sanitized`.
set -euo pipefail
cd "$(dirname "$0")/.."

presets=(release sanitize threads)
tests=()
case "${1:-}" in
  --quick)
    presets=(release)
    tests=(--label-regex '^(unit|program)$')
    ;;
  "") ;;
  *)
    echo "usage: $0 [--quick]" >&2
    exit 2
    ;;
esac

scripts/install_dependencies.sh --with-tests

for preset in "${presets[@]}"; do
  echo "== configure ($preset)"
  python=$([[ $preset == release ]] && echo ON || echo OFF)
  cmake --preset "$preset" -DSTEPSIM_TESTS=ON -DSTEPSIM_PYTHON="$python" --log-level=WARNING
done
if [[ ${#presets[@]} -gt 1 ]]; then
  echo "== build (parts, with sanitizers)"
  scripts/build.sh --preset sanitize
  echo "== build (stepsim, with ThreadSanitizer)"
  scripts/build.sh --preset threads
fi
echo "== build (release, with tests)"
scripts/build.sh --preset release
echo "== test"
if [[ ${#tests[@]} -gt 0 ]]; then
  echo "left out: the tests labelled docs, packages and sanitized, which scripts/test.sh runs"
fi
ctest --preset release --parallel "$(nproc)" "${tests[@]}"
