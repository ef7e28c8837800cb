#!/usr/bin/env bash
# Installs the Debian 12 packages that stepsim is built with, if some are missing; also those that it
# is tested with (--with-tests), or that its own packages are made with (--with-packages).
# Needs root, or sudo, only then. Then fetches Apache ECharts with npm into a folder of the user,
# where every checkout finds it. Without it everything but --html works.
set -euo pipefail
folder="$(cd "$(dirname "$0")/.." && pwd)"

packages=(
  g++ cmake ninja-build ccache git ca-certificates
  libboost-graph-dev libboost-program-options-dev
  libprotobuf-dev protobuf-compiler
  libfmt-dev nlohmann-json3-dev zlib1g-dev libnlopt-cxx-dev libsqlite3-dev libsimdjson-dev
  libyaml-cpp-dev libtomlplusplus-dev libpugixml-dev
)
# The Python package, a wheel of it, and packages of Debian.
packing=(python3 python3-dev pybind11-dev python3-setuptools python3-wheel python3-venv dpkg-dev file
  libopenmpi-dev)
case "${1:-}" in
  --with-tests)
    packages+=(libgtest-dev librapidcheck-dev libbenchmark-dev openmpi-bin clang clang-format
      libclang-rt-dev locales zsh chromium "${packing[@]}"
      python3-distributed python3-pandas python3-nbclient python3-ipykernel mkdocs mkdocs-material graphviz)
    ;;
  --with-packages) packages+=("${packing[@]}") ;;
  "") ;;
  *)
    echo "usage: $0 [--with-tests | --with-packages]" >&2
    exit 2
    ;;
esac

command -v npm >/dev/null || packages+=(npm)

install_charts() {
  local place="${XDG_DATA_HOME:-$HOME/.local/share}/stepsim"
  if cmp --quiet "$folder/pages/package-lock.json" "$place/package-lock.json" &&
    [[ -f "$place/node_modules/echarts/dist/echarts.min.js" ]]; then
    echo "== charts: Apache ECharts is there"
    return
  fi
  echo "== charts: fetching Apache ECharts with npm"
  mkdir -p "$place"
  cp "$folder/pages/package.json" "$folder/pages/package-lock.json" "$place/"
  if ! npm ci --prefix "$place" --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null; then
    rm -f "$place/package-lock.json"
    echo "$0: npm could not fetch Apache ECharts: stepsim will be built without --html" >&2
  fi
}

missing=()
for package in "${packages[@]}"; do
  if ! dpkg-query --show --showformat='${Status}' "$package" 2>/dev/null | grep -q 'ok installed'; then
    missing+=("$package")
  fi
done
if [[ ${#missing[@]} -eq 0 ]]; then
  echo "== dependencies: all ${#packages[@]} packages are there"
  install_charts
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
install_charts
