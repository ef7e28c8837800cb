#!/usr/bin/env python3
"""stepsim diff and import kineto, as a person runs them: diff_test.py PATH-TO-STEPSIM."""
import gzip
import json
import pathlib
from decimal import Decimal

from program import SMALL, StepsimTest, main, stepsim

CORPUS = pathlib.Path(__file__).resolve().parents[1] / "fuzz/corpus/kineto"


def training_trace(layers, forward_us=10, slow_backward_of=None, modules=True):
    """A step as PyTorch's profiler writes it: each layer launches two kernels forward and, from
    another thread, one backward."""
    events, now, number = [], 1000, 0

    def slice_of(category, name, thread, begin, end, **arguments):
        events.append({"ph": "X", "cat": category, "name": name, "pid": 7, "tid": thread,
                       "ts": begin, "dur": end - begin, "args": arguments})

    def kernel(thread, us):
        nonlocal now, number
        number += 1
        slice_of("cuda_runtime", "cudaLaunchKernel", thread, now, now + 1, correlation=number)
        events.append({"ph": "X", "cat": "kernel", "name": "gemm_kernel", "pid": 0, "tid": 7,
                       "ts": now + 2, "dur": us, "args": {"correlation": number, "stream": 7}})
        now += us + 5

    for layer in range(layers):
        begin = now
        for _ in range(2):
            start = now
            kernel(1, forward_us)
            slice_of("cpu_op", "aten::mm", 1, start - 1, start + 3,
                     **{"Sequence number": layer, "Fwd thread id": 0})
        if modules:
            # A norm is no layer, and an expert layer inside a layer is part of it.
            slice_of("python_function", f"nn.Module: LayerNorm_{9 + layer}", 1, begin - 1, begin + 4)
            slice_of("python_function", f"nn.Module: MoeLayer_{7 - layer}", 1, begin - 1, now - 1)
            slice_of("python_function", f"nn.Module: TransformerBlock_{layer}", 1, begin - 2, now)
        now += 3
    for layer in reversed(range(layers)):
        start = now
        kernel(2, 40 if layer == slow_backward_of else 20)
        slice_of("cpu_op", "autograd::engine::evaluate_function: MmBackward0", 2, start - 1, start + 3,
                 **{"Sequence number": layer, "Fwd thread id": 1})
    return json.dumps({"distributedInfo": {"rank": 0}, "traceEvents": events})


