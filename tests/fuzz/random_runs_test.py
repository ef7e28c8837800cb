#!/usr/bin/env python3
"""Runs the same random experiments with stepsim_random_runs of two builds at once: nothing may break in
either, and every line (accepted or refused, and the digest of the result) must be the same.

usage: random_runs_test.py RANDOM_RUNS OTHER_RANDOM_RUNS [COUNT]
"""
import pathlib
import subprocess
import sys


def main(binary, other, count="1000"):
    if not pathlib.Path(other).exists():
        sys.exit(f"{other} is missing: cmake --preset sanitize && cmake --build --preset sanitize")
    arguments = ["--from", "1", "--count", count]
    started = [subprocess.Popen([program, *arguments], stdout=subprocess.PIPE, text=True)
               for program in (binary, other)]
    lines = [process.communicate()[0].splitlines() for process in started]
    failed = [process.returncode for process in started if process.returncode != 0]
    different = [pair for pair in zip(*lines) if pair[0] != pair[1]]
    for one, another in different[:10]:
        print(f"differs: {one}\n         {another}")
    print(f"{len(lines[0])} and {len(lines[1])} lines, {len(different)} differ, exit statuses {failed}")
    whole = all(len(of_one) == int(count) for of_one in lines)
    sys.exit(0 if whole and not failed and not different else 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
