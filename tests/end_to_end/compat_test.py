#!/usr/bin/env python3
"""What 0.1 wrote is read and gives what it gave (tests/compat/README.md): compat_test.py PATH-TO-STEPSIM"""
import json
import pathlib
import shutil
import subprocess
import sys

import program
from program import StepsimTest, main, stepsim

COMPAT = pathlib.Path(__file__).resolve().parent.parent / "compat"
CONVERTER = COMPAT.parents[1] / "scripts" / "convert_tables.py"
EXPECTED = json.loads((COMPAT / "expected.json").read_text())


# Results that were wrong when they were written: fp8 of a checkpoint with scales by block ran on slow grouped kernels
# and had no scales.
MENDED = {"mixed-pass": EXPECTED["experiments"]["mixed-pass.textproto"]}


class CompatTest(StepsimTest):
    def result(self, *arguments):
        run = stepsim(*arguments, "--json", "-", "--quiet")
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout)

    def test_experiments_give_what_they_gave(self):
        files = {path.name for path in (COMPAT / "experiments").iterdir()}
        self.assertEqual(files, set(EXPECTED["experiments"]))
        for name, expected in EXPECTED["experiments"].items():
            with self.subTest(name):
                result = self.result("run", str(COMPAT / "experiments" / name))
                self.assertEqual(result["step_time_s"], expected["step_time_s"])
                self.assertEqual(result["memory"]["peak_bytes"], expected["peak_bytes"])

    def test_moved_keys_are_said_once(self):
        run = stepsim("run", str(COMPAT / "experiments" / "software.textproto"), "--json", "-")
        self.assertEqual(run.stderr.count("read until 2.0"), 1)
        self.assertIn("plan.software is software.catalog", run.stderr)
        new = stepsim("run", self.folder_file("new.json", json.loads(run.stdout)["experiment"]))
        self.assertEqual(new.stderr, "")

    def folder_file(self, name, value):
        (self.folder / name).write_text(json.dumps(value))
        return str(self.folder / name)

    def test_results_run_again(self):
        for path in sorted((COMPAT / "results").iterdir()):
            with self.subTest(path.name):
                was = json.loads(path.read_text())
                result = self.result("run", str(path))
                expected = MENDED.get(path.stem, {"step_time_s": was["step_time_s"],
                                                  "peak_bytes": was["memory"]["peak_bytes"]})
                self.assertEqual(result["step_time_s"], expected["step_time_s"])
                self.assertEqual(result["memory"]["peak_bytes"], expected["peak_bytes"])

    def test_dicts_of_python_programs(self):
        # As bindings/stepsim hands them on: the plan as a file.
        for number, asked in enumerate(json.loads((COMPAT / "dicts.json").read_text())):
            with self.subTest(asked):
                path = self.folder / f"{number}.json"
                path.write_text(json.dumps(asked["plan"]))
                result = self.result("run", "--model", asked["model"], "--cluster", asked["cluster"],
                                     "--plan", str(path))
                self.assertEqual(result["step_time_s"], EXPECTED["dicts"][number])

    def test_tables_are_predicted_alike(self):
        for name, expected in EXPECTED["tables"].items():
            with self.subTest(name):
                table = COMPAT / "tables" / name
                table = self.converted(table)
                rows = self.result("accuracy", str(table))["rows"]
                self.assertEqual([row["predicted"] for row in rows], expected)

    def converted(self, table):
        run = subprocess.run([sys.executable, "-B", str(CONVERTER), str(table), "--stepsim", program.STEPSIM], capture_output=True, text=True, check=True)
        self.assertEqual(run.stderr, "")
        new = self.folder / table.name
        new.write_text(run.stdout, encoding="utf-8")
        return new

    def test_tables_that_are_not_converted_say_how_to(self):
        self.expect_refused(["accuracy", str(COMPAT / "tables" / "collectives.csv")], "scripts/convert_tables.py")

    def test_a_store_of_a_sweep_is_merged(self):
        store = self.folder / "old.sqlite"
        shutil.copy(COMPAT / "sweep.sqlite", store)
        run = stepsim("sweep", "merge", str(store), "--store", str(self.folder / "all.sqlite"), "--csv",
                      str(self.folder / "all.csv"))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(len((self.folder / "all.csv").read_text().splitlines()), 5)


if __name__ == "__main__":
    main()
