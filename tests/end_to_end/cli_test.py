#!/usr/bin/env python3
"""Runs the built stepsim as a person does: cli_test.py PATH-TO-STEPSIM.

Good runs, every kind of bad input, files that can't be written, interrupts. Standard library only.
"""
import gzip
import json
import os
import pathlib
import pty
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

STEPSIM = ""
SMALL = "llama3-8b-dgx-h100-8"
# Long enough to be interrupted on any machine.
LONG = ["run", "llama3-70b-dgx-h100-512", "--steps", "1000"]
TIMEOUT_S = 600


def stepsim(*arguments, **options):
    return subprocess.run(
        [STEPSIM, *arguments], capture_output=True, text=True, timeout=TIMEOUT_S, **options
    )


def on_terminal(*arguments, environment=None):
    """What stepsim writes to a terminal that is both its standard output and error."""
    controller, terminal = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", **(environment or {})}
    process = subprocess.Popen(
        [STEPSIM, *arguments], stdout=terminal, stderr=terminal, env=environment
    )
    os.close(terminal)
    return process, controller


def read_all(controller):
    text = b""
    while True:
        try:
            part = os.read(controller, 65536)
        except OSError:  # the other end was closed
            return text.decode()
        if not part:
            return text.decode()
        text += part


class StepsimTest(unittest.TestCase):
    def setUp(self):
        self.folder_owner = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder_owner.cleanup)
        self.folder = pathlib.Path(self.folder_owner.name)

    def files(self):
        return sorted(path.name for path in self.folder.iterdir())

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def expect_refused(self, arguments, *messages):
        """Exit status 2, each message on standard error, nothing else anywhere."""
        before = self.files()
        result = stepsim(*arguments)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(result.stdout, "")
        for message in messages:
            self.assertIn(message, result.stderr)
        self.assertEqual(self.files(), before)
        return result.stderr


class HelpTest(StepsimTest):
    def test_says_what_it_is(self):
        for arguments in ([], ["help"], ["--help"]):
            result = stepsim(*arguments)
            self.assertEqual(result.returncode, 0)
            self.assertIn("stepsim run EXPERIMENT", result.stdout)
        self.assertRegex(stepsim("--version").stdout, r"^stepsim \d+\.\d+\.\d+\n$")

    def test_every_subcommand_has_help(self):
        for arguments in (["help", "run"], ["run", "--help"]):
            self.assertIn("--attention-flops", stepsim(*arguments).stdout)
        for arguments in (["help", "catalog"], ["catalog", "--help"]):
            self.assertIn("stepsim catalog KIND NAME", stepsim(*arguments).stdout)
        for arguments in (["help", "formula"], ["formula", "--help"]):
            self.assertIn("stepsim formula E7 B=48000", stepsim(*arguments).stdout)

    def test_a_misspelt_subcommand_gets_a_suggestion(self):
        self.expect_refused(["runn", SMALL], "runn: no such subcommand; did you mean run?")


class FormulaTest(StepsimTest):
    def test_lists_explains_and_evaluates(self):
        self.assertIn("  E7 ", stepsim("formula").stdout)
        self.assertNotIn("  E7 ", stepsim("formula", "F").stdout)
        explanation = stepsim("formula", "E8").stdout
        for part in ("(C / W)^2 / (MX * MY * F)", "Source", "Printed wrongly", "E8.unoverlapped"):
            self.assertIn(part, explanation)
        # sqrt(48000 x 2 x 64 / 32768) = 13.693
        answer = stepsim("formula", "E7", "B=48000", "N=64", "F=32768", "MX=2", "MY=1")
        self.assertIn("X_opt = 13.6931 ways", answer.stdout)

    def test_the_catalog_fills_symbols_and_what_is_given_goes_first(self):
        # 2 x 1 x 80 x 8 x 128
        model = stepsim("formula", "D9", "b=1", "model=llama3-70b", "--json", "-")
        self.assertEqual(json.loads(model.stdout)["values"], [163840])
        fewer = stepsim("formula", "D9", "b=1", "model=llama3-70b", "L=40", "--json", "-")
        self.assertEqual(json.loads(fewer.stdout)["values"], [81920])
        # 459e12 / 180e9 / 3
        chip = stepsim("formula", "E1", "chip=tpu-v5p", "W=180GB/s", "M=3", "--json", "-")
        self.assertEqual(json.loads(chip.stdout)["values"], [850])

    def test_a_chip_may_be_named_by_its_generation(self):
        # 459e12 / (2 x 90e9) / 3: the bandwidth of a TPU's axis is known too
        answer = stepsim("formula", "E1", "chip=v5p", "M=3", "--json", "-")
        self.assertEqual(json.loads(answer.stdout)["values"], [850])

    def test_says_which_experiments_test_a_formula(self):
        self.assertIn("stepsim validate B1", stepsim("formula", "B1").stdout)
        self.assertIn("S3.split-n16", stepsim("formula", "B1").stdout)

    def test_solves_for_one_input(self):
        # F = Y C / W = 16 x 2550
        answer = stepsim("formula", "E4", "Y_max=16", "chip=tpu-v5p", "W=180GB/s", "F=?")
        self.assertIn("F = 40800 gives Y_max = 16 ways", answer.stdout)

    def test_warns_outside_the_conditions(self):
        answer = stepsim("formula", "E3", "B=16e6", "M=3", "W=180GB/s", "C=459TFLOPS")
        self.assertEqual(answer.returncode, 0)
        self.assertIn("warning: does not hold: one ICI domain", answer.stdout)

    def test_refuses_with_all_problems_at_once(self):
        self.expect_refused(["formula", "E7.tpp"], "no such formula; did you mean E7.tp?")
        self.expect_refused(
            ["formula", "E7", "B=nan", "N=2.5", "f=1", "chip=h100-sxm", "word", "--jsn", "x"],
            "B: must be a number of tokens",
            "N: must be a whole number from 1 on, is 2.5",
            "f: is no input of E7; did you mean F?",
            "F: must be given: MLP width",
            "chip=h100-sxm: E7 has no symbol that this could fill",
            "word: must be SYMBOL=VALUE",
            "--jsn: no such option; did you mean --json?",
        )
        self.expect_refused(["formula", "D9", "b=1", "model=llama3-7b"], "model=llama3-7b: ")
        self.expect_refused(["formula", "A3", "chip=tpuv5p", "C=1", "C=2"], "chip=tpuv5p: ",
                            "C: is given twice")
        self.expect_refused(["formula", "E4", "Y_max=16", "chip=h100", "F=?"], "W: must be given")
        self.expect_refused(["formula", "E4", "F=1", "C=1", "W=180GB"],
                            'W: must be a number of B/s that is not negative, is "180GB"')
        self.expect_refused(["formula", "A17"], "A17: is no formula but a measurement")
        self.expect_refused(["formula", "E4", "F=?", "C=1", "W=1"], "Y_max: must be given, to solve")
        self.expect_refused(
            ["formula", "G1.fraction", "P=8", "bubble=1.5", "m=?"], "m: no value from 1 on gives bubble = 1.5"
        )


