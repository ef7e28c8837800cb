#!/usr/bin/env python3
"""Runs the same experiments with the release and the debug binary, and twice with the first: JSON
(without "simulator") and traces must be byte-identical.

usage: debug_equals_release_test.py RELEASE_BINARY DEBUG_BINARY
"""
import json
import pathlib
import subprocess
import sys
import tempfile

EXPERIMENTS = [
    ["llama3-8b-dgx-h100-8", "--set", "plan.global_batch=16"],
    ["llama3-8b-dgx-h100-8", "--set", "plan.global_batch=16", "--granularity", "stepped"],
    ["llama3-8b-dgx-h100-8", "--set", "plan.global_batch=16", "--set", "plan.zero=3"],
    ["llama3-70b-v5p-4x4x8", "--set", "model.layers=4", "--set", "plan.global_batch=32"],
]


def results(binary, experiment, folder):
    folder.mkdir()
    result, trace = folder / "result.json", folder / "run.trace.json.gz"
    subprocess.run(
        [binary, "run", *experiment, "--json", result, "--trace", trace],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    text = result.read_text()
    assert list(json.loads(text))[-1] == "simulator", "simulator stands last"
    return text[: text.index('"simulator"')], trace.read_bytes()


def main(release, debug):
    if not pathlib.Path(debug).exists():
        sys.exit(f"{debug} is missing: cmake --preset sanitize && cmake --build --preset sanitize")
    different = 0
    with tempfile.TemporaryDirectory() as scratch:
        for number, experiment in enumerate(EXPERIMENTS):
            runs = [
                results(binary, experiment, pathlib.Path(scratch) / f"{number}-{i}")
                for i, binary in enumerate([release, release, debug])
            ]
            for what, other in (("again", runs[1]), ("debug", runs[2])):
                for kind, a, b in zip(("JSON", "trace"), runs[0], other):
                    if a != b:
                        different += 1
                        print(f"{' '.join(experiment)}: {kind} differs: release, {what}")
    print(f"{len(EXPERIMENTS)} experiments, {different} differences")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
