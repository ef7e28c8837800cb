#!/usr/bin/env python3
"""Draws docs/gallery/: figures of reports as a Chromium draws them, pictures that commands write, drawings of
topologies by Graphviz; and gallery.md of the site, which has the command that makes each.

    scripts/draw_gallery.py build/release/stepsim      draws them
    scripts/draw_gallery.py --page FOLDER              writes the page

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

# Name of the picture, command with FILE in it, what it shows. Those of .dot go through Graphviz.
DRAWINGS = [
    ("schedule.svg", "schedule zb_h1 --stages 4 --microbatches 8 --plot FILE",
     "A schedule: passes with their micro-batches, and what each stage holds"),
    ("timeline.svg", "run llama3-8b-dgx-h100-8 --plan tp=1,pp=4,dp=2,global-batch=16 --plot-timeline FILE",
     "A run over time, one rank of each stage"),
    ("tornado.svg", "run llama3-8b-dgx-h100-8 --sensitivity --plot-sensitivity FILE", "What 10 % more or less changes"),
    ("collective.svg", "collective all-reduce --cluster dgx-h100-64 --sweep 64KiB:1GiB --plot FILE",
     "A collective over its size, and where the library changes its way"),
    ("front.svg", SEARCH + " --plot FILE", "The front of a search"),
    ("sweep.svg", "sweep llama3-8b-dgx-h100-8 --over plan.sequence=2048,4096,8192,16384 --over plan.zero=1,3 --plot FILE "
     "x=plan.sequence series=plan.zero", "Many points of a sweep"),
    ("serving-front.svg", "serve-search --model llama3-8b --cluster dgx-h100-8 --layouts tp=1;tp=2;tp=4;tp=8 --input 1024 "
     "--output 128 --svg FILE", "Throughput of a chip against the speed of a user"),
    ("goodput.svg", "goodput llama3-405b-dgx-h100-16384 --failures llama3 --tokens 15.6e12 --plot FILE",
     "A training with failures: one run of it, its parts, other intervals and spares"),
    ("nvl72.dot", "topology gb200-nvl72-72 --dot FILE", "A rack of 72"),
    ("superpod.dot", "topology dgx-h100-16384 --dot FILE", "2,048 nodes under three tiers"),
    ("dragonfly.dot", "topology dragonfly-h100-1056 --dot FILE", "A dragonfly"),
    ("pod.dot", "topology v5p-16x20x28 --dot FILE", "A TPU pod of 8,960 chips"),
]


def picture(words, shown, command):
    return f"\n## {words}\n\n![{words}](gallery/{shown})\n\n```\n{command}\n```\n"


def page():
    text = "# Gallery\n\nFigures of [reports](report.md). In a browser they zoom, and say what is under the pointer.\n"
    for name, command, _, words in PICTURES:
        text += picture(words, f"{name}.png", f"stepsim {command} --html report.html")
    text += ("\n# Pictures that commands write\n\nThe books' figures are in [figures.md](figures.md), those of studies in "
             "[validation.md](validation.md), all schedules in [schedules.md](schedules.md).\n")
    for name, command, words in DRAWINGS:
        stem, after = name.removesuffix(".dot"), ""
        if stem != name:
            after = f"\ndot -Tsvg {name} -o {stem}.svg"
        asked = " ".join("'" + word + "'" if ";" in word else word for word in command.split())
        text += picture(words, f"{stem}.svg" if after else name, f"stepsim {asked.replace('FILE', name)}{after}")
    text += ("\n# Schedules\n\nTime goes to the right, a row is a rank, the number a micro-batch; the curve below is what the rank holds. "
             "Forwards are green, backwards and input gradients blue, weight gradients orange, fused passes sky blue, odd chunks "
             "paler ([schedules.md](schedules.md)).\n")
    for path in sorted((ROOT / "docs/schedules").glob("*.svg")):
        text += f"\n## `{path.stem}`\n\n![{path.stem}](schedules/{path.name})\n"
    return text


def draw(stepsim, folder):
    for name, command, _ in DRAWINGS:
        file = folder / name
        subprocess.run([stepsim, *[str(file) if word == "FILE" else word for word in command.split()]], check=True,
                       stdout=subprocess.DEVNULL)
        if file.suffix == ".dot":
            subprocess.run(["dot", "-Tsvg", file, "-o", file.with_suffix(".svg")], check=True)
            file.unlink()
    pages = {}
    with tempfile.TemporaryDirectory() as scratch, Browser() as browser:
        for name, command, figure, _ in PICTURES:
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


def main():
    if sys.argv[1] == "--page":
        pathlib.Path(sys.argv[2], "gallery.md").write_text(page())
    else:
        draw(pathlib.Path(sys.argv[1]).resolve(), ROOT / "docs/gallery")


if __name__ == "__main__":
    main()
