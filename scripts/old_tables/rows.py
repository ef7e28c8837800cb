"""What readers of old tables share: cells of a row, and the catalog's files."""

import functools
import pathlib
import re
import tomllib

CATALOG = pathlib.Path(__file__).resolve().parents[2] / "catalog"


class Refused(Exception):
    """Why a row, or a table, can't be converted."""


def is_blank(text):
    return text in ("", "-", "?", "n/a", "N/A") or text.startswith(("unknown", "not stated"))


def squeezed(text):
    """Small letters, without spaces, "-" and "_"."""
    return re.sub(r"[ _-]", "", text.lower())


def letters_and_digits(text):
    return re.sub(r"[^a-z0-9]", "", text.lower())


class Row:
    """A row of an old table, and what was assumed where it says nothing."""

    def __init__(self, cells):
        self.cells = cells
        self.assumed = []

    def text(self, column):
        return (self.cells.get(column) or "").strip()

    def integer(self, column):
        """Returns a whole number; None where the cell is blank."""
        text = self.text(column)
        if is_blank(text):
            return None
        if not re.fullmatch(r"[0-9]+(\.0*)?", text):
            raise Refused(f"{column} is \"{text}\", must be a whole number")
        value = int(text.split(".")[0])
        if value < 1:
            raise Refused(f"{column} must be at least 1, is {value}")
        return value

    def need(self, column):
        value = self.integer(column)
        if value is None:
            raise Refused(f"{column} is not given")
        return value

    def positive(self, column):
        """Returns a number above 0, also one before a note in parentheses; None where the cell is blank."""
        text = self.text(column)
        if is_blank(text):
            return None
        try:
            value = float(text.split(" (")[0])
        except ValueError:
            value = 0
        if not 0 < value < float("inf"):
            raise Refused(f"{column} is \"{text}\", must be a number above 0")
        return value


def cell_text(value):
    """The text of a key's value: "true", "8", "all_but"."""
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


def number_text(value):
    """The shortest text that reads back as the same number."""
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


# ---- files of the catalog ----

_TOKEN = re.compile(r'\s*(?:#[^\n]*|("(?:[^"\\]|\\.)*")|([{}:])|([^\s{}:"#]+))')


def read_textproto(path):
    return parse_textproto(path.read_text(encoding="utf-8"))


def parse_textproto(text):
    """Returns a message as a dict from the names of its fields to lists of values: texts, and dicts of messages."""
    tokens = [match.group(1) or match.group(2) or match.group(3)
              for match in _TOKEN.finditer(text)]
    tokens = iter([token for token in tokens if token])

    def message():
        fields = {}
        for name in tokens:
            if name == "}":
                break
            value = next(tokens)
            if value == ":":
                value = next(tokens)
            fields.setdefault(name, []).append(message() if value == "{" else value.strip('"'))
        return fields

    return message()


@functools.cache
def words_of_tables(name):
    """Returns a dictionary of this folder: what words of cells mean."""
    return tomllib.loads((pathlib.Path(__file__).parent / f"{name}.toml").read_text(encoding="utf-8"))