class DiffTest(StepsimTest):
    def diff(self, *arguments):
        run = stepsim("diff", *arguments, "--json", "-")
        self.assertEqual(run.returncode, 0, run.stderr)
        result = json.loads(run.stdout, parse_float=Decimal)
        self.assertEqual(sum(kind["difference_s"] for kind in result["by_kind"]),
                         result["step_s"][0] - result["step_s"][1])
        for side in range(2):
            self.assertEqual(sum(kind["time_s"][side] for kind in result["by_kind"]),
                             result["step_s"][side])
        return result

    def test_a_trace_against_itself_is_zero(self):
        for name in ["three_steps.json", "own.json", "list_of_host.json"]:
            trace = str(CORPUS / name)
            result = self.diff(trace, trace)
            self.assertEqual({kind["difference_s"] for kind in result["by_kind"]}, {0})
            self.assertEqual(result["unmatched"]["count"], [0, 0])
            self.assertEqual(result["score"], 1)

    def test_both_timelines_stand_in_one_trace(self):
        simulated = str(self.folder / "t.json")
        stepsim("run", SMALL, "--trace", simulated, "--trace-ranks", "0")
        both = self.folder / "both.json.gz"
        result = self.diff(simulated, str(CORPUS / "three_steps.json"), "--trace", str(both))
        trace = json.loads(gzip.decompress(both.read_bytes()), parse_float=Decimal)
        names = {event["pid"]: event["args"]["name"] for event in trace["traceEvents"]
                 if event["name"] == "process_name"}
        rank = result["ranks"][0]
        self.assertEqual(names, {1: f"rank {rank} simulated", 2: f"rank {rank} real"})
        for side, process in enumerate([1, 2]):
            slices = [event for event in trace["traceEvents"]
                      if event["ph"] == "X" and event["pid"] == process]
            self.assertGreater(len(slices), 0)
            # They begin within the step.
            self.assertLess(max(event["ts"] for event in slices),
                            result["step_s"][side] * 1000000)
        refused = stepsim("diff", simulated, simulated, "--trace", "x.json", "--json", "x.json")
        self.assertEqual(refused.returncode, 2)

    def test_a_simulated_step_is_a_side(self):
        trace = str(self.folder / "t.json")
        run = json.loads(stepsim("run", SMALL, "--trace", trace, "--trace-ranks", "0", "--json",
                                 "-").stdout, parse_float=Decimal)
        own = self.diff(trace, trace)
        # Traces have whole nanoseconds.
        self.assertLess(abs(own["step_s"][0] - run["step_time_s"]), Decimal("2e-9"))
        self.diff(trace, str(CORPUS / "three_steps.json"))

    def test_steps_compressed_files_and_folders(self):
        trace = self.folder / "t.json.gz"
        trace.write_bytes(gzip.compress((CORPUS / "three_steps.json").read_bytes()))
        result = self.diff(str(trace), str(CORPUS / "three_steps.json"), "--real-step", "0")
        self.assertEqual(result["step"], ["ProfilerStep#1", "ProfilerStep#0"])
        # The four ops of a step take a microsecond more than those of the step before.
        self.assertEqual(sum(kind["difference_s"] for kind in result["by_kind"]
                             if kind["kind"] not in ("idle", "waiting")), Decimal("4e-6"))
        self.diff(str(self.folder), str(trace))

    def test_the_report_is_for_people(self):
        trace = str(CORPUS / "three_steps.json")
        shown = stepsim("diff", trace, trace).stdout
        self.assertIn("4 ops match by name, 100.0 % of both", shown)
        self.assertIn("all-reduce (wait + transfer)", shown)

    def test_a_trace_is_imported_and_replayed(self):
        trace = str(CORPUS / "three_steps.json")
        run = stepsim("import", "kineto", trace, "--ranks", "2", "--cluster", "dgx-h100-8", "--json", "-")
        self.assertEqual(run.returncode, 0, run.stderr)
        result = json.loads(run.stdout)
        self.assertEqual(len(result["steps"]), 3)
        self.assertEqual(result["collectives"], [{"op": "all-reduce", "count": 1, "bytes": 4096.0}])
        self.assertGreater(result["replay"]["breakdown_s"]["exposed_communication"]["collectives"], 0)
        # One rank: the collective takes what it took.
        alone = stepsim("import", "kineto", trace, "--cluster", "dgx-h100-8")
        self.assertIn("note: 1 collectives whose size or ranks are not known", alone.stdout)
        # 38.25 us in the trace, less the 1.75 us between a kernel's end and the collective behind it.
        self.assertIn("36.5 us (36500 ns)", alone.stdout)

    def test_bad_input_is_refused(self):
        trace = str(CORPUS / "three_steps.json")
        self.expect_refused(["diff", trace], "SIMULATED REAL: must be two traces")
        self.expect_refused(["diff", trace, str(CORPUS / "bad_time.json")],
                            "is no JSON: ", "in event 1 at byte 17")
        self.expect_refused(["diff", trace, trace, "--real-step", "3"], "--real-step: must be below 3")
        self.expect_refused(["diff", trace, str(self.folder)], "is a folder without files")
        cut = self.write("cut.json", pathlib.Path(trace).read_text()[:-300])
        self.expect_refused(["diff", trace, cut], "cut.json: ends inside event 27, which begins at byte 4527, at byte ")
        broken = self.folder / "cut.json.gz"
        broken.write_bytes(gzip.compress(pathlib.Path(trace).read_bytes())[:-40])
        self.expect_refused(["diff", trace, str(broken)], "cut.json.gz: can't be read: ")
        self.expect_refused(["import", "kineto", trace, "--step", "9"], "--step: must be below 3")

    def test_ops_match_by_layer_and_direction(self):
        fast = self.write("fast.json", training_trace(4))
        slow = self.write("slow.json", training_trace(4, slow_backward_of=2))
        result = self.diff(fast, slow)
        self.assertTrue(result["matched_by_layer"])
        self.assertEqual(result["layers_told"], [1, 1])
        self.assertEqual([(op["rank"], op["layer"], op["direction"], op["difference_s"])
                          for op in result["ops"]], [(0, 2, "backward", Decimal("-0.00002"))])
        # A layer more: its three kernels have no match, and no other layer's are shifted.
        more = self.write("more.json", training_trace(5))
        result = self.diff(fast, more)
        self.assertEqual((result["matched"], result["unmatched"]["count"]), (12, [0, 3]))
        self.assertEqual({op["layer"] for op in result["unmatched"]["ops"]}, {4})
        self.assertEqual(sorted(op["direction"] for op in result["unmatched"]["ops"]),
                         ["backward", "forward", "forward"])
        shown = stepsim("diff", fast, slow).stdout
        self.assertIn("12 ops match by name and layer, 100.0 % of both", shown)
        self.assertRegex(shown, r"-20\.0 us  rank 0 +layer 2 +backward +matmul")

    def test_without_modules_no_layer_is_guessed(self):
        plain = self.write("plain.json", training_trace(4, modules=False))
        result = self.diff(plain, self.write("fast.json", training_trace(4)))
        self.assertFalse(result["matched_by_layer"])
        self.assertEqual(result["layers_told"], [0, 1])
        self.assertEqual(result["matched"], 12)

    def test_layers_of_a_simulated_step(self):
        traces = []
        for detail in ("kernel", "layer"):
            traces.append(str(self.folder / f"{detail}.json"))
            stepsim("run", SMALL, "--trace", traces[-1], "--trace-ranks", "0", "--trace-detail", detail)
        for trace in traces:
            result = self.diff(trace, trace)
            self.assertGreater(result["layers_told"][0], Decimal("0.9"))
            self.assertEqual((result["score"], result["matched_by_layer"]), (1, True))
        slower = str(self.folder / "slower.json")
        stepsim("run", SMALL, "--trace", slower, "--trace-ranks", "0", "--set",
                "cluster.chip.memory_bandwidth=2TB/s")
        rows = self.diff(slower, traces[0])["ops"]
        self.assertEqual({row["direction"] for row in rows} - {None}, {"forward", "backward"})


if __name__ == "__main__":
    main()
