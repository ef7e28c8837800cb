"""The functions of stepsim: each is a subcommand of the command line, run in this process."""
import os
import warnings
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Type, TypeVar, Union

from . import _core
from ._arguments import Files, headed, options_of, plain, text_of
from ._background import interruptible
from ._errors import InputError, NoAnswer
from ._graph import OpGraph
from ._parts import flag_of, part_of
from ._plan import Plan, schedule_text
from ._result import Record, Result, RunResult, SearchResult
from ._sweep import SweepResult

_R = TypeVar("_R", bound=Result)
_NO_OUTPUT = 4
_PARTS = ("model", "cluster", "plan")


def _call(subcommand: str, arguments: Sequence[str], files: Files, result: Type[_R],
          goes_on: Optional[Callable[[], bool]] = None,
          part: Optional[Callable[[str], None]] = None) -> _R:
    """Runs a subcommand, and makes a result of its JSON and of what it prints."""
    status, output, errors, kept, problems = _core.call(
        subcommand, [*arguments, "--json=memory:json"], goes_on, part)
    if problems:
        raise InputError((files.without_folder(field), files.without_folder(message))
                         for field, message in problems)
    if status == _NO_OUTPUT:
        raise OSError(errors.strip())
    if "json" not in kept:
        raise NoAnswer(errors.removeprefix("stepsim: ").strip() or output.strip())
    return result(files.without_folder(kept["json"]), files.without_folder(output), status)


def _parts(keywords: Mapping[str, Any], files: Files) -> Dict[str, Any]:
    """The keywords, with objects and dicts of --model, --cluster and --plan as the command line has
    them."""
    options = dict(keywords)
    changes: List[str] = []
    for kind in _PARTS:
        if options.get(kind) is not None:
            part = part_of(kind, options[kind])
            if isinstance(part, Plan):
                _add_moved(part, options)
            options[kind], own = flag_of(kind, part, files)
            changes += own
    given = options.get("set")
    if isinstance(given, Mapping):
        given = [f"{path}={text_of(value)}" for path, value in given.items()]
    elif isinstance(given, str):
        given = [given]
    if changes or given:
        options["set"] = changes + list(given or [])
    return options


def _add_moved(plan: Plan, options: Dict[str, Any]) -> None:
    """Adds keys that a plan of 0.1 has of other groups to those that are given."""
    for group, keys in plan._moved().items():
        keyword = "pass_" if group == "pass" else group
        names = ", ".join(keys)
        warnings.warn(f"Plan: {names} of {keyword}=, taken until 2.0", FutureWarning, stacklevel=5)
        given = options.get(keyword)
        if isinstance(given, Mapping) or given is None:
            options[keyword] = {**keys, **(given or {})}
        else:
            options[keyword] = f"{text_of(given)},{headed(group, keys)}"


def _experiment_words(experiment: Any, files: Files) -> List[str]:
    """An experiment as the word in front of the options."""
    if experiment is None:
        return []
    if isinstance(experiment, (str, os.PathLike)):
        return [os.fspath(experiment)]
    if isinstance(experiment, RunResult):
        experiment = experiment.to_dict()["experiment"]
    experiment = dict(plain(experiment))
    for kind in _PARTS:  # an object or a name in the place of a group of fields
        if isinstance(experiment.get(kind), str):
            experiment[kind] = {"catalog": experiment[kind]}
    return [files.json(str(experiment.get("name", "experiment")), experiment)]


