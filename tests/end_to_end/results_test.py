#!/usr/bin/env python3
"""What --json writes is what `stepsim help results` declares, member by member: results_test.py PATH-TO-STEPSIM"""
import json
import pathlib
import re

from program import StepsimTest, main, stepsim

CASES = pathlib.Path(__file__).resolve().parents[1] / "reference/serving/scheduler_cases.jsonl"
TRANSPORT = CASES.parents[1] / "congestion/runs/htsim-eqds-incast-4-1MB.json.gz"
SMALL = "llama3-8b-dgx-h100-8"
PART = "llama3-8b"
FAULTY = ["--set", "cluster.faults.links[0].link=node0.gpu0>node0.nvswitch", "--set",
          "cluster.faults.links[0].capacity=0.5", "--set", "variation.straggler[0].rank=3", "--set",
          "variation.straggler[0].slowdown=1.2"]
NCCL_LOG = """# nccl-tests
#       size         count      type   redop    root     time   algbw   busbw #wrong
     1048576        262144     float     sum      -1    33.10   31.68   55.44      0
"""

# Commands that together write every member.
COMMANDS = {
    "run": [
        ["run", SMALL, "--explain", "--sensitivity", "--breakeven", "nvlink_bandwidth"],
        ["run", SMALL, "--fidelity", "all", "--yes"],
        ["run", SMALL, "--fidelity", "packet", "--packet-bytes", "1MB", "--transport", "go-back-n", "--yes"],
        ["run", "--model", PART, "--cluster", "dgx-h100-8", "--plan", "tp=4,allow_idle_chips=true", "--pass",
         "decode,batch=8,context=1024"],
        ["run", "mixtral-8x7b-dgx-h100-64", "--set", "model.experts.load=2,1,1,1,1,1,1,1"],
        ["run", "mixtral-8x7b-dgx-h100-64"],
        ["run", SMALL, *FAULTY],
        ["run", SMALL, "--software", "host_launch_cost=5us"],
        ["run", "--model", PART, "--cluster", "dgx-h100-64", "--plan",
         "tp=4,dp=16,global-batch=16,sequence=2048,offload_optimizer=true,zero=1"],
        ["run", "--model", "deepseek-v3", "--cluster", "dgx-h100-16", "--plan", "tp=1,dp=8,dtype=fp8", "--pass",
         "decode,batch=64,context=1024,ffn_chips=8"],
    ],
    "collective": [
        ["collective", "all-reduce", "--cluster", "dgx-h100-8", "--bytes", "1MiB"],
        *(["collective", "all-reduce", "--cluster", "dgx-h100-8", *size, "--fidelity", "packet", "--transport", "dcqcn"]
          for size in (["--bytes", "1MiB"], ["--sweep", "1MiB:2MiB"], ["--sweep", "1MiB:2MiB", "--algorithm", "all"])),
        ["collective", "all-reduce", "--cluster", "dgx-h100-8", "--sweep", "1MiB:4MiB", "--measured", "nccl.log"],
        ["collective", "all-reduce", "--cluster", "dgx-h100-8", "--bytes", "1MiB", "--algorithm", "all"],
    ],
    "schedule": [
        ["schedule", "1f1b", "--stages", "4", "--microbatches", "8", "--compare", "gpipe,zb_h1", "--batch-p2p"],
        ["schedule", "optimal", "--stages", "2", "--microbatches", "3"],
    ],
    "topology": [["topology", "dgx-h100-64"]],
    "formula": [["formula", "E1.comms"], ["formula", "A1", "work=1e12", "C=1e15"], ["formula"]],
    "validate": [["validate", "S3"], ["validate", "--cases", "E"]],
    "search": [
        ["search", "--model", "llama3-8b", "--cluster", "dgx-h100-8,dgx-a100-8", "--global-batch", "16", "--sequence",
         "2048", "--tokens", "1e10", "--why", "tp=8", "--refine", "quick"],
    ],
    "goodput": [
        ["goodput", "--model", "llama3-8b", "--cluster", "dgx-h100-32", "--plan",
         "tp=8,dp=4,global-batch=32,sequence=4096", "--failures", "llama3", "--tokens", "1e11", "--runs", "5",
         "--shrink", "1"],
    ],
    "serve": [
        ["serve", "--model", "llama3-8b", "--cluster", "dgx-h100-8", "--plan", "tp=1", "--requests",
         "poisson:rate=2,count=20,input=512,output=32"],
        ["serve", "--model", PART, "--cluster", "dgx-h100-8", "--plan", "tp=1", "--requests",
         "poisson:rate=5,count=9,input=9,output=9,tenant=a", "--requests", "poisson:rate=5,count=9,input=9,output=9,tenant=b"],
        ["serve", "--model", PART, "--cluster", "dgx-h100-8", "--plan", "tp=4", "--requests",
         "burst:count=8,input=100,output=20", "--model", PART, "--plan", "tp=2", "--requests",
         "poisson:rate=50,count=9,input=50,output=9"],
        ["serve", "--cases", str(CASES)],
    ],
    "serve-search": [
        ["serve-search", "--model", PART, "--cluster", "dgx-h100-8", "--input", "256", "--output", "16", "--layouts",
         "tp=8;tp=4", "--slo", "ttft=2s,tpot=50ms", "--chip-hour", "2"],
        ["serve-search", "--model", "llama3-70b", "--cluster", "dgx-h100-8", "--input", "256", "--output", "16",
         "--layouts", "tp=8;tp=1", "--slo", "ttft=1us,tpot=1us"],
    ],
    "network": [["network", str(TRANSPORT)]],
    "compare": [["compare", SMALL, "mixtral-8x7b-dgx-h100-64"],
                ["compare", SMALL, "faulty.json"]],
    "catalog": [["catalog", "experiments", "--most-chips", "8"]],
}


