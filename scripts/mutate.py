#!/usr/bin/env python3
"""Breaks the code on purpose, one small change at a time, and looks whether a test fails.

    scripts/mutate.py --sample 110 --seed 1           draws and tries until 110 mutations count
    scripts/mutate.py --sample 110 --seed 1 --list    shows what would be tried
    scripts/mutate.py --at sim/base/units.h:40        tries every mutation of a line, or of a file
    scripts/mutate.py --again                         tries those again that no test caught
    scripts/mutate.py --report                        shows the results so far

A mutation is another operator, another constant, a condition negated or a statement left out, in the rooms
sim, schedules, workload and proto (scripts/mutation/places.py). The places are drawn evenly over the lines of
code of the rooms: a seed is a sequence, so a larger sample begins with a smaller one.

Each mutation runs the tests of its room first, then the other tests with the changed code in them, then those of
the binary as a person uses it; slow tests after fast ones. The first failure, crash, endless loop or too
much memory ends it: it is caught. One that does not compile, or compiles to the same code, does not count.

It works under build/mutate: `tree` is a copy of the checkout, `build` its build (-O1), `results.jsonl` has a line for
each mutation, written as soon as it is done. Running it again goes on from there. A mutated file lies beside the
copy, never in it, and its object is linked before the library that has the original: nothing has to be restored.

The exit status is 1 if fewer than --at-least percent were caught or the run was interrupted, 2 if the tests fail
without a mutation or another run is at work.
"""
import argparse
import collections
import concurrent.futures
import contextlib
import dataclasses
import fcntl
import filecmp
import json
import os
import pathlib
import random
import re
import shutil
import signal
import sys
import time

from mutation.build import BUILD, HOME, TREE, WORK, Build, configure, copy_tree, digest
from mutation.places import Mutation, mutations_of
from mutation.tests import Tests

ROOMS = ("sim", "schedules", "workload", "proto")
GOLDEN_RATIO = (5 ** 0.5 - 1) / 2


@dataclasses.dataclass(frozen=True)
class Place:
    room: str
    path: str  # relative to the checkout
    source: str  # digest of the file
    mutation: Mutation

    @property
    def key(self):
        change = self.mutation
        return f"{self.path}:{change.line}:{change.start}-{change.end}:{change.after[:40]}:{self.source}"


def places_of(rooms):
    """Returns the places of every line of code that has one, in the order of files."""
    lines = []
    for room in rooms:
        for path in sorted((TREE / room).rglob("*")):
            if path.suffix not in (".cc", ".h"):
                continue
            text = path.read_text()
            by_line = collections.defaultdict(list)
            for mutation in mutations_of(text, path.suffix == ".h"):
                by_line[mutation.line].append(
                    Place(room, path.relative_to(TREE).as_posix(), digest(text), mutation))
            lines += [by_line[line] for line in sorted(by_line)]
    return lines


def drawn(lines, seed):
    """Yields places without end, spread evenly over the lines whatever number of them is taken."""
    begin, seen = random.Random(seed).random(), set()
    for k in range(100 * len(lines)):
        places = lines[int((begin + k * GOLDEN_RATIO) % 1 * len(lines))]
        place = random.Random(f"{seed}:{k}").choice(places)
        if place.key not in seen:
            seen.add(place.key)
            yield place


def places_at(lines, where):
    path, _, line = where.partition(":")
    found = [place for places in lines for place in places
             if place.path == path and (not line or place.mutation.line == int(line))]
    return found or sys.exit(f"no mutation at {where}")


class Mutator:
    def __init__(self, options):
        self.options = options
        self.build = Build()
        self.tests = Tests(self.build, options.memory)

    def try_(self, place):
        """Returns {"result": caught, survived, equivalent or uncompiled, ...}."""
        began = time.monotonic()
        shutil.rmtree(WORK / "overlay", ignore_errors=True)
        overlay = WORK / "overlay" / place.path
        overlay.parent.mkdir(parents=True)
        text = (TREE / place.path).read_text()
        change = place.mutation
        overlay.write_text(text[:change.start] + change.after + text[change.end:])
        outcome = self._outcome(place)
        shutil.rmtree(WORK, ignore_errors=True)
        return {"key": place.key, "room": place.room, "path": place.path,
                "mutation": dataclasses.asdict(change), **outcome, "seconds": round(time.monotonic() - began, 1)}

    def _outcome(self, place):
        objects, linked = {}, {}
        for stage in self.tests.of(place.room):
            if any(text in stage.name for text in self.options.skip):
                continue
            names = self.build.objects_of(place.path, stage.binary)
            if not self._compile([name for name in names if name not in objects], place.path, objects):
                return {"result": "uncompiled"}
            changed = {name: objects[name] for name in names if objects[name]}
            if not changed:
                continue
            if stage.binary not in linked:
                linked[stage.binary] = self.build.link(stage.binary, changed)
            if linked[stage.binary] is None:
                return {"result": "uncompiled"}
            ran = stage.run(linked[stage.binary], self.options.memory, self.options.limit)
            if ran.how:
                failed = re.search(r"^\[  FAILED  \] ([\w/.]+)|^(?:FAIL|ERROR): (.*)$", ran.output, re.M)
                test = (failed.group(1) or failed.group(2)) if failed else ""
                return {"result": "caught", "by": stage.name, "test": test, "how": ran.how}
        return {"result": "survived" if any(objects.values()) else "equivalent"}

    def _compile(self, names, path, objects):
        """Adds {name: file} to `objects`; no file if the code is that of the original."""
        def one(name):
            out = WORK / "objects" / name
            if not self.build.compile(name, path, out):
                return name, None, False
            return name, None if filecmp.cmp(out, BUILD / name, shallow=False) else out, True

        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            done = list(pool.map(one, names))
        objects.update({name: out for name, out, _ in done})
        return all(good for _, _, good in done)


