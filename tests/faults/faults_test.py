#!/usr/bin/env python3
"""Makes memory and the system fail under stepsim, at every n-th call of it, and judges what comes out.

    faults_test.py STEPSIM FAULT_INJECTION.so [--every N [--offset K]] [--commands NAME,...]
        [--kinds KIND,...]

fault_injection.cc says what can fail and how. Each failure must end with the right status and the right
words, every output must be the older one or the whole new one, and nothing may be left behind. --every N
tries the first 50 calls and every N-th of the others, from the K-th on, of the large commands every
10 N-th; 1 tries all.
"""
import argparse
import collections
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "end_to_end"))
from writing_commands import INPUTS, PRINTING, WRITING, add_pages, write_inputs

COMMANDS = {}  # filled by main()
# These allocate 200,000 times, or take long. Of a sample they get a tenth.
LARGE = ["figures", "catalog", "sensitivity", "run html"]
KINDS = ["memory", "memory-gone", "call", "call-gone", "call-part"]
DENSE = 50
OLDER = b"older\n"
REASONS = ["No space left on device", "Input/output error", "Too many open files"]


def without_times(data):
    """What is the same in each run: of a page all."""
    if data.startswith(b"<!doctype html>"):
        return data
    data = data.partition(b'"simulator"')[0]
    return re.sub(rb".*(simulated in| events).* [-0-9.e]+ s.*", b"", data)


class Trial:
    """One command in a folder of its own, run again and again."""

    def __init__(self, stepsim, name, scratch):
        self.stepsim = stepsim
        self.arguments, self.outputs = COMMANDS[name]
        self.folder = pathlib.Path(scratch) / name.replace(" ", "-")
        self.folder.mkdir()
        write_inputs(self.folder)
        self.out = open(self.folder.with_suffix(".out"), "a+b")
        self.err = open(self.folder.with_suffix(".err"), "a+b")
        self.start({}).wait()
        self.whole = {file: without_times((self.folder / file).read_bytes()) for file in self.outputs}
        self.report = without_times(self.read(self.out))
        self.expected_files = sorted([*INPUTS, *self.outputs])
        self.state_of_older = {}
        assert self.report and not self.read(self.err), "it must succeed without failures"
        self.restore()

    def start(self, environment, descriptors=()):
        return subprocess.Popen([self.stepsim, *self.arguments], stdout=self.out, stderr=self.err,
                                cwd=self.folder, env={**os.environ, **environment},
                                pass_fds=descriptors)

    def read(self, file):
        if os.fstat(file.fileno()).st_size == 0:
            return b""
        file.seek(0)
        return file.read()

    def state(self, file):
        state = os.stat(self.folder / file)
        return state.st_ino, state.st_mtime_ns, state.st_size

    def restore(self):
        for stream in (self.out, self.err):
            if os.fstat(stream.fileno()).st_size > 0:
                os.ftruncate(stream.fileno(), 0)
        for file in self.outputs:
            if self.state_of_older.get(file) != self.state(file):
                (self.folder / file).write_bytes(OLDER)
                self.state_of_older[file] = self.state(file)

    def problem_of(self, kind, call, status):
        """What is wrong with the end of a run, or "" and how it ended."""
        if not os.WIFEXITED(status):
            return f"killed by {signal.Signals(os.WTERMSIG(status)).name}", ""
        code = os.WEXITSTATUS(status)
        output, errors = without_times(self.read(self.out)), self.read(self.err).decode()
        new = 0
        for file in self.outputs:
            if self.state(file) == self.state_of_older[file]:
                continue
            new += 1
            if without_times((self.folder / file).read_bytes()) != self.whole[file]:
                return f"{file} is neither the older nor the new one", ""
        if sorted(os.listdir(self.folder)) != self.expected_files:
            return f"left behind: {os.listdir(self.folder)}", ""
        check = {0: self.problem_of_done, 2: self.problem_of_input, 3: self.problem_of_memory,
                 4: self.problem_of_output}.get(code)
        if check is None:
            return f"status {code}", ""
        return check(kind, output, errors, new), str(code)

    def problem_of_done(self, _, output, errors, new):
        if new < len(self.outputs) or errors:
            return "status 0, and not all was written"
        return "" if output == self.report else "status 0 without the whole report"

    def problem_of_input(self, kind, output, errors, new):
        if kind.startswith("memory"):
            return "too little memory is no wrong input"
        if output or new or not re.match(r"stepsim: (a problem|\d+ problems) in", errors):
            return "status 2 and not as it should be"
        return "" if any(reason in errors for reason in REASONS) else "the reason is not said"

    def problem_of_memory(self, kind, output, errors, _):
        if not kind.startswith("memory"):
            return "a failed call is no mistake of the program"
        if not errors.startswith("stepsim: out of memory\n"):
            return "status 3 without the words"
        return "" if self.report.startswith(output) else "another report"

    def problem_of_output(self, kind, output, errors, new):
        reasons = ["out of memory"] if kind.startswith("memory") else REASONS
        for line in errors.splitlines():
            if not re.fullmatch(rf"stepsim: .*: can't be written: ({'|'.join(reasons)})", line):
                return "status 4 without the words"
        if not errors:
            return "status 4 without a word"
        if not output and not new and kind.startswith("call"):
            return ""  # said before the run
        if "standard output" in errors:
            return "" if self.report.startswith(output) else "another report"
        # A report says which files there are.
        lines = set(output.splitlines())
        missing = [line.decode() for line in self.report.splitlines() if line not in lines]
        return "" if all(any(file in line for file in self.outputs) for line in missing) else "no report"

    def try_all(self, kind, every, offset):
        """Every failure of `kind`; returns how often it ended how, and what is wrong."""
        reports, report = os.pipe()
        answer, answers = os.pipe()
        process = self.start(
            {"STEPSIM_FAULTS": f"{kind} {report} {answer} {every} {offset} {DENSE}",
             "LD_PRELOAD": LIBRARY}, (report, answer))
        os.close(report)
        os.close(answer)
        ends, wrong = collections.Counter(), collections.defaultdict(list)
        with os.fdopen(reports) as lines, os.fdopen(answers, "wb", buffering=0) as answers:
            for line in lines:
                number, call, status = line.split()
                if call != "none":
                    problem, end = self.problem_of(kind, call, int(status))
                    ends[end or "wrong"] += 1
                    if problem:
                        said = self.read(self.err).decode()[:300].strip()
                        wrong[f"{call}: {problem}\n{said}"].append(number)
                self.restore()
                answers.write(b".")
        if process.wait() != 0:
            wrong[f"ended with {process.returncode}: {self.read(self.err).decode()}"].append("all")
        self.restore()
        return ends, wrong


