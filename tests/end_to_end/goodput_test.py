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
          "restarts", "undetected_corruptions", "tokens_per_day", "cost", "energy", "assumed", "runs", "chips", "nodes", "spares",
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

    def test_energy_is_that_of_the_step_and_of_standing_still(self):
        self.write("grid.csv", "hour,grams_per_kwh\n" + "".join(f"{hour},{100 + hour}\n" for hour in range(24)))
        question = [*SMALL, "--failures", self.table, "--steps", "200000", "--runs", "20", "--no-curves"]
        result = self.result(*question, "--pue", "1.25", "--carbon", str(self.folder / "grid.csv"))
        energy, days = result["energy"], result["days"]["mean"]
        step = json.loads(stepsim("run", *SMALL, "--json", "-").stdout)["energy"]
        self.assertEqual(energy["step_watts_per_chip"], step["mean_watts_per_chip"])
        self.assertEqual((energy["idle_watts_per_chip"], energy["pue"]), (140, 1.25))
        working = sum(result["parts_days"][part] for part in ["productive", "lost"])
        chip_days_idle = 32 * (days - working) + 16 * days
        self.assertAlmostEqual(energy["standing_kwh"], chip_days_idle * 24 * 0.14 * 1.25, delta=1e-6 * energy["kwh"])
        self.assertAlmostEqual(energy["kwh"] - energy["standing_kwh"],
                               32 * working * 24 * step["mean_watts_per_chip"] / 1000 * 1.25, delta=1e-6 * energy["kwh"])
        grams = 1000 * energy["carbon_kg"] / energy["kwh"]
        self.assertTrue(100 < grams < 123, grams)
        same = self.result(*question, "--carbon", "200")["energy"]
        self.assertAlmostEqual(same["carbon_kg"], 0.2 * same["kwh"])
        page = self.folder / "run.html"
        run = stepsim("goodput", *question, "--price", "2", "--carbon", "200", "--html", str(page))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("carbon  ", run.stdout)
        for words in ["price", "carbon dioxide", "Wh"]:
            self.assertIn(words, page.read_text())

    def test_energy_of_a_chip_without_power_is_not_known(self):
        question = ["--model", "llama3-8b", "--cluster", "v5p-4x4x4", "--plan", "tp=8,dp=8,global-batch=64,sequence=4096",
                    "--failures", self.table, "--steps", "20000", "--runs", "2", "--no-curves"]
        run = stepsim("goodput", *question)
        self.assertIn("not known", run.stdout, run.stderr)
        self.assertIsNone(self.result(*question)["energy"])
        self.assertIn("needs a chip whose file says its `power`", self.refused(*question, "--carbon", "380"))

    def test_carbon_that_is_wrong_is_refused(self):
        self.write("grid.csv", "date,grams_per_kwh\n2025-01-01,a\n2024-01-01,5\n")
        text = self.refused(*SMALL, "--failures", self.table, "--steps", "100", "--pue", "0.5",
                            "--carbon", str(self.folder / "grid.csv"))
        for part in ["grid.csv:2: grams_per_kwh", "grid.csv:3: date", "--pue: must be at least 1"]:
            self.assertIn(part, text)
        self.write("day.csv", "date,grams_per_kwh\n2025-01-01,5\n")
        self.assertIn("must last as long as the run",
                      self.refused(*SMALL, "--failures", self.table, "--days", "10", "--runs", "2", "--no-curves",
                                   "--carbon", str(self.folder / "day.csv")))
        self.assertIn("a file ending in .csv", self.refused(*SMALL, "--failures", self.table, "--carbon", "coal"))
        self.assertIn("must not stand with --step-time", self.refused(*self.given, "--days", "1", "--carbon", "1"))

    def test_what_a_table_brings_of_its_cluster_is_said(self):
        question = [*SMALL, "--failures", "llama3", "--steps", "2000", "--runs", "2", "--no-curves"]
        run = stepsim("goodput", *question)
        self.assertIn("checkpoint.storage_bandwidth = 2.00 TB/s", run.stdout, run.stderr)
        assumed = {each["field"]: each for each in self.result(*question)["assumed"]}
        for field in ["checkpoint.storage_bandwidth", "checkpoint.to", "restart.scheduling", "spares", "class.repair"]:
            self.assertIn(field, assumed)
        own = self.result(*question, "--checkpoint", "storage_bandwidth=20GB/s,to=storage,async=false", "--spares", "0",
                          "--repair", "1h", "--restart", "scheduling=1min,compile=1min,warmup=1s")
        self.assertEqual([each["field"] for each in own["assumed"]], ["checkpoint.node_storage_bandwidth"])
        self.assertGreater(own["checkpoint_interval_s"], self.result(*question)["checkpoint_interval_s"])

    def test_the_cluster_of_a_table_has_its_own_storage(self):
        result = self.result("--failures", "llama3", "--runs", "2", "--no-curves")
        self.assertEqual([each["field"] for each in result["assumed"]], ["checkpoint.node_storage_bandwidth"])
        self.assertEqual(self.result(*self.given, "--days", "1", "--runs", "2")["assumed"], [])

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
