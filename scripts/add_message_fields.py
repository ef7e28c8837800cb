#!/usr/bin/env python3
"""Adds to the messages of proto/ what tables of fields have and messages lack.

    scripts/add_message_fields.py build/release/stepsim

A plan, software or pass key gets a line in the message Plan, a field of a transport one in Transport, a topology a message of its own and a line in Cluster and
Block. Build again afterwards. Fields of groups and lists are written by hand.
"""

import pathlib
import re
import subprocess
import sys

PROTO = pathlib.Path(__file__).resolve().parent.parent / "proto"
TYPES = {"a whole number": "int64", "a number": "double", "true or false": "bool"}


def fields_of(stepsim, *topic):
    """The names and types of a topic's fields, but those of groups."""
    page = subprocess.run(
        [stepsim, "help", *topic, "--markdown"], check=True, capture_output=True, text=True
    ).stdout
    found = re.findall(r"^### `(\w+)`\n\nValue: (.*)", page, re.MULTILINE)
    for name, value in found:
        if f"### `{name}." in page or f"### `{name}[" in page:
            continue
        kinds = [kind for text, kind in TYPES.items() if re.match(rf"{text}\b", value)]
        yield name, kinds[0] if kinds else "string"


def extended(text, message, lines):
    """The text of a file with lines at the end of a message, or of its oneof; {} becomes a free number."""
    begin = text.index(f"message {message} {{")
    end = text.index("\n}\n", begin)
    body = text[begin:end]
    number = max((int(n) for n in re.findall(r"= (\d+);", body)), default=0)
    at = body.index("\n  }", body.index("oneof topology")) if "oneof topology" in body else len(body)
    for line in lines:
        number += 1
        line = "\n" + line.format(number)
        body = body[:at] + line + body[at:]
        at += len(line)
    return text[:begin] + body + text[end:]


def add_keys(stepsim):
    path = PROTO / "plan.proto"
    text = path.read_text()
    keys = [key for group in ("plan", "software", "pass") for key in fields_of(stepsim, group)]
    missing = [(name, kind) for name, kind in keys if not re.search(rf" {name} = ", text)]
    lines = [f"  optional {kind} {name} = {{}};" for name, kind in missing]
    path.write_text(extended(text, "Plan", lines))


def add_transport(stepsim):
    path = PROTO / "transport.proto"
    text = path.read_text()
    missing = [(name, kind) for name, kind in fields_of(stepsim, "transport") if not re.search(rf" {name} = ", text)]
    lines = [f"  optional {kind} {name} = {{}};" for name, kind in missing]
    path.write_text(extended(text, "Transport", lines))


def add_topologies(stepsim):
    path = PROTO / "cluster.proto"
    text = path.read_text()
    listed = subprocess.run(
        [stepsim, "help", "topologies"], check=True, capture_output=True, text=True
    ).stdout
    for kind in re.findall(r"^  (\w+) ", listed, re.MULTILINE):
        if re.search(rf" {kind} = ", text):
            continue
        message = "".join(word.capitalize() for word in kind.split("_"))
        for outer in ("Cluster", "Block"):
            text = extended(text, outer, [f"    {message} {kind} = {{}};"])
        text += f"\nmessage {message} {{\n}}\n"
        lines = [f"  optional {of} {name} = {{}};" for name, of in fields_of(stepsim, "topologies", kind)]
        text = extended(text, message, lines)
    path.write_text(text)


def main(arguments):
    if len(arguments) != 1:
        sys.exit(__doc__)
    add_keys(arguments[0])
    add_transport(arguments[0])
    add_topologies(arguments[0])


if __name__ == "__main__":
    main(sys.argv[1:])
