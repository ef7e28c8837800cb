// Renders the documentation of a table's fields: text for a terminal and Markdown for docs/.
//
// A field's heading shows its default and limits. The text below says what the field is, when to
// change it, and how it must agree with other fields. Fields of a group carry the group's name:
// "latent.q_rank".

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/fields/field.h"

namespace stepsim {

// Returns the text for all fields, by theme, 80 columns wide.
std::string help_text_of(const AnyFieldTable& table);

// Returns "name", "efficiency.matmul.tile_m", "peak[i].type", ... in the order of that text.
std::vector<std::string> field_paths(const AnyFieldTable& table);

// Returns the text for one field. The name may have dashes or underscores. nullopt: there is no
// such field.
std::optional<std::string> help_text_of(const AnyFieldTable& table, std::string_view name);

// Returns Markdown with themes as second-level headings and fields as third-level headings.
std::string markdown_of(const AnyFieldTable& table);

}  // namespace stepsim
