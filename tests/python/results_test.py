#!/usr/bin/env python3
"""Functions of the Python package return what the command line writes, byte for byte."""
import json
import pathlib
import pickle
import tempfile
import unittest

import stepsim
import support
from support import PLAN, SMALL, dumped, program, without_simulator

FLAGS = ["--model", "llama3-8b", "--cluster", "dgx-h100-8"]


class ResultsTest(unittest.TestCase):
    def same(self, result, *arguments):
        text = program(*arguments)
        self.assertEqual(without_simulator(result.to_json()), without_simulator(text))
        expected, members = json.loads(text), result.to_dict()
        for one in (expected, members):
            if isinstance(one, dict):
                one.pop("simulator", None)
        self.assertEqual(dumped(members), dumped(expected))

    def test_a_run_of_the_catalog(self):
        self.same(stepsim.run(SMALL), "run", SMALL)

    def test_a_run_of_three_parts(self):
        plan = stepsim.Plan(tp=2, dp=4, microbatch=1, global_batch=64, sequence=8192, zero=1)
        result = stepsim.run(model=stepsim.Model("llama3-8b"), cluster=stepsim.Cluster("dgx-h100-8"),
                             plan=plan)
        self.same(result, "run", *FLAGS, "--plan", PLAN)
        self.same(stepsim.run(model="llama3-8b", cluster="dgx-h100-8", plan=plan.to_dict()),
                  "run", *FLAGS, "--plan", PLAN)

    def test_a_run_with_options(self):
        result = stepsim.run(SMALL, plan={"zero": 3}, set={"cluster.chip.launch_overhead": "3us"},
                             granularity="stepped", steps=2, seed=7, fold=False, explain=True)
        self.same(result, "run", SMALL, "--plan", "zero=3", "--set",
                  "cluster.chip.launch_overhead=3us", "--granularity", "stepped", "--steps", "2",
                  "--seed", "7", "--fold", "off", "--explain")

    def test_a_result_runs_again(self):
        result = stepsim.run(SMALL, plan={"tp": 4, "dp": 2})
        again = stepsim.run(result)
        self.assertEqual(without_simulator(again.to_json()), without_simulator(result.to_json()))
        whole = stepsim.run(result.to_dict()["experiment"])
        self.assertEqual(without_simulator(whole.to_json()), without_simulator(result.to_json()))

    def test_all_network_models(self):
        plan = {"global_batch": 8, "sequence": 128}
        result = stepsim.run(SMALL, plan=plan, fidelity="all", yes=True, packet_bytes="1MiB",
                             set={"model.layers": 1})
        text = program("run", SMALL, "--plan", "global-batch=8,sequence=128", "--fidelity", "all",
                       "--yes", "--packet-bytes", "1MiB", "--set", "model.layers=1")
        runs = json.loads(text)["runs"]
        self.assertEqual([run.step_time_s for run in result.runs],
                         [run["step_time_s"] for run in runs])

    def test_attributes(self):
        result = stepsim.run(SMALL)
        self.assertAlmostEqual(sum(result.breakdown.values()), result.step_time_s, places=11)
        self.assertTrue(result.memory.fits)
        self.assertEqual(result.memory["peak_bytes"], sum(result.memory.by_category_bytes.values()))
        self.assertIn("step time", result.report())
        self.assertIn("</table>", result._repr_html_())
        self.assertIn("step_time_s", dir(result))
        with self.assertRaisesRegex(AttributeError, "step_time_s"):
            result.step_time
        copy = pickle.loads(pickle.dumps(result))
        self.assertEqual(copy.to_json(), result.to_json())

    def test_require_fit(self):
        plan = {"tp": 8, "microbatch": 1, "global_batch": 8, "sequence": 8192}
        result = stepsim.run(model="llama3-70b", cluster="dgx-h100-8", plan=plan, require_fit=True)
        self.assertFalse(result.ok)
        self.assertFalse(result.memory.fits)
        self.assertIn("DOES NOT FIT", result.report())

    def test_a_trace(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "t.json")
            stepsim.run(SMALL).trace(path, trace_ranks="0", trace_detail="pass")
            events = json.loads(path.read_text())["traceEvents"]
            self.assertTrue(any(event["ph"] == "X" for event in events))

    def test_a_page(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "report.html")
            try:
                stepsim.run(SMALL).html(path)
            except stepsim.InputError as error:  # built without ECharts
                self.assertIn("--html", error.problems[0].field)
                return
            self.assertIn("</html>", path.read_text())

    def test_a_collective(self):
        self.same(stepsim.collective("all-reduce", cluster="dgx-h100-8", bytes="64MiB"),
                  "collective", "all-reduce", "--cluster", "dgx-h100-8", "--bytes", "64MiB")
        self.same(stepsim.collective("all-to-all", cluster=stepsim.Cluster("dgx-h100-8"),
                                     bytes=2**20, ranks="0-3"),
                  "collective", "all-to-all", "--cluster", "dgx-h100-8", "--bytes", "1MiB",
                  "--ranks", "0-3")

    def test_an_algorithm_of_ones_own(self):
        # A ring of three: in round r each member hands on the block that it got in the round before.
        steps = [{"round": turn, "from": member, "to": (member + 1) % 3,
                  "block": [(member - turn) % 3]} for turn in range(2) for member in range(3)]
        ring = {"name": "ring of three", "op": "all-gather", "members": 3, "step": steps}
        arguments = {"cluster": "dgx-h100-8", "ranks": "0-2", "bytes": "96MiB"}
        own = stepsim.collective("all-gather", algorithm=ring, **arguments)
        self.assertEqual(own.steps, 2)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "algorithm.json")
            path.write_text(json.dumps(ring))
            text = program("collective", "all-gather", "--cluster", "dgx-h100-8", "--ranks", "0-2",
                           "--bytes", "96MiB", "--algorithm", str(path)).replace(folder + "/", "")
            self.assertEqual(without_simulator(own.to_json()), without_simulator(text))
        steps[5]["block"] = [0]  # not what the last one waits for
        with self.assertRaisesRegex(stepsim.InputError, "^algorithm.json: step: .*all-gather promises"):
            stepsim.collective("all-gather", algorithm=ring, **arguments)

    def test_schedules(self):
        self.same(stepsim.schedule("zb_h1", stages=4, microbatches=8, send_time="0.1"), "schedule",
                  "zb_h1", "--stages", "4", "--microbatches", "8", "--send-time", "0.1")
        order = stepsim.schedule("1f1b", stages=2, microbatches=4)
        own = stepsim.schedule(order.to_dict()["per_rank"])
        self.assertEqual(own.makespan_s, order.makespan_s)
        self.assertEqual(own.start_s, order.start_s)

    def test_a_plan_with_a_schedule_of_ones_own(self):
        named = {"tp": 1, "dp": 4, "pp": 2, "microbatch": 1, "global_batch": 16, "sequence": 1024}
        order = stepsim.schedule("gpipe", stages=2, microbatches=4).to_dict()["per_rank"]
        results = [stepsim.run(model="llama3-8b", cluster="dgx-h100-8",
                               plan={**named, "schedule": one}) for one in ("gpipe", order)]
        self.assertEqual(results[0].step_time_s, results[1].step_time_s)
        self.assertNotIn("/", results[1].experiment.plan.schedule)

    def test_a_search(self):
        space = {"tp": [1, 2, 4], "zero": range(0, 4)}
        arguments = ["--global-batch", "64", "--sequence", "2048", "--within", "tp=1,2,4,zero=0..3"]
        result = stepsim.search(model="llama3-8b", cluster="dgx-h100-8", global_batch=64,
                                sequence=2048, within=space, jobs=2)
        self.same(result, "search", *FLAGS, *arguments)
        best = result.plan(0)
        self.assertEqual(best.tp, result.best[0].plan.tp)
        run = stepsim.run(model="llama3-8b", cluster="dgx-h100-8", plan=best)
        self.assertEqual(run.step_time_s, result.best[0].step_time_s)

    def test_a_sweep(self):
        points = stepsim.sweep(SMALL, over={"plan.zero": [0, 1, 2], "plan.sequence": [2048, 8192]})
        self.same(points, "sweep", SMALL, "--over", "plan.zero=0,1,2", "--over",
                  "plan.sequence=2048,8192")
        self.assertEqual(len(points), 6)
        self.assertEqual([point.inputs["plan.zero"] for point in points],
                         ["0", "0", "1", "1", "2", "2"])
        self.assertEqual(list(points), points.to_dict()["points"])

    def test_a_sweep_hands_over_its_points_in_order(self):
        # With several threads, a point that can't run, and points that are one experiment.
        over = ["plan.tp=1,2,3,4", "plan.zero=1,0,1", "plan.sequence=8192,512"]
        points = stepsim.sweep(SMALL, over=over, jobs=4)
        taken = list(points)
        self.assertEqual(taken, points.to_dict()["points"])
        self.assertEqual([point.number for point in taken], list(range(24)))
        self.assertEqual({point.problem is None for point in taken}, {True, False})
        self.assertEqual(list(points), taken)
        alone = stepsim.sweep(SMALL, over=over, jobs=1)
        self.assertEqual(list(alone), taken)

    def test_serving(self):
        requests = {"kind": "poisson", "rate": 4, "count": 100, "input": 1024, "output": 100}
        result = stepsim.serve(requests=requests, engine={"kind": "vllm", "sequences": 64,
                                                          "kv_blocks": 20000},
                               step_time="linear:base=8ms,token=20us,kv=2ns",
                               slo={"ttft": "2s", "tpot": "50ms"})
        self.same(result, "serve", "--requests", "poisson:rate=4,count=100,input=1024,output=100",
                  "--engine", "vllm,sequences=64,kv-blocks=20000", "--step-time",
                  "linear:base=8ms,token=20us,kv=2ns", "--slo", "ttft=2s,tpot=50ms")

    def test_goodput(self):
        arguments = {"step_time": "10s", "chips": 1024, "failures": "llama3", "days": 10,
                     "checkpoint": {"every": "30min", "stall": "5s"},
                     "runs": 20, "no_curves": True}
        self.same(stepsim.goodput(**arguments), "goodput", "--step-time", "10s", "--chips", "1024",
                  "--failures", "llama3", "--days", "10", "--checkpoint",
                  "every=30min,stall=5s", "--runs", "20", "--no-curves")

    def test_validate(self):
        result = stepsim.validate("B1")
        self.same(result, "validate", "B1")
        self.assertTrue(result.ok)

    def test_formulas(self):
        answer = stepsim.formula("E7", B=48000, N=64, F=32768, MX=2, MY=1)
        text = program("formula", "E7", "B=48000", "N=64", "F=32768", "MX=2", "MY=1")
        self.assertEqual(answer, json.loads(text))
        self.assertEqual(stepsim.formula("E4", Y_max=16, chip="tpu-v5p", W="180GB/s", F="?").symbol,
                         "F")
        self.assertEqual([one.id for one in stepsim.formula()],
                         [one["id"] for one in json.loads(program("formula"))])

    def test_accuracy(self):
        with tempfile.TemporaryDirectory() as folder:
            table = pathlib.Path(folder, "kernels.csv")
            lines = (pathlib.Path(__file__).parents[1] / "reference/measured/matmuls.csv"
                     ).read_text().splitlines()
            table.write_text("\n".join(lines[:8]) + "\n")
            self.same(stepsim.accuracy(table), "accuracy", str(table))

    def test_topology(self):
        self.same(stepsim.topology("dgx-h100-64"), "topology", "dgx-h100-64")

    def test_the_catalog(self):
        self.assertIn("llama3-70b", stepsim.catalog("models"))
        self.assertIn("models", stepsim.catalog())
        self.assertIn("layers", stepsim.catalog("model", "llama3-70b"))
        with self.assertRaises(stepsim.InputError):
            stepsim.catalog("modles")

    def test_a_graph_of_ones_own(self):
        graph = stepsim.OpGraph(ranks=2)
        first = graph[0].kernel("backward", "3ms")
        graph[0].send(1, 10**9, after=[first])
        arrived = graph[1].receive(0, 10**9)
        graph[1].kernel("forward", 0.002, after=[arrived])
        result = stepsim.run(graph, cluster="dgx-h100-8")
        # 1 GB over an NVLink of 450 GB/s one way, after 3 ms and before 2 ms; and some latency.
        self.assertAlmostEqual(result.step_time_s, 0.003 + 1 / 450 + 0.002, delta=2e-3)
        self.assertGreater(result.step_time_s, 0.005)
        self.assertEqual(result.bytes_by_axis.messages, 10**9)
        with self.assertRaisesRegex(ValueError, "rank"):
            graph[1].kernel(after=[first])

    def test_keys_of_plans(self):
        self.assertIn("global_batch", [key.name for key in stepsim.plan_keys()])
        groups = {key.name: key.group for key in stepsim.plan_keys()}
        self.assertEqual([groups[key] for key in ("tp", "loss", "context")], ["plan", "software", "pass"])

    def test_keys_of_software_and_of_a_pass_are_keywords(self):
        of = {"model": "llama3-8b", "cluster": "dgx-h100-8"}
        trained = {"dp": 8, "global_batch": 8, "sequence": 2048}
        new = stepsim.run(**of, plan=trained, software={"catalog": "torchtitan", "loss": "separate"})
        self.assertEqual(new.to_dict()["experiment"]["software"]["catalog"], "torchtitan")
        with self.assertWarns(FutureWarning):  # as programs of 0.1 have them
            old = stepsim.run(**of, plan={**trained, "software": "torchtitan", "loss": "separate"})
        self.assertEqual(old.step_time_s, new.step_time_s)
        served = {"inference": "decode", "batch": 16, "context": 2048}
        with self.assertWarns(FutureWarning):
            old = stepsim.run(**of, plan=stepsim.Plan(tp=8, **served))
        self.assertEqual(old.step_time_s,
                         stepsim.run(**of, plan={"tp": 8}, pass_=served).step_time_s)


if __name__ == "__main__":
    support.main()
