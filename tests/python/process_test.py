#!/usr/bin/env python3
"""The Python package in a process with others: threads, signals, standard output, speed."""
import concurrent.futures
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import stepsim
import support
from support import SMALL, without_simulator

PLANS = [{"tp": tp, "dp": 8 // tp, "zero": zero, "sequence": sequence}
         for tp in (1, 2, 4, 8) for zero in (0, 1, 2, 3) for sequence in (512, 1024)]


# A row of a table of training runs with tens of millions of ops. Its software has a host that launches
# them, so periods that repeat themselves are simulated, too.
LONG_RUN = """id,source,model.layers,model.hidden,model.intermediate,model.heads,model.vocabulary,cluster,software,plan.pp,\
plan.global_batch,plan.microbatch,plan.sequence,plan.zero,measured.step_time
long,made up,240,1024,4096,16,32000,dgx-h100-16,megatron-core,16,16384,1,1024,0,100s
"""

# Requests that take longer than a test may.
LONG_SERVICE = """id,source,grade,model,cluster,software,plan.tp,requests,measured.tpot_mean
long,made up,A,llama3-8b,dgx-h100-8,vllm,1,"closed:concurrency=64,count=1000000,input=1000,output=1000",0.01
"""


def step(plan):
    return without_simulator(stepsim.run(SMALL, plan=plan).to_json())


def python(code, **options):
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, **options)


