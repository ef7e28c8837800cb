#!/usr/bin/env python3
"""Draws docs/pictures/report.svg: the report of a run as a terminal shows it.

    scripts/draw_report.py build/release/stepsim [--check]
"""
import html
import pathlib
import subprocess
import sys

TARGET = pathlib.Path(__file__).resolve().parent.parent / "docs/pictures/report.svg"
RUN = ["run", "llama3-70b-dgx-h100-512"]
LINE, CHARACTER, MARGIN = 17, 7.8, 18
BLOCKS = " ▏▎▍▌▋▊▉█"  # eighths of a character
HEADINGS = ("Published", "Where the step goes", "Critical path", "Memory", "Busiest links")


def drawn(text):
    lines = text.split("\nSimulator")[0].rstrip().splitlines()
    width = 2 * MARGIN + CHARACTER * max(map(len, lines))
    height = 2 * MARGIN + LINE * (len(lines) + 1)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
             f'viewBox="0 0 {width:.0f} {height}" role="img" aria-label="The report of a run">',
             f'<rect width="{width:.0f}" height="{height}" rx="8" fill="#ffffff" stroke="#d0d7de"/>',
             '<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="13" '
             'fill="#1b1f24" xml:space="preserve">']
    for row, line in enumerate(["$ stepsim " + " ".join(RUN), *lines]):
        y = MARGIN + LINE * row
        eighths = sum(BLOCKS.index(one) for one in line if one in BLOCKS[1:])
        if eighths:
            begin = next(i for i, one in enumerate(line) if one in BLOCKS[1:])
            parts.append(f'<rect x="{MARGIN + CHARACTER * begin:.1f}" y="{y + 3}" height="11" '
                         f'width="{CHARACTER * eighths / 8:.1f}" fill="#548c60"/>')
        bold = ' font-weight="bold"' if line.startswith(HEADINGS) or row < 2 else ""
        clean = "".join(" " if one in BLOCKS else one for one in line)
        at = 0
        # Each word at its place, so that columns stand below one another in every font.
        for word in clean.split():
            at = clean.index(word, at)
            parts.append(f'<text x="{MARGIN + CHARACTER * at:.1f}" y="{y + 13}" '
                         f'textLength="{CHARACTER * len(word):.1f}"{bold}>{html.escape(word)}</text>')
            at += len(word)
    return "\n".join([*parts, "</g>", "</svg>"]) + "\n"


def main():
    text = subprocess.run([sys.argv[1], *RUN], check=True, text=True, stdout=subprocess.PIPE).stdout
    picture = drawn(text)
    if "--check" not in sys.argv[2:]:
        TARGET.write_text(picture, encoding="utf-8")
    elif TARGET.read_text(encoding="utf-8") != picture:
        sys.exit("docs/pictures/report.svg is not what the program prints; run scripts/draw_report.py")


if __name__ == "__main__":
    main()
