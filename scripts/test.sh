#!/usr/bin/env bash
# Installs what is missing, builds everything (release, and the debug binary that results are
# compared with), and runs the whole test suite. Ends with ctest's summary.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_dependencies.sh --with-tests

for preset in release debug; do
  echo "== configure ($preset)"
  cmake --preset "$preset" -DSTEPSIM_TESTS=ON --log-level=WARNING
done
echo "== build (debug binary)"
cmake --build --preset debug --target stepsim
echo "== build (release, with tests)"
cmake --build --preset release
echo "== test"
ctest --preset release --parallel "$(nproc)"
