#!/usr/bin/env python3
"""stepsim serve, as a person runs it: serve_test.py PATH-TO-STEPSIM."""
import collections
import csv
import json
import pathlib
import re

from program import StepsimTest, main, stepsim
from writing_commands import SCHEDULER_CASE

CASES = pathlib.Path(__file__).resolve().parent.parent / "reference/serving/scheduler_cases.jsonl"
RUN = ["serve", "--requests", "poisson:rate=20,count=200,input=100,output=uniform:5-30,seed=3",
       "--step-time", "linear:base=8ms,token=20us,kv=2ns"]
PARTS = ["queue", "prefill", "preempted", "transfer", "decode"]


def nearest_rank(values, percent):
    return sorted(values)[-(-len(values) * percent // 100) - 1]


class CasesTest(StepsimTest):
    def test_all_cases_of_the_oracle_are_as_expected(self):
        result = stepsim("serve", "--cases", str(CASES), "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        cases = json.loads(result.stdout)["cases"]
        self.assertEqual(len(cases), 150)
        self.assertTrue(all(case["as_expected"] is True for case in cases))
        given = [json.loads(line) for line in CASES.read_text().splitlines()]
        for case, expected in zip(cases, given):
            self.assertEqual({key: case[key] for key in expected["expected"]}, expected["expected"])

    def cases(self, *cases):
        return self.write("cases.jsonl", "\n".join(json.dumps(case) for case in cases))

    def test_a_case_without_an_answer_is_only_computed(self):
        open_case = {key: value for key, value in SCHEDULER_CASE.items() if key != "expected"}
        result = stepsim("serve", "--cases", self.cases(open_case, SCHEDULER_CASE), "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        cases = json.loads(result.stdout)["cases"]
        self.assertIsNone(cases[0]["as_expected"])
        self.assertEqual((cases[0]["id"], cases[0]["end_us"]), (1, 20))
        self.assertIs(cases[1]["as_expected"], True)

    def test_another_answer_is_a_no(self):
        wrong = {**SCHEDULER_CASE, "id": "w", "expected": {**SCHEDULER_CASE["expected"], "steps": 3}}
        result = stepsim("serve", "--cases", self.cases(SCHEDULER_CASE, wrong))
        self.assertEqual(result.returncode, 1)
        self.assertIn("1 as expected, 1 not", result.stdout)
        self.assertIn('"w": steps 2, expected 3', result.stdout)

    def test_what_is_wrong_with_a_case_is_said_with_its_line(self):
        engine = {**SCHEDULER_CASE["engine"], "watermark": 2, "kv_block": 1}
        wrong = {**SCHEDULER_CASE, "engine": engine, "requests": [{"arrival_us": -1, "input_tokens": 1}]}
        long = {**SCHEDULER_CASE,
                "requests": [{"arrival_us": 0, "input_tokens": 1000, "output_tokens": 1}]}
        path = self.cases(SCHEDULER_CASE, wrong, long)
        self.expect_refused(
            ["serve", "--cases", path],
            f"{path}:2 engine.watermark: must be a number from 0 to 1, is 2",
            f"{path}:2 engine.kv_block: no such field; did you mean kv_blocks?",
            f"{path}:2 requests[0].arrival_us: must be a whole number from 0 to",
            f"{path}:2 requests[0].output_tokens: is missing",
            f"{path}:3 requests[0]: needs 63 KV blocks of 16 tokens, must need at most 10 (kv_blocks)")
        self.expect_refused(["serve", "--cases", self.write("x.jsonl", "{")], "x.jsonl:1: parse error")
        self.expect_refused(["serve", "--cases", self.write("x.jsonl", "\n")], "has no cases")


class ServeTest(StepsimTest):
    def run_all(self, *arguments):
        files = [str(self.folder / name) for name in ("r.json", "r.csv", "t.json")]
        result = stepsim(*arguments, "--json", files[0], "--requests-out", files[1], "--trace", files[2])
        self.assertEqual(result.returncode, 0, result.stderr)
        answer, table, trace = (pathlib.Path(file).read_text() for file in files)
        return (json.loads(answer), list(csv.DictReader(table.splitlines())),
                json.loads(trace)["traceEvents"], result.stdout)

    def test_the_result_follows_from_its_rows(self):
        answer, rows, _, report = self.run_all(*RUN, "--slo", "ttft=50ms,tpot=20ms")
        self.assertEqual(answer["requests"], 200)
        self.assertEqual(list(answer)[-1], "simulator")
        in_ps = [{key: round(float(value) * 1e12) for key, value in row.items() if key.endswith("_s")}
                 for row in rows]
        ttft = [row["first_token_s"] - row["arrival_s"] for row in in_ps]
        whole = [row["last_token_s"] - row["arrival_s"] for row in in_ps]
        for key, values in (("ttft_s", ttft), ("end_to_end_s", whole)):
            spread = answer[key]
            for name, percent in (("p50", 50), ("p90", 90), ("p99", 99)):
                self.assertAlmostEqual(spread[name], nearest_rank(values, percent) / 1e12, 12)
            self.assertAlmostEqual(spread["mean"], sum(values) // len(values) / 1e12, 11)
        for row, end_to_end in zip(in_ps, whole):
            self.assertEqual(sum(row[f"{part}_s"] for part in PARTS), end_to_end)
        self.assertAlmostEqual(sum(answer["parts_s"].values()), answer["end_to_end_s"]["mean"], 11)
        length = (max(row["last_token_s"] for row in in_ps)
                  - min(row["arrival_s"] for row in in_ps)) / 1e12
        tokens = sum(int(row["output_tokens"]) for row in rows)
        self.assertAlmostEqual(answer["output_tokens_per_s"], tokens / length, 6)
        self.assertAlmostEqual(answer["output_tokens_per_s_per_chip"], tokens / length, 6)
        good = sum(first <= 50e9 and (end - first) / max(int(row["output_tokens"]) - 1, 1) <= 20e9
                   for row, first, end in zip(rows, ttft, whole))
        self.assertAlmostEqual(answer["goodput_requests_per_s"], good / length, 6)
        self.assertIn("200 requests on 1 replica of vllm", report)

    def test_the_trace_has_steps_and_requests(self):
        answer, _, events, _ = self.run_all(*RUN, "--replicas", "2")
        kinds = collections.Counter(event["ph"] for event in events)
        self.assertEqual(kinds["X"], answer["steps"])
        self.assertEqual(kinds["b"], kinds["e"])
        self.assertEqual(sum(event["name"] == "request 7" for event in events), 2)
        names = {event["name"] for event in events if event["ph"] == "X"}
        self.assertIn("prefill 1 x 100", names)
        self.assertIn("decode 1", names)
        self.assertEqual({event["name"] for event in events if event["ph"] == "C"},
                         {"running requests", "waiting requests", "KV blocks"})
        lanes = collections.defaultdict(list)
        for event in events:
            if event["ph"] == "X":
                lanes[event["pid"]].append(event)
        self.assertEqual(len(lanes), 2)
        for slices in lanes.values():
            for before, after in zip(slices, slices[1:]):
                self.assertLessEqual(round(1000 * (before["ts"] + before["dur"])),
                                     round(1000 * after["ts"]))

    def test_the_same_command_gives_the_same_bytes(self):
        arguments = [*RUN, "--requests", "gamma:rate=5,burstiness=0.3,count=100,output=9,tenant=b,"
                     "input=lognormal:80:0.7:500", "--engine", "kv-blocks=60,drafts=2,acceptance=0.7",
                     "--json", "-"]
        texts = {stepsim(*arguments).stdout.partition('"simulator"')[0] for _ in range(2)}
        self.assertEqual(len(texts), 1)
        answer = json.loads(stepsim(*arguments).stdout)
        self.assertEqual([tenant["tenant"] for tenant in answer["tenants"]], ["poisson", "b"])
        self.assertEqual(sum(tenant["requests"] for tenant in answer["tenants"]), 300)

    def test_steps_of_a_model_are_simulated(self):
        served = ["serve", "--model", "llama3-8b", "--cluster", "dgx-h100-8", "--plan", "tp=8",
                  "--requests", "burst:count=8,input=100,output=20", "--software", "none", "--json", "-"]
        result = stepsim(*served)
        self.assertEqual(result.returncode, 0, result.stderr)
        data = json.loads(result.stdout)
        # Eight prompts in one step, then 19 steps in which all decode.
        self.assertEqual(data["steps"], 20)
        run = stepsim("run", "--model", "llama3-8b", "--cluster", "dgx-h100-8", "--plan",
                      "tp=8", "--pass", "decode,batch=8,context=110", "--json", "-")
        step = json.loads(run.stdout)["step_time_s"]
        self.assertAlmostEqual(data["tpot_s"]["mean"] / step, 1, delta=0.01)
        exact = json.loads(stepsim(*served, "--exact-steps").stdout)
        self.assertAlmostEqual(data["end_to_end_s"]["mean"] / exact["end_to_end_s"]["mean"], 1,
                               delta=0.005)
        # 80 GiB x 0.9 less 2 GB of weights and 2 of libraries, in blocks of 16 x 16 KiB.
        self.assertGreater(data["kv_blocks"]["total"], 250_000)
        self.assertLess(data["kv_blocks"]["total"], 300_000)

    def test_a_model_that_leaves_no_room_is_refused(self):
        result = stepsim("serve", "--model", "llama3-70b", "--cluster", "dgx-h100-8", "--plan", "tp=1",
                         "--requests", "burst:count=1,input=10,output=2")
        self.assertEqual(result.returncode, 2)
        self.assertIn("--model: leaves no room for a KV cache", result.stderr)

    def test_the_engine_decides_what_a_pass_computes(self):
        result = stepsim("serve", "--model", "llama3-8b", "--cluster", "dgx-h100-8", "--plan",
                         "tp=8", "--pass", "batch=4", "--requests", "burst:count=1,input=10,output=2")
        self.assertEqual(result.returncode, 2)
        self.assertIn("--pass batch: must be left out", result.stderr)

    def test_prefill_and_decode_apart(self):
        answer, rows, _, _ = self.run_all(*RUN, "--prefill", "workers=2", "--decode", "workers=1",
                                          "--transfer", "linear:base=1ms,token=1us")
        self.assertEqual([replica["prefill"] for replica in answer["replicas"]], [True, True, False])
        self.assertEqual({row["transfer_s"] for row in rows}, {"0.001100000000"})

    def test_context_ranks_divide_prompts_of_prefill_workers(self):
        served = ["serve", "--model", "llama3-8b", "--cluster", "dgx-h100-32", "--json", "-", "--requests",
                  "burst:count=1,input=4096,output=3", "--software", "none"]
        apart = ["--prefill", "workers=2,tp=4,cp=2", "--decode", "workers=1,tp=8"]
        answer = json.loads(stepsim(*served, *apart, "--exact-steps", "--transfer", "network").stdout)
        step = json.loads(stepsim("run", "--model", "llama3-8b", "--cluster", "dgx-h100-8", "--plan",
                                  "tp=4,cp=2,sequence=4096", "--pass", "prefill,batch=1",
                                  "--json", "-").stdout)["step_time_s"]
        self.assertEqual(answer["ttft_s"]["mean"], step)
        self.assertEqual(answer["chips"], 24)
        # Eight chips send a token's 131,072 bytes to eight of another node, an eighth each at 50 GB/s.
        self.assertAlmostEqual(answer["parts_s"]["transfer"] / (4096 * 131072 / 8 / 50e9), 1, delta=0.01)
        quick = json.loads(stepsim(*served, *apart).stdout)
        self.assertAlmostEqual(quick["ttft_s"]["mean"] / step, 1, delta=0.005)
        # --plan holds where the keys of a group say nothing else.
        same = json.loads(stepsim(*served, "--plan", "tp=8", "--prefill", "workers=2,tp=4,cp=2", "--decode",
                                  "workers=1").stdout)
        self.assertEqual(same["ttft_s"], quick["ttft_s"])
        self.assertEqual(same["tpot_s"], quick["tpot_s"])
        self.expect_refused([*served, "--plan", "tp=4,cp=2"],
                            "--plan cp: is 2, but these replicas generate, too",
                            "--prefill workers=2,cp=2 --decode workers=1")
        self.expect_refused([*served, "--plan", "tp=4,cp=2", "--prefill", "workers=1", "--decode",
                             "workers=1"], "--decode cp: is 2, but decode replicas generate")
        self.expect_refused([*served, "--prefill", "workers=1,tp=4,cp=3", "--decode", "workers=1,tp=4,ep=2"],
                            "plan.ep")
        self.expect_refused([*served, "--prefill", "workers=1,cp=2,batch=4", "--decode", "workers=1"],
                            "--pass batch: must be left out")
        self.expect_refused([*RUN, "--prefill", "workers=1,tp=4", "--decode", "workers=1"],
                            "--prefill tp: no such key of vllm")

    def test_several_models_on_one_cluster(self):
        models = [["--model", "llama3-8b", "--plan", "tp=4", "--requests",
                   "burst:count=8,input=100,output=20"],
                  ["--model", "llama3-8b", "--plan", "tp=2", "--replicas", "2", "--engine",
                   "sglang,sequences=3", "--requests", "poisson:rate=50,count=30,input=50,output=9"]]
        cluster = ["--cluster", "dgx-h100-8", "--json", "-"]
        both = json.loads(stepsim("serve", *models[0], *cluster, *models[1]).stdout)
        self.assertEqual(both["chips"], 8)
        self.assertEqual([model["engine"] for model in both["models"]], ["vllm", "sglang"])
        self.assertEqual([model["replicas"] for model in both["models"]], [[0], [1, 2]])
        for model, arguments in zip(both["models"], models):
            alone = json.loads(stepsim("serve", *arguments, *cluster).stdout)
            for key in ("ttft_s", "end_to_end_s", "chips", "output_tokens_per_s_per_chip", "requests"):
                self.assertEqual(model[key], alone[key])
        self.expect_refused(["serve", *models[0], *cluster, *models[1], "--replicas", "3"], "replicas")
        self.expect_refused(["serve", *models[0], *cluster, *models[1], "--model", "llama3-8b",
                             "--requests", "burst:count=1,input=1,output=1"],
                            "has 8 chips, but all replicas have 9")
        self.expect_refused(["serve", *models[0], "--model", "llama3-8b", "--plan", "tp=0", "--engine",
                             "x"], "--cluster: must be given", "model 2: --engine",
                            "model 2: --requests: must be given")

    def test_blocks_come_back_from_the_host(self):
        served = ["serve", "--model", "llama3-8b", "--cluster", "dgx-h100-8", "--plan", "tp=2", "--requests",
                  "poisson:rate=20,count=200,input=600,output=10,prefix=512,prefixes=20", "--json", "-"]
        without, tier = (json.loads(stepsim(*served, "--engine", f"kv-blocks=200{keys}").stdout)
                         for keys in ("", ",host-memory=10GB"))
        self.assertEqual((without["host_hit_tokens"], without["host_blocks"]["total"]), (0, 0))
        # Blocks of 16 x 128 KiB on two chips together.
        self.assertEqual(tier["host_blocks"]["total"], int(10e9) // (16 * 131072))
        self.assertGreater(tier["host_hit_tokens"], 512 * 80)
        self.assertEqual(tier["host_blocks"]["read"] * 16, tier["host_hit_tokens"])
        self.assertGreater(tier["parts_s"]["transfer"], 0)
        self.assertLess(tier["ttft_s"]["mean"], without["ttft_s"]["mean"])
        timed = json.loads(stepsim(*served, "--engine", "kv-blocks=200,host-blocks=5000", "--host-transfer",
                                   "100ms").stdout)
        self.assertGreater(timed["parts_s"]["transfer"], tier["parts_s"]["transfer"])
        self.expect_refused([*served, "--engine", "host-memory=2TB"], "must be at most 500 GB")
        self.expect_refused([*served, "--engine", "host-memory=1B"], "must be at least a block")
        self.expect_refused([*served, "--host-transfer", "1ms"], "--host-transfer: must stand with")
        self.expect_refused([*RUN, "--engine", "host-memory=1GB"], "must stand with --model")
        self.expect_refused([*RUN, "--engine", "host-blocks=5,prefix-cache=false"],
                            "--engine host_blocks: must stand with prefix_cache=true")

    def test_a_release_has_the_defaults_of_its_chip(self):
        served = ["serve", "--model", "llama3-8b", "--plan", "tp=8", "--requests",
                  "burst:count=40,input=1000,output=2", "--json", "-", "--engine"]
        steps = {chip: json.loads(stepsim(*served, "vllm@0.11", "--cluster", chip).stdout)["steps"]
                 for chip in ("dgx-h100-8", "dgx-a100-8")}
        # 40,000 tokens in steps of 8,192 or 2,048, and the tokens behind.
        self.assertEqual(steps["dgx-h100-8"], 5 + 1)
        self.assertEqual(steps["dgx-a100-8"], 20 + 1)
        self.expect_refused([*RUN, "--engine", "vllm@0.11"], "--engine: must stand with --model and --cluster")
        self.expect_refused([*served, "vllm@7", "--cluster", "dgx-h100-8"], "no such release", "vllm@0.11")

    def test_every_problem_is_said_at_once(self):
        self.expect_refused(
            ["serve", "--requests", "poisson:rate=0,count=5,input=10,output=5", "--requests", "nothing",
             "--engine", "orca,watermark=0.1,sequences=0", "--step-time", "0", "--router", "best",
             "--slo", "ttft=fast", "--decode", "workers=2", "--replicas", "0"],
            "9 problems in the input",
            "--requests rate: must be at least 1e-06, is 0",
            '--requests: must be a kind and its keys',
            "--engine watermark: no such key of orca",
            "--engine sequences: must be at least 1, is 0",
            "--step-time: must be above 0",
            '--router: must be round-robin, least-tokens or prefix-aware, is "best"',
            "--slo ttft:",
            "--prefill: must be given too",
            "--replicas: must be a whole number, 1 to 4096")
        self.expect_refused(["serve"], "--requests: must be given", "--step-time: must be given")
        self.expect_refused(["serve", "--cases", "x", "--engine", "vllm"],
                            "--engine: must not stand with --cases")

    def test_requests_that_do_not_fit_are_refused_before_the_clock_starts(self):
        self.expect_refused([*RUN, "--engine", "kv-blocks=7"], "requests[",
                            "must need at most 7 (kv_blocks)")
        self.expect_refused([*RUN, "--engine", "max-length=110"], "must have at most 110 (max_length)")
        self.expect_refused([*RUN, "--engine", "budget=64,chunked-prefill=false"],
                            "requests: 180 more are too long")

    def test_requests_that_wait_for_ever_are_a_no(self):
        result = stepsim("serve", "--requests", "burst:count=2,input=5,output=10", "--step-time", "10ms",
                         "--engine", "budget=10,chunked-prefill=false,kv-blocks=2,block=10")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("the requests are never all answered", result.stderr)

    def test_a_million_requests_take_seconds(self):
        result = stepsim("serve", "--requests", "poisson:rate=100,count=1000000,input=1024,output=1",
                         "--step-time", "1ms", "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertLess(json.loads(result.stdout)["simulator"]["cpu_s"], 20)


SERVED = ["deepseek-r1-dgx-h200-8-1k1k", "deepseek-r1-dgx-h200-8-8k1k", "deepseek-r1-gb200-nvl72-1k1k",
          "gpt-oss-120b-b200-1k1k", "gpt-oss-120b-b200-2-8k1k", "llama3.1-405b-b200-4-offline",
          "llama3.1-405b-dgx-h100-8-offline"]
UNITS = {"ms": 1e-3, "s": 1.0, "": 1.0}
MIXED = "closed:concurrency=2,count=6,mix=1k1k,seed=4"


def published(text):
    """(metric, value, low, high) of each figure in the file of an experiment."""
    for block in re.findall(r"^published \{(.*?)^\}", text, re.M | re.S):
        fields = dict(re.findall(r"^  (\w+): (.*)$", block, re.M))
        metric = next(name for name in fields if name in ("tpot", "output_tokens_per_s_per_chip"))
        number, unit = re.fullmatch(r'"?([\d.]+)(\w*)"?', fields[metric]).groups()
        yield (metric, float(number) * UNITS[unit], float(fields.get("low", 0.9)),
               float(fields.get("high", 1.1)))


class ExperimentTest(StepsimTest):
    def result(self, *arguments):
        result = stepsim("serve", *arguments, "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_figures_of_served_experiments_are_within_their_range(self):
        for name in SERVED:
            served = self.result(name)
            figures = list(published(stepsim("catalog", "experiments", name).stdout))
            self.assertTrue(figures, name)
            for metric, value, low, high in figures:
                simulated = served["tpot_s"]["mean"] if metric == "tpot" else served[metric]
                self.assertTrue(low <= simulated / value <= high, (name, metric, simulated, value))

    def test_options_replace_what_the_experiment_says(self):
        few = self.result("gpt-oss-120b-b200-1k1k", "--requests", MIXED)
        self.assertEqual(few["requests"], 6)
        other = self.result("gpt-oss-120b-b200-1k1k", "--requests", MIXED, "--engine", "orca")
        self.assertNotEqual(few["ttft_s"], other["ttft_s"])
        kernels = self.result("gpt-oss-120b-b200-1k1k", "--requests", MIXED, "--software", "trtllm")
        self.assertNotEqual(few["tpot_s"], kernels["tpot_s"])

    def test_a_mix_stands_for_its_lengths(self):
        lengths = "input=uniform:819-1024,output=uniform:819-1024"
        times = ["--step-time", "10ms", "--requests"]
        mixed, plain = (self.result(*times, f"closed:concurrency=2,count=6,{keys},seed=4")
                        for keys in ("mix=1k1k", lengths))
        self.assertEqual(mixed["end_to_end_s"], plain["end_to_end_s"])
        for name in stepsim("catalog", "mixes").stdout.split():
            self.result(*times, f"burst:count=2,mix={name}")

    def test_what_cannot_be_served_is_refused(self):
        self.expect_refused(["serve", "--step-time", "1ms", "--requests", "burst:count=2,mix=1k2k"],
                            "--requests mix:", "1k2k")
        self.expect_refused(["serve", "llama3-8b-dgx-h100-8"],
                            "llama3-8b-dgx-h100-8: says nothing about how it is served")
        self.expect_refused(["serve", "gpt-oss-120b-b200-1k1k", "--software", "lmdeploy"],
                            "--software: must be vllm, sglang, trtllm or none, is \"lmdeploy\"")
        self.expect_refused(["serve", "gpt-oss-120b-b200-1k1k", "llama3-8b-dgx-h100-8"],
                            "llama3-8b-dgx-h100-8: is one word too many")
        self.expect_refused(["serve", "llama3-8b-dgx-h100-8", "--requests", "burst:count=2,mix=1k1k"],
                            "must have a plan of inference=decode")


if __name__ == "__main__":
    main()
