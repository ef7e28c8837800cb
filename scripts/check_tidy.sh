#!/usr/bin/env bash
# Runs clang-tidy (.clang-tidy: bugs and surprises, sizes of functions, names) over the sources of
# the program. Tests and benches are left out.
#
#   scripts/check_tidy.sh              all rooms: 20 CPU minutes
#   scripts/check_tidy.sh cli traces   these rooms
#
# It is a check beside scripts/test.sh: run it over the rooms that a change touches. It reads the
# sources as the unity build joins them, so that a header is read once for several of them. Exit
# status 1 when clang-tidy finds something.
set -euo pipefail
cd "$(dirname "$0")/.."

tidy=$(command -v clang-tidy-14 || command -v clang-tidy) || {
  echo "check_tidy: clang-tidy is not installed (apt-get install clang-tidy-14)" >&2
  exit 2
}
rooms=("$@")
if [ $# -eq 0 ]; then
  rooms=(sim topology workload schedules experiment proto analysis traces cli)
fi

# Clang can't read GCC's precompiled headers. Generated headers must exist.
build=build/tidy
cmake --preset debug -B "$build" -DSTEPSIM_TESTS=OFF -DSTEPSIM_PRECOMPILE=OFF --log-level=WARNING >/dev/null
cmake --build "$build" --target proto/generated/proto/chip.pb.h >/dev/null

units=()
for room in "${rooms[@]}"; do
  mapfile -t found < <(find "$build/$room" -name 'unity_*.cxx' | sort)
  if [ ${#found[@]} -eq 0 ]; then
    echo "check_tidy: no room $room" >&2
    exit 2
  fi
  units+=("${found[@]}")
done
# Sources that the unity build leaves alone.
for room in "${rooms[@]}"; do
  if [ "$room" = proto ]; then units+=(proto/experiment_record.cc proto/load_experiment.cc); fi
done

echo "check_tidy: ${#units[@]} units"
printf '%s\n' "${units[@]}" | xargs -n 1 -P "$(nproc)" "$tidy" -p "$build" --quiet \
  --header-filter="$PWD/(sim|topology|workload|schedules|experiment|proto|analysis|traces|cli)/.*" \
  2>/dev/null || exit 1
echo "check_tidy: nothing found"
