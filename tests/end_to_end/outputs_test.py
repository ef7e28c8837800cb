#!/usr/bin/env python3
"""Every command that writes, and what may go wrong with it: full disks, closed streams, signals, names that
are one file, too little memory. docs/reliability.md is what these tests hold: outputs_test.py PATH-TO-STEPSIM.
"""
import contextlib
import fcntl
import gzip
import json
import os
import pathlib
import random
import resource
import signal
import subprocess
import time

import program
from program import INTERRUPTS, SMALL, TIMEOUT_S, StepsimTest, main, stepsim
from writing_commands import INPUTS, WRITING, add_pages, write_inputs

# A trace of half a gigabyte.
LONG_TRACE = ["run", SMALL, "--steps", "20", "--trace-ranks", "0-7"]
# How often a run is killed; scripts/inject_faults.sh has it done more often.
KILLS = int(os.environ.get("STEPSIM_KILLS", "25"))
# From the signal to the end. It is a few milliseconds, and 0.13 s for each GB of memory.
SOON_S = 1.0


class WritingTest(StepsimTest):
    def commands(self):
        """Each command with its outputs, and the files that they are. The last one is written last."""
        write_inputs(self.folder)
        add_pages(program.STEPSIM)

        def at(argument, outputs):
            is_file = argument == "." or argument in outputs or argument in INPUTS
            return str(self.folder / argument) if is_file else argument

        return {name: ([at(argument, outputs) for argument in arguments], outputs)
                for name, (arguments, outputs) in WRITING.items()}

    @contextlib.contextmanager
    def command(self, name):
        """A command and its outputs, in an empty folder."""
        with self.subTest(name):
            for path in self.folder.iterdir():
                path.unlink()
            arguments, outputs = self.commands()[name]
            self.inputs = self.files()
            yield arguments, outputs

    def written(self):
        return [name for name in self.files() if name not in self.inputs]

    def expect_whole(self, outputs):
        self.assertEqual(self.written(), sorted(outputs))
        for name in outputs:
            data = (self.folder / name).read_bytes()
            text = (gzip.decompress(data) if name.endswith(".gz") else data).decode()
            if name.removesuffix(".gz").endswith(".json"):
                json.loads(text)
            self.assertTrue(text.endswith("\n"), name)


