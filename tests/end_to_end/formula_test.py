#!/usr/bin/env python3
"""stepsim formula and validate, as a person runs it: formula_test.py PATH-TO-STEPSIM."""
import json

from program import StepsimTest, main, stepsim


class FormulaTest(StepsimTest):
    def test_words_that_people_try_find_studies(self):
        for word, formula in (("all-reduce", "(B5"), ("All_Reduce", "(B5"), ("memory", "(I4.memory"),
                              ("mixed", "(E8")):
            done = stepsim("validate", "--list", word)
            self.assertEqual(done.returncode, 0, word + done.stderr)
            self.assertIn(formula, done.stdout, word)

    def test_lists_explains_and_evaluates(self):
        self.assertIn("  E7 ", stepsim("formula").stdout)
        self.assertNotIn("  E7 ", stepsim("formula", "F").stdout)
        explanation = stepsim("formula", "E8").stdout
        for part in ("(C / W)^2 / (MX * MY * F)", "Source", "Printed wrongly", "E8.unoverlapped"):
            self.assertIn(part, explanation)
        # sqrt(48000 x 2 x 64 / 32768) = 13.693
        answer = stepsim("formula", "E7", "B=48000", "N=64", "F=32768", "MX=2", "MY=1")
        self.assertIn("X_opt = 13.6931 ways", answer.stdout)

    def test_the_catalog_fills_symbols_and_what_is_given_goes_first(self):
        # 2 x 1 x 80 x 8 x 128
        model = stepsim("formula", "D9", "b=1", "model=llama3-70b", "--json", "-")
        self.assertEqual(json.loads(model.stdout)["values"], [163840])
        fewer = stepsim("formula", "D9", "b=1", "model=llama3-70b", "L=40", "--json", "-")
        self.assertEqual(json.loads(fewer.stdout)["values"], [81920])
        # 459e12 / 180e9 / 3
        chip = stepsim("formula", "E1", "chip=tpu-v5p", "W=180GB/s", "M=3", "--json", "-")
        self.assertEqual(json.loads(chip.stdout)["values"], [850])

    def test_a_chip_may_be_named_by_its_generation(self):
        # 459e12 / (2 x 90e9) / 3: the bandwidth of a TPU's axis is known too
        answer = stepsim("formula", "E1", "chip=v5p", "M=3", "--json", "-")
        self.assertEqual(json.loads(answer.stdout)["values"], [850])

    def test_says_which_experiments_test_a_formula(self):
        self.assertIn("stepsim validate B1", stepsim("formula", "B1").stdout)
        self.assertIn("S3.split-n16", stepsim("formula", "B1").stdout)

    def test_a_unit_stands_once_beside_its_value(self):
        answer = stepsim("formula", "I1", "B=1", "kv=2.7GB", "V=140GB", "P=70e9", "Nc=8",
                         "W=3.35TB/s", "C=989TFLOPS").stdout
        self.assertRegex(answer, r"(?m)^    P +70000000000 parameters$")
        self.assertRegex(answer, r"(?m)^    V +140 GB +weights$")
        self.assertRegex(stepsim("formula", "I1").stdout, r"(?m)^    P +\[parameters\]$")

    def test_lists_the_formulas_about_a_thing(self):
        self.assertIn("  E7.fsdp ", stepsim("formula", "fsdp").stdout)
        self.assertNotIn("  B1 ", stepsim("formula", "fsdp").stdout)
        # `formula` also finds the formulas of statements that `validate` finds by a word: S14 is about E2.
        tested = {case["formula"]
                  for case in json.loads(stepsim("validate", "S14", "--json", "-").stdout)["cases"]}
        listed = {formula["id"]
                  for formula in json.loads(stepsim("formula", "FSDP", "--json", "-").stdout)}
        self.assertLessEqual(tested, listed)
        self.expect_refused(["formula", "fsdq"], "no such formula")

    def test_solves_for_one_input(self):
        # F = Y C / W = 16 x 2550
        answer = stepsim("formula", "E4", "Y_max=16", "chip=tpu-v5p", "W=180GB/s", "F=?")
        self.assertIn("F = 40800 gives Y_max = 16 ways", answer.stdout)

    def test_warns_outside_the_conditions(self):
        answer = stepsim("formula", "E3", "B=16e6", "M=3", "W=180GB/s", "C=459TFLOPS")
        self.assertEqual(answer.returncode, 0)
        self.assertIn("warning: does not hold: one ICI domain", answer.stdout)

    def test_refuses_with_all_problems_at_once(self):
        self.expect_refused(["formula", "E7.tpp"], "no such formula; did you mean E7.tp?")
        self.expect_refused(
            ["formula", "E7", "B=nan", "N=2.5", "f=1", "chip=h100-sxm", "word", "--jsn", "x"],
            "B: must be a number of tokens",
            "N: must be a whole number from 1 on, is 2.5",
            "f: is no input of E7; did you mean F?",
            "F: must be given: MLP width",
            "chip=h100-sxm: E7 has no symbol that this could fill",
            "word: must be SYMBOL=VALUE",
            "--jsn: no such option; did you mean --json?",
        )
        self.expect_refused(["formula", "D9", "b=1", "model=llama3-7b"], "model=llama3-7b: ")
        self.expect_refused(["formula", "A3", "chip=tpuv5p", "C=1", "C=2"], "chip=tpuv5p: ",
                            "C: is given twice")
        self.expect_refused(["formula", "E4", "Y_max=16", "chip=h100", "F=?"], "W: must be given")
        self.expect_refused(["formula", "E4", "F=1", "C=1", "W=180GB"],
                            'W: must be a number of B/s that is not negative, is "180GB"')
        self.expect_refused(["formula", "A17"], "A17: is no formula but a measurement")
        self.expect_refused(["formula", "E4", "F=?", "C=1", "W=1"], "Y_max: must be given, to solve")
        self.expect_refused(
            ["formula", "G1.fraction", "P=8", "bubble=1.5", "m=?"], "m: no value from 1 on gives bubble = 1.5"
        )


