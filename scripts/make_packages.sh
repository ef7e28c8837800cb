#!/usr/bin/env bash
# Leaves packages in out/: those of Debian (stepsim, stepsim-mpi, stepsim-dev, python3-stepsim), and a folder as a tarball
# that runs wherever it is unpacked, beside the C and C++ runtime alone. Installs what is missing, builds what is not built.
#
#   scripts/make_packages.sh [FOLDER]        FOLDER: instead of out/
#   apt install ./out/stepsim_*.deb
#   tar xf out/stepsim-*.tar.gz && stepsim-*/bin/stepsim run llama3-8b-dgx-h100-8
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build/release}
out=$(realpath --canonicalize-missing "${1:-out}")
scripts/install_dependencies.sh --with-packages
echo "== build (program, library, Python module)"
if [[ ! -f $build/build.ninja ]] || ! grep --quiet 'STEPSIM_PYTHON:BOOL=ON' "$build/CMakeCache.txt"; then
  without_tests=()  # which need more packages; a build that has them keeps them
  [[ -f $build/CMakeCache.txt ]] || without_tests=(-DSTEPSIM_TESTS=OFF)
  cmake --preset release -B "$build" -DSTEPSIM_PYTHON=ON "${without_tests[@]}" --log-level=WARNING
fi
targets=(stepsim stepsim_portable stepsim_manual stepsim_library stepsim_python stepsim_python_files)
if grep --quiet '^build stepsim_mpi:' "$build/build.ninja"; then targets+=(stepsim_mpi); fi
scripts/build.sh "$build" --target "${targets[@]}"
mkdir -p "$out"
stage=$(mktemp --directory)
trap 'rm -rf "$stage"' EXIT
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-1700000000}

rm -f "$out"/*.deb "$out"/stepsim-*.tar.gz
(cd "$build" && cpack -G DEB -B "$stage/debs" >"$stage/log" 2>&1) || { cat "$stage/log" >&2; exit 1; }
cp "$stage"/debs/*.deb "$out/"

version=$(sed -n 's/^project(stepsim VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
name=stepsim-$version-linux-$(uname -m)
cmake --install "$build" --component program --prefix "$stage/$name" --strip >/dev/null
install --strip "$build/portable/bin/stepsim" "$stage/$name/bin/stepsim"
scripts/bundle_libraries.sh "$stage/$name/bin/stepsim" "$stage/$name/lib/stepsim"
tar --create --gzip --file "$out/$name.tar.gz" --directory "$stage" --sort=name --owner=0 --group=0 \
  --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" "$name"
ls "$out"/*.deb "$out/$name.tar.gz"
