#!/usr/bin/env python3
"""Draws every pipeline schedule as an SVG into docs/schedules/: what `stepsim schedule --plot` draws.

    scripts/draw_schedules.py build/release/stepsim           writes the files
    scripts/draw_schedules.py build/release/stepsim --check   fails if one would change
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "docs" / "schedules"

# Four stages and eight micro-batches with F = B = W, but for what can't be shown so.
OPTIONS = {
    "naive": ["--microbatches", "1"],
    "naive_sequential": ["--microbatches", "2"],
    # A case in which it beats the published schedules: 10, 12, 8 and the memory of ZB-2p.
    "optimal": ["--memory-limit", "8", "--forward-time", "10ms", "--backward-input-time", "12ms",
                "--backward-weight-time", "8ms"],
    "zb_auto_2p": ["--forward-time", "10ms", "--backward-input-time", "12ms",
                   "--backward-weight-time", "8ms"],
}


def names(stepsim):
    """Every schedule that `stepsim schedule` lists."""
    text = subprocess.run([stepsim, "schedule"], check=True, capture_output=True, text=True).stdout
    return re.findall(r"^  (\w+) +(?:1|2|any|even) ", text, re.M)


def draw(stepsim, name, path):
    options = OPTIONS.get(name, [])
    microbatches = [] if "--microbatches" in options else ["--microbatches", "8"]
    subprocess.run([stepsim, "schedule", name, "--stages", "4", *microbatches, *options, "--plot", path],
                   check=True, stdout=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stepsim")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    stale = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names(arguments.stepsim):
            drawn = pathlib.Path(folder) / f"{name}.svg"
            draw(arguments.stepsim, name, drawn)
            path = FOLDER / drawn.name
            if not arguments.check:
                path.write_bytes(drawn.read_bytes())
            elif not path.exists() or path.read_bytes() != drawn.read_bytes():
                stale.append(name)
    if stale:
        print("run scripts/draw_schedules.py: pictures that would change:", ", ".join(stale))
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
