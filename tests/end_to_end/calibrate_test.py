#!/usr/bin/env python3
"""stepsim calibrate: fits, files that are read back, what is refused: calibrate_test.py PATH-TO-STEPSIM"""
import json
import pathlib

import program
from program import StepsimTest, main, stepsim

MEASURED = pathlib.Path(__file__).resolve().parent.parent / "reference" / "measured"
MATMULS = str(MEASURED / "matmuls.csv")
COLLECTIVES = str(MEASURED / "collectives.csv")
HEADER = ("#  size  count  type  redop  root   time  algbw  busbw  #wrong\n")
ROW = "{size} {count} float sum -1 {time} 0.1 0.1 0\n"


def log_text(head="", slower=1.0):
    """All-reduces of 8 ranks, 2 KiB to 1 GiB, at plausible times."""
    rows = "".join(
        ROW.format(size=size, count=size // 4, time=round(slower * (30 + size / 100e3), 2))
        for size in (2 ** exponent for exponent in range(11, 31)))
    return head + HEADER + rows


class CalibrateTest(StepsimTest):
    def result(self, *arguments, status=0):
        run = stepsim("calibrate", *arguments, "--json", "-")
        self.assertEqual(run.returncode, status, run.stderr)
        return json.loads(run.stdout)

    def test_a_chip_is_fitted_written_and_run_with(self):
        chip = str(self.folder / "chip.textproto")
        result = self.result(MATMULS, "--write-chip", chip)
        self.assertEqual([fit["of"] for fit in result["fits"]],
                         ["bf16 matmuls on h100-sxm", "fp8 matmuls on h100-sxm"])
        for fit in result["fits"]:
            errors = {line["of"]: line for line in fit["errors"]}
            # The catalog's constants were fitted to the whole of this table.
            self.assertLess(errors["held out"]["median_before"], 0.04)
            self.assertLess(errors["held out"]["median_after"], 0.04)
            self.assertEqual(errors["held out"]["rows"] + errors["fitted"]["rows"],
                             errors["all"]["rows"])
        text = pathlib.Path(chip).read_text()
        self.assertIn("matmuls.csv (kernels, 119 of 119 rows)", text)
        self.assertIn('catalog: "h100-sxm"', text)
        peak = [constant["after"] for constant in result["fits"][0]["constants"]
                if constant["name"] == "peak_fraction"][0]
        for run in (["run", program.SMALL, "--chip", chip],
                    ["run", program.SMALL, "--set", "cluster.chip.catalog=" + chip]):
            record = stepsim(*run, "--json", "-")
            self.assertEqual(record.returncode, 0, record.stderr)
            matmul = json.loads(record.stdout)["experiment"]["cluster"]["chip"]["efficiency"]["matmul"]
            self.assertEqual(matmul["peak_fraction"], peak)
        # A cluster file names it relative to itself.
        cluster = self.write("cluster.textproto",
                             'catalog: "dgx-h100-8" chip { catalog: "chip.textproto" }')
        collective = stepsim("collective", "all-reduce", "--cluster", cluster, "--bytes", "1MiB")
        self.assertEqual(collective.returncode, 0, collective.stderr)

    def test_a_library_is_fitted_written_and_run_with(self):
        library = str(self.folder / "library.textproto")
        log = self.write("two.log", log_text())
        facts = ["--op", "all-reduce", "--ranks", "8", "--hardware", "h100-sxm"]
        result = self.result(log, *facts, "--write-library", library)
        everything = result["libraries"][0]["errors"][-1]
        self.assertEqual(everything["rows"], 20)
        self.assertLess(everything["median_after"], everything["median_before"])
        before = stepsim("collective", "all-reduce", "--cluster", "dgx-h100-8", "--bytes", "256MiB",
                         "--dtype", "fp32", "--json", "-")
        after = stepsim("collective", "all-reduce", "--cluster", "dgx-h100-8", "--bytes", "256MiB",
                        "--dtype", "fp32", "--library", library, "--json", "-")
        measured = 1e-6 * (30 + 2 ** 28 / 100e3)
        error = [abs(json.loads(run.stdout)["time_s"] / measured - 1) for run in (before, after)]
        self.assertLess(error[1], error[0])
        self.assertLess(error[1], 0.1)
        accuracy = stepsim("accuracy", COLLECTIVES, "--library", library)
        self.assertEqual(accuracy.returncode, 0, accuracy.stderr)

    def test_the_same_bytes_with_any_number_of_threads(self):
        texts = []
        for threads in ("1", "4"):
            chip = self.folder / f"chip{threads}.textproto"
            run = stepsim("calibrate", MATMULS, "--threads", threads, "--write-chip", str(chip))
            texts.append((run.stdout, chip.read_text()))
        self.assertEqual(texts[0], texts[1])

    def test_the_catalog_holds_its_own_tables(self):
        run = stepsim("calibrate", MATMULS, COLLECTIVES, "--check", "--allow", "3")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn("The constants hold", run.stdout)

    def test_constants_that_do_not_hold_are_named(self):
        log = self.write("slow.log", log_text(slower=3))
        result = self.result(log, "--op", "all_reduce", "--ranks", "8", "--hardware", "h100-sxm",
                             "--check", status=1)
        self.assertFalse(result["check"]["holds"])
        self.assertIn("nccl-2.29-hopper", result["check"]["worse"][0])

    def test_one_size_fits_next_to_nothing_and_says_why(self):
        rows = "".join(f"H100,all_gather,1073741824,8,half,{3000 + i}\n" for i in range(9))
        table = self.write("one.csv", "hardware,op,bytes,ranks,dtype,time_us\n" + rows)
        library = str(self.folder / "none.textproto")
        run = stepsim("calibrate", table, "--write-library", library)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("1 shapes determine 0 constants at most", run.stdout)
        self.assertIn("none.textproto is not written: no constant was fitted", run.stdout)
        self.assertNotIn("none.textproto", self.files())

    def test_steps_tell_the_energy_of_an_operation(self):
        columns = ("id,source_id,model,chip,chip_count,layers,hidden,ffn,heads,kv_heads,vocab,seq_len,"
                   "gated_mlp,global_batch,micro_batch,tp,pp,dp,dtype,recompute,step_time_s\n")
        rows = "".join(
            f"r{i},mine,LLaMA,H100,8,{layers},8192,28672,64,8,32000,4096,yes,{batch},1,8,1,1,bf16,none,1\n"
            for i, (layers, batch) in enumerate((n, b) for n in (4, 8) for b in (8, 16)))
        table = self.write("steps.csv", columns + rows)
        predicted = json.loads(stepsim("accuracy", table, "--json", "-").stdout)["rows"]
        # Steps that are a twentieth slower than predicted ask for more energy.
        lines = (columns + rows).splitlines()
        slower = "\n".join([lines[0]] + [
            line[:-1] + f"{1.05 * row['predicted']:.6f}" for line, row in zip(lines[1:], predicted)])
        chip = str(self.folder / "chip.textproto")
        result = self.result(self.write("steps.csv", slower + "\n"), "--write-chip", chip)
        fit = result["fits"][0]
        self.assertEqual(fit["of"], "steps on h100-sxm")
        self.assertGreater(fit["constants"][0]["after"], fit["constants"][0]["before"])
        self.assertLess(fit["errors"][0]["median_after"], 0.01)
        self.assertIn("joules_per_teraflop", pathlib.Path(chip).read_text())

    def test_bad_input_is_refused_with_everything_that_is_wrong(self):
        mixed = self.write("mixed.csv", "hardware,op,bytes,ranks,time_us\n"
                           "H100,all_reduce,1048576,8,50\nA100,all_reduce,1048576,8,70\n"
                           "H100,all_reduce,1048576,eight,50\n")
        cut = self.write("cut.log", log_text()[:-8])
        wrong = self.write("wrong.log", log_text().replace("0.1 0\n", "0.1 4\n", 1))
        empty = self.write("empty.log", "nothing\n")
        unknown = self.write("unknown.csv", "a,b\n1,2\n")
        self.expect_refused(
            ["calibrate", mixed, cut, wrong, empty, unknown, "--ranks", "none", "--threads", "0",
             "--allow", "5", "--write-chip", "chip.json"],
            "mixed.csv: has measurements of a100-sxm-80gb, h100-sxm",
            "mixed.csv:4: ranks must be a number above 0, is \"eight\"",
            "cut.log:21: the log ends within this row",
            "wrong.log:2: 4 values are wrong: the test failed",
            "empty.log: has no measurement",
            "unknown.csv: must have the columns of one kind of table",
            "--ranks: must be a whole number, 1 to 1048576, is \"none\"",
            "--threads: must be a whole number, 1 to 1024, is \"0\"",
            "--allow: needs --check",
            "--write-chip: must end in .textproto")
        self.expect_refused(["calibrate", self.write("good.log", log_text())],
                            "names no test: --op says which", "names no devices: --hardware says which",
                            "lists no ranks: --ranks says how many")
        self.expect_refused(["calibrate", MATMULS, "--hardware", "a100-sxm-80gb"],
                            "119 rows can't be used: other hardware than --hardware")
        self.expect_refused(["calibrate", MATMULS, "--write-library",
                             str(self.folder / "library.textproto")],
                            "--write-library: no measurement is of a library")
        self.expect_refused(["calibrate"], "FILE: must be given")

    def test_an_unknown_column_is_named(self):
        table = self.write("extra.csv", pathlib.Path(MATMULS).read_text().replace("source\n", "sauce\n", 1))
        run = stepsim("calibrate", table)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn('extra.csv: tables of kernels have no column "sauce"', run.stderr)

    def test_a_file_that_starts_from_another_file_is_refused(self):
        first = self.write("first.textproto", 'catalog: "second.textproto"')
        self.write("second.textproto", 'catalog: "first.textproto"')
        self.expect_refused(["run", program.SMALL, "--chip", first],
                            "cluster.chip.catalog: must be a name of the catalog in a file that is itself")


if __name__ == "__main__":
    main()
