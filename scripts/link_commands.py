#!/usr/bin/env python3
"""Makes links of commands that print what a page of the site says: link_commands.py FOLDER-OF-PAGES.

A written page says `stepsim help plan`, which everybody can run; on the site that leads to the page with the same text.
"""
import pathlib
import re
import sys

PAGES = {
    "stepsim help": "commands.md",
    "stepsim help plan": "plan-keys.md",
    "stepsim help software": "software-keys.md",
    "stepsim help pass": "pass-keys.md",
    "stepsim help simulation": "simulation-fields.md",
    "stepsim help model": "model-fields.md",
    "stepsim help chip": "chip-fields.md",
    "stepsim help host": "chip-fields.md#fields-of-hosts",
    "stepsim help library": "library-fields.md",
    "stepsim help cluster": "cluster-fields.md",
    "stepsim help topologies": "cluster-fields.md",
    "stepsim help engine": "engine-keys.md",
    "stepsim help requests": "engine-keys.md#keys-of-requests",
    "stepsim help failures": "failure-fields.md",
    "stepsim help results": "results.md",
    "stepsim formula": "formulas.md",
    "stepsim validate": "validation.md",
    "stepsim catalog experiments": "catalog.md",
    "stepsim accuracy": "accuracy-tables.md",
}
# A fenced block, a link, a heading, or code that is none of these.
PIECES = re.compile(r"^```.*?^```$|^#.*?$|\[[^\]]*\]\([^)]*\)|`([^`\n]+)`", re.M | re.S)


def linked(text, subcommands, up):
    def replace(piece):
        command = piece[1]
        target = PAGES.get(re.sub(r"(?<=help results) .*", "", command or ""))
        if command and command.removeprefix("stepsim help ") in subcommands:
            target = "commands.md#" + command.removeprefix("stepsim help ")
        return f"[`{command}`]({up}{target})" if target else piece[0]
    return PIECES.sub(replace, text)


def main(folder):
    folder = pathlib.Path(folder)
    subcommands = re.findall(r"^## (\S+)$", (folder / "commands.md").read_text(encoding="utf-8"), re.M)
    for page in folder.rglob("*.md"):
        if page.name not in {target.partition("#")[0] for target in PAGES.values()}:
            up = "../" * (len(page.relative_to(folder).parts) - 1)
            page.write_text(linked(page.read_text(encoding="utf-8"), subcommands, up), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
