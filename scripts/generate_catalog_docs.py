#!/usr/bin/env python3
"""Writes catalog.md of the site: what was published about the experiments of the catalog, beside what they
simulate. Fails if one is outside its range, as `stepsim catalog experiments` does.

    scripts/generate_catalog_docs.py STEPSIM FOLDER
"""
import json
import pathlib
import subprocess
import sys

LABELS = {
    "step_time": "step time",
    "tokens_per_s": "tokens/s",
    "flops_per_chip": "TFLOP/s a chip",
    "model_flops_utilization": "MFU",
    "hardware_flops_utilization": "HFU",
    "peak_memory": "peak memory",
    "tpot": "time per token, served",
    "ttft": "time to first token, served",
    "output_tokens_per_s_per_chip": "output tokens/s a chip, served",
}

HEAD = """# Experiments of the catalog

What others measured of them on real chips, beside what stepsim says:

    stepsim catalog experiments            all, the quick ones first
    stepsim catalog experiments --list     names and what was published, without simulation
    stepsim run NAME                       one, with everything else that a run says
    stepsim serve NAME                     one that is served: its requests answered

A simulation counts as right within 10 % of the published figure. Where more is expected, the table says why, and
the file of the experiment states the range. `PublishedFiguresTest` holds each within its range. It runs the largest
ones with fewer replicas, whose work is the same. `stepsim catalog experiments` runs them whole, and ends with exit
status 1 if one is outside its range. Nothing is fitted to these figures.

Served experiments are runs of benchmarks: requests of the same lengths, as many at a time. Their times to the first
token are not compared: repeated measurements of them differ by up to a third. Steps of the book's own examples are
closed forms without communication; `stepsim validate S41 S43` takes the differences apart.

Publications count the FLOPs of attention in two ways, *causal* (half the pairs of tokens) or *full*; the simulated
figure is counted likewise.

"""


def value_text(metric, value):
    if metric == "step_time":
        return f"{value:.4g} s" if value >= 0.1 else f"{1e3 * value:.4g} ms"
    if metric in ("tpot", "ttft"):
        return f"{1e3 * value:.1f} ms"
    if metric == "flops_per_chip":
        return f"{value / 1e12:.0f}"
    if metric.endswith("utilization"):
        return f"{100 * value:.1f} %"
    if metric == "peak_memory":
        return f"{value / 1e9:.1f} GB"
    return f"{value:,.0f}"


def remark(figure):
    parts = [figure["source"]]
    if "plan" in figure:
        parts.append(f"measured with {figure['plan']}")
    return "; ".join(parts) + (f". {figure['why']}" if "why" in figure else "")


def rows(experiment):
    for figure in experiment["published"]:
        metric = figure["metric"]
        label = LABELS[metric]
        if "attention_flops" in figure:
            label += f", {figure['attention_flops']}"
        yield " | ".join([
            f"| `{experiment['name']}`", label, value_text(metric, figure["published"]),
            value_text(metric, figure["simulated"]), f"{100 * (figure['ratio'] - 1):+.1f} %",
            remark(figure) + " |"])


def page(experiments):
    text = HEAD + "| experiment | figure | published | simulated | difference | source, and why |\n"
    text += "|---|---|--:|--:|--:|---|\n"
    for experiment in experiments:
        for row in rows(experiment):
            text += row + "\n"
    text += "\n## Nothing published\n\n"
    for experiment in experiments:
        if "not_published" in experiment:
            text += f"- `{experiment['name']}`: {experiment['not_published']}\n"
    return text


def main(stepsim, folder):
    result = subprocess.run([stepsim, "catalog", "experiments", "--json", "-"],
                            stdout=subprocess.PIPE, text=True)
    if result.returncode != 0:
        sys.exit("stepsim catalog experiments failed, or a figure is outside its range")
    experiments = sorted(json.loads(result.stdout)["experiments"], key=lambda one: one["name"])
    pathlib.Path(folder, "catalog.md").write_text(page(experiments))


if __name__ == "__main__":
    main(*sys.argv[1:])