class OutputTest(WritingTest):
    def test_what_is_asked_for_is_written(self):
        for name in self.commands():
            with self.command(name) as (arguments, outputs):
                result = stepsim(*arguments)
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                self.assertGreater(len(result.stdout), 20)
                self.expect_whole(outputs)

    def test_a_full_disk_loses_no_report_and_no_older_result(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))

        for name in self.commands():
            with self.command(name) as (arguments, outputs):
                for output in outputs:
                    self.write(output, "older\n")
                # Python ignores SIGXFSZ; what it starts gets it as everyone has it.
                result = stepsim(*arguments, preexec_fn=limit)
                self.assertEqual(result.returncode, 4, result.stderr)
                for name in outputs:
                    self.assertIn(f"stepsim: {self.folder / name}: can't be written: File too large\n",
                                  result.stderr)
                    self.assertEqual((self.folder / name).read_text(), "older\n")
                    self.assertNotIn(str(self.folder / name), result.stdout)
                self.assertGreater(len(result.stdout), 20)
                self.assertEqual(self.written(), sorted(outputs))

    def test_what_fits_is_written(self):
        result = stepsim("run", SMALL, "--trace", "/dev/full", "--json", str(self.folder / "r.json"))
        self.assertEqual(result.returncode, 4)
        self.assertEqual(result.stderr,
                         "stepsim: /dev/full: can't be written: No space left on device\n")
        self.assertIn("step time", result.stdout)
        json.loads((self.folder / "r.json").read_text())

    def test_a_disk_that_is_really_full(self):
        def on_disk(options, *arguments):
            script = 'mount -t tmpfs -o "$1" none "$2" && shift 2 && "$@"; s=$?; ls -A "$D"; exit $s'
            return subprocess.run(
                ["unshare", "-Urm", "sh", "-c", script, "sh", options, str(self.folder),
                 *arguments], capture_output=True, text=True, timeout=TIMEOUT_S,
                env={**os.environ, "D": str(self.folder)})

        if on_disk("size=16k", "true").returncode != 0:
            self.skipTest("no file system can be mounted here")
        trace = str(self.folder / "t.json")
        result = on_disk("size=16k", program.STEPSIM, "run", SMALL, "--trace", trace)
        self.assertEqual(result.returncode, 4)
        self.assertIn("t.json: can't be written: No space left on device", result.stderr)
        self.assertIn("step time", result.stdout)
        self.assertNotIn("partial", result.stdout)
        # No file can be made at all: this is said before the run, and is no problem of the input.
        result = on_disk("nr_inodes=1", program.STEPSIM, *program.LONG, "--trace", trace)
        self.assertEqual((result.returncode, result.stdout), (4, ""))
        self.assertIn("No space left on device", result.stderr)

    def test_standard_output_that_is_full_or_closed_loses_no_file(self):
        for name in self.commands():
            with self.command(name) as (arguments, outputs):
                with open("/dev/full", "wb") as full:
                    result = stepsim(*arguments, stdout=full)
                self.assertEqual(result.returncode, 4)
                self.assertEqual(result.stderr, "stepsim: standard output: can't be written: "
                                 "No space left on device\n")
                self.expect_whole(outputs)
                result = stepsim(*arguments, preexec_fn=lambda: os.close(1))
                self.assertEqual(result.returncode, 4)
                self.assertEqual(result.stderr,
                                 "stepsim: standard output: can't be written: it is closed\n")
                self.expect_whole(outputs)

    def test_closed_standard_error_changes_nothing(self):
        for name in self.commands():
            with self.command(name) as (arguments, outputs):
                result = stepsim(*arguments, preexec_fn=lambda: os.close(2))
                self.assertEqual(result.returncode, 0)
                self.expect_whole(outputs)
        for wrong in (["run", "no-such"], ["no-such"], ["run", SMALL, "--json", "/no/such"]):
            self.assertEqual(stepsim(*wrong, preexec_fn=lambda: os.close(2)).returncode, 2)

    def test_a_reader_that_is_gone_loses_no_file(self):
        for name in self.commands():
            with self.command(name) as (arguments, outputs):
                reader, writer = os.pipe()
                os.close(reader)
                result = stepsim(*arguments, stdout=writer)
                os.close(writer)
                self.assertEqual((result.returncode, result.stderr), (141, ""))
                self.expect_whole(outputs)

    def test_a_pipe_that_does_not_block_gets_everything(self):
        reader, writer = os.pipe()
        fcntl.fcntl(writer, fcntl.F_SETFL, os.O_NONBLOCK)
        process = subprocess.Popen([program.STEPSIM, "formula", "--json", "-"], stdout=writer)
        os.close(writer)
        time.sleep(0.5)  # the pipe is full by now
        with os.fdopen(reader) as file:
            self.assertGreater(len(json.loads(file.read())), 100)
        self.assertEqual(process.wait(TIMEOUT_S), 0)

    def test_a_result_that_is_private_stays_so(self):
        path = self.write("r.json", "older")
        os.chmod(path, 0o600)
        self.assertEqual(stepsim("formula", "E7", "--json", path).returncode, 0)
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)


class StatusTest(WritingTest):
    def test_wrong_input_is_2_for_every_command(self):
        for name in self.commands():
            with self.command(name) as (arguments, _):
                result = stepsim(*arguments, "--no-such-option")
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                self.assertIn("--no-such-option: no such option", result.stderr)
                self.assertEqual(self.written(), [])

    def test_an_answer_of_no_is_1_unless_an_output_failed(self):
        too_much = ["run", "--model", "llama3-70b", "--cluster", "dgx-h100-8", "--plan",
                    "tp=8,microbatch=1,global-batch=8,sequence=8192", "--require-fit"]
        self.assertEqual(stepsim(*too_much).returncode, 1)
        self.assertEqual(stepsim(*too_much, "--json", "/dev/full").returncode, 4)

    def test_help_names_them(self):
        text = stepsim("help").stdout
        for status in ("0 done", "1 the answer is no", "2 the\ninput is wrong", "3 stepsim has a bug",
                       "4 an output could not be written", "130 or 143", "129 SIGHUP",
                       "131 SIGQUIT"):
            self.assertIn(status, text)

    def test_too_little_memory_has_its_own_words(self):
        statuses = set()
        for megabytes in (26, 28, 34, 44, 1000):  # the loader needs 23
            def limit(most=megabytes << 20):
                resource.setrlimit(resource.RLIMIT_AS, (most, most))

            result = stepsim("run", "llama3-70b-dgx-h100-512", "--json",
                             str(self.folder / "r.json"), preexec_fn=limit)
            self.assertIn(result.returncode, (0, 3), result.stderr)
            if result.returncode == 3:
                self.assertTrue(result.stderr.startswith("stepsim: out of memory\n"), result.stderr)
                self.assertEqual(self.files(), [])
            statuses.add(result.returncode)
        self.assertEqual(statuses, {0, 3})


