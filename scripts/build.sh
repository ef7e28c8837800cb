#!/usr/bin/env bash
# `cmake --build ARGUMENTS...`, with a line every few seconds that says how many of its commands have ended;
# on a terminal the line is the build's own, and updates. What compilers say is shown if the build fails.
set -euo pipefail
export NINJA_STATUS='built %f of %t, %e s: '
if [[ -t 1 ]]; then
  exec cmake --build "$@"
fi

log=$(mktemp)
{
  said="starting"
  while sleep 5; do
    now=$(grep --only-matching '^built [0-9]* of [0-9]*' "$log" | tail -1) && said=$now
    echo "   $said, $SECONDS s"
  done
} &
lines=$!
trap 'kill "$lines"; rm -f "$log"' EXIT
cmake --build "$@" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
echo "   built, $SECONDS s"
