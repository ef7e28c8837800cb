#!/usr/bin/env python3
"""Draws every pipeline schedule as an SVG into docs/schedules/, from what `stepsim schedule` says.

    scripts/draw_schedules.py build/release/stepsim           writes the files
    scripts/draw_schedules.py build/release/stepsim --check   fails if one would change

A row is a rank, time goes to the right: forwards blue, input gradients green, weight gradients
yellow, whole backwards teal; paler on odd chunks. A fused op is drawn as its two halves, one above
the other. The number is the micro-batch.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

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

# Fill of even and odd chunks, by op.
COLOURS = {"F": ("#4f83cc", "#a9c4ea"), "B": ("#3f9b63", "#a3d6b5"),
           "W": ("#e0b43c", "#f3deA3".lower()), "BW": ("#2f8f94", "#9ed3d5")}
ROW, GAP, LEFT, TOP = 22, 4, 46, 6
LEAST_WIDTH = 13  # of the shortest op, so that its number can be read


def names(stepsim):
    """Every schedule that `stepsim schedule` lists."""
    text = subprocess.run([stepsim, "schedule"], check=True, capture_output=True, text=True).stdout
    return re.findall(r"^  (\w+) +(?:1|2|any|even) ", text, re.M)


def schedule(stepsim, name):
    options = OPTIONS.get(name, [])
    command = [stepsim, "schedule", name, "--stages", "4", "--json", "-", *options]
    if "--microbatches" not in options:
        command += ["--microbatches", "8"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def halves(op):
    """[(kind, micro-batch, chunk)] of an op: two for a fused one."""
    kind, rest = re.fullmatch(r"([A-Z]+)(.*)", op).groups()
    parts = [part.split(".") for part in rest.split("/")]
    kinds = ["F", "BW"] if kind == "FB" else [kind]
    return [(k, part[0], int(part[1])) for k, part in zip(kinds, parts)]


def times_of(answer):
    """How long F, B and W take, from what the last rank does without waiting; seconds."""
    options = OPTIONS.get(answer["schedule"], [])
    times = {"F": 1.0, "B": 1.0, "W": 1.0}
    for kind, option in (("F", "--forward-time"), ("B", "--backward-input-time"),
                         ("W", "--backward-weight-time")):
        if option in options:
            times[kind] = float(options[options.index(option) + 1].removesuffix("ms")) / 1000
    times["BW"] = times["B"] + times["W"]
    times["FB"] = times["F"] + times["BW"]
    return times


def draw(answer):
    times = times_of(answer)
    scale = max(LEAST_WIDTH / min(times.values()), 440 / answer["makespan_s"])
    width = LEFT + answer["makespan_s"] * scale + 8
    height = TOP + answer["stages"] * (ROW + GAP) + 4
    boxes = {}
    labels = []
    for rank, (ops, starts) in enumerate(zip(answer["per_rank"], answer["start_s"])):
        top = TOP + rank * (ROW + GAP)
        for op, start in zip(ops, starts):
            kind = re.match("[A-Z]+", op).group()
            parts = halves(op)
            x, w = LEFT + start * scale, times[kind] * scale
            tall = ROW / len(parts)
            for i, (half, microbatch, chunk) in enumerate(parts):
                y = top + i * tall
                boxes.setdefault(COLOURS[half][chunk % 2], []).append(
                    f"M{x:.1f} {y:.1f}h{w - 1:.1f}v{tall - 0.5:.1f}h{1 - w:.1f}z")
                labels.append(f'<text x="{x + w / 2 - 0.5:.1f}" y="{y + tall / 2 + 3.2:.1f}"'
                              f'{"" if chunk % 2 == 0 and half != "W" else " class=d"}>'
                              f"{microbatch}</text>".replace("class=d", 'class="d"'))
    rows = [f'<text x="2" y="{TOP + rank * (ROW + GAP) + ROW / 2 + 4:.1f}" class="r">rank {rank}'
            "</text>" for rank in range(answer["stages"])]
    back = "".join(f"M{LEFT} {TOP + rank * (ROW + GAP)}h{width - LEFT - 8:.1f}v{ROW}H{LEFT}z"
                   for rank in range(answer["stages"]))
    paths = [f'<path fill="{colour}" d="{"".join(shapes)}"/>' for colour, shapes in boxes.items()]
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}">',
        "<style>text{font:9px sans-serif;fill:#fff;text-anchor:middle}.d{fill:#222}"
        ".r{font-size:11px;fill:#666;text-anchor:start}</style>",
        f"<title>{answer['schedule']}: {answer['stages']} stages, {answer['microbatches']} "
        "micro-batches</title>",
        f'<path fill="#8882" d="{back}"/>', *paths, *labels, *rows, "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stepsim")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    stale = []
    for name in names(arguments.stepsim):
        text = draw(schedule(arguments.stepsim, name))
        path = FOLDER / f"{name}.svg"
        if not arguments.check:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            stale.append(name)
    if stale:
        print("run scripts/draw_schedules.py: pictures that would change:", ", ".join(stale))
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
