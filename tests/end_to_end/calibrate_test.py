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


class ProfilerTrace:
    """A trace as PyTorch's profiler writes it, of ops that launch one kernel each."""

    def __init__(self, device="NVIDIA H100 80GB HBM3", rank=0, launch_us=20):
        self.device, self.rank, self.launch_us = device, rank, launch_us
        self.events, self.now, self.number = [], 1000.0, 0

    def op(self, name, dims, kernel, us, input_type="c10::BFloat16", **arguments):
        self.number += 1
        at = self.now
        self.events += [
            {"ph": "X", "cat": "cpu_op", "name": name, "pid": 7, "tid": 7, "ts": at, "dur": 9,
             "args": {"External id": self.number, "Input Dims": dims,
                      "Input type": [input_type] * len(dims)}},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 7,
             "ts": at + 2, "dur": 3, "args": {"External id": self.number, "correlation": self.number}},
            {"ph": "X", "cat": "kernel", "name": kernel, "pid": 0, "tid": 7, "ts": at + 6, "dur": us,
             "args": {"correlation": self.number, "stream": 7, **arguments}}]
        self.now = at + self.launch_us

    def wait(self, us):
        self.events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamSynchronize", "pid": 7,
                            "tid": 7, "ts": self.now, "dur": us, "args": {}})
        self.now += us

    def matmul(self, m, n, k, us):
        self.op("aten::mm", [[m, k], [k, n]], "nvjet_gemm_bf16", us)

    def json(self):
        return json.dumps({"distributedInfo": {"rank": self.rank}, "traceEvents": self.events,
                           "deviceProperties": [{"id": 0, "name": self.device}]})


def slow_matmul_us(m, n, k):
    """Matmuls at 55 % of the peak of an H100, and 6 us more."""
    return round(2e6 * m * n * k / (0.55 * 989.4e12) + 6, 3)


