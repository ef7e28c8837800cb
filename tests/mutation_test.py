#!/usr/bin/env python3
"""scripts/mutation/places.py: what is mutated in a piece of C++, and what is left alone. scripts/mutate.py: what
is kept of a run that was ended."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))

from mutate import Results  # noqa: E402
from mutation.places import mutations_of  # noqa: E402


def changes(text, is_header=False):
    return {(mutation.before, mutation.after) for mutation in mutations_of(text, is_header)}


def body(text):
    return changes("int run(std::vector<int>& list, int n, bool on) {\n" + text + "\n}\n")


class PlacesTest(unittest.TestCase):
    def test_operators_between_spaces(self):
        self.assertEqual(body("  return n * *list.data() < n && n >= *p;"),
                         {("*", "/"), ("<", "<="), ("&&", "||"), (">=", ">")})

    def test_brackets_of_templates_pointers_and_references_are_no_operators(self):
        self.assertEqual(body("  const std::vector<int>* a = nullptr;\n  auto&& b = list;\n  int c = -n;"), set())

    def test_constants(self):
        self.assertEqual(body("  return f(0, 1, 7u, 1'000, 0x10, 2.5, 0.0, 64_GiB, true);"),
                         {("0", "1"), ("1", "0"), ("7u", "8u"), ("1'000", "1001"), ("0x10", "17"),
                          ("2.5", "(2 * 2.5)"), ("0.0", "1.0"), ("64_GiB", "65_GiB"), ("true", "false")})

    def test_steps_and_extremes(self):
        self.assertEqual(body("  return std::max(++n, std::numeric_limits<int>::max());"),
                         {("++", "--"), ("max", "min")})

    def test_statements_are_left_out_but_no_declarations(self):
        self.assertEqual(body("  int a = n;\n  std::vector<int> b(n);\n  list.push_back(n);\n  list[n] = a;\n"
                              "  for (;;) break;\n  return a;"),
                         {("list.push_back(n);", ";"), ("list[n] = a;", ";"), ("break;", ";")})

    def test_statements_under_a_condition_and_in_a_lambda(self):
        self.assertEqual(body("  if (on) throw Error(list);\n  each([&](int i) { list.push_back(i); });"),
                         {("on", "!(on)"), ("throw Error(list);", ";"), ("list.push_back(i);", ";"),
                          ("each([&](int i) { list.push_back(i); });", ";")})

    def test_a_condition_is_negated_once(self):
        self.assertEqual(body("  if (!on) return n;"), {("!", "")})
        self.assertEqual(body("  if (n == list) return n;"), {("==", "!=")})
        self.assertEqual(body("  while (on && f(n)) return n;"),
                         {("on && f(n)", "!(on && f(n))"), ("&&", "||")})
        self.assertEqual(body("  if (const auto* p = f(n)) return n;"), set())

    def test_what_does_not_matter_is_left_alone(self):
        self.assertEqual(body('  // a + b\n  assert(n > 0);\n  static_assert(sizeof(n) == 4);\n'
                              '  log("a < b" /* 1 */);\n'
                              "  list.reserve(2 * n);\n  using A = Array<3>;"), {('log("a < b" /* 1 */);', ";")})

    def test_constants_of_sources_but_no_declarations(self):
        text = ("#include <a>\n#define A 1 + 2\nnamespace a {\nconstexpr Unit kUnits[] = {{5}};\n"
                "const int kLimit = n + m;\n"
                "struct Options {\n  int count = 3;\n  bool operator==(const Options&) const = default;\n"
                "  int half() const { return count / 2; }\n};\nint f(int x);\n}  // namespace a\n")
        in_functions = {("/", "*"), ("2", "3")}
        self.assertEqual(changes(text), {("5", "6"), ("+", "-")} | in_functions)
        self.assertEqual(changes(text, is_header=True), in_functions)

    def test_lines_and_columns_count_from_1(self):
        (mutation,) = mutations_of("int f() {\n  return 5;\n}\n", True)
        self.assertEqual((mutation.line, mutation.column, mutation.kind), (2, 10, "constant"))


class ResultsTest(unittest.TestCase):
    def test_a_line_that_was_cut_off_takes_no_other_with_it(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "results.jsonl"
            Results(file).add({"key": "a"})
            with file.open("a") as out:
                out.write('{"key": "cut')
            Results(file).add({"key": "b"})
            self.assertEqual(list(Results(file).by_key), ["a", "b"])


if __name__ == "__main__":
    unittest.main()
