#include "cli/mentions.h"

#include <algorithm>

#include "analysis/formulas/formula_table.h"
#include "sim/base/small_letters.h"

namespace stepsim {

bool mentions(std::string_view text, const std::string& word) {
  constexpr std::size_t kShortest = 3;
  if (word.size() < kShortest) return false;
  const auto same_letter = [](char a, char b) { return small_letter(a) == small_letter(b); };
  return std::search(text.begin(), text.end(), word.begin(), word.end(), same_letter) != text.end();
}

bool mentions(const Study& study, const StudyRow& row, const std::string& word) {
  return mentions(study.source, word) || mentions(study.title, word) ||
         mentions(study.claim, word) || mentions(row.regime, word);
}

bool mentions(const Formula& formula, const std::string& word) {
  return mentions(name_of_group(formula.group()), word) || mentions(formula.title, word) ||
         mentions(formula.source, word) ||
         std::ranges::any_of(formula.conditions,
                             [&](const Condition& one) { return mentions(one.text, word); }) ||
         std::ranges::any_of(formula.inputs,
                             [&](const FormulaInput& one) { return mentions(one.meaning, word); });
}

}  // namespace stepsim