SHAPES = [(m, n, k) for m in (2048, 4096, 8192) for n in (2048, 4096, 6144, 8192)
          for k in (1024, 4096, 8192)]


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
        rows = "".join(f"dgx-h100-8,all_gather,1073741824,8,fp16,{3000 + i}us\n" for i in range(9))
        table = self.write("one.csv", "cluster,op,bytes,ranks,dtype,measured.time\n" + rows)
        library = str(self.folder / "none.textproto")
        run = stepsim("calibrate", table, "--write-library", library)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("1 shapes determine 0 constants at most", run.stdout)
        self.assertIn("none.textproto is not written: no constant was fitted", run.stdout)
        self.assertNotIn("none.textproto", self.files())

    def test_steps_tell_the_energy_of_an_operation(self):
        columns = ("id,source,cluster,model.layers,model.hidden,model.intermediate,model.heads,model.kv_heads,"
                   "model.head_dim,model.vocabulary,plan.sequence,plan.global_batch,plan.tp,measured.step_time\n")
        rows = "".join(
            f"r{i},mine,dgx-h100-8,{layers},8192,28672,64,8,128,32000,4096,{batch},8,1\n"
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
        mixed = self.write("mixed.csv", "cluster,op,bytes,ranks,measured.time\n"
                           "dgx-h100-8,all_reduce,1048576,8,50us\ndgx-a100-8,all_reduce,1048576,8,70us\n"
                           "dgx-h100-8,all_reduce,1048576,eight,50us\n")
        cut = self.write("cut.log", log_text()[:-8])
        wrong = self.write("wrong.log", log_text().replace("0.1 0\n", "0.1 4\n", 1))
        empty = self.write("empty.log", "nothing\n")
        unknown = self.write("unknown.csv", "a,b\n1,2\n")
        self.expect_refused(
            ["calibrate", mixed, cut, wrong, empty, unknown, "--ranks", "none", "--threads", "0",
             "--allow", "5", "--write-chip", "chip.json"],
            "mixed.csv: has measurements of a100-sxm-80gb, h100-sxm",
            "mixed.csv:4: ranks: must be 2 to 1048576, is \"eight\"",
            "cut.log:21: the log ends within this row",
            "wrong.log:2: 4 values are wrong: the test failed",
            "empty.log: has no measurement",
            "unknown.csv: has no column that begins with measured.",
            "scripts/convert_tables.py converts tables of 0.1",
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
        table = self.write("extra.csv", pathlib.Path(MATMULS).read_text().replace(",said", ",sad", 1))
        self.expect_refused(["calibrate", table], "extra.csv:2: sad: is no column of this kind of table; did you mean said?")

    def test_a_file_that_starts_from_another_file_is_refused(self):
        first = self.write("first.textproto", 'catalog: "second.textproto"')
        self.write("second.textproto", 'catalog: "first.textproto"')
        self.expect_refused(["run", program.SMALL, "--chip", first],
                            "cluster.chip.catalog: must be a name of the catalog in a file that is itself")

    def test_a_trace_of_the_profiler_gives_a_chip(self):
        trace = ProfilerTrace()
        for repeat in range(3):  # the median of a shape counts
            for m, n, k in SHAPES:
                trace.matmul(m, n, k, slow_matmul_us(m, n, k) * (1, 1.01, 7)[repeat])
        trace.op("aten::bmm", [[8, 64, 64], [8, 64, 64]], "batched_gemm", 9)
        trace.op("aten::mm", [[64, 64], [64, 64]], "sm80_xmma_gemm_tf32f32", 9, input_type="float")
        file = self.write("step.json", trace.json())
        chip = str(self.folder / "chip.textproto")
        result = self.result(file, "--write-chip", chip)
        self.assertEqual(result["files"], [{"file": "step.json", "kind": "matmuls of a trace",
                                            "rows": 36, "used": 36}])
        self.assertEqual({one["reason"]: one["rows"] for one in result["unused"]},
                         {"kernels of matmuls whose op says no shape of one matmul": 1,
                          "matmuls in TF32, which is no type of stepsim": 1})
        fit = result["fits"][0]
        self.assertEqual((fit["of"], fit["shapes"]), ("bf16 matmuls on h100-sxm", 36))
        errors = {line["of"]: line for line in fit["errors"]}
        self.assertGreater(errors["held out"]["rows"], 2)
        self.assertGreater(errors["held out"]["median_before"], 0.25)
        self.assertLess(errors["held out"]["median_after"], 0.06)
        self.assertIn("step.json (matmuls of a trace, 36 of 36 rows)", pathlib.Path(chip).read_text())
        run = stepsim("run", program.SMALL, "--chip", chip, "--json", "-")
        slower = json.loads(run.stdout)["step_time_s"]
        self.assertGreater(slower, 1.15 * json.loads(stepsim("run", program.SMALL, "--json", "-").stdout)[
            "step_time_s"])

    def test_older_traces_have_the_correlation_for_the_op(self):
        trace = ProfilerTrace()
        for shape in SHAPES:
            trace.matmul(*shape, slow_matmul_us(*shape))
        now = self.result(self.write("now.json", trace.json()))
        for event in trace.events:
            if event["cat"] != "cpu_op":
                event["args"]["correlation"] += 5  # some of these numbers are also those of ops
                event["args"]["External id"] = event["args"]["correlation"]
        older = self.result(self.write("older.json", trace.json()))
        self.assertEqual(older["fits"], now["fits"])

    def test_two_steps_give_what_one_does_not_determine(self):
        few = ProfilerTrace()
        for shape in SHAPES[:4]:
            few.matmul(*shape, slow_matmul_us(*shape))
        more = ProfilerTrace()
        for shape in SHAPES[4:]:
            more.matmul(*shape, slow_matmul_us(*shape))
        files = [self.write("few.json", few.json()), self.write("more.json", more.json())]
        fitted = [sum(constant["fitted"] for constant in self.result(*given)["fits"][0]["constants"])
                  for given in (files[:1], files)]
        self.assertLessEqual(fitted[0], 1)  # three shapes a constant
        self.assertGreater(fitted[1], fitted[0])

    def test_launches_of_a_trace_are_the_hosts(self):
        trace = ProfilerTrace(launch_us=12.5)
        for _ in range(60):
            trace.op("aten::add", [[4], [4]], "elementwise_kernel", 2)
        for _ in range(60):  # each waits for the chip before the next launch
            trace.op("aten::add", [[4], [4]], "elementwise_kernel", 100)
            trace.wait(90)
        file = self.write("step.json", trace.json())
        launch = self.result(file)["launch"]
        self.assertEqual((launch["launches"], launch["quarter_s"], launch["held_out_quarter_s"]),
                         (60, 12.5e-6, 12.5e-6))
        few = ProfilerTrace()
        for shape in SHAPES[:9]:
            few.matmul(*shape, slow_matmul_us(*shape))
        self.assertNotIn("launch", self.result(self.write("few.json", few.json())))
        self.assertIn("--set software.host_launch_cost=12.5us", stepsim("calibrate", file).stdout)
        run = stepsim("run", program.SMALL, "--set", "software.host_launch_cost=12.5us")
        self.assertEqual(run.returncode, 0, run.stderr)

    def test_collectives_of_a_trace_need_all_ranks(self):
        def trace(rank):
            one = ProfilerTrace(rank=rank)
            for exponent in range(12, 31):
                one.now = 1000 + 100000 * exponent + (300 if rank == 1 else 0)
                # Rank 0 comes 300 us before rank 1, and waits for it.
                us = 40 + 2 ** exponent / 150e3 + (300 if rank == 0 else 0)
                one.op("record_param_comms", [], "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", us,
                       **{"Collective name": "allreduce", "In msg nelems": 2 ** exponent // 2,
                          "Out msg nelems": 2 ** exponent // 2, "Group size": 2,
                          "dtype": "BFloat16", "Process Group Name": "0",
                          "Process Group Ranks": "[0, 1]"})
            return self.write(f"rank{rank}.json", one.json())
        files = [trace(0), trace(1)]
        library = str(self.folder / "library.textproto")
        result = self.result(",".join(files), "--write-library", library)
        self.assertEqual(result["files"], [{"file": "rank0.json", "kind": "collectives of a trace",
                                            "rows": 19, "used": 19}])
        self.assertEqual(result["libraries"][0]["errors"][0]["of"], "all_reduce of 2")
        self.assertLess(result["libraries"][0]["errors"][0]["median_after"], 0.1)
        self.assertIn("rank0.json", pathlib.Path(library).read_text())
        alone = stepsim("calibrate", files[0])
        self.assertEqual(alone.returncode, 2)
        self.assertIn("19 rows can't be used: collectives whose time contains the wait", alone.stderr)

    def test_what_is_wrong_with_traces(self):
        trace = ProfilerTrace(device="Some Chip 3000")
        trace.matmul(64, 64, 64, 5)
        other = ProfilerTrace()
        other.matmul(64, 64, 64, 5)
        file, h100 = self.write("a.json", trace.json()), self.write("b.json", other.json())
        for arguments, words in (([file], "ran on Some Chip 3000, which tables don't know: --hardware"),
                                 ([file + "," + h100], "ran on NVIDIA H100 80GB HBM3, another file or "
                                  "chip on Some Chip 3000"),
                                 ([self.write("c.json", trace.json()[:200])], "ends inside event")):
            refused = stepsim("calibrate", *arguments)
            self.assertEqual(refused.returncode, 2, refused.stdout)
            self.assertIn(words, refused.stderr)


if __name__ == "__main__":
    main()
