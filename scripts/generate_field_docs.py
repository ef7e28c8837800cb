#!/usr/bin/env python3
"""Writes the site's pages on fields from the program's tables: a table of all first, then each.

    scripts/generate_field_docs.py STEPSIM FOLDER
"""
import pathlib
import re
import subprocess
import sys
import textwrap

COLUMNS = 110

PLAN = """# Plan keys

The keys of a plan are the fields of the group `plan` in files. On the command line they are joined by commas, with
dashes or underscores: `--plan tp=8,global-batch=1024`, `--set plan.global_batch=1024`. `stepsim help plan` shows this
page in a terminal, `stepsim help plan tp` one key.

`catalog` starts from a plan of the catalog; the other keys go over it. `true` and `false` are written out. A key that
nothing in the plan acts on is refused. How the keys work together, with measurements: [plans.md](plans.md).

"""

SOFTWARE = """# Software keys

What runs a plan: the group `software` of a file. `--software torchtitan` takes an entry of `catalog/software`, keys behind it
or alone go over it: `--software torchtitan,loss=fused`, `--set software.loss=fused`. A file may stand in place of a name. In a
file `catalog` names the entry. What the entry brings that the plan rules out is left out; what a person gives and nothing in
the plan acts on is refused. `stepsim help software` shows this page in a terminal, `stepsim help software loss` one key.

"""

PASS = """# Pass keys

One pass of inference in place of a training step: the group `pass` of a file, `--pass decode,batch=64,context=8192`,
`--set pass.batch=64`. [inference.md](inference.md) says what a pass computes. `stepsim help pass` shows this page in a terminal,
`stepsim help pass batch` one key.

"""

TRANSPORT = """# Fields of a transport

What moves packets where there is one: the group `transport` of an experiment, the object of that name of a
[network case](network-cases.md#transports), and `--transport NAME[,field=value..]` of run, sweep, collective and network. [transports.md](transports.md) says what each kind is and how near it comes to
other simulators. `stepsim help transport` shows this page in a terminal, with the kinds. Defaults are those of `go-back-n`.

Written by `scripts/generate_field_docs.py` from the program; change `sim/network/transport/transport_spec.cc`, not this page.

"""

SIMULATION = """# Fields of a simulation

They say how an experiment is simulated: the group `simulation` of a file. The options of `stepsim run` with the same
names, in dashes, override them. None has to be given. `stepsim help simulation` shows this page in a terminal.

"""

MODEL = """# Fields of a model

A model is a file in `catalog/models`, or the group `model` of an experiment. `catalog` starts from a model of the catalog,
`huggingface` from a config.json (read as the family `as`, where that is given); the other fields go over it. `stepsim help
model` shows this page in a terminal, `stepsim help model mixer_pattern` one field. [workload.md](workload.md) says what
the layers compute, [adding-a-model.md](adding-a-model.md) where models come from.

"""

CHIP = """# Fields of chips and hosts

A chip is a file in `catalog/chips`, or the group `chip` of a cluster. `catalog` starts from a chip of the catalog; the
other fields go over it. Quantities are text with a unit: `memory_bandwidth: "3350GB/s"`. `library` names the
communication library that clusters of the chip use. `stepsim help chip` shows this page in a terminal,
`stepsim help chip efficiency.matmul.tile_m` one field. [adding-a-chip.md](adding-a-chip.md) says where values come from.

"""

ENGINE = """# Keys of engines

Keys of `stepsim serve --engine`, `--prefill` and `--decode`. An engine refuses keys that it does not have. Defaults of keys
are vllm's, or those of the only engine that has the key. [serving.md](serving.md) says what the engines do.

"""

REQUESTS = """
# Keys of requests

Keys of `stepsim serve --requests`.

"""

HOST = """
# Fields of hosts

A host is the machine that chips are attached to: the group `host` of a chip, and of a cluster, whose fields override
those of the chip. `stepsim help host` shows them in a terminal.

"""

