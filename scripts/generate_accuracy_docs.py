#!/usr/bin/env python3
"""Writes accuracy-tables.md of the site: what `stepsim accuracy` says of every table of tests/reference/measured.

    scripts/generate_accuracy_docs.py STEPSIM FOLDER [TABLE...]    of these tables alone, to be quick
    scripts/generate_accuracy_docs.py STEPSIM --write              the table and the points of docs/accuracy.md instead
    scripts/generate_accuracy_docs.py STEPSIM --check TABLE...     fails if what they have of these tables is stale

The table has the tables of training runs, without rows of grade C. The points are catalog/predictions/step_times.csv, which
`stepsim figures` draws once it is built again: steps of the first six tables, as the others repeat many of their sources.
"""
import json
import math
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MEASURED = "tests/reference/measured"
SUMMARY = ROOT / "docs" / "accuracy.md"
POINTS = ROOT / "catalog" / "predictions" / "step_times.csv"
HEAD = """# Accuracy, table by table

What `stepsim accuracy TABLE` prints of each table of `tests/reference/measured`, a line for each source and metric: rows, median
and 90th percentile of the relative error without its sign, its mean (negative: too fast), and the share of rows whose
measurement lies in the interval of the prediction. Rows of grade C leave much open. [Accuracy](accuracy.md) is the
summary, [why predictions are off](accuracy-reasons.md) what is behind the large errors.
"""
TABLES = {
    "training_runs_calibration": "Training runs that constants may be fitted to",
    "training_runs_public_validation": "Older training runs, only predicted",
    "training_runs_new_public": "The same, of later sources",
    "training_runs_other_sources": "The first blind table, now",
    "training_runs_further_sources": "The second blind table, now",
    "training_runs_recent_sources": "The third blind table, now",
    "training_runs_more_public": "Further public training runs, of many of the same sources",
    "training_runs_more_public_2": "More of them",
    "training_runs_vtrain_single": "vTrain: one node of A100s",
    "training_runs_memory": "Peaks of memory",
    "serving_runs": "Served requests",
    "matmuls": "Matmuls",
    "attention_training": "Attention in training",
    "serving_kernels": "Kernels of serving",
    "collectives": "Collectives inside a node",
    "collectives_between_nodes": "Collectives between nodes",
    "serving_collectives": "Collectives of serving",
}
DRAWN = list(TABLES)[:6]
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



def group_of(row):
    return next(name for sources, chips, name in GROUPS
                if row["source_id"].startswith(sources) and row["chip"].startswith(chips))


def points(rows):
    for row in rows:
        if row["metric"] == "step_time_s" and row["predicted"] and not row["implausible"] and row["grade"] != "C":
            yield f"{group_of(row)};{row['source_id']};{row['measured']:.4g};{row['predicted']:.4g}"


def accuracy(stepsim, table, *options):
    return subprocess.run([stepsim, "accuracy", f"{MEASURED}/{table}.csv", *options], cwd=ROOT, check=True, text=True,
                          stdout=subprocess.PIPE).stdout


def cells(rows, metric):
    """Median (rows), 90th percentile (nearest rank) and share in the interval, as `stepsim accuracy` has them."""
    counted = [row for row in rows if row["metric"] == metric and row["grade"] != "C" and not row["implausible"]
               and row["predicted"] is not None]
    if not counted:
        return ["", "", ""]
    errors = sorted(100 * abs(row["predicted"] / row["measured"] - 1) for row in counted)
    inside = [row["interval"][0] <= row["measured"] <= row["interval"][1] for row in counted if row["interval"]]
    return [f"{statistics.median(errors):.1f} % ({len(errors)})", f"{errors[math.ceil(0.9 * len(errors)) - 1]:.0f} %",
            f"{100 * statistics.mean(inside):.0f} %" if inside else ""]


def line_of(name, rows):
    return "| " + " | ".join([name, *cells(rows, "step_time_s"), *cells(rows, "memory_bytes")]) + " |"


def fresh(stepsim, table):
    """The rows of a table, its line in docs/accuracy.md, and its points."""
    rows = json.loads(accuracy(stepsim, table, "--quiet", "--json", "-"))["rows"]
    return rows, line_of(TABLES[table], rows), list(points(rows)) if table in DRAWN else []


def check(stepsim, tables):
    page, kept = SUMMARY.read_text(encoding="utf-8").splitlines(), POINTS.read_text(encoding="utf-8").splitlines()
    for table in tables:
        _, line, dots = fresh(stepsim, table)
        if line not in page or not set(dots) <= set(kept):
            sys.exit(f"{SUMMARY} or {POINTS} is stale: scripts/refresh_docs.sh")


def write(stepsim):
    lines, dots = ["| table | step, median (runs) | 90th percentile | in the interval | memory, median (runs) "
                   "| 90th percentile | in the interval |", "|---|---|---|---|---|---|---|"], []
    together = []
    for number, table in enumerate(list(TABLES)[:9], 1):
        rows, line, more = fresh(stepsim, table)
        lines.append(line)
        dots += more
        if number <= 3:
            together += rows
        if number == 3:
            lines.append(line_of("These three together", together))
    order = list(dict.fromkeys(name for _, _, name in GROUPS))
    dots.sort(key=lambda line: order.index(line.split(";")[0]))
    head, begin, rest = SUMMARY.read_text(encoding="utf-8").partition("<!-- summary -->\n")
    end = rest[rest.index("<!-- end -->"):]
    SUMMARY.write_text(head + begin + "\n".join(lines) + "\n" + end, encoding="utf-8")
    POINTS.write_text("\n".join(["group;source;measured_s;predicted_s", *dots]) + "\n", encoding="utf-8")


def main(stepsim, folder, *tables):
    if folder == "--write":
        return write(stepsim)
    if folder == "--check":
        return check(stepsim, tables)
    text = HEAD
    for table in tables or TABLES:
        text += f"\n## {TABLES[table]}\n\n```text\n$ stepsim accuracy {MEASURED}/{table}.csv\n{accuracy(stepsim, table)}```\n"
    pathlib.Path(folder, "accuracy-tables.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(str(pathlib.Path(sys.argv[1]).resolve()), *sys.argv[2:])
