#!/usr/bin/env bash
# Installs what is missing, builds stepsim, and replays a training step of Llama-3 70B on 512 H100s:
# prints where the time goes, leaves the result, a trace and a report for the browser in out/.
set -euo pipefail
cd "$(dirname "$0")/.."

job=llama3-70b-dgx-h100-512
scripts/install_dependencies.sh

echo "== build (release)"
if [[ ! -f build/release/build.ninja ]]; then
  cmake --preset release -DSTEPSIM_TESTS=OFF >build-configure.log 2>&1 ||
    { cat build-configure.log >&2; exit 1; }
  rm -f build-configure.log
fi
scripts/build.sh --preset release --target stepsim

echo "== run $job"
mkdir -p out
build/release/stepsim run "$job" --json "out/$job.json" --trace "out/$job.trace.json.gz"
report="out/$job.html: open it in a browser"
if ! build/release/stepsim view "out/$job.json" --html "out/$job.html"; then
  report="left out, as Apache ECharts could not be had"
fi
cat <<END

== what next
  result    out/$job.json
  report    $report
  trace     out/$job.trace.json.gz: open it at https://ui.perfetto.dev ("Open trace file")

== three things to try
  faster memory      build/release/stepsim run $job --set cluster.chip.memory_bandwidth=4.8TB/s
  the best plan      build/release/stepsim search --model llama3-8b --cluster dgx-h100-8 --global-batch 64 --sequence 8192
  the network alone  build/release/stepsim collective all-reduce --cluster dgx-h100-64 --sweep 1MiB:64MiB

  more               README.md, docs/first-steps.md, and help: build/release/stepsim
END
