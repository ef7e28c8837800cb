"""Words of tables of kernels and collectives: words.toml."""

import decimal

from old_tables.rows import Refused, number_text, words_of_tables

WORDS = words_of_tables("words")


def word_of(table, text, what):
    if text not in WORDS[table]:
        raise Refused(f"{what} \"{text}\" is not known")
    return WORDS[table][text]


def types_of(text):
    """Returns a type, and that of narrower weights or ""."""
    if text in WORDS["weights"]:
        return "bf16", WORDS["weights"][text]
    known = WORDS["types"].get(text, text)
    if known and known not in WORDS["own"]["types"]:
        raise Refused(f"no such data type: {text}")
    return known, ""


def first_word(text):
    """The type in front of a remark: "bfloat16/kv bfloat16", "fp8 e4m3 1x128/128x128 scaling, bf16 out"."""
    if text in WORDS["types"]:
        return text
    for end in " /,":
        text = text.split(end)[0]
    return text


def time_of(row, column, unit):
    """Returns the time of a cell as a text: "4.045us", or in seconds where it is finer than a picosecond."""
    if row.positive(column) is None:
        raise Refused("no time was measured")
    microseconds = (decimal.Decimal(row.text(column)) * {"us": 1, "ms": 1000}[unit]).normalize()
    if microseconds.as_tuple().exponent < -6:
        return number_text(float(microseconds.scaleb(-6)))
    return f"{microseconds:f}us"


def shape_of(**sizes):
    """Returns "m=16,n=1024" of the sizes that are given."""
    return ",".join(f"{key}={value}" for key, value in sizes.items() if value not in (None, ""))


def said(row, *columns):
    """Returns what the source wrote in these columns."""
    words = [row.text(column) for column in columns]
    return "; ".join(dict.fromkeys(word for word in words if word))


def source_of(row):
    return row.text("source_id") or row.text("source")
