#!/usr/bin/env python3
"""Fits the timings of catalog/libraries/*.textproto to nccl-tests tables and prints them.

    scripts/fit_communication_library.py tests/reference/measured/collectives.csv

The form is that of sim/collectives/library.h. Which protocol a row ran with is not in the tables: it
is what NCCL's own tuning model expects to be fastest, as in sim/collectives/library_choice.cc. For each
generation of chips, path and protocol, the constants minimise the sum of absolute relative errors over
all operations and rank counts (iteratively reweighted least squares, constants kept from becoming
negative). Nothing is fitted by row. NVLink hops are fitted as a whole; what the catalog's links take
themselves (LINK_LATENCY a hop) is subtracted.
"""
import csv
import math
import statistics
import sys
from collections import defaultdict

GENERATION = {
    "NVIDIA A100-SXM4-80GB": "ampere",
    "NVIDIA H100 80GB HBM3": "hopper",
    "NVIDIA H200": "hopper",
    "NVIDIA B200": "blackwell",
    "NVIDIA GB200": "blackwell",
}
OPS = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "alltoall": 1}  # passes over the group
LINK = {"ampere": 300.0, "hopper": 450.0, "blackwell": 900.0}  # GB/s one way a GPU
FLAGS_LEAVE = 120 / 128  # of a link: LL128 sends 8 bytes of flags with 120 of data
LINK_LATENCY = 0.5  # us a hop, GPU to NVSwitch to GPU, in catalog/clusters
# NVIDIA/nccl@5067397c26, src/graph/tuning.cc: the same numbers as in the catalog's files.
SEARCHED = {"ampere": 240.0, "hopper": 370.8, "blackwell": 721.8}  # links x GB/s that the search counts on
BASE = {"LL": 6.6, "LL128": 14.0, "Simple": 8.4}
HOP = {"LL": 0.6, "LL128": 1.9, "Simple": 3.4}
LL_MOST = {"ampere": 87.7, "hopper": 141.0, "blackwell": 282.0}
CHANNELS = {"ampere": 24, "hopper": 24, "blackwell": 24}
LL128_CHANNEL = {"ampere": 20.0, "hopper": 36.7, "blackwell": 40.0}
NVLS_EFFICIENCY = {"hopper": 0.85, "blackwell": 0.74}
MESSAGES_LL_UP_TO = {"ampere": 8192, "hopper": 32768, "blackwell": 32768}
# Bytes of a member's shard at which half of the fill is there: channels of LL open with 4 KiB a member
# each, chunks of Simple grow up to megabytes.
FILL_BYTES = {"LL": [2**k for k in range(9, 15)], "LL128": [1], "Simple": [2**k for k in range(14, 26)]}
ORDER = [
    (path, protocol)
    for path, protocols in (
        ("messages", ("LL", "Simple")),
        ("nvls", ("Simple",)),
        ("ring", ("LL", "Simple", "LL128")),
    )
    for protocol in protocols
]


def protocol_of(row):
    """What NCCL's tuning model expects to be fastest: (path, protocol)."""
    generation, n, size = row["generation"], row["n"], row["bytes"]
    if row["op"] == "alltoall":
        ll = size / n <= MESSAGES_LL_UP_TO[generation]
        return "messages", "LL" if ll else "Simple"
    hops = OPS[row["op"]] * (n - 1)
    searched = SEARCHED[generation]
    rates = {
        "LL": min(LL_MOST[generation], searched * 0.5),
        "LL128": min(searched * 0.92, CHANNELS[generation] * LL128_CHANNEL[generation]),
        "Simple": searched,
    }
    expected = {
        ("ring", p): BASE[p] + hops * HOP[p] + size / (rate * n / hops * 1e3) for p, rate in rates.items()
    }
    if row["op"] == "all_reduce" and n >= 5 and generation in NVLS_EFFICIENCY and row["dtype"] != "int8":
        channels = CHANNELS[generation]
        rate = searched * NVLS_EFFICIENCY[generation] * (channels - 1) / channels * 5 / 6
        expected[("nvls", "Simple")] = 25 + size / (rate * 1e3)
    return min(expected, key=expected.get)


def features(row, path, protocol, fill_bytes):
    """Factors of (start, hop or doubling of members, 1/bandwidth, 1/copy, fill), in us, us, and us a KB."""
    n, part = row["n"], row["bytes"] / row["n"]
    fill = part / (part + fill_bytes)
    if path == "nvls":
        return [1, 0, row["bytes"] / 1e3, 0, fill]
    sent = part * (n - 1) / 1e3 * OPS[row["op"]]
    copy = part / 1e3 if protocol == "Simple" else 0
    if path == "messages":
        doublings = math.log2(n) - 1
        return [1, doublings, 0, part / 1e3, fill] if protocol == "LL" else [1, doublings, sent, copy, fill]
    return [1, OPS[row["op"]] * (n - 1), sent, copy, 0 if protocol == "LL128" else fill]


def solve(matrix, right):
    n = len(right)
    rows = [line[:] + [value] for line, value in zip(matrix, right)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        if rows[i][i] == 0:
            continue
        for r in range(n):
            if r != i:
                factor = rows[r][i] / rows[i][i]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[i])]
    return [rows[i][n] / rows[i][i] if rows[i][i] else 0.0 for i in range(n)]


