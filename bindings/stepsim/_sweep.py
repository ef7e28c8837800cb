"""A sweep while it runs: its points as they finish, and the whole once all have."""
import itertools
import json
import warnings
from typing import Any, Iterator, Optional

from ._background import Background, Work
from ._result import Record, Result


class SweepResult(Result):
    """The points of a sweep, in the order of its axes (the last one varies fastest), whatever finishes
    first. Iterating gives a Record of each as soon as it and those before it are done: `inputs`
    {path: value} and the columns of the table, such as step_time_s; `problem` where a point can't
    run. Iterating again begins at the first one.

    The points run in the background from the beginning. Everything else of the result, such as
    to_json(), frame() and len(), waits for all of them, as wait() does. Ctrl-C while one waits, and
    stop(), end the sweep; so does dropping the result. What has run is in the store, if it has one.
    """

    def __init__(self, work: "Work[Result]"):
        # Knows nothing of this object, so that one that nobody holds any more is gone.
        self._sweep: Optional[Background[Result]] = Background(work)
        self._used = False
        self._read: Any = None
        self._raise_at_once(self._sweep)

    @staticmethod
    def _raise_at_once(run: "Background[Result]") -> None:
        """Raises what is wrong with the question. It is known once a point has run."""
        for at in itertools.count():
            run.wait_for(at + 1)
            if run.error is not None:
                raise run.error
            if at == len(run.texts) or json.loads(run.texts[at])["problem"] is None:
                return

    def wait(self) -> "SweepResult":
        """Waits for all points."""
        self._used = True
        if self._sweep is not None:
            whole = self._sweep.result()
            self._json, self._text, self._csv = whole._json, whole._text, whole._csv
            self.ok = whole.ok
            self._sweep = None
        return self

    def stop(self) -> None:
        """Ends the sweep. Points that are done can still be iterated over."""
        self._used = True
        if self._sweep is not None:
            self._sweep.stop()

    def __iter__(self) -> Iterator[Record]:
        self._used = True
        at = 0
        run = self._sweep
        while run is not None:
            run.wait_for(at + 1)
            if at == len(run.texts):
                break
            at += 1
            yield json.loads(run.texts[at - 1], object_pairs_hook=Record)
        yield from self._members["points"][at:]

    @property
    def _members(self) -> Any:  # type: ignore[override]
        if self._read is None:
            self._read = json.loads(self._json, object_pairs_hook=Record)
        return self._read

    def __getattr__(self, name: str) -> Any:
        # _json, _text, _csv and ok are there when all points are.
        if name in ("_json", "_text", "_csv", "ok"):
            self.wait()
            return self.__dict__[name]
        return super().__getattr__(name)

    def __len__(self) -> int:
        return len(self._members["points"])

    def __getitem__(self, key: Any) -> Any:
        return self._members["points"][key]

    def __getstate__(self) -> Any:
        self.wait()
        return {**super().__getstate__(), "_read": None}

    def __del__(self) -> None:
        run = self.__dict__.get("_sweep")
        if run is None or run.ended:
            return
        if not self._used:
            warnings.warn("a sweep was dropped before its points were done, and ends; wait() for it",
                          RuntimeWarning, stacklevel=2)
        run.stop()

    def frame(self) -> Any:
        """A table of pandas: a row a point, the inputs as columns. ImportError without pandas."""
        import pandas  # type: ignore[import]
        rows = []
        for point in self:
            row = dict(point.inputs)
            row.update((name, value) for name, value in point.items() if name != "inputs")
            rows.append(row)
        return pandas.DataFrame(rows)
