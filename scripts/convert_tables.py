#!/usr/bin/env python3
"""Converts tables of measured runs from the columns of stepsim 0.1 to the program's own keys (docs/measured-tables.md).

    scripts/convert_tables.py OLD.csv > new.csv
    scripts/convert_tables.py OLD.csv --stepsim build/release/stepsim > new.csv

What a cell of words means stands in scripts/old_tables/*.toml. A row with a word that is not there is left out, and said on
standard error; add the word and convert again. With --stepsim, rows that leave open what is recomputed get the cheapest
recompute that fits in memory, as 0.1 took it; without, they get the cheapest one.

The script goes with version 1.2.
"""

import argparse
import csv
import sys

from old_tables import collectives, kernels, served_runs, serving_kernels, training_runs
from old_tables.rows import Refused

# The first whose columns a table has.
KINDS = [training_runs, collectives, kernels, serving_kernels, served_runs]


def kind_of(header):
    for kind in KINDS:
        if set(kind.COLUMNS) <= set(header):
            return kind
    return None


def convert(path, stepsim, out):
    """Returns how many rows were left out."""
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        kind = kind_of(reader.fieldnames or [])
        if kind is None:
            raise Refused(f"{path}: has the columns of no kind of table of 0.1")
        rows = list(enumerate(reader, start=2))
    converted = []
    left_out = 0
    for line, row in kind.prepare(rows, stepsim) if hasattr(kind, "prepare") else rows:
        try:
            converted.append(kind.convert(row))
        except Refused as why:
            left_out += 1
            print(f"{path}:{line}: {row.get('id', '')}: {why}", file=sys.stderr)
    if hasattr(kind, "choose"):
        converted = kind.choose(converted, stepsim)
    columns = list(dict.fromkeys(column for row in converted for column in row))
    order = {column: at for at, column in enumerate(kind.ORDER)}
    columns.sort(key=lambda column: (order.get(column.split(".")[0], len(order)), column.startswith("measured.")))
    writer = csv.DictWriter(out, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(converted)
    return left_out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table")
    parser.add_argument("--stepsim", help="the program, to try which recompute fits")
    options = parser.parse_args()
    try:
        return 1 if convert(options.table, options.stepsim, sys.stdout) else 0
    except (Refused, OSError) as error:
        print(f"convert_tables: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
