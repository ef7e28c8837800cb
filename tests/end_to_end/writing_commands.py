"""The smallest runs of all commands, with the files that they write: what outputs_test.py and
../faults/faults_test.py try in any bad circumstances.

Each command runs in a folder that has INPUTS. The last of its outputs is the last that is written.
"""
import functools
import json
import pathlib
import subprocess

CASE = {
    "format": "stepsim-oracle-flow/1", "name": "one",
    "links": [{"id": "ab", "from": "a", "to": "b", "capacity_Bps": 1e9, "latency_s": 1e-6}],
    "flows": [{"id": "1", "src": "a", "dst": "b", "route": ["ab"], "bytes": 4096, "start_s": 0,
               "after": []}],
}
TABLE = ("id,source,cluster,op,bytes,ranks,measured.time\n"
         "row,mine,dgx-h100-8,all_reduce,1048576,8,50us\n")
FAILURES = ('name: "mine" source: "made up" class { name: "node" rate: 20 per: "node" repair: "1h" } '
            'checkpoint { stall: "5s" } restart { scheduling: "60s" }')
SCHEDULER_CASE = {
    "id": 1,
    "engine": {"token_budget": 64, "max_sequences": 2, "block_tokens": 16, "reserve_whole_sequence": True,
               "watermark": 0, "chunked_prefill": True, "long_prefill_threshold": 0, "kv_blocks": 10},
    "speculation": {"drafts": 0, "accepted": 0},
    "step_time": {"base_us": 10, "per_token_us": 0, "per_kv_token_us": 0},
    "requests": [{"arrival_us": 0, "input_tokens": 16, "output_tokens": 2}],
    "expected": {"end_us": 20, "steps": 2, "peak_kv_blocks": 2,
                 "requests": [{"first_token_us": 10, "last_token_us": 20, "preemptions": 0,
                               "longest_gap_us": 10}]},
}
RESULT = {"step_time_s": 1.5, "breakdown_s": {"compute": 1, "exposed_communication": {"tp": 0.5}, "bubble": 0,
          "idle": 0}}
COMPARISON = {"runs": [{"name": "a", "source": "result", "step_time_s": 1.5}], "inputs": [], "lines": [],
              "explained": []}
TREE = ("num_ranks 2\nrank 0 {\nl1: send 8b to 1 tag 0\n}\n"
        "rank 1 {\nl1: recv 8b from 0 tag 0\n}\n")
PROFILE = {"traceEvents": [{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1, "dur": 5,
                            "args": {"stream": 7}}]}
INPUTS = {"case.json": json.dumps(CASE), "cases.jsonl": json.dumps(SCHEDULER_CASE), "table.csv": TABLE,
          "table.textproto": FAILURES,
          "result.json": json.dumps(RESULT), "comparison.json": json.dumps(COMPARISON), "tree.goal": TREE, "profile.json": json.dumps(PROFILE)}

RUN = ["run", "--model", "mlp-stack:D=1024,F=4096,layers=2", "--cluster", "dgx-h100-8", "--plan",
       "tp=8,global-batch=1,sequence=128"]
