#!/usr/bin/env python3
"""Writes docs/gallery/: figures of reports as a Chromium draws them, and docs/gallery.md, which has the command
that makes each.

    scripts/draw_gallery.py build/release/stepsim

What a browser draws differs from version to version, so no test compares the pictures.
"""
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/end_to_end"))
from browser import Browser

MAIN_JOB = "run llama3-70b-dgx-h100-512"
SEARCH = ("search --model llama3-8b --cluster dgx-h100-8 --global-batch 64 --sequence 8192 "
          "--within tp=1,2,4,8,pp=1,2,zero=0..3 --fix microbatch=1")
SERVE = ("serve --model llama3-70b --cluster dgx-h100-8 --plan tp=8 "
         "--requests poisson:rate=4,count=1000,input=1024,output=uniform:103-128")
# Name of the picture, command, figure in its report, what it shows.
PICTURES = [
    ("step", MAIN_JOB, "breakdown", "Where the step of each pipeline stage goes"),
    ("pipeline", MAIN_JOB, "gantt", "The pipeline over time, with the critical path"),
    ("memory", MAIN_JOB, "memory", "Memory of a rank by category"),
    ("cluster", MAIN_JOB, "cluster", "The cluster, coloured by load"),
    ("roofline", MAIN_JOB, "roofline", "All kernels against the roofs of the chip"),
    ("sensitivity", MAIN_JOB, "tornado", "What 10 % more or less of each thing would change"),
    ("search", SEARCH, "front", "Plans that no other beats in step time and memory"),
    ("serving", SERVE, "latency", "How long requests take"),
]


def main():
    stepsim = pathlib.Path(sys.argv[1]).resolve()
    folder = ROOT / "docs/gallery"
    folder.mkdir(exist_ok=True)
    text = ("# Gallery\n\n<!-- Made by scripts/draw_gallery.py. -->\n\nFigures of [reports](report.md). In a browser they "
            "zoom, and say what is under the pointer.\n")
    pages = {}
    with tempfile.TemporaryDirectory() as scratch, Browser() as browser:
        for name, command, figure, words in PICTURES:
            if command not in pages:
                path = pathlib.Path(scratch) / f"{len(pages)}.html"
                subprocess.run([stepsim, *command.split(), "--html", path], check=True, stdout=subprocess.DEVNULL)
                pages[command] = browser.open(path, width=960)
            box = pages[command].value(f"""(() => {{
                const place = document.querySelector('[data-figure={figure}]');
                const above = place.previousElementSibling;
                const top = (above ? above : place).getBoundingClientRect().y, box = place.getBoundingClientRect();
                return {{x: box.x, y: top + scrollY - 4, width: box.width, height: box.bottom - top + 8}}; }})()""")
            pages[command].screenshot(folder / f"{name}.png", box)
            text += (f"\n## {words}\n\n![{words}](gallery/{name}.png)\n\n"
                     f"```\nstepsim {command} --html report.html\n```\n")
    (ROOT / "docs/gallery.md").write_text(text)


if __name__ == "__main__":
    main()
