#!/usr/bin/env python3
"""stepsim import of trainers' settings, as a person runs it: trainers_test.py PATH-TO-STEPSIM."""
import gzip
import json
import pathlib
import re

from program import StepsimTest, main, stepsim

CORPUS = pathlib.Path(__file__).resolve().parents[1] / "fuzz/corpus"
KINDS = ["megatron", "torchtitan", "maxtext", "nemo", "deepspeed", "llama-factory", "ms-swift", "primus",
         "nanotron"]
MODEL = ["--model", "llama3-8b"]
# A key and its value, by the ending of the file.
KEYS = {
    ".sh": r"(?P<key>--[a-z][\w-]+|\b[a-z][a-z_]+(?==))[ =]+(?P<value>[^\s\\$]+)",
    ".log": r"^\d+: +(?P<key>\w+) \.+ +(?P<value>\S+)",
    ".json": r"\"(?P<key>\w+)\": *(?P<value>[^,\s{}\[\]]+)",
    ".toml": r"^(?P<key>\w+) = (?P<value>[^\s\[]+)",
    ".yaml": r"^ *(?P<key>[\w-]+): +(?P<value>[^\s{\[#]+)",
}
KEYS[".yml"] = KEYS[".yaml"]
# What the files say and the software does without being told: leaving it out changes nothing.
SAME_AS_DEFAULT = {
    "megatron": "max_position_embeddings overlap_p2p_comm bf16 context_parallel_size data_parallel_size "
                "group_query_attention moe_router_topk sequence_parallel world_size",
    "torchtitan": "name flavor batch_size seq_len tensor_parallel_degree context_parallel_degree max_norm "
                  "data_parallel_shard_degree pipeline_parallel_degree num_tokens_per_train_step "
                  "num_pp_microbatches enable",
    "maxtext": "base_num_query_heads vocab_size dcn_data_parallelism remat_policy ici_fsdp_parallelism "
               "quantization",
    "nemo": "tensor_model_parallel_size pipeline_model_parallel_size gradient_clip_val clip_grad seq_length",
    "deepspeed": "type overlap_comm device partition_activations",
    "llama-factory": "finetuning_type flash_attn optim stage",
    "ms-swift": "recompute_method recompute_num_layers attention_backend tuner_type attn_impl",
    "primus": "dcn_data_parallelism pipeline_model_parallel_size",
    "nanotron": "top_k pp tp make_vocab_size_divisible_by accumulate_grad_in_fp32 clip_grad",
}
# Where a script does not go.
NOT_TAKEN = {("script.sh", "--fp8-format")}


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
        return str(CORPUS / kind.replace("-", "_") / name)

    def test_what_is_read_runs(self):
        for kind in KINDS:
            for path in sorted((CORPUS / kind.replace("-", "_")).iterdir()):
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

    def test_override_files_of_recipes_are_bf16(self):
        """An override file never repeats what its recipe says; every recipe of Megatron Bridge trains in bf16."""
        path = self.write("overrides.yaml", "model:\n  seq_length: 4096\n  tensor_model_parallel_size: 1\n"
                          "train:\n  global_batch_size: 8\n  micro_batch_size: 1\n")
        arguments = ["nemo", path, "--ranks", "8", "--model", "llama3.2-1b"]
        self.assertEqual(self.plan(*arguments)["dtype"], '"bf16"')
        self.assertIn("mixed_precision bf16_mixed", " ".join(self.imported(*arguments)["assumed"]))
        unknown = self.write("unknown.yaml", pathlib.Path(path).read_text() + "mixed_precision: bf16_mixt\n")
        self.assertIn("did you mean bf16_mixed?", self.refused("nemo", unknown, *arguments[2:]))

    def test_ms_swift(self):
        for kind in ("ms-swift", "megatron"):
            plan = self.plan(kind, self.seed("ms_swift", "megatron.sh"))
            self.assertEqual(plan["dtype"], '"bf16"')
            self.assertEqual(plan["sequence"], "2048")
            self.assertEqual(plan["dp"], "4")  # 8 processes / pp 2
            self.assertEqual(plan["lora_rank"], "16")
            self.assertEqual(plan["catalog"], '"megatron-core"')
        read = self.imported("ms-swift", self.seed("ms_swift", "megatron.sh"))
        self.assertEqual([left["key"] for left in read["no_counterpart"]], ["--moe_shared_expert_overlap"])
        plan = self.plan("ms-swift", self.seed("ms_swift", "sft.sh"))
        self.assertEqual((plan["zero"], plan["dp"], plan["global_batch"]), ("2", "4", "16"))
        script = pathlib.Path(self.seed("ms_swift", "megatron.sh")).read_text()
        rlhf = self.write("rlhf.sh", script.replace("megatron sft", "megatron rlhf --rlhf_type grpo"))
        self.assertIn("runs other models too", self.refused("ms-swift", rlhf))
        other = self.write("other.sh", script.replace("Qwen3-30B-A3B", "Qwen9-30B"))
        self.assertIn("which the catalog does not have", self.refused("ms-swift", other))

    def test_llama_factory(self):
        plan = self.plan("llama-factory", self.seed("llama-factory", "full.yaml"))
        self.assertEqual((plan["zero"], plan["microbatch"], plan["global_batch"]), ("3", "2", "64"))
        self.assertEqual(plan["recompute"], '"full"')  # unless disable_gradient_checkpointing
        plan = self.plan("llama-factory", self.seed("llama-factory", "lora.yaml"))
        self.assertEqual((plan["zero"], plan["dp"], plan["lora_rank"]), ("3", "16", "16"))
        self.assertNotIn("recompute", plan)
        plan = self.plan("llama-factory", self.seed("llama-factory", "megatron.yaml"))
        self.assertEqual((plan["pp"], plan["ep"], plan["global_batch"]), ("4", "2", "16"))
        text = pathlib.Path(self.seed("llama-factory", "full.yaml")).read_text()
        path = self.write("own.yaml", text.replace("ds_z3_config", "own_config"))
        self.assertIn("own_config.json: give that file as well", self.refused("llama-factory", path))
        own = self.write("own_config.json", json.dumps({"zero_optimization": {"stage": 1}}))
        self.assertEqual(self.plan("llama-factory", path, own)["zero"], "1")
        for value in ("freeze", "oft"):
            path = self.write("x.yaml", text.replace("type: full", f"type: {value}"))
            self.assertIn("must be one of full, lora", self.refused("llama-factory", path))

    def test_primus(self):
        plan = self.plan("primus", self.seed("primus", "megatron.yaml"))
        self.assertEqual((plan["tp"], plan["recompute_layers"], plan["dtype"]), ("2", "4", '"bf16"'))
        self.assertIn('"llama3-8b"', self.imported(
            "primus", self.seed("primus", "megatron.yaml"), "PRIMUS_MODEL=llama3_8B")["experiment"])
        plan = self.plan("primus", self.seed("primus", "torchtitan.yaml"))
        self.assertEqual((plan["tp"], plan["recompute"], plan["microbatch"]), ("2", '"alternate"', "4"))
        plan = self.plan("primus", self.seed("primus", "maxtext.yaml"))
        self.assertEqual((plan["zero"], plan["sequence"]), ("3", "8192"))
        text = pathlib.Path(self.seed("primus", "megatron.yaml")).read_text()
        path = self.write("own.yaml", text.replace("llama3.1_8B}.yaml", "own}.yaml"))
        self.assertIn("which the catalog does not have", self.refused("primus", path))
        base = self.write("base.yaml", "num_layers: 4\nhidden_size: 512\nswiglu: true\n")
        own = self.write("own_model.yaml", "extends:\n  - base.yaml\nhidden_size: 1024\n"
                         "num_attention_heads: 8\nvocab_size: 32000\n")
        path = self.write("own.yaml", text.replace("${PRIMUS_MODEL:llama3.1_8B}.yaml", "own_model.yaml"))
        plan = self.plan("primus", path, own, base)
        self.assertEqual((plan["layers"], plan["hidden"]), ("4", "1024"))
        self.assertIn("needs base.yaml", self.refused("primus", path, own))

    def test_nanotron(self):
        plan = self.plan("nanotron", self.seed("nanotron", "llama.yaml"))
        self.assertEqual((plan["dp"], plan["tp"], plan["pp"]), ("4", "2", "2"))
        self.assertEqual(plan["global_batch"], "32")  # 2 x 4 x dp 4
        self.assertEqual((plan["schedule"], plan["sequence_parallel"]), ('"1f1b"', "true"))
        self.assertEqual((plan["zero"], plan["recompute"]), ("1", '"full"'))
        plan = self.plan("nanotron", self.seed("nanotron", "experts.yaml"))
        self.assertEqual((plan["first_dense"], plan["shared_intermediate"], plan["window"]),
                         ("1", "1408", "512"))
        text = pathlib.Path(self.seed("nanotron", "llama.yaml")).read_text()
        path = self.write("x.yaml", text.replace("is_llama_config", "is_mamba_config"))
        self.assertIn("is_mamba_config: must be one of false", self.refused("nanotron", path))

    def test_blocks_of_maxtext(self):
        text = pathlib.Path(self.seed("maxtext", "model.yml")).read_text()
        hybrid = ("decoder_block: qwen3_5\ninhomogeneous_layer_cycle_interval: 4\ngdn_conv_kernel_dim: 4\n"
                  "gdn_key_head_dim: 128\ngdn_value_head_dim: 128\ngdn_num_key_heads: 16\n"
                  "gdn_num_value_heads: 32\nshared_experts: 1\n")
        lines = [line for line in text.splitlines() if not line.startswith("decoder_block")]
        plan = self.plan("maxtext", self.write("hybrid.yml", "\n".join(lines) + "\n" + hybrid))
        self.assertEqual((plan["mixer_pattern"], plan["kind"]), ('"SSSG"', '"gated_delta"'))
        for block in ("deepseek4", "gemma4", "qwen3_6"):
            path = self.write("other.yml", "\n".join(lines) + f"\ndecoder_block: {block}\n")
            self.assertIn("decoder_block: must be one of", self.refused("maxtext", path))

    def test_deepspeed_names_its_software(self):
        own = self.write("own.json", json.dumps({"train_micro_batch_size_per_gpu": 1,
                                                 "zero_optimization": {"stage": 3}, "bf16": {"enabled": True}}))
        self.assertIn('"deepspeed"', self.imported("deepspeed", own, *MODEL)["experiment"])
        wrapped = self.seed("deepspeed", "auto.json")
        self.assertIn('"transformers-deepspeed"', self.imported("deepspeed", wrapped, *MODEL)["experiment"])
        text = json.dumps({"zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}}})
        self.assertIn("offload_param.device: must be one of none", self.refused(
            "deepspeed", self.write("host.json", text), *MODEL))

    def test_mutations_leave_a_trace(self):
        """Drops, renames and changes each key of each file: the result differs, the list of what has no effect has the
        key, or the file is refused."""
        for kind in KINDS:
            for path in sorted((CORPUS / kind.replace("-", "_")).iterdir()):
                if path.suffix in (".sh", ".log", ".toml", ".json", ".yml", ".yaml"):
                    self.mutate(kind, path)

    def mutate(self, kind, path):
        text = path.read_text()
        whole = self.result(kind, path.name, text)
        spots = list(re.finditer(KEYS[path.suffix], text, re.MULTILINE))
        self.assertGreater(len(spots), 3, path)
        for spot in spots:
            key, value = spot.group("key"), spot.group("value").strip("\"'")
            if (path.name, key) in NOT_TAKEN or key.isupper():
                continue
            changed = {"dropped": text[:spot.start()] + text[spot.end():].removeprefix(","),
                       "renamed": text[:spot.end("key")] + "_x" + text[spot.end("key"):],
                       "changed": text[:spot.start("value")] + spot.group("value").replace(
                           value, "unheardof") + text[spot.end("value"):]}
            name = key.strip("-").replace("-", "_").lower()
            for how, other in changed.items():
                result = self.result(kind, path.name, other)
                is_idle = any(each.split(".")[-1].strip("-").replace("-", "_").lower() == name
                              for each in whole["changes_no_time"])
                is_default = how == "dropped" and name in SAME_AS_DEFAULT.get(kind, "").split()
                self.assertTrue(result is None or result != whole or is_idle or is_default,
                                f"{kind} {path.name}: {key} {how} leaves no trace")

    def result(self, kind, name, text):
        """What was read, without the places of keys; None if it was refused."""
        model = MODEL if kind == "deepspeed" else []
        run = stepsim("import", kind, self.write(name, text), *model, "--json", "-")
        self.assertIn(run.returncode, (0, 2), run.stderr)
        if run.returncode == 2:
            return None
        read = json.loads(run.stdout)
        for each in read["no_counterpart"] + read["not_known"]:
            each.pop("place")
        return {key: read[key] for key in ("experiment", "assumed", "no_counterpart", "not_known",
                                           "changes_no_time")}

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
            for path in sorted((CORPUS / kind.replace("-", "_")).iterdir()):
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
