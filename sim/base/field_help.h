// What a person reads about the fields of a table: text for a terminal, Markdown for docs/.
//
// A field's heading has its default and limits; below stand what it is, when to change it, and what
// it has to agree with. Fields of a group carry its name: "latent.q_rank".

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/field.h"

namespace stepsim {

// All fields by theme, 80 columns wide.
std::string help_text_of(const AnyFieldTable& table);

// "name", "efficiency.matmul.tile_m", "peak[i].type", as they stand in that text.
std::vector<std::string> field_paths(const AnyFieldTable& table);

// One field, by its name with dashes or underscores; nothing if there is no such field.
std::optional<std::string> help_text_of(const AnyFieldTable& table, std::string_view name);

// Themes as headings of the second level, fields as headings of the third.
std::string markdown_of(const AnyFieldTable& table);

}  // namespace stepsim
