"""Finds where C++ of this project can be mutated: operators, constants, statements, conditions.

Reads tokens, not a syntax tree, and leans on how clang-format lays the code out: a binary operator has
spaces on both sides, the bracket of a template has not. A guess that is wrong costs a mutation that does
not compile, which nobody counts.

Places are in function bodies and, in a source, in the values of constants outside of functions. Never in
comments, strings, directives, assertions, heads of templates, declarations and default values of members;
nor in reserve() and prefetches, which change nothing but speed.
"""
import bisect
import dataclasses
import re

OPERATORS = {"+": "-", "-": "+", "*": "/", "/": "*", "%": "*", "+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=",
             "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&"}
STEPS = {"++": "--", "--": "++"}
EXTREMES = {"min": "max", "max": "min", "min_element": "max_element", "max_element": "min_element"}
TRUTHS = {"true": "false", "false": "true"}
ASSERTIONS = {"assert", "static_assert"}
ONLY_SPEED = {"reserve", "__builtin_prefetch"}
JUMPS = {"break", "continue", "return"}
ASSIGNS = {"=", "+=", "-=", "*=", "/=", "%=", "|=", "&=", "^=", "<<=", ">>="}
NEVER_FIRST = {"auto", "case", "catch", "class", "const", "constexpr", "default", "do", "else", "enum", "for", "goto",
               "if", "new", "static", "static_assert", "struct", "switch", "template", "try", "typedef", "typename",
               "union", "using", "while"}

TOKEN = re.compile(r"""
    (?P<space>\s+|//[^\n]*|/\*.*?\*/)
  | (?P<directive>^[ \t]*\#(?:[^\n\\]|\\.)*)
  | (?P<string>\w*R"(?P<fence>[^()\s\\]*)\(.*?\)(?P=fence)"|(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*")
  | (?P<char>'(?:[^'\\\n]|\\.)+')
  | (?P<number>\.?\d(?:[eEpP][-+]|'?[\w.])*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<operator><<=|>>=|<=>|\.\.\.|->\*|::|->|\+\+|--|[-+*/%<>=!&|^]=|&&|\|\||<<|>>|[^\s\w])
""", re.X | re.S | re.M)
WHOLE = re.compile(r"(0[xX][\da-fA-F']+|\d[\d']*)([uUlLzZ]*|_\w+)")
CLOSING = {"(": ")", "[": "]", "{": "}"}


@dataclasses.dataclass(frozen=True)
class Mutation:
    kind: str
    start: int  # the characters of the file that are replaced
    end: int
    line: int
    column: int
    before: str
    after: str


@dataclasses.dataclass
class Token:
    kind: str
    text: str
    start: int
    end: int
    scope: str = ""  # innermost braces: file, namespace, class, block
    depth: int = 0
    in_value: bool = False  # in the initialiser of a constant outside of functions
    starts: bool = False    # begins a statement of a block
    skipped: bool = False


def tokens_of(text):
    return [Token(match.lastgroup if match.lastgroup != "fence" else "string", match.group(), *match.span())
            for match in TOKEN.finditer(text) if match.lastgroup not in ("space", "directive")]


def _ends_a_head(tokens, i):
    """Whether the tokens before i end the head of a function, a lambda or a control statement."""
    previous = tokens[i - 1].text
    if previous in (")", "]", "else", "do", "try", "const", "noexcept", "override", "mutable"):
        return True
    for j in range(i - 1, max(i - 14, 1), -1):  # `-> Type {`
        if tokens[j].text == "->":
            return tokens[j - 1].text == ")"
        if tokens[j].kind != "word" and tokens[j].text not in ("::", "<", ">", ">>", "*", "&", ","):
            return False
    return False


def _scope_of_brace(tokens, i, first, scope):
    """Returns what the brace at i opens: namespace, class, block, or value (an initialiser)."""
    head = [token.text for token in tokens[first:i]]
    if "namespace" in head:
        return "namespace"
    kinds = {"class", "struct", "union", "enum"} & set(head)
    if kinds and scope != "value" and not {"(", "="} & set(head[head.index(kinds.pop()):]):
        return "class"
    if i > 0 and _ends_a_head(tokens, i):
        return "block"
    plain = scope == "block" and (not head or head[-1] == ":")
    return "block" if plain else "value"


def _mark_scopes(tokens):
    stack = [["file", 0]]  # what it is; first token of the current statement
    control_parentheses = set()
    next_starts = False
    for i, token in enumerate(tokens):
        scopes = [kind for kind, _ in stack if kind not in ("paren", "value")]
        if token.text in (")", "]", "}") and len(stack) > 1:
            kind, first = stack.pop()
        token.scope = scopes[-1]
        token.depth = len(stack)
        since = [other.text for other in tokens[stack[-1][1]:i]]
        token.in_value = stack[-1][0] in ("value", "paren") or "=" in since
        token.starts = stack[-1][0] == "block" and (next_starts or stack[-1][1] == i)
        next_starts = False
        if token.text in ("(", "["):
            previous = tokens[i - 1].text if i else ""
            if previous in ("if", "for", "while", "switch", "constexpr"):
                control_parentheses.add(len(stack))
            stack.append(["paren", i + 1])
        elif token.text == "{":
            top, first = stack[-1]
            stack.append([_scope_of_brace(tokens, i, first, top), i + 1])
        elif token.text == ")" and len(stack) in control_parentheses:
            control_parentheses.discard(len(stack))
            next_starts = True
        elif token.text == "else":
            next_starts = True
        elif token.text == ":" and {"case", "default"} & set(since[:1]):
            stack[-1][1] = i + 1
        elif token.text == ";" or (token.text == "}" and kind != "value"):
            stack[-1][1] = i + 1