class ValidateTest(StepsimTest):
    def test_rows_say_what_was_predicted_simulated_and_expected(self):
        done = stepsim("validate", "S3", "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        cases = {case["id"]: case for case in json.loads(done.stdout)["cases"]}
        row = cases["S3.split-n16"]
        for key in ("formula", "predicted", "simulated", "unit", "relative_difference",
                    "expected_difference", "as_expected", "holds", "why"):
            self.assertIn(key, row)
        # 64 MiB / 90 GB/s, and 15/16 of it
        self.assertAlmostEqual(row["predicted"], 745.654e-6, delta=1e-9)
        self.assertAlmostEqual(row["relative_difference"], -1 / 16, delta=1e-4)
        self.assertEqual((row["formula"], row["unit"]), ("B1", "s"))
        self.assertEqual((row["as_expected"], row["holds"]), (True, False))
        self.assertTrue(cases["S3.whole-n16"]["holds"])

    def test_rows_are_chosen_by_experiment_row_or_formula(self):
        def ids(*words):
            answer = stepsim("validate", *words, "--json", "-").stdout
            return [case["id"] for case in json.loads(answer)["cases"]]

        self.assertEqual(ids("S5.knee", "S6"), ["S5.knee", "S6.three-colours", "S6.axis-after-axis",
                                                "S6.axes-overlapped", "S6.two-colours"])
        self.assertEqual(ids("C20"), ["S27.overlapped", "S27.in-turn"])
        text = stepsim("validate", "S5.knee").stdout
        for part in ("a collective takes the larger of", "6 us", "+100.00 %", "none is unexpected"):
            self.assertIn(part, text)

    def test_ids_and_regimes_are_apart(self):
        text = stepsim("validate", "--list", "fsdp").stdout
        self.assertIn("  S17.tokens-400-y8-unoverlapped  400 tokens a chip", text)
        self.assertIn("  S17.tokens-2400-y8-unoverlapped  2400 tokens a chip", text)

    def test_network_models_stand_side_by_side(self):
        done = stepsim("validate", "S10.equal", "--fidelity", "all", "--json", "-")
        difference = {case["fidelity"]: case["relative_difference"]
                      for case in json.loads(done.stdout)["cases"]}
        self.assertAlmostEqual(difference["latency-bandwidth"], 0, delta=1e-4)
        self.assertAlmostEqual(difference["flow"], 1, delta=1e-4)
        self.assertAlmostEqual(difference["packet"], 1, delta=1e-2)

    def test_plots_are_written(self):
        folder = self.folder / "plots"
        done = stepsim("validate", "S5", "--plot", str(folder))
        self.assertEqual(done.returncode, 0, done.stderr)
        svg = (folder / "S5-latency.svg").read_text()
        self.assertTrue(svg.startswith("<svg ") and "latency and bytes: simulated" in svg)

    def test_worked_figures_come_out_right(self):
        done = stepsim("validate", "--cases", "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        cases = json.loads(done.stdout)["worked_cases"]
        self.assertEqual(len(cases), 284)
        self.assertTrue(all(case["as_expected"] for case in cases))
        self.assertIn("printed wrongly", stepsim("validate", "--cases", "E8").stdout)

    def test_refuses_with_all_problems_at_once(self):
        text = self.expect_refused(
            ["validate", "S99", "S5.kne", "J5", "--fidelity", "packets"],
            "S99: no such study, row, formula or word of a chapter; did you mean S19?",
            "S5.kne: no such study, row, formula or word of a chapter; did you mean S5.knee?",
            "J5: no study tests this formula",
            "--fidelity: must be latency-bandwidth, flow, packet or all, is \"packets\"")
        self.assertIn("4 problems", text)
        self.expect_refused(["validate", "--plot", __file__], "--plot: ")
        self.expect_refused(["validate", "--cases", "E999", "--plot", "x"],
                            "--plot: means nothing with --cases")
        self.expect_refused(["validate", "--cases", "Z9"], "Z9: no worked case")


if __name__ == "__main__":
    main()
