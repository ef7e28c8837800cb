#!/usr/bin/env python3
"""Fits the timings of a communication library to measured collectives as they are simulated: with the
way (algorithm and protocol) that is fastest of all that the library has. So a row that one protocol ran
says of every other one that it was not faster.

    scripts/fit_library_ways.py STEPSIM LIBRARY.textproto OUT.textproto TABLE.csv[:CLUSTER,...] ...
        [--seconds 600] [--cap 0.5]

CLUSTER is how the names of clusters begin: dgx-h100.

Coordinate descent on the logarithms of all times, shares and rates of the library's timings, but for the
network's share, which large messages over the network tell by themselves. The error
is the mean of |log(predicted / measured)|, at most --cap a row, each table and operation of as many ranks
counting alike. Shares stay at most 1. Prints each value that changed.
"""
import argparse
import collections
import csv
import json
import math
import pathlib
import re
import subprocess
import tempfile
import time

FITTED = ("start", "doubling", "nvlink_hop", "network_hop", "nvlink_fraction", "most",
          "copy", "fill", "fill_bytes", "most_bytes", "rate")
VALUE = re.compile(r'(\w+): (?:"([0-9.]+)([A-Za-z/]*)"|([0-9.]+)(?=[\s}]))')
SHARES = ("nvlink_fraction",)


def rows_of(argument, folder):
    """Writes the rows of the clusters to a table of its own; returns its path."""
    name, _, clusters = argument.partition(":")
    wanted = tuple(word for word in clusters.split(",") if word) or ("",)
    rows = list(csv.reader(open(name, encoding="utf-8")))
    column = rows[0].index("cluster")
    kept = [row for row in rows[1:] if row[column].startswith(wanted)]
    path = folder / pathlib.Path(name).name
    with open(path, "w", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows([rows[0]] + kept)
    return path, {str(i): row for i, row in enumerate(kept)}, rows[0]


class Fit:
    def __init__(self, arguments):
        self.stepsim = arguments.stepsim
        self.cap = arguments.cap
        self.text = pathlib.Path(arguments.library).read_text(encoding="utf-8")
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.tables = [rows_of(table, self.folder) for table in arguments.tables]
        begin = self.text.index("timing {")
        self.places = [m for m in VALUE.finditer(self.text)
                       if m.start() > begin and m.group(1) in FITTED
                       and (m.group(2) or m.group(1) in SHARES)]
        self.values = [float(m.group(2) or m.group(4)) for m in self.places]

    def text_of(self, values):
        text, at = "", 0
        for match, value in zip(self.places, values):
            group = 2 if match.group(2) else 4
            whole = match.group(1) in ("fill_bytes", "most_bytes")
            text += self.text[at:match.start(group)] + (f"{max(1, round(value))}" if whole
                                                        else f"{value:.4g}")
            at = match.end(group)
        return text + self.text[at:]

    def error_of(self, values):
        library = self.folder / "library.textproto"
        library.write_text(self.text_of(values), encoding="utf-8")
        total = 0
        for path, rows, header in self.tables:
            result = self.folder / "result.json"
            done = subprocess.run([self.stepsim, "accuracy", path, "--library", library, "--json", result,
                                   "--quiet"], capture_output=True, text=True)
            if done.returncode > 1:
                raise SystemExit(done.stderr)
            groups = collections.defaultdict(list)
            for i, row in enumerate(json.loads(result.read_text())["rows"]):
                if row["predicted"]:
                    given = rows[str(i)]
                    key = given[header.index("op")], given[header.index("ranks")]
                    off = abs(math.log(row["predicted"] / row["measured"]))
                    groups[key].append(min(off, self.cap))
            total += sum(sum(g) / len(g) for g in groups.values()) / len(groups) / len(self.tables)
        return total

    def run(self, seconds):
        end = time.time() + seconds
        best = self.error_of(self.values)
        print(f"error {best:.4f}", flush=True)
        # Tables have sizes of powers of two.
        steps = [0.75 if match.group(1) == "most_bytes" else 0.3 for match in self.places]
        while time.time() < end and max(steps) > 0.02:
            before = best
            for i, match in enumerate(self.places):
                if self.values[i] == 0 or steps[i] < 0.02 or time.time() > end:
                    continue
                moved = False
                for sign in (1, -1):
                    tried = list(self.values)
                    tried[i] *= math.exp(sign * steps[i])
                    if match.group(1) in SHARES:
                        tried[i] = min(tried[i], 1)
                    error = self.error_of(tried)
                    if error < best - 1e-5:
                        best, self.values, moved = error, tried, True
                        break
                steps[i] *= 1.3 if moved else 0.4
            print(f"error {best:.4f}", flush=True)
            if before - best < 2e-4:
                steps = [step * 0.5 for step in steps]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("stepsim")
    parser.add_argument("library")
    parser.add_argument("out")
    parser.add_argument("tables", nargs="+")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--cap", type=float, default=0.5, help="a row that is further off counts as this")
    arguments = parser.parse_args()
    fit = Fit(arguments)
    first = list(fit.values)
    fit.run(arguments.seconds)
    for match, was, now in zip(fit.places, first, fit.values):
        if now != was:
            print(f"{match.group(1)}: {was:.4g} -> {now:.4g}")
    pathlib.Path(arguments.out).write_text(fit.text_of(fit.values), encoding="utf-8")


if __name__ == "__main__":
    main()
