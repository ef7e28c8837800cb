#!/usr/bin/env python3
"""Finds the energy of an operation (power.joules_per_teraflop) of a chip from measured training runs.

    scripts/fit_power.py build/release/stepsim TABLE.csv CHIP ENERGY... --limit W --idle W --energy J

CHIP is how the chip's name begins in the table's column `chip`; limit, idle power and energy are those of its
file. Each energy is tried by the column
power_limit: what is left for arithmetic grows as the energy falls. Printed are, for each energy, the median of
the absolute error of each source's step times, and the mean of those medians: sources count alike, as tables
of one source are near-copies of each other. The energy with the lowest mean is the fit; fewer than three
sources are said to be fewer.
"""
import argparse
import csv
import json
import pathlib
import statistics
import subprocess
import tempfile

LEAST_SOURCES = 3


def rows_of(path, begins):
    with open(path, encoding="utf-8") as file:
        reader = csv.DictReader(file)
        rows = [row for row in reader if row["chip"].startswith(begins)]
        return reader.fieldnames, rows


def errors(stepsim, fields, rows, watts, most_ops):
    with tempfile.TemporaryDirectory() as folder:
        table = pathlib.Path(folder) / "rows.csv"
        with open(table, "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, [*fields, *({"power_limit"} - set(fields))])
            writer.writeheader()
            writer.writerows({**row, "power_limit": f"{watts:.1f} W"} for row in rows)
        result = pathlib.Path(folder) / "rows.json"
        subprocess.run([stepsim, "accuracy", table, "--most-ops", most_ops, "--json", result], check=True,
                       stdout=subprocess.DEVNULL)
        by_source = {}
        for row in json.loads(result.read_text(encoding="utf-8"))["rows"]:
            if row["metric"] != "step_time_s" or row["predicted"] is None or row["implausible"]:
                continue
            if row["grade"] == "C":
                continue
            error = abs(row["predicted"] / row["measured"] - 1)
            by_source.setdefault(row["source_id"], []).append(error)
        return {source: statistics.median(all_of) for source, all_of in by_source.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("stepsim")
    parser.add_argument("table")
    parser.add_argument("chip")
    parser.add_argument("energies", nargs="+", type=float)
    parser.add_argument("--limit", type=float, required=True, help="the chip's power.limit_watts")
    parser.add_argument("--idle", type=float, required=True, help="its power.idle_watts")
    parser.add_argument("--energy", type=float, required=True, help="its power.joules_per_teraflop")
    parser.add_argument("--most-ops", default="15000000")
    given = parser.parse_args()
    fields, rows = rows_of(given.table, given.chip)
    best = None
    for energy in given.energies:
        watts = given.idle + (given.limit - given.idle) * given.energy / energy
        medians = errors(given.stepsim, fields, rows, watts, given.most_ops)
        mean = statistics.mean(medians.values())
        print(f"{energy:5.2f} J: {100 * mean:.2f} %  " +
              ", ".join(f"{source} {100 * of:.1f} %" for source, of in sorted(medians.items())), flush=True)
        best = min(best or (mean, energy), (mean, energy))
    few = "" if len(medians) >= LEAST_SOURCES else f" (of {len(medians)} sources only)"
    print(f"least: {best[1]} J{few}")


if __name__ == "__main__":
    main()
