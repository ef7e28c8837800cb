#!/usr/bin/env python3
"""Writes bindings/stepsim/_plan.pyi: the keys of a plan as keywords with their types and explanations.

    PYTHONPATH=build/release/python /usr/bin/python3 scripts/generate_python_stubs.py            writes it
    ...                                                                               --check    compares
"""
import pathlib
import re
import sys
import textwrap

import stepsim

TARGET = pathlib.Path(__file__).resolve().parent.parent / "bindings/stepsim/_plan.pyi"
HEAD = '''"""Plan: how the work of a step is divided. Made by scripts/generate_python_stubs.py."""
from typing import Any, List, Literal, Optional, Sequence, Union

from ._objects import Part

def schedule_text(ranks: Any) -> str: ...

class Plan(Part):
'''
INTRODUCTION = """A plan: `Plan(tp=8, pp=4, dp=16, microbatch=1, global_batch=1024, sequence=8192)`.

`catalog` is a plan of the catalog; the keys differ from it. `stepsim help plan` says more about each.
"""


def type_of(key):
    accepts = key.accepts
    if key.name == "schedule":  # or an order of one's own
        return "Union[str, Sequence[Sequence[str]]]"
    if accepts.startswith("a whole number"):
        return "int"
    if accepts == "true or false":
        return "bool"
    if accepts == "a number":
        return "float"
    if accepts.startswith("a time"):
        return "Union[str, float]"
    words = re.split(r", | or ", accepts)
    if len(words) > 1 and all(re.fullmatch(r"[a-z0-9_]+", word) for word in words):
        number = all(word.isdigit() for word in words)
        return "Literal[" + ", ".join(word if number else f'"{word}"' for word in words) + "]"
    return "str"


def stub():
    lines = ["    def __init__(self, catalog: Optional[str] = ..., *,"]
    texts = []
    for key in stepsim.plan_keys():
        if key.group != "plan":
            continue
        lines.append(f"                 {key.name}: Optional[{type_of(key)}] = ...,")
        default = f" (default: {key.default})" if key.default else ""
        texts.append(textwrap.fill(f"{key.name}: {key.help}{default}", 96,
                                   subsequent_indent="    "))
    lines[-1] = lines[-1].rstrip(",") + ") -> None:"
    text = INTRODUCTION + "\n" + "\n".join(texts)
    doc = textwrap.indent('"""' + text.replace("\\", "\\\\") + '\n"""', "        ")
    return HEAD + "\n".join(lines) + "\n" + doc + "\n"


def main():
    text = stub()
    if "--check" not in sys.argv[1:]:
        TARGET.write_text(text, encoding="utf-8")
    elif TARGET.read_text(encoding="utf-8") != text:
        sys.exit(f"{TARGET} is not what the keys are; run scripts/generate_python_stubs.py")


if __name__ == "__main__":
    main()
