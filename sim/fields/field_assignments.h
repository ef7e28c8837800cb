// Reads "key=value,key=value" into the fields of a table, as a person writes them behind an option.
//
//   const FieldTable<EngineOptions>& table = engine_fields();
//   read_assignments("budget=8192,block=16", table, &options, {.option = "--engine"}, problems);
//
// Keys may have dashes or underscores. Unknown and repeated keys, keys without a value, texts that
// can't be read and values outside their limits are problems; the field then keeps its value.

#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/fields/field.h"

namespace stepsim {

struct AssignmentRules {
  std::string option;                           // that the problems name: "--engine"
  std::span<const std::string_view> allowed{};  // keys, with underscores; empty: all of the table
  std::string_view who = {};                    // that has only the allowed keys: "orca"
};

// Returns the keys that were set, with underscores.
std::vector<std::string> read_assignments(std::string_view text, const AnyFieldTable& table,
                                          void* spec, const AssignmentRules& rules,
                                          std::vector<Problem>& problems);

}  // namespace stepsim
