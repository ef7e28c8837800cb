#!/usr/bin/env python3
"""Writes validation.md of the site, and validation/ with its pictures, from `stepsim validate`.

    scripts/generate_validation_docs.py STEPSIM FOLDER [WORD...]    of these studies alone, to be quick
"""
import json
import pathlib
import subprocess
import sys

MODELS_OF_NETWORKS = ["latency-bandwidth", "flow", "packet"]

HEAD = """# Formulas against simulation

This page compares what the books say about training and serving at scale with simulations. These commands
run its rows:

    stepsim validate                 all rows
    stepsim validate fsdp            the rows about a subject: any word of a chapter, a statement or a regime
    stepsim validate S5              one study
    stepsim validate B1              the rows that test a formula
    stepsim validate --fidelity all --plot DIR

Each row is one regime. **Predicted** is the value of the formula, and **simulated** that of the simulation.
**Expected** is the range of the difference that the mechanism explains. A comment above the row in the code
derives it by hand before the row runs; a test fails if the simulation leaves the range. A formula **holds** in
a regime if the difference is within the tolerance of the regime, which is 1 % unless the row says otherwise.

The values are those of the `flow` network model. If another model gives another result, a second table has it.
The second column has the id of the formula, which [formulas.md](formulas.md) explains.

The statements are listed by chapter of the book or lecture that makes them. `stepsim validate ID` tests a
statement by its id. `stepsim formula ID` tries its formula with your own numbers.

"""


def number(value, unit):
    """1.5e-05 s as "15 us"; counts with separators."""
    if unit in ("s", "B", "B/s"):
        for factor, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""),
                               (1e-3, "m"), (1e-6, "u"), (1e-9, "n"), (1e-12, "p")):
            if abs(value) >= factor * (1 - 1e-9):
                return f"{value / factor:.4g} {prefix}{unit}"
        return f"{value:.4g} {unit}"
    text = f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"
    return f"{text} {unit}".strip()


def percent(value):
    return f"{100 * value:+.2f} %".replace("-0.00 %", "+0.00 %")


def cell(text):
    return text.replace("|", "\\|")


def verdict(row):
    if not row["as_expected"]:
        return "**not as expected**"
    return "holds" if row["holds"] else "differs"


def study_text(study, rows, pictures):
    lines = [f"## {study['id']}: {study['title']}", "",
             f"> {study['claim']}", ">", f"> {study['source']}", ""]
    for picture in pictures:
        lines += [f"![{picture.stem}](validation/{picture.name})", ""]
    lines += ["| row | formula | regime | predicted | simulated | difference | expected | | why |",
              "|---|---|---|--:|--:|--:|---|---|---|"]
    others = []
    for by_model in rows:
        row = by_model["flow"]
        low, high = row["expected_difference"]
        simulated = number(row["simulated"], row["unit"]) if not row["skipped"] else "-"
        difference = percent(row["relative_difference"]) if not row["skipped"] else row["skipped"]
        lines.append(
            f"| `{row['id'].split('.', 1)[1]}` | {row['formula']} | {cell(row['regime'])} "
            f"| {number(row['predicted'], row['unit'])} | {simulated} | {difference} "
            f"| {percent(low)} to {percent(high)} | {verdict(row)} | {cell(row['why'])} |")
        shown = [difference_text(by_model[model]) for model in MODELS_OF_NETWORKS]
        if len({text for text in shown if text is not None}) > 1 or None in shown:
            others.append(f"| `{row['id'].split('.', 1)[1]}` | " + " | ".join(
                text if text is not None else "skipped: " + cell(by_model[model]["skipped"])
                for model, text in zip(MODELS_OF_NETWORKS, shown)) + " |")
    lines.append("")
    if others:
        lines += ["| row, by network model | latency-bandwidth | flow | packet |",
                  "|---|--:|--:|--:|", *others, ""]
    if study["finding"]:
        lines += [study["finding"], ""]
    return "\n".join(lines)


def difference_text(row):
    return None if row["skipped"] else f"{100 * row['relative_difference']:+.1f} %".replace("-0.0", "+0.0")


def page(answer, pictures):
    rows = {}
    for case in answer["cases"]:
        rows.setdefault(case["id"], {})[case["fidelity"]] = case
    flow = [by_model["flow"] for by_model in rows.values()]
    holding = sum(row["holds"] for row in flow)
    unexpected = sum(not row["as_expected"] for row in flow)
    parts = [HEAD]
    parts.append(
        f"{len(answer['studies'])} studies, {len(flow)} rows: the formula holds in {holding}, differs as "
        f"derived in {len(flow) - holding - unexpected}, {unexpected} are not as expected.\n")
    head = ["| | the statement | rows | hold | largest difference |", "|---|---|--:|--:|--:|"]
    by_source = {}
    texts = []
    for study in answer["studies"]:
        mine = [by_model for key, by_model in rows.items()
                if key.split(".", 1)[0] == study["id"]]
        worst = max((by_model["flow"]["relative_difference"] for by_model in mine
                     if not by_model["flow"]["skipped"]), key=abs)
        link = f"[{study['id']}](#{anchor(study)})"
        by_source.setdefault(study["source"], []).append(
            f"| {link} | {cell(study['claim'])} | {len(mine)} "
            f"| {sum(by_model['flow']['holds'] for by_model in mine)} | {percent(worst)} |")
        texts.append(study_text(study, mine, [
            picture for picture in pictures if picture.name.split("-", 1)[0] == study["id"]]))
    for source in sorted(by_source, key=chapter):
        parts.append("\n".join([f"**{source}**", "", *head, *by_source[source]]) + "\n")
    return "\n".join(parts + texts)


def chapter(source):
    """The book's parts in order, then the others."""
    words = source.split(", part ")
    return (0, int(words[1].split(" ")[0]), "") if len(words) > 1 else (1, 0, source)


def anchor(study):
    """As code forges make it of a heading."""
    heading = f"{study['id']}: {study['title']}".lower()
    return "".join(c for c in heading if c.isalnum() or c in " -").replace(" ", "-")


def main(stepsim, folder, *words):
    pictures = pathlib.Path(folder, "validation")
    pictures.mkdir(exist_ok=True)
    answer = subprocess.run([stepsim, "validate", *words, "--fidelity", "all", "--plot", pictures,
                             "--json", "-"], check=True, capture_output=True, text=True).stdout
    text = page(json.loads(answer), sorted(pictures.glob("*.svg")))
    pathlib.Path(folder, "validation.md").write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
