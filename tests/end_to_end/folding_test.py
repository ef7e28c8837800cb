#!/usr/bin/env python3
"""A folded run prints what the run of all ranks prints: experiments of the catalog, as they are and with a straggler,
a slow link and a failed link. Takes the path of the stepsim binary."""
import json
import subprocess
import sys
import unittest

STEPSIM = sys.argv.pop(1)

# Experiments of the catalog whose ranks can all be simulated in a few seconds, and their classes.
CLASSES = {
    "llama3-8b-dgx-h100-8": 1,
    "mixtral-8x7b-dgx-h100-64": 8,
    "llama3-70b-v5p-4x4x8": 1,
    "llama3-70b-tp8-dgx-h100-512": 4,
}
SMALL = "mixtral-8x7b-dgx-h100-64"


def run(*arguments):
    done = subprocess.run([STEPSIM, "run", *arguments, "--json", "-"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


class Folding(unittest.TestCase):
    def compare(self, *arguments):
        """Returns how the run was folded."""
        folded, whole = (run(*arguments, "--fold", fold) for fold in ("on", "off"))
        simulator = folded.pop("simulator")
        self.assertEqual(whole.pop("simulator")["folding"]["why_not"], "it was not asked for")
        self.assertEqual(folded, whole)
        return simulator["folding"]

    def test_experiments_of_the_catalog(self):
        for name, classes in CLASSES.items():
            with self.subTest(name):
                folding = self.compare(name)
                self.assertNotIn("why_not", folding)
                self.assertEqual(folding["classes"], classes)
                self.assertEqual(folding["factor"], folding["ranks"] / classes)
                self.assertEqual(folding["roles"] + folding["variations"] + folding["places"], classes)

    def test_one_straggler(self):
        folding = self.compare(SMALL, "--set", "variation.straggler[0].rank=13", "--set", "variation.straggler[0].slowdown=1.3")
        self.assertEqual(folding["variations"], 1)

    def test_one_slow_link(self):
        self.compare(SMALL, "--set", "cluster.faults.links[0].link=node3.gpu2>su0.leaf2",
                     "--set", "cluster.faults.links[0].capacity=0.5")

    def test_one_failed_link(self):
        self.compare(SMALL, "--set", "cluster.faults.links[0].link=su0.leaf0>spine0",
                     "--set", "cluster.faults.links[0].down=true")

    def test_what_cant_be_folded_is_said(self):
        for arguments in (["--granularity", "stepped"], ["--set", "variation.jitter=0.01"]):
            folding = run("llama3-8b-dgx-h100-8", *arguments)["simulator"]["folding"]
            self.assertEqual(folding["classes"], 8)
            self.assertIn("why_not", folding)

    def test_a_wrong_value_is_refused(self):
        done = subprocess.run([STEPSIM, "run", SMALL, "--fold", "some"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn('--fold: must be on or off, is "some"', done.stderr)


if __name__ == "__main__":
    unittest.main()
