#!/usr/bin/env python3
"""Libraries that lie in the current folder are not loaded: current_folder_test.py PROGRAM."""
import pathlib
import re
import subprocess
import sys
import tempfile

program = str(pathlib.Path(sys.argv[1]).resolve())
needed = re.findall(r"\(NEEDED\).*\[(.*)\]",
                    subprocess.run(["readelf", "--wide", "--dynamic", program], check=True, text=True,
                                   stdout=subprocess.PIPE).stdout)
assert needed, "links nothing?"
with tempfile.TemporaryDirectory() as folder:
    # The loader ends a process whose library is no ELF file, wherever it finds it first.
    for library in needed:
        pathlib.Path(folder, library).write_text("a stranger's\n")
    done = subprocess.run([program, "--version"], cwd=folder, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
if done.returncode != 0 or not done.stdout.startswith("stepsim "):
    sys.exit(f"{done.returncode}: {done.stderr}")
