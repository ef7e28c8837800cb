#!/usr/bin/env python3
"""Makes the intervals of catalog/uncertainty/intervals.textproto from measured runs.

    stepsim accuracy TABLE.csv... --json rows.json
    scripts/fit_intervals.py rows.json... > catalog/uncertainty/intervals.textproto

An interval holds the middle 80 % of measured / predicted among runs in one situation (rows say it). Each
source counts alike, with at most MOST_ROWS rows' weight, as tables of one source are near-copies of each
other. Of fewer than MANY_SOURCES sources, the interval reaches from the lowest tenth of any to the highest
of any, and the median is that of the sources' medians. Rows that can't be right, and rows of grade C, whose run is not fully known, don't count.
A situation of fewer than LEAST_SOURCES sources, or LEAST_ROWS rows, gets the interval of what it has in common with
others: fields are left out in the order of NARROW, ACROSS, EXPERTS, OWN. Coverage, on standard error,
is of each source with the intervals of all others.
"""
import collections
import json
import statistics
import sys

LEAST_SOURCES = 3
LEAST_ROWS = 12
MANY_SOURCES = 6
TAIL = 0.07  # a little less than a tenth: sources that are left out lie further off than their own do
MOST_ROWS = 20
FIELDS = ["own_kernels", "experts", "across_nodes", "narrow"]
WORDS = {
    "own kernels": ("own_kernels", True), "kernels of a sister": ("own_kernels", False),
    "experts": ("experts", True), "dense": ("experts", False),
    "across nodes": ("across_nodes", True), "in a node": ("across_nodes", False),
    "narrow": ("narrow", True), "16 bits": ("narrow", False),
}
# What a situation is told by, most first.
LEVELS = [FIELDS, FIELDS[:3], FIELDS[:2], ["experts"], []]


def read(paths):
    rows = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for row in json.load(file)["rows"]:
                if row["predicted"] is None or not row["situation"]:
                    continue
                if row["implausible"] or row["grade"] == "C":
                    continue
                situation = dict(WORDS[word] for word in row["situation"].split(", "))
                rows.append((row["metric"], situation, row["source_id"], row["measured"] / row["predicted"]))
    return rows


def quantile(weighted, share):
    total = sum(weight for _, weight in weighted)
    running = 0
    for value, weight in sorted(weighted):
        running += weight
        if running >= share * total:
            return value
    return max(weighted)[0]


def interval(rows):
    counts = collections.Counter(source for _, _, source, _ in rows)
    if len(counts) < MANY_SOURCES:
        own = [[(row[3], 1) for row in rows if row[2] == source] for source in counts]
        low, high = min(quantile(one, TAIL) for one in own), max(quantile(one, 1 - TAIL) for one in own)
        median = statistics.median(quantile(one, 0.5) for one in own)
        return low, median, high, len(rows), len(counts)
    weighted = [(ratio, min(1, MOST_ROWS / counts[source])) for _, _, source, ratio in rows]
    low, median, high = (quantile(weighted, share) for share in (TAIL, 0.5, 1 - TAIL))
    return low, median, high, len(rows), len(counts)


def fit(rows):
    """Returns {(metric, ((field, value), ...)): (low, median, high, rows, sources)}, most specific first."""
    fitted = {}
    for fields in LEVELS:
        groups = collections.defaultdict(list)
        for row in rows:
            groups[row[0], tuple((field, row[1][field]) for field in fields)].append(row)
        for key in sorted(groups, key=str):
            sources = {row[2] for row in groups[key]}
            if not fields or (len(sources) >= LEAST_SOURCES and len(groups[key]) >= LEAST_ROWS):
                fitted[key] = interval(groups[key])
    return fitted


def lookup(fitted, metric, situation):
    for fields in LEVELS:
        key = metric, tuple((field, situation[field]) for field in fields)
        if key in fitted:
            return fitted[key]
    return None


def coverage(rows):
    inside = collections.Counter()
    count = collections.Counter()
    for left_out in sorted({row[2] for row in rows}):
        fitted = fit([row for row in rows if row[2] != left_out])
        for metric, situation, source, ratio in rows:
            if source != left_out:
                continue
            low, _, high, _, _ = lookup(fitted, metric, situation)
            count[metric, source] += 1
            inside[metric, source] += low <= ratio <= high
    return inside, count


def main():
    rows = read(sys.argv[1:])
    if not rows:
        sys.exit(__doc__)
    print("# How far predictions of measured runs were off: the middle 80 % of measured / predicted, and its median, by what makes a")
    print("# prediction uncertain. Made by scripts/fit_intervals.py of all public rows; the first entry that fits holds.")
    for (metric, key), (low, median, high, count, sources) in fit(rows).items():
        fields = "".join(f"{field}: {'true' if value else 'false'} " for field, value in key)
        print(f'interval {{ metric: "{metric}" {fields}low: {low:.3f} median: {median:.3f} high: {high:.3f} rows: {count} sources: {sources} }}')
    inside, count = coverage(rows)
    for metric in sorted({row[0] for row in rows}):
        keys = [key for key in count if key[0] == metric]
        for key in sorted(keys):
            print(f"{metric:14s} {key[1]:28s} {inside[key]:4d} of {count[key]:4d}", file=sys.stderr)
        total = sum(count[key] for key in keys)
        print(f"{metric}: {sum(inside[key] for key in keys) / total:.0%} of {total} rows of sources left out",
              file=sys.stderr)


if __name__ == "__main__":
    main()
