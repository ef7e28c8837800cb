#!/usr/bin/env bash
# Installs what is missing, builds everything (release; with sanitizers, the tests of readers, random runs
# and the binary that results are compared with; with ThreadSanitizer, the binary), and runs the whole test
# suite. Ends with ctest's summary.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_dependencies.sh --with-tests

for preset in release sanitize threads; do
  echo "== configure ($preset)"
  python=$([[ $preset == release ]] && echo ON || echo OFF)
  cmake --preset "$preset" -DSTEPSIM_TESTS=ON -DSTEPSIM_PYTHON="$python" --log-level=WARNING
done
echo "== build (parts, with sanitizers)"
cmake --build --preset sanitize
echo "== build (stepsim, with ThreadSanitizer)"
cmake --build --preset threads
echo "== build (release, with tests)"
cmake --build --preset release
echo "== test"
ctest --preset release --parallel "$(nproc)"
