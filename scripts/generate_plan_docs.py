#!/usr/bin/env python3
"""Writes docs/plan-keys.md from the table of plan keys, so that page and program cannot disagree.

    scripts/generate_plan_docs.py build/release/stepsim            writes the page
    scripts/generate_plan_docs.py build/release/stepsim --check    fails if the page is not fresh
"""
import pathlib
import subprocess
import sys
import textwrap

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "plan-keys.md"
COLUMNS = 110

HEAD = """# Plan keys

The keys of a plan are the fields of the group `plan` in files. On the command line they are joined by commas, with
dashes or underscores: `--plan tp=8,global-batch=1024`, `--set plan.global_batch=1024`. `stepsim help plan` shows this
page in a terminal, `stepsim help plan tp` one key.

`catalog` starts from a plan of the catalog; the other keys go over it. `true` and `false` are written out. A key that
nothing in the plan acts on is refused. How the keys work together, with measurements: [plans.md](plans.md).

Written by `scripts/generate_plan_docs.py` from the program; change `schedules/plan/plan_fields.cc`, not this page.

"""


def wrapped(markdown):
    lines = []
    for line in markdown.rstrip("\n").split("\n"):
        is_text = line and not line.startswith("#")
        lines += textwrap.wrap(line, COLUMNS, break_on_hyphens=False) if is_text else [line]
    return "\n".join(lines) + "\n"


def main(arguments):
    if len(arguments) not in (1, 2) or arguments[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    answer = subprocess.run(
        [arguments[0], "help", "plan", "--markdown"], check=True, capture_output=True, text=True
    )
    text = HEAD + wrapped(answer.stdout)
    if len(arguments) == 1:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        sys.exit(f"{PAGE.name} is not fresh: run scripts/generate_plan_docs.py STEPSIM")


if __name__ == "__main__":
    main(sys.argv[1:])
