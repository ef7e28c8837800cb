#!/usr/bin/env python3
"""`stepsim run --trace`, as its readers see it.

    python3 trace_test.py PATH-TO-STEPSIM
"""
import collections
import json
import sys
import unittest

import program
from program import SMALL, StepsimTest, stepsim

MIXTURE = "mixtral-8x7b-dgx-h100-64"


class TraceTest(StepsimTest):
    def trace(self, experiment, *options):
        """The trace and the result."""
        trace, result = self.folder / "t.json", self.folder / "r.json"
        done = stepsim("run", experiment, "--trace", str(trace), "--json", str(result), *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return trace.read_text(), json.loads(result.read_text())

    def sums(self, events):
        """Picoseconds by rank and part of the breakdown."""
        sums = collections.defaultdict(collections.Counter)
        for event in events:
            arguments = event.get("args", {})
            sums[event["pid"] - 1]["compute"] += arguments.get("compute_ps", 0)
            if "idle_ps" in arguments:
                sums[event["pid"] - 1][arguments["counts_as"]] += arguments["idle_ps"]
        return sums

    def parts(self, result):
        breakdown = result["breakdown_s"]
        parts = {"compute": breakdown["compute"], "bubble": breakdown["bubble"],
                 "idle": breakdown["idle"], "launch": breakdown.get("launch", 0)}
        for axis, time in breakdown["exposed_communication"].items():
            parts["exposed " + axis] = time
        return {part: round(seconds * 1e12) for part, seconds in parts.items()}

    def test_the_compute_lanes_of_all_ranks_add_up_to_the_breakdown(self):
        for experiment, ranks in ((SMALL, 8), ("llama3-70b-tp8-dgx-h100-512", 512)):
            options = ["--trace-ranks", f"0-{ranks - 1}", "--trace-detail", "pass"]
            if experiment == SMALL:
                options[-1] = "kernel"
            else:
                options[1] = "0,128,256,384"  # the four classes, of equal size
                ranks = 4
            text, result = self.trace(experiment, *options)
            sums = self.sums(json.loads(text)["traceEvents"])
            lanes = [sums[rank] for rank in sums if sum(sums[rank].values()) > 0]
            self.assertEqual(len(lanes), ranks)
            step = round(result["step_time_s"] * 1e12)
            for lane in lanes:
                self.assertEqual(sum(lane.values()), step)
            parts = self.parts(result)
            largest = max(parts, key=parts.get)
            for part, mean in parts.items():
                total = sum(lane[part] for lane in lanes)
                if part != largest:  # it takes what rounding down loses
                    self.assertEqual(total // ranks, mean, f"{experiment}: {part}")

    def test_the_trace_of_a_folded_run_is_that_of_all_ranks(self):
        """But for the critical path, which leads through one of all ranks that are alike."""
        def without_path(text):
            return text.replace(",critical\"", "\"").replace(",\"critical_path\":\"yes\"", "")

        for options in (["--trace-ranks", "0-7,40"], []):
            folded, whole = (without_path(self.trace(MIXTURE, "--fold", fold, *options)[0])
                             for fold in ("on", "off"))
            if folded != whole:
                pairs = zip(folded.splitlines(), whole.splitlines())
                different = next(pair for pair in pairs if pair[0] != pair[1])
                self.fail(f"{different[0]}\n{different[1]}")

    def test_passes_hold_layers_and_layers_hold_kernels(self):
        events = json.loads(self.trace(SMALL, "--trace-ranks", "0")[0])["traceEvents"]
        slices = [event for event in events if event["ph"] == "X" and event["tid"] == event["pid"]]
        names = {event["name"] for event in slices if event["cat"] == "pass"}
        self.assertLessEqual({"F 0", "B 0", "optimizer step"}, names)
        first = next(event for event in slices if event["name"] == "F 0")

        def inside(event):
            return first["ts"] <= event["ts"] and event["ts"] + event["dur"] <= (
                first["ts"] + first["dur"]) and event is not first

        names = [event["name"] for event in slices if inside(event)]
        self.assertIn("layer 0: block forward", names)
        for kernel in ("qkv_projection", "attention", "mlp_activation"):
            self.assertIn(kernel, names)

    def test_less_detail_is_fewer_slices(self):
        counts = []
        for detail in ("pass", "layer", "kernel"):
            events = json.loads(self.trace(SMALL, "--trace-detail", detail)[0])["traceEvents"]
            counts.append(sum(event["ph"] == "X" for event in events))
        self.assertLess(counts[0], counts[1])
        self.assertLess(counts[1], counts[2])

    def test_detail_needs_a_trace_and_a_known_word(self):
        self.expect_refused(["run", SMALL, "--trace-detail", "pass"],
                            "--trace-detail: needs --trace")
        self.expect_refused(["run", SMALL, "--trace", str(self.folder / "t.json"),
                             "--trace-detail", "kernels"],
                            "--trace-detail: must be pass, layer or kernel")


class KinetoTest(StepsimTest):
    """The rules by which Holistic Trace Analysis reads a trace."""

    def test_a_file_a_rank_with_kernels_launches_and_groups(self):
        done = stepsim("run", SMALL, "--trace", str(self.folder / "t.json"), "--trace-ranks", "0-1",
                       "--trace-format", "kineto")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.files(), ["t.rank0.json", "t.rank1.json"])
        for rank in (0, 1):
            trace = json.loads((self.folder / f"t.rank{rank}.json").read_text())
            info = trace["distributedInfo"]
            self.assertEqual((info["rank"], info["world_size"], info["backend"]), (rank, 8, "nccl"))
            groups = {group["pg_name"]: group for group in info["pg_config"]}
            self.assertEqual(len(groups), info["pg_count"])
            events = trace["traceEvents"]
            kernels = [event for event in events if event.get("cat") == "kernel"]
            launches = {event["args"]["correlation"]: event for event in events
                        if event.get("cat") == "cuda_runtime"}
            self.assertGreater(len(kernels), 100)
            steps = [event for event in events if event.get("cat") == "user_annotation"]
            self.assertEqual([step["name"] for step in steps], ["ProfilerStep#0"])
            busy = collections.defaultdict(list)
            for kernel in kernels:
                arguments = kernel["args"]
                launch = launches[arguments["correlation"]]
                self.assertLessEqual(launch["ts"] + launch["dur"], kernel["ts"])
                self.assertEqual(arguments["stream"], kernel["tid"])
                busy[kernel["tid"]].append((kernel["ts"], kernel["ts"] + kernel["dur"]))
                if kernel["name"].startswith("ncclDevKernel"):
                    group = groups[arguments["Process Group Name"]]
                    self.assertEqual(json.loads(arguments["Process Group Ranks"]), group["ranks"])
                    self.assertEqual(arguments["Group size"], group["pg_size"])
                    self.assertIn(rank, group["ranks"])
            for spans in busy.values():  # a stream does one thing at a time
                for before, after in zip(spans, spans[1:]):
                    self.assertLessEqual(before[1], after[0] + 1e-6)


if __name__ == "__main__":
    program.STEPSIM = sys.argv.pop(1)
    unittest.main()
