#!/usr/bin/env python3
"""What words of old tables become: scripts/old_tables. tests/end_to_end/compat_test.py compares the predictions."""
import csv
import io
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))

import convert_tables  # noqa: E402
from old_tables.rows import Refused  # noqa: E402
from old_tables.served_runs import model_of  # noqa: E402

MODELS = {
    "llama-3.1-8b-instruct": "llama3.1-8b", "meta-llama/Llama-3.1-405B-Instruct-FP8": "llama3.1-405b",
    "LLaMA-2 70B": "llama2-70b", "llama-2-70b-chat-hf": "llama2-70b", "nvidia/DeepSeek-R1-0528-FP4": "deepseek-r1",
    "deepseek-r1-671b": "deepseek-r1", "DeepSeek-V3.1-Terminus": "deepseek-v3", "DeepSeek-V3.2-Exp": "deepseek-v3.2",
    "deepseek-r1-distill-llama-70b": "llama3.3-70b", "DeepSeek-R1-Distill-Qwen-32B": "qwen2.5-32b", "dsr1-fp8": "deepseek-r1",
    "openai/gpt-oss-120b": "gpt-oss-120b", "gptoss-20b": "gpt-oss-20b", "Qwen3-235B-A22B-Instruct-2507-FP8": "qwen3-235b-a22b",
    "qwen3-coder-480b-a35b": "qwen3-coder-480b-a35b", "zai-org/GLM-4.6-FP8": "glm-4.5", "MiniMax-M2": "minimax-m2.5",
    "moonshotai/Kimi-K2-Thinking": "kimi-k2", "Mixtral-8x7B-Instruct-v0.1": "mixtral-8x7b",
    "Llama-4-Maverick-17B-128E-Instruct-FP8": "llama4-maverick", "nemotron-3-nano-30b-a3b": "nemotron3-nano-30b-a3b",
    "bloom-176b": "bloom-176b", "facebook/opt-66b": "opt-66b"}
# A word that is left may make it another model: "distill", "vl", "mini", "air" of one that the catalog has not.
NO_MODELS = ["", "-", "/", "llama", "llama-3", "my-llama-3.1-8b", "deepseek-r1-distill-qwen-1.5b", "deepseek-r1-mini",
             "qwen3-vl-235b-a22b", "gpt-oss-120b-eagle", "falcon-180b", "mixtral", "8b-instruct"]

SERVED = "id,model,chip,chips,mode,framework,precision,tp,pp,ep,attention_dp,isl,osl,load,concurrency,spec_decode,tpot_mean_s"
DISAGG = ("id,model,chip,chips,mode,framework,precision,prefill_workers,prefill_chips,prefill_tp,prefill_dp,prefill_ep,"
          "decode_workers,decode_chips,decode_tp,decode_dp,decode_ep,isl,osl,load,concurrency,tpot_mean_s")
DEEPEP = "chip,table,op,kernel,num_gpus,nodes,message_elements,latency_ms,tokens,hidden,topk,experts,dispatch_us,combine_us"


