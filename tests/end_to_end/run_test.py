#!/usr/bin/env python3
"""stepsim run, as a person runs it: run_test.py PATH-TO-STEPSIM."""
import json
import pathlib
import re

from program import SMALL, StepsimTest, main, stepsim


class RunTest(StepsimTest):
    def test_a_plot_of_the_timeline_has_every_pass(self):
        plot = self.folder / "p.svg"
        done = stepsim("run", SMALL, "--plan", "pp=2,dp=2,global-batch=16", "--plot-timeline", str(plot))
        self.assertEqual(done.returncode, 0, done.stderr)
        # Eight micro-batches, each forward and backward on two stages, and the optimizer.
        text = plot.read_text()
        self.assertEqual(len(re.findall(r'fill="#ffffff">[0-7]</text>', text)), 8 * 2 * 2)
        self.assertIn("stage 1 (rank", text)
        self.assertIn(">memory, up to ", text)

    def test_what_does_not_fit_says_what_would(self):
        large = ["run", "--model", "llama3-70b", "--cluster", "dgx-h100-8", "--plan",
                 "tp=8,microbatch=1,global-batch=8,sequence=8192"]
        text = stepsim(*large).stdout
        self.assertIn("DOES NOT FIT", text)
        self.assertIn("Plans near it that need least", text)
        self.assertRegex(text, r"the first needs \d+\.\d GB more than a chip has")
        self.assertNotIn("Plans near it", stepsim("run", SMALL).stdout)

    def test_prints_the_table_and_writes_the_files(self):
        result_path = str(self.folder / "result.json")
        trace_path = str(self.folder / "trace.json.gz")
        result = stepsim("run", SMALL, "--json", result_path, "--trace", trace_path)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")
        self.assertIn("step time", result.stdout)
        self.assertNotIn("\x1b", result.stdout)
        self.assertEqual(self.files(), ["result.json", "trace.json.gz"])
        data = json.loads(pathlib.Path(result_path).read_text())
        self.assertGreater(data["step_time_s"], 0)
        self.assertEqual(list(data)[-1], "simulator")

    def test_json_alone_on_standard_output(self):
        result = stepsim("run", SMALL, "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("step_time_s", json.loads(result.stdout))
        self.assertEqual(result.stderr, "")

    def test_the_same_input_gives_the_same_bytes(self):
        outputs = []
        for run in ("first", "second"):
            trace = self.folder / f"{run}.trace.json"
            text = stepsim("run", SMALL, "--json", "-", "--trace", str(trace)).stdout
            head, separator, _ = text.partition('"simulator"')
            self.assertTrue(separator)
            outputs.append((head, trace.read_bytes()))
        self.assertEqual(outputs[0], outputs[1])

    def test_flags_alone_are_the_experiment_of_the_catalog(self):
        flags = ["--model", "llama3-8b", "--cluster", "dgx-h100-8", "--plan",
                 "tp=2,dp=4,zero=1,microbatch=1,global-batch=64,sequence=8192"]
        by_flags = json.loads(stepsim("run", *flags, "--json", "-").stdout)
        by_name = json.loads(stepsim("run", SMALL, "--json", "-").stdout)
        self.assertEqual(by_flags["step_time_s"], by_name["step_time_s"])

    def test_a_hugging_face_config_is_a_model(self):
        config = stepsim("catalog", "models", "llama3-8b").stdout
        path = self.write("config.json", config)
        mine = stepsim("run", SMALL, "--model", path, "--json", "-")
        self.assertEqual(mine.returncode, 0, mine.stderr)
        by_name = json.loads(stepsim("run", SMALL, "--json", "-").stdout)
        self.assertEqual(json.loads(mine.stdout)["step_time_s"], by_name["step_time_s"])

    def test_packets_pay_for_the_library_as_flows_do(self):
        # One block on an idle node: queues cost less than 1 %. Where messages overlap, first come first served may
        # end before fair shares do, by next to nothing.
        result = stepsim("run", SMALL, "--set", "model.layers=1", "--set", "plan.global_batch=8",
                         "--fidelity", "all", "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        times = {run["fidelity"]: run["step_time_s"] for run in json.loads(result.stdout)["runs"]}
        self.assertGreater(times["packet"], times["flow"] * (1 - 1e-4))
        self.assertLess(times["packet"], times["flow"] * 1.01)

    def test_overrides_change_the_run(self):
        base = json.loads(stepsim("run", SMALL, "--json", "-").stdout)
        halved = json.loads(
            stepsim("run", SMALL, "--set", "plan.global_batch=32", "--json", "-").stdout)
        self.assertLess(halved["step_time_s"], base["step_time_s"])
        self.assertEqual(2 * halved["model_flops_per_step"], base["model_flops_per_step"])

    def test_traces_the_ranks_that_were_asked_for(self):
        trace = self.folder / "trace.json"
        result = stepsim("run", SMALL, "--trace", str(trace), "--trace-ranks", "0,5-6")
        self.assertEqual(result.returncode, 0, result.stderr)
        names = [event["args"]["name"] for event in json.loads(trace.read_text())["traceEvents"]
                 if event["name"] == "process_name"]
        ranks = [name.split()[1] for name in names if name.startswith("rank ")]
        self.assertEqual(ranks, ["0", "5", "6"])

    def test_a_plan_that_does_not_fit_is_a_result(self):
        plan = ["--set", "plan.tp=1", "--set", "plan.dp=8", "--set", "plan.zero=0"]
        result = stepsim("run", SMALL, *plan, "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertFalse(json.loads(result.stdout)["memory"]["fits"])
        self.assertEqual(stepsim("run", SMALL, *plan, "--require-fit").returncode, 1)
        self.assertEqual(stepsim("run", SMALL, "--require-fit").returncode, 0)

    def test_it_says_how_sure_it_is_that_a_plan_fits(self):
        # 75 and 62 GB of an H100's 85.5: the upper end of the interval of the first one is above that.
        for zero, certainty, words in [(2, "likely", "likely fits: "), (3, "sure", "fits: ")]:
            run = ["run", "--model", "llama3-8b", "--cluster", "dgx-h100-8", "--plan",
                   f"dp=8,zero={zero},microbatch=1,global-batch=64,sequence=8192"]
            memory = json.loads(stepsim(*run, "--json", "-").stdout)["memory"]
            self.assertTrue(memory["fits"])
            self.assertEqual(memory["fits_certainty"], certainty)
            high = memory["peak_interval_bytes"][1]
            self.assertEqual(high <= memory["capacity_bytes"], certainty == "sure")
            text = stepsim(*run).stdout
            self.assertIn(f"Memory                  {words}", text)
            self.assertIn("in 8 of 10 such runs: " + ("sure to fit" if zero == 3 else "not sure to fit"), text)
            self.assertEqual(stepsim(*run, "--require-fit").returncode, 0 if zero == 3 else 1)
            self.assertEqual(stepsim(*run, "--require-fit", "--headroom", "interval").returncode,
                             0 if zero == 3 else 1)
            self.assertEqual(stepsim(*run, "--require-fit", "--headroom", "0").returncode, 0)
            share = 1 - memory["peak_bytes"] / memory["capacity_bytes"]
            self.assertEqual(stepsim(*run, "--require-fit", "--headroom", str(share - 1e-6)).returncode, 0)
            self.assertEqual(stepsim(*run, "--require-fit", "--headroom", str(share + 1e-6)).returncode, 1)
        self.expect_refused(["run", SMALL, "--headroom", "0.1"], "--headroom: needs --require-fit")
        self.expect_refused(["run", SMALL, "--require-fit", "--headroom", "none"],
                            "--headroom: must be a share of the memory")


class RunScheduleTest(StepsimTest):
    PLAN = "tp=1,dp=2,pp=4,global-batch=32,sequence=2048"

    def run_with(self, keys):
        result = stepsim("run", "--model", "llama3-8b", "--cluster", "dgx-h100-8", "--plan",
                         f"{self.PLAN},{keys}", "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_schedules_overlap_steps_where_their_bubble_is_between_them(self):
        # The rest is the wait for the last stage, which has the head in addition to its layers.
        plain = self.run_with("schedule=1f1b")
        split = self.run_with("schedule=zb_auto_2p")
        self.assertEqual((plain["steps"], split["steps"]), (1, 2))
        self.assertLess(split["breakdown_s"]["bubble"], 0.8 * plain["breakdown_s"]["bubble"])
        self.assertGreater(split["memory"]["peak_bytes"], plain["memory"]["peak_bytes"])

    def test_a_schedule_of_ones_own_comes_from_a_file(self):
        ranks = ["F0.0 F1.0 BW0.0 BW1.0"] * 3 + ["F0.0 BW0.0 F1.0 BW1.0"]
        path = self.write("own.schedule", "\n".join(ranks))
        keys = f"global-batch=4,schedule={path}"
        result = stepsim("run", "--model", "llama3-8b", "--cluster", "dgx-h100-8", "--plan",
                         f"tp=1,dp=2,pp=4,sequence=2048,{keys}", "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.expect_refused(["run", "--model", "llama3-8b", "--cluster", "dgx-h100-8", "--plan",
                             f"{self.PLAN},schedule={path}"],
                            "plan.global_batch: makes micro-batches: 16, but the schedule's file")

    def test_a_pass_of_inference_has_a_cache(self):
        result = stepsim("run", "--model", "llama3-70b", "--cluster", "dgx-h100-8", "--plan",
                         "tp=8", "--pass", "decode,batch=64,context=8192", "--explain", "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        data = json.loads(result.stdout)
        self.assertEqual(data["kv_cache"], {"bytes_per_token": 327680,
                                            "bytes": 327680 * 64 * 8192})
        self.assertEqual(data["memory"]["by_category_bytes"]["kv_cache"], 327680 * 8 * 8192)
        self.assertEqual(data["explain"]["parts"][0]["formula"], "I1")
        again = self.folder / "again.json"
        again.write_text(result.stdout)
        repeated = stepsim("run", str(again), "--explain", "--json", "-")
        self.assertEqual(json.loads(repeated.stdout)["step_time_s"], data["step_time_s"])

    def test_keys_of_training_are_refused_in_inference(self):
        result = stepsim("run", "--model", "llama3-8b", "--cluster", "dgx-h100-8", "--plan",
                         "tp=8,zero=1", "--pass", "decode,batch=8")
        self.assertEqual(result.returncode, 2)
        self.assertIn("plan.zero: says how to train", result.stderr)
        self.assertIn("pass.context: must be given for decode", result.stderr)

    def test_a_key_of_another_group_is_refused_with_its_spelling(self):
        result = stepsim("run", "--model", "llama3-8b", "--cluster", "dgx-h100-8", "--plan",
                         "tp=8,global-batch=8,sequence=128,loss=separate,inference=decode", "--set",
                         "plan.fused_attention=false", "--set", "software.tp=2", "--software",
                         "torchtitan,zero=3")
        self.assertEqual(result.returncode, 2)
        for line in ["--plan loss: is a key of software: software.loss, or --software loss=..",
                     "--plan inference: is a key of pass: pass.inference, or --pass inference=..",
                     "--set plan.fused_attention: is a key of software: software.fused_attention",
                     "--set software.tp: is a key of plan: plan.tp",
                     "--software zero: is a key of plan: plan.zero"]:
            self.assertIn(line, result.stderr)
        old = stepsim("run", "--model", "llama3-8b", "--cluster", "dgx-h100-8", "--plan",
                      "dp=8,global-batch=8,sequence=128", "--set", "plan.software=torchtitan")
        self.assertIn("--set plan.software: is software.catalog: --software NAME", old.stderr)

    def test_software_is_a_name_a_file_or_keys(self):
        def run(*words):
            result = stepsim("run", "--model", "llama3-8b", "--cluster", "dgx-h100-8", "--plan",
                             "dp=8,global-batch=8,sequence=2048", *words, "--json", "-")
            self.assertEqual(result.returncode, 0, result.stderr)
            return json.loads(result.stdout)

        named = run("--software", "torchtitan")
        self.assertEqual(named["experiment"]["software"]["catalog"], "torchtitan")
        self.assertEqual(run("--set", "software.catalog=torchtitan")["step_time_s"],
                         named["step_time_s"])
        path = self.write("mine.textproto", 'catalog: "torchtitan" loss: "separate"')
        own = run("--software", path)
        self.assertEqual(own["experiment"]["software"]["loss"], "separate")
        self.assertGreater(own["step_time_s"], named["step_time_s"])
        self.assertEqual(run("--software", "torchtitan,loss=separate")["step_time_s"],
                         own["step_time_s"])
        self.assertEqual(run("--software", path + ",loss=fused")["step_time_s"], named["step_time_s"])
        again = self.write("named.json", json.dumps(named))
        result = stepsim("run", again, "--software", "nemo", "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        other = json.loads(result.stdout)["experiment"]["software"]
        self.assertEqual(other["catalog"], "nemo")
        self.assertFalse(other["fsdp_copies"], "nothing of the earlier software is left")

    def test_a_layout_has_commas(self):
        plain = self.run_with("schedule=interleaved_1f1b")
        uneven = self.run_with("layout=3,4*6,5,schedule=interleaved_1f1b")
        self.assertLess(plain["step_time_s"], uneven["step_time_s"])


if __name__ == "__main__":
    main()
