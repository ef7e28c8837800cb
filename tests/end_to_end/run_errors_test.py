#!/usr/bin/env python3
"""stepsim run with bad input, interrupts and files that can't be written: run_errors_test.py
PATH-TO-STEPSIM.
"""
import json
import signal
import time

from program import LONG, SMALL, StepsimTest, TIMEOUT_S, main, started, stepsim


class BadInputTest(StepsimTest):
    def test_no_schedule_is_one_problem_with_the_nearest_names(self):
        plan = "pp=4,dp=2,global-batch=32,sequence=4096,chunks=2,schedule="
        for name, near in (("interleaved", "did you mean interleaved_1f1b or interleaved_zb1p?"),
                           ("zbv", "did you mean zbv_hand or zbv_auto?")):
            done = stepsim("run", "--model", "llama3-8b", "--cluster", "dgx-h100-8", "--plan", plan + name)
            self.assertEqual(done.returncode, 2)
            self.assertIn("a problem in the input", done.stderr)
            self.assertIn(near, done.stderr)

    def test_a_time_that_cannot_be_counted_names_fields(self):
        slow = "cluster.dgx_superpod.nvlink_bandwidth=1B/s"
        for arguments, field in (
                (["run", SMALL, "--set", slow], "cluster: a time passes 106 days"),
                (["serve", "--step-time", "10ms", "--engine", "vllm", "--requests",
                  "poisson:rate=0.000001,count=100000,input=8,output=8"],
                 "--requests: a time passes 106 days")):
            self.expect_refused(arguments, field)

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
            "plan.recompute=some": "plan.recompute: must be none, selective, matmuls, alternate, alternate_matmuls, all_but or full",
            "plan.colour=red": "no field colour in Plan",
            "plan.tpp=8": "did you mean tp? `stepsim help plan` lists all keys",
            "plan.sequence=8k": "did you mean 8192 (binary) or 8000?",
            "plan.recompute=Full": "did you mean full?",
            "plan.dtype=bfloat16": "did you mean bf16?",
            "plan.allow_idle_chips=yes": "did you mean true?",
            "cluster.dgx_superpod.nic_bandwidth=400gbps": "did you mean 400Gbps?",
            "variation.straggler[0].rank=0-3": "variation.straggler[0].slowdown: must be given",
            "cluster.chip.memory_bandwidth=3TB": 'must be a bandwidth such as',
            "cluster.chip.memory_capacity=nan": 'must be a size such as',
            "cluster.dgx_superpod.nodes=-1": "cluster.dgx_superpod.nodes: must be at least 1",
            "model.catalog=llama3-7b": "no model llama3-7b in the catalog; did you mean",
            "model.layers=0": "model.layers: must be at least 1, is 0",
        }
        for change, message in cases.items():
            with self.subTest(change):
                self.expect_refused(["run", SMALL, "--set", change], message)

    def test_a_step_that_is_too_long_is_refused_by_its_range(self):
        for change in ("plan.sequence=80000000", "cluster.chip.memory_bandwidth=1B/s"):
            with self.subTest(change):
                done = stepsim("run", SMALL, "--set", change)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn("a time passes 106 days", done.stderr)

    def test_an_unknown_key_names_what_was_meant_and_no_other(self):
        text = self.expect_refused(["run", SMALL, "--set", "plan.globalbatch=8"],
                                   "did you mean global_batch?")
        self.assertNotIn("tensor_width", text)

    def test_keys_are_separated_by_commas(self):
        plan = "tp=2 dp=4 global-batch=64"
        self.expect_refused(["run", SMALL, "--plan", plan],
                            "did you mean tp=2,dp=4,global-batch=64?")
        self.expect_refused(["run", "dp=4", "--model", "llama3-8b", "--cluster", "dgx-h100-8",
                             "--plan", "tp=2"], "join keys by commas")

    def test_an_unknown_model_has_no_problems_of_its_own(self):
        text = self.expect_refused(
            ["run", "--model", "mixtral-8x7", "--cluster", "dgx-h100-8", "--plan",
             "ep=8,dp=8,global-batch=64,sequence=4096"], "no model mixtral-8x7 in the catalog")
        self.assertNotIn("plan.ep", text)

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
            '--fidelity: must be latency-bandwidth, flow or packet, or several separated by commas',
            str(self.folder / "none"))
        self.assertIn("7 problems", text)

    def test_options_are_checked(self):
        self.expect_refused(["run", SMALL, "--step", "2"], "--step: no such option; did you mean "
                            "--steps?")
        self.expect_refused(["run", SMALL, "--steps", "0"], "--steps: must be at least 1, is 0")
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
        self.expect_refused([*arguments, "--trace", trace], "--trace: shows one run")

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
            "--buffer-bytes: must be at least 4096, the bytes of a packet, is 4095",
            "--spraying: must be at least 1, is 0")
        self.expect_refused(["run", SMALL, "--yes"], "--yes: needs --fidelity packet")

    def test_output_paths_are_checked_before_the_simulation(self):
        self.expect_refused([*LONG, "--json", str(self.folder)], str(self.folder))
        self.expect_refused([*LONG, "--trace", str(self.folder / "none" / "t.json")], "none")
        same = str(self.folder / "same.json")
        self.expect_refused(["run", SMALL, "--json", same, "--trace", same],
                            "--json: must be another file than --trace")


class UnfinishedOutputTest(StepsimTest):
    def interrupt(self, number):
        process = started(*LONG, "--json", str(self.folder / "r.json"), "--trace",
                          str(self.folder / "t.json.gz"))
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


if __name__ == "__main__":
    main()
