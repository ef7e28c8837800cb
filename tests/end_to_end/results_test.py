#!/usr/bin/env python3
"""What --json writes is what `stepsim help results` declares, member by member: results_test.py PATH-TO-STEPSIM"""
import json
import re

from program import StepsimTest, main, stepsim

SMALL = "llama3-8b-dgx-h100-8"
FAULTY = ["--set", "cluster.faults[0].link=node0.gpu0>node0.nvswitch", "--set", "cluster.faults[0].capacity=0.5"]
# Commands that together write every member.
COMMANDS = {
    "run": [
        ["run", SMALL, "--explain", "--sensitivity", "--breakeven", "nvlink_bandwidth"],
        ["run", SMALL, "--fidelity", "all", "--yes"],
        ["run", "--model", "llama3-8b", "--cluster", "dgx-h100-8", "--plan", "tp=4", "--pass",
         "decode,batch=8,context=1024"],
        ["run", "--model", "mixtral-8x7b", "--cluster", "dgx-h100-8", "--plan",
         "dp=8,ep=8,global-batch=8,sequence=1024,microbatch=1,expert-load=zipf:1,capacity-factor=1"],
    ],
    "collective": [
        ["collective", "all-reduce", "--cluster", "dgx-h100-8", "--bytes", "1MiB"],
        ["collective", "all-reduce", "--cluster", "dgx-h100-8", "--sweep", "1MiB:4MiB"],
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
    ],
    "compare": [["compare", SMALL, "llama3-70b-dgx-h100-64"]],
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
        for arguments in COMMANDS[command]:
            run = stepsim(*arguments, "--quiet", "--json", "-")
            self.assertIn(run.returncode, (0, 1), run.stderr)
            for path in members(json.loads(run.stdout), "", free):
                self.assertIn(path, paths, arguments)
                paths[path] = True
        never = [path for path, is_seen in paths.items() if not is_seen]
        self.assertEqual(never, sorted(RARE.get(command, [])) and
                         [path for path in paths if path in RARE[command]] or [], "declared, but never written")

    return test


# Members that only rare inputs bring; tests of those inputs look at them.
RARE = {}

for name in COMMANDS:
    setattr(ResultsTest, f"test_{name}", test_of(name))

if __name__ == "__main__":
    main()
