#!/usr/bin/env python3
"""Converts tables of measured runs from the columns of stepsim 0.1 to the program's own keys (docs/measured-tables.md).

    scripts/convert_tables.py OLD.csv > new.csv
    scripts/convert_tables.py OLD.csv --sources sources.csv > new.csv

What words of cells mean stands in scripts/old_tables. A row that is not understood is left out, and said on standard error: add
the word and convert again. What a row leaves open is decided as 0.1 decided it, and written into `assumed`: where a row of a
training run doesn't say what is recomputed, the cheapest that fits in memory, which the program is asked for.

The exit status is 1 if a row was left out. The script goes with version 1.2.
"""

import argparse
import csv
import importlib
import pathlib
import sys

import old_tables
from old_tables import training_model
from old_tables.rows import Refused

BUILT = pathlib.Path(__file__).resolve().parents[1] / "build/release/stepsim"

# Modules of old_tables that say which columns tell their kind.
MODULES = [importlib.import_module(f"old_tables.{path.stem}")
           for path in sorted(pathlib.Path(old_tables.__path__[0]).glob("[a-z]*.py"))]
KINDS = [module for module in MODULES if hasattr(module, "COLUMNS")]


def kind_of(header):
    for kind in KINDS:
        if set(kind.COLUMNS) <= set(header):
            return kind
    return None


def convert(path, stepsim, out):
    """Returns the old rows, and how many were left out."""
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        kind = kind_of(reader.fieldnames or [])
        if kind is None:
            raise Refused(f"{path}: has the columns of no kind of table of 0.1")
        old = list(reader)
    converted = []
    left_out = 0
    rows = list(enumerate(old, start=2))
    for line, row in kind.prepare(rows, stepsim) if hasattr(kind, "prepare") else rows:
        try:
            converted.append(kind.convert(row))
        except Refused as why:
            left_out += 1
            print(f"{path}:{line}: {row.get('id', '')}: {why}", file=sys.stderr)
    if hasattr(kind, "choose"):
        converted = kind.choose(converted, stepsim)
    columns = list(dict.fromkeys(column for row in converted for column, cell in row.items() if cell != ""))
    order = {column: at for at, column in enumerate(kind.ORDER)}
    columns.sort(key=lambda column: (order.get(column.split(".")[0], len(order)), column.startswith("measured.")))
    writer = csv.DictWriter(out, columns, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(converted)
    return old, left_out


def add_sources(old, path):
    """Adds what the rows' sources are to a table of them: `source`, `reference`."""
    path = pathlib.Path(path)
    known = {}
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            known = {row["source"]: row["reference"] for row in csv.DictReader(file)}
    for row in old:
        name = row.get("source_id") or row.get("source")
        if name and row.get("source_ref"):
            known.setdefault(name, row["source_ref"])
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["source", "reference"])
        writer.writerows(sorted(known.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table")
    parser.add_argument("--stepsim", default=str(BUILT) if BUILT.exists() else "stepsim", help="the program")
    parser.add_argument("--sources", help="a table of sources to which those of the rows are added")
    options = parser.parse_args()
    training_model.stepsim = options.stepsim
    try:
        old, left_out = convert(options.table, options.stepsim, sys.stdout)
        if options.sources:
            add_sources(old, options.sources)
        return 1 if left_out else 0
    except (Refused, OSError) as error:
        print(f"convert_tables: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
