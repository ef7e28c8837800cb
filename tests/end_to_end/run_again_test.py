#!/usr/bin/env python3
"""A result says what was run, and running it again gives the same: run_again_test.py PATH-TO-STEPSIM."""
import json
import pathlib

from program import SMALL, StepsimTest, main, stepsim

OWN_CLUSTER = """
name: "mine"
chip { catalog: "h100-sxm" memory_bandwidth: "3TB/s" }
dgx_superpod { nodes: 2 gpus_per_node: 4 nvlink_bandwidth: "300GB/s" nic_bandwidth: "200Gbps" }
library { catalog: "ideal" }
"""
FAULTY = """
model { catalog: "llama3-8b" layers: 4 }
cluster { catalog: "dgx-h100-16"
          faults { links { link: "node0.gpu3-su0.leaf3" capacity: 0.5 } } }
plan { tp: 4 dp: 4 zero: 3 global_batch: 16 sequence: 2048 }
"""
VARIED = """
name: "varied"
model { catalog: "llama3-8b" layers: 4 }
cluster { catalog: "dgx-h100-8" }
plan { tp: 2 dp: 4 global_batch: 16 sequence: 2048 }
variation { straggler { rank: 0 rank: 1 rank: 5 slowdown: 1.2 } jitter: 0.02 }
"""


