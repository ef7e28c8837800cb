#!/usr/bin/env python3
"""Fits the time from a request's arrival to its place in the queue (front_time of engines) by software.

  stepsim accuracy TABLE.csv --engine front-time=0 --json predicted.json
  scripts/fit_front_time.py TABLE.csv predicted.json

TABLE.csv is a table of served runs (docs/measured-tables.md). Taken are the rows of three runs of InferenceMAX
with prompts of 1,024 tokens and at most 16 requests at a time: the time is the median of what the mean
time to the first token takes longer than predicted.
"""
import csv
import json
import re
import statistics
import sys

PROMPT = re.compile("1024|uniform:[0-9]+-1024")
RUNS = ("imax-20218553330-", "imax-20286968709-", "imax-20286929996-")


def main(table, predicted):
    with open(table, newline="", encoding="utf-8") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    with open(predicted, encoding="utf-8") as file:
        predictions = json.load(file)["rows"]
    longer = {}
    for row in predictions:
        source = rows[row["id"]]
        load = dict(key.partition("=")[::2] for key in source["requests"].partition(":")[2].split(","))
        fits = row["id"].startswith(RUNS) and PROMPT.fullmatch(load["input"]) and int(load.get("concurrency", 17)) <= 16
        if row["metric"] == "ttft_mean_s" and row["predicted"] is not None and fits:
            key = (source["software"], source["model"])
            longer.setdefault(key, []).append(row["measured"] - row["predicted"])
    for (software, model), seconds in sorted(longer.items()):
        print(f"{software} {model}: {1e3 * statistics.median(seconds):.1f} ms, {len(seconds)} rows")


if __name__ == "__main__":
    main(*sys.argv[1:])
