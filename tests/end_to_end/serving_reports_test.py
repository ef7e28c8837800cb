#!/usr/bin/env python3
"""What people who serve reported, run as they would: serving_reports_test.py PATH-TO-STEPSIM."""
import csv
import json
import pathlib

from program import StepsimTest, main, stepsim

CASES = pathlib.Path(__file__).resolve().parent.parent / "reference" / "reports"


def serve(model, cluster, plan, requests, *more):
    result = stepsim("serve", "--model", model, "--cluster", cluster, "--plan", plan, "--requests", requests,
                     "--json", "-", *more)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


class ServingReportsTest(StepsimTest):
    # The tokens of its cache that an engine logs when it starts.
    def test_capacities_are_those_of_logs(self):
        with open(CASES / "serving_capacity.csv", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            engine = row["engine"] + ("," + row["keys"] if row["keys"] else "")
            more = ["--engine", engine] + (["--pass", row["pass"]] if row["pass"] else [])
            answer = serve(row["model"], row["cluster"], row["plan"], "burst:count=1,input=100,output=5", *more)
            block = 1 if row["engine"].startswith("sglang") else 16
            tokens = answer["kv_blocks"]["total"] * block
            self.assertAlmostEqual(tokens / float(row["tokens"]), 1, delta=float(row["tolerance"]), msg=str(row))

    # gemma3-27b keeps 1,024 tokens in five of six layers: a prompt of 130,000 fits one H100.
    def test_windows_keep_their_tokens(self):
        answer = serve("gemma3-27b", "dgx-h100-8", "tp=1", "burst:count=1,input=130000,output=500")
        self.assertEqual(answer["requests"], 1)

    # 151 MB of states a request: 187 GB of caches of 1,000 requests don't fit one H200 (run --pass says so).
    def test_states_are_in_the_memory(self):
        answer = serve("qwen3.5-27b", "dgx-h200-8", "tp=1", "burst:count=1000,input=100,output=400",
                       "--engine", "vllm")
        self.assertLess(max(answer["load"]["running"]), 600)

    # SGLang's cookbook, qwen3.6-benchmarks.jsx, H200, 8192/1024, 1,024 at once: 39.3 ms and 702 tokens/s,
    # 27.9 ms and 3,355. What its pool of states lets run decides.
    def test_a_pool_of_states_caps_what_runs(self):
        for model, more, tpot, rate in (("qwen3.5-27b", "", 39.3e-3, 702),
                                        ("qwen3.5-35b-a3b", ",dtype=fp8_block", 27.9e-3, 3355)):
            answer = serve(model, "dgx-h200-8", "tp=1" + more,
                           "closed:concurrency=1024,count=2048,input=8192,output=1024",
                           "--engine", "sglang@0.5,kv-fraction=0.8")
            self.assertAlmostEqual(answer["tpot_s"]["mean"] / tpot, 1, delta=0.1)
            self.assertAlmostEqual(answer["output_tokens_per_s"] / rate, 1, delta=0.15)

    # Four steps of 8 x 4,096 tokens, whatever the engine.
    def test_a_prompt_is_one_ranks(self):
        times = [serve("llama3-8b", "dgx-h100-8", "dp=8", "burst:count=8,input=16384,output=1",
                       "--engine", engine)["duration_s"] for engine in ("sglang,chunk=4096", "vllm,budget=4096")]
        self.assertAlmostEqual(times[0] / times[1], 1, delta=0.02)
        self.assertLess(times[0], 0.65)

    # server_args.py: chunked_prefill_size // dp_size, 8,192 / 8.
    def test_sglangs_defaults_depend_on_the_layout(self):
        trace = self.folder / "trace.json"
        serve("deepseek-v3", "dgx-h200-8", "dp=8,ep=8", "burst:count=16,input=8192,output=2",
              "--engine", "sglang@0.5", "--trace", str(trace))
        names = {event["name"] for event in json.loads(trace.read_text())["traceEvents"] if "prefill" in
                 event.get("name", "")}
        self.assertIn("prefill 8 x 1024", names)

    # InferenceX#828: gpt-oss-120b on 8 H100 under vLLM, 3.72 ms at 4 requests, 7.36 at 64.
    def test_an_engine_brings_its_software(self):
        for requests, tpot in ((4, 3.72e-3), (64, 7.36e-3)):
            answer = serve("gpt-oss-120b", "dgx-h100-8", "tp=8",
                           f"closed:concurrency={requests},count={10 * requests},mix=1k1k",
                           "--engine", "vllm@2026")
            self.assertAlmostEqual(answer["tpot_s"]["mean"] / tpot, 1, delta=0.05)

    # InferenceX#870: DeepSeek-R1 on 8 H200, 17.2 ms at 16 requests. fp8 is what the checkpoint has.
    def test_fp8_is_the_checkpoints_own(self):
        times = [serve("deepseek-r1", "dgx-h200-8", "tp=8" + types, "closed:concurrency=16,count=32,input=1000,output=200",
                       "--engine", "sglang@0.5")["tpot_s"]["mean"]
                 for types in ("", ",dtype=fp8,weight_dtype=fp8", ",dtype=fp8_block,weight_dtype=fp8_block")]
        self.assertEqual(times[0], times[1])
        self.assertEqual(times[0], times[2])
        self.assertAlmostEqual(times[0] / 17.2e-3, 1, delta=0.2)

    # vLLM's --tensor-parallel-size 2 --data-parallel-size 4 --enable-expert-parallel: between the two ends.
    def test_attention_over_tp_in_groups_with_experts_over_all(self):
        def tpot(plan):
            return serve("deepseek-r1", "dgx-h200-8", plan, "closed:concurrency=8,count=16,input=1000,output=50",
                         "--engine", "sglang")["tpot_s"]["mean"]
        ends = tpot("tp=1,dp=8,ep=8"), tpot("tp=8,ep=8,etp=1")
        for plan in ("tp=2,dp=4,ep=8", "tp=4,dp=2,ep=8"):
            self.assertTrue(min(ends) <= tpot(plan) <= max(ends), plan)
        result = stepsim("serve", "--model", "deepseek-r1", "--cluster", "dgx-h200-8", "--plan", "tp=8,dp=8,ep=8",
                         "--engine", "sglang", "--requests", "burst:count=1,input=100,output=5")
        self.assertIn("is tp=1,dp=8", result.stderr)

    def test_published_traces_are_read(self):
        for file, requests, found in (("mooncake.jsonl", 3, 2048), ("azure.csv", 3, 0), ("burstgpt.csv", 3, 0),
                                      ("vidur.csv", 2, 0), ("bench.json", 2, 0)):
            answer = serve("llama3-8b", "dgx-h100-8", "tp=1", f"file:{CASES / 'serving-traces' / file}")
            self.assertEqual((answer["requests"], answer["prefix_hit_tokens"]), (requests, found), file)

    # 19.5 of 20 requests a second are answered, however many come: what the whole run says depends on count.
    def test_a_load_that_is_not_sustained_is_said_to_be_so(self):
        for rate, count, sustained in ((20, 1500, False), (20, 8000, False), (12, 1500, True)):
            steady = serve("llama3-8b", "dgx-h100-8", "tp=1", f"poisson:rate={rate},count={count},input=1024,output=256",
                           "--slo", "ttft=2s,tpot=50ms")["steady_state"]
            self.assertEqual(steady["sustained"], sustained, (rate, count))

    # 64 at a time on two chips: only those that come at once at the start miss the objective.
    def test_a_burst_at_the_start_decides_no_layout(self):
        result = stepsim("serve-search", "--model", "llama3-70b", "--cluster", "dgx-h100-8", "--input", "1024",
                         "--output", "256", "--slo", "ttft=2s,tpot=50ms", "--plan", "dtype=fp8", "--json", "-",
                         "--quiet")
        best = json.loads(result.stdout)["best"]
        self.assertEqual(best["plan"], "tp=2")
        self.assertGreater(best["output_tokens_per_s_per_chip"], 660)

    def test_objectives_that_nothing_meets_get_the_nearest(self):
        result = stepsim("serve-search", "--model", "llama3-8b", "--cluster", "dgx-h100-8", "--chips", "2", "--input", "1024",
                         "--output", "64", "--slo", "tpot=1ms", "--quiet")
        self.assertEqual(result.returncode, 1)
        self.assertIn("nearest: tp=2 with 1 at a time", result.stdout)

    def test_the_chips_for_a_rate(self):
        result = stepsim("serve-search", "--model", "llama3-8b", "--cluster", "dgx-h100-8", "--chips", "2", "--input", "1024",
                         "--output", "128", "--slo", "ttft=2s,tpot=50ms", "--rate", "80", "--json", "-", "--quiet")
        best = json.loads(result.stdout)["best"]
        self.assertGreaterEqual(best["replicas"] * best["rate"], 80)
        self.assertLess((best["replicas"] - 1) * best["rate"], 80)

    def test_borrowed_kernels_are_said(self):
        answer = serve("llama3-8b", "xgmi-mi300x-8", "tp=1", "burst:count=1,input=100,output=5")
        self.assertEqual(answer["kernels_of"], "h100-sxm")
        self.assertIsNone(serve("llama3-8b", "dgx-h100-8", "tp=1", "burst:count=1,input=100,output=5")["kernels_of"])


if __name__ == "__main__":
    main()
