// Texts that strangers wrote, where they are shown: names in experiments, tables, traces and
// results, names of files, words of a command line. What goes to a terminal passes shown_text() at
// the one place that writes there (cli/session/standard_output.h), so nobody else has to think of
// it.
//
//   shown_text("a\x1b[31mb")      // "a\\x1b[31mb": no terminal obeys it
//   csv_cell("=HYPERLINK(..)")    // "'=HYPERLINK(..)": no spreadsheet does
//
// Hidden characters are those that a terminal obeys or that change how a line reads: control
// characters but the tab and the end of a line, marks of the direction of writing (U+202E turns
// what follows round), other ends of lines, the byte order mark and noncharacters. Bytes that are
// no UTF-8 become U+FFFD, one each. All of it takes time linear in the text.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stepsim {

// Returns the text with hidden characters as "\x1b" or "\u202e", in valid UTF-8. If `color`, the
// marks of paint() become the codes of a terminal; otherwise they are hidden characters like
// others.
std::string shown_text(std::string_view text, bool color = false);

// Returns whether shown_text() would return the same text. Takes no memory.
bool is_plainly_shown(std::string_view text) noexcept;

// Returns the text between marks that mean the colour `code`, below kPaints: "1" and "2" are bold
// and dim, then come green, red and cyan. The marks are noncharacters of Unicode, which are meant
// for this, so a text in which somebody wrote escape sequences is never taken for one.
inline constexpr std::size_t kPaints = 5;
std::string paint(std::string_view text, std::size_t code);

// Returns a JSON text with the hidden characters of its strings as \u202e, which is the same value.
// REQUIRES: it is valid JSON but for bytes that are no UTF-8.
std::string json_shown(std::string json);

// Returns a cell of CSV: in quotes if it needs them. One that is no number and begins with = + - @,
// a tab or a carriage return has a ' before it, as spreadsheets take it for a formula otherwise.
std::string csv_cell(std::string_view text);

}  // namespace stepsim
