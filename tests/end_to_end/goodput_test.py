#!/usr/bin/env python3
"""stepsim goodput: its JSON, the same bytes each time, what is refused: goodput_test.py PATH-TO-STEPSIM"""
import json
import re
import signal
import time

from program import TIMEOUT_S, StepsimTest, main, started, stepsim

TABLE = """name: "mine" source: "made up"
class { name: "node" rate: 20 per: "node" detection: "5min" repair: "6h" }
class { name: "slow" rate: 5 per: "node" effect: "slow" detection: "2h" repair: "6h" slowdown: 1.5 }
checkpoint { every: "10min" stall: "10s" }
restart { scheduling: "2min" compile: "1min" }
spares: 2
"""
FIELDS = ["asked", "days", "goodput", "effective_mfu", "parts_days", "checkpoint_interval_s", "failures", "failures_by_class",
          "restarts", "undetected_corruptions", "tokens_per_day", "cost", "runs", "chips", "nodes", "spares",
          "step_time_s", "checkpoint", "best_checkpoint_interval_s", "best_spares", "by_interval", "by_spares",
          "sensitivity", "smaller_steps", "spare_groups", "far_spare_slowdown", "timeline", "simulator"]
SMALL = ["--model", "llama3-8b", "--cluster", "dgx-h100-32", "--plan", "tp=8,dp=4,global-batch=32,sequence=4096"]