def _closing(tokens, i):
    """Returns the position of the bracket that closes the one at i."""
    depth = 0
    for j in range(i, len(tokens)):
        depth += tokens[j].text in CLOSING
        depth -= tokens[j].text in CLOSING.values()
        if depth == 0:
            return j
    return len(tokens) - 1


def _after_angles(tokens, i):
    """Returns the position after the template arguments that begin at i."""
    depth = 0
    for j in range(i, len(tokens)):
        depth += {"<": 1, ">": -1, ">>": -2}.get(tokens[j].text, 0)
        if depth <= 0:
            return j + 1
    return len(tokens)


def _skip(tokens):
    i = 0
    while i < len(tokens):
        end = i + 1
        if tokens[i].text in ASSERTIONS | ONLY_SPEED and i + 1 < len(tokens):
            end = _closing(tokens, i + 1) + 1
        elif tokens[i].text == "template" and i + 1 < len(tokens) and tokens[i + 1].text == "<":
            end = _after_angles(tokens, i + 1)
        elif tokens[i].text in ("using", "typedef"):
            end = next((j for j in range(i, len(tokens)) if tokens[j].text == ";"), i) + 1
        elif tokens[i].text == "operator":
            end = i + 2
        for token in tokens[i:end]:
            token.skipped = end > i + 1
        i = end


def _next_whole(text):
    match = WHOLE.fullmatch(text)
    if not match:
        zero = not re.search("[1-9]", re.split("[eEpP]", text)[0])
        return None if "_" in text else "1.0" if zero else f"(2 * {text})"
    digits, suffix = match.groups()
    value = int(digits.replace("'", ""), 16 if digits[:2].lower() == "0x" else 10)
    return f"{0 if value == 1 else value + 1}{suffix}"


def _is_expression(tokens, i):
    """Whether the statement at i is a call, an assignment or a step: no declaration."""
    while tokens[i].text in ("*", "++", "--", "("):
        i += 1
    if tokens[i].kind != "word" or tokens[i].text in NEVER_FIRST:
        return False
    while True:
        i += 1
        if tokens[i].text == "<":
            after = _after_angles(tokens, i)
            if tokens[after].text not in ("::", "("):
                return False
            i = after
        if tokens[i].text != "::":
            break
        i += 1
    return tokens[i].text in ASSIGNS | {"(", ")", "[", ".", "->", "++", "--"}


def _statement(tokens, i):
    """Returns the position after the statement at i if it can be left out."""
    first = tokens[i].text
    end = next((j for j in range(i, len(tokens)) if tokens[j].text == ";" and tokens[j].depth == tokens[i].depth), None)
    if end is None:
        return None
    if first in JUMPS:
        return end + 1 if end == i + 1 else None
    if first == "throw":
        return end + 1 if tokens[i - 1].text == ")" else None
    for_speed = any(token.text in ONLY_SPEED for token in tokens[i:end])
    return end + 1 if not for_speed and _is_expression(tokens, i) else None


def _condition(tokens, i):
    """Returns first and last token of the condition of the `if` or `while` at i."""
    if tokens[i + 1].text != "(":
        return None
    first, last = i + 2, _closing(tokens, i + 1) - 1
    for j in range(first, last + 1):
        if tokens[j].depth == tokens[first].depth and tokens[j].text == ";":
            first = j + 1
    declares = any(tokens[j].text == "=" and tokens[j].depth == tokens[first].depth for j in range(first, last + 1))
    texts = [token.text for token in tokens[first:last + 1]]
    simple = not {"&&", "||"} & set(texts) and (texts[:1] == ["!"] or {"==", "!="} & set(texts))  # has a mutation
    return None if declares or simple or not texts else (first, last)


def mutations_of(text, is_header):
    """Returns the mutations of a file, in the order of their places."""
    tokens = tokens_of(text)
    _mark_scopes(tokens)
    _skip(tokens)
    lines = [0] + [match.end() for match in re.finditer("\n", text)]
    found = []

    def add(kind, start, end, after):
        line = bisect.bisect_right(lines, start)
        found.append(Mutation(kind, start, end, line, start - lines[line - 1] + 1, text[start:end], after))

    for i, token in enumerate(tokens):
        counts = token.scope == "block" or (not is_header and token.scope in ("file", "namespace") and token.in_value)
        if token.skipped or not counts or not 0 < i < len(tokens) - 1:
            continue
        spaced = text[token.start - 1].isspace() and text[token.end].isspace()
        if token.kind == "operator" and token.text in OPERATORS and spaced:
            add("operator", token.start, token.end, OPERATORS[token.text])
        elif token.text in STEPS:
            add("operator", token.start, token.end, STEPS[token.text])
        elif token.text in EXTREMES and [t.text for t in tokens[i - 2:i]] in (["std", "::"], ["ranges", "::"]):
            add("operator", token.start, token.end, EXTREMES[token.text])
        elif token.text in TRUTHS:
            add("constant", token.start, token.end, TRUTHS[token.text])
        elif token.kind == "number" and _next_whole(token.text):
            add("constant", token.start, token.end, _next_whole(token.text))
        elif token.text == "!":
            add("condition", token.start, token.end, "")
        elif token.text in ("if", "while") and (condition := _condition(tokens, i)):
            start, end = tokens[condition[0]].start, tokens[condition[1]].end
            add("condition", start, end, f"!({text[start:end]})")
        if token.starts and (end := _statement(tokens, i)):
            add("statement", token.start, tokens[end - 1].end, ";")
    return found
