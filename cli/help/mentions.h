// Finds formulas and studies by a word, for people who know no id: "fsdp", "part 5", "bubble".

#pragma once

#include <string>
#include <string_view>

#include "books/formulas/formula.h"
#include "books/laboratory/study.h"

namespace stepsim {

// Returns whether the text contains the word, ignoring case, dashes and underscores. A word of
// fewer than three letters is never found.
bool mentions(std::string_view text, const std::string& word);

// Returns whether the chapter, title or statement of the study, the regime of the row, or the group
// or title of its formula has the word.
bool mentions(const Study& study, const StudyRow& row, const std::string& word);

// Returns whether the group, title, source, conditions or symbols of the formula have the word.
bool mentions(const Formula& formula, const std::string& word);

}  // namespace stepsim