def main():
    global LIBRARY
    parser = argparse.ArgumentParser()
    parser.add_argument("stepsim")
    parser.add_argument("library")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--offset", type=int, default=0)
    parser.add_argument("--commands", default="")
    parser.add_argument("--kinds", default=",".join(KINDS))
    arguments = parser.parse_args()
    LIBRARY = os.path.abspath(arguments.library)
    add_pages(os.path.abspath(arguments.stepsim))
    COMMANDS.update(WRITING | PRINTING)
    total, failed = 0, 0
    memory = "/dev/shm"  # where there is no disk to wait for
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as scratch:
        for name in (arguments.commands.split(",") if arguments.commands else COMMANDS):
            trial = Trial(os.path.abspath(arguments.stepsim), name, scratch)
            every = 10 * arguments.every if name in LARGE and arguments.every > 1 else arguments.every
            for kind in arguments.kinds.split(","):
                begin = time.monotonic()
                ends, wrong = trial.try_all(kind, every, arguments.offset % every)
                counts = ", ".join(f"{ends[end]} x {end}" for end in sorted(ends))
                print(f"{name:14} {kind:12} {sum(ends.values()):6} failures: {counts}  "
                      f"({time.monotonic() - begin:.1f} s)", flush=True)
                for what, numbers in wrong.items():
                    print(f"  {len(numbers)} x {what}\n  at {' '.join(numbers[:5])} ... {numbers[-1]}")
                total += sum(ends.values())
                failed += ends["wrong"] + (1 if wrong else 0)
    print(f"{total} failures, {failed} wrong")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
