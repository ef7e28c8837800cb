#!/usr/bin/env python3
"""A plan takes as long whichever way it goes in: entrances_test.py PATH-TO-STEPSIM."""
import json

from program import StepsimTest, main, stepsim

MODEL = """
name: "toy"
layers: 16 hidden: 2048 intermediate: 8192 heads: 16 kv_heads: 8 vocabulary: 32000
"""
COLUMNS = {"source": "mine", "model": "toy.textproto", "cluster": "dgx-h100-8", "plan.sequence": 1024,
           "measured.step_time": "1s"}
# The columns of a row, and the plan that they mean. `accuracy` once simulated each of them differently.
CASES = {
    "planned by time, and overlapping steps": (
        {"plan.pp": 4, "plan.dp": 2, "plan.global_batch": 32, "plan.schedule": "zbv_auto", "plan.chunks": 2},
        "pp=4,dp=2,global-batch=32,schedule=zbv_auto,chunks=2"),
    "planned by time": (
        {"plan.pp": 4, "plan.dp": 2, "plan.global_batch": 32, "plan.schedule": "zb_auto_1p"},
        "pp=4,dp=2,global-batch=32,schedule=zb_auto_1p"),
    "overlapping steps": (
        {"plan.dp": 8, "plan.global_batch": 16, "plan.zero": 1, "plan.overlap_parameters": "true"},
        "dp=8,global-batch=16,zero=1,overlap-parameters=true"),
    "FSDP": ({"plan.dp": 8, "plan.global_batch": 16, "plan.zero": 3}, "dp=8,global-batch=16,zero=3"),
    "plain": ({"plan.tp": 2, "plan.pp": 2, "plan.dp": 2, "plan.global_batch": 16}, "tp=2,pp=2,dp=2,global-batch=16"),
}


class EntrancesTest(StepsimTest):
    def test_run_and_accuracy_agree_to_the_picosecond(self):
        model = self.write("toy.textproto", MODEL)
        for name, (columns, plan) in CASES.items():
            with self.subTest(name):
                run = stepsim("run", "--model", model, "--cluster", "dgx-h100-8", "--plan",
                              f"{plan},sequence=1024", "--json", "-")
                self.assertEqual(run.returncode, 0, run.stderr)
                row = {"id": "row", **COLUMNS, **columns}
                table = self.write("row.csv", ",".join(row) + "\n" +
                                   ",".join(str(value) for value in row.values()) + "\n")
                accuracy = stepsim("accuracy", table, "--json", "-")
                self.assertEqual(accuracy.returncode, 0, accuracy.stderr)
                predicted = json.loads(accuracy.stdout)["rows"][0]["predicted"]
                self.assertEqual(predicted, json.loads(run.stdout)["step_time_s"])


if __name__ == "__main__":
    main()
