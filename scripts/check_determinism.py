#!/usr/bin/env python3
"""Checks that results are the same bytes whatever compiler, optimisation, locale or memory layout.

    check_determinism.py STEPSIM RANDOM_RUNS
    check_determinism.py STEPSIM RANDOM_RUNS --builds [gcc-O0 clang-O2 ...] [--all] [--seeds 200]

STEPSIM and RANDOM_RUNS (stepsim_random_runs) are the binaries that all others are compared with. They run in
each environment: without address randomisation, in the locales of ENVIRONMENTS, with memory that is filled
with other bytes. --builds compiles them again with each compiler and level, in build/determinism, one after
the other (some 3 CPU minutes each), and runs those as well. Experiments of the catalog that take long need
--all. --seeds N runs random plans 1 to N, with jitter, packets and pipelines.
"""
import argparse
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMPILERS = {"gcc": "g++", "clang": "clang++"}
BUILDS = [f"{compiler}-O{level}" for compiler in COMPILERS for level in range(4)]
LOCALES = ["de_DE", "tr_TR"]  # 1,5 is a number; the capital of i is not I
# Experiments of the catalog that take some seconds at most, also when nothing is optimised.
SHORT = ["llama3-8b-dgx-h100-8", "mixtral-8x7b-dgx-h100-64", "gemma-7b-v5e-16x16",
         "llama3-70b-v5p-4x4x8"]
# What the catalog does not have.
VARIED = {
    "packets": ["run", "--model", "mlp-stack:D=1024,F=4096,layers=2", "--cluster", "dgx-h100-8",
                "--plan", "tp=8,global-batch=1,sequence=128", "--fidelity", "all", "--packet-bytes",
                "65536"],
    "pipeline": ["run", SHORT[0], "--plan", "tp=1,pp=4,dp=2,schedule=interleaved_1f1b,chunks=2,"
                 "global-batch=16", "--granularity", "stepped"],
}


class Program:
    """The two binaries of a build, and what stands before them on the command line."""

    def __init__(self, name, stepsim, random_runs, before=(), environment=None):
        self.name, self.stepsim, self.random_runs = name, stepsim, random_runs
        self.before, self.environment = list(before), {**os.environ, **(environment or {})}

    def output(self, *arguments):
        done = subprocess.run([*self.before, *arguments], env=self.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode != 0:
            sys.exit(f"{self.name}: {' '.join(map(str, arguments))}: status {done.returncode}\n"
                     f"{done.stderr.decode()}")
        return done.stdout

    def result(self, arguments):
        """A digest of the result without the statistics of the simulator."""
        text = self.output(self.stepsim, *arguments, "--json", "-")
        return hashlib.sha256(text.partition(b'"simulator"')[0]).hexdigest()

    def results(self, experiments, seeds):
        found = {name: self.result(["run", name]) for name in experiments}
        found |= {name: self.result(arguments) for name, arguments in VARIED.items()}
        lines = self.output(self.random_runs, "--from", "1", "--count", str(seeds)).decode()
        return found | {f"seed {line.split()[0]}": line for line in lines.splitlines()}


def in_environments(stepsim, random_runs, scratch):
    def program(name, before=(), environment=None):
        return Program(name, stepsim, random_runs, before, environment)

    # Memory that was never written to, or no longer belongs to anyone, holds other bytes.
    found = [program("memory of other bytes", environment={"MALLOC_PERTURB_": "165"})]
    if subprocess.run(["setarch", "-R", "true"], capture_output=True).returncode == 0:
        found.append(program("no address randomisation", before=["setarch", "-R"]))
    else:
        print("setarch -R does not work here: address randomisation is not turned off")
    for locale in LOCALES:
        name = f"{locale}.UTF-8"
        if shutil.which("localedef") and subprocess.run(
                ["localedef", "-i", locale, "-f", "UTF-8", f"{scratch}/{name}"],
                capture_output=True).returncode == 0:
            found.append(program(name, environment={"LOCPATH": scratch, "LC_ALL": name}))
        else:
            print(f"localedef can't make {name} here: it is not tried")
    return found


def build(name):
    """Compiles the two binaries, keeps them and removes the rest."""
    compiler, level = name.split("-O")
    folder = ROOT / "build" / "determinism" / name
    if not (folder / "stepsim").exists():
        tree = folder / "tree"
        subprocess.run(
            ["cmake", "-G", "Ninja", "-S", ROOT, "-B", tree, "-DCMAKE_BUILD_TYPE=None",
             f"-DCMAKE_CXX_COMPILER={COMPILERS[compiler]}", f"-DCMAKE_CXX_FLAGS=-O{level} -DNDEBUG"],
            check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["nice", "-n", "10", "cmake", "--build", tree, "--target", "stepsim",
                        "stepsim_random_runs"], check=True, stdout=subprocess.DEVNULL)
        shutil.copy(tree / "tests" / "stepsim_random_runs", folder)
        shutil.copy(tree / "stepsim", folder)
        shutil.rmtree(tree)
    return Program(name, folder / "stepsim", folder / "stepsim_random_runs")


def differences(expected, program, experiments, seeds):
    found = program.results(experiments, seeds)
    different = [name for name in expected if found.get(name) != expected[name]]
    print(f"{program.name}: {len(expected)} results, {len(different)} differ", flush=True)
    for name in different[:20]:
        print(f"  {name}: {expected[name]} here, {found.get(name)} there")
    return len(different)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("stepsim", type=pathlib.Path)
    parser.add_argument("random_runs", type=pathlib.Path)
    parser.add_argument("--builds", nargs="*", choices=BUILDS)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seeds", type=int, default=200)
    options = parser.parse_args()
    reference = Program("reference", options.stepsim.resolve(), options.random_runs.resolve())
    experiments = SHORT
    if options.all:
        listed = json.loads(reference.output(reference.stepsim, "catalog", "experiments", "--list",
                                             "--json", "-"))
        experiments = [experiment["name"] for experiment in listed["experiments"]]
    expected = reference.results(experiments, options.seeds)
    with tempfile.TemporaryDirectory() as scratch:
        different = sum(
            differences(expected, program, experiments, options.seeds)
            for program in in_environments(reference.stepsim, reference.random_runs, scratch))
    for name in BUILDS if options.builds == [] else options.builds or []:
        different += differences(expected, build(name), experiments, options.seeds)
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
