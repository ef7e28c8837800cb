#!/usr/bin/env python3
"""The figures of docs/ are what stepsim draws: figures_test.py PATH-TO-STEPSIM FOLDER.

To draw them again: stepsim figures --out docs/figures
"""
import pathlib
import subprocess
import sys
import tempfile


def main(stepsim, folder):
    kept = {path.name: path.read_bytes() for path in pathlib.Path(folder).glob("*.svg")}
    with tempfile.TemporaryDirectory() as drawn_folder:
        subprocess.run([stepsim, "figures", "--out", drawn_folder], check=True,
                       stdout=subprocess.DEVNULL)
        drawn = {path.name: path.read_bytes() for path in pathlib.Path(drawn_folder).iterdir()}
    wrong = [name for name in sorted(kept.keys() | drawn.keys())
             if kept.get(name) != drawn.get(name)]
    for name in wrong:
        print(f"{name}: is not what stepsim figures draws now")
    page = pathlib.Path(folder).parent.joinpath("figures.md").read_text()
    missing = [name for name in sorted(kept) if f"figures/{name}" not in page]
    for name in missing:
        print(f"{name}: docs/figures.md does not show it")
    refused = subprocess.run([stepsim, "figures", "bubbl"], capture_output=True, text=True)
    good = refused.returncode == 2 and "did you mean bubble?" in refused.stderr
    good = good and "--out: must be given" in refused.stderr
    if not good:
        print("bad input is not refused as it should be:", refused.stderr)
    return 1 if wrong or missing or not good else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