class InterruptTest(WritingTest):
    def start(self, *arguments, ignored=()):
        process = program.started(*arguments, "--quiet", ignored=ignored)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def wait_until(self, condition):
        end = time.monotonic() + 30
        while not condition():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.005)

    def catches(self, process):
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        caught = int(status.split("SigCgt:")[1].split()[0], 16)
        return caught & (1 << (signal.SIGTERM - 1))

    def partials(self):
        return [path for path in self.folder.iterdir() if path.name.endswith(".partial")]

    def partial_bytes(self):
        total = 0
        for path in self.partials():
            with contextlib.suppress(FileNotFoundError):  # removed in between
                total += path.stat().st_size
        return total

    def expect_end(self, process, number, words="interrupted, nothing was written"):
        begin = time.monotonic()
        process.send_signal(number)
        output, error = process.communicate(timeout=TIMEOUT_S)
        self.assertLess(time.monotonic() - begin, SOON_S)
        self.assertEqual(process.returncode, 128 + number, error)
        self.assertEqual(output, b"")
        self.assertEqual(error.decode(), f"stepsim: {words}\n")
        self.assertEqual(self.partials(), [])

    def test_every_command_ends_at_once_and_leaves_nothing(self):
        # The last output is a pipe without a reader, so the command waits when everything else is
        # written under its partial name.
        for name in self.commands():
            with self.command(name) as (arguments, outputs):
                os.mkfifo(self.folder / outputs[-1])
                for number in INTERRUPTS:
                    process = self.start(*arguments)
                    self.wait_until(lambda: self.catches(process))
                    self.wait_until(lambda: len(self.partials()) == len(outputs) - 1)
                    self.expect_end(process, number)
                    self.assertEqual(self.written(), [outputs[-1]])

    def test_a_long_trace_ends_at_once(self):
        for number, name in zip(INTERRUPTS, ["t.json", "t.json.gz"] * 2):
            with self.subTest(name):
                process = self.start(*LONG_TRACE, "--trace", str(self.folder / name))
                self.wait_until(lambda: self.partial_bytes() > 10_000_000)
                self.expect_end(process, number)
                self.assertEqual(self.files(), [])

    def test_setting_up_ends_at_once(self):
        # Neither building a cluster nor lowering a plan nor a search asks whether to go on.
        for arguments, waits_s in (
                (["topology", "dgx-h100-16384"], (0, 0.05)),
                (["schedule", "optimal", "--stages", "8", "--microbatches", "32", "--memory-limit", "5"],
                 (0.05, 0.2)),
                (["run", "llama3-405b-dgx-h100-16384", "--fold", "off"], (0.05, 0.2, 1)),
                (program.LONG, (0.05, 0.2))):
            for wait_s in waits_s:
                with self.subTest(arguments, wait=wait_s):
                    process = self.start(*arguments)
                    self.wait_until(lambda: self.catches(process))
                    time.sleep(wait_s)
                    self.expect_end(process, signal.SIGTERM)

    def test_files_that_were_written_before_stay(self):
        os.mkfifo(self.folder / "zero-memory.svg")
        process = self.start("figures", "bubble", "zero-memory", "--out", str(self.folder))
        self.wait_until((self.folder / "bubble.svg").exists)
        begin = time.monotonic()
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        _, error = process.communicate(timeout=TIMEOUT_S)
        self.assertLess(time.monotonic() - begin, 0.5 + SOON_S)
        self.assertEqual(process.returncode, 143)
        self.assertEqual(error.decode(), "stepsim: interrupted; files that were written before are "
                         "complete\n")
        self.assertEqual(self.files(), ["bubble.svg", "zero-memory.svg"])

    def test_an_ignored_signal_stays_ignored(self):
        process = self.start(*program.LONG, ignored=[signal.SIGHUP])  # as nohup does
        self.wait_until(lambda: self.catches(process))
        process.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        self.assertIsNone(process.poll())
        self.expect_end(process, signal.SIGTERM)

    def test_a_dead_process_leaves_a_file_that_the_next_one_removes(self):
        trace = str(self.folder / "t.json")
        dead = self.start(*LONG_TRACE, "--trace", trace)
        self.wait_until(lambda: self.partial_bytes() > 1_000_000)
        dead.kill()
        dead.wait(TIMEOUT_S)
        left = self.partials()
        self.assertEqual(len(left), 1)
        living = self.start(*LONG_TRACE, "--trace", trace)
        self.wait_until(lambda: self.partials() != left and self.partial_bytes() > 1_000_000)
        of_living = self.partials()
        self.assertEqual(len(of_living), 1)
        # Another file in the same folder: what the living process writes stays.
        other = stepsim("run", SMALL, "--trace", str(self.folder / "other.json"))
        self.assertEqual(other.returncode, 0, other.stderr)
        self.assertEqual(self.partials(), of_living)
        self.expect_end(living, signal.SIGTERM)
        self.assertEqual(self.files(), ["other.json"])

    def test_killed_at_any_instant_files_are_whole_or_older(self):
        trace, result = self.folder / "t.json", self.folder / "r.json"
        arguments = ["run", SMALL, "--trace", str(trace), "--json", str(result)]
        begin = time.monotonic()
        self.assertEqual(stepsim(*arguments).returncode, 0)
        span_s = 1.2 * (time.monotonic() - begin)
        instants, new = random.Random(KILLS), 0
        whole = {path: self.content(path) for path in (trace, result)}
        for _ in range(KILLS):
            for path in whole:
                path.write_text("older\n")
            process = self.start(*arguments)
            time.sleep(instants.uniform(0, span_s))
            process.kill()
            process.wait(TIMEOUT_S)
            for path, content in whole.items():
                self.assertIn(self.content(path), ("older\n", content))
            new += self.content(trace) != "older\n"
            # A run that gets so far as to write removes what the one before it left.
            self.assertLessEqual(len(self.partials()), 2)
        print(f"{KILLS} times killed within {span_s:.3f} s, {new} times after the files appeared")
        self.assertEqual(stepsim(*arguments).returncode, 0)
        self.assertEqual(self.files(), ["r.json", "t.json"])

    def content(self, path):
        return path.read_text().partition('"simulator"')[0]


