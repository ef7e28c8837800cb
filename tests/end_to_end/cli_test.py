#!/usr/bin/env python3
"""Runs the built stepsim as a person does: cli_test.py PATH-TO-STEPSIM.

Good runs, every kind of bad input, files that can't be written, interrupts. Standard library only.
"""
import json
import os
import pathlib
import pty
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

    def test_a_misspelt_subcommand_gets_a_suggestion(self):
        self.expect_refused(["runn", SMALL], "runn: no such subcommand; did you mean run?")


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
            "plan.zero=2": "plan.zero: must be 0 (replicated), 1 (optimizer state divided) or 3",
            "plan.schedule=zb_h1": "plan.schedule: must be 1f1b, the only schedule",
            "plan.cp=2": "plan.cp: must be 1",
            "plan.recompute=some": "plan.recompute: must be none, selective or full",
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
            ["run", path, "--set", "plan.etp=2", "--fidelity", "packet", "--json",
             str(self.folder / "none" / "x.json")],
            "bad.textproto:4:20: no field microbach in Plan; did you mean microbatch?",
            "model.layers: must be at least 1, is -1",
            "cluster.dgx_superpod.nvlink_latency: must be a time such as",
            "plan.global_batch: is 65",
            "plan.etp: must be 1",
            '--fidelity: must be flow or latency-bandwidth (packets can\'t be simulated yet), is '
            '"packet"',
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
        for ranks in ("8", "3-1", "a", "", "0,,1"):
            with self.subTest(ranks):
                self.expect_refused(["run", SMALL, *trace, "--trace-ranks", ranks], "--trace-ranks")
        self.expect_refused(["run", SMALL, "other"], "other: there can be only one EXPERIMENT")
        self.expect_refused(["run"], "EXPERIMENT: must be given")
        self.expect_refused(["run", "--model", "llama3-8b"], "--cluster: must be given",
                            "--plan: must be given")

    def test_output_paths_are_checked_before_the_simulation(self):
        self.expect_refused([*LONG, "--json", str(self.folder)], str(self.folder))
        self.expect_refused([*LONG, "--trace", str(self.folder / "none" / "t.json")], "none")
        same = str(self.folder / "same.json")
        self.expect_refused(["run", SMALL, "--json", same, "--trace", same],
                            "--json: must be another file than --trace")


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


if __name__ == "__main__":
    STEPSIM = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
