#!/usr/bin/env python3
"""stepsim under mpirun: the same bytes from any number of processes, one that dies: processes_test.py PATH-TO-STEPSIM"""
import os
import pathlib
import signal
import sqlite3
import subprocess
import time

import program
from program import StepsimTest, main, stepsim

SWEEP = ["sweep", "--model", "mlp-stack:D=1024,F=4096,layers=2", "--cluster", "dgx-h100-8", "--plan",
         "tp=1,dp=8,global-batch=64,sequence=128", "--over", "plan.tp=1,2,4,plan.dp=8,4,2", "--over",
         "plan.zero=0..2"]
SEARCH = ["search", "--model", "mlp-stack:D=1024,F=4096,layers=4", "--cluster", "dgx-h100-8",
          "--global-batch", "64", "--sequence", "128", "--within", "tp=1,2,4,8,zero=0..2,microbatch=1,2,4"]
# It takes a minute.
LONG_SWEEP = ["sweep", "--model", "llama3-8b", "--cluster", "dgx-h100-8", "--plan",
              "tp=1,dp=2,pp=4,global-batch=2048,sequence=512,microbatch=1", "--over", "seed=1..4000"]


def processes(count, *arguments):
    """Starts stepsim in so many processes. Its group is its own, so that a signal can reach one alone."""
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                       OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_btl_vader_single_copy_mechanism="none")
    return subprocess.Popen(["mpirun", "-n", str(count), program.STEPSIM, *arguments], env=environment, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def children(launcher):
    """Returns the processes of stepsim that a launcher has started, by their number."""
    found = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            status = (folder / "stat").read_text().rsplit(")", 1)[1].split()
            environment = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        ranks = [int(entry.split(b"=")[1]) for entry in environment if entry.startswith(b"OMPI_COMM_WORLD_RANK=")]
        if int(status[1]) == launcher.pid and ranks:
            found[ranks[0]] = int(folder.name)
    return found


class ProcessesTest(StepsimTest):
    def run_in(self, count, *arguments, status=0):
        run = processes(count, *arguments)
        out, errors = run.communicate(timeout=300)
        self.assertEqual(run.returncode, status, errors)
        return out, errors

    def test_any_number_of_processes_gives_the_same_table(self):
        one, three, store = (str(self.folder / name) for name in ("1.csv", "3.csv", "s.sqlite"))
        self.assertEqual(stepsim(*SWEEP, "--csv", one).returncode, 0)
        out, _ = self.run_in(3, *SWEEP, "--csv", three, "--store", store)
        self.assertEqual(pathlib.Path(three).read_bytes(), pathlib.Path(one).read_bytes())
        self.assertEqual(out.count("Fastest that fit"), 1, "one process reports")
        out, _ = self.run_in(2, *SWEEP, "--jobs", "2", "--store", store)
        self.assertIn("in the store before", out)
        self.assertNotIn("\n  run ", out)

    def test_any_number_of_processes_finds_the_same_plans(self):
        alone = stepsim(*SEARCH, "--json", "-").stdout
        for count in (2, 4):
            self.assertEqual(self.run_in(count, *SEARCH, "--json", "-")[0], alone)

    def test_problems_are_said_once(self):
        _, errors = self.run_in(3, *SWEEP, "--set", "plan.nothing=1", status=2)
        self.assertEqual(errors.count("no field nothing"), 1, errors)
        _, errors = self.run_in(3, *SEARCH, "--top", "none", status=2)
        self.assertEqual(errors.count("--top: must be"), 1, errors)

    def test_a_process_that_dies_leaves_the_store_whole(self):
        for victim in (1, 0):
            store = str(self.folder / f"{victim}.sqlite")
            run = processes(3, *LONG_SWEEP, "--store", store)
            deadline = time.monotonic() + 60
            while len(children(run)) < 3 or not pathlib.Path(store).exists():
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.02)
            time.sleep(1)
            os.kill(children(run)[victim], signal.SIGKILL)
            run.communicate(timeout=60)
            self.assertNotEqual(run.returncode, 0)
            with sqlite3.connect(store) as database:
                self.assertEqual(database.execute("PRAGMA integrity_check").fetchone(), ("ok",))
                points, = database.execute("SELECT count(*) FROM points").fetchone()
                results, = database.execute(
                    "SELECT count(*) FROM points JOIN results USING (key)").fetchone()
            self.assertEqual(points, results)
            # The same command goes on from there, and has what a run that was left alone has.
            short = LONG_SWEEP[:-1] + ["seed=1..40"]
            for where in (store, str(self.folder / f"whole-{victim}.sqlite")):
                self.run_in(2, *short, "--store", where, "--csv", where + ".csv")
            tables = [pathlib.Path(str(self.folder / f"{name}{victim}.sqlite.csv")).read_bytes()
                      for name in ("", "whole-")]
            self.assertEqual(*tables)


if __name__ == "__main__":
    main()
