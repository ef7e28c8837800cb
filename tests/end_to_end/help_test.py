#!/usr/bin/env python3
"""Help, and what is not a subcommand, as a person runs it: help_test.py PATH-TO-STEPSIM."""
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

from program import LONG, SMALL, StepsimTest, TIMEOUT_S, main, on_terminal, read_all, started, stepsim

ZSH_COMPLETIONS = os.path.join(os.path.dirname(__file__), "zsh_completions.zsh")


def overview_section(title):
    """The lines of a section of the overview, as lists of words: [["stepsim", "run", ...], ...]."""
    section = stepsim().stdout.split(f"\n{title}:\n")[1].split("\n\n")[0]
    return [line.split() for line in section.splitlines()]


def subcommands():
    return [words[1] for words in overview_section("Usage") if not words[1].startswith("-")]


class HelpTest(StepsimTest):
    def test_says_what_it_is(self):
        for arguments in ([], ["help"], ["--help"], ["-h"]):
            result = stepsim(*arguments)
            self.assertEqual(result.returncode, 0)
            self.assertIn("stepsim run EXPERIMENT", result.stdout)
        self.assertRegex(stepsim("--version").stdout, r"^stepsim \d+\.\d+\.\d+\n$")

    def test_every_subcommand_has_help_wherever_it_is_asked_for(self):
        names = subcommands()
        self.assertIn("run", names)
        self.assertIn("help", names)
        for name in names:
            with self.subTest(name):
                text = stepsim("help", name).stdout
                self.assertTrue(text.startswith(f"stepsim {name} "), text)
                self.assertEqual(stepsim("-h", name).stdout, text)
                self.assertIn(f"  stepsim {name} ", text.split("Usage:\n")[1])
                for arguments in (["--help"], ["-h"], ["some", "words", "-h"], ["--none", "--help"]):
                    result = stepsim(name, *arguments)
                    self.assertEqual((result.returncode, result.stdout), (0, text))

    def test_options_are_listed_with_help_among_them(self):
        text = stepsim("help", "run").stdout
        self.assertIn("--attention-flops", text)
        self.assertIn("-h [ --help ]", text)
        self.assertIn("stepsim formula E7 B=48000", stepsim("formula", "-h").stdout)

    def test_every_topic_has_a_text(self):
        for words in overview_section("Topics"):
            with self.subTest(words):
                result = stepsim(*words[1:3])
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertNotEqual(result.stdout, "")
        self.assertIn("GiB is 2^30", stepsim("help", "units").stdout)

    def test_every_subcommand_has_a_man_page(self):
        for name in ["", *subcommands()]:
            with self.subTest(name):
                page = stepsim("help", "man", *[name] if name else []).stdout
                self.assertTrue(page.startswith(".TH STEPSIM"), page)
                if shutil.which("groff"):
                    drawn = subprocess.run(["groff", "-man", "-ww", "-Tascii"], input=page, text=True,
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                    self.assertEqual(drawn.stderr, "")
                    self.assertIn("stepsim", drawn.stdout)
        self.assertIn(r"\fB\-\-require\-fit\fR", stepsim("help", "man", "run").stdout)
        self.expect_refused(["help", "man", "runn"], "did you mean run?")

    def test_bash_completes(self):
        script = stepsim("help", "completion").stdout
        self.assertEqual(script, stepsim("help", "completion", "bash").stdout)
        for typed, expected in ((["sea"], "search"), (["run", "--fid"], "--fidelity"),
                                (["run", "--fidelity", "pa"], "packet"),
                                (["run", "llama3-8b-dgx"], SMALL),
                                (["search", "--model", "llama3-7"], "llama3-70b"),
                                (["run", "--fidelity", "="], "packet"),
                                (["run", "--fidelity", "=", "pa"], "packet"),
                                (["import", "kin"], "kineto"),
                                (["schedule", "dualpipev"], "dualpipev")):
            words = " ".join(f"'{word}'" for word in ["stepsim", *typed])
            ask = (f"{script}\nCOMP_WORDS=({words})\nCOMP_CWORD={len(typed)}\n_stepsim\n"
                   'printf "%s\\n" "${COMPREPLY[@]}"\n')
            answer = subprocess.run(["bash", "-u"], input=ask, text=True, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE)
            self.assertEqual(answer.stderr, "")
            self.assertIn(expected, answer.stdout.split(), typed)
        self.expect_refused(["help", "completion", "fish"], "fish: stepsim help completion takes one")

    def zsh_offers(self, folder, typed):
        """What zsh offers at TAB, in a terminal of its own."""
        asked = subprocess.run(["zsh", "-f", ZSH_COMPLETIONS, folder, typed], text=True, timeout=120,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.assertEqual((asked.returncode, asked.stderr), (0, ""), typed)
        return asked.stdout.split()

    def test_zsh_completes(self):
        script = stepsim("help", "completion", "zsh").stdout
        self.assertTrue(script.startswith("#compdef stepsim\n"))
        if not shutil.which("zsh"):
            self.skipTest("zsh is not installed: scripts/install_dependencies.sh --with-tests")
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "_stepsim"), "w", encoding="utf-8") as file:
                file.write(script)
            for typed, expected in (("stepsim ru", ["run"]),
                                    ("stepsim run --fid", ["--fidelity"]),
                                    ("stepsim run --fidelity pa", ["packet"]),
                                    ("stepsim run --fidelity=pa", ["packet"]),
                                    ("stepsim run llama3-8b-dgx", [SMALL]),
                                    ("stepsim search --model=llama3-7", ["llama3-70b"]),
                                    ("stepsim search --quiet --model llama3-7", ["llama3-70b"]),
                                    ("stepsim import kin", ["kineto"]),
                                    ("stepsim help calib", ["calibrate"]),
                                    ("stepsim schedule dualpipev", ["dualpipev"])):
                self.assertEqual(self.zsh_offers(folder, typed), expected, typed)
            offered = self.zsh_offers(folder, "stepsim ")
            self.assertLess(set(subcommands()) - {"help"}, set(offered))

    def test_a_misspelt_word_gets_a_suggestion(self):
        self.expect_refused(["runn", SMALL], "runn: no such subcommand; did you mean run?")
        self.expect_refused([SMALL], f"{SMALL}: no such subcommand: {SMALL} is an experiment. Type: "
                            f"stepsim run {SMALL}")
        self.expect_refused(["llama3-8b"], "llama3-8b is a model. Type: stepsim run --model llama3-8b "
                            "--cluster CLUSTER --plan KEYS")
        self.expect_refused(["my.textproto"], "type: stepsim run my.textproto")
        self.expect_refused(["help", "unit"], "unit: no such subcommand or topic; did you mean units?")
        self.expect_refused(["run", SMALL, "--hepl"], "--hepl: no such option; did you mean --help?")
        self.expect_refused(["help", "run", "fast"], "fast: stepsim help run takes no more words")