class RunAgainTest(StepsimTest):
    def result_of(self, *arguments):
        result = stepsim("run", *arguments, "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def expect_the_same_again(self, *arguments):
        """Returns the result, whose rerun from a folder of its own has the same bytes."""
        first = self.result_of(*arguments)
        path = self.write("result.json", first)
        for file in self.folder.iterdir():
            if file.name != "result.json":
                file.unlink()  # the result is complete in itself
        again = self.result_of(path)
        self.assertEqual(first.partition('"simulator"')[0], again.partition('"simulator"')[0])
        return json.loads(first)

    def test_an_experiment_of_the_catalog(self):
        asked = self.expect_the_same_again(SMALL)["experiment"]
        self.assertEqual(asked["name"], SMALL)
        self.assertEqual(asked["plan"]["tp"], 2)
        self.assertEqual(asked["plan"]["recompute"], "none", "keys that nobody gave are there too")
        self.assertEqual(asked["overrides"], [])
        self.assertEqual(asked["seed"], 0)
        version = stepsim("--version").stdout.split()[1]
        self.assertEqual(asked["stepsim_version"], version)

    def test_overrides_and_flags(self):
        asked = self.expect_the_same_again(
            SMALL, "--set", "model.layers=8", "--set", "plan.recompute=full", "--library", "ideal",
            "--plan", "zero=3", "--granularity", "stepped", "--attention-flops", "full",
            "--steps", "3")["experiment"]
        self.assertEqual(asked["model"]["layers"], 8)
        self.assertEqual(asked["plan"]["zero"], 3)
        self.assertEqual(asked["overrides"], ["cluster.library.catalog=ideal", "model.layers=8",
                                              "plan.recompute=full"])

    def test_a_hugging_face_model(self):
        config = self.write("config.json", stepsim("catalog", "models", "qwen3-30b-a3b").stdout)
        self.expect_the_same_again("--model", config, "--cluster", "dgx-h100-8", "--plan",
                                   "dp=8,ep=8,zero=1,global-batch=8,sequence=1024")

    def test_a_schedule_of_ones_own(self):
        ranks = ["F0.0 F1.0 BW0.0 BW1.0"] * 3 + ["F0.0 BW0.0 F1.0 BW1.0"]
        path = self.write("own.schedule", "\n".join(ranks))
        asked = self.expect_the_same_again(
            "--model", "llama3-8b", "--cluster", "dgx-h100-8", "--plan",
            f"tp=1,dp=2,pp=4,sequence=2048,global-batch=4,schedule={path}")["experiment"]
        self.assertEqual(asked["plan"]["schedule"].split("\n")[:4], ranks)

    def test_a_cluster_of_ones_own(self):
        path = self.write("mine.textproto", OWN_CLUSTER)
        asked = self.expect_the_same_again("--model", "llama3-8b", "--cluster", path, "--plan",
                                           "tp=4,dp=2,global-batch=8,sequence=2048")["experiment"]
        self.assertEqual(asked["cluster"]["name"], "mine")

    def test_a_family_and_a_torus(self):
        self.expect_the_same_again("--model", "llama3-8b", "--cluster", "v5p-2x2x4", "--plan",
                                   "tp=4,dp=4,map=tp:z/dp:x+y,global-batch=16,sequence=2048")

    def test_faults_and_fsdp(self):
        path = self.write("faulty.textproto", FAULTY)
        self.assertIn("faults", self.expect_the_same_again(path)["experiment"]["cluster"])

    def test_variation_and_seed(self):
        path = self.write("varied.textproto", VARIED)
        result = self.expect_the_same_again(path, "--seed", "7")
        self.assertEqual(result["experiment"]["seed"], 7)
        self.write("result.json", json.dumps(result))
        other = json.loads(self.result_of(str(self.folder / "result.json"), "--seed", "8"))
        self.assertNotEqual(other["step_time_s"], result["step_time_s"], "flags go over the file")

    def test_offload_and_a_host(self):
        self.expect_the_same_again(SMALL, "--set", "plan.offload_optimizer=true", "--set",
                                   "cluster.host.link_bandwidth=25GB/s", "--set",
                                   "cluster.host.memory_bandwidth=300GB/s", "--set",
                                   "cluster.host.memory_capacity=1TB")

    def test_all_network_models_side_by_side(self):
        asked = self.expect_the_same_again(
            "--model", "mlp-stack:D=1024,F=4096,layers=2", "--cluster", "dgx-h100-8", "--plan",
            "tp=8,global-batch=1,sequence=128", "--fidelity", "all", "--packet-bytes",
            "65536")["experiment"]
        self.assertEqual(asked["simulation"]["packet_bytes"], 65536)

    def test_an_explained_run(self):
        self.assertIn("explain", self.expect_the_same_again(SMALL, "--explain"))


class NameTest(StepsimTest):
    def run_named(self, *arguments):
        result = stepsim("run", SMALL, *arguments, "--json", str(self.folder / "result.json"))
        self.assertEqual(result.returncode, 0, result.stderr)
        data = json.loads((self.folder / "result.json").read_text())
        self.assertEqual(result.stdout.splitlines()[0], data["name"])
        return data["name"], result.stdout

    def test_another_model_or_cluster_is_another_experiment(self):
        self.assertEqual(self.run_named()[0], SMALL)
        self.assertEqual(self.run_named("--model", "llama2-7b")[0], "llama2-7b-dgx-h100-8")
        self.assertEqual(self.run_named("--cluster", "dgx-h200-8")[0], "llama3-8b-dgx-h200-8")
        self.assertEqual(self.run_named("--set", "model.catalog=llama2-7b")[0],
                         "llama2-7b-dgx-h100-8")
        self.assertEqual(self.run_named("--set", "plan.zero=3")[0], SMALL)

    def test_the_title_names_what_is_not_at_its_default(self):
        self.assertNotIn("  plan ", self.run_named()[1])
        text = self.run_named("--set", "plan.recompute=full", "--plan", "overlap-gradients=false",
                              "--set", "model.layers=16", "--set", "plan.pp=2", "--set", "plan.dp=2",
                              "--set", "plan.layout=7,9", "--set",
                              "cluster.chip.memory_bandwidth=3TB/s")[1]
        title = " ".join(text.split("step time")[0].split())
        for setting in ["recompute=full", "overlap_gradients=false", "layout=7,9",
                        "set model.layers=16, cluster.chip.memory_bandwidth=3TB/s"]:
            self.assertIn(setting, title)
        varied = self.write("varied.textproto", VARIED)
        result = stepsim("run", varied)
        self.assertIn("stragglers 0-1,5: kernels take 1.2 times longer; jitter 0.02", result.stdout)


if __name__ == "__main__":
    main()
