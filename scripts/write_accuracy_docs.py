#!/usr/bin/env python3
"""Writes what measured training runs say into the repository: the tables of docs/accuracy-training.md,
the summary in docs/accuracy.md, and the points of its picture (catalog/predictions/step_times.csv, which `stepsim figures` draws).

    for table in tests/reference/measured/training_runs_*.csv; do
      name=${table##*/training_runs_}
      stepsim accuracy $table --json FOLDER/${name%.csv}.json
    done
    scripts/write_accuracy_docs.py FOLDER

The picture has the points of the first six tables: the others repeat many of their sources.
"""
import collections
import json
import math
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "accuracy-training.md"
SUMMARY = ROOT / "docs" / "accuracy.md"
POINTS = ROOT / "catalog" / "predictions" / "step_times.csv"
# What each is, in the summary.
TABLES = {"calibration": "older: constants may be fitted to it",
          "public_validation": "older: only predicted, but for the energy of an operation",
          "new_public": "older: the same, of later sources",
          "other_sources": "the first of the blind tables, now",
          "further_sources": "the second of them",
          "recent_sources": "the third of them",
          "more_public": "further public runs, of many of the same sources",
          "more_public_2": "more of them",
          "vtrain_single": "vTrain: one node of A100s"}
DRAWN = list(TABLES)[:6]
SUMMARY_HEAD = ["| table | step, median (runs) | 90th percentile | in the interval | memory, median (runs) | 90th percentile "
                "| in the interval |",
                "|---|---|---|---|---|---|---|"]
METRICS = {"step_time_s": "step time", "memory_bytes": "memory"}
HEAD = ["| source | metric | rows | left out | median | 90th percentile | mean | in the interval |",
        "|---|---|---|---|---|---|---|---|"]
# The first that a source and a chip of the catalog begin with.
PYTORCH = ("fms", "fsdp_qlora", "gist_deepspeed", "qwen1", "telechat", "trl", "hf_blog", "ms_swift", "xtuner", "deepspeed",
           "easycontext", "torchtitan", "torchao", "lambda_torchtitan", "crusoe", "universal_llm", "vectorlm",
           "torchtune", "prime_rl", "nemo_automodel", "open_lm", "colossalai")
GROUPS = [(PYTORCH, ("",), "Hugging Face, DeepSpeed, torchtitan, FSDP, GPUs"),
          (("llm_foundry",), ("",), "llm-foundry, A100 and H100"),
          (("vtrain",), ("",), "vTrain (Megatron-LM), A100"),
          (("",), ("v100", "a100", "a800"), "Megatron-LM, NeMo and others, V100 and A100"),
          (("",), ("tpu",), "MaxText, TPU v4 to Ironwood"),
          (("",), ("h100", "h200", "h800", "gh200"), "Megatron Core, NeMo, MaxText, H100 and H200"),
          (("",), ("b200", "b300", "gb200", "gb300"), "Megatron Core, NeMo, B200 to GB300"),
          (("",), ("",), "AMD, Gaudi, Trainium")]


class Group:
    def __init__(self):
        self.errors, self.left_out, self.inside, self.intervals = [], 0, 0, 0

    def add(self, row):
        if row["predicted"] is None or row["implausible"]:
            self.left_out += 1
            return
        self.errors.append(row["predicted"] / row["measured"] - 1)
        if row["interval"]:
            self.intervals += 1
            self.inside += row["interval"][0] <= row["measured"] <= row["interval"][1]

    def median(self):
        return 100 * statistics.median(abs(error) for error in self.errors)

    def tail(self):
        """The 90th percentile, nearest rank."""
        return 100 * sorted(abs(error) for error in self.errors)[math.ceil(0.9 * len(self.errors)) - 1]

    def covered(self):
        return f"{100 * self.inside / self.intervals:.0f} %" if self.intervals else ""

    def line(self, name, metric):
        return (f"| {name} | {METRICS[metric]} | {len(self.errors)} | {self.left_out} | {self.median():.1f} % "
                f"| {self.tail():.1f} % | {100 * statistics.mean(self.errors):+.1f} % | {self.covered()} |")


def table_of(rows):
    sources, totals = collections.defaultdict(Group), collections.defaultdict(Group)
    for row in rows:
        is_vague = row["grade"] == "C"
        sources[row["source_id"], row["metric"], is_vague].add(row)
        totals[row["metric"], is_vague].add(row)
    lines, none = list(HEAD), []
    for (source, metric, is_vague), group in sources.items():
        name = source.replace("_", " ")
        if group.errors:
            lines.append(group.line(name + (" (grade C)" if is_vague else ""), metric))
        elif metric == "step_time_s":
            none.append(f"{name} {group.left_out}")
    for (metric, is_vague), group in totals.items():
        if group.errors:
            lines.append(group.line("all" + (" of grade C" if is_vague else ""), metric))
    if none:
        lines += ["", "No row of these runs: " + ", ".join(none) + "."]
    return "\n".join(lines)


def group_of(row):
    return next(name for sources, chips, name in GROUPS
                if row["source_id"].startswith(sources) and row["chip"].startswith(chips))


def points(rows):
    for row in rows:
        if row["metric"] == "step_time_s" and row["predicted"] and not row["implausible"] and row["grade"] != "C":
            yield f"{group_of(row)};{row['source_id']};{row['measured']:.4g};{row['predicted']:.4g}"


def summary_line(name, rows):
    """A line of the summary: steps and memory of a table, without rows of grade C."""
    cells = []
    for metric in METRICS:
        group = Group()
        for row in rows:
            if row["metric"] == metric and row["grade"] != "C":
                group.add(row)
        if group.errors:
            cells += [f"{group.median():.1f} % ({len(group.errors)})", f"{group.tail():.0f} %", group.covered()]
        else:
            cells += ["", "", ""]
    return f"| {name} | " + " | ".join(cells) + " |"


def replaced(page, marker, text):
    begin = page.index(f"<!-- {marker} -->")
    end = page.index("<!-- end -->", begin)
    return f"{page[:begin]}<!-- {marker} -->\n{text}\n{page[end:]}"


def main(folder):
    page = PAGE.read_text(encoding="utf-8")
    lines, summary = [], list(SUMMARY_HEAD)
    for table in TABLES:
        rows = json.loads((pathlib.Path(folder) / f"{table}.json").read_text(encoding="utf-8"))["rows"]
        page = replaced(page, table, table_of(rows))
        summary.append(summary_line(TABLES[table], rows))
        if table in DRAWN:
            lines += points(rows)
    PAGE.write_text(page, encoding="utf-8")
    SUMMARY.write_text(replaced(SUMMARY.read_text(encoding="utf-8"), "summary", "\n".join(summary)), encoding="utf-8")
    POINTS.parent.mkdir(exist_ok=True)
    order = list(dict.fromkeys(name for _, _, name in GROUPS))
    lines.sort(key=lambda line: order.index(line.split(";")[0]))
    POINTS.write_text("\n".join(["group;source;measured_s;predicted_s", *lines]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
