#!/usr/bin/env python3
"""stepsim search: its outputs, its JSON, what is refused: search_test.py PATH-TO-STEPSIM"""
import json
import pathlib

from program import StepsimTest, main, stepsim

QUESTION = ["--model", "llama3-8b", "--cluster", "dgx-h100-8", "--global-batch", "16", "--sequence",
            "4096"]
SPACE = ["--within", "tp=1,2,4,8,pp=1,2,zero=0..3,recompute=none,full"]
PLAN_FIELDS = {"cluster", "plan", "software", "pass", "step_time_s", "step_time_interval_s", "peak_bytes",
               "peak_interval_bytes", "fits", "fits_certainty", "model_flops_utilization", "chips",
               "cost", "energy_joules", "run"}
CAPACITY = 81_559 * 2**20  # bytes of an H100


class SearchTest(StepsimTest):
    def result(self, *arguments, status=0):
        run = stepsim("search", *arguments, "--json", "-")
        self.assertEqual(run.returncode, status, run.stderr)
        return json.loads(run.stdout)

    def test_json_has_the_fields_of_its_page(self):
        result = self.result(*QUESTION, *SPACE, "--top", "3", "--gpu-hour", "2.5")
        self.assertEqual(list(result), ["asked", "objective", "considered", "excluded", "simulated",
                                        "outcome", "bound_gap", "searched_keys", "answer",
                                        "front_is_whole", "front_gap",
                                        "front_whole_until_s", "best", "front"])
        self.assertEqual(result["considered"], 64)
        self.assertEqual(result["considered"],
                         result["simulated"] + sum(result["excluded"].values()))
        self.assertEqual(result["bound_gap"], 0)
        self.assertEqual(result["outcome"], "found")
        self.assertEqual(result["searched_keys"], ["tp", "dp", "pp", "zero", "recompute"])
        self.assertEqual(result["answer"], {**result["best"][0], "refined": False, "training": None})
        self.assertEqual(len(result["best"]), 3)
        for plan in result["best"] + result["front"]:
            self.assertEqual(set(plan), PLAN_FIELDS)
            self.assertTrue(plan["fits"])
            self.assertEqual(plan["fits_certainty"], "sure")
            self.assertLessEqual(plan["peak_interval_bytes"][1], CAPACITY)
            self.assertEqual(plan["chips"], 8)
            self.assertAlmostEqual(plan["cost"], plan["step_time_s"] * 8 * 2.5 / 3600)
            keys = plan["plan"]
            self.assertEqual(keys["tp"] * keys["pp"] * keys["dp"] * keys["cp"], 8)
            self.assertEqual(keys["global_batch"], 16)
        times = [plan["step_time_s"] for plan in result["best"]]
        self.assertEqual(times, sorted(times))
        self.assertEqual(result["best"][0], result["front"][0])

    def test_the_best_plan_runs_as_it_was_found(self):
        experiment = str(self.folder / "best.json")
        best = self.result(*QUESTION, *SPACE, "--experiment", experiment)["best"][0]
        run = json.loads(stepsim("run", experiment, "--json", "-").stdout)
        self.assertEqual(run["step_time_s"], best["step_time_s"])
        self.assertEqual(run["memory"]["peak_bytes"], best["peak_bytes"])
        self.assertEqual(run["step_time_interval_s"], best["step_time_interval_s"])

    def test_any_number_of_jobs_gives_the_same_bytes(self):
        texts = {stepsim("search", *QUESTION, *SPACE, "--jobs", jobs, "--json", "-").stdout
                 for jobs in ["1", "2", "7"]}
        self.assertEqual(len(texts), 1)

    def test_a_table_and_a_picture_are_written(self):
        csv, plot = str(self.folder / "a.csv"), str(self.folder / "a.svg")
        run = stepsim("search", *QUESTION, *SPACE, "--csv", csv, "--plot", plot, "--top", "4")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("proven: no plan of the space is better", run.stdout)
        lines = pathlib.Path(csv).read_text().splitlines()
        self.assertEqual(lines[0], "rank,cluster,tp,dp,pp,zero,recompute,step_time_s,peak_bytes,"
                                   "fits,model_flops_utilization,chips,cost,"
                                   "energy_joules")
        self.assertEqual(len(lines), 5)
        self.assertIn("</svg>", pathlib.Path(plot).read_text())

    def test_why_says_what_a_plan_would_give(self):
        why = self.result(*QUESTION, *SPACE, "--why", "tp=8,microbatch=2")["why"]
        self.assertEqual(why["plan"]["microbatch"], 2)
        self.assertLessEqual(why["step_bound_s"], why["found"]["step_time_s"])
        self.assertLessEqual(why["memory_bound_bytes"], why["found"]["peak_bytes"])
        broken = self.result(*QUESTION, *SPACE, "--why", "tp=5,dp=1")["why"]
        self.assertIsNone(broken["found"])
        self.assertTrue(broken["problems"][0].startswith("plan.tp"))
        text = stepsim("search", *QUESTION, *SPACE, "--why", "zero=3").stdout
        self.assertIn("of the list", text)

    def test_the_best_plans_are_refined(self):
        within = ["--within", "tp=1,2,4,8,pp=1,2", "--fix", "microbatch=1,zero=2", "--refine", "whole", "--top", "3"]
        result = self.result(*QUESTION, *within)
        refined = result["refined"]
        self.assertTrue(refined["is_whole"])
        self.assertEqual(refined["considered"], refined["simulated"] + sum(refined["excluded"].values()))
        self.assertGreater(len(refined["plans"]), 0)
        times = [plan["step_time_s"] for plan in refined["plans"]]
        self.assertEqual(times, sorted(times))
        for plan in refined["plans"]:
            self.assertEqual(set(plan), PLAN_FIELDS | {"of", "changes"})
            self.assertLess(plan["step_time_s"], result["best"][plan["of"] - 1]["step_time_s"])
            self.assertTrue(plan["fits"])
            changed = {change["key"] for change in plan["changes"]}
            self.assertFalse(changed & {"tp", "pp", "dp", "microbatch", "zero"})
            run = stepsim(*plan["run"].split()[1:], "--json", "-")
            self.assertEqual(json.loads(run.stdout)["step_time_s"], plan["step_time_s"])
        # What a key was given, and what the space has, stays.
        first = refined["plans"][0]["changes"][0]
        fixed = within[:3] + [within[3] + f",{first['key']}={first['from']}"] + within[4:]
        again = self.result(*QUESTION, *fixed)["refined"]
        self.assertFalse(any(change["key"] == first["key"] for plan in again["plans"] for change in plan["changes"]))
        # --why knows it, and --experiment writes it.
        keys = ",".join(f"{key}={str(value).lower()}" for key, value in refined["plans"][0]["plan"].items()
                        if key not in ("global_batch", "sequence"))
        experiment = str(self.folder / "e.json")
        text = stepsim("search", *QUESTION, *within, "--why", keys, "--experiment", experiment).stdout
        self.assertIn("It is what number", text)
        # The better one comes first, and what is proven says of which keys.
        self.assertLess(text.index("\nRefined "), text.index("\nBest plans "))
        self.assertIn("Proven over tp, dp, pp, with all other keys as these plans have them.", text)
        self.assertTrue(result["answer"]["refined"])
        self.assertEqual(result["answer"]["step_time_s"], times[0])
        run = json.loads(stepsim("run", experiment, "--json", "-").stdout)
        self.assertEqual(run["step_time_s"], min(times + [result["best"][0]["step_time_s"]]))

    def test_refining_is_the_same_for_any_jobs(self):
        within = ["--within", "tp=1,2,4", "--refine", "quick"]
        texts = {stepsim("search", *QUESTION, *within, "--jobs", jobs, "--json", "-").stdout for jobs in ["1", "3"]}
        self.assertEqual(len(texts), 1)

    def test_only_the_usual_space_is_refined_by_itself(self):
        self.assertNotIn("refined", self.result(*QUESTION, *SPACE))
        fixed = "tp=8,pp=1,cp=1,zero=0,schedule=1f1b,chunks=1"
        self.assertIn("refined", self.result(*QUESTION, "--fix", fixed))

    def test_offloading_makes_a_plan_fit(self):
        question = ["--model", "llama3-8b", "--cluster", "dgx-h100-8", "--global-batch", "8", "--sequence", "4096",
                    "--fix", "zero=0,tp=1", "--within", "microbatch=1"]
        self.assertEqual(self.result(*question, status=1)["best"][0]["fits"], False)
        refined = self.result(*question, "--refine", "whole")["refined"]["plans"]
        self.assertTrue(refined[0]["fits"])
        self.assertIn("offload_optimizer", {change["key"] for change in refined[0]["changes"]})

    def test_clusters_come_side_by_side(self):
        result = self.result("--model", "llama3-8b", "--cluster", "dgx-h100-8,dgx-b200-8",
                             "--global-batch", "16", "--sequence", "4096", "--within", "tp=1,2",
                             "--fix", "zero=3", "--minimize", "cost", "--gpu-hour", "2,6")
        self.assertEqual({plan["cluster"] for plan in result["best"]},
                         {"dgx-h100-8", "dgx-b200-8"})
        costs = [plan["cost"] for plan in result["best"]]
        self.assertEqual(costs, sorted(costs))

    def test_the_best_of_each_cluster_says_what_a_training_takes(self):
        question = ["--model", "llama3-8b", "--cluster", "dgx-h100-8,dgx-b200-8",
                    "--global-batch", "16", "--sequence", "4096", "--within", "tp=1,2",
                    "--fix", "zero=3", "--gpu-hour", "2,6"]
        result = self.result(*question, "--tokens", "2e12")
        best = result["best_of_cluster"]
        self.assertEqual([one["cluster"] for one in best], ["dgx-h100-8", "dgx-b200-8"])
        for one, price in zip(best, (2, 6)):
            training = one["training"]
            steps = 2e12 / (16 * 4096)
            self.assertAlmostEqual(training["days"], steps * one["step_time_s"] / 86400, places=6)
            self.assertAlmostEqual(training["cost"], training["days"] * 24 * 8 * price, places=4)
            self.assertAlmostEqual(training["energy_kwh"], steps * one["energy_joules"] / 3.6e6,
                                   places=4)
            self.assertLess(training["days_interval"][0], training["days"])
        self.assertEqual(result["answer"]["training"], best[1]["training"])
        text = stepsim("search", *question).stdout
        self.assertIn("a training of 1e+12 tokens", text)
        bad = stepsim("search", *question, "--tokens", "none")
        self.assertEqual(bad.returncode, 2)
        self.assertIn("--tokens: must be a number above 0", bad.stderr)

    def test_how_few_chips_are_fast_enough(self):
        question = ["--model", "llama3-8b", "--cluster", "dgx-h100-8..32", "--global-batch", "32",
                    "--sequence", "4096", "--within", "tp=1,2,4,zero=1,3", "--minimize", "chips"]
        every = self.result(*question, "--top", "100")["best"]
        self.assertEqual({plan["chips"] for plan in every}, {8, 16, 32})
        fastest = min(plan["step_time_s"] for plan in every if plan["chips"] == 8)
        result = self.result(*question, "--step-at-most", str(fastest * 0.999))
        self.assertEqual(result["best"][0]["chips"], 16)
        self.assertEqual(result["considered"],
                         result["simulated"] + sum(result["excluded"].values()))
        chips = [(plan["chips"], plan["step_time_s"]) for plan in result["best"]]
        self.assertEqual(chips, sorted(chips))
        least = min(plan["step_time_s"] for plan in every)
        run = stepsim("search", *question, "--step-at-most", str(least * 0.5))
        self.assertEqual(run.returncode, 1)
        self.assertIn("Nothing is fast enough", run.stdout)

    def test_energy_is_said_where_the_chip_has_its_power(self):
        question = ["--model", "llama3-8b", "--cluster", "dgx-b200-8", *QUESTION[4:]]
        for plan in self.result(*question, *SPACE)["best"]:
            self.assertGreater(plan["energy_joules"], 8 * 300 * plan["step_time_s"])
            self.assertLessEqual(plan["energy_joules"], 8 * 1000 * plan["step_time_s"] * 1.000001)
        run = json.loads(stepsim(*plan["run"].split()[1:], "--json", "-").stdout)
        self.assertEqual(run["energy"]["joules_per_step"], plan["energy_joules"])

    def test_a_front_may_be_left_out(self):
        whole, none = (self.result(*QUESTION, *SPACE, "--front", front, "--top", "1")
                       for front in ["whole", "none"])
        self.assertLess(none["simulated"], whole["simulated"])
        self.assertEqual(none["best"], whole["best"])
        self.assertFalse(none["front_is_whole"])
        self.assertTrue(whole["front_is_whole"])
        self.assertIsNone(whole["front_whole_until_s"])

    def test_usual_values_of_a_key(self):
        result = self.result(*QUESTION, "--within", "tp=..,pp=1..2", "--fix", "zero=1", "--top",
                             "100")
        self.assertEqual({plan["plan"]["tp"] for plan in result["best"]}, {1, 2, 4, 8})

    def test_where_nothing_fits_it_says_how_near(self):
        result = self.result("--model", "llama3-70b", "--cluster", "dgx-h100-8", "--global-batch",
                             "8", "--sequence", "8192", "--within", "tp=4,8,zero=0,3", status=1)
        self.assertEqual(len(result["best"]), 3)
        self.assertFalse(result["best"][0]["fits"])
        self.assertEqual(result["best"][0]["fits_certainty"], "no")
        self.assertEqual(result["outcome"], "nothing fits")
        self.assertIsNone(result["answer"])
        self.assertEqual(result["front"], [])

    def test_a_limit_of_time_says_how_far_the_best_may_be(self):
        result = self.result(*QUESTION, "--time-limit", "1us", status=1)
        self.assertEqual(result["bound_gap"], 1)
        self.assertEqual(result["outcome"], "not known")
        self.assertFalse(result["best"])
        text = stepsim("search", *QUESTION, "--time-limit", "1us").stdout
        self.assertIn("Not known", text)
        self.assertNotIn("Nothing fits", text)
        self.assertIn("were not reached", text)

    # 746,496 combinations, of which none fits without offloading: whatever the machine's speed, nothing is
    # said of what was not reached.
    def test_a_limit_of_time_claims_nothing_of_what_was_not_reached(self):
        question = ["--model", "qwen3-235b-a22b", "--cluster", "dgx-h100-32", "--global-batch", "32",
                    "--sequence", "6144", "--time-limit", "1s"]
        run = stepsim("search", *question, "--json", "-")
        result = json.loads(run.stdout)
        self.assertEqual(run.returncode, 0 if result["answer"] else 1)
        self.assertGreater(result["excluded"]["not reached"], 0)
        self.assertIn(result["outcome"], ("found", "likely") if result["answer"] else ("not known",))
        self.assertEqual(result["considered"], result["simulated"] + sum(result["excluded"].values()))

    def test_a_plan_that_fits_comes_soon(self):
        result = self.result(*QUESTION, "--time-limit", "20s")
        self.assertEqual(result["outcome"], "found")
        self.assertTrue(result["answer"]["fits"])
        self.assertLess(result["bound_gap"], 1)

    def test_headroom_is_what_stays_free(self):
        for headroom, most in [("0.5", 0.5), ("50%", 0.5), ("0", 1)]:
            result = self.result(*QUESTION, *SPACE, "--headroom", headroom, "--top", "100")
            self.assertTrue(result["best"])
            for plan in result["best"]:
                self.assertLessEqual(plan["peak_bytes"], most * CAPACITY)
            self.assertEqual(result["considered"], result["simulated"] + sum(result["excluded"].values()))
        # By default the upper end of the interval has to fit.
        default = self.result(*QUESTION, *SPACE, "--top", "100")
        said = self.result(*QUESTION, *SPACE, "--top", "100", "--headroom", "interval")
        self.assertEqual(default["best"], said["best"])
        self.assertLess(len(default["best"]), len(result["best"]))
        self.assertEqual([plan for plan in result["best"] if plan["fits_certainty"] == "sure"], default["best"])
        # What was asked for is kept: no plan is listed that does not leave it.
        result = self.result(*QUESTION, *SPACE, "--headroom", "0.99", status=1)
        self.assertEqual(result["outcome"], "nothing fits")
        text = stepsim("search", *QUESTION, *SPACE, "--headroom", "0.99").stdout
        self.assertIn("Nothing leaves the headroom", text)

    def test_all_problems_come_at_once(self):
        self.expect_refused(["search"], "--model: must be given", "--cluster: must be given",
                            "--global-batch: must be given", "--sequence: must be given")
        self.expect_refused(
            ["search", *QUESTION, "--within", "tp=0,zero=9,shedule=1f1b,dtype=..", "--fix",
             "zero=1,foo=3", "--minimize", "speed", "--top", "0", "--gpu-hour", "1,2",
             "--time-limit", "soon", "--csv", "a.svg", "--jobs", "none", "--front", "all", "--refine", "much",
             "--step-at-most", "0s", "--headroom", "1"],
            "--within tp: must be at least 1", "--within zero: must be 0",
            'has "shedule", which is no key of a plan; did you mean schedule?',
            "--within zero: is given by --fix, too", "--fix foo: no field foo",
            "--minimize: must be step, memory, cost or chips", "--top: must be", "has 2 prices for 1",
            "--time-limit: must be", "--csv: must end in .csv", "--jobs: must be",
            "--front: must be quick, whole or none", "--refine: must be quick, whole or none",
            "--step-at-most: must be", "--headroom: must be a share of the memory")
        self.expect_refused(["search", "--model", "llama3-8b", "--cluster", "dgx-h100-64..8",
                             "--global-batch", "16", "--sequence", "4096"],
                            "--cluster: must name sizes that double")
        self.expect_refused(["search", *QUESTION, "--within", "dtype=.."],
                            "--within dtype: has no usual values")
        self.expect_refused(["search", *QUESTION, "--within", "sequence=1,2"],
                            "--within sequence: is part of the question")
        self.expect_refused(["search", *QUESTION, "--within", "tp=3,5"],
                            "--within: leaves no plan that can run")
        self.expect_refused(["search", *QUESTION, *SPACE, "--json", "a.json", "--experiment",
                             "a.json"], "a.json")


if __name__ == "__main__":
    main()
