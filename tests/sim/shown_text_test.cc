#include "sim/base/shown_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/base/xml_text.h"

namespace stepsim {
namespace {

using namespace std::string_literals;

constexpr const char* kReplaced = "\xef\xbf\xbd";  // U+FFFD

TEST(ShownTextTest, LeavesWordsOfAllLanguagesAlone) {
  for (const std::string text :
       {"", "tp=8,dp=4", "two\nlines\tand a tab", "Jos\u00e9 \u6a21\u578b \U0001f680", "\u00a0",
        "\u2027", "\u202f", "\ufffd"}) {
    EXPECT_EQ(shown_text(text), text);
    EXPECT_TRUE(is_plainly_shown(text)) << text;
    EXPECT_EQ(shown_text(text, true), text);
  }
}

TEST(ShownTextTest, ShowsWhatATerminalWouldObey) {
  EXPECT_EQ(shown_text("\x1b[31mred"), "\\x1b[31mred");
  EXPECT_EQ(shown_text("\x1b]0;title\x07"), "\\x1b]0;title\\x07");  // OSC sets a title
  EXPECT_EQ(shown_text("back\b, again\r"), "back\\x08, again\\x0d");
  EXPECT_EQ(shown_text("\x7f"), "\\x7f");
  EXPECT_EQ(shown_text("a\0b"s), "a\\x00b");
  EXPECT_EQ(shown_text("\u009b31m"), "\\u009b31m");  // CSI in one character
  EXPECT_EQ(shown_text("\u009f"), "\\u009f");
}

TEST(ShownTextTest, ShowsMarksOfDirectionAndOtherLineEnds) {
  for (const auto& [text, shown] :
       std::vector<std::pair<std::string, std::string>>{{"\u200e", "\\u200e"},
                                                        {"\u200f", "\\u200f"},
                                                        {"\u202a", "\\u202a"},
                                                        {"\u202e", "\\u202e"},
                                                        {"\u2066", "\\u2066"},
                                                        {"\u2069", "\\u2069"},
                                                        {"\u061c", "\\u061c"},
                                                        {"\u2028", "\\u2028"},
                                                        {"\ufeff", "\\ufeff"},
                                                        {"\U0001fffe", "\\U0001fffe"}}) {
    EXPECT_EQ(shown_text(text), shown);
    EXPECT_FALSE(is_plainly_shown(text)) << shown;
  }
}

// RFC 3629: no long forms, no surrogates, nothing above U+10FFFF, no byte alone.
TEST(ShownTextTest, ReplacesBytesThatAreNoUtf8) {
  EXPECT_EQ(shown_text("Jos\xe9"), "Jos"s + kReplaced);
  EXPECT_EQ(shown_text("\xe9t\xe9"), kReplaced + "t"s + kReplaced);
  EXPECT_EQ(shown_text("\xc0\xaf"), kReplaced + std::string(kReplaced));      // "/" in two bytes
  EXPECT_EQ(shown_text("\xe2\x82"), kReplaced + std::string(kReplaced));      // cut off
  EXPECT_EQ(shown_text("\xed\xa0\x80").find("\xed"), std::string::npos);      // a surrogate
  EXPECT_EQ(shown_text("\xf4\x90\x80\x80").find("\xf4"), std::string::npos);  // U+110000
  EXPECT_EQ(shown_text("\xf4\x8f\xbf\xbd"), "\xf4\x8f\xbf\xbd");              // U+10FFFD
  EXPECT_FALSE(is_plainly_shown("\xe9"));
}

TEST(ShownTextTest, OnlyPaintMakesCodesAndOnlyWhereThereAreColours) {
  const std::string text = paint("holds", 2);
  EXPECT_EQ(shown_text(text, true), "\x1b[1;32mholds\x1b[0m");
  EXPECT_EQ(shown_text(text), "\\ufdd2holds\\ufdd5");
  EXPECT_EQ(shown_text(paint("\x1b[2J", 0), true), "\x1b[1m\\x1b[2J\x1b[0m");
}

TEST(ShownTextTest, JsonKeepsItsValues) {
  EXPECT_EQ(json_shown("{\"a\": \"x\"}\n"), "{\"a\": \"x\"}\n");
  EXPECT_EQ(json_shown("\"\u202e\x7f\""), "\"\\u202e\\u007f\"");
  EXPECT_EQ(json_shown("\"\U0001fffe\""), "\"\\ud83f\\udffe\"");
  EXPECT_EQ(json_shown("\"\xe9\""), "\""s + kReplaced + "\"");
}

TEST(ShownTextTest, CellsAreNoFormulas) {
  for (const char* const formula : {"=1+1", "+1+1", "-1+1", "@SUM(A1)", "=cmd|' /C calc'!A0"}) {
    EXPECT_EQ(csv_cell(formula), "'"s + formula);
  }
  EXPECT_EQ(csv_cell("=HYPERLINK(\"http://x\",\"y\")"),
            "\"'=HYPERLINK(\"\"http://x\"\",\"\"y\"\")\"");
  EXPECT_EQ(csv_cell("\tx"), "'\tx");
  for (const char* const plain : {"-1.5", "-1e-9", "a=b", "", "1-2", "tp@8"}) {
    EXPECT_EQ(csv_cell(plain), plain);
  }
  EXPECT_EQ(csv_cell("7,14*8,7"), "\"7,14*8,7\"");
  EXPECT_EQ(csv_cell("two\nlines"), "\"two\nlines\"");
  EXPECT_EQ(csv_cell("Jos\xe9"), "Jos"s + kReplaced);
}

TEST(ShownTextTest, MarkupHasNoCharactersThatXmlForbids) {
  EXPECT_EQ(xml_escaped("R&D <x> \"y\" \x1b\u202e"),
            "R&amp;D &lt;x&gt; &quot;y&quot; \\x1b\\u202e");
}

}  // namespace
}  // namespace stepsim