class GoodputTest(StepsimTest):
    def setUp(self):
        super().setUp()
        self.write("mine.textproto", TABLE)
        self.table = str(self.folder / "mine.textproto")
        self.given = ["--step-time", "10s", "--chips", "512", "--failures", self.table]

    def result(self, *arguments):
        run = stepsim("goodput", *arguments, "--json", "-")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        return json.loads(run.stdout)

    def refused(self, *arguments):
        run = stepsim("goodput", *arguments)
        self.assertEqual((run.returncode, run.stdout), (2, ""), run.stderr)
        return run.stderr

    def test_json_has_the_fields_of_its_page(self):
        result = self.result(*self.given, "--days", "10", "--runs", "50", "--price", "2")
        self.assertEqual(list(result), FIELDS)
        self.assertEqual(set(result["days"]), {"mean", "p10", "p90", "standard_error"})
        self.assertEqual(list(result["parts_days"]),
                         ["productive", "checkpoint", "lost", "restart", "repair", "degraded"])
        mean = result["days"]["mean"]
        self.assertAlmostEqual(sum(result["parts_days"].values()), mean)
        self.assertAlmostEqual(result["parts_days"]["productive"], 10)
        self.assertAlmostEqual(result["goodput"], 10 / mean)
        self.assertLessEqual(result["days"]["p10"], mean)
        self.assertLessEqual(mean, result["days"]["p90"])
        self.assertEqual((result["chips"], result["nodes"], result["spares"]), (512, 64, 2))
        self.assertEqual(result["checkpoint_interval_s"], 600)
        self.assertEqual(result["effective_mfu"], None)
        self.assertAlmostEqual(result["cost"], 2 * 66 * 8 * 24 * mean)
        # 64 nodes, 25 failures in 1,000 days of each, as long as the job is not waiting.
        at_work = mean - result["parts_days"]["repair"]
        self.assertLess(abs(result["failures"] - 64 * 0.025 * at_work), 3 * (16 / 50) ** 0.5)
        self.assertAlmostEqual(sum(each["count"] for each in result["failures_by_class"]), result["failures"])
        self.assertEqual(result["timeline"][0]["begin_s"], 0)

    def test_a_seed_gives_the_same_bytes(self):
        def text(seed):
            run = stepsim("goodput", *self.given, "--days", "10", "--runs", "20", "--seed", seed, "--json", "-")
            return re.sub(r'"simulator".*', "", run.stdout, flags=re.S)

        self.assertEqual(text("1"), text("1"))
        self.assertNotEqual(text("1"), text("2"))

    def test_a_plan_is_simulated_smaller_and_slower(self):
        result = self.result(*SMALL, "--failures", self.table, "--steps", "200000",
                              "--shrink", "1", "--runs", "20", "--no-curves")
        self.assertEqual([each["missing"] for each in result["smaller_steps"]], [1])
        self.assertAlmostEqual(result["smaller_steps"][0]["slowdown"], 4 / 3, delta=0.05)
        step = json.loads(stepsim("run", *SMALL, "--json", "-").stdout)
        self.assertEqual(result["step_time_s"], step["step_time_s"])
        self.assertAlmostEqual(result["effective_mfu"], result["goodput"] * step["model_flops_utilization"])
        self.assertEqual(result["by_interval"], [])

    def test_the_published_run_of_a_table_needs_no_more(self):
        result = self.result("--failures", "llama3", "--runs", "100", "--no-curves")
        self.assertEqual(result["chips"], 16384)
        self.assertLess(abs(result["goodput"] - 0.90), 0.03)
        self.assertGreater(result["goodput"], 0.90)

    def test_a_picture_is_drawn(self):
        picture = self.folder / "p.svg"
        run = stepsim("goodput", *self.given, "--days", "10", "--runs", "5", "--plot", str(picture))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("Goodput by checkpoint interval", picture.read_text())

    def test_all_problems_of_the_options_are_listed(self):
        text = self.refused("--failures", "llama4", "--checkpoint", "every=0s,to=tape,colour=red", "--repair", "never",
                            "--runs", "0", "--tokens", "-1", "--spares", "-1")
        for part in ["no table of failures llama4", "--checkpoint every: must be above 0, or auto", "host, peer and storage",
                     "--checkpoint colour: no such key", "--repair: must be a time", "--runs", "--tokens", "--spares"]:
            self.assertIn(part, text)

    def test_a_run_that_can_not_be_is_refused(self):
        self.assertIn("must be given", self.refused())
        self.assertIn("must be at most the 864000 s that the training takes",
                      self.refused(*self.given, "--days", "10", "--checkpoint", "every=300h"))
        self.assertIn("the job never gets done",
                      self.refused(*self.given, "--days", "10", "--restart", "scheduling=2000h"))
        self.assertIn("must be given", self.refused(*self.given))
        self.assertIn("--chips", self.refused(*self.given[:2], *self.given[4:], "--days", "1"))
        self.assertIn("must not stand with --step-time", self.refused(*self.given, "--days", "1", *SMALL))

    def test_all_problems_of_a_table_are_listed(self):
        self.write("wrong.textproto", 'name: "wrong" class { name: "a" rate: -1 repair: "never" per: "rack" } '
                   'maintenance { time: "1h" } spares: -1')
        text = self.refused("--step-time", "1s", "--chips", "8", "--days", "1", "--failures",
                            str(self.folder / "wrong.textproto"))
        for part in ["source", "class[0].rate", "class[0].repair", "class[0].per", "maintenance.every", "spares"]:
            self.assertIn(part, text)

    def test_interrupted_it_leaves_nothing(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number):
                process = started("goodput", *self.given, "--days", "1000", "--runs", "1000000", "--json",
                                  str(self.folder / "r.json"), "--plot", str(self.folder / "p.svg"))
                time.sleep(1)
                sent = time.monotonic()
                process.send_signal(number)
                output, error = process.communicate(timeout=TIMEOUT_S)
                self.assertLess(time.monotonic() - sent, 5)  # 0.5 s, on a machine that does nothing else
                self.assertEqual((process.returncode, output), (128 + number, b""), error)
                self.assertIn(b"interrupted", error)
                self.assertEqual(self.files(), ["mine.textproto"])

    def test_a_table_is_no_experiment(self):
        self.assertIn("llama3 is a table of failures", stepsim("run", "llama3").stderr)


if __name__ == "__main__":
    main()
