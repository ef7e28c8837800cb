// Files of settings, and the scripts that start trainers.

#include "import/settings/settings.h"

#include <gtest/gtest.h>

#include <string>

#include "import/settings/settings_files.h"
#include "import/settings/shell_script.h"

namespace stepsim {
namespace {

class SettingsTest : public testing::Test {
 protected:
  std::vector<Problem> problems_;
  Settings settings_{problems_};

  void yaml(const std::string& text) { read_yaml_settings(text, "x.yaml", settings_, problems_); }
  std::string problem() const {
    return problems_.empty() ? "" : problems_[0].field + " " + problems_[0].message;
  }
};

TEST_F(SettingsTest, ReadsYamlWithItsLines) {
  yaml("a:\n  b: 8  # eight\n  c: [1, 2]\n  d: null\n'e': 1e-5\nf: yes\n");
  ASSERT_EQ(problem(), "");
  EXPECT_EQ(settings_.integer("a.b"), 8);
  EXPECT_EQ(settings_.find("a.b")->place, "x.yaml:2");
  EXPECT_EQ(settings_.words("a.c"), (std::vector<std::string>{"1", "2"}));
  EXPECT_FALSE(settings_.has("a.d"));
  EXPECT_TRUE(settings_.names("a.d"));
  EXPECT_EQ(settings_.number("e"), 1e-5);
  EXPECT_EQ(settings_.truth("f"), true);
  EXPECT_EQ(settings_.unused().size(), 1U);  // a.d
}

TEST_F(SettingsTest, AliasesAreCopiedAndMergedPartsGiveWay) {
  yaml("base: &b {x: 1, y: 2}\nown:\n  <<: *b\n  y: 3\nagain: *b\n");
  ASSERT_EQ(problem(), "");
  EXPECT_EQ(settings_.integer("own.x"), 1);
  EXPECT_EQ(settings_.integer("own.y"), 3);
  EXPECT_EQ(settings_.integer("again.y"), 2);
}

// Each line is ten times the one before: 10^9 values from 300 bytes.
TEST_F(SettingsTest, AliasesThatMultiplyAreRefused) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    std::string list = before;
    for (int k = 1; k < 10; ++k) list += ", " + before;
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + list + "]\n";
  }
  yaml(text);
  EXPECT_EQ(problem(), "x.yaml:5 has more than 100000 settings, with its aliases");
}

