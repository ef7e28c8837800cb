// Parts that pages of several commands share.

#pragma once

#include <string>
#include <vector>

#include "pages/html_page.h"
#include "pages/json_fields.h"
#include "pages/quantity_words.h"

namespace stepsim {

// Returns a table of everything in an object: a row a value, under its path. `depth` of the result.
PageTable settings_table(const Json& object, std::string caption, bool folded);

// How the parts of a whole are drawn: one stacked bar, and a table with their shares.
struct StackedParts {
  std::string of;       // the bar's name: "a request"
  std::string table;    // the table's caption
  std::string unit{};   // of the numbers; empty: seconds
  std::string caption;  // of the figure
  std::string description;
  bool with_zeros = false;  // parts of 0 are shown, too
  Shown (*shown)(double value, std::string key) = shown_seconds;
};
// `parts`: an object of numbers. The figure's id is "parts".
void add_stacked_parts(HtmlPage& page, const JsonFields& parts, StackedParts words);

// The record of an experiment: what was changed, the plan with every key in force, how it was
// simulated; model, cluster and the rest folded.
void add_experiment(HtmlPage& page, const Json& experiment);

// What was asked for, if the result says so: its member `asked`, the options as they were given.
void add_asked(HtmlPage& page, const JsonFields& result);

// Returns what was asked in a line: "llama3-8b, dgx-h100-8, tp=1, poisson:rate=4". "" if the result
// doesn't say.
std::string words_of_asked(const JsonFields& result);

// Returns a copy of a result without what differs from run to run: the simulator's own times.
Json without_simulator_times(const Json& result);

}  // namespace stepsim
