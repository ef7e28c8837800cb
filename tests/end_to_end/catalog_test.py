#!/usr/bin/env python3
"""stepsim catalog and import, as a person runs it: catalog_test.py PATH-TO-STEPSIM."""
import json
import pathlib
import re

from program import SMALL, StepsimTest, main, stepsim


class CatalogTest(StepsimTest):
    def test_lists_and_prints(self):
        everything = stepsim("catalog").stdout
        self.assertIn("experiments\n", everything)
        self.assertIn("  llama3-70b-dgx-h100-512\n", everything)
        self.assertRegex(stepsim("catalog", "models").stdout,
                         r"(?m)^mixtral-8x7b +46\.70 B +12\.88 B +32  experts$")
        self.assertIn('"num_hidden_layers": 80', stepsim("catalog", "model", "llama3-70b").stdout)
        self.assertIn("nodes: 13", stepsim("catalog", "clusters", "dgx-h100-104").stdout)

    def test_what_it_prints_can_be_run(self):
        experiment = stepsim("catalog", "experiments", SMALL).stdout
        cluster = stepsim("catalog", "clusters", "dgx-h100-8").stdout
        path = self.write("mine.textproto", experiment)
        cluster_path = self.write("cluster.textproto", cluster)
        mine = json.loads(stepsim("run", path, "--cluster", cluster_path, "--json", "-").stdout)
        built_in = json.loads(stepsim("run", SMALL, "--json", "-").stdout)
        self.assertEqual(mine["step_time_s"], built_in["step_time_s"])

    def test_says_which_sizes_cluster_families_have(self):
        for text in (stepsim("catalog").stdout, stepsim("catalog", "clusters").stdout):
            for line in ("dgx-h100-<size>: <size> is a multiple of 8 chips, up to 16384\n",
                         "v5e-<size>: <size> is the axes of a torus that fits into 16x16, as in",
                         "multislice-v5p-<size>: <size> is a number of slices, up to 10, and ",
                         "  dgx-h100-512\n", "pcie-a100-8\n"):
                self.assertIn(line, text)

    def test_a_name_of_another_kind_says_what_it_is_and_where_it_goes(self):
        self.expect_refused(
            ["run", "llama3-405b"],
            "EXPERIMENT: llama3-405b is a model, not an experiment. Type: stepsim run --model "
            "llama3-405b --cluster CLUSTER --plan KEYS. Or give one of the experiments with it: ",
            "llama3-405b-dgx-h100-16384")
        self.expect_refused(["run", "dgx-h100-24"], "dgx-h100-24 is a cluster, not an experiment. "
                            "Type: stepsim run --model MODEL --cluster dgx-h100-24 --plan KEYS")
        self.expect_refused(["run", "h100-sxm"], "h100-sxm is a chip, not an experiment. "
                            "stepsim run takes it as --chip h100-sxm")
        self.expect_refused(["run", "dgx-h100"], "must be an experiment. As a cluster: the size of "
                            "dgx-h100-<size> must be a multiple of 8 chips")
        self.expect_refused(["run", SMALL, "--model", "dgx-h100-8"],
                            "dgx-h100-8 is a cluster, not a model. stepsim run takes it as "
                            "--cluster dgx-h100-8")
        self.expect_refused(["run", SMALL, "--cluster", "llama3-8b"],
                            "llama3-8b is a model, not a cluster. stepsim run takes it as "
                            "--model llama3-8b")
        self.expect_refused(["run", SMALL, "--plan", "llama3-8b"],
                            "llama3-8b is a model, not a plan. stepsim run takes it as --model "
                            "llama3-8b")
        self.expect_refused(["topology", "llama3-8b"], "llama3-8b is a model, not a cluster")
        self.expect_refused(["formula", "E1", "chip=llama3-8b", "M=3"],
                            "chip=llama3-8b: llama3-8b is a model, not a chip")
        self.expect_refused(["catalog", "h100-sxm"],
                            "KIND: must be given; type: stepsim catalog chips h100-sxm")
        self.expect_refused(["catalog", "models", SMALL],
                            f"{SMALL} is an experiment, not a model. Type: stepsim run {SMALL}")

    def test_experiments_show_what_was_published_beside_what_is_simulated(self):
        result = stepsim("catalog", "experiments", "--most-chips", "64")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, rf"(?m)^{SMALL}\n  tokens/s +85,459  simulated +73,4\d\d +-14\.0 %$")
        # Too large to be simulated here, and without a figure.
        self.assertRegex(result.stdout, r"(?m)^bloom-176b-dgx-a100-384\n  step time +105 s$")
        self.assertRegex(result.stdout, r"(?m)^gemma-7b-v5e-16x16\n  nothing published: ")

    def test_experiments_can_be_listed_and_written_as_json(self):
        listed = stepsim("catalog", "experiments", "--list").stdout
        self.assertNotIn("simulated", listed)
        names = re.findall(r"(?m)^(\S+)$", listed)
        self.assertIn(SMALL, names)
        self.assertIn(f"  {names[0]}\n", stepsim("catalog").stdout)
        result = stepsim("catalog", "experiments", "--most-chips", "8", "--json", "-")
        experiments = json.loads(result.stdout)["experiments"]
        self.assertEqual([one["name"] for one in experiments], names)
        small = next(one for one in experiments if one["name"] == SMALL)
        self.assertEqual(small["published"][0]["metric"], "tokens_per_s")
        self.assertTrue(small["published"][0]["as_expected"])
        self.assertEqual(small["chips"], 8)

    def test_options_of_experiments_go_with_nothing_else(self):
        self.expect_refused(["catalog", "models", "--list"],
                            "--list: only goes with stepsim catalog experiments")
        self.expect_refused(["catalog", "experiments", SMALL, "--json", "-"], "--json: only goes")
        self.expect_refused(["catalog", "experiments", "--most-chips", "0"],
                            "--most-chips: must be a whole number, 1 to ")

    def test_refuses_what_is_not_there(self):
        self.expect_refused(["catalog", "modells"], 'KIND: must be one of', "did you mean models?")
        self.expect_refused(["catalog", "models", "lama3-8b"], "did you mean llama3-8b?")


