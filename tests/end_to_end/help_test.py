#!/usr/bin/env python3
"""Help, and what is not a subcommand, as a person runs it: help_test.py PATH-TO-STEPSIM."""
import signal
import time

from program import LONG, SMALL, StepsimTest, TIMEOUT_S, main, on_terminal, read_all, stepsim


class HelpTest(StepsimTest):
    def test_says_what_it_is(self):
        for arguments in ([], ["help"], ["--help"]):
            result = stepsim(*arguments)
            self.assertEqual(result.returncode, 0)
            self.assertIn("stepsim run EXPERIMENT", result.stdout)
        self.assertRegex(stepsim("--version").stdout, r"^stepsim \d+\.\d+\.\d+\n$")

    def test_every_subcommand_has_help(self):
        for arguments in (["help", "run"], ["run", "--help"]):
            self.assertIn("--attention-flops", stepsim(*arguments).stdout)
        for arguments in (["help", "catalog"], ["catalog", "--help"]):
            self.assertIn("stepsim catalog KIND NAME", stepsim(*arguments).stdout)
        for arguments in (["help", "formula"], ["formula", "--help"]):
            self.assertIn("stepsim formula E7 B=48000", stepsim(*arguments).stdout)

    def test_a_misspelt_subcommand_gets_a_suggestion(self):
        self.expect_refused(["runn", SMALL], "runn: no such subcommand; did you mean run?")


class TerminalTest(StepsimTest):
    def test_colours_are_for_terminals_without_no_color(self):
        process, controller = on_terminal("run", SMALL, environment={"NO_COLOR": ""})
        self.assertIn("\x1b[", read_all(controller))
        self.assertEqual(process.wait(TIMEOUT_S), 0)
        process, controller = on_terminal("run", SMALL, environment={"NO_COLOR": "1"})
        self.assertNotIn("\x1b[", read_all(controller))
        self.assertEqual(process.wait(TIMEOUT_S), 0)

    def test_long_runs_show_how_far_they_are(self):
        process, controller = on_terminal(*LONG)
        time.sleep(4)
        process.send_signal(signal.SIGINT)
        text = read_all(controller)
        self.assertRegex(text, r" \d+ %  simulated ")
        self.assertEqual(process.wait(TIMEOUT_S), 130)


if __name__ == "__main__":
    main()
