#!/usr/bin/env bash
# Installs the Debian 12 packages that stepsim is built with, if some are missing; also those that it
# is tested with (--with-tests), or that its own packages are made with (--with-packages).
# Needs root, or sudo, only then.
set -euo pipefail

packages=(
  g++ cmake ninja-build ccache git ca-certificates
  libboost-graph-dev libboost-program-options-dev
  libprotobuf-dev protobuf-compiler
  libfmt-dev nlohmann-json3-dev zlib1g-dev libnlopt-cxx-dev libsqlite3-dev libsimdjson-dev
)
# The Python package, a wheel of it, and packages of Debian.
packing=(python3 python3-dev pybind11-dev python3-setuptools python3-wheel python3-venv dpkg-dev
  libopenmpi-dev)
case "${1:-}" in
  --with-tests)
    packages+=(libgtest-dev librapidcheck-dev libbenchmark-dev openmpi-bin clang clang-format
      libclang-rt-dev locales "${packing[@]}")
    ;;
  --with-packages) packages+=("${packing[@]}") ;;
  "") ;;
  *)
    echo "usage: $0 [--with-tests | --with-packages]" >&2
    exit 2
    ;;
esac

missing=()
for package in "${packages[@]}"; do
  if ! dpkg-query --show --showformat='${Status}' "$package" 2>/dev/null | grep -q 'ok installed'; then
    missing+=("$package")
  fi
done
if [[ ${#missing[@]} -eq 0 ]]; then
  echo "== dependencies: all ${#packages[@]} packages are there"
  exit 0
fi

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "$0: missing: ${missing[*]}" >&2
    echo "$0: run it as root, or install sudo" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "== dependencies: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update --quiet=2
"${as_root[@]}" apt-get install --yes --quiet=2 --no-install-recommends "${missing[@]}" >/dev/null