class ProcessTest(unittest.TestCase):
    def test_threads_get_equal_results(self):
        alone = [step(plan) for plan in PLANS]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            self.assertEqual(list(pool.map(step, PLANS)), alone)

    def test_processes_get_equal_results(self):
        some = PLANS[:6]
        with concurrent.futures.ProcessPoolExecutor(2) as pool:
            self.assertEqual(list(pool.map(step, some)), [step(plan) for plan in some])

    def test_other_threads_run_meanwhile(self):
        # Python goes on while a simulation runs: it would otherwise count nothing.
        counted = []
        done = threading.Event()

        def count():
            while not done.wait(0.005):
                counted.append(time.monotonic())

        counter = threading.Thread(target=count)
        counter.start()
        begin = time.monotonic()
        stepsim.run(SMALL, steps=60, fold=False)
        end = time.monotonic()
        done.set()
        counter.join()
        during = [at for at in counted if begin < at < end]
        self.assertGreater(len(during), (end - begin) / 0.005 / 10)

    def test_nothing_is_printed(self):
        code = ("import stepsim; stepsim.run('llama3-8b-dgx-h100-8'); stepsim.schedule('1f1b', "
                "stages=2, microbatches=2); stepsim.formula(); stepsim.validate('B1')")
        process = python(code)
        self.assertEqual(process.communicate(timeout=600), ("", ""))

    def interrupted(self, work):
        code = ("import os, stepsim, time\n"
                "print('ready', flush=True)\n"
                "begin = time.monotonic()\n"
                f"try: {work}\n"
                "except KeyboardInterrupt: print('interrupted', time.monotonic() - begin)\n"
                "print(stepsim.run('llama3-8b-dgx-h100-8').step_time_s > 0)\n")
        process = python(code, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        self.assertEqual(process.stdout.readline(), "ready\n")
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=600)
        self.assertIn("interrupted", output, errors)
        seconds = float(output.split()[1])
        self.assertLess(seconds, 20)
        # Python and stepsim go on.
        self.assertTrue(output.endswith("True\n"), output)

    def test_a_run_can_be_interrupted(self):
        self.interrupted("stepsim.run('llama3-70b-dgx-h100-512', steps=1000, fold='off')")

    def test_a_search_can_be_interrupted(self):
        self.interrupted("stepsim.search(model='llama3-70b', cluster='dgx-h100-512', "
                         "global_batch=1024, sequence=8192, front='whole')")

    def test_a_long_simulation_of_a_table_can_be_interrupted(self):
        # One row, whose simulation takes longer than a test may.
        with tempfile.TemporaryDirectory() as folder:
            table = os.path.join(folder, "runs.csv")
            with open(table, "w", encoding="utf-8") as file:
                file.write(LONG_RUN)
            self.interrupted(f"stepsim.accuracy({table!r}, threads=2)")

    def test_serving_can_be_interrupted(self):
        requests = "closed:concurrency=64,count=1000000,input=1000,output=2000"
        self.interrupted(f"stepsim.serve(step_time='1ms', requests={requests!r})")

    def test_a_table_of_served_runs_can_be_interrupted(self):
        with tempfile.TemporaryDirectory() as folder:
            table = os.path.join(folder, "served.csv")
            with open(table, "w", encoding="utf-8") as file:
                file.write(LONG_SERVICE)
            self.interrupted(f"stepsim.accuracy({table!r}, threads=2)")

    def test_a_serve_search_can_be_interrupted(self):
        self.interrupted("stepsim.command('serve-search', model='llama3-70b', cluster='dgx-h100-8', "
                         "input=100, output=50000, most_requests=4096, threads=2)")

    def test_a_sweep_can_be_interrupted(self):
        self.interrupted("stepsim.sweep('llama3-70b-dgx-h100-512', jobs=2, plan={'global_batch': 4096}, "
                         "set={'variation.jitter': 0.1}, over={'plan.sequence': [4096, 8192, 16384]})")

    def test_a_sweep_hands_over_points_while_it_runs(self):
        # The second point takes a hundred times as long as the first.
        begin = time.monotonic()
        points = stepsim.sweep(SMALL, set={"variation.jitter": 0.1}, jobs=1,
                               over={"simulation.steps": [1, 150]})
        first = next(iter(points))
        at_first = time.monotonic() - begin
        self.assertEqual([point.inputs for point in points],
                         [{"simulation.steps": "1"}, {"simulation.steps": "150"}])
        self.assertLess(at_first, (time.monotonic() - begin) / 3)
        self.assertEqual(first, points[0])

    def test_a_sweep_that_is_left_ends(self):
        # The last point would take minutes.
        code = ("import stepsim\n"
                "def sweep(): return stepsim.sweep('llama3-8b-dgx-h100-8', jobs=1, set={"
                "'variation.jitter': 0.1}, over={'simulation.steps': [1, 2, 1000]})\n"
                "for point in sweep(): break\n"
                "print('left')\n"
                "stopped = sweep()\n"
                "stopped.stop()\n"
                "try: stopped.wait()\n"
                "except stepsim.NoAnswer as error: print(error)\n"
                "print(next(iter(stopped)).inputs)\n"
                "kept = sweep()\n"
                "print(next(iter(kept)).problem)\n")
        process = python(code)
        output, errors = process.communicate(timeout=600)
        self.assertEqual((output, errors), ("left\nthe work was stopped\n"
                                            "{'simulation.steps': '1'}\nNone\n", ""))

    def test_a_loop_over_a_sweep_can_be_interrupted(self):
        self.interrupted("[point for point in stepsim.sweep('llama3-8b-dgx-h100-8', jobs=2, set={"
                         "'variation.jitter': 0.1}, over={'simulation.steps': [1, 2, 1000]})]")

    def test_a_sweep_that_nobody_takes_says_so(self):
        code = ("import stepsim\n"
                "stepsim.sweep('llama3-8b-dgx-h100-8', jobs=1, set={'variation.jitter': 0.1}, "
                "over={'simulation.steps': [1, 1000]})\n")
        output, errors = python(code).communicate(timeout=600)
        self.assertIn("RuntimeWarning: a sweep was dropped", errors)

    def test_temporary_files_are_removed(self):
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "TMPDIR": folder}
            code = ("import stepsim\nstepsim.Model('llama3-8b', layers=4)\n"
                    "stepsim.schedule([['F0.0', 'BW0.0']])\n"
                    "try: stepsim.Cluster('dgx-h100-8', name=1, chips=2)\n"
                    "except stepsim.InputError: pass\n")
            process = python(code, env=environment)
            self.assertEqual(process.communicate(timeout=600), ("", ""))
            self.assertEqual(os.listdir(folder), [])

    # The limits are ten times what a free machine takes: tests run beside others.
    def test_import_is_quick(self):
        seconds = []
        for _ in range(3):
            begin = time.monotonic()
            python("import stepsim").communicate(timeout=600)
            seconds.append(time.monotonic() - begin)
        self.assertLess(min(seconds), 1.0)

    def test_a_small_run_is_quick(self):
        plan = stepsim.Plan(tp=8, microbatch=1, global_batch=8, sequence=512)
        overheads = []
        for _ in range(20):
            begin = time.perf_counter()
            result = stepsim.run(model="llama3-8b", cluster="dgx-h100-8", plan=plan)
            overheads.append(time.perf_counter() - begin - result.simulator.wall_s)
        self.assertLess(min(overheads), 0.02)


if __name__ == "__main__":
    support.main()