def run(experiment: Any = None, *, model: Any = None, cluster: Any = None, plan: Any = None,
        software: Any = None, pass_: Any = None, set: Any = None, chip: Optional[str] = None,
        library: Optional[str] = None, fidelity: Optional[str] = None,
        granularity: Optional[str] = None, steps: Optional[int] = None, seed: Optional[int] = None,
        fold: Optional[bool] = None, **options: Any) -> RunResult:
    """Simulates a training step (or a pass of inference) and returns what it takes.

    experiment: a name of the catalog, a file, a dict with the fields of an experiment file, the result
        of an earlier run, or an OpGraph. Or give model, cluster and plan; with an experiment these
        replace or change its own.
    software: what runs the plan, "torchtitan", a file, or a dict of keys: {"catalog": "torchtitan",
        "loss": "fused"}.
    pass_: one pass of inference instead of a training step, {"inference": "decode", "batch": 64,
        "context": 8192}.
    set: changes of single fields, {"cluster.chip.memory_bandwidth": "4TB/s"}.
    fidelity: "latency-bandwidth", "flow" (default), "packet" or "all".
    granularity: "pipelined" (default) or "stepped".
    steps: training steps in a row. seed: of jitter. fold=False simulates every rank.
    Other options are those of `stepsim run` with _ for -: require_fit=True, explain=True,
    sensitivity=True, breakeven="nic_bandwidth", packet_bytes=4096, ...

    Times of the result are in seconds, sizes in bytes. Raises InputError with every problem.
    """
    keywords = {"model": model, "cluster": cluster, "plan": plan, "software": software,
                "pass_": pass_, "set": set, "chip": chip, "library": library,
                "fidelity": fidelity, "granularity": granularity, "steps": steps, "seed": seed, "fold": fold, **options}

    def simulate(more: Mapping[str, Any]) -> RunResult:
        with Files() as files:
            if isinstance(experiment, OpGraph):
                words = [files.json("graph", experiment.to_dict())]
            else:
                words = _experiment_words(experiment, files)
            arguments = words + options_of("run", {**_parts(keywords, files), **more})
            return _call("run", arguments, files, RunResult)

    result = simulate({})
    result._simulate = simulate
    return result


def collective(op: str, *, cluster: Any, bytes: Any = None, ranks: Any = None,
               dtype: Optional[str] = None, algorithm: Any = None, sweep: Optional[str] = None,
               fidelity: Optional[str] = None, granularity: Optional[str] = None,
               **options: Any) -> Result:
    """One collective on a cluster: time_s, bus_bandwidth_bytes_per_s, algorithm, hottest_links, ...

    op: "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", ...
    bytes: as nccl-tests counts them, a number or "64MiB". sweep: "1KiB:8GiB" instead.
    ranks: "0-7,16" (default: all chips).
    algorithm: a name, a file, or a dict with the steps of one's own (docs/collectives.md), which is
        proven to do what the operation promises before it runs.
    """
    with Files() as files:
        own = plain(algorithm)
        keywords = {"cluster": cluster, "bytes": bytes, "ranks": ranks, "dtype": dtype,
                    "algorithm": files.json("algorithm", own) if isinstance(own, Mapping) else own,
                    "sweep": sweep, "fidelity": fidelity, "granularity": granularity, **options}
        if isinstance(keywords.get("matrix"), (list, tuple)):
            keywords["matrix"] = files.json("matrix", {"bytes": keywords["matrix"]})
        return _call("collective", [op, *options_of("collective", _parts(keywords, files))], files,
                     Result)


def schedule(name: Union[str, Sequence[Sequence[str]]], *, stages: Optional[int] = None,
             microbatches: Optional[int] = None, chunks: Optional[int] = None,
             **options: Any) -> Result:
    """One pipeline schedule by itself: per_rank, start_s, makespan_s, bubble_s, peak_in_flight, ...

    name: "1f1b", "zb_h1", "dualpipev", "optimal", ... or one's own order, a list of ops for each rank:
        [["F0.0", "F1.0", "BW0.0", "BW1.0"], ["F0.0", "BW0.0", "F1.0", "BW1.0"]]
        (op, micro-batch, dot, chunk on that rank).
    Times (forward_time, backward_input_time, backward_weight_time, send_time) are of one micro-batch
    on one chunk, in seconds or as text. compare=["zb_h1", "gpipe"] adds others.
    """
    with Files() as files:
        is_name = isinstance(name, (str, os.PathLike))
        word = str(name) if is_name else files.write("schedule.txt", schedule_text(name))
        keywords = {"stages": stages, "microbatches": microbatches, "chunks": chunks, **options}
        return _call("schedule", [word, *options_of("schedule", keywords)], files, Result)