# What is asked for, and the outputs.
WRITING = {
    "run": ([*RUN, "--trace", "t.json", "--json", "r.json"], ["t.json", "r.json"]),
    "run gzip": ([*RUN, "--trace", "t.json.gz"], ["t.json.gz"]),
    "collective": (["collective", "all-reduce", "--cluster", "dgx-h100-8", "--sweep", "1KiB:4KiB",
                    "--plot", "p.svg", "--json", "r.json"], ["p.svg", "r.json"]),
    "network": (["network", "case.json", "--json", "r.json"], ["r.json"]),
    "schedule": (["schedule", "1f1b", "--stages", "2", "--microbatches", "4", "--trace", "t.json",
                  "--plot", "p.svg", "--json", "r.json"], ["t.json", "r.json", "p.svg"]),
    "run plot": ([*RUN, "--plot-timeline", "p.svg"], ["p.svg"]),
    "serve": (["serve", "--requests", "burst:count=3,input=20,output=4", "--step-time", "1ms", "--trace",
               "t.json", "--requests-out", "q.csv", "--json", "r.json"], ["t.json", "q.csv", "r.json"]),
    "serve-search": (["serve-search", "--model", "llama3-8b", "--cluster", "dgx-h100-8", "--layouts", "tp=8",
                      "--input", "64", "--output", "4", "--most-requests", "2", "--svg", "p.svg", "--json",
                      "r.json"], ["r.json", "p.svg"]),
    "goodput": (["goodput", "--step-time", "1s", "--chips", "16", "--failures", "table.textproto", "--days", "2",
                 "--runs", "5", "--plot", "p.svg", "--json", "r.json"], ["r.json", "p.svg"]),
    "serve cases": (["serve", "--cases", "cases.jsonl", "--json", "r.json"], ["r.json"]),
    "optimal": (["schedule", "optimal", "--stages", "3", "--microbatches", "3", "--memory-limit", "2",
                "--json", "r.json"], ["r.json"]),
    "topology": (["topology", "dgx-h100-8", "--dot", "p.dot", "--json", "r.json"],
                 ["p.dot", "r.json"]),
    "formula": (["formula", "E7", "--json", "r.json"], ["r.json"]),
    "validate": (["validate", "S3", "--json", "r.json"], ["r.json"]),
    "validate cases": (["validate", "--cases", "E7", "--json", "r.json"], ["r.json"]),
    "validate plot": (["validate", "S15", "--plot", "."], ["S15-tensor-parallel.svg"]),
    "figures": (["figures", "bubble", "--out", "."], ["bubble.svg"]),
    "accuracy": (["accuracy", "table.csv", "--json", "r.json"], ["r.json"]),
    "calibrate": (["calibrate", "table.csv", "--json", "r.json"], ["r.json"]),
    "search": (["search", *RUN[1:5], "--global-batch", "1", "--sequence", "128", "--within", "tp=4,8",
                "--csv", "t.csv", "--plot", "p.svg", "--experiment", "e.json", "--json", "r.json"],
               ["r.json", "t.csv", "p.svg", "e.json"]),
    "sweep": (["sweep", *RUN[1:], "--over", "plan.sequence=128,256", "--jobs", "1", "--csv", "t.csv", "--plot", "p.svg",
               "--json", "r.json"], ["r.json", "t.csv", "p.svg"]),
    "compare": (["compare", "result.json", "result.json", "--json", "r.json"], ["r.json"]),
    "sensitivity": ([*RUN, "--sensitivity", "--breakeven", "flops", "--plot-sensitivity", "p.svg", "--json",
                     "r.json"], ["r.json", "p.svg"]),
    "import": (["import", "goal", "tree.goal", "--cluster", "dgx-h100-8", "--to", "w.json", "--json",
                "r.json"], ["w.json", "r.json"]),
    "diff": (["diff", "profile.json", "profile.json", "--json", "r.json"], ["r.json"]),
    "catalog": (["catalog", "experiments", "--list", "--json", "r.json"], ["r.json"]),
}
# These need charts (pages/), which a build may not have: add_pages().
PAGES = {
    "run html": ([*RUN, "--html", "p.html", "--json", "r.json"], ["p.html", "r.json"]),
    "view": (["view", "comparison.json", "--html", "p.html"], ["p.html"]),
}
# These print only.
PRINTING = {
    "catalog entry": (["catalog", "models", "llama3-8b"], []),
    "help": (["help", "run"], []),
}


@functools.cache
def add_pages(stepsim):
    """Adds the commands that write pages to WRITING, if this stepsim can."""
    refusal = subprocess.run([stepsim, "run", "--html", "/no/such/p.html"], capture_output=True, text=True).stderr
    if "needs Apache ECharts" not in refusal:
        WRITING.update(PAGES)


def write_inputs(folder):
    for file, text in INPUTS.items():
        (pathlib.Path(folder) / file).write_text(text)