class ValidateTest(StepsimTest):
    def test_rows_say_what_was_predicted_simulated_and_expected(self):
        done = stepsim("validate", "S3", "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        cases = {case["id"]: case for case in json.loads(done.stdout)["cases"]}
        row = cases["S3.split-n16"]
        for key in ("formula", "predicted", "simulated", "unit", "relative_difference",
                    "expected_difference", "as_expected", "holds", "why"):
            self.assertIn(key, row)
        # 64 MiB / 90 GB/s, and 15/16 of it
        self.assertAlmostEqual(row["predicted"], 745.654e-6, delta=1e-9)
        self.assertAlmostEqual(row["relative_difference"], -1 / 16, delta=1e-4)
        self.assertEqual((row["formula"], row["unit"]), ("B1", "s"))
        self.assertEqual((row["as_expected"], row["holds"]), (True, False))
        self.assertTrue(cases["S3.whole-n16"]["holds"])

    def test_rows_are_chosen_by_experiment_row_or_formula(self):
        def ids(*words):
            answer = stepsim("validate", *words, "--json", "-").stdout
            return [case["id"] for case in json.loads(answer)["cases"]]

        self.assertEqual(ids("S5.knee", "S6"), ["S5.knee", "S6.three-colours", "S6.axis-after-axis",
                                                "S6.axes-overlapped", "S6.two-colours"])
        self.assertEqual(ids("C20"), ["S27.overlapped", "S27.in-turn"])
        text = stepsim("validate", "S5.knee").stdout
        for part in ("a collective takes the larger of", "6 us", "+100.00 %", "none is unexpected"):
            self.assertIn(part, text)

    def test_network_models_stand_side_by_side(self):
        done = stepsim("validate", "S10.equal", "--fidelity", "all", "--json", "-")
        difference = {case["fidelity"]: case["relative_difference"]
                      for case in json.loads(done.stdout)["cases"]}
        self.assertAlmostEqual(difference["latency-bandwidth"], 0, delta=1e-4)
        self.assertAlmostEqual(difference["flow"], 1, delta=1e-4)
        self.assertAlmostEqual(difference["packet"], 1, delta=1e-2)

    def test_plots_are_written(self):
        folder = self.folder / "plots"
        done = stepsim("validate", "S5", "--plot", str(folder))
        self.assertEqual(done.returncode, 0, done.stderr)
        svg = (folder / "S5-latency.svg").read_text()
        self.assertTrue(svg.startswith("<svg ") and "latency and bytes: simulated" in svg)

    def test_worked_figures_come_out_right(self):
        done = stepsim("validate", "--cases", "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        cases = json.loads(done.stdout)["worked_cases"]
        self.assertEqual(len(cases), 284)
        self.assertTrue(all(case["as_expected"] for case in cases))
        self.assertIn("printed wrongly", stepsim("validate", "--cases", "E8").stdout)

    def test_refuses_with_all_problems_at_once(self):
        text = self.expect_refused(
            ["validate", "S99", "S5.kne", "J5", "--fidelity", "packets"],
            "S99: no such experiment, row, formula or word of a chapter; did you mean S19?",
            "S5.kne: no such experiment, row, formula or word of a chapter; did you mean S5.knee?",
            "J5: no experiment tests this formula",
            "--fidelity: must be latency-bandwidth, flow, packet or all, is \"packets\"")
        self.assertIn("4 problems", text)
        self.expect_refused(["validate", "--plot", __file__], "--plot: ")
        self.expect_refused(["validate", "--cases", "E999", "--plot", "x"],
                            "--plot: means nothing with --cases")
        self.expect_refused(["validate", "--cases", "Z9"], "Z9: no worked case")


class CatalogTest(StepsimTest):
    def test_lists_and_prints(self):
        everything = stepsim("catalog").stdout
        self.assertIn("experiments\n", everything)
        self.assertIn("  llama3-70b-dgx-h100-512\n", everything)
        self.assertIn("llama3-70b\n", stepsim("catalog", "models").stdout)
        self.assertIn('"num_hidden_layers": 80', stepsim("catalog", "model", "llama3-70b").stdout)
        self.assertIn("nodes: 13", stepsim("catalog", "clusters", "dgx-h100-104").stdout)

    def test_what_it_prints_can_be_run(self):
        experiment = stepsim("catalog", "experiments", SMALL).stdout
        cluster = stepsim("catalog", "clusters", "dgx-h100-8").stdout
        path = self.write("mine.textproto", experiment)
        cluster_path = self.write("cluster.textproto", cluster)
        mine = json.loads(stepsim("run", path, "--cluster", cluster_path, "--json", "-").stdout)
        built_in = json.loads(stepsim("run", SMALL, "--json", "-").stdout)
        self.assertEqual(mine["step_time_s"], built_in["step_time_s"])

    def test_refuses_what_is_not_there(self):
        self.expect_refused(["catalog", "modells"], 'KIND: must be one of', "did you mean models?")
        self.expect_refused(["catalog", "models", "lama3-8b"], "did you mean llama3-8b?")


class ImportTest(StepsimTest):
    def test_prints_a_model_file_that_runs_as_the_config_does(self):
        config = self.write("config.json", stepsim("catalog", "models", "llama3-8b").stdout)
        imported = stepsim("import", "hf", config)
        self.assertEqual(imported.returncode, 0, imported.stderr)
        self.assertTrue(imported.stdout.startswith("# From config.json: 8,030,261,248 parameters.\n"))
        model = self.write("model.textproto", imported.stdout)
        mine = json.loads(stepsim("run", SMALL, "--model", model, "--json", "-").stdout)
        by_name = json.loads(stepsim("run", SMALL, "--json", "-").stdout)
        self.assertEqual(mine["step_time_s"], by_name["step_time_s"])

    def test_says_how_many_parameters_are_active(self):
        config = self.write("config.json", stepsim("catalog", "models", "deepseek-v3").stdout)
        self.assertIn(
            "671,026,404,352 parameters, 37,552,282,624 active for a token, 11,610,067,968 for "
            "multi-token prediction besides.", stepsim("import", "hf", config).stdout)

    def test_refuses_what_it_does_not_know(self):
        config = self.write("config.json", '{"model_type": "mamba"}')
        self.expect_refused(["import", "hf", config], "config.json: model_type: must be ",
                            'is "mamba"')
        self.expect_refused(["import", "onnx", config], 'FORMAT: must be hf, is "onnx"')
        self.expect_refused(["import", "hf"], "CONFIG: must be given")


class RunTest(StepsimTest):
    def test_prints_the_table_and_writes_the_files(self):
        result_path = str(self.folder / "result.json")
        trace_path = str(self.folder / "trace.json.gz")
        result = stepsim("run", SMALL, "--json", result_path, "--trace", trace_path)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")
        self.assertIn("step time", result.stdout)
        self.assertNotIn("\x1b", result.stdout)
        self.assertEqual(self.files(), ["result.json", "trace.json.gz"])
        data = json.loads(pathlib.Path(result_path).read_text())
        self.assertGreater(data["step_time_s"], 0)
        self.assertEqual(list(data)[-1], "simulator")

    def test_json_alone_on_standard_output(self):
        result = stepsim("run", SMALL, "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("step_time_s", json.loads(result.stdout))
        self.assertEqual(result.stderr, "")

    def test_the_same_input_gives_the_same_bytes(self):
        outputs = []
        for run in ("first", "second"):
            trace = self.folder / f"{run}.trace.json"
            text = stepsim("run", SMALL, "--json", "-", "--trace", str(trace)).stdout
            head, separator, _ = text.partition('"simulator"')
            self.assertTrue(separator)
            outputs.append((head, trace.read_bytes()))
        self.assertEqual(outputs[0], outputs[1])

    def test_flags_alone_are_the_experiment_of_the_catalog(self):
        flags = ["--model", "llama3-8b", "--cluster", "dgx-h100-8", "--plan",
                 "tp=2,dp=4,zero=1,microbatch=1,global-batch=64,sequence=8192"]
        by_flags = json.loads(stepsim("run", *flags, "--json", "-").stdout)
        by_name = json.loads(stepsim("run", SMALL, "--json", "-").stdout)
        self.assertEqual(by_flags["step_time_s"], by_name["step_time_s"])

    def test_a_hugging_face_config_is_a_model(self):
        config = stepsim("catalog", "models", "llama3-8b").stdout
        path = self.write("config.json", config)
        mine = stepsim("run", SMALL, "--model", path, "--json", "-")
        self.assertEqual(mine.returncode, 0, mine.stderr)
        by_name = json.loads(stepsim("run", SMALL, "--json", "-").stdout)
        self.assertEqual(json.loads(mine.stdout)["step_time_s"], by_name["step_time_s"])

    def test_overrides_change_the_run(self):
        base = json.loads(stepsim("run", SMALL, "--json", "-").stdout)
        halved = json.loads(
            stepsim("run", SMALL, "--set", "plan.global_batch=32", "--json", "-").stdout)
        self.assertLess(halved["step_time_s"], base["step_time_s"])
        self.assertEqual(2 * halved["model_flops_per_step"], base["model_flops_per_step"])

    def test_traces_the_ranks_that_were_asked_for(self):
        trace = self.folder / "trace.json"
        result = stepsim("run", SMALL, "--trace", str(trace), "--trace-ranks", "0,5-6")
        self.assertEqual(result.returncode, 0, result.stderr)
        names = [event["args"]["name"] for event in json.loads(trace.read_text())["traceEvents"]
                 if event["name"] == "process_name"]
        ranks = [name.split()[1] for name in names if name.startswith("rank ")]
        self.assertEqual(ranks, ["0", "5", "6"])

    def test_a_plan_that_does_not_fit_is_a_result(self):
        plan = ["--set", "plan.tp=1", "--set", "plan.dp=8", "--set", "plan.zero=0"]
        result = stepsim("run", SMALL, *plan, "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertFalse(json.loads(result.stdout)["memory"]["fits"])
        self.assertEqual(stepsim("run", SMALL, *plan, "--require-fit").returncode, 1)
        self.assertEqual(stepsim("run", SMALL, "--require-fit").returncode, 0)


class RunScheduleTest(StepsimTest):
    PLAN = "tp=1,dp=2,pp=4,global-batch=32,sequence=2048"

    def run_with(self, keys):
        result = stepsim("run", "--model", "llama3-8b", "--cluster", "dgx-h100-8", "--plan",
                         f"{self.PLAN},{keys}", "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_schedules_overlap_steps_where_their_bubble_is_between_them(self):
        # What is left is the wait for the last stage, which has the head besides its layers.
        plain = self.run_with("schedule=1f1b")
        split = self.run_with("schedule=zb_auto_2p")
        self.assertEqual((plain["steps"], split["steps"]), (1, 2))
        self.assertLess(split["breakdown_s"]["bubble"], 0.8 * plain["breakdown_s"]["bubble"])
        self.assertGreater(split["memory"]["peak_bytes"], plain["memory"]["peak_bytes"])

    def test_a_schedule_of_ones_own_comes_from_a_file(self):
        ranks = ["F0.0 F1.0 BW0.0 BW1.0"] * 3 + ["F0.0 BW0.0 F1.0 BW1.0"]
        path = self.write("own.schedule", "\n".join(ranks))
        keys = f"global-batch=4,schedule={path}"
        result = stepsim("run", "--model", "llama3-8b", "--cluster", "dgx-h100-8", "--plan",
                         f"tp=1,dp=2,pp=4,sequence=2048,{keys}", "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.expect_refused(["run", "--model", "llama3-8b", "--cluster", "dgx-h100-8", "--plan",
                             f"{self.PLAN},schedule={path}"],
                            "plan.global_batch: makes micro-batches: 16, but the schedule's file")

    def test_a_layout_has_commas(self):
        plain = self.run_with("schedule=interleaved_1f1b")
        uneven = self.run_with("layout=3,4*6,5,schedule=interleaved_1f1b")
        self.assertLess(plain["step_time_s"], uneven["step_time_s"])


class BadInputTest(StepsimTest):
    def test_each_wrong_field_has_its_message(self):
        cases = {
            "plan.tp=3": "plan.tp: is 3, which does not divide the model's attention heads (32)",
            "plan.pp=5": "plan.pp: is 5, which does not divide the model's layers (32)",
            "plan.dp=8": "is more than the cluster's 8 chips",
            "plan.global_batch=65": "plan.global_batch: is 65, which is not a multiple of",
            "plan.sequence=-8": "plan.sequence: must be at least 1, is -8",
            "plan.microbatch=0": "plan.microbatch: must be at least 1, is 0",
            "plan.map=tp:gpu/dp:gpu": "uses level 'gpu', which is mapped already",
            "plan.map=tp:gpu/tp:node": "axis tp is mapped twice",
            "plan.zero=4": "plan.zero: must be 0 (replicated), 1 (optimizer state divided), 2",
            "plan.schedule=zb_h11": "did you mean zb_h1?",
            "plan.schedule=dualpipe": "plan.pp: must be even for dualpipe",
            "plan.chunks=2": "plan.chunks: must be 1 for 1f1b, is 2",
            "plan.recompute=some": "plan.recompute: must be none or selective or matmuls or alternate or full",
            "plan.colour=red": "no field colour in Plan",
            "plan.tpp=8": "did you mean tp?",
            "cluster.chip.memory_bandwidth=3TB": 'must be a bandwidth such as',
            "cluster.chip.memory_capacity=nan": 'must be a size such as',
            "cluster.dgx_superpod.nodes=-1": "cluster.dgx_superpod.nodes: must be at least 1",
            "model.catalog=llama3-7b": "no model llama3-7b in the catalog; did you mean",
            "model.layers=0": "model.layers: must be at least 1, is 0",
        }
        for change, message in cases.items():
            with self.subTest(change):
                self.expect_refused(["run", SMALL, "--set", change], message)

    def test_all_problems_of_file_flags_and_options_come_at_once(self):
        path = self.write("bad.textproto", """
model { catalog: "llama3-8b" layers: -1 }
cluster { catalog: "dgx-h100-8" dgx_superpod { nvlink_latency: "5GB" } }
plan { tp: 2 dp: 4 microbach: 1 global_batch: 65 sequence: 8192 }
""")
        text = self.expect_refused(
            ["run", path, "--set", "plan.etp=2", "--fidelity", "packets", "--json",
             str(self.folder / "none" / "x.json")],
            "bad.textproto:4:20: no field microbach in Plan; did you mean microbatch?",
            "model.layers: must be at least 1, is -1",
            "cluster.dgx_superpod.nvlink_latency: must be a time such as",
            "plan.global_batch: is 65",
            "plan.etp: ",
            '--fidelity: must be all or flow or latency-bandwidth or packet, is "packets"',
            str(self.folder / "none"))
        self.assertIn("7 problems", text)

    def test_options_are_checked(self):
        self.expect_refused(["run", SMALL, "--step", "2"], "--step: no such option; did you mean "
                            "--steps?")
        self.expect_refused(["run", SMALL, "--steps", "0"], "--steps: must be a whole number from")
        self.expect_refused(["run", SMALL, "--steps"], "--steps")
        self.expect_refused(["run", SMALL, "--granularity", "fine"],
                            "--granularity: must be pipelined or stepped")
        self.expect_refused(["run", SMALL, "--trace-ranks", "0"], "--trace-ranks: needs --trace")
        trace = ["--trace", str(self.folder / "t.json")]
        for ranks in ("8", "3-1", "a", "", "0,,1", "1,0-2"):
            with self.subTest(ranks):
                self.expect_refused(["run", SMALL, *trace, "--trace-ranks", ranks], "--trace-ranks")
        self.expect_refused(["run", SMALL, "other"], "other: there can be only one EXPERIMENT")
        self.expect_refused(["run"], "EXPERIMENT: must be given")
        self.expect_refused(["run", "--model", "llama3-8b"], "--cluster: must be given",
                            "--plan: must be given")

    def test_packets_say_how_many_they_are(self):
        arguments = ["run", SMALL, "--set", "plan.global_batch=8", "--fidelity", "packet",
                     "--json", "-"]
        done = stepsim(*arguments, "--packet-bytes", "1048576")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"packets: about [\d.e+]+ packet-hops, less than a second")
        result = json.loads(done.stdout)
        self.assertEqual((result["fidelity"], result["granularity"]), ("packet", "stepped"))
        self.assertGreater(result["simulator"]["packet_hops"], 0)
        self.expect_refused(arguments + ["--packet-bytes", "64"], "more than 10^9 need --yes")

    def test_all_network_models_stand_side_by_side(self):
        arguments = ["run", SMALL, "--set", "plan.global_batch=8", "--fidelity", "all",
                     "--packet-bytes", "1048576"]
        done = stepsim(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"latency-bandwidth +flow +packet\n")
        for row in ("step time", "compute", "shared links cost", "queues and packets cost"):
            self.assertIn("  " + row, done.stdout)
        answer = json.loads(stepsim(*arguments, "--json", "-").stdout)
        self.assertEqual([run["fidelity"] for run in answer["runs"]],
                         ["latency-bandwidth", "flow", "packet"])
        self.assertEqual({run["granularity"] for run in answer["runs"]}, {"stepped"})
        # Each column is the run that has this model alone.
        alone = stepsim("run", SMALL, "--set", "plan.global_batch=8", "--granularity", "stepped",
                        "--json", "-")
        self.assertEqual(answer["runs"][1]["step_time_s"], json.loads(alone.stdout)["step_time_s"])
        trace = str(self.folder / "t.json")
        self.expect_refused([*arguments, "--trace", trace], "--trace: is of one run")

    def test_explains_the_step_by_the_formulas(self):
        done = stepsim("run", "llama3-70b-v5p-4x4x8", "--explain")
        self.assertEqual(done.returncode, 0, done.stderr)
        for text in ("Explained", "exposed tp", "Limits of the books", "Memory explained",
                     "dp: compute-bound, in tokens of a replica and micro-batch, from 1275"):
            self.assertIn(text, done.stdout)
        result = json.loads(stepsim("run", SMALL, "--explain", "--json", "-").stdout)
        explain = result["explain"]
        self.assertEqual(list(explain), ["step", "parts", "traffic", "limits", "memory"])
        self.assertAlmostEqual(sum(part["simulated_s"] for part in explain["parts"]),
                               float(result["step_time_s"]), places=9)
        for part in explain["parts"] + [explain["step"]]:
            causes = sum(cause["amount_s"] for cause in part["causes"])
            self.assertAlmostEqual(part["predicted_s"] + causes, part["simulated_s"], places=6)
        self.assertNotIn("explain", json.loads(stepsim("run", SMALL, "--json", "-").stdout))

    def test_packet_options_are_checked(self):
        self.expect_refused(
            ["run", SMALL, "--fidelity", "packet", "--granularity", "pipelined", "--buffer-bytes",
             "4095", "--spraying", "0"],
            "--granularity: must be stepped with --fidelity packet",
            "--buffer-bytes: must be a whole number from 4096",
            "--spraying: must be a whole number from 1")
        self.expect_refused(["run", SMALL, "--yes"], "--yes: needs --fidelity packet")

    def test_output_paths_are_checked_before_the_simulation(self):
        self.expect_refused([*LONG, "--json", str(self.folder)], str(self.folder))
        self.expect_refused([*LONG, "--trace", str(self.folder / "none" / "t.json")], "none")
        same = str(self.folder / "same.json")
        self.expect_refused(["run", SMALL, "--json", same, "--trace", same],
                            "--json: must be another file than --trace")


class NetworkTest(StepsimTest):
    # Two flows into one link of 1 GB/s, the second after the first; ids of both types.
    CASE = {
        "format": "stepsim-oracle-flow/1", "name": "two",
        "links": [
            {"id": "ab", "from": "a", "to": "b", "capacity_Bps": 1e9, "latency_s": 1e-6},
            {"id": 7, "from": "b", "to": "c", "capacity_Bps": 2e9, "latency_s": 0}],
        "flows": [
            {"id": "1", "src": "a", "dst": "c", "route": ["ab", 7], "bytes": 4096, "start_s": 0,
             "after": []},
            {"id": 1, "src": "a", "dst": "b", "route": ["ab"], "bytes": 4096, "start_s": 1e-6,
             "after": ["1"]}],
        "expect": [{"flow": "1", "finish_s": 5.096e-06}],
    }

    def write_case(self, **changes):
        return self.write("case.json", json.dumps({**self.CASE, **changes}))

    def test_says_when_each_flow_ends(self):
        result = stepsim("network", self.write_case(), "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn('"makespan_s": 0.000010192000,', result.stdout)
        answer = json.loads(result.stdout)
        # 1 us + 4,096 B at 1 GB/s = 5.096 us, and the same again.
        self.assertEqual(answer["flows"], [{"id": "1", "finish_s": 5.096e-06},
                                           {"id": 1, "finish_s": 1.0192e-05}])
        self.assertEqual(list(answer)[-1], "simulator")
        self.assertLessEqual({"events", "rate_updates", "wall_s", "cpu_s", "peak_rss_bytes"},
                             set(answer["simulator"]))
        table = stepsim("network", self.write_case()).stdout
        self.assertIn("makespan 10.2 us  (0.000010192000 s)", table)
        self.assertIn("worst relative difference 0.0e+00", table)

    def test_runs_on_every_model(self):
        path = self.write_case()
        # One packet, stored and forwarded: 1 us + 4.096 us, and 2.048 us on the second link.
        for fidelity, finish_s in (("flow", 5.096e-6), ("latency-bandwidth", 5.096e-6),
                                   ("packet", 7.144e-6)):
            answer = json.loads(
                stepsim("network", path, "--fidelity", fidelity, "--json", "-").stdout)
            self.assertEqual(answer["fidelity"], fidelity)
            # Without contention, bytes / bandwidth is rounded up to a picosecond.
            self.assertAlmostEqual(answer["flows"][0]["finish_s"], finish_s, delta=1.5e-12)

    def test_a_packet_case_runs_in_packets(self):
        path = self.write_case(format="stepsim-oracle-packet/1", packet_bytes=2048,
                               switching="store_and_forward")
        answer = json.loads(stepsim("network", path, "--json", "-").stdout)
        # Two packets: 1 us + 2 x 2.048 us, and 1.024 us for the last one on the second link.
        self.assertEqual(answer["flows"][0]["finish_s"], 6.12e-6)

    def test_reads_gzip_and_refuses_half_of_it(self):
        whole = gzip.compress(json.dumps(self.CASE).encode())
        path = self.folder / "case.json.gz"
        path.write_bytes(whole)
        self.assertEqual(stepsim("network", str(path)).returncode, 0)
        path.write_bytes(whole[:-5])
        self.expect_refused(["network", str(path)], "is truncated")

    def test_two_runs_give_the_same_bytes(self):
        path = self.write_case()
        heads = [stepsim("network", path, "--json", "-").stdout.partition('"simulator"')[0]
                 for _ in range(2)]
        self.assertEqual(heads[0], heads[1])

    def test_all_problems_come_at_once(self):
        links = [{"id": "ab", "from": "a", "to": "b", "capacity_Bps": 0, "latency_s": -1},
                 {"id": "ab", "from": "b", "to": "c", "capacity_Bps": 1, "latency_s": 0},
                 {"id": "cd", "from": "c", "to": "d", "capacity_Bps": 1, "latency_s": 0}]
        flows = [{"id": 1, "route": ["ab", "cd"], "bytes": -1, "start_s": 0, "after": [2]},
                 {"id": 2, "route": ["xy"], "bytes": float("nan"), "start_s": 0, "after": [1]},
                 {"id": 2, "route": [], "bytes": 1, "after": [5]}]
        text = self.expect_refused(
            ["network", self.write_case(links=links, flows=flows), "--fidelity", "exact"],
            '--fidelity: must be latency-bandwidth, flow or packet, is "exact"',
            "links[0].capacity_Bps: must be above 0, is 0",
            "links[0].latency_s: must be a time from 0",
            'links[1].id: "ab" is the id of an earlier link too',
            'flows[0].route[1]: link "cd" begins at "c", but the link before it ends at "b"',
            "flows[0].bytes: must be a whole number",
            'flows[1].route[0]: no link has the id "xy"',
            'flows[1].bytes: must be a whole number from 0 to 9223372036854775807, is "NaN"',
            "flows[2].id: 2 is the id of an earlier flow too",
            "flows[2].start_s: is missing",
            "flows[2].after[0]: no flow has the id 5",
            "1 waits for 2 waits for 1")
        self.assertIn("12 problems", text)

    def test_refuses_what_is_no_case(self):
        self.expect_refused(["network"], "CASE: must be given")
        self.expect_refused(["network", str(self.folder / "none.json")], "No such file")
        self.expect_refused(["network", self.write("x.json", "{")], "is not JSON: parse error")
        self.expect_refused(["network", self.write_case(), "--jsn", "-"], "did you mean --json?")
        self.expect_refused(["network", self.write_case(), "--json", str(self.folder)],
                            "it is a folder")

    def test_long_packet_runs_ask_first(self):
        flows = [{**self.CASE["flows"][0], "bytes": 10**13}]
        self.expect_refused(["network", self.write_case(flows=flows), "--fidelity", "packet"],
                            "packet-hops", "--yes")


class UnfinishedOutputTest(StepsimTest):
    def interrupt(self, number):
        process = subprocess.Popen(
            [STEPSIM, *LONG, "--json", str(self.folder / "r.json"), "--trace",
             str(self.folder / "t.json.gz")], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(1.5)
        process.send_signal(number)
        output, error = process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, 128 + number, error)
        self.assertEqual(output, b"")
        self.assertIn(b"interrupted", error)
        self.assertEqual(self.files(), [])

    def test_ctrl_c_leaves_nothing(self):
        self.interrupt(signal.SIGINT)

    def test_sigterm_leaves_nothing(self):
        self.interrupt(signal.SIGTERM)

    def test_a_full_disk_is_an_error_and_leaves_nothing(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

        # Python ignores SIGXFSZ, and so does what it starts here: write() fails instead.
        result = stepsim("run", SMALL, "--trace", str(self.folder / "t.json"), preexec_fn=limit,
                         restore_signals=False)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("t.json", result.stderr)
        self.assertEqual(self.files(), [])

    def test_a_full_device_is_an_error(self):
        with open("/dev/full", "wb") as full:
            result = subprocess.run([STEPSIM, "run", SMALL], stdout=full, stderr=subprocess.PIPE,
                                    text=True, timeout=TIMEOUT_S)
        self.assertEqual(result.returncode, 2)
        self.assertIn("standard output: cannot be written: No space left on device", result.stderr)

    def test_an_older_result_stays_when_a_run_fails(self):
        path = self.write("r.json", "older")
        result = stepsim("run", SMALL, "--json", path, "--trace", "/dev/full")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(pathlib.Path(path).read_text(), "older")


class TerminalTest(StepsimTest):
    def test_colours_are_for_terminals_without_no_color(self):
        process, controller = on_terminal("run", SMALL, environment={"NO_COLOR": ""})
        self.assertIn("\x1b[", read_all(controller))
        self.assertEqual(process.wait(TIMEOUT_S), 0)
        process, controller = on_terminal("run", SMALL, environment={"NO_COLOR": "1"})
        self.assertNotIn("\x1b[", read_all(controller))
        self.assertEqual(process.wait(TIMEOUT_S), 0)

    def test_long_runs_show_how_far_they_are(self):
        process, controller = on_terminal(*LONG)
        time.sleep(4)
        process.send_signal(signal.SIGINT)
        text = read_all(controller)
        self.assertRegex(text, r" \d+ %  simulated ")
        self.assertEqual(process.wait(TIMEOUT_S), 130)


class TopologyTest(StepsimTest):
    # 1,024 GPUs: 128 NVSwitches, 32 leaves, 16 spines. Two links a GPU and way, 32 x 16 cables of
    # leaves and spines. Published: 25.6 TB/s from half to half, 12.8 TB/s out of a unit of 256.
    def test_measures_a_superpod(self):
        result = stepsim("topology", "dgx-h100-1024")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"bisection +25\.6 TB/s")
        self.assertTrue(all(len(line) <= 100 for line in result.stdout.splitlines()))
        found = json.loads(stepsim("topology", "dgx-h100-1024", "--json", "-").stdout)
        self.assertEqual((found["chips"], found["switches"], found["hosts"]), (1024, 176, 0))
        self.assertEqual(found["links"], 2 * (2 * 1024 + 32 * 16))
        self.assertEqual(found["diameter_hops"], 4)
        self.assertEqual(found["bisection_bandwidth_bytes_per_s"], 25.6e12)
        levels = {level["name"]: level for level in found["levels"]}
        self.assertEqual(list(levels), ["gpu", "node", "scalable_unit"])
        self.assertEqual(levels["gpu"]["chip_to_peers_bytes_per_s"], 450e9)
        self.assertEqual(levels["node"]["out_of_group_bytes_per_s"], 400e9)
        self.assertEqual(levels["scalable_unit"]["out_of_group_bytes_per_s"], 12.8e12)
        self.assertEqual(sum(kind["links"] for kind in found["link_kinds"]), found["links"])

    # z is cut twice, 16 x 20 cables of 90 GB/s each; half of each ring to the furthest chip.
    def test_measures_a_whole_pod_in_seconds(self):
        start = time.monotonic()
        found = json.loads(stepsim("topology", "v5p-16x20x28", "--json", "-").stdout)
        self.assertLess(time.monotonic() - start, 20)
        self.assertEqual(found["bisection_bandwidth_bytes_per_s"], 2 * 16 * 20 * 90e9)
        self.assertEqual(found["diameter_hops"], 8 + 10 + 14)
        self.assertEqual(found["routes"][0]["links"][0], "chip0.0.0>chip1.0.0")

    def test_draws(self):
        small = self.folder / "small.dot"
        large = self.folder / "large.dot"
        stepsim("topology", "v5e-4x4", "--dot", str(small))
        text = stepsim("topology", "dgx-h100-1024", "--dot", str(large)).stdout
        self.assertEqual(small.read_text().count("shape=box"), 16)
        self.assertTrue(small.read_text().endswith("}\n"))
        self.assertIn("collapsed: a box is 256 chips", text)
        self.assertIn("collapsed: a box is 256 chips", large.read_text())
        self.assertEqual(self.files(), ["large.dot", "small.dot"])

    # One of eight cards a node is down: 7 x 50 GB/s leave it.
    def test_counts_faults(self):
        path = self.write("slow.textproto", """
catalog: "dgx-h100-16"
faults {
  links { link: "node0.gpu3-su0.leaf3" down: true }
  links { link: "node1.*-node1.nvswitch" capacity: 0.5 }
}
""")
        found = json.loads(stepsim("topology", path, "--json", "-").stdout)
        self.assertEqual(found["levels"][1]["out_of_group_bytes_per_s"], 350e9)
        slow = [kind["links"] for kind in found["link_kinds"]
                if kind["bandwidth_bytes_per_s"] == 225e9]
        self.assertEqual(slow, [8, 8])
        cut = self.write("cut.textproto", """
catalog: "dgx-h100-8"
faults { links { link: "node0.gpu3-*" down: true } }
""")
        self.expect_refused(["topology", cut], "faults.links: must leave every chip a way",
                            "node0.gpu3 is cut off")

    def test_refuses_bad_input_at_once(self):
        text = self.expect_refused(
            ["topology", "dgx-h100-99", "more", "--dott", "--dot", "-", "--json",
             str(self.folder / "none" / "x.json")],
            "--dott: no such option; did you mean --dot?", "more: there can be only one CLUSTER",
            "--dot: must be a file", "none", "dgx-h100-<size>")
        self.assertIn("5 problems", text)
        self.expect_refused(["topology"], "CLUSTER: must be given")
        self.assertIn("--dot FILE", stepsim("help", "topology").stdout)


class CollectiveTest(StepsimTest):
    def test_a_ring_takes_its_closed_form(self):
        result = stepsim("collective", "all_reduce", "--cluster", "dgx-h100-8", "--bytes", "1GiB",
                         "--algorithm", "ring", "--granularity", "stepped", "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        answer = json.loads(result.stdout)
        self.assertEqual(list(answer), [
            "op", "algorithm", "why", "ranks", "bytes", "time_s",
            "algorithm_bandwidth_bytes_per_s", "bus_bandwidth_bytes_per_s", "formula_s", "formula_is",
            "steps", "protocol", "channels", "compute_share", "memory_share", "hottest_links",
            "simulator"])
        self.assertEqual((answer["op"], answer["ranks"], answer["steps"]), ("all-reduce", 8, 14))
        self.assertAlmostEqual(answer["time_s"] / answer["formula_s"], 1, delta=1e-3)
        # nccl-tests: bytes / time, and that x 2 (n - 1) / n.
        self.assertAlmostEqual(answer["algorithm_bandwidth_bytes_per_s"] * answer["time_s"],
                               2**30, delta=2)
        self.assertAlmostEqual(answer["bus_bandwidth_bytes_per_s"]
                               / answer["algorithm_bandwidth_bytes_per_s"], 1.75, delta=1e-6)

    def test_every_operation_runs(self):
        for op in ("all-reduce", "all-gather", "reduce-scatter", "alltoall", "broadcast", "reduce",
                   "gather", "scatter", "send_receive", "permute"):
            for cluster in ("dgx-h100-16", "v5p-4x4x4"):
                result = stepsim("collective", op, "--cluster", cluster, "--bytes", "1MiB")
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn("bus bandwidth", result.stdout)
        result = stepsim("collective", "barrier", "--cluster", "dgx-h100-16")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("dissemination", result.stdout)

    def test_a_sweep_is_a_table(self):
        result = stepsim("collective", "all-to-all", "--cluster", "dgx-h100-8", "--sweep",
                         "1KiB:8KiB")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.count(" direct "), 4)

    def test_a_group_of_one_costs_nothing(self):
        result = stepsim("collective", "all-gather", "--cluster", "dgx-h100-8", "--bytes", "8",
                         "--ranks", "3", "--json", "-")
        self.assertEqual(json.loads(result.stdout)["time_s"], 0)

    def test_everything_wrong_is_said_at_once(self):
        self.expect_refused(
            ["collective", "alreduce", "--cluster", "dgx-h100-16", "--bytes", "-3", "--ranks",
             "0,0,99", "--algorithm", "rng"],
            "OP: must be one of", "did you mean all-reduce?", "did you mean ring?",
            "--bytes: must be a size", "names rank 0 twice", "0 to 15; has 99")
        self.expect_refused(["collective", "broadcast", "--cluster", "dgx-h100-8", "--bytes", "0"],
                            "--bytes: must be a size", "more than 0")
        self.expect_refused(["collective", "all-to-all"], "--bytes: must be given",
                            "--cluster: must be given")

    def test_an_algorithm_that_cannot_run_says_why_and_names_those_that_can(self):
        self.expect_refused(
            ["collective", "all-to-all", "--cluster", "dgx-h100-8", "--bytes", "1MiB",
             "--algorithm", "torus"],
            "--algorithm: torus needs a group that fills a box of torus axes",
            "there are: direct, pairwise")
        self.expect_refused(
            ["collective", "all-reduce", "--cluster", "dgx-h100-16", "--bytes", "1MiB",
             "--algorithm", "nvls"],
            "--algorithm: nvls needs all members on one switch", "in different nodes",
            "there are: ring, ")

    def answer(self, *arguments):
        result = stepsim("collective", *arguments, "--library", "ideal", "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_a_ragged_all_to_all_by_a_matrix(self):
        # Rank 1 receives 2 GB at 450 GB/s; nobody sends or receives more.
        path = self.write("bytes.json", '{"bytes": [[0, "1GB"], [5, 7]]}')
        answer = self.answer("all-to-all", "--cluster", "dgx-h100-8", "--ranks", "2-3",
                             "--matrix", path, "--algorithm", "direct")
        self.assertAlmostEqual(float(answer["time_s"]), 1 / 450, 6)
        self.assertEqual(answer["formula_s"], float(answer["time_s"]))
        self.assertEqual(answer["bytes"], 1000000007)
        wrong = self.write("wrong.json", '[[0, -1], [1, 2, 3]]')
        self.expect_refused(
            ["collective", "all-to-all", "--cluster", "dgx-h100-8", "--matrix", wrong,
             "--bytes", "1MiB"],
            "wrong.json: bytes[0][1]: must be", "wrong.json: bytes[1]: must be a list of 2 sizes",
            "--bytes: can't be given together with --matrix")

    def test_tokens_are_routed_to_experts(self):
        routing = "experts=64,top-k=4,tokens=4096,token-bytes=8KiB"
        times = [float(self.answer("all-to-all", "--cluster", "dgx-h100-16", "--routing",
                                   routing + more, "--algorithm", algorithm)["time_s"])
                 for more, algorithm in ((",copies=expert", "direct"),
                                         (",copies=node", "node-forwarding"))]
        self.assertLess(times[1], times[0])
        self.expect_refused(
            ["collective", "all-to-all", "--cluster", "dgx-h100-16", "--routing",
             "experts=30,top-k=x,tokens=1,copies=rack,topk=1"],
            "--routing top-k: must be a whole number", "--routing copies: must be expert, member",
            "--routing topk: must be one of", "did you mean top-k?",
            "--routing token-bytes: must be given")
        self.expect_refused(
            ["collective", "all-to-all", "--cluster", "dgx-h100-16", "--routing",
             "experts=30,top-k=40,tokens=1,token-bytes=1"],
            "--routing experts: must be a multiple of the 16 members, is 30",
            "--routing top-k: must be 1 to the 30 experts, is 40")

    def test_a_permutation(self):
        answer = self.answer("permute", "--cluster", "dgx-h100-8", "--ranks", "0-3", "--targets",
                             "2,3,0,1", "--bytes", "450MB")
        self.assertAlmostEqual(float(answer["time_s"]), 1e-3, 5)
        self.expect_refused(["collective", "permute", "--cluster", "dgx-h100-8", "--ranks", "0-3",
                             "--targets", "2,2,9", "--bytes", "1MiB"],
                            "--targets: names rank 2 twice", "has 9",
                            "--targets: must name where each of the 4 ranks sends")

    def test_an_algorithm_of_ones_own_is_proven_before_it_runs(self):
        steps = """op: "all-gather" members: 3
            step { round: 0 from: 0 to: 1 block: 0 }  step { round: 0 from: 1 to: 2 block: 1 }
            step { round: 0 from: 2 to: 0 block: 2 }  step { round: 1 from: 0 to: 1 block: 2 }
            step { round: 1 from: 1 to: 2 block: 0 }  step { round: 1 from: 2 to: 0 block: 1 }"""
        run = ["collective", "all-gather", "--cluster", "dgx-h100-8", "--ranks", "0-2", "--bytes",
               "1350MB", "--algorithm"]
        answer = self.answer(*run[1:], self.write("ring.textproto", steps), "--granularity",
                             "stepped")
        self.assertAlmostEqual(float(answer["time_s"]), 2 / 3 * 3e-3, 5)
        self.assertEqual((answer["algorithm"], answer["steps"]), ("custom", 2))
        wrong = steps.replace("from: 2 to: 0 block: 2", "from: 2 to: 1 block: 2")
        self.expect_refused(
            run + [self.write("wrong.textproto", wrong)],
            "wrong.textproto: step: must do what all-gather promises, but member 0 in round 1 of "
            "lane 0 sends block 2, which it does not have")
        self.expect_refused(
            run + [self.write("bad.json", '{"op": "all-gater", "members": 3, "step": ['
                              '{"from": 0, "to": 0, "block": [9]}, {"to": 5}]}')],
            "op: must be one of", "did you mean all-gather?", "step[1].from: must be given")
        four = ["0-3" if word == "0-2" else word for word in run]
        self.expect_refused(four + [self.write("three.textproto", steps)],
                            "is for 3 ranks, there are 4")



class ScheduleTest(StepsimTest):
    def answer(self, *arguments):
        result = stepsim("schedule", *arguments, "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_1f1b_takes_what_its_formula_says(self):
        # (M + P - 1)(f + b + w) = (8 + 3) 3 s, of which (P - 1) 3 s are bubble; P - r in flight.
        answer = self.answer("1f1b", "--stages", "4", "--microbatches", "8")
        self.assertEqual(list(answer), [
            "schedule", "stages", "microbatches", "chunks", "per_rank", "start_s", "makespan_s",
            "bubble_s", "bubble_fraction", "bubble_over_ideal", "span_bubble_s", "peak_in_flight",
            "formula"])
        self.assertEqual((answer["schedule"], answer["stages"], answer["microbatches"],
                          answer["chunks"]), ("1f1b", 4, 8, 1))
        self.assertEqual((answer["makespan_s"], answer["bubble_s"]), (33, 9))
        self.assertAlmostEqual(answer["bubble_fraction"], 9 / 33)
        self.assertAlmostEqual(answer["bubble_over_ideal"], 9 / 24)
        self.assertEqual(answer["peak_in_flight"], [4, 3, 2, 1])
        self.assertEqual(answer["formula"]["bubble_s"], 9)
        self.assertIs(answer["formula"]["holds"], True)
        # The last rank turns each micro-batch round at once: 3 s each, from 3 s on.
        self.assertEqual(answer["per_rank"][3][:4], ["F0.0", "BW0.0", "F1.0", "BW1.0"])
        self.assertEqual(answer["start_s"][3][:4], [3, 4, 6, 7])

    def test_zb_h1_has_a_third_of_the_bubble(self):
        # (P - 1)(f + b - w) with f = 3, b = 4, w = 2 ms: 15 ms after 8 x 9 ms of work.
        times = ["--forward-time", "3ms", "--backward-input-time", "4ms",
                 "--backward-weight-time", "0.002"]
        result = stepsim("schedule", "zb_h1", "--stages", "4", "--microbatches", "8", *times,
                         "--json", "-")
        self.assertIn('"makespan_s": 0.087000000000,', result.stdout)
        self.assertIn('"bubble_s": 0.015000000000,', result.stdout)
        self.assertEqual(json.loads(result.stdout)["peak_in_flight"], [4, 4, 4, 4])
        equal = self.answer("zb_h1", "--stages", "4", "--microbatches", "8")
        self.assertEqual(equal["bubble_s"], 3)

    def test_a_formula_that_does_not_hold_says_why(self):
        result = stepsim("schedule", "1f1b", "--stages", "4", "--microbatches", "8",
                         "--send-time", "100ms")
        self.assertIn("does not hold: because\n    sends must be free", result.stdout)
        self.assertLessEqual(max(len(line) for line in result.stdout.splitlines()), 100)
        sent = self.answer("1f1b", "--stages", "4", "--microbatches", "8", "--send-time", "100ms")
        self.assertIs(sent["formula"]["holds"], False)
        self.assertIn("sends must be free", sent["formula"]["because"][0])

    def test_a_trace_has_every_op_where_the_json_says(self):
        path = self.folder / "zbv.json"
        answer = self.answer("zbv_hand", "--stages", "3", "--microbatches", "6", "--send-time",
                             "250ms", "--trace", str(path))
        slices = [event for event in json.loads(path.read_text())["traceEvents"]
                  if event["ph"] == "X" and event["cat"] == "compute"]
        expected = sorted((start, op) for ops, starts in zip(answer["per_rank"], answer["start_s"])
                          for op, start in zip(ops, starts))
        self.assertEqual(sorted((event["ts"] / 1e6, event["name"]) for event in slices), expected)

    def test_the_order_is_drawn(self):
        # At four columns a second: rank 1 has F at 1 and 2 s, BW (2 s) at 3 and 5 s, rank 0 BW at 5
        # and 7 s.
        result = stepsim("schedule", "gpipe", "--stages", "2", "--microbatches", "2")
        self.assertIn("\n  rank 0  F0--F1--............BW0-----BW1-----\n", result.stdout)
        self.assertIn("\n  rank 1  ....F0--F1--BW0-----BW1-----........\n", result.stdout)

    def test_a_fused_op_starts_once(self):
        answer = self.answer("dualpipe", "--stages", "4", "--microbatches", "8")
        self.assertTrue(any(op.startswith("FB") for op in answer["per_rank"][0]))
        self.assertEqual([len(ops) for ops in answer["per_rank"]],
                         [len(starts) for starts in answer["start_s"]])

    def test_comparing_gives_every_schedule_the_same_work(self):
        # 1F1B 3 x 3 s; interleaved with 2 chunks half of it; zbv's 24 s of work, (P - 1) f / 2 at
        # the start only.
        result = stepsim("schedule", "1f1b", "--stages", "4", "--microbatches", "8", "--compare",
                         "interleaved_1f1b,zbv_auto")
        # Sends: 2 (P - 1) M; 2 (2 P - 1) M; 4 (P - 1) M, as the turn is on one rank.
        self.assertRegex(result.stdout, r"\n\* 1f1b +1 +33.0 s +9.00 s +27.27% +37.50%.* 48 +1\n")
        self.assertRegex(result.stdout, r"\n  interleaved_1f1b +2 +28.5 s +4.50 s .* 112 +1\n")
        self.assertRegex(result.stdout, r"\n\* zbv_auto +2 +25.5 s +1.50 s .* 96 +1\n")
        self.assertLessEqual(max(len(line) for line in result.stdout.splitlines()), 100)
        rows = self.answer("1f1b", "--stages", "4", "--microbatches", "8", "--compare",
                           "dualpipe")["comparison"]
        # Two copies of half the ranks' parameters each; (P/2 - 1)(f + 2 b - w) = 2 s of bubble.
        self.assertEqual([(row["schedule"], row["bubble_s"], row["sends"], row["parameter_copies"],
                           row["on_pareto_front"]) for row in rows],
                         [("1f1b", 9, 48, 1, True), ("dualpipe", 2, 48, 2, True)])
        result = stepsim("schedule", "1f1b", "--stages", "3", "--microbatches", "7", "--compare",
                         "all")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("dualpipe left out: --stages must be even", result.stdout)

    def test_gradients_of_weights_may_need_less_memory(self):
        # Table 5 of arXiv 2401.10241, 6.2B on 8 ranks, ZB-2p: 0.0029 idle from first start to last
        # end. With 2 P micro-batches held in full until W it is 20 times as much.
        options = ["--stages", "8", "--microbatches", "24", "--forward-time", "29.718ms",
                   "--backward-input-time", "29.444ms", "--backward-weight-time", "19.927ms",
                   "--send-time", "0.527ms"]
        work = 24 * 0.079089
        rates = [answer["span_bubble_s"] / (work + answer["span_bubble_s"]) for answer in (
            self.answer("zb_auto_2p", *options, "--weight-memory", "0.432432"),
            self.answer("zb_auto_2p", *options))]
        self.assertAlmostEqual(rates[0], 0.0029, places=4)
        self.assertAlmostEqual(rates[1], 0.0607, places=4)
        self.expect_refused(["schedule", "zb_h2", *options, "--weight-memory", "0.5"],
                            "--weight-memory: must not be given for zb_h2")
        self.expect_refused(["schedule", "zb_auto_2p", *options, "--weight-memory", "nan"],
                            "--weight-memory: must be a number above 0")

    def test_the_optimum_is_searched_for_and_proven(self):
        times = ["--forward-time", "10ms", "--backward-input-time", "12ms",
                 "--backward-weight-time", "8ms"]
        optimal = self.answer("optimal", "--stages", "4", "--microbatches", "8", *times,
                              "--memory-limit", "8", "--compare", "zb_auto_2p,optimal")
        # The authors' heuristic leaves 12 ms.
        self.assertEqual((optimal["objective_s"], optimal["span_bubble_s"], optimal["proven"],
                          optimal["origin"]), (0.010, 0.010, True, "search"))
        self.assertLessEqual(max(optimal["peak_in_flight"]), 8)
        self.assertIsNone(optimal["formula"])
        self.assertEqual([(row["schedule"], row["span_bubble_s"]) for row in optimal["comparison"]],
                         [("optimal", 0.010), ("zb_auto_2p", 0.012)])
        result = stepsim("schedule", "1f1b", "--stages", "2", "--microbatches", "4", *times,
                         "--memory-limit", "2", "--compare", "optimal")
        # (P - 1)(f + b - w) = 14 ms instead of 1F1B's 30.
        self.assertRegex(result.stdout, r"\n\* optimal +1 +134 ms +14.0 ms ")
        # In two chunks as well, with the same memory: four halves. At least (P - 1) f / 2 before
        # the other rank begins.
        row = re.search(r"\n. optimal +2 +(\d+) ms", result.stdout)
        self.assertGreaterEqual(int(row.group(1)), 125)
        self.assertLess(int(row.group(1)), 134)
        result = stepsim("schedule", "optimal", "--stages", "2", "--microbatches", "4", *times)
        self.assertIn("proven: no order has less", result.stdout)
        self.expect_refused(["schedule", "optimal", "--stages", "2", "--microbatches", "4",
                             "--chunks", "2", "--memory-limit", "1", "--microbatch-group", "2"],
                            "--memory-limit: must be at least 2", "--microbatch-group")

    def test_stages_may_take_different_times(self):
        # The last of 2 stages takes twice as long: F 1 and 2, BW 2 and 4. By hand: rank 1 runs from
        # 1 to 13 without a pause, then BW1 on rank 0.
        times = ["--forward-time", "1,2", "--backward-input-time", "1,2",
                 "--backward-weight-time", "1,2"]
        answer = self.answer("gpipe", "--stages", "2", "--microbatches", "2", *times)
        self.assertEqual(answer["start_s"], [[0, 1, 9, 13], [1, 3, 5, 9]])
        self.assertEqual((answer["makespan_s"], answer["bubble_s"]), (15, 3))
        self.assertIs(answer["formula"]["holds"], False)
        self.assertIn("all stages must take the same times", answer["formula"]["because"][0])
        result = stepsim("schedule", "gpipe", "--stages", "2", "--microbatches", "2", *times,
                         "--trace", str(self.folder / "uneven.json"))
        self.assertIn("\n  rank 1  ....F0------F1------BW0-------------BW1-------------........\n",
                      result.stdout)
        self.assertIn("forward 1.00 s to 2.00 s", result.stdout)
        events = json.loads((self.folder / "uneven.json").read_text())["traceEvents"]
        self.assertEqual([event["dur"] for event in events
                          if event["ph"] == "X" and event["name"] == "BW0.0"], [2e6, 4e6])
        # The same model in halves, the slow ones on both ranks then: 2 x (3 + 6) s each.
        rows = self.answer("gpipe", "--stages", "2", "--microbatches", "2", *times, "--compare",
                           "breadth_first,chimera")["comparison"]
        self.assertEqual([(row["schedule"], row["makespan_s"] - row["bubble_s"]) for row in rows],
                         [("gpipe", 12), ("breadth_first", 9), ("chimera", 9)])
        # All alike are one.
        self.assertEqual(self.answer("zb_h1", "--stages", "2", "--microbatches", "4",
                                     "--forward-time", "1s,1s")["formula"]["holds"], True)
        optimal = self.answer("optimal", "--stages", "2", "--microbatches", "4", *times)
        self.assertIs(optimal["proven"], True)
        self.expect_refused(["schedule", "1f1b", "--stages", "2", "--microbatches", "2",
                             "--forward-time", "1,2,3", "--backward-input-time", "1,2"],
                            "--backward-input-time: must be one time, or 3 as --forward-time has")
        self.expect_refused(["schedule", "zbv_auto", "--stages", "2", "--microbatches", "2", *times],
                            "times by stage: must be one of each of the 4 global stages, are 2")
        self.expect_refused(["schedule", "1f1b", "--stages", "2", "--microbatches", "2",
                             "--forward-time", "1,,2"], '--forward-time: must be a time', 'is ""')

    def test_times_below_a_picosecond_and_beyond_all_are_refused(self):
        sizes = ["--stages", "2", "--microbatches", "2"]
        for text in ("0.3ps", "1e-13", "107 days", "1e30"):
            self.expect_refused(["schedule", "1f1b", *sizes, "--forward-time", text],
                                "at least 1 ps and less than 106 days", f'is "{text}"')
        self.expect_refused(["schedule", "1f1b", *sizes, "--send-time", "0.3ps"],
                            "0 or at least 1 ps")
        self.assertEqual(self.answer("1f1b", *sizes, "--forward-time", "1ps",
                                     "--send-time", "0")["start_s"][1][0], 1e-12)

    def test_options_that_nothing_takes_are_refused(self):
        path = self.write("plain.schedule", "F0.0 BW0.0\nF0.0 BW0.0\n")
        self.expect_refused(["schedule", path, "--memory-limit", "3", "--fused-time", "3s"],
                            "--memory-limit: must not be given here", "--fused-time: must not be")
        sizes = ["--stages", "4", "--microbatches", "8"]
        self.expect_refused(["schedule", "1f1b", *sizes, "--compare", "gpipe", "--chunks", "2",
                             "--weight-memory", "0.5", "--microbatch-group", "4"],
                            "--chunks: must not be given here", "--weight-memory: must not be",
                            "--microbatch-group: must not be")
        result = stepsim("schedule", "optimal", *sizes, "--compare", "dualpipe", "--fused-time",
                         "2500ms")
        self.assertEqual(result.returncode, 0, result.stderr)
        same = str(self.folder / "one.json")
        self.expect_refused(["schedule", "1f1b", *sizes, "--json", same, "--trace", same],
                            "--json: must not be the file of --trace")

    def test_a_file_is_a_schedule(self):
        path = self.write("own.schedule", "F0.0 F1.0 BW0.0 BW1.0\nF0.0 BW0.0 F1.0 BW1.0\n")
        answer = self.answer(path)
        # 1F1B by hand: 2 x 3 s of work and 3 s of bubble.
        self.assertEqual((answer["stages"], answer["makespan_s"]), (2, 9))
        self.assertIsNone(answer["formula"])
        # With the line ends of Windows, a byte order mark and blank lines it is the same.
        path = self.write("windows.schedule",
                          "\ufeffF0.0 F1.0 BW0.0 BW1.0  \r\n\r\nF0.0 BW0.0 F1.0 BW1.0\r\n")
        self.assertEqual(self.answer(path)["start_s"], answer["start_s"])
        path = self.write("large.schedule", "F99999999999.0 BW0.0\n")
        self.expect_refused(["schedule", path], "micro-batch below 1048576, chunk below 1024")
        path = self.write("bad.schedule", "F0.0 BW0.0 X\n")
        self.expect_refused(["schedule", path, "--chunks", "0"], 'line 1: "X" is no op',
                            "--chunks: must be a whole number")
        path = self.write("short.schedule", "F0.0 F1.0 BW0.0\n")
        self.expect_refused(["schedule", path], "rank 0: misses BW1.0")
        self.expect_refused(["schedule", str(self.folder)], "can't be read")

    def test_everything_wrong_is_said_at_once(self):
        self.expect_refused(
            ["schedule", "dualpipe", "--stages", "4", "--microbatches", "7", "--chunks", "3",
             "--forward-time", "nan", "--backward-input-time", "-1", "--backward-weight-time", "0",
             "--send-time", "-1us", "--memory-limit", "4"],
            "--forward-time: must be a time", "--backward-input-time: must be a time",
            'at least 1 ps and less than 106 days, is "0"', '--send-time: must be a time', "--chunks: must be 2",
            "nearest legal: 8", "--memory-limit: must not be given")
        self.expect_refused(["schedule", "zb_h11", "--compare", "1fb1"], "did you mean zb_h1?",
                            "--compare: \"1fb1\" is no schedule")
        self.expect_refused(["schedule", "1f1b"], "--stages: must be given",
                            "--microbatches: must be given")
        self.expect_refused(["schedule", "dualpipe", "--stages", "4", "--microbatches", "9",
                             "--compare", "naive"], "--microbatches: must be even",
                            "--compare naive: --microbatches must be 1")


if __name__ == "__main__":
    STEPSIM = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
