#!/usr/bin/env bash
# Checks the laws of collectives (docs/collectives.md, "Laws") over clusters of the catalog, operations,
# sizes and members, and prints every one that is broken, then their number:
#
#   scripts/check_laws.sh [CLUSTER...]      default: a cluster of each kind
set -euo pipefail
cd "$(dirname "$0")/.."
cmake --preset release -DSTEPSIM_TESTS=ON --log-level=WARNING >/dev/null
cmake --build --preset release --target stepsim_laws >/dev/null
find build/release -name stepsim_laws -type f -exec {} "$@" \;
