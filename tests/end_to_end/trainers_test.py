#!/usr/bin/env python3
"""stepsim import of trainers' settings, as a person runs it: trainers_test.py PATH-TO-STEPSIM."""
import gzip
import json
import pathlib

from program import StepsimTest, main, stepsim

CORPUS = pathlib.Path(__file__).resolve().parents[1] / "fuzz/corpus"
KINDS = ["megatron", "torchtitan", "maxtext", "nemo", "deepspeed"]
MODEL = ["--model", "llama3-8b"]


class TrainersTest(StepsimTest):
    def imported(self, kind, *arguments):
        run = stepsim("import", kind, *arguments, "--json", "-")
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout)

    def plan(self, kind, *arguments):
        """The keys of the plan and the model that were read, as texts."""
        lines = self.imported(kind, *arguments)["experiment"].splitlines()
        return dict(line.strip().split(": ", 1) for line in lines if ": " in line)

    def refused(self, *arguments):
        run = stepsim("import", *arguments)
        self.assertEqual(run.returncode, 2, run.stdout + run.stderr)
        self.assertEqual(run.stdout, "")
        return run.stderr

    def seed(self, kind, name):
        return str(CORPUS / kind / name)

    def test_what_is_read_runs(self):
        for kind in KINDS:
            for path in sorted((CORPUS / kind).iterdir()):
                if path.suffix not in (".sh", ".log", ".toml", ".json", ".yml", ".yaml"):
                    continue
                experiment = str(self.folder / f"{kind}-{path.stem}.textproto")
                model = MODEL if kind == "deepspeed" else []
                read = stepsim("import", kind, str(path), *model, "--to", experiment)
                self.assertEqual(read.returncode, 0, f"{path}: {read.stderr}")
                ran = stepsim("run", experiment, "--steps", "1", "--json", "-")
                self.assertEqual(ran.returncode, 0, f"{path}: {ran.stderr}")
                self.assertGreater(json.loads(ran.stdout)["step_time_s"], 0)

    def export(self, kind, *arguments, plan="tp=2,dp=4,zero=1", command="run"):
        """Writes an experiment as settings; returns the run and the file's text, "" if there is none."""
        path = self.folder / f"exported.{kind}"
        path.unlink(missing_ok=True)
        keys = [] if command == "search" else [
            "--plan", f"microbatch=1,global-batch=64,sequence=8192,{plan}"]
        run = stepsim(command, *MODEL, "--cluster", "dgx-h100-8", *keys, *arguments, "--export", kind,
                      str(path))
        return run, path.read_text() if path.exists() else ""

    def test_a_plan_leaves_as_settings_and_comes_back(self):
        for kind, plan in (("megatron", "tp=2,dp=4,zero=1"), ("nemo", "pp=2,dp=4,zero=1,chunks=2,"
                                                                       "schedule=interleaved_1f1b"),
                           ("torchtitan", "tp=2,dp=4,zero=3,recompute=full"),
                           ("maxtext", "cp=2,dp=4,zero=3,cp-mode=all_gather")):
            run, text = self.export(kind, plan=plan)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertIn("8 ranks", text)
            for note in run.stderr.splitlines():
                self.assertIn(note.removeprefix("note: "), text)
            read = self.plan(kind, str(self.folder / f"exported.{kind}"), "--ranks", "8", "--cluster",
                             "dgx-h100-8")
            for key in plan.split(","):
                name, value = key.replace("-", "_").split("=")
                self.assertEqual(read[name].strip('"'), value, kind)
            self.assertEqual(read["global_batch"], "64")

    def test_what_a_trainer_cannot_do_is_refused(self):
        run, text = self.export("megatron", plan="pp=2,dp=4,schedule=zb_h1,recompute=matmuls")
        self.assertEqual((run.returncode, text, run.stdout), (2, "", ""))
        self.assertIn("--export megatron: plan.schedule: is zb_h1: Megatron has 1f1b", run.stderr)
        self.assertIn("--export megatron: plan.recompute: is matmuls", run.stderr)
        run, text = self.export("torchtitan", plan="dp=8,zero=2")
        self.assertEqual((run.returncode, text), (2, ""))
        self.assertIn("plan.zero: is 2", run.stderr)
        run, _ = self.export("megatorn")
        self.assertEqual(run.returncode, 2)
        self.assertIn("did you mean megatron?", run.stderr)

    def test_the_best_plan_of_a_search_leaves(self):
        run, text = self.export("megatron", "--global-batch", "64", "--sequence", "4096", "--within",
                                "tp=1,2,4,zero=1", "--fix", "microbatch=1", command="search")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("--use-distributed-optimizer", text)

    def test_orders_and_algorithms_leave(self):
        order = str(self.folder / "order.csv")
        sizes = ["--stages", "4", "--microbatches", "8"]
        run = stepsim("schedule", "zbv_hand", *sizes, "--export", "torchtitan", order)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(pathlib.Path(order).read_text().splitlines()[0][:8], "0F0,0F1,")
        named = json.loads(stepsim("schedule", "zbv_hand", *sizes, "--json", "-").stdout)
        read = json.loads(stepsim("schedule", order, "--json", "-").stdout)
        self.assertEqual(read["per_rank"], named["per_rank"])
        self.assertEqual(read["makespan_s"], named["makespan_s"])
        refused = stepsim("schedule", "dualpipe", *sizes, "--export", "torchtitan", order)
        self.assertEqual(refused.returncode, 2)
        xml = self.folder / "ring.xml"
        run = stepsim("collective", "all-reduce", "--cluster", "dgx-h100-8", "--bytes", "8MiB",
                      "--algorithm", "ring", "--export", "msccl", str(xml))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn('coll="allreduce"', xml.read_text())
        self.assertEqual(xml.read_text().count("<gpu "), 8)
        refused = stepsim("collective", "all-reduce", "--cluster", "dgx-h100-8", "--bytes", "8MiB",
                          "--algorithm", "nvls", "--export", "msccl", str(xml))
        self.assertEqual(refused.returncode, 2)

    def test_megatron_script(self):
        """Conditions, arrays and sums are followed; flags have their meaning in Megatron Core."""
        plan = self.plan("megatron", self.seed("megatron", "script.sh"))
        self.assertEqual(plan["dp"], "4")  # 16 ranks / (tp 2 x pp 2)
        self.assertEqual(plan["chunks"], "2")  # 8 layers / 2 stages / 2 layers a chunk
        self.assertEqual(plan["vocabulary"], "32256")  # 32001 padded to a multiple of 128 x 2
        self.assertEqual(plan["recompute_modules"], '"attention+norm"')
        self.assertEqual(plan["scale_block"], "128")
        self.assertEqual(plan["zero"], "1")
        plan = self.plan("megatron", self.seed("megatron", "script.sh"), "NNODES=4")
        self.assertEqual(plan["dp"], "8")

    def test_megatron_log(self):
        plan = self.plan("megatron", self.seed("megatron", "run.log"))
        self.assertEqual(plan["first_dense"], "1")
        self.assertEqual(plan["ep"], "4")
        self.assertNotIn("etp", plan)  # expert_tensor_parallel_size 1
        self.assertEqual(plan["dispatch"], '"two_level"')

    def test_experts_are_divided_like_the_rest_unless_told(self):
        text = pathlib.Path(self.seed("megatron", "run.log")).read_text()
        log = self.write("run.log", text.replace("expert_tensor_parallel_size .....................",
                                                 "something_else ....................."))
        self.assertEqual(self.plan("megatron", log)["etp"], "2")

    def test_contradictions_are_refused_where_they_stand(self):
        script = pathlib.Path(self.seed("megatron", "script.sh")).read_text()
        three = self.write("three.sh", script.replace("parallel-size 2 --seq", "parallel-size 3 --seq"))
        self.assertIn("three.sh:26: --nnodes: says 16 ranks, which is no multiple of the 6",
                      self.refused("megatron", three))
        heads = self.write("heads.sh", script.replace("--num-query-groups 4", "--num-query-groups 5"))
        self.assertIn("heads.sh:10: --num-query-groups: gives model.kv_heads", self.refused(
            "megatron", heads))
        log = pathlib.Path(self.seed("megatron", "run.log")).read_text()
        wrong = self.write("wrong.log", log.replace("data_parallel_size .............................. 4",
                                                    "data_parallel_size .............................. 3"))
        self.assertIn("wrong.log:8: data_parallel_size: is 3, but 16 ranks", self.refused(
            "megatron", wrong))
        zero = json.loads(pathlib.Path(self.seed("deepspeed", "zero3.json")).read_text())
        zero["train_batch_size"] = 66
        path = self.write("ds.json", json.dumps(zero))
        self.assertIn("train_batch_size: is 66, no multiple of", self.refused(
            "deepspeed", path, *MODEL))

    def test_bad_values_are_all_named(self):
        script = pathlib.Path(self.seed("megatron", "script.sh")).read_text()
        path = self.write("bad.sh", script.replace("--num-layers 8", "--num-layers eight").replace(
            "--micro-batch-size 1", "--micro-batch-size ${MBS}"))
        problems = self.refused("megatron", path)
        self.assertIn("--num-layers: must be a whole number, is eight", problems)
        self.assertIn("--micro-batch-size: is ${MBS}, which the file does not set: add "
                      "micro-batch-size=VALUE behind the file", problems)

    def test_torchtitan(self):
        plan = self.plan("torchtitan", self.seed("torchtitan", "small.toml"), "--ranks", "32")
        self.assertEqual(plan["dp"], "16")
        self.assertEqual(plan["shard"], "8")  # 2 replicas
        self.assertEqual(plan["global_batch"], "32")
        self.assertEqual(plan["scale_rows"], "true")
        self.assertEqual(plan["recompute"], '"alternate"')
        self.assertIn('catalog: "llama3.1-8b"',
                      self.imported("torchtitan", self.seed("torchtitan", "small.toml"))["experiment"])
        plan = self.plan("torchtitan", self.seed("torchtitan", "dump.json"))
        self.assertEqual(plan["microbatch"], "4")  # 16,384 tokens of 4,096
        self.assertEqual(plan["ep"], "8")
        plan = self.plan("torchtitan", self.seed("torchtitan", "old.toml"))
        self.assertEqual(plan["layout"], '"1,2*2,1"')
        self.assertIn("is llama3 9B, which is not known here",
                      self.refused("torchtitan", self.seed("torchtitan", "small.toml"),
                                   "model.flavor=9B"))

    def test_maxtext(self):
        read = self.imported("maxtext", self.seed("maxtext", "run.sh"))
        self.assertIn('catalog: "multislice-v5p-2x4x4x8"', read["experiment"])
        plan = self.plan("maxtext", self.seed("maxtext", "run.sh"))
        self.assertEqual(plan["dp"], "64")  # 256 chips / tp 4
        self.assertEqual(plan["shard"], "32")  # a slice
        self.assertEqual(plan["recompute_keep"], '"attention+down"')
        plan = self.plan("maxtext", self.seed("maxtext", "model.yml"))
        self.assertEqual(plan["global_batch"], "8")  # 0.5 x 8 chips x 2
        self.assertEqual(plan["ep"], "4")
        wanting = self.write("x.yml", "model_name: llama2-7b\nper_device_batch_size: 4\n")
        self.assertIn("ici_fsdp_parallelism: is -1", self.refused("maxtext", wanting))
        self.assertEqual(self.plan("maxtext", wanting, "--cluster", "v5p-4x4x4")["dp"], "64")

    def test_nemo(self):
        plan = self.plan("nemo", self.seed("nemo", "first.yaml"))
        self.assertEqual(plan["dp"], "4")
        self.assertEqual(plan["chunks"], "4")
        self.assertEqual(plan["zero"], "1")  # distributed_fused_adam
        self.assertEqual(plan["recompute_layers"], "1")
        self.assertEqual(plan["tensor_pieces"], "4")  # ub_tp_comm_overlap
        plan = self.plan("nemo", self.seed("nemo", "first.yaml"), "model.sequence_parallel=False")
        self.assertEqual(plan["overlap_tensor"], "true")
        self.assertNotIn("tensor_pieces", plan)
        plan = self.plan("nemo", self.seed("nemo", "second.yaml"))
        self.assertEqual(plan["sequence"], "8192")  # of the data, not the longest of the model
        self.assertEqual(plan["gradient_bytes"], "2")
        plan = self.plan("nemo", self.seed("nemo", "bridge.yaml"))
        self.assertEqual(plan["current_scaling"], "true")
        self.assertEqual(plan["lora_rank"], "16")
        plan = self.plan("nemo", self.seed("nemo", "first.yaml"), "model.tensor_model_parallel_size=8")
        self.assertEqual(plan["tp"], "8")

    def test_deepspeed_with_the_folder_of_a_model(self):
        folder = self.folder / "model"
        folder.mkdir()
        config = {"model_type": "llama", "hidden_size": 512, "num_hidden_layers": 4,
                  "num_attention_heads": 8, "intermediate_size": 1024, "vocab_size": 1000,
                  "num_key_value_heads": 8, "rms_norm_eps": 1e-5, "hidden_act": "silu",
                  "max_position_embeddings": 4096, "tie_word_embeddings": False}
        (folder / "config.json").write_text(json.dumps(config))
        plan = self.plan("deepspeed", self.seed("deepspeed", "zero3.json"), str(folder))
        self.assertEqual(plan["layers"], "4")
        self.assertEqual(plan["dp"], "8")  # 64 / 4 / 2
        self.assertEqual(plan["zero"], "3")
        self.assertIn("MODEL: must be given", self.refused(
            "deepspeed", self.seed("deepspeed", "zero3.json")))

    def test_nothing_is_guessed_in_silence(self):
        path = self.write("x.sh", "--num-layers 4 --hidden-size 512 --num-attention-heads 8 "
                          "--seq-length 1024 --lr 1e-4 --moe-router-dtype fp32 --bf16 "
                          "--rampup-batch-size 8 8 1000 --global-batch-size 16 --shiny-new-flag 3\n")
        read = self.imported("megatron", path)
        assumed = " ".join(read["assumed"])
        for what in ["ranks", "vocabulary of 50257", "micro-batches of 1", "cluster dgx-h100-8"]:
            self.assertIn(what, assumed)
        self.assertEqual([left["key"] for left in read["no_counterpart"]], ["--rampup-batch-size"])
        self.assertEqual([key["key"] for key in read["not_known"]], ["--shiny-new-flag"])
        self.assertIn("--lr", read["changes_no_time"])
        shown = stepsim("import", "megatron", path).stdout
        self.assertIn("#   --rampup-batch-size 8 8 1000 (x.sh:1)".replace("8 8 1000", '["8","8","1000"]'),
                      shown)
        self.assertIn("# Not known here, 1 keys: --shiny-new-flag 3", shown)
        self.assertIn("# 2 keys that change no step's time; --verbose lists them", shown)
        to = str(self.folder / "x.textproto")
        self.assertIn("--lr 1e-4", stepsim("import", "megatron", path, "--to", to, "--verbose").stdout)

    def test_cluster_and_set(self):
        plan = self.imported("megatron", self.seed("megatron", "script.sh"), "--cluster", "dgx-h200-16",
                             "--set", "plan.microbatch=2", "--set", "model.vocabulary=50304")
        self.assertIn('catalog: "dgx-h200-16"', plan["experiment"])
        self.assertIn("microbatch: 2\n", plan["experiment"])
        self.assertIn("vocabulary: 50304\n", plan["experiment"])
        self.assertNotIn("cluster", " ".join(plan["assumed"]))
        self.assertIn("--set plan.tp", self.refused("megatron", self.seed("megatron", "script.sh"),
                                                   "--set", "plan.tp=3"))

    def test_odd_files(self):
        empty = self.write("empty", "")
        folder = str(self.folder)
        zeros = self.folder / "zeros"
        zeros.write_bytes(b"\0" * 100)
        for kind in KINDS:
            model = MODEL if kind == "deepspeed" else []
            self.refused(kind, empty, *model)
            self.refused(kind, folder, *model)
            self.refused(kind, str(zeros), *model)
            self.refused(kind, str(self.folder / "none"), *model)
            self.refused(kind, "a=b", *model)
            self.refused(kind, self.seed("aicb", "small.txt"), *model)
            for path in sorted((CORPUS / kind).iterdir()):
                text = path.read_bytes()
                packed = self.folder / (path.name + ".gz")
                packed.write_bytes(gzip.compress(text))
                if kind in ("megatron", "maxtext", "nemo"):
                    first = stepsim("import", kind, str(path), *model).stdout
                    second = stepsim("import", kind, str(packed), *model).stdout
                    self.assertEqual(first.replace(path.name, ""), second.replace(packed.name, ""))
                packed.write_bytes(gzip.compress(text)[:-20])
                self.assertIn("truncated", self.refused(kind, str(packed), *model))
                break
        self.assertIn("is Python", self.refused("torchtitan", self.write("x.py", "x = 1\n")))
        self.assertIn("has nothing to replay", self.refused(
            "megatron", self.seed("megatron", "script.sh"), "--retime"))


if __name__ == "__main__":
    main()
