#!/usr/bin/env python3
"""stepsim schedule, as a person runs it: schedule_test.py PATH-TO-STEPSIM."""
import json
import re

from program import StepsimTest, main, stepsim


class ScheduleTest(StepsimTest):
    def test_a_plot_has_every_op_and_what_a_rank_holds(self):
        plot, result = self.folder / "p.svg", self.folder / "r.json"
        for name, ops in (("1f1b", 4 * 2 * 8), ("zbv_auto", 4 * 2 * 3 * 8)):
            done = stepsim("schedule", name, "--stages", "4", "--microbatches", "8", "--plot", str(plot), "--json",
                           str(result))
            self.assertEqual(done.returncode, 0, done.stderr)
            text = plot.read_text()
            self.assertEqual(len(re.findall(r'fill="#(?:000000|ffffff)">[0-9/]+</text>', text)), ops, "an op has no number")
            most = max(json.loads(result.read_text())["peak_in_flight"])
            self.assertIn(f"held, up to {most}<", text)
        self.expect_refused(["schedule", "1f1b", "--stages", "4", "--microbatches", "8", "--plot", "p.json"],
                            "--plot: must end in .svg")

    def answer(self, *arguments):
        result = stepsim("schedule", *arguments, "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_1f1b_takes_what_its_formula_says(self):
        # (M + P - 1)(f + b + w) = (8 + 3) 3 s, of which (P - 1) 3 s are bubble; P - r in flight.
        answer = self.answer("1f1b", "--stages", "4", "--microbatches", "8")
        self.assertEqual(list(answer), [
            "schedule", "stages", "microbatches", "chunks", "per_rank", "start_s", "makespan_s",
            "bubble_s", "bubble_fraction", "bubble_over_ideal", "span_bubble_s", "peak_in_flight",
            "formula"])
        self.assertEqual((answer["schedule"], answer["stages"], answer["microbatches"],
                          answer["chunks"]), ("1f1b", 4, 8, 1))
        self.assertEqual((answer["makespan_s"], answer["bubble_s"]), (33, 9))
        self.assertAlmostEqual(answer["bubble_fraction"], 9 / 33)
        self.assertAlmostEqual(answer["bubble_over_ideal"], 9 / 24)
        self.assertEqual(answer["peak_in_flight"], [4, 3, 2, 1])
        self.assertEqual(answer["formula"]["bubble_s"], 9)
        self.assertIs(answer["formula"]["holds"], True)
        # The last rank turns each micro-batch round at once: 3 s each, from 3 s on.
        self.assertEqual(answer["per_rank"][3][:4], ["F0.0", "BW0.0", "F1.0", "BW1.0"])
        self.assertEqual(answer["start_s"][3][:4], [3, 4, 6, 7])

    def test_zb_h1_has_a_third_of_the_bubble(self):
        # (P - 1)(f + b - w) with f = 3, b = 4, w = 2 ms: 15 ms after 8 x 9 ms of work.
        times = ["--forward-time", "3ms", "--backward-input-time", "4ms",
                 "--backward-weight-time", "0.002"]
        result = stepsim("schedule", "zb_h1", "--stages", "4", "--microbatches", "8", *times,
                         "--json", "-")
        self.assertIn('"makespan_s": 0.087000000000,', result.stdout)
        self.assertIn('"bubble_s": 0.015000000000,', result.stdout)
        self.assertEqual(json.loads(result.stdout)["peak_in_flight"], [4, 4, 4, 4])
        equal = self.answer("zb_h1", "--stages", "4", "--microbatches", "8")
        self.assertEqual(equal["bubble_s"], 3)

    def test_a_formula_that_does_not_hold_says_why(self):
        result = stepsim("schedule", "1f1b", "--stages", "4", "--microbatches", "8",
                         "--send-time", "100ms")
        self.assertIn("does not hold: because\n    sends must be free", result.stdout)
        self.assertLessEqual(max(len(line) for line in result.stdout.splitlines()), 100)
        sent = self.answer("1f1b", "--stages", "4", "--microbatches", "8", "--send-time", "100ms")
        self.assertIs(sent["formula"]["holds"], False)
        self.assertIn("sends must be free", sent["formula"]["because"][0])

    def test_a_trace_has_every_op_where_the_json_says(self):
        path = self.folder / "zbv.json"
        answer = self.answer("zbv_hand", "--stages", "3", "--microbatches", "6", "--send-time",
                             "250ms", "--trace", str(path))
        slices = [event for event in json.loads(path.read_text())["traceEvents"]
                  if event["ph"] == "X" and event["cat"] == "other compute"]
        expected = sorted((start, op) for ops, starts in zip(answer["per_rank"], answer["start_s"])
                          for op, start in zip(ops, starts))
        self.assertEqual(sorted((event["ts"] / 1e6, event["name"]) for event in slices), expected)

    def test_the_order_is_drawn(self):
        # At four columns a second: rank 1 has F at 1 and 2 s, BW (2 s) at 3 and 5 s, rank 0 BW at 5
        # and 7 s.
        result = stepsim("schedule", "gpipe", "--stages", "2", "--microbatches", "2")
        self.assertIn("\n  rank 0  F0--F1--............BW0-----BW1-----\n", result.stdout)
        self.assertIn("\n  rank 1  ....F0--F1--BW0-----BW1-----........\n", result.stdout)

    def test_a_chart_that_is_too_wide_is_cut_into_panels_with_every_op(self):
        # 64 micro-batches of 3 s and 15 more to fill and drain: 237 s at a second a column, on lines
        # of 100. Every rank starts each op once.
        result = stepsim("schedule", "1f1b", "--stages", "16", "--microbatches", "64")
        rows = re.findall(r"^  rank +(\d+)  (\S+)$", result.stdout, re.M)
        self.assertEqual(len(rows), 3 * 16)
        for rank in range(16):
            line = "".join(row for number, row in rows if int(number) == rank)
            self.assertEqual(len(line), 237)
            self.assertEqual((line.count("F"), line.count("B")), (64, 64))
        self.assertIn("\n  a column is 1.00 s\n", result.stdout)
        self.assertLessEqual(max(len(line) for line in result.stdout.splitlines()), 100)

    def test_a_chart_that_no_panels_can_hold_says_what_a_column_shows(self):
        # 1,024 x 3 s on one rank: 36 s a column, of which 24 s are backward.
        result = stepsim("schedule", "1f1b", "--stages", "1", "--microbatches", "1024")
        self.assertRegex(result.stdout, r"\n  rank 0  [B-]+\n  a column is \S+ s and shows the op "
                                        r"that takes most of it\n")

    def test_every_schedule_is_listed(self):
        listed = re.findall(r"^  (\w+) +(?:1|2|any|even)  +\S.*$", stepsim("schedule").stdout, re.M)
        self.assertEqual(len(listed), 24)
        self.assertEqual((listed[0], listed[-1]), ("naive", "optimal"))
        for name in listed:
            self.assertRegex(stepsim("help", "schedule").stdout, rf"[ ,]{name}[,\n]")

    def test_a_trace_has_no_lane_twice(self):
        # Messages take no time here: their slices have no length, but hardly two begin together.
        path = self.folder / "dualpipe.json"
        self.answer("dualpipe", "--stages", "4", "--microbatches", "8", "--trace", str(path))
        lanes = [(event["pid"], event["args"]["name"])
                 for event in json.loads(path.read_text())["traceEvents"]
                 if event["name"] == "thread_name"]
        self.assertEqual(len(lanes), len(set(lanes)))
        self.assertLessEqual(len(lanes), 4 * 5 + 4)

    def test_a_fused_op_starts_once(self):
        answer = self.answer("dualpipe", "--stages", "4", "--microbatches", "8")
        self.assertTrue(any(op.startswith("FB") for op in answer["per_rank"][0]))
        self.assertEqual([len(ops) for ops in answer["per_rank"]],
                         [len(starts) for starts in answer["start_s"]])

    def test_comparing_gives_every_schedule_the_same_work(self):
        # 1F1B 3 x 3 s; interleaved with 2 chunks half of it; zbv's 24 s of work, (P - 1) f / 2 at
        # the start only.
        result = stepsim("schedule", "1f1b", "--stages", "4", "--microbatches", "8", "--compare",
                         "interleaved_1f1b,zbv_auto")
        # Sends: 2 (P - 1) M; 2 (2 P - 1) M; 4 (P - 1) M, as the turn is on one rank.
        self.assertRegex(result.stdout, r"\n\* 1f1b +1 +33.0 s +9.00 s +27.27% +37.50%.* 48 +1\n")
        self.assertRegex(result.stdout, r"\n  interleaved_1f1b +2 +28.5 s +4.50 s .* 112 +1\n")
        self.assertRegex(result.stdout, r"\n\* zbv_auto +2 +25.5 s +1.50 s .* 96 +1\n")
        self.assertLessEqual(max(len(line) for line in result.stdout.splitlines()), 100)
        rows = self.answer("1f1b", "--stages", "4", "--microbatches", "8", "--compare",
                           "dualpipe")["comparison"]
        # Two copies of half the ranks' parameters each; (P/2 - 1)(f + 2 b - w) = 2 s of bubble.
        self.assertEqual([(row["schedule"], row["bubble_s"], row["sends"], row["parameter_copies"],
                           row["on_pareto_front"]) for row in rows],
                         [("1f1b", 9, 48, 1, True), ("dualpipe", 2, 48, 2, True)])
        result = stepsim("schedule", "1f1b", "--stages", "3", "--microbatches", "7", "--compare",
                         "all")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("dualpipe left out: --stages must be even", result.stdout)

    def test_gradients_of_weights_may_need_less_memory(self):
        # Table 5 of arXiv 2401.10241, 6.2B on 8 ranks, ZB-2p: 0.0029 idle from first start to last
        # end. With 2 P micro-batches held in full until W it is 20 times as much.
        options = ["--stages", "8", "--microbatches", "24", "--forward-time", "29.718ms",
                   "--backward-input-time", "29.444ms", "--backward-weight-time", "19.927ms",
                   "--send-time", "0.527ms"]
        work = 24 * 0.079089
        rates = [answer["span_bubble_s"] / (work + answer["span_bubble_s"]) for answer in (
            self.answer("zb_auto_2p", *options, "--weight-memory", "0.432432"),
            self.answer("zb_auto_2p", *options))]
        self.assertAlmostEqual(rates[0], 0.0029, places=4)
        self.assertAlmostEqual(rates[1], 0.0607, places=4)
        self.expect_refused(["schedule", "zb_h2", *options, "--weight-memory", "0.5"],
                            "--weight-memory: must not be given for zb_h2")
        self.expect_refused(["schedule", "zb_auto_2p", *options, "--weight-memory", "nan"],
                            "--weight-memory: must be a number above 0")

    def test_the_optimum_is_searched_for_and_proven(self):
        times = ["--forward-time", "10ms", "--backward-input-time", "12ms",
                 "--backward-weight-time", "8ms"]
        optimal = self.answer("optimal", "--stages", "4", "--microbatches", "8", *times,
                              "--memory-limit", "8", "--compare", "zb_auto_2p,optimal")
        # The authors' heuristic leaves 12 ms.
        self.assertEqual((optimal["objective_s"], optimal["span_bubble_s"], optimal["proven"],
                          optimal["origin"]), (0.010, 0.010, True, "search"))
        self.assertLessEqual(max(optimal["peak_in_flight"]), 8)
        self.assertIsNone(optimal["formula"])
        self.assertEqual([(row["schedule"], row["span_bubble_s"]) for row in optimal["comparison"]],
                         [("optimal", 0.010), ("zb_auto_2p", 0.012)])
        result = stepsim("schedule", "1f1b", "--stages", "2", "--microbatches", "4", *times,
                         "--memory-limit", "2", "--compare", "optimal")
        # (P - 1)(f + b - w) = 14 ms instead of 1F1B's 30.
        self.assertRegex(result.stdout, r"\n\* optimal +1 +134 ms +14.0 ms ")
        # In two chunks as well, with the same memory: four halves. At least (P - 1) f / 2 before
        # the other rank begins.
        row = re.search(r"\n. optimal +2 +(\d+) ms", result.stdout)
        self.assertGreaterEqual(int(row.group(1)), 125)
        self.assertLess(int(row.group(1)), 134)
        result = stepsim("schedule", "optimal", "--stages", "2", "--microbatches", "4", *times)
        self.assertIn("proven: no order has less", result.stdout)
        self.expect_refused(["schedule", "optimal", "--stages", "2", "--microbatches", "4",
                             "--chunks", "2", "--memory-limit", "1", "--microbatch-group", "2"],
                            "--memory-limit: must be at least 2", "--microbatch-group")

    def test_stages_may_take_different_times(self):
        # The last of 2 stages takes twice as long: F 1 and 2, BW 2 and 4. By hand: rank 1 runs from
        # 1 to 13 without a pause, then BW1 on rank 0.
        times = ["--forward-time", "1,2", "--backward-input-time", "1,2",
                 "--backward-weight-time", "1,2"]
        answer = self.answer("gpipe", "--stages", "2", "--microbatches", "2", *times)
        self.assertEqual(answer["start_s"], [[0, 1, 9, 13], [1, 3, 5, 9]])
        self.assertEqual((answer["makespan_s"], answer["bubble_s"]), (15, 3))
        self.assertIs(answer["formula"]["holds"], False)
        self.assertIn("all stages must take the same times", answer["formula"]["because"][0])
        result = stepsim("schedule", "gpipe", "--stages", "2", "--microbatches", "2", *times,
                         "--trace", str(self.folder / "uneven.json"))
        self.assertIn("\n  rank 1  ....F0------F1------BW0-------------BW1-------------........\n",
                      result.stdout)
        self.assertIn("forward 1.00 s to 2.00 s", result.stdout)
        events = json.loads((self.folder / "uneven.json").read_text())["traceEvents"]
        self.assertEqual([event["dur"] for event in events
                          if event["ph"] == "X" and event["name"] == "BW0.0"], [2e6, 4e6])
        # The same model in halves, the slow ones on both ranks then: 2 x (3 + 6) s each.
        rows = self.answer("gpipe", "--stages", "2", "--microbatches", "2", *times, "--compare",
                           "breadth_first,chimera")["comparison"]
        self.assertEqual([(row["schedule"], row["makespan_s"] - row["bubble_s"]) for row in rows],
                         [("gpipe", 12), ("breadth_first", 9), ("chimera", 9)])
        # All alike are one.
        self.assertEqual(self.answer("zb_h1", "--stages", "2", "--microbatches", "4",
                                     "--forward-time", "1s,1s")["formula"]["holds"], True)
        optimal = self.answer("optimal", "--stages", "2", "--microbatches", "4", *times)
        self.assertIs(optimal["proven"], True)
        self.expect_refused(["schedule", "1f1b", "--stages", "2", "--microbatches", "2",
                             "--forward-time", "1,2,3", "--backward-input-time", "1,2"],
                            "--backward-input-time: must be one time, or 3 as --forward-time has")
        self.expect_refused(["schedule", "zbv_auto", "--stages", "2", "--microbatches", "2", *times],
                            "times by stage: must be one of each of the 4 global stages, are 2")
        self.expect_refused(["schedule", "1f1b", "--stages", "2", "--microbatches", "2",
                             "--forward-time", "1,,2"], '--forward-time: must be a time', 'is ""')

    def test_times_below_a_picosecond_and_beyond_all_are_refused(self):
        sizes = ["--stages", "2", "--microbatches", "2"]
        for text in ("0.3ps", "1e-13", "107 days", "1e30"):
            self.expect_refused(["schedule", "1f1b", *sizes, "--forward-time", text],
                                "at least 1 ps and at most 53 days", f'is "{text}"')
        self.expect_refused(["schedule", "1f1b", *sizes, "--send-time", "0.3ps"],
                            "0 or at least 1 ps")
        self.assertEqual(self.answer("1f1b", *sizes, "--forward-time", "1ps",
                                     "--send-time", "0")["start_s"][1][0], 1e-12)

    def test_options_that_nothing_takes_are_refused(self):
        path = self.write("plain.schedule", "F0.0 BW0.0\nF0.0 BW0.0\n")
        self.expect_refused(["schedule", path, "--memory-limit", "3", "--fused-time", "3s"],
                            "--memory-limit: must not be given here", "--fused-time: must not be")
        sizes = ["--stages", "4", "--microbatches", "8"]
        self.expect_refused(["schedule", "1f1b", *sizes, "--compare", "gpipe", "--chunks", "2",
                             "--weight-memory", "0.5", "--microbatch-group", "4"],
                            "--chunks: must not be given here", "--weight-memory: must not be",
                            "--microbatch-group: must not be")
        result = stepsim("schedule", "optimal", *sizes, "--compare", "dualpipe", "--fused-time",
                         "2500ms")
        self.assertEqual(result.returncode, 0, result.stderr)
        same = str(self.folder / "one.json")
        self.expect_refused(["schedule", "1f1b", *sizes, "--json", same, "--trace", same],
                            "--json: must not be the file of --trace")

    def test_messages_may_go_in_batches(self):
        # The definition of DualPipe: 104 instead of 98.
        costs = ["--stages", "8", "--microbatches", "20", "--forward-time", "10",
                 "--backward-input-time", "12", "--backward-weight-time", "8", "--send-time", "1"]
        alone = self.answer("dualpipe", *costs)
        batched = self.answer("dualpipe", *costs, "--batch-p2p", "--compare", "1f1b,zbv_auto")
        self.assertEqual([alone["bubble_s"], batched["bubble_s"]], [98, 104])
        self.assertNotIn("batch_p2p", alone)
        self.assertTrue(batched["batch_p2p"])
        self.assertIn("go in batches", " ".join(batched["formula"]["because"]))
        free = [*costs[:-1], "0"]
        self.assertEqual(self.answer("dualpipe", *free, "--batch-p2p")["bubble_s"],
                         self.answer("dualpipe", *free)["bubble_s"])

    def test_a_file_is_a_schedule(self):
        path = self.write("own.schedule", "F0.0 F1.0 BW0.0 BW1.0\nF0.0 BW0.0 F1.0 BW1.0\n")
        answer = self.answer(path)
        # 1F1B by hand: 2 x 3 s of work and 3 s of bubble.
        self.assertEqual((answer["stages"], answer["makespan_s"]), (2, 9))
        self.assertIsNone(answer["formula"])
        # With the line ends of Windows, a byte order mark and blank lines it is the same.
        path = self.write("windows.schedule",
                          "\ufeffF0.0 F1.0 BW0.0 BW1.0  \r\n\r\nF0.0 BW0.0 F1.0 BW1.0\r\n")
        self.assertEqual(self.answer(path)["start_s"], answer["start_s"])
        path = self.write("large.schedule", "F99999999999.0 BW0.0\n")
        self.expect_refused(["schedule", path], "micro-batch below 1048576, chunk below 1024")
        path = self.write("bad.schedule", "F0.0 BW0.0 X\n")
        self.expect_refused(["schedule", path, "--chunks", "0"], 'line 1: "X" is no op',
                            "--chunks: must be a whole number")
        path = self.write("short.schedule", "F0.0 F1.0 BW0.0\n")
        self.expect_refused(["schedule", path], "rank 0: misses BW1.0")
        self.expect_refused(["schedule", str(self.folder)], "can't be read")

    def test_everything_wrong_is_said_at_once(self):
        self.expect_refused(
            ["schedule", "dualpipe", "--stages", "4", "--microbatches", "7", "--chunks", "3",
             "--forward-time", "nan", "--backward-input-time", "-1", "--backward-weight-time", "0",
             "--send-time", "-1us", "--memory-limit", "4"],
            "--forward-time: must be a time", "--backward-input-time: must be a time",
            'at least 1 ps and at most 53 days, is "0"', '--send-time: must be a time', "--chunks: must be 2",
            "nearest legal: 8", "--memory-limit: must not be given")
        self.expect_refused(["schedule", "zb_h11", "--compare", "1fb1"], "did you mean zb_h1?",
                            "--compare: \"1fb1\" is no schedule")
        self.expect_refused(["schedule", "1f1b"], "--stages: must be given",
                            "--microbatches: must be given")
        self.expect_refused(["schedule", "dualpipe", "--stages", "4", "--microbatches", "9",
                             "--compare", "naive"], "--microbatches: must be even",
                            "--compare naive: --microbatches must be 1")


if __name__ == "__main__":
    main()