LIBRARY = """# Fields of communication libraries

A library is a file in `catalog/libraries`, or the group `library` of a cluster. `catalog` starts from a library of the
catalog; the other fields go over it. `stepsim help library` shows this page in a terminal, `stepsim help library
tuner.channels` one field. [collectives.md](collectives.md#what-the-communication-library-adds) says what the constants
do.

"""

CLUSTER = """# Fields of clusters

A cluster is a file in `catalog/clusters`, or the group `cluster` of an experiment. `catalog` starts from a cluster of the
catalog; the other fields go over it. `stepsim help cluster` and `stepsim help topologies` show this page in a terminal,
`stepsim help topologies torus link_latency` one field. [topologies.md](topologies.md) says what the topologies are.

"""

FAILURES = """# Fields of failures

A table of failures is a file in `catalog/failures`, or the file of `stepsim goodput --failures`. The keys of `--checkpoint`
and `--restart` are those of its groups. `stepsim help failures` shows this page in a terminal. [goodput.md](goodput.md)
says what follows from them.

"""

RESULTS = """# Members of JSON

What `--json` of each subcommand writes. `stepsim help results run` shows it in a terminal. `[]` is a list of objects, `.NAME` members that the run
names, `{}` JSON that is described elsewhere. [json.md](json.md) says what the members of a run mean.

"""

# Page, and its parts: a head and the topic of `stepsim help` behind it.
PAGES = {
    "plan-keys.md": [(PLAN, ["plan"])],
    "software-keys.md": [(SOFTWARE, ["software"])],
    "pass-keys.md": [(PASS, ["pass"])],
    "transport-fields.md": [(TRANSPORT, ["transport"])],
    "simulation-fields.md": [(SIMULATION, ["simulation"])],
    "model-fields.md": [(MODEL, ["model"])],
    "chip-fields.md": [(CHIP, ["chip"]), (HOST, ["host"])],
    "engine-keys.md": [(ENGINE, ["engine"]), (REQUESTS, ["requests"])],
    "failure-fields.md": [(FAILURES, ["failures"])],
    "library-fields.md": [(LIBRARY, ["library"])],
    "cluster-fields.md": [(CLUSTER, ["cluster"])],  # and each topology
    "results.md": [(RESULTS, ["results"])],
}


def wrapped(markdown):
    lines = []
    for line in markdown.rstrip("\n").split("\n"):
        is_text = line and not line.startswith(("#", "|"))
        lines += textwrap.wrap(line, COLUMNS, break_on_hyphens=False) if is_text else [line]
    return "\n".join(lines) + "\n"


def help_of(stepsim, *topic):
    command = [stepsim, "help", *topic]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def topologies(stepsim):
    kinds = re.findall(r"^  (\w+) ", help_of(stepsim, "topologies"), re.MULTILINE)
    return [(f"\n# Fields of `{kind}`\n\n", ["topologies", kind]) for kind in kinds]


def table(markdown):
    """The fields of a topic, each with its value and the first sentence of what it does."""
    fields = re.findall(r"^### `(.+?)`\n\nValue: (.+)\n\n(.+)$", markdown, re.M)
    rows = []
    for name, value, text in fields:
        sentence = text.split(". ")[0].rstrip(".").replace("|", "\\|")
        # As mkdocs makes anchors of headings.
        anchor = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", name).strip().lower())
        rows.append(f"| [`{name}`](#{anchor}) | {value.replace('|', chr(92) + '|')} | {sentence} |")
    return "\n".join(["| | value | what it does |", "|---|---|---|", *rows]) + "\n\n" if rows else ""


def text_of(stepsim, parts):
    text = ""
    for head, topic in parts:
        markdown = help_of(stepsim, *topic, "--markdown")
        text += head + table(markdown) + wrapped(markdown)
    return text


def main(stepsim, folder):
    pages = dict(PAGES)
    pages["cluster-fields.md"] = pages["cluster-fields.md"] + topologies(stepsim)
    for page, parts in pages.items():
        pathlib.Path(folder, page).write_text(text_of(stepsim, parts))


if __name__ == "__main__":
    main(*sys.argv[1:])
