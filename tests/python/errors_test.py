#!/usr/bin/env python3
"""Bad input raises InputError with the problems that the command line lists."""
import unittest

import stepsim
import support
from support import PLAN, SMALL, problems

FLAGS = ["--model", "llama3-8b", "--cluster", "dgx-h100-8"]
GOOD = {"tp": 2, "dp": 4, "microbatch": 1, "global_batch": 64, "sequence": 8192}
# A small config of Hugging Face, as a dict.
CONFIG = {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 1024,
          "intermediate_size": 2816, "num_attention_heads": 16, "num_key_value_heads": 8,
          "vocab_size": 32000, "tie_word_embeddings": False}


class ErrorsTest(unittest.TestCase):
    def refused(self, call, *arguments):
        """Both refuse it, for the same reasons."""
        with self.assertRaises(stepsim.InputError) as caught:
            call()
        self.assertEqual([str(problem) for problem in caught.exception.problems],
                         problems(*arguments))
        return caught.exception.problems

    def test_every_problem_at_once(self):
        found = self.refused(
            lambda: stepsim.run(SMALL, plan={"tp": 3, "zero": 3}, set={
                "cluster.chip.memory_bandwidth": "3350MB"}, fidelity="flows"),
            "run", SMALL, "--plan", "tp=3,zero=3", "--set",
            "cluster.chip.memory_bandwidth=3350MB", "--fidelity", "flows")
        self.assertGreater(len(found), 3)
        self.assertTrue(all(problem.field and problem.message for problem in found))

    def test_nothing_given(self):
        self.refused(stepsim.run, "run", "--fold", "on")

    def test_unknown_options(self):
        self.refused(lambda: stepsim.run(SMALL, fidelty="flow"), "run", SMALL, "--fidelty=flow")
        self.refused(lambda: stepsim.search(SMALL, tops=3), "search", SMALL, "--tops=3")

    def test_other_functions(self):
        self.refused(lambda: stepsim.collective("all-red", cluster="dgx-h100-9", bytes="1MB"),
                     "collective", "all-red", "--cluster", "dgx-h100-9", "--bytes", "1MB")
        self.refused(lambda: stepsim.schedule("1f1b", stages=0, microbatches=2), "schedule", "1f1b",
                     "--stages", "0", "--microbatches", "2")
        self.refused(lambda: stepsim.serve(requests="poisson:rate=-1"), "serve", "--requests",
                     "poisson:rate=-1")
        self.refused(lambda: stepsim.goodput(SMALL, failures="none"), "goodput", SMALL,
                     "--failures", "none")
        self.refused(lambda: stepsim.formula("E7", B=1), "formula", "E7", "B=1")
        self.refused(lambda: stepsim.validate("no such"), "validate", "no such")

    def test_parts_are_checked_at_once(self):
        with self.assertRaises(stepsim.InputError) as caught:
            stepsim.Plan(tpp=2, zero=7, recompute="much")
        fields = [problem.field for problem in caught.exception.problems]
        self.assertEqual(len(fields), 3, fields)
        with self.assertRaisesRegex(stepsim.InputError, "no such model|llama3"):
            stepsim.Model("llama3-9b")
        with self.assertRaisesRegex(stepsim.InputError, "layers"):
            stepsim.Model("llama3-8b", layers=-1)
        with self.assertRaisesRegex(stepsim.InputError, "^cluster.json: cluster.chips: "):
            stepsim.Cluster("dgx-h100-8", chips={"memory": "1GB"})
        with self.assertRaises(TypeError):
            stepsim.run(model=7, cluster="dgx-h100-8", plan=PLAN)

    def test_parts_can_be_changed(self):
        plan = stepsim.Plan(**GOOD)
        self.assertEqual(plan.replace(tp=4, dp=2).tp, 4)
        self.assertEqual(plan, stepsim.Plan(**GOOD))
        self.assertEqual(eval(repr(plan), {"Plan": stepsim.Plan}), plan)
        with self.assertRaisesRegex(AttributeError, "zero"):
            plan.zero

    def test_a_config_of_hugging_face(self):
        class Config:
            model_type = "llama"

            def to_dict(self):
                return {**CONFIG, "_name_or_path": "lab/tiny"}

        plan = {"dp": 8, "microbatch": 1, "global_batch": 64, "sequence": 2048}
        step = stepsim.run(model=Config(), cluster="dgx-h100-8", plan=plan)
        self.assertEqual(step.experiment.model.layers, 2)
        self.assertEqual(step.experiment.model.name, "tiny")
        same = stepsim.run(model=stepsim.Model(huggingface=CONFIG, name="tiny"),
                           cluster="dgx-h100-8", plan=plan)
        self.assertEqual(same.step_time_s, step.step_time_s)
        with self.assertRaisesRegex(stepsim.InputError, "hidden_size"):
            stepsim.Model(huggingface={**CONFIG, "hidden_size": -5})

    def test_no_answer(self):
        with self.assertRaisesRegex(stepsim.NoAnswer, "never all answered"):
            stepsim.serve(requests={"kind": "burst", "count": 2, "input": 5, "output": 10},
                          step_time="10ms", engine={"budget": 10, "chunked_prefill": False,
                                                    "kv_blocks": 2, "block": 10})

    def test_a_graph_that_waits_for_itself(self):
        graph = stepsim.OpGraph(ranks=2)
        for rank, other in ((graph[0], 1), (graph[1], 0)):
            arrived = rank.receive(other, 1024)
            rank.send(other, 1024, after=[arrived])
        with self.assertRaisesRegex((stepsim.InputError, stepsim.NoAnswer), "receive from 1"):
            stepsim.run(graph, cluster="dgx-h100-8")

    def test_outputs_that_cannot_be_written(self):
        with self.assertRaises(stepsim.InputError) as caught:
            stepsim.run(SMALL).trace("/nowhere/t.json")
        self.assertIn("--trace", caught.exception.problems[0].field)


if __name__ == "__main__":
    support.main()
