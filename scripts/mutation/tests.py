"""The tests that mutations have to get past, in the order in which they run."""
import dataclasses
import json
import os
import subprocess
import sys

from .build import BUILD, HOME, TREE, WORK, digest, run

SLOW_S = 0.3  # tests that take longer run after the others
# Not about what the rooms do; in need of a second build; about the instants of signals.
LEFT_OUT = {"layering", "one_definition", "format", "mutation", "debug_equals_release", "cli_outputs"}


@dataclasses.dataclass
class Stage:
    """Tests that run together: some of a GoogleTest binary, or one test of the finished program."""
    name: str
    binary: str  # of the build
    command: list  # BINARY stands for the binary
    wall_s: float = 0
    cpu_s: float = 0

    def run(self, binary, memory_gb, extra_s=3600):
        """Runs it for at most `extra_s` more than five times the processor time that it takes unchanged."""
        command = [str(binary) if word == "BINARY" else word for word in self.command]
        return run(command, BUILD / "tests", 5 * self.cpu_s + extra_s, 10 * self.wall_s + 5 * extra_s, memory_gb)


class Tests:
    """The stages of each binary, with the times that they take when nothing is mutated. A binary is built and
    measured when it is first needed."""

    def __init__(self, build, memory_gb):
        self.build, self.memory_gb = build, memory_gb
        self.program = next(name for name in build.links if os.path.basename(name) == "stepsim")
        self.binaries = [name for name in build.links if name.startswith("tests/") and name.endswith("_test")]
        self.file = HOME / "baseline.json"
        self.kept = json.loads(self.file.read_text()) if self.file.exists() else {}
        self.stages = {}  # by binary

    def of(self, room):
        """Yields the stages for a mutation of this room, in the order in which they run."""
        own = f"tests/{room}_test"
        self._prepare([own])
        yield from self.stages[own]
        self._prepare([*self.binaries, self.program])
        others = [stage for binary in self.binaries if binary != own for stage in self.stages[binary]]
        yield from sorted(others, key=lambda stage: ("slow" in stage.name, stage.wall_s))
        yield from sorted(self.stages[self.program], key=lambda stage: stage.wall_s)

    def _prepare(self, binaries):
        missing = [binary for binary in binaries if binary not in self.stages]
        if missing:
            self.build.make(missing)
        for binary in missing:
            stamp = [(BUILD / binary).stat().st_mtime_ns, self._scripts() if binary == self.program else ""]
            if self.kept.get(binary, {}).get("stamp") != stamp:
                measure = self._measure_program if binary == self.program else self._measure
                self.kept[binary] = {"stamp": stamp, "stages": measure(binary)}
                self.file.write_text(json.dumps(self.kept, indent=1))
            self.stages[binary] = [Stage(**stage) for stage in self.kept[binary]["stages"]]

    def _measured(self, stage):
        ran = stage.run(BUILD / stage.binary, self.memory_gb)
        if ran.how:
            print(f"{stage.name} fails without a mutation ({ran.how}):\n{ran.output[-3000:]}", file=sys.stderr)
            sys.exit(2)
        stage.wall_s, stage.cpu_s = ran.wall_s, ran.cpu_s
        print(f"  {stage.name}: {ran.wall_s:.1f} s", flush=True)
        return dataclasses.asdict(stage)

    def _measure(self, binary):
        WORK.mkdir(exist_ok=True)
        report = WORK / "report.json"
        name = os.path.basename(binary)
        self._measured(Stage(name, binary, ["BINARY", "--gtest_brief=1", f"--gtest_output=json:{report}"]))
        cases = [(f"{suite['name']}.{case['name']}", float(case["time"][:-1]))
                 for suite in json.loads(report.read_text())["testsuites"] for case in suite["testsuite"]]
        slow = ":".join(case for case, seconds in cases if seconds > SLOW_S)
        stages = []
        for name, filter_ in ((name, f"-{slow}"), (f"{name}, slow", slow)):
            if filter_:
                command = ["BINARY", "--gtest_brief=1", "--gtest_fail_fast", f"--gtest_filter={filter_}"]
                stages.append(self._measured(Stage(name, binary, command)))
        return stages

    def _program_commands(self):
        shown = subprocess.run(["ctest", "--show-only=json-v1"], cwd=BUILD, check=True, capture_output=True, text=True)
        program = str(BUILD / self.program)
        for test in json.loads(shown.stdout)["tests"]:
            command = test.get("command", [])
            if test["name"] not in LEFT_OUT and program in command:
                yield test["name"], ["BINARY" if word == program else word for word in command]

    def _beside_program(self):
        """Returns what else of the build these commands run."""
        words = {word for _, command in self._program_commands() for word in command if word.startswith(f"{BUILD}/")}
        return sorted(os.path.relpath(word, BUILD) for word in words)

    def _scripts(self):
        files = sorted((TREE / "tests/end_to_end").glob("*.py"))
        return digest(json.dumps(list(self._program_commands())) + "".join(path.read_text() for path in files))

    def _measure_program(self, program):
        self.build.make([program, *self._beside_program()])
        return [self._measured(Stage(name, program, command)) for name, command in self._program_commands()]
