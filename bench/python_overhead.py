#!/usr/bin/env python3
"""What a call of stepsim.run costs beside its simulation, and what `import stepsim` takes.

    PYTHONPATH=build/release/python python3 bench/python_overhead.py

Each case runs 300 times after one call that is not counted. The cost is the CPU time of the call
less `simulator.cpu_s` of its result, so it also has the lowering of the experiment to ops. Shown are
the median and the smallest, in milliseconds of CPU time: other programs don't change those much.
"""
import statistics
import subprocess
import sys
import time

import stepsim

CALLS = 300
CASES = {
    "an experiment of the catalog, 8 chips": dict(experiment="llama3-8b-dgx-h100-8"),
    "model, cluster and plan, 8 chips": dict(
        model="llama3-8b", cluster="dgx-h100-8",
        plan=dict(tp=8, microbatch=1, global_batch=8, sequence=512)),
    "512 chips": dict(experiment="llama3-70b-dgx-h100-512"),
}


def costs(arguments):
    stepsim.run(**arguments)
    for _ in range(CALLS):
        begin = time.process_time()
        result = stepsim.run(**arguments)
        taken = time.process_time() - begin
        yield (taken - result.simulator.cpu_s) * 1e3, result.simulator.cpu_s * 1e3


def import_time():
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import stepsim"], check=True)
    whole = time.perf_counter() - begin
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return (whole - (time.perf_counter() - begin)) * 1e3


for name, arguments in CASES.items():
    beside, simulated = zip(*costs(arguments))
    print(f"{name:40}{statistics.median(beside):8.2f} ms, least {min(beside):.2f} ms, "
          f"beside a simulation of {statistics.median(simulated):.2f} ms")
print(f"{'import stepsim':40}{min(import_time() for _ in range(10)):8.1f} ms")
