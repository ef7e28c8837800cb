#!/usr/bin/env bash
# Packs the Python package as a wheel: out/stepsim-VERSION-cp311-cp311-linux_x86_64.whl. The catalog is in it,
# and so are the shared libraries that it needs. Installs what is missing, builds what is not built.
#
#   scripts/make_wheel.sh [FOLDER]           FOLDER: instead of out/
#   BUILD=build/other scripts/make_wheel.sh
#   pip install --no-index out/stepsim-*.whl
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build/release}
out=$(realpath --canonicalize-missing "${1:-out}")
scripts/install_dependencies.sh --with-packages
echo "== build (Python module)"
if [[ ! -f $build/build.ninja ]] || ! grep --quiet 'STEPSIM_PYTHON:BOOL=ON' "$build/CMakeCache.txt"; then
  without_tests=()  # which need more packages; a build that has them keeps them
  [[ -f $build/CMakeCache.txt ]] || without_tests=(-DSTEPSIM_TESTS=OFF)
  cmake --preset release -B "$build" -DSTEPSIM_PYTHON=ON "${without_tests[@]}" --log-level=WARNING
fi
scripts/build.sh "$build" --target stepsim_python stepsim_python_portable stepsim_python_files
python=$(sed -n 's/^Python3_EXECUTABLE:[A-Z]*=//p' "$build/CMakeCache.txt")

stage=$(mktemp --directory)
trap 'rm -rf "$stage"' EXIT
cp -r "$build/python/stepsim" bindings/setup.py LICENSE "$stage/"
# Of libraries that are headers, code is in the module too.
for headers in nlohmann-json3-dev libtomlplusplus-dev libboost-graph-dev pybind11-dev; do
  licence="/usr/share/doc/$headers/copyright"
  if [[ -f "$licence" ]]; then cp "$licence" "$stage/LICENSE.$headers"; fi
done
cp docs/python.md "$stage/README.md"
cp "$build"/portable/python/_core.*.so "$stage/stepsim/"
rm -rf "$stage/stepsim/__pycache__"
scripts/bundle_libraries.sh "$stage"/stepsim/_core.*.so "$stage/stepsim/lib"
strip --strip-unneeded "$stage"/stepsim/_core.*.so
mkdir -p "$out"
rm -f "$out"/stepsim-*.whl
version=$(sed -n 's/^project(stepsim VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
(cd "$stage" && STEPSIM_VERSION=$version SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-1700000000} \
  "${python:-/usr/bin/python3}" -W ignore setup.py --quiet bdist_wheel --dist-dir "$out")
ls "$out"/stepsim-*.whl
