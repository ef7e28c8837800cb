#!/usr/bin/env python3
"""stepsim collective, as a person runs it: collective_test.py PATH-TO-STEPSIM."""
import csv
import json

from program import StepsimTest, main, stepsim


NCCL_LOG = """# nThread 1 nGpus 8 minBytes 524288 maxBytes 1048576 step: 2(factor) warmup iters: 5 iters: 20
# Using devices
#  Rank  0 Group  0 Pid  1 on host0 device  0 [0x00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid  1 on host0 device  1 [0x01] NVIDIA H100 80GB HBM3
#  Rank  2 Group  0 Pid  1 on host0 device  2 [0x02] NVIDIA H100 80GB HBM3
#  Rank  3 Group  0 Pid  1 on host0 device  3 [0x03] NVIDIA H100 80GB HBM3
#  Rank  4 Group  0 Pid  1 on host0 device  4 [0x04] NVIDIA H100 80GB HBM3
#  Rank  5 Group  0 Pid  1 on host0 device  5 [0x05] NVIDIA H100 80GB HBM3
#  Rank  6 Group  0 Pid  1 on host0 device  6 [0x06] NVIDIA H100 80GB HBM3
#  Rank  7 Group  0 Pid  1 on host0 device  7 [0x07] NVIDIA H100 80GB HBM3
#
# Collective test starting: all_reduce_perf
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
      524288        131072     float     sum      -1    29.00   18.08   31.64      0    29.10   18.02   31.53      0
     1048576        262144     float     sum      -1    33.10   31.68   55.44      0    33.20   31.58   55.27      0
# Out of bounds values : 0 OK
"""


