#!/usr/bin/env python3
"""A plan takes as long whichever way it goes in: entrances_test.py PATH-TO-STEPSIM."""
import json

from program import StepsimTest, main, stepsim

MODEL = """
name: "toy"
layers: 16 hidden: 2048 intermediate: 8192 heads: 16 kv_heads: 8 vocabulary: 32000
"""
COLUMNS = {
    "source_id": "mine", "chip": "H100", "chip_count": 8, "model": "toy", "layers": 16,
    "hidden": 2048, "ffn": 8192, "heads": 16, "kv_heads": 8, "vocab": 32000, "seq_len": 1024,
    "gated_mlp": "yes", "moe": "no", "micro_batch": 1, "dtype": "bf16", "step_time_s": 1,
}
# The columns of a row, and the plan that they mean. `accuracy` once simulated each of them differently.
CASES = {
    "planned by time, and overlapping steps": (
        {"pp": 4, "dp": 2, "global_batch": 32, "schedule": "ZB-V"},
        "pp=4,dp=2,global-batch=32,schedule=zbv_auto,chunks=2"),
    "planned by time": (
        {"pp": 4, "dp": 2, "global_batch": 32, "schedule": "ZB-1p"},
        "pp=4,dp=2,global-batch=32,schedule=zb_auto_1p"),
    "overlapping steps": (
        {"dp": 8, "global_batch": 16, "zero_stage": 1, "overlap": "--overlap-param-gather"},
        "dp=8,global-batch=16,zero=1,overlap-parameters=true"),
    "FSDP": ({"dp": 8, "global_batch": 16, "zero_stage": 3}, "dp=8,global-batch=16,zero=3"),
    "plain": ({"tp": 2, "pp": 2, "dp": 2, "global_batch": 16, "sequence_parallel": "yes"},
              "tp=2,pp=2,dp=2,global-batch=16"),
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
