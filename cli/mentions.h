// Finding formulas and studies by a word, for people who know no id: "fsdp", "part 5", "bubble".

#pragma once

#include <string>
#include <string_view>

#include "analysis/formulas/formula.h"
#include "analysis/studies/study.h"

namespace stepsim {

// True if the text has the word, whatever the case of its letters. A word of fewer than three
// letters is in no text.
bool mentions(std::string_view text, const std::string& word);

// True if the chapter, title or statement of the study, or the regime of the row, has the word.
bool mentions(const Study& study, const StudyRow& row, const std::string& word);

// True if the group, title, source, conditions or symbols of the formula have the word.
bool mentions(const Formula& formula, const std::string& word);

}  // namespace stepsim
