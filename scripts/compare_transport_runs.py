#!/usr/bin/env python3
"""Runs the reference runs of other simulators and says how near stepsim comes, by protocol.

  compare_transport_runs.py PATH-TO-STEPSIM FOLDER-OR-FILE.. [--each] [--jobs N]

A run is a packet case (docs/network-cases.md) with `golden` finishes of its flows. Compared are the
mean and the last completion (finish - start), at the receivers where the run has them, otherwise at
the senders. --each prints every run.
"""
import argparse
import concurrent.futures
import gzip
import json
import pathlib
import statistics
import subprocess
import sys
import time


def read(path):
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)


def times(values):
    return statistics.fmean(values), max(values)


def compare(program, path):
    case = read(path)
    starts = {flow["id"]: flow.get("start_ps", 0) * 1e-12 or flow.get("start_s", 0)
              for flow in case["flows"]}
    golden = {run["flow"]: run for run in case["golden"]}
    at_receiver = any("receiver_finish_s" in run for run in golden.values())
    key = "receiver_finish_s" if at_receiver else "sender_finish_s"
    wanted = [run[key] - starts[flow] for flow, run in golden.items() if key in run]
    begin = time.monotonic()
    result = subprocess.run([program, "network", str(path), "--yes", "--json", "-"],
                            capture_output=True, text=True)
    wall = time.monotonic() - begin
    row = {"name": case["name"], "protocol": case["transport"]["protocol"],
           "simulator": case["transport"]["simulator"].split()[0], "wall_s": wall}
    if result.returncode != 0:
        return {**row, "problem": (result.stderr.strip().splitlines() or ["?"])[-1]}
    answer = json.loads(result.stdout)
    found = [flow["finish_s" if at_receiver else "acked_s"] for flow in answer["flows"]]
    if None in found:
        return {**row, "problem": f"{found.count(None)} flows were never acknowledged"}
    found = [at - starts[flow["id"]] for at, flow in zip(found, answer["flows"])]
    if not wanted:
        return {**row, "problem": "the run has no finishes to compare with"}
    mean, last = times(found)
    wanted_mean, wanted_last = times(wanted)
    return {**row, "mean": mean / wanted_mean - 1, "last": last / wanted_last - 1,
            "mean_us": wanted_mean * 1e6, "last_us": wanted_last * 1e6,
            "hops": answer["simulator"]["packet_hops"], "cpu_s": answer["simulator"]["cpu_s"]}


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def summary(rows):
    both = {key: [abs(row[key]) for row in rows] for key in ("mean", "last")}
    return "  ".join(f"{key} {statistics.median(errors) * 100:6.2f} "
                     f"{percentile(errors, .9) * 100:6.2f}"
                     for key, errors in both.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("runs", nargs="+", type=pathlib.Path)
    parser.add_argument("--each", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    paths = [path for given in options.runs
             for path in (sorted(given.glob("*.json*")) if given.is_dir() else [given])]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(lambda path: compare(options.program, path), paths))
    good = [row for row in rows if "problem" not in row]
    if options.each:
        for row in good:
            print(f"{row['name']:55} mean {row['mean_us']:9.2f} us {row['mean'] * 100:7.2f} %   "
                  f"last {row['last_us']:9.2f} us {row['last'] * 100:7.2f} %")
    for row in rows:
        if "problem" in row:
            print(f"{row['name']}: {row['problem']}")
    print(f"\n{'absolute errors in %, median and 90th percentile':40}")
    for protocol in sorted({(row["simulator"], row["protocol"]) for row in good}):
        own = [row for row in good if (row["simulator"], row["protocol"]) == protocol]
        print(f"{' '.join(protocol):32} {len(own):4} runs  {summary(own)}")
    if good:
        print(f"{'all':32} {len(good):4} runs  {summary(good)}")
        hops, seconds = sum(row["hops"] for row in good), sum(row["cpu_s"] for row in good)
        print(f"{hops / seconds / 1e6:.2f} M packet-hops a CPU second")
    return 0 if len(good) == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
