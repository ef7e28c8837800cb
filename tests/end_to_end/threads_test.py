#!/usr/bin/env python3
"""Runs what uses threads with ThreadSanitizer, on four threads: nothing may race, and the results must be
the bytes of the release binary on one.

usage: threads_test.py RELEASE_BINARY THREAD_SANITIZED_BINARY
"""
import os
import pathlib
import subprocess
import sys
import tempfile

MEASURED = pathlib.Path(__file__).resolve().parent.parent / "reference" / "measured"
# What follows each: the option that says how many threads.
COMMANDS = [
    (["accuracy", MEASURED / "training_runs_memory.csv", "--json", "result.json"], "--threads"),
    (["calibrate", MEASURED / "matmuls.csv", "--check", "--allow", "3", "--json", "result.json"],
     "--threads"),
    (["sweep", "llama3-8b-dgx-h100-8", "--over", "plan.global_batch=8,16,24", "--over",
      "plan.zero=0..3", "--store", "s.sqlite", "--json", "result.json"], "--jobs"),
]


def result(binary, command, option, threads, folder):
    """What the command printed, and its JSON."""
    folder.mkdir()
    done = subprocess.run([binary, *command, option, str(threads)], cwd=folder, text=True,
                          capture_output=True,
                          env={**os.environ, "TSAN_OPTIONS": "halt_on_error=1"})
    if done.returncode != 0:
        sys.exit(f"{command[0]}: status {done.returncode}\n{done.stderr[:20000]}")
    return done.stdout, (folder / "result.json").read_bytes()


def main(release, sanitized):
    if not pathlib.Path(sanitized).exists():
        sys.exit(f"{sanitized} is missing: cmake --preset threads && cmake --build --preset threads")
    release, sanitized = map(os.path.abspath, (release, sanitized))
    different = 0
    with tempfile.TemporaryDirectory() as scratch:
        for command, option in COMMANDS:
            one = result(release, command, option, 1, pathlib.Path(scratch) / f"{command[0]}-1")
            four = result(sanitized, command, option, 4, pathlib.Path(scratch) / f"{command[0]}-4")
            if one != four:
                different += 1
                print(f"{command[0]}: differs on four threads")
    print(f"{len(COMMANDS)} commands, {different} differ")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
