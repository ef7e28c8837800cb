#!/usr/bin/env python3
"""stepsim sweep: its table, its store, what kills it, shards and their merge: sweep_test.py PATH-TO-STEPSIM"""
import csv
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import time

import program
from program import StepsimTest, main, started, stepsim

EXPERIMENT = ["--model", "mlp-stack:D=1024,F=4096,layers=2", "--cluster", "dgx-h100-8", "--plan",
              "tp=1,dp=8,global-batch=64,sequence=128"]
AXES = ["--over", "plan.tp=1,2,4,plan.dp=8,4,2", "--over", "plan.zero=0..2"]
KILLS = int(os.environ.get("STEPSIM_KILLS", "30"))


class SweepTest(StepsimTest):
    def path(self, name):
        return str(self.folder / name)

    def sweep(self, *arguments, status=0, **options):
        run = stepsim("sweep", *arguments, **options)
        self.assertEqual(run.returncode, status, run.stderr)
        return run

    def table(self, *arguments):
        """The CSV of a sweep, as bytes."""
        self.sweep(*arguments, "--csv", self.path("t.csv"))
        return (self.folder / "t.csv").read_bytes()

    def rows(self, store, query):
        with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as database:
            return database.execute(query).fetchall()

    def contents(self, store):
        """All that a store holds but what depends on when it was made."""
        def same(text):
            result = json.loads(text)
            del result["simulator"]
            result["experiment"].pop("overrides")
            return json.dumps(result)

        return (self.rows(store, "SELECT number, inputs, key, problem FROM points ORDER BY number"),
                [(key, same(text)) for key, text in
                 self.rows(store, "SELECT key, json FROM results ORDER BY key")])

    # ---- points ----

    def test_axes_are_crossed_and_fields_of_one_go_together(self):
        rows = list(csv.DictReader(self.table(*EXPERIMENT, *AXES).decode().splitlines()))
        self.assertEqual([(row["plan.tp"], row["plan.dp"], row["plan.zero"]) for row in rows],
                         [(tp, dp, zero) for tp, dp in [("1", "8"), ("2", "4"), ("4", "2")]
                          for zero in "012"])
        for row in rows:
            self.assertEqual(row["problem"], "")
            parts = [float(value or 0) for name, value in row.items() if name.endswith("_s") and
                     (name.startswith("exposed") or name in ("compute_s", "bubble_s", "idle_s",
                                                             "launch_s"))]
            self.assertAlmostEqual(sum(parts), float(row["step_time_s"]), places=12)

    def test_a_point_is_what_run_gives(self):
        store = self.path("s.sqlite")
        self.sweep(*EXPERIMENT, "--over", "plan.zero=1", "--store", store)
        run = json.loads(stepsim("run", *EXPERIMENT, "--set", "plan.zero=1", "--json", "-").stdout)
        (text,), = self.rows(store, "SELECT json FROM results")
        kept = json.loads(text)
        del run["simulator"], kept["simulator"]
        self.assertEqual(kept, run)

    def test_a_path_may_leave_out_what_lies_between(self):
        rows = csv.DictReader(self.table(
            *EXPERIMENT, "--over", "cluster..nvlink_bandwidth=200GB/s,450GB/s").decode().splitlines())
        slow, fast = [float(row["step_time_s"]) for row in rows]
        self.assertGreater(slow, fast)
        self.expect_refused(["sweep", *EXPERIMENT, "--over", "cluster..no_such=1,2"],
                            "no group of cluster that is there has a field no_such")

    def test_a_file_has_its_axes(self):
        path = self.write("e.textproto", """
model { kind: "mlp_stack" layers: 2 hidden: 1024 intermediate: 4096 }
cluster { catalog: "dgx-h100-8" }
plan { tp: 8 global_batch: 4 sequence: 128 }
over: "plan.sequence=128,256"
""")
        self.assertEqual(len(self.table(path).splitlines()), 3)
        self.assertEqual(len(self.table(path, "--over", "plan.zero=0,1").splitlines()), 5)
        self.expect_refused(["run", path], "over: has axes, which only stepsim sweep follows")

    def test_values_with_commas(self):
        text = self.table("--model", "llama3-8b", "--cluster", "dgx-h100-8", "--plan",
                          "tp=4,pp=2,global-batch=8,sequence=1024", "--over",
                          "plan.layout=16*2;15,17").decode()
        self.assertEqual([row["plan.layout"] for row in csv.DictReader(text.splitlines())],
                         ["16*2", "15,17"])

    def test_points_that_cannot_run_are_listed_with_the_reason(self):
        run = self.sweep(*EXPERIMENT, "--over", "plan.tp=8,16", "--over", "plan.dp=1", "--json", "-")
        good, bad = json.loads(run.stdout)["points"]
        self.assertIsNone(good["problem"])
        self.assertIn("plan.ranks", bad["problem"])
        self.assertNotIn("step_time_s", bad)
        self.expect_refused(["sweep", *EXPERIMENT, "--over", "plan.tp=16,32"],
                            "--over plan.tp=16: no point can run: plan")

    def test_two_points_with_one_experiment_run_once(self):
        store = self.path("s.sqlite")
        text = self.table(*EXPERIMENT, "--over", "plan.zero=1,1,1", "--store", store)
        self.assertEqual(len(set(text.splitlines())), 2)
        self.assertEqual(self.rows(store, "SELECT count(*) FROM results"), [(1,)])
        self.assertEqual(self.rows(store, "SELECT count(*) FROM points"), [(3,)])

    def test_processes_without_a_module_for_mpi_are_refused(self):
        lone = self.path("stepsim")
        shutil.copy(program.STEPSIM, lone)
        run = subprocess.run([lone, "sweep", *EXPERIMENT, *AXES], capture_output=True, text=True,
                             env=dict(os.environ, OMPI_COMM_WORLD_SIZE="2"))
        self.assertEqual(run.returncode, 2)
        self.assertIn("built without MPI", run.stderr)

    # ---- the same bytes ----

    def test_any_number_of_jobs_and_shards_gives_the_same_bytes(self):
        whole = self.table(*EXPERIMENT, *AXES, "--jobs", "1")
        self.assertEqual(self.table(*EXPERIMENT, *AXES, "--jobs", "7"), whole)
        for shards in (1, 2, 7):
            stores = []
            for shard in range(shards):
                # Numbers from 1; a 0 is the last.
                stores.append(self.path(f"{shards}-{shard}.sqlite"))
                self.sweep(*EXPERIMENT, *AXES, "--shard", f"{shard}/{shards}", "--store", stores[-1])
            merged = self.path(f"all-{shards}.sqlite")
            self.assertEqual(self.table("merge", *stores, "--store", merged), whole)
            # Nothing is run again.
            again = self.sweep(*EXPERIMENT, *AXES, "--store", merged, "--csv", self.path("u.csv"))
            self.assertIn("in the store before", again.stdout)
            self.assertNotIn("\n  run ", again.stdout)
            self.assertEqual((self.folder / "u.csv").read_bytes(), whole)

    def test_a_merge_without_all_shards_says_so(self):
        self.sweep(*EXPERIMENT, *AXES, "--shard", "1/2", "--store", self.path("a.sqlite"))
        run = self.sweep("merge", self.path("a.sqlite"), "--store", self.path("b.sqlite"), status=1)
        self.assertIn("not run yet", run.stdout)

    def test_a_picture_is_drawn(self):
        svg = self.path("p.svg")
        self.sweep(*EXPERIMENT, *AXES, "--plot", svg, "x=plan.tp", "y=peak_bytes",
                   "series=plan.zero")
        text = pathlib.Path(svg).read_text()
        self.assertIn("plan.zero=2", text)
        self.assertIn("peak_bytes over plan.tp", text)

    def test_a_line_has_one_value_of_every_axis_but_x(self):
        """A third axis gives more lines, of the colour of their series, none that goes to and fro."""
        svg, page = self.path("p.svg"), self.path("p.json")
        self.sweep(*EXPERIMENT, "--over", "plan.tp=1,2,4,plan.dp=8,4,2", "--over", "plan.zero=0,1",
                   "--over", "plan.microbatch=1,2", "--plot", svg, "x=plan.tp", "series=plan.zero",
                   "--json", page)
        text = pathlib.Path(svg).read_text()
        for label in ("plan.zero=0: plan.microbatch=1", "plan.zero=1: plan.microbatch=2"):
            self.assertIn(label, text)
        lines = re.findall(r'<path d="([^"]*)" fill="none" stroke="([^"]*)"', text)
        self.assertEqual(len(lines), 4)
        self.assertEqual(len({colour for _, colour in lines}), 2)
        for path, _ in lines:
            across = [float(x) for x in re.findall(r"[ML]([0-9.]+),", path)]
            self.assertEqual(across, sorted(set(across)))
        self.assertEqual(json.loads(pathlib.Path(page).read_text())["plot"],
                         {"x": "plan.tp", "y": "", "series": "plan.zero"})

    # ---- kills ----

    def long(self, store):
        return [*EXPERIMENT, "--over", "plan.global_batch=8..79", "--set", "plan.tp=8",
                "--set", "plan.dp=1", "--store", store]

    def test_killed_at_any_instant_it_loses_nothing_and_does_nothing_twice(self):
        whole = self.path("whole.sqlite")
        begin = time.monotonic()
        self.sweep(*self.long(whole))
        duration = time.monotonic() - begin
        store = self.path("s.sqlite")
        choose = random.Random(17)
        done = {}
        for _ in range(KILLS):
            process = started("sweep", *self.long(store))
            time.sleep(choose.uniform(0, duration / 4))
            process.kill()
            process.communicate()
            if not os.path.exists(store) or os.path.getsize(store) == 0:
                continue
            with sqlite3.connect(store) as database:  # undoes what was half written
                tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
                rows = dict(database.execute("SELECT key, seconds FROM results")) if tables else {}
            for key, seconds in done.items():
                self.assertEqual(rows.get(key), seconds, "a result was lost or made twice")
            done = rows
        self.sweep(*self.long(store))
        self.assertEqual(self.contents(store), self.contents(whole))
        for key, seconds in done.items():
            self.assertIn((key, seconds), self.rows(store, "SELECT key, seconds FROM results"))
        self.assertEqual([name for name in self.files() if "journal" in name], [])

    def test_an_interrupt_says_how_to_go_on(self):
        store = self.path("s.sqlite")
        process = started("sweep", "llama3-70b-dgx-h100-512", "--set", "simulation.steps=400",
                          "--over", "plan.zero=0,1,2", "--store", store)
        end = time.monotonic() + 60
        while not os.path.exists(store) or os.path.getsize(store) == 0:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, error)
        self.assertEqual(error.decode(), f"stepsim: interrupted; what has been run is in {store}, "
                                         "and the same command goes on from there\n")

    def test_a_full_disk_loses_nothing(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))

        store = self.path("s.sqlite")
        run = stepsim("sweep", *self.long(store), preexec_fn=limit)
        self.assertEqual(run.returncode, 4, run.stderr)
        self.assertIn(f"{store}: can't be written: ", run.stderr)
        with sqlite3.connect(store) as database:
            kept = database.execute("SELECT count(*) FROM results").fetchone()[0]
        self.assertGreater(kept, 3)
        again = self.sweep(*self.long(store))
        self.assertRegex(again.stdout, fr"in the store before +{kept}\n")

    # ---- what is refused ----

    def test_wrong_stores_are_refused(self):
        def expect(words, name="s.sqlite"):
            self.expect_refused(["sweep", *EXPERIMENT, *AXES, "--store", self.path(name)],
                                self.path(name) + ": " + words)

        def made(name, *statements):
            with sqlite3.connect(self.path(name)) as database:
                for statement in statements:
                    database.execute(statement)

        store = self.path("s.sqlite")
        self.sweep(*EXPERIMENT, "--over", "plan.zero=1", "--store", store)
        with sqlite3.connect(store) as database:
            database.execute("BEGIN EXCLUSIVE")
            expect("is in use by another process")
        made("s.sqlite", "UPDATE stepsim SET version = '0.0.9'")
        expect("has results of stepsim 0.0.9, and this is stepsim 0.1.0")
        made("s.sqlite", "PRAGMA user_version = 7")
        expect("must be a store of version 1, is of version 7")
        made("other.db", "PRAGMA application_id = 1234", "CREATE TABLE a (b)")
        expect("must be a store of stepsim sweep (application_id 1398034515), is a file of "
               "another program (application_id 1234)", "other.db")
        self.write("text.db", "not a database, but quite a long text\n" * 40)
        expect("must be a store of stepsim sweep, is no SQLite file", "text.db")
        made("v.sqlite", "PRAGMA application_id = 1398034515", "PRAGMA user_version = 1",
             "CREATE VIEW stepsim AS SELECT '0.1.0' AS version")
        expect("is damaged: it has no table stepsim", "v.sqlite")

    def test_all_problems_come_at_once(self):
        self.expect_refused(["sweep"], "EXPERIMENT: must be given", "--over: must be given")
        self.expect_refused(
            ["sweep", *EXPERIMENT, "--over", "plan.tp", "--over", "plan.zero=1,,2", "--over",
             "plan.dp=1,2,plan.pp=1", "--shard", "8/7", "--jobs", "0", "--csv", "a.svg", "--store",
             "a.txt"],
            "--over plan.tp: must be a field and its values", "--over plan.zero: has an empty value",
            "--over plan.pp: has 1 values and plan.dp has 2", "--shard: must be I/N",
            "--jobs: must be", "--csv: must end in .csv", "--store: must end in .sqlite")
        self.expect_refused(["sweep", *EXPERIMENT, "--over", "plan.tp=1,2", "--over", "plan.tp=4"],
                            "--over plan.tp: is given twice")
        self.expect_refused(["sweep", *EXPERIMENT, "--over", "plan.tp=1,2", "--shard", "1/2"],
                            "--store: must be given with --shard")
        self.expect_refused(["sweep", *EXPERIMENT, "--over", "plan.tp=1..999999", "--over",
                             "plan.dp=1..999999"], "makes more than 10000000 points")
        self.expect_refused(["sweep", *EXPERIMENT, *AXES, "--plot", "p.svg", "x=plan.t", "y=steps"],
                            "x: must be a field of --over, is \"plan.t\"; did you mean plan.tp?",
                            "y: must be a column of the table, is \"steps\"")
        self.expect_refused(["sweep", "merge"], "--store: must be given", "STORE: must be given")


if __name__ == "__main__":
    main()