class ConvertTablesTest(unittest.TestCase):
    def converted(self, header, *rows):
        """Returns the new rows and what was said of those that were left out."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "old.csv")
            path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
            out, said, sys.stderr = io.StringIO(), sys.stderr, io.StringIO()
            try:
                convert_tables.convert(str(path), None, out)
                reasons = sys.stderr.getvalue()
            finally:
                sys.stderr = said
        return list(csv.DictReader(io.StringIO(out.getvalue()))), reasons

    def one(self, header, row):
        rows, reasons = self.converted(header, row)
        self.assertEqual(reasons, "")
        return rows[0]

    def test_models_by_their_names(self):
        for name, model in MODELS.items():
            self.assertEqual(model_of(name), model, name)
        for name in NO_MODELS:
            with self.assertRaises(Refused, msg=name):
                model_of(name)

    def test_tables_of_no_kind_are_refused(self):
        with self.assertRaises(Refused):
            self.converted("a,b", "1,2")

    def test_kernels(self):
        header = "hardware,op,dtype,m,n,k,time_us,source"
        row = self.one(header, "A100,gemm,int8_wo,1,8192,4096,50.5,mine")
        self.assertEqual((row["chip"], row["dtype"], row["shape"], row["measured.time"]),
                         ("a100-sxm-80gb", "bf16", "m=1,n=8192,k=4096,weight_dtype=int8", "50.5us"))
        self.assertEqual(self.one(header, "H100,gemm:dense,fp8 e4m3,1,2,3,5,mine")["shape"], "m=1,n=2,k=3,inputs=rounded")
        self.assertEqual(self.one(header, "H100,gemm,fp8,1,2,3,5,mine")["shape"], "m=1,n=2,k=3")
        rows, reasons = self.converted(header, "H100,gemm:grouped,fp8,1,2,3,5,m", "H100,softmax,fp8,1,2,3,5,m",
                                       "abacus,gemm,fp8,1,2,3,5,m", "H100,gemm,int2_wo,1,2,3,5,m", "H100,gemm,fp8,1,2,3,,m")
        self.assertEqual(rows, [])
        for word in ("grouped", '"softmax" is not known', '"abacus"', "int2_wo", "no time was measured"):
            self.assertIn(word, reasons)

    def test_collectives(self):
        header = "hardware,nodes,ranks,op,bytes,time_us,dtype,algo"
        row = self.one(header, "H100,2,16,alltoall,1048576,30,half,NVLS")
        self.assertEqual((row["cluster"], row["op"], row["nodes"], row["dtype"]), ("dgx-h100-16", "all_to_all", "2", "fp16"))
        self.assertEqual(self.one(header, "H100,1,8,all-reduce,1MiB,30,half,NVLS off (Ring)")["algorithm"], "ring")
        _, reasons = self.converted(header, "H100,1,16,all_reduce,1,30,half,", "H100,1,8,all_reduce,1,30,half,Star")
        self.assertIn("more ranks a node than dgx-h100 has chips", reasons)
        self.assertIn('algorithm "Star" is not known', reasons)

    def test_six_rows_of_normal_kernels_are_of_4_to_24_units(self):
        shape = "h100,wideep_deepep_normal,normal,deepep,,1,,,4096,7168,8,256,500,900"
        rows, reasons = self.converted(DEEPEP, *[shape] * 6)
        self.assertEqual(reasons, "")
        self.assertEqual([row["op"] for row in rows], ["bulk_dispatch", "bulk_combine"] * 6)
        self.assertEqual([int(row["shape"].rpartition("=")[2]) for row in rows[::2]], [4, 8, 12, 16, 20, 24])
        self.assertEqual(self.one(DEEPEP, shape)["assumed"], "units: 20")
        self.assertIn("a number of units (sms) that is not given", self.converted(DEEPEP, *[shape] * 2)[1])
        low = self.one(DEEPEP, "h100,wideep_deepep_ll,ll,deepep,,1,,,64,7168,8,256,20,30")
        self.assertEqual((low["op"], low["library"], low["ranks"]), ("dispatch", "sglang-0.5-hopper", "8"))

    def test_served_runs(self):
        row = self.one(SERVED, "a,llama-3.1-8b,h100 (350 W cap),4,agg,trt,fp8,2,1,1,1,7000,8,closed,2,mtp,0.01")
        self.assertEqual(row["engine"], "trtllm,prefix-cache=false,drafter=mtp,drafts=1,acceptance=0.85,budget=9048")
        self.assertEqual((row["cluster"], row["software"], row["replicas"], row["cluster.chip.power.limit_watts"]),
                         ("dgx-h100-8", "trtllm", "2", "350"))
        self.assertEqual((row["plan.dtype"], row["plan.weight_dtype"], row["pass.cache_dtype"]), ("fp8", "fp8", "fp8"))
        self.assertEqual(row["requests"], "closed:concurrency=2,count=20,input=7000,output=8,seed=1")
        self.assertIn("num_requests: 10 x concurrency", row["assumed"])
        static = self.one(SERVED.replace("concurrency", "batch"),
                          "a,llama-2-70b,a100,8,static,vllm,fp16,8,1,1,1,512,64,one batch,4,,0.05")
        self.assertEqual((static["engine"], static["requests"]),
                         ("static,sequences=4,block=16,budget=2048", "burst:count=4,input=512,output=64,seed=1"))

    def test_workers_apart(self):
        row = self.one(DISAGG, "a,deepseek-r1,gb200,72,disagg,dynamo-trt,fp4,6,24,4,1,4,1,48,1,48,48,1024,64,closed,8,0.01")
        self.assertEqual(row["prefill"], "workers=6,tp=4,pp=1,dp=1,ep=4,etp=1")
        self.assertEqual(row["decode"], "workers=1,tp=1,pp=1,dp=48,ep=48")
        self.assertEqual((row["decode.model.experts.routed"], row["plan.dtype"], row["pass.expert_dtype"]),
                         ("288", "bf16", "nvfp4"))
        self.assertIn("experts: 288, with copies", row["assumed"])

    def test_served_runs_that_are_left_out(self):
        rows = ["b,no-such-model,h100,1,agg,vllm,bf16,1,1,,,64,8,closed,2,,0.01", "c,llama-3.1-8b,abacus,1,agg,vllm,bf16,1,1,,,64,8,closed,2,,0.01",
                "d,llama-3.1-8b,h100,1,agg,unheard-of,bf16,1,1,,,64,8,closed,2,,0.01", "e,llama-3.1-8b,h100,1,agg,vllm,bf16,1,1,,,64,8,closed,,,0.01",
                "h,llama-3.1-8b,h100,1,agg,vllm,bf16,1,1,,,64,8,closed,2,,", "i,llama-3.1-8b,h100,1,agg,vllm,bf16,2,1,,,64,8,closed,2,,0.01"]
        kept, reasons = self.converted(SERVED, *rows)
        self.assertEqual(kept, [])
        for reason in ('model "no-such-model" is not in the catalog', '"abacus"', 'framework "unheard-of" is unknown',
                       "concurrency is not given", "none of its figures is predicted", "2 ranks on 1 chips"):
            self.assertIn(reason, reasons)


if __name__ == "__main__":
    unittest.main()
