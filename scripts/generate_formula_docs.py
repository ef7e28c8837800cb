#!/usr/bin/env python3
"""Writes formulas.md of the site from the table of formulas: `stepsim formula --json -`.

    scripts/generate_formula_docs.py STEPSIM FOLDER
"""
import json
import pathlib
import subprocess
import sys

HEAD = """# Formulas

This page has every closed form of `stepsim formula`, by group: what it says, where it comes from, where it
holds, and where its sources print it wrongly.

- `stepsim formula fsdp` lists the formulas about a subject.
- `stepsim formula E7` explains one.
- `stepsim formula E7 B=48000 N=64 F=32768 MX=2` evaluates it.
- `X=?` in place of a value solves for that input.

Units are B, s, B/s, FLOP and FLOP/s; counts are plain numbers. The bandwidth of a TPU's axis counts both
directions of a ring. The egress of a GPU counts one direction. The V of a collective is the whole array.
"""


def symbol_text(symbol):
    unit = f" [{symbol['unit']}]" if symbol["unit"] else ""
    default = f", default {symbol['default']:g}" if symbol["default"] is not None else ""
    return f"`{symbol['symbol']}`{unit} {symbol['meaning']}{default}"


def formula_text(formula):
    unit = f"  [{formula['unit']}]" if formula["unit"] else ""
    lines = [
        f"### {formula['id']}: {formula['title']}",
        "",
        f"    {formula['result']} = {formula['expression']}{unit}",
        "",
        "; ".join(symbol_text(symbol) for symbol in formula["inputs"]) + ".",
        "",
        f"Source: {formula['source']}.",
    ]
    if formula["conditions"]:
        lines += ["", "Holds where: " + "; ".join(formula["conditions"]) + "."]
    if formula["correction"]:
        lines += ["", "Printed wrongly: " + formula["correction"]]
    lines += [
        "",
        f"Example: `stepsim formula {formula['id']} {formula['example']}` gives {formula['example_text']}.",
    ]
    if formula["tested_by"]:
        lines += ["", "Tested by: " + ", ".join(f"`{row}`" for row in formula["tested_by"]) +
                  " ([validation.md](validation.md))."]
    return "\n".join(lines) + "\n"


def page(formulas):
    parts = [HEAD]
    group = None
    for formula in formulas:
        if formula["group"] != group:
            group = formula["group"]
            parts.append(f"## {formula['id'][0]}: {group}\n")
        parts.append(formula_text(formula))
    return "\n".join(parts)


def main(stepsim, folder):
    answer = subprocess.run(
        [stepsim, "formula", "--json", "-"], check=True, capture_output=True, text=True
    )
    pathlib.Path(folder, "formulas.md").write_text(page(json.loads(answer.stdout)))


if __name__ == "__main__":
    main(*sys.argv[1:])
