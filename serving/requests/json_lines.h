// read_json_lines() reads a file of JSON objects as a table: one a line, or behind one another. A
// column is a key of the first object, a field the text of its value; a list of numbers is their
// texts with blanks between them. Other lists, and objects inside, are left out.
//
// Objects of lists are tables by column: {"input_lens": [10, 20], "output_lens": [1, 2]} has two
// records. A list of another length than the longest is left out.

#pragma once

#include <string>
#include <string_view>

#include "sim/base/csv_table.h"

namespace stepsim {

// `text` is what the file has. Throws ConfigError with the first problem.
CsvTable read_json_lines(const std::string& path, std::string_view text);

}  // namespace stepsim
