#!/usr/bin/env python3
"""Fits the time from a request's arrival to its place in the queue (front_time of engines) by framework.

  stepsim accuracy TABLE.csv --engine front-time=0 --json predicted.json
  scripts/fit_front_time.py TABLE.csv predicted.json

TABLE.csv is a table of serving runs (docs/accuracy.md). Taken are the rows of three runs of InferenceMAX
with prompts of 1,024 tokens and at most 16 requests at a time: the time is the median of what the mean
time to the first token takes longer than predicted.
"""
import csv
import json
import statistics
import sys

RUNS = ("imax-20218553330-", "imax-20286968709-", "imax-20286929996-")


def main(table, predicted):
    with open(table, newline="", encoding="utf-8") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    with open(predicted, encoding="utf-8") as file:
        predictions = json.load(file)["rows"]
    longer = {}
    for row in predictions:
        source = rows[row["id"]]
        fits = row["id"].startswith(RUNS) and source["isl"] == "1024" and int(source["concurrency"]) <= 16
        if row["metric"] == "ttft_mean_s" and row["predicted"] is not None and fits:
            key = (source["framework"], source["model"])
            longer.setdefault(key, []).append(row["measured"] - row["predicted"])
    for (framework, model), seconds in sorted(longer.items()):
        print(f"{framework} {model}: {1e3 * statistics.median(seconds):.1f} ms, {len(seconds)} rows")


if __name__ == "__main__":
    main(*sys.argv[1:])
