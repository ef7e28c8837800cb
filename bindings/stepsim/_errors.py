"""What is raised: InputError for input that can't be run, NoAnswer where there is no result."""
from typing import Iterable, List, NamedTuple, Tuple


class Problem(NamedTuple):
    """One thing that is wrong with the input: which field, and what it must be."""

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


class InputError(ValueError):
    """The input is wrong. `problems` has every problem at once, as the command line lists them."""

    problems: List[Problem]

    def __init__(self, problems: Iterable[Tuple[str, str]]):
        self.problems = [Problem(*problem) for problem in problems]
        super().__init__("\n".join(str(problem) for problem in self.problems))

    def __reduce__(self) -> Tuple[type, Tuple[List[Problem]]]:
        return (InputError, (self.problems,))


class NoAnswer(RuntimeError):
    """The work has no result, such as requests that wait for ever."""