# --- Results ---

class Results:
    def __init__(self, file):
        self.file = file
        self.by_key = {}
        text = file.read_text() if file.exists() else ""
        for line in text.splitlines():
            with contextlib.suppress(json.JSONDecodeError):  # a line that was cut off
                result = json.loads(line)
                self.by_key[result["key"]] = result
        if text and not text.endswith("\n"):  # the next line begins at its beginning
            with file.open("a") as out:
                out.write("\n")

    def add(self, result):
        self.by_key[result["key"]] = result
        with self.file.open("a") as out:
            out.write(json.dumps(result) + "\n")


def counts(result):
    return result["result"] in ("caught", "survived")


def text_of_change(mutation):
    before, after = (" ".join(text.split())[:60] for text in (mutation.before, mutation.after))
    return f"`{before}` -> `{after}`"


def text_of(result):
    mutation = Mutation(**result["mutation"])
    by = f" by {result['by']} {result['test']} ({result['how']})" if result["result"] == "caught" else ""
    where = f"{result['path']}:{mutation.line}"
    return f"{result['result']}: {where} {text_of_change(mutation)}{by}, {result['seconds']} s"


def report(results):
    """Prints the totals of these results. Returns the percentage caught."""
    by_result = collections.Counter(result["result"] for result in results)
    for room in ROOMS:
        of_room = [result for result in results if result["room"] == room and counts(result)]
        caught = sum(result["result"] == "caught" for result in of_room)
        if of_room:
            print(f"{room}: {caught} of {len(of_room)} caught")
    for how, count in collections.Counter(result["how"] for result in results if "how" in result).most_common():
        print(f"  caught, {how}: {count}")
    for result in results:
        if result["result"] == "survived":
            print(text_of(result))
    tried = by_result["caught"] + by_result["survived"]
    share = 100 * by_result["caught"] / tried if tried else 100.0
    print(f"{by_result['caught']} of {tried} caught ({share:.1f} %); not counted: {by_result['equivalent']} with the "
          f"same code, {by_result['uncompiled']} that do not compile")
    return share


def chosen(options, lines, results):
    """Yields the places to try; ends when enough count."""
    if options.again:
        survived = {key for key, result in results.by_key.items() if result["result"] == "survived"}
        found = [place for places in lines for place in places if place.key in survived]
        if len(found) < len(survived):
            print(f"{len(survived) - len(found)} that survived are in files that have changed since, or in other rooms")
        yield from found
    elif options.at:
        for where in options.at:
            yield from places_at(lines, where)
    else:
        enough = 0
        for place in drawn(lines, options.seed):
            if enough >= options.sample:
                return
            yield place
            result = results.by_key.get(place.key)
            enough += bool(options.list or (result and counts(result)))


def options_of():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rooms", default=",".join(ROOMS), help="of sim, schedules, workload, proto; default all")
    parser.add_argument("--sample", type=int, default=110, help="mutations that count; default 110")
    parser.add_argument("--seed", type=int, default=1, help="of the sequence of places; default 1")
    parser.add_argument("--at", action="append", metavar="FILE[:LINE]", help="all mutations there; may be repeated")
    parser.add_argument("--again", action="store_true", help="those of the results that survived")
    parser.add_argument("--list", action="store_true", help="only show what would be tried")
    parser.add_argument("--report", action="store_true", help="only show the results")
    parser.add_argument("--skip", action="append", default=[], metavar="TEXT",
                        help="leave out tests with this in their name (cli_, _are_fresh, slow); may be repeated")
    parser.add_argument("--limit", type=float, default=10, metavar="S",
                        help="seconds of a test run beyond five times what it takes unchanged; default 10")
    parser.add_argument("--memory", type=float, default=4, metavar="GB", help="address space of a test; default 4 GB")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="compilers at once; default one a core")
    parser.add_argument("--at-least", type=float, default=0, metavar="PERCENT",
                        help="exit status 1 if fewer are caught")
    parser.add_argument("--results", type=pathlib.Path, default=HOME / "results.jsonl", help="default %(default)s")
    options = parser.parse_args()
    options.rooms = options.rooms.split(",")
    unknown = set(options.rooms) - set(ROOMS)
    return options if not unknown else parser.error(f"no such room: {', '.join(sorted(unknown))}")


def main():
    options = options_of()
    results = Results(options.results)
    if options.report:
        return report(list(results.by_key.values())) < options.at_least
    TREE.mkdir(parents=True, exist_ok=True)
    lock = (HOME / "lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(f"another run is at work in {HOME}", file=sys.stderr)
        return 2
    copy_tree()
    lines = places_of(options.rooms)
    if options.list:
        for place in chosen(options, lines, results):
            print(f"{place.path}:{place.mutation.line} {place.mutation.kind} {text_of_change(place.mutation)}")
        return 0
    configure()
    mutator = Mutator(options)
    tried = {}
    for place in chosen(options, lines, results):
        if options.again or place.key not in results.by_key:
            results.add(mutator.try_(place))
            print(text_of(results.by_key[place.key]), flush=True)
        tried[place.key] = results.by_key[place.key]
    return report(list(tried.values())) < options.at_least


def interrupt(*_):
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, interrupt)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted; the same command goes on from here")
