#!/usr/bin/env bash
# What a clean build of the program costs, beside the figure in bench/build_cost.txt: says no (exit status 1)
# if it is more than a tenth above it. The unit is the CPU time of compiling a small fixed file, so that
# machines compare; run it on a quiet machine. Takes minutes.
#
#   scripts/check_build_cost.sh            compares
#   scripts/check_build_cost.sh --write    writes the figure of today
#
# A change that makes the program dearer to build makes room first: fewer instantiations (what many sources
# make of large structs and containers), fewer headers, less code.
set -euo pipefail
cd "$(dirname "$0")/.."
figure=bench/build_cost.txt
[[ $# -eq 0 || "$*" == --write ]] || { echo "usage: $0 [--write]" >&2; exit 2; }

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
export CCACHE_DISABLE=1
cat >"$folder/unit.cc" <<'END'
#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>
int main(int count, char** words) {
  std::map<std::string, std::vector<int>> places;
  for (int i = 0; i < count; ++i) places[words[i]].push_back(i);
  std::vector<std::string> names;
  for (auto& [name, at] : places) {
    std::sort(at.begin(), at.end());
    names.push_back(name);
  }
  return static_cast<int>(names.size());
}
END

# CPU seconds (user) of a command.
cpu_seconds() {
  local TIMEFORMAT=%U
  { time "$@" >"$folder/log" 2>&1; } 2>&1 || { cat "$folder/log" >&2; exit 1; }
}
for _ in 1 2 3 4 5; do
  cpu_seconds g++ -std=c++20 -O3 -c "$folder/unit.cc" -o "$folder/unit.o"
done | sort -n >"$folder/units"
unit="$(sed -n 3p "$folder/units")"
cmake --preset release -B "$folder/build" -DSTEPSIM_TESTS=OFF --log-level=WARNING >/dev/null
build="$(cpu_seconds cmake --build "$folder/build" --target stepsim)"
now="$(awk -v build="$build" -v unit="$unit" 'BEGIN {printf "%.0f", build / unit}')"
echo "a clean build of stepsim: $now units ($build CPU s, a unit of $unit CPU s)"
if [[ "${1:-}" == --write ]]; then
  echo "$now" >"$figure"
  exit 0
fi
known="$(<"$figure")"
echo "the figure in $figure: $known units"
if ((now * 10 > known * 11)); then
  echo "$0: dearer than it was: make room, or say in the commit why, and --write it" >&2
  exit 1
fi