TEST_F(SettingsTest, DeepNestingIsRefused) {
  yaml(std::string(5'000, '[') + std::string(5'000, ']'));
  EXPECT_NE(problem().find("64 deep"), std::string::npos) << problem();
}

TEST_F(SettingsTest, BadYamlIsNamedByItsLine) {
  yaml("a: 1\nb: [1, 2\nc: 3\n");
  EXPECT_EQ(problem().substr(0, 8), "x.yaml:3");
  problems_.clear();
  yaml("just a text");
  EXPECT_EQ(problem(), "x.yaml:1 must have keys and values, as in tensor_parallel: 8");
}

TEST_F(SettingsTest, ReadsTomlAndNamesItsBadLines) {
  read_toml_settings("n = 1_000\n[a.b]\nc = true\nd = [1, 2]\n", "x.toml", settings_, problems_);
  ASSERT_EQ(problem(), "");
  EXPECT_EQ(settings_.integer("n"), 1000);
  EXPECT_EQ(settings_.truth("a.b.c"), true);
  EXPECT_EQ(settings_.find("a.b.c")->place, "x.toml:3");
  read_toml_settings("n = \n", "x.toml", settings_, problems_);
  EXPECT_EQ(problem().substr(0, 8), "x.toml:1");
}

// A key of half a million parts is as many tables in one another.
TEST_F(SettingsTest, KeysOfVeryManyPartsAreRefused) {
  std::string key = "a";
  for (int i = 0; i < 500'000; ++i) key += ".a";
  read_toml_settings(key + " = 1\n", "x.toml", settings_, problems_);
  EXPECT_EQ(problem(), "x.toml has keys of too many parts: more than 5,000 dots in long lines");
  problems_.clear();
  read_toml_settings(key.substr(0, 10'001) + " = 1\n", "x.toml", settings_, problems_);
  EXPECT_NE(problem().find("64 deep"), std::string::npos) << problem();
}

TEST_F(SettingsTest, ReadsJsonAndListsOfGroups) {
  read_json_settings(R"({"a": {"b": 1.5}, "l": [{"m": 2}], "t": "auto"})", "x.json", settings_,
                     problems_);
  ASSERT_EQ(problem(), "");
  EXPECT_EQ(settings_.number("a.b"), 1.5);
  EXPECT_EQ(settings_.integer("l.0.m"), 2);
  EXPECT_EQ(settings_.text("t"), "auto");
  EXPECT_EQ(settings_.integer("a.b"), std::nullopt);
  EXPECT_EQ(problem(), "x.json: a.b must be a whole number, is 1.5");
}

TEST_F(SettingsTest, ReferencesAreResolvedWhereTheyCanBe) {
  yaml(
      "m:\n  s: 512\n  p: ${.s}\n  q: ${m.p}\n  k: ${multiply:${m.s}, 3}\n  u: ${env.HOME}\n"
      "  loop: ${m.loop}\n  d: ${divide:7,0}\n");
  resolve_references(settings_);
  EXPECT_EQ(settings_.integer("m.p"), 512);
  EXPECT_EQ(settings_.integer("m.q"), 512);
  EXPECT_EQ(settings_.integer("m.k"), 1536);
  EXPECT_EQ(settings_.text("m.u"), "${env.HOME}");
  EXPECT_EQ(settings_.text("m.loop"), "${m.loop}");
  EXPECT_EQ(settings_.text("m.d"), "${divide:7,0}");
}

TEST_F(SettingsTest, OverridesWin) {
  yaml("a:\n  b: 1\n");
  apply_override("a.b=2", settings_);
  apply_override("l=[x, y]", settings_);
  EXPECT_EQ(settings_.integer("a.b"), 2);
  EXPECT_EQ(settings_.words("l"), (std::vector<std::string>{"x", "y"}));
  EXPECT_TRUE(is_override("a.b=2"));
  EXPECT_FALSE(is_override("/tmp/a=b/c.yaml"));
}

std::string commands_of(const std::string& text,
                        const std::map<std::string, std::string>& given = {}) {
  std::vector<Problem> problems;
  const ShellScript script = read_shell_script(text, "x.sh", given, problems);
  EXPECT_TRUE(problems.empty());
  std::string all;
  for (const ShellCommand& command : script.commands) {
    for (const ShellWord& word : command.words) all += "<" + word.text + ">";
    all += "\n";
  }
  return all;
}

TEST(ShellScriptTest, ExpandsVariablesArraysAndSums) {
  EXPECT_EQ(commands_of("N=4\nA=(--x $((2 * N + 1)) \"b c\")\nA+=(--y)\nrun ${A[@]} \"${A[@]}\"\n"),
            "<run><--x><9><b><c><--y><--x><9><b c><--y>\n");
  EXPECT_EQ(commands_of("run ${X:-7} ${Y} $1 '$N' \\\n  last # not this\n"),
            "<run><7><${Y}><$1><$N><last>\n");
  EXPECT_EQ(commands_of("N=1\nrun $N\n", {{"N", "16"}}), "<run><16>\n");
}

TEST(ShellScriptTest, ATextInQuotesIsCutWhereItIsNotQuoted) {
  EXPECT_EQ(commands_of("A=\" --x 1 \\\n --y\"\nrun $A \"$A\"\n"),
            "<run><--x><1><--y>< --x 1 \n --y>\n");
  EXPECT_EQ(commands_of("A=(--x 1)\nC=\"go ${A[@]}\"\nrun \"$C\"\n"), "<run><go --x 1>\n");
}

TEST(ShellScriptTest, DecidesConditionsThatCompareTexts) {
  const std::string script =
      "if [ \"${K}\" = a ]; then\n  run 1\nelif [[ -z \"$NONE\" && $K != c ]]; then\n  run 2\n"
      "  if [ -f /etc/passwd ]; then run 3; else run 4; fi\nelse\n  run 5\nfi\n";
  EXPECT_EQ(commands_of("K=a\n" + script), "<run><1>\n");
  EXPECT_EQ(commands_of("K=b\n" + script), "<run><2>\n<run><4>\n");
  EXPECT_EQ(commands_of("K=c\n" + script), "<run><5>\n");
}

TEST(ShellScriptTest, WordsKeepTheirLines) {
  std::vector<Problem> problems;
  const ShellScript script =
      read_shell_script("A=(\n  --x 1\n  --y 2\n)\nrun ${A[@]}\n", "x.sh", {}, problems);
  ASSERT_EQ(script.commands.size(), 1U);
  EXPECT_EQ(script.commands[0].words[3].text, "--y");
  EXPECT_EQ(script.commands[0].words[3].line, 3U);
}

// 2^40 words.
TEST(ShellScriptTest, VariablesThatMultiplyAreRefused) {
  std::string text = "A=\"x x\"\n";
  for (int i = 0; i < 40; ++i) text += "A=\"$A $A\"\n";
  std::vector<Problem> problems;
  read_shell_script(text, "x.sh", {}, problems);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].message, "has variables that multiply beyond 16 MiB");
}

}  // namespace
}  // namespace stepsim
