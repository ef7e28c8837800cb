"""Work that threads of C++ do while Python waits, so that Ctrl-C reaches it."""
import sys
import threading
from typing import Callable, Generic, List, Optional, TypeVar

from ._errors import NoAnswer

_LONGEST_WAIT_S = 0.2
_R = TypeVar("_R")
# Called with goes_on and part of _core.call.
Work = Callable[[Callable[[], bool], Callable[[str], None]], _R]


class Background(Generic[_R]):
    """A thread that does some work, and what it has said so far: `texts`, and in the end `whole` or
    `error`."""

    def __init__(self, work: "Work[_R]"):
        self._known = threading.Condition(threading.Lock())  # guards the next three
        self.texts: List[str] = []
        self.whole: Optional[_R] = None
        self.error: Optional[BaseException] = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(work,), name="stepsim")
        self._thread.start()

    def _run(self, work: "Work[_R]") -> None:
        whole: Optional[_R] = None
        error: Optional[BaseException] = None
        try:
            whole = work(self._goes_on, self._take)
        except BaseException as raised:  # raised again where the result is asked for
            error = NoAnswer("the work was stopped") if self._stop.is_set() else raised
        with self._known:
            self.whole, self.error = whole, error
            self._known.notify_all()

    def _goes_on(self) -> bool:
        # At the end of the process nobody waits for the rest.
        return not self._stop.is_set() and threading.main_thread().is_alive()

    def _take(self, text: str) -> None:
        with self._known:
            self.texts.append(text)
            self._known.notify_all()

    @property
    def ended(self) -> bool:
        return self.whole is not None or self.error is not None

    def wait_for(self, texts: int) -> None:
        """Waits until so many texts are there or none comes any more. Ctrl-C stops the work."""
        try:
            with self._known:
                # A signal that comes just before a wait doesn't end it, so none lasts.
                while not self.ended and len(self.texts) < texts:
                    self._known.wait(_LONGEST_WAIT_S)
        except BaseException:
            self.stop()
            raise

    def result(self) -> _R:
        """Waits for the end."""
        self.wait_for(sys.maxsize)
        if self.error is not None:
            raise self.error
        assert self.whole is not None
        return self.whole

    def stop(self) -> None:
        """Ends the simulations that are running, and waits for that: about 50 ms of their work."""
        self._stop.set()
        if self._thread is not threading.current_thread():
            self._thread.join()


def interruptible(work: Callable[[Optional[Callable[[], bool]]], _R]) -> _R:
    """Does work that waits for threads of its own. Python looks for signals in the main thread
    alone, which does not do such work itself."""
    if threading.current_thread() is not threading.main_thread():
        return work(None)
    return Background(lambda goes_on, _: work(goes_on)).result()