class OutputNameTest(StepsimTest):
    """A name that ends like another format is refused before anything runs."""

    COMMANDS = {
        ("run", SMALL): ("--json", "--trace"),
        ("schedule", "1f1b", "--stages", "4", "--microbatches", "8"): ("--json", "--trace"),
        ("collective", "all-reduce", "--cluster", "dgx-h100-8", "--sweep", "1KiB:2KiB"):
            ("--json", "--plot"),
        ("topology", "dgx-h100-8"): ("--json", "--dot"),
        ("formula", "E7"): ("--json",),
        ("validate", "S3"): ("--json",),
        ("serve", "--requests", "burst:count=1,input=1,output=1", "--step-time", "1ms"):
            ("--json", "--trace"),
    }
    SUFFIXES = {"--json": ".json or .json.gz", "--trace": ".json or .json.gz", "--plot": ".svg",
                "--dot": ".dot or .gv"}

    def suffixes(self, subcommand, option):
        if option == "--trace" and subcommand != "serve":
            return ".json, .json.gz or .pftrace"
        return self.SUFFIXES[option]

    def test_another_format_is_refused(self):
        for command, options in self.COMMANDS.items():
            for option in options:
                for suffix in (".png", ".svgz", ".csv"):
                    path = str(self.folder / ("x" + suffix))
                    accepted = self.suffixes(command[0], option)
                    with self.subTest(f"{command[0]} {option} {suffix}"):
                        self.expect_refused([*command, option, path],
                                            f'{option}: must end in {accepted}, is "{path}"')

    def test_a_folder_of_pictures_is_no_picture(self):
        for command in (["validate", "S3", "--plot"], ["figures", "bubble", "--out"]):
            with self.subTest(command[0]):
                path = str(self.folder / "x.png")
                self.expect_refused([*command, path],
                                    f'{command[-1]}: must be a folder, not a file; is "{path}"')

    def test_names_of_the_right_format_and_names_without_a_suffix_are_taken(self):
        for name in ("a.json", "b.JSON", "c.v2.json.gz", "d"):
            with self.subTest(name):
                result = stepsim("formula", "E7", "--json", str(self.folder / name))
                self.assertEqual(result.returncode, 0, result.stderr)


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

    def errors_of_a_long_run(self, *options):
        process = started(*LONG, *options)
        time.sleep(4)
        process.send_signal(signal.SIGINT)
        return process.communicate(timeout=TIMEOUT_S)[1].decode()

    def test_without_a_terminal_long_work_says_at_once_how_long(self):
        text = self.errors_of_a_long_run()
        self.assertEqual(len(re.findall(r"simulated .* of [\d.]+ [GM] ops, about \d+ s left\n", text)), 1, text)
        self.assertNotIn("\r", text)

    def test_quiet_runs_show_no_progress(self):
        self.assertEqual(self.errors_of_a_long_run("--quiet"), "stepsim: interrupted, nothing was written\n")


if __name__ == "__main__":
    main()
