#!/usr/bin/env python3
"""Every example of docs/experiment-files.md is taken as it stands, and every routing of
`stepsim help topologies dgx_superpod`: experiment_files_test.py PATH-TO-STEPSIM.
"""
import pathlib
import re

from program import SMALL, StepsimTest, main, stepsim

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "experiment-files.md").read_text()


def examples():
    """(language, text) of each file on the page; scripts/run_pages.py runs its commands."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.M | re.S)
    return [block for block in blocks if not block[1].startswith("$ ")]


def first_field(text):
    return re.search(r"^(\w+)", re.sub(r"(?m)^#.*\n", "", text)).group(1)


class ExperimentFilesTest(StepsimTest):
    # The model of an example, as it is published beside its weights.
    def setUp(self):
        super().setUp()
        self.write("config.json", stepsim("catalog", "models", "llama3-8b").stdout)

    def expect_run(self, *arguments):
        result = stepsim("run", *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("step time", result.stdout)

    def run_example(self, language, text):
        if language == "json":
            self.expect_run(self.write("example.json", text))
        elif first_field(text) == "model":
            self.expect_run(self.write("example.textproto", text))
        elif "vocabulary:" in text:
            self.expect_run("--model", self.write("model.textproto", text), "--cluster",
                            "dgx-h100-8", "--plan", "tp=8,global-batch=8,sequence=2048")
        elif "chip {" in text:
            self.expect_run(SMALL, "--cluster", self.write("cluster.textproto", text), "--set",
                            "plan.allow_idle_chips=true")
        else:
            self.assertIn(first_field(text), ["variation", "simulation"])
            experiment = stepsim("catalog", "experiments", "llama3-70b-tp8-dgx-h100-512").stdout
            self.expect_run(self.write("varied.textproto", experiment + text))

    def test_every_example_is_taken(self):
        found = examples()
        self.assertGreaterEqual(len(found), 6)
        for language, text in found:
            with self.subTest(text):
                self.run_example(language, text)

    def routings(self):
        """What the help says `routing` of a dgx_superpod takes."""
        fields = stepsim("help", "topologies", "dgx_superpod", "--markdown").stdout
        values = re.search(r"^### `routing`\n\nValue: (.*?);", fields, re.M).group(1)
        return re.split(", | or ", values)

    def test_every_routing_on_the_page_is_taken_and_no_other(self):
        for routing in self.routings():
            with self.subTest(routing):
                self.expect_run(SMALL, "--set", f"cluster.dgx_superpod.routing={routing}")
        text = self.expect_refused(["run", SMALL, "--set", "cluster.dgx_superpod.routing=random"],
                                   "cluster.dgx_superpod.routing")
        for routing in self.routings():
            self.assertIn(routing, text)

    def test_what_clusters_of_the_catalog_route_by_is_on_the_page(self):
        for path in sorted((ROOT / "catalog" / "clusters").glob("*.textproto")):
            text = path.read_text()
            for routing in re.findall(r'routing: "(\w+)"', text):
                if "dgx_superpod" in text:
                    with self.subTest(path.name):
                        self.assertIn(routing, self.routings())


if __name__ == "__main__":
    main()