class CollectiveTest(StepsimTest):
    def test_a_ring_takes_its_closed_form(self):
        result = stepsim("collective", "all_reduce", "--cluster", "dgx-h100-8", "--bytes", "1GiB",
                         "--algorithm", "ring", "--granularity", "stepped", "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        answer = json.loads(result.stdout)
        self.assertEqual(list(answer), [
            "op", "algorithm", "why", "ranks", "bytes", "time_s",
            "algorithm_bandwidth_bytes_per_s", "bus_bandwidth_bytes_per_s", "formula_s", "formula_is",
            "steps", "protocol", "channels", "compute_share", "memory_share", "hottest_links",
            "simulator"])
        self.assertEqual((answer["op"], answer["ranks"], answer["steps"]), ("all-reduce", 8, 14))
        self.assertAlmostEqual(answer["time_s"] / answer["formula_s"], 1, delta=1e-3)
        # nccl-tests: bytes / time, and that x 2 (n - 1) / n.
        self.assertAlmostEqual(answer["algorithm_bandwidth_bytes_per_s"] * answer["time_s"],
                               2**30, delta=2)
        self.assertAlmostEqual(answer["bus_bandwidth_bytes_per_s"]
                               / answer["algorithm_bandwidth_bytes_per_s"], 1.75, delta=1e-6)

    def test_every_operation_runs(self):
        for op in ("all-reduce", "all-gather", "reduce-scatter", "alltoall", "broadcast", "reduce",
                   "gather", "scatter", "send_receive", "permute"):
            for cluster in ("dgx-h100-16", "v5p-4x4x4"):
                result = stepsim("collective", op, "--cluster", cluster, "--bytes", "1MiB")
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn("bus bandwidth", result.stdout)
        result = stepsim("collective", "barrier", "--cluster", "dgx-h100-16")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("dissemination", result.stdout)

    def test_all_algorithms_are_a_table_of_sizes_and_algorithms(self):
        asked = ["collective", "all-reduce", "--cluster", "dgx-h100-8", "--sweep", "1MiB:4MiB"]
        table = self.folder / "t.csv"
        done = stepsim(*asked, "--algorithm", "all", "--csv", str(table))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("auto takes", done.stdout)
        rows = list(csv.DictReader(table.open()))
        names = list(dict.fromkeys(row["asked"] for row in rows))
        self.assertEqual(names[0], "auto")
        self.assertLess({"ring", "double-binary-tree", "nvls"}, set(names))
        self.assertEqual(len(rows), 3 * len(names))
        result = json.loads(stepsim(*asked, "--algorithm", "all", "--json", "-").stdout)
        self.assertEqual([column["asked"] for column in result["algorithms"]], names)
        # Each column is what the algorithm gives alone.
        alone = json.loads(stepsim(*asked, "--algorithm", "ring", "--json", "-").stdout)["sweep"]
        ring = [row for row in rows if row["asked"] == "ring"]
        self.assertEqual([float(row["time_s"]) for row in ring], [one["time_s"] for one in alone])
        self.assertEqual({row["algorithm"] for row in ring}, {"ring"})
        self.expect_refused(asked + ["--algorithm", "all", "--measured", "x.log"], "--measured: ")

    def test_a_sweep_is_a_table(self):
        result = stepsim("collective", "all-to-all", "--cluster", "dgx-h100-8", "--sweep",
                         "1KiB:8KiB")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.count(" direct "), 4)

    def test_measurements_stand_beside_a_sweep(self):
        log = self.write("all_reduce.log", NCCL_LOG)
        picture = self.folder / "plot.svg"
        arguments = ["collective", "all-reduce", "--cluster", "dgx-h100-8", "--sweep", "512KiB:2MiB", "--measured", log]
        result = stepsim(*arguments, "--plot", str(picture))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("measured", result.stdout)
        row = [line for line in result.stdout.splitlines() if line.strip().startswith("1.05 MB")][0]
        self.assertIn("33.1 us", row)
        self.assertRegex(row, r"[+-]\d+\.\d %")
        text = picture.read_text()
        self.assertIn(">measured<", text)
        self.assertIn(">nvls", text)  # what is chosen from the left edge on
        points = json.loads(stepsim(*arguments, "--json", "-").stdout)["sweep"]
        self.assertEqual([point.get("measured_s") for point in points], [2.9e-05, 3.31e-05, None])
        self.expect_refused(["collective", "all-gather", *arguments[2:]], "has no all-gather of 8 ranks; it has all_reduce of 8 ranks")
        self.expect_refused(["collective", "all-reduce", "--cluster", "dgx-h100-8", "--bytes", "1MiB", "--measured", log],
                            "--measured: needs --sweep FROM:TO")
        self.expect_refused([*arguments[:-1], str(self.folder)], "--measured")

    def test_a_group_of_one_costs_nothing(self):
        result = stepsim("collective", "all-gather", "--cluster", "dgx-h100-8", "--bytes", "8",
                         "--ranks", "3", "--json", "-")
        self.assertEqual(json.loads(result.stdout)["time_s"], 0)

    def test_everything_wrong_is_said_at_once(self):
        self.expect_refused(
            ["collective", "alreduce", "--cluster", "dgx-h100-16", "--bytes", "-3", "--ranks",
             "0,0,99", "--algorithm", "rng"],
            "OP: must be one of", "did you mean all-reduce?", "did you mean ring?",
            "--bytes: must be a size", "names rank 0 twice", "0 to 15; has 99")
        self.expect_refused(["collective", "broadcast", "--cluster", "dgx-h100-8", "--bytes", "0"],
                            "--bytes: must be a size", "more than 0")
        self.expect_refused(["collective", "all-to-all"], "--bytes: must be given",
                            "--cluster: must be given")

    def test_an_algorithm_that_cannot_run_says_why_and_names_those_that_can(self):
        self.expect_refused(
            ["collective", "all-to-all", "--cluster", "dgx-h100-8", "--bytes", "1MiB",
             "--algorithm", "torus"],
            "--algorithm: torus needs a group that fills a box of torus axes",
            "there are: direct, pairwise")
        self.expect_refused(
            ["collective", "all-reduce", "--cluster", "dgx-h100-16", "--bytes", "1MiB",
             "--algorithm", "nvls"],
            "--algorithm: nvls needs all members on one switch", "in different nodes",
            "there are: ring, ")

    def answer(self, *arguments):
        result = stepsim("collective", *arguments, "--library", "ideal", "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_a_ragged_all_to_all_by_a_matrix(self):
        # Rank 1 receives 2 GB at 450 GB/s; nobody sends or receives more.
        path = self.write("bytes.json", '{"bytes": [[0, "1GB"], [5, 7]]}')
        answer = self.answer("all-to-all", "--cluster", "dgx-h100-8", "--ranks", "2-3",
                             "--matrix", path, "--algorithm", "direct")
        self.assertAlmostEqual(float(answer["time_s"]), 1 / 450, 6)
        self.assertEqual(answer["formula_s"], float(answer["time_s"]))
        self.assertEqual(answer["bytes"], 1000000007)
        wrong = self.write("wrong.json", '[[0, -1], [1, 2, 3]]')
        self.expect_refused(
            ["collective", "all-to-all", "--cluster", "dgx-h100-8", "--matrix", wrong,
             "--bytes", "1MiB"],
            "wrong.json: bytes[0][1]: must be", "wrong.json: bytes[1]: must be a list of 2 sizes",
            "--bytes: can't be given together with --matrix")

    def test_tokens_are_routed_to_experts(self):
        routing = "experts=64,top-k=4,tokens=4096,token-bytes=8KiB"
        times = [float(self.answer("all-to-all", "--cluster", "dgx-h100-16", "--routing",
                                   routing + more, "--algorithm", algorithm)["time_s"])
                 for more, algorithm in ((",copies=expert", "direct"),
                                         (",copies=node", "node-forwarding"))]
        self.assertLess(times[1], times[0])
        self.expect_refused(
            ["collective", "all-to-all", "--cluster", "dgx-h100-16", "--routing",
             "experts=30,top-k=x,tokens=1,copies=rack,topk=1"],
            "--routing top-k: must be a whole number", "--routing copies: must be expert, member",
            "--routing topk: must be one of", "did you mean top-k?",
            "--routing token-bytes: must be given")
        self.expect_refused(
            ["collective", "all-to-all", "--cluster", "dgx-h100-16", "--routing",
             "experts=30,top-k=40,tokens=1,token-bytes=1"],
            "--routing experts: must be a multiple of the 16 members, is 30",
            "--routing top-k: must be 1 to the 30 experts, is 40")

    def test_a_permutation(self):
        answer = self.answer("permute", "--cluster", "dgx-h100-8", "--ranks", "0-3", "--targets",
                             "2,3,0,1", "--bytes", "450MB")
        self.assertAlmostEqual(float(answer["time_s"]), 1e-3, 5)
        self.expect_refused(["collective", "permute", "--cluster", "dgx-h100-8", "--ranks", "0-3",
                             "--targets", "2,2,9", "--bytes", "1MiB"],
                            "--targets: names rank 2 twice", "has 9",
                            "--targets: must name where each of the 4 ranks sends")

    def test_an_algorithm_of_ones_own_is_proven_before_it_runs(self):
        steps = """op: "all-gather" members: 3
            step { round: 0 from: 0 to: 1 block: 0 }  step { round: 0 from: 1 to: 2 block: 1 }
            step { round: 0 from: 2 to: 0 block: 2 }  step { round: 1 from: 0 to: 1 block: 2 }
            step { round: 1 from: 1 to: 2 block: 0 }  step { round: 1 from: 2 to: 0 block: 1 }"""
        run = ["collective", "all-gather", "--cluster", "dgx-h100-8", "--ranks", "0-2", "--bytes",
               "1350MB", "--algorithm"]
        answer = self.answer(*run[1:], self.write("ring.textproto", steps), "--granularity",
                             "stepped")
        self.assertAlmostEqual(float(answer["time_s"]), 2 / 3 * 3e-3, 5)
        self.assertEqual((answer["algorithm"], answer["steps"]), ("custom", 2))
        wrong = steps.replace("from: 2 to: 0 block: 2", "from: 2 to: 1 block: 2")
        self.expect_refused(
            run + [self.write("wrong.textproto", wrong)],
            "wrong.textproto: step: must do what all-gather promises, but member 0 in round 1 of "
            "lane 0 sends block 2, which it does not have")
        self.expect_refused(
            run + [self.write("bad.json", '{"op": "all-gater", "members": 3, "step": ['
                              '{"from": 0, "to": 0, "block": [9]}, {"to": 5}]}')],
            "op: must be one of", "did you mean all-gather?", "step[1].from: must be given")
        four = ["0-3" if word == "0-2" else word for word in run]
        self.expect_refused(four + [self.write("three.textproto", steps)],
                            "is for 3 ranks, there are 4")


if __name__ == "__main__":
    main()