def search(experiment: Any = None, *, model: Any = None, cluster: Any = None,
           global_batch: Optional[int] = None, sequence: Optional[int] = None, within: Any = None,
           fix: Any = None, minimize: Optional[str] = None, top: Optional[int] = None,
           time_limit: Any = None, why: Any = None, jobs: Optional[int] = None,
           **options: Any) -> SearchResult:
    """The best plans of a model on a cluster: `best`, `front`, `excluded`, `bound_gap` (0: proven).

    within: the keys that vary, {"tp": [1, 2, 4, 8], "zero": range(0, 4)} or "tp=1,2,4,8,zero=0..3".
    fix: keys with one value. minimize: "step" (default), "memory", "cost" or "chips".
    time_limit: seconds, or "10min". why: a plan of which the result says why it isn't the best.
    cluster may list several: ["dgx-h100-64", "dgx-h100-128"]. `ok` is False if nothing fits.
    """
    with Files() as files:
        keywords = {"model": model, "cluster": cluster, "global_batch": global_batch,
                    "sequence": sequence, "within": within, "fix": fix, "minimize": minimize,
                    "top": top, "time_limit": time_limit, "why": plain(why), "jobs": jobs, **options}
        several = keywords["cluster"]
        if isinstance(several, (list, tuple)):
            keywords["cluster"] = ",".join(text_of(one) for one in several)
        arguments = _experiment_words(experiment, files) + options_of("search",
                                                                      _parts(keywords, files))
        return interruptible(
            lambda goes_on: _call("search", arguments, files, SearchResult, goes_on))


def sweep(experiment: Any = None, *, over: Any = None, model: Any = None, cluster: Any = None,
          plan: Any = None, store: Any = None, jobs: Optional[int] = None,
          **options: Any) -> SweepResult:
    """An experiment at many points. Iterating gives each point as soon as it and those before it are
    done, in the order of the axes; frame() is a table of pandas. wait() runs all of them.

    over: {"plan.zero": [0, 1, 2, 3], "plan.tp": [1, 2]} crosses the axes.
        ["plan.tp=1,2,4,plan.dp=8,4,2"] lets several fields go together.
    store: an SQLite file; what is in it is not run again.
    """
    keywords = {"over": over, "model": model, "cluster": cluster, "plan": plan, "store": store,
                "jobs": jobs, **options}

    def work(goes_on: Callable[[], bool], part: Callable[[str], None]) -> Result:
        with Files() as files:
            words = _experiment_words(experiment, files)
            arguments = words + options_of("sweep", _parts(keywords, files))
            return _call("sweep", arguments, files, Result, goes_on,
                         lambda text: part(files.without_folder(text)))

    return SweepResult(work)


def serve(*, requests: Any = None, model: Any = None, cluster: Any = None, plan: Any = None,
          engine: Any = None, step_time: Any = None, slo: Any = None, replicas: Optional[int] = None,
          cases: Any = None, **options: Any) -> Result:
    """Replicas of a model answer requests: ttft_s, tpot_s, output_tokens_per_s, kv_blocks, parts_s, ...

    requests: "poisson:rate=4,count=1000,input=1024,output=uniform:103-128", the same as a dict,
        {"kind": "poisson", "rate": 4, "count": 1000, "input": 1024, "output": 128}, or a list.
    engine: "vllm,sequences=256" or {"kind": "vllm", "sequences": 256}.
    slo: {"ttft": "2s", "tpot": "50ms"}. Rates are requests a second.
    """
    with Files() as files:
        keywords = {"requests": requests, "model": model, "cluster": cluster, "plan": plan,
                    "engine": engine, "step_time": step_time, "slo": slo, "replicas": replicas,
                    "cases": cases, **options}
        return _call("serve", options_of("serve", _parts(keywords, files)), files, Result)


