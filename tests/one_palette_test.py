#!/usr/bin/env python3
"""Fails where a source names a colour that sim/base/palette.cc doesn't have: one_palette_test.py ROOT."""
import pathlib
import re
import sys

FOLDERS = ("sim", "topology", "traces", "analysis", "pages", "cli", "bindings", "scripts")
ENDINGS = (".cc", ".h", ".js", ".css", ".py")
COLOUR = re.compile(r"#[0-9a-fA-F]{6}\b")
OF_TEXT = {"#000000", "#ffffff"}  # text on a colour


def main():
    root = pathlib.Path(sys.argv[1])
    palette = root / "sim/base/palette.cc"
    known = set(COLOUR.findall(palette.read_text())) | OF_TEXT
    wrong = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in ENDINGS or "node_modules" in path.parts or path == palette:
                continue
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                if path.suffix == ".h" and line.lstrip().startswith("//"):
                    continue
                wrong += [f"{path.relative_to(root)}:{number}: {colour}"
                          for colour in COLOUR.findall(line) if colour not in known]
    if wrong:
        print("colours that sim/base/palette.cc doesn't have:", *wrong, sep="\n  ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
