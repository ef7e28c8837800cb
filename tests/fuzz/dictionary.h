// Words that lead a fuzzer into the reader of a target, from what the program declares: the fields
// of messages and tables, and the words that they accept. Words that nothing declares (units, words
// of other software's files) stand in dictionaries/<target>.

#pragma once

#include <string>
#include <string_view>

namespace stepsim {

// Returns the dictionary as libFuzzer takes it, a quoted word a line; "" for other targets.
std::string dictionary_of(std::string_view target);

}  // namespace stepsim
