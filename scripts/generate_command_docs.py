#!/usr/bin/env python3
"""Writes commands.md of the site: every subcommand with its options, from the program's own tables.

    scripts/generate_command_docs.py STEPSIM FOLDER
"""
import pathlib
import re
import subprocess
import sys

HEAD = """# Subcommands

`stepsim help` lists them, `stepsim help NAME` and `man stepsim-NAME` show the same as this page. Options can be written
`--name value` or `--name=value`. Quantities take units: 64MiB, 400Gbps, 50GB/s, 5us, 989TFLOPS; bare numbers are in bytes,
bytes a second, seconds and FLOP a second.

"""


def plain(text):
    """A line of a man page as text."""
    text = re.sub(r"\\f[BIR]", "", text.replace("\\-", "-").replace("\\&", ""))
    return text.replace("\\e", "\\")


def cell(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "&#124;")


def section(stepsim, name):
    page = subprocess.run([stepsim, "help", "man", name], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    summary = plain(re.search(r"\.SH NAME\n\S+ \\- (.*)", page)[1])
    synopsis = plain(re.search(r"\.SH SYNOPSIS\n(.*)", page)[1])
    description = plain(re.search(r"\.nf\n(.*?)\n\.fi", page, re.S)[1])
    lines = [f"## {name}", "", summary[0].upper() + summary[1:] + f": `{synopsis.strip()}`", "",
             "```text", description, "```", "", "| option | |", "|---|---|"]
    for flag, text in re.findall(r"\.TP\n(.*)\n(.*)\n", page):
        lines.append(f"| <code>{cell(plain(flag))}</code> | {cell(plain(text))} |")
    return "\n".join(lines) + "\n"


def main(stepsim, folder):
    overview = subprocess.run([stepsim, "help"], check=True, text=True,
                              stdout=subprocess.PIPE).stdout
    names = re.findall(r"^  stepsim ([a-z][a-z-]*)", overview.split("Topics:")[0], re.M)
    text = HEAD + "\n".join(section(stepsim, name) for name in names)
    pathlib.Path(folder, "commands.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
