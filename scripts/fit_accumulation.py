#!/usr/bin/env python3
"""Finds what of the traffic of accumulators is not behind arithmetic (efficiency.matmul.exposed_accumulation) from
timings of the three matmuls of a layer.

    scripts/fit_accumulation.py SYSTEM.json --bandwidth B --memory-fraction F

SYSTEM.json is a configuration of MooreThreads/SimuMax (configs/system): shares of the peak of matmuls by shape, layout
and type of the result. B is the chip's memory_bandwidth in bytes a second, F the memory_fraction of its matmuls. What a weight
gradient in fp32 takes more than the mean of the two other matmuls of its weight is divided by the time in which the
memory reads and writes the two bytes a value that fp32 has beyond 16 bits. The median of all shapes is the fit, as a
difference of two timings has outliers on both sides.
"""
import argparse
import json
import statistics

BYTES = 4  # two read and two written for each value


def seconds_by_kind(system):
    matmul = system["accelerator"]["op"]["matmul"]
    kinds = {}
    for shape, share in matmul["accurate_efficient_factor"].items():
        said = dict(part.strip().split("=") for part in shape.split(","))
        m, k, n = int(said["m"]), int(said["k"]), int(said["n"])
        kind = said["layout"], said["accumulate"], said["out_dtype"]
        kinds.setdefault(kind, {})[m, k, n] = 2 * m * k * n / (matmul["tflops"] * 1e12 * share)
    return kinds


def pairs(kinds, dtype):
    """Yields the shape of a weight gradient, its time, and the mean of those of the forward and the input gradient."""
    forward = kinds.get(("TN", "False", "bf16"), {})
    backward = kinds.get(("NN", "False", "bf16"), {})
    for (outputs, tokens, inputs), time in sorted(kinds.get(("NT", "True", dtype), {}).items()):
        first = forward.get((tokens, inputs, outputs))
        second = backward.get((tokens, outputs, inputs))
        if first and second:
            yield (outputs, tokens, inputs), time, (first + second) / 2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("system")
    parser.add_argument("--bandwidth", type=float, required=True, help="bytes a second")
    parser.add_argument("--memory-fraction", type=float, required=True)
    given = parser.parse_args()
    with open(given.system, encoding="utf-8") as file:
        kinds = seconds_by_kind(json.load(file))
    rate = given.bandwidth * given.memory_fraction
    found = [(time - other) / (BYTES * outputs * inputs / rate)
             for (outputs, _, inputs), time, other in pairs(kinds, "fp32")]
    ratios = {dtype: [time / other for _, time, other in pairs(kinds, dtype)] for dtype in ("fp32", "bf16")}
    for dtype, of in ratios.items():
        if of:
            print(f"weight gradients added in {dtype}: {len(of)} shapes, "
                  f"{100 * statistics.median(of) - 100:+.1f} % of the time of the other matmuls (median)")
    print(f"exposed_accumulation: {statistics.median(found):.2f}")


if __name__ == "__main__":
    main()