def declared(command):
    """The paths of each result of a command, and those that are free below."""
    paths, free = {}, set()
    text = stepsim("help", "results", command).stdout
    for part in re.split(r"(?m)^stepsim .* --json", text)[1:]:
        for line in part.splitlines():
            match = re.match(r"  (\S+?)(\[\]|\.NAME|\{\})?(  \[.*\])?$", line)
            if not match:
                continue
            paths.setdefault(match[1], False)
            if match[2] in (".NAME", "{}"):
                free.add(match[1])
    return paths, free


def members(value, path, free):
    """All paths of a result, down to those that are free."""
    if isinstance(value, dict):
        for name, member in value.items():
            below = f"{path}.{name}" if path else name
            yield below
            if below not in free:
                yield from members(member, below, free)
    elif isinstance(value, list):
        for element in value:
            if isinstance(element, dict):
                yield from members(element, path + "[]" if path else "", free)


class ResultsTest(StepsimTest):
    pass


def test_of(command):
    def test(self):
        paths, free = declared(command)
        self.assertTrue(paths)
        self.write("nccl.log", NCCL_LOG)
        self.write("faulty.json", stepsim("run", SMALL, *FAULTY, "--json", "-").stdout)
        for arguments in COMMANDS[command]:
            run = stepsim(*arguments, "--quiet", "--json", "-", cwd=self.folder)
            self.assertIn(run.returncode, (0, 1), run.stderr)
            for path in members(json.loads(run.stdout), "", free):
                self.assertIn(path, paths, arguments)
                paths[path] = True
        never = {path for path, is_seen in paths.items() if not is_seen}
        self.assertEqual(never, RARE.get(command, set()), "declared, but never written")

    return test


# Members that no command here brings; tests of those cases look at them.
RARE = {
    "catalog": {"experiments[].published[].attention_flops"},
    "collective": {"measured_s", "algorithms[].sweep[].measured_s"},  # with --sweep alone
    "serve": {"cases[].stuck"} | {f"{part}[].inter_token_s{member}" for part in ["tenants", "models"]
                                  for member in ["", ".mean", ".p50", ".p90", ".p99"]},
}

for name in COMMANDS:
    setattr(ResultsTest, f"test_{name}", test_of(name))

if __name__ == "__main__":
    main()
