"""What the tests of the Python package share.

    PYTHONPATH=build/release/python python3 tests/python/NAME_test.py PATH-TO-STEPSIM
"""
import json
import subprocess
import sys
import unittest

SMALL = "llama3-8b-dgx-h100-8"
PLAN = "tp=2,dp=4,microbatch=1,global-batch=64,sequence=8192,zero=1"
STEPSIM = ""


def program(*arguments):
    """What the command line writes with --json -."""
    done = subprocess.run([STEPSIM, *arguments, "--json", "-"], text=True, timeout=600,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if not done.stdout:
        raise RuntimeError(done.stderr)
    return done.stdout


def problems(*arguments):
    """The problems that the command line lists, each "field: message"."""
    done = subprocess.run([STEPSIM, *arguments], text=True, timeout=600, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    assert done.returncode == 2, done.stderr
    return [line.strip() for line in done.stderr.splitlines()[1:]]


def without_simulator(text):
    """A result without its last member, which says how long the simulation itself took."""
    begin = text.find('"simulator"')
    return text if begin < 0 else text[:begin]


def main():
    global STEPSIM
    STEPSIM = sys.argv.pop(1)
    sys.modules["support"].STEPSIM = STEPSIM
    unittest.main(module="__main__")


def dumped(value):
    return json.dumps(value, indent=1)
