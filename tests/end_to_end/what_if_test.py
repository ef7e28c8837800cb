#!/usr/bin/env python3
"""stepsim compare, and stepsim run --sensitivity and --breakeven: what_if_test.py PATH-TO-STEPSIM"""
import decimal
import json
import pathlib

from program import StepsimTest, main, stepsim

decimal.getcontext().prec = 40

# Nothing overlaps, no clock falls, no library adds its own times: a step is a sum of parts that each
# scale with one thing.
PLAIN = """
model { kind: "mlp_stack" layers: 4 hidden: 2048 intermediate: 8192 }
cluster {
  chip {
    name: "made" peak { type: "bf16" throughput: "100TFLOPS" } peak { type: "fp32" throughput: "50TFLOPS" }
    memory_bandwidth: "MEMORY" memory_capacity: "80GB" launch_overhead: "LAUNCH"
  }
  nvlink_domain { gpus: 2 gpu_bandwidth: "50GB/s" link_latency: "1us" }
}
plan { PLAN global_batch: 4 sequence: 1024 }
"""


class WhatIfTest(StepsimTest):
    def experiment(self, plan="tp: 2", memory="1TB/s", launch="5us"):
        text = PLAIN.replace("MEMORY", memory).replace("LAUNCH", launch).replace("PLAN", plan)
        return self.write("e.textproto", text)

    def run_json(self, *arguments):
        run = stepsim("run", *arguments, "--json", "-")
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout, parse_float=decimal.Decimal)

    def sensitivity(self, path, *more):
        return {row["name"]: row
                for row in self.run_json(path, "--sensitivity", *more)["sensitivity"]}

    # ---- sensitivity ----

    def test_a_run_bound_by_arithmetic_follows_the_flops(self):
        path = self.experiment("tp: 1 allow_idle_chips: true", memory="10000TB/s", launch="0s")
        levers = self.sensitivity(path)
        self.assertAlmostEqual(float(levers["flops"]["slope"]), -1, places=3)
        self.assertAlmostEqual(float(levers["memory_bandwidth"]["slope"]), 0, places=3)
        step = float(self.run_json(path)["step_time_s"])
        flops = levers["flops"]
        self.assertAlmostEqual(float(flops["less_10_percent_step_time_s"]), step / 0.9, delta=step / 1e3)
        self.assertAlmostEqual(float(flops["more_10_percent_step_time_s"]), step / 1.1, delta=step / 1e3)
        self.assertEqual(flops["path_changes"], [False, False])

    def test_slopes_of_all_levers_add_up_to_the_step(self):
        levers = self.sensitivity(self.experiment())
        total = 0
        for name, row in levers.items():
            slope = float(row["slope"])
            is_time = name in ("latency", "launch_overhead")
            self.assertGreaterEqual(slope if is_time else -slope, -1e-4, name)
            total += slope if is_time else -slope
        self.assertAlmostEqual(total, 1, places=3)

    def test_a_slope_is_the_share_of_the_path(self):
        path = self.experiment()
        result = self.run_json(path, "--sensitivity")
        levers = {row["name"]: float(row["slope"]) for row in result["sensitivity"]}
        tp = float(result["breakdown_s"]["exposed_communication"]["tp"]) / float(result["step_time_s"])
        self.assertAlmostEqual(levers["latency"] - levers["gpu_bandwidth"], tp, places=3)

    def test_a_run_again_gives_what_the_table_says(self):
        path = self.experiment()
        row = self.sensitivity(path)["memory_bandwidth"]
        self.assertEqual(row["fields"], ["cluster.chip.memory_bandwidth"])
        again = self.run_json(path, "--set", "cluster.chip.memory_bandwidth=1.1TB/s")
        self.assertEqual(row["more_10_percent_step_time_s"], again["step_time_s"])

    def test_the_largest_comes_first_and_memory_changes_what_fits(self):
        rows = self.run_json(self.experiment(), "--sensitivity")["sensitivity"]
        step = float(self.run_json(self.experiment())["step_time_s"])
        changes = [max(abs(float(row["less_10_percent_step_time_s"]) - step),
                       abs(float(row["more_10_percent_step_time_s"]) - step)) for row in rows]
        self.assertEqual(changes, sorted(changes, reverse=True))
        memory = [row for row in rows if row["name"] == "memory_capacity"][0]
        self.assertEqual(float(memory["slope"]), 0)
        self.assertEqual(memory["fits"], [True, True])

    def test_slopes_are_those_of_the_path(self):
        result = self.run_json(self.experiment(), "--sensitivity")
        self.assertEqual(float(result["slopes_held"]), 0)
        result = self.run_json("llama3-8b-dgx-h100-8", "--sensitivity")
        self.assertGreaterEqual(float(result["slopes_held"]), 0)
        self.assertLess(float(result["slopes_held"]), 1)

    def test_packets_have_no_slopes(self):
        path = self.experiment()
        more = ("--fidelity", "packet")
        rows = self.sensitivity(path, *more)
        self.assertEqual({row["slope"] for row in rows.values()}, {None})
        run = stepsim("run", path, "--sensitivity", *more)
        self.assertIn("The critical path has no slopes here: packets have no rates", run.stdout)
        self.assertNotIn("slopes_held", self.run_json(path, "--sensitivity", *more))

    def test_a_change_of_the_path_is_said(self):
        # The matmuls are compute-bound with less, memory-bound with more.
        path = self.experiment("tp: 1 allow_idle_chips: true", launch="0s")
        changes = []
        for memory in ("0.02TB/s", "0.15TB/s", "0.16TB/s", "0.17TB/s"):
            levers = self.sensitivity(path, "--set", f"cluster.chip.memory_bandwidth={memory}")
            changes += levers["memory_bandwidth"]["path_changes"]
            changes += levers["flops"]["path_changes"]
        self.assertIn(True, changes)
        self.assertIn(False, changes)

    def test_a_tornado_is_drawn(self):
        svg = str(self.folder / "t.svg")
        run = stepsim("run", self.experiment(), "--plot-sensitivity", svg)
        self.assertIn("Sensitivity", run.stdout)
        text = pathlib.Path(svg).read_text()
        self.assertIn("memory_bandwidth", text)
        self.assertIn("change of the step [%]", text)

    # ---- breakeven ----

    def test_more_than_breakeven_helps_by_less_than_1_percent(self):
        path = self.experiment()
        found = self.run_json(path, "--breakeven", "gpu_bandwidth")["breakeven"]
        factor = float(found["factor"])

        def step(factor):
            value = f"cluster.nvlink_domain.gpu_bandwidth={50e9 * factor}"
            return float(self.run_json(path, "--set", value)["step_time_s"])

        endless = step(1024)
        self.assertEqual(endless, float(found["step_time_endless_s"]))
        self.assertLessEqual(step(factor), 1.01 * endless * (1 + 1e-9))
        self.assertGreater(step(factor / 1.02), 1.01 * endless)
        self.assertGreater(factor, 1)

    def test_wrong_levers_are_refused(self):
        self.expect_refused(["run", self.experiment(), "--breakeven", "nic_bandwith"],
                            "--breakeven: must be something that the hardware has")
        self.expect_refused(["run", self.experiment(), "--sensitivity", "--fidelity", "all"],
                            "--sensitivity: is of one run")

    # ---- compare ----

    def result(self, name, *arguments):
        path = str(self.folder / name)
        run = stepsim("run", *arguments, "--json", path)
        self.assertEqual(run.returncode, 0, run.stderr)
        return path

    def compare(self, *arguments):
        run = stepsim("compare", *arguments, "--json", "-")
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout, parse_float=decimal.Decimal)

    def test_parts_add_up_to_the_difference(self):
        a = self.result("a.json", "llama3-8b-dgx-h100-8")
        b = self.result("b.json", "llama3-8b-dgx-h100-8", "--plan", "tp=4,dp=2,zero=1")
        c = self.result("c.json", "llama3-8b-dgx-h100-8", "--set", "cluster.chip.memory_bandwidth=2TB/s")
        compared = self.compare(a, b, c)
        steps = [decimal.Decimal(run["step_time_s"]) for run in compared["runs"]]
        self.assertNotEqual(steps[0], steps[1])
        for run, explained in enumerate(compared["explained"], 1):
            self.assertEqual(explained["step_difference_s"], steps[run] - steps[0])
            self.assertEqual(sum(part["difference_s"] for part in explained["parts"]),
                             steps[run] - steps[0])
        paths = {row["path"]: row["values"] for row in compared["inputs"]}
        self.assertEqual(paths["plan.tp"][1], "4")
        self.assertEqual(paths["cluster.chip.memory_bandwidth"][2], "2TB/s")
        self.assertNotIn("overrides", paths)
        self.assertNotIn("plan.sequence", paths)
        lines = {(row["section"], row["name"]): row for row in compared["lines"]}
        peak = lines["memory", "peak"]
        self.assertEqual(peak["differences"][0], peak["values"][1] - peak["values"][0])
        self.assertEqual(sum(row["differences"][0] for (section, name), row in lines.items()
                             if section == "memory" and name not in ("peak", "capacity")),
                         peak["differences"][0])

    def test_experiments_are_run_and_results_are_not(self):
        a = self.result("a.json", "llama3-8b-dgx-h100-8")
        compared = self.compare(a, "llama3-8b-dgx-h100-8")
        self.assertEqual([run["source"] for run in compared["runs"]], ["result", "simulated"])
        self.assertEqual(compared["inputs"], [])
        self.assertEqual(compared["explained"][0]["step_difference_s"], 0)
        text = stepsim("compare", a, "llama3-8b-dgx-h100-8").stdout
        self.assertIn("are the same", text)
        self.assertIn("What makes the difference", text)

    def test_a_broken_card_and_a_slow_rank_are_named(self):
        job = ["--model", "llama3.2-1b", "--cluster", "dgx-h100-64", "--set", "model.layers=4",
               "--plan", "dp=64,zero=3,microbatch=1,sequence=2048,global-batch=64"]
        whole = self.result("a.json", *job)
        broken = self.result("b.json", *job, "--set", "cluster.faults.links[0].link=node1.gpu3-su0.leaf3",
                             "--set", "cluster.faults.links[0].down=true")
        slow = self.result("c.json", *job, "--set", "variation.straggler[0].rank=13",
                           "--set", "variation.straggler[0].slowdown=1.3")
        explained = self.compare(whole, broken, slow)["explained"]
        link, *traffic = explained[0]["behind"]
        self.assertEqual((link["link"], link["ranks"]), ("node1.gpu3-su0.leaf3", [11]))
        self.assertIn("su0.leaf", traffic[0]["link"])
        self.assertGreater(traffic[0]["difference_s"], 0)
        self.assertEqual([cause["ranks"] for cause in explained[1]["behind"]], [[13]])
        text = stepsim("compare", broken, whole).stdout
        self.assertIn("Behind it", text)
        self.assertIn("node1.gpu3-su0.leaf3 is down; behind it rank 11", " ".join(text.split()))
        self.assertIn("behind it rank 11", stepsim("run", broken).stdout)
        self.assertEqual(self.compare(broken, broken)["explained"][0]["behind"], [])

    def test_what_is_no_run_is_refused(self):
        self.expect_refused(["compare", "llama3-8b-dgx-h100-8"], "RUN: must be given, two or more")
        self.expect_refused(["compare", "no-such", "nor-this"], "no-such EXPERIMENT", "nor-this EXPERIMENT")
        self.expect_refused(["compare", "llama3-8b-dgx-h100-8", "/no/such.json"], "/no/such.json: can't be read: ")
        broken = self.write("b.json", '{"step_time_s": "soon"}')
        self.expect_refused(["compare", broken, broken], "has no step_time_s")


if __name__ == "__main__":
    main()