class NameTest(WritingTest):
    TWO = {
        "run": (["run", SMALL], "--trace", "--json"),
        "schedule": (["schedule", "1f1b", "--stages", "2", "--microbatches", "4"], "--trace",
                     "--json"),
        "collective": (["collective", "all-reduce", "--cluster", "dgx-h100-8", "--bytes", "1MiB"],
                       "--json", "--plot"),
        "topology": (["topology", "dgx-h100-8"], "--dot", "--json"),
    }

    def test_two_outputs_are_two_files(self):
        (self.folder / "in").mkdir()
        (self.folder / "to_in").symlink_to("in")
        (self.folder / "dangling").symlink_to("in/later")
        self.write("there", "older")
        os.link(self.folder / "there", self.folder / "hard")
        (self.folder / "soft").symlink_to("there")
        at = f"{self.folder}/"
        pairs = [("a", "a"), ("a", "./a"), ("in/a", "to_in/a"), ("in/a", "in/../to_in/a"),
                 ("a", "A"), ("dangling", "in/later"), ("there", "soft"), ("there", "hard"),
                 ("hard", "soft")]
        for name, (arguments, first, second) in self.TWO.items():
            for one, other in pairs + [(b, a) for a, b in pairs]:
                with self.subTest(name, pair=(one, other)):
                    self.expect_refused([*arguments, first, at + one, second, at + other],
                                        f'{second}: must be another file than {first} '
                                        f'("{at + one}"), is "{at + other}"')
        self.assertEqual((self.folder / "there").read_text(), "older")
        done = stepsim("run", SMALL, "--trace", at + "soft", "--json", at + "b")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_devices_take_any_number_of_outputs(self):
        done = stepsim("run", SMALL, "--trace", "/dev/null", "--json", "/dev/null")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_an_output_is_not_the_file_of_standard_output(self):
        for option in (str(self.folder / "out.json"), "/dev/stdout"):
            with open(self.folder / "out.json", "w") as output:
                result = stepsim("run", SMALL, "--json", option, stdout=output)
            self.assertEqual(result.returncode, 2)
            self.assertIn("--json: must be another file than standard output goes to",
                          result.stderr)

    def test_a_link_to_nothing_is_written_through(self):
        (self.folder / "in").mkdir()
        link = self.folder / "link.json"
        link.symlink_to("in/target.json")
        self.assertEqual(stepsim("formula", "E7", "--json", str(link)).returncode, 0)
        self.assertTrue(link.is_symlink())
        json.loads((self.folder / "in" / "target.json").read_text())
        self.assertEqual(os.listdir(self.folder / "in"), ["target.json"])

    def test_links_without_an_end_are_refused(self):
        (self.folder / "a").symlink_to("b")
        (self.folder / "b").symlink_to("a")
        (self.folder / "away").symlink_to("none/x")
        self.expect_refused(["formula", "E7", "--json", str(self.folder / "a")],
                            "Too many levels of symbolic links")
        self.expect_refused(["formula", "E7", "--json", str(self.folder / "away")],
                            f"no such folder: {self.folder}/none")

    def test_names_are_as_long_as_the_file_system_allows(self):
        for length in (250, 255):
            name = "a" * (length - 5) + ".json"
            self.assertEqual(
                stepsim("formula", "E7", "--json", str(self.folder / name)).returncode, 0)
            self.assertEqual(self.files(), [name])
            (self.folder / name).unlink()
        self.expect_refused([*program.LONG, "--json", str(self.folder / ("a" * 251 + ".json"))],
                            "File name too long")


if __name__ == "__main__":
    main()