class ImportTest(StepsimTest):
    def test_prints_a_model_file_that_runs_as_the_config_does(self):
        config = self.write("config.json", stepsim("catalog", "models", "llama3-8b").stdout)
        imported = stepsim("import", "hf", config)
        self.assertEqual(imported.returncode, 0, imported.stderr)
        self.assertTrue(imported.stdout.startswith("# From config.json: 8,030,261,248 parameters.\n"))
        model = self.write("model.textproto", imported.stdout)
        mine = json.loads(stepsim("run", SMALL, "--model", model, "--json", "-").stdout)
        by_name = json.loads(stepsim("run", SMALL, "--json", "-").stdout)
        self.assertEqual(mine["step_time_s"], by_name["step_time_s"])

    def test_says_how_many_parameters_are_active(self):
        config = self.write("config.json", stepsim("catalog", "models", "deepseek-v3").stdout)
        self.assertIn(
            "671,026,404,352 parameters, 37,552,282,624 active for a token, 11,610,067,968 for "
            "multi-token prediction besides.", stepsim("import", "hf", config).stdout)

    def test_lists_the_families(self):
        families = stepsim("import", "families").stdout.split()
        self.assertEqual(families, sorted(families))
        self.assertIn("nemotron_h", families)

    def test_reads_a_family_by_another_name(self):
        text = stepsim("catalog", "models", "llama3-8b").stdout.replace('"llama"', '"copycat"')
        config = self.write("config.json", text)
        self.expect_refused(["import", "hf", config], 'is "copycat"', "--as FAMILY")
        imported = stepsim("import", "hf", config, "--as", "llama").stdout
        self.assertIn("8,030,261,248 parameters", imported)
        self.assertIn('note: "read as llama, is copycat"', imported)

    def test_a_model_described_by_hand_runs(self):
        page = (pathlib.Path(__file__).resolve().parents[2] / "docs/adding-a-model.md").read_text()
        fields = page.split("```\nmodel {\n")[1].split("\n}\n```")[0]
        model = self.write("mine.textproto", fields)
        shown = stepsim("run", "--model", model, "--cluster", "dgx-h100-64", "--plan",
                        "dp=64,zero=3,global-batch=64,sequence=4096").stdout
        self.assertIn("mine on dgx-h100-64", shown)

    def test_refuses_what_it_does_not_know(self):
        config = self.write("config.json", '{"model_type": "mamba3"}')
        self.expect_refused(["import", "hf", config], "config.json: model_type: must be ",
                            'is "mamba3"')
        self.expect_refused(["import", "onnx", config], 'KIND: must be one of hf, ', 'is "onnx"')
        self.expect_refused(["import", "hf"], "FILE: must be given: CONFIG.json")


if __name__ == "__main__":
    main()
