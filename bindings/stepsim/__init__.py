"""stepsim simulates training steps and serving of large language models on clusters that need not
exist: the same simulator as the command line, the same names and the same results.

    import stepsim
    result = stepsim.run(model="llama3-8b", cluster="dgx-h100-8",
                         plan={"tp": 2, "dp": 4, "microbatch": 1, "global_batch": 64,
                               "sequence": 8192, "zero": 1})
    result.step_time_s, result.breakdown, result.memory.fits

Times are seconds, sizes bytes, rates a second; members of results end in their unit. Input that can't
be run raises InputError, whose `problems` lists everything that is wrong at once. Functions can be
called from several threads at a time; results don't depend on that.
"""
from ._core import version as __version__
from ._commands import (accuracy, catalog, collective, command, formula, goodput, network, plan_keys,
                        run, schedule, search, serve, sweep, topology, validate)
from ._errors import InputError, NoAnswer, Problem
from ._graph import Node, OpGraph, Rank
from ._objects import Cluster, Model
from ._plan import Plan
from ._result import Record, Result, RunResult, SearchResult
from ._sweep import SweepResult

__all__ = ["Cluster", "InputError", "Model", "NoAnswer", "Node", "OpGraph", "Plan", "Problem", "Rank",
           "Record", "Result", "RunResult", "SearchResult", "SweepResult", "__version__", "accuracy",
           "catalog", "collective", "command", "formula", "goodput", "network", "plan_keys", "run",
           "schedule", "search", "serve", "sweep", "topology", "validate"]