def fit(lines, times):
    """Non-negative constants c with sum |lines . c / time - 1| as small as the iteration finds."""
    active = [i for i in range(len(lines[0])) if any(line[i] for line in lines)]
    while True:
        weights = [1.0] * len(lines)
        found = []
        for _ in range(60):
            normal = [[0.0] * len(active) for _ in active]
            right = [0.0] * len(active)
            for line, time, weight in zip(lines, times, weights):
                x = [line[i] / time for i in active]
                for i in range(len(active)):
                    right[i] += weight * x[i]
                    for j in range(len(active)):
                        normal[i][j] += weight * x[i] * x[j]
            for i in range(len(active)):
                normal[i][i] *= 1 + 1e-12
            found = solve(normal, right)
            errors = [
                sum(line[i] * c for i, c in zip(active, found)) / time - 1 for line, time in zip(lines, times)
            ]
            weights = [1 / max(0.02, abs(error)) for error in errors]
        wrong = [i for i, c in zip(active, found) if c < 0]
        if not wrong:
            constants = [0.0] * len(lines[0])
            for i, c in zip(active, found):
                constants[i] = c
            return constants
        active.remove(wrong[0])


def fit_within(lines, times, lowest):
    """The same with constants that are at least `lowest` (by place): what is below is held there."""
    constants = fit(lines, times)
    for i, low in lowest.items():
        if constants[i] >= low or not any(line[i] for line in lines):
            continue
        rest = [line[:i] + [0] + line[i + 1 :] for line in lines]
        others = {j: value for j, value in lowest.items() if j != i}
        constants = fit_within(rest, [time - low * line[i] for line, time in zip(lines, times)], others)
        constants[i] = low
    return constants


def fit_below(lines, times, lowest, place, most):
    """The same with the constant at `place` no larger than `most`."""
    constants = fit_within(lines, times, lowest)
    if constants[place] <= most:
        return constants
    rest = [line[:place] + [0] + line[place + 1 :] for line in lines]
    constants = fit_within(rest, [time - most * line[place] for line, time in zip(lines, times)], lowest)
    constants[place] = most
    return constants


def predicted(line, constants):
    return sum(a * b for a, b in zip(line, constants))


def spread(errors):
    errors = sorted(abs(e) for e in errors)
    p90 = errors[min(len(errors) - 1, int(0.9 * len(errors)))]
    return f"{len(errors)} rows, median {100 * statistics.median(errors):.1f} %, p90 {100 * p90:.1f} %"


def read(paths):
    for path in paths:
        with open(path, newline="") as file:
            for row in csv.DictReader(file):
                if row["hardware"] in GENERATION and row["op"] in OPS and "nccl-tests" in row["library"]:
                    yield {
                        "generation": GENERATION[row["hardware"]],
                        "op": row["op"],
                        "n": int(row["ranks"]),
                        "bytes": float(row["bytes"]),
                        "time": float(row["time_us"]),
                        "dtype": row["dtype"],
                    }


def timing(generation, path, protocol, constants, fill_bytes):
    start, hop, per_kb, copy, fill = constants
    if path != "ring":
        start -= LINK_LATENCY  # their one hop
    text = f'timing {{\n  path: "{path}" protocol: "{protocol}"\n  start: "{start:.2f}us"'
    if path == "ring":
        text += f' nvlink_hop: "{hop - LINK_LATENCY:.2f}us"'
    elif hop:
        text += f' doubling: "{hop:.2f}us"'
    if per_kb:
        rate = 1 / per_kb
        if protocol == "LL":
            text += f' most: "{rate:.0f}GB/s" nvlink_fraction: 0.5'  # 8 bytes of flags with 8 of data
        else:
            text += f" nvlink_fraction: {min(1, rate / LINK[generation]):.3f}"
    if copy:
        text += f' copy: "{1 / copy:.1f}GB/s"'
    if fill:
        text += f' fill: "{fill:.1f}us" fill_bytes: "{fill_bytes / 1024:g}KiB"'
    return text + "\n}"


def main():
    groups = defaultdict(list)
    for row in read(sys.argv[1:]):
        groups[(row["generation"], *protocol_of(row))].append(row)
    everything = []
    hops = {}  # of rings by Simple: those by LL128, of which there are few rows, are no slower
    for (generation, path, protocol), rows in sorted(groups.items(), key=lambda group: (group[0][0], ORDER.index(group[0][1:]))):
        times = [row["time"] for row in rows]
        best = None
        for fill_bytes in FILL_BYTES[protocol]:
            lines = [features(row, path, protocol, fill_bytes) for row in rows]
            lowest = {2: 1 / (FLAGS_LEAVE * LINK[generation])} if protocol == "LL128" else {}
            if path == "ring":
                lowest[1] = LINK_LATENCY
            if protocol == "LL128":
                constants = fit_below(lines, times, lowest, 1, hops[generation])
            else:
                constants = fit_within(lines, times, lowest)
            errors = [predicted(line, constants) / time - 1 for line, time in zip(lines, times)]
            score = sum(abs(e) for e in errors)
            if best is None or score < best[0]:
                best = (score, fill_bytes, constants, errors)
        if (path, protocol) == ("ring", "Simple"):
            hops[generation] = best[2][1]
        print(f"# {generation} {path} {protocol}: {spread(best[3])}")
        print(timing(generation, path, protocol, best[2], best[1]))
        everything += best[3]
    print(f"# all: {spread(everything)}")


if __name__ == "__main__":
    main()