def goodput(experiment: Any = None, *, failures: Any = None, tokens: Optional[float] = None,
            steps: Optional[int] = None, days: Optional[float] = None, checkpoint: Any = None,
            **options: Any) -> Result:
    """A whole training with machines that fail: days {mean, p10, p90}, goodput, parts_days, ...

    failures: a table of the catalog ("llama3"), a file, or a dict with its fields.
    checkpoint: {"every": "auto", "to": "host+storage"}. Length: tokens, steps or days.
    """
    with Files() as files:
        table = plain(failures)
        keywords = {"failures": files.json("failures", table) if isinstance(table, Mapping) else table,
                    "tokens": tokens, "steps": steps, "days": days, "checkpoint": checkpoint,
                    **options}
        words = _experiment_words(experiment, files)
        return _call("goodput", words + options_of("goodput", _parts(keywords, files)), files, Result)


def validate(*words: str, fidelity: Optional[str] = None, **options: Any) -> Result:
    """Statements of the books beside simulations: `cases` with predicted, simulated, as_expected.

    words: ids ("S3", "B1") or words ("fsdp"); none: every study, a minute. `ok`: all as expected.
    """
    with Files() as files:
        return _call("validate", [*words, *options_of("validate", {"fidelity": fidelity, **options})],
                     files, Result)


def formula(id: Optional[str] = None, values: Optional[Mapping[str, Any]] = None,
            **more: Any) -> Any:
    """The closed forms. Without an id, or with a word: a list of Records. With an id: what it says.

    With values (`formula("E7", B=48000, N=64, ...)`, units as text) a Record with `symbol` and
    `values`; `X="?"` solves for one input. chip="h100-sxm" and model="llama3-8b" fill inputs.
    """
    with Files() as files:
        given = {**(values or {}), **more}
        words = ([] if id is None else [id]) + [f"{name}={text_of(one)}"
                                                for name, one in given.items()]
        return _call("formula", words, files, Result)._members


def accuracy(*files_of_rows: Any, **options: Any) -> Result:
    """Predicted against measured: `rows` and `summary` of CSV tables (docs/accuracy.md)."""
    with Files() as files:
        arguments = [os.fspath(one) for one in files_of_rows] + options_of("accuracy", options)
        return interruptible(lambda goes_on: _call("accuracy", arguments, files, Result, goes_on))


def topology(cluster: Any, **options: Any) -> Result:
    """What a cluster is: counts, diameter, bisection bandwidth (bytes/s), bandwidth by level."""
    with Files() as files:
        word, _ = flag_of("cluster", cluster, files)
        return _call("topology", [str(word), *options_of("topology", options)], files, Result)


def network(case: Any, **options: Any) -> Result:
    """Raw transfers over explicit links: makespan_s, flows. `case`: a file or a dict of its format."""
    with Files() as files:
        own = plain(case)
        word = files.json("case", own) if isinstance(own, Mapping) else os.fspath(own)
        return _call("network", [word, *options_of("network", options)], files, Result)


def catalog(kind: Optional[str] = None, name: Optional[str] = None) -> Any:
    """What is built in. catalog(): the names by kind; catalog("models"): names of a kind;
    catalog("models", "llama3-70b"): the text of an entry, as in its file."""
    if kind is None:
        return {one: _core.catalog_names(one) for one in _core.catalog_kinds()}
    if name is not None:
        _, text, _, _, problems = _core.call("catalog", [kind, name])
        if problems:
            raise InputError(problems)
        return text
    for one in _core.catalog_kinds():
        if kind in (one, one.removesuffix("s"), one.removesuffix("ies") + "y"):
            return _core.catalog_names(one)
    raise InputError([("KIND", f"must be one of {', '.join(_core.catalog_kinds())}; is \"{kind}\"")])


def command(subcommand: str, *words: Any, **options: Any) -> Result:
    """Any subcommand that has --json: command("compare", "a.json", "b.json")."""
    with Files() as files:
        arguments = [*(os.fspath(one) for one in words),
                     *options_of(subcommand, _parts(options, files))]
        return interruptible(
            lambda goes_on: _call(subcommand, arguments, files, Result, goes_on))


def plan_keys() -> List[Record]:
    """The keys of plan, software and pass: name, what is accepted, the default, what each does, its group."""
    return [Record(zip(("name", "accepts", "default", "help", "group"), key))
            for key in _core.plan_keys()]
