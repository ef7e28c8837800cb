#include "cli/help/mentions.h"

#include <algorithm>

#include "books/formulas/formula_table.h"
#include "sim/base/small_letters.h"

namespace stepsim {
namespace {

// "All-Reduce", "all_reduce" and "AllReduce" are "allreduce".
std::string small_letters_joined(std::string_view text) {
  std::string letters;
  for (const char letter : text) {
    if (letter != '-' && letter != '_') letters += small_letter(letter);
  }
  return letters;
}

}  // namespace

bool mentions(std::string_view text, const std::string& word) {
  constexpr std::size_t kShortest = 3;
  const std::string wanted = small_letters_joined(word);
  return wanted.size() >= kShortest && small_letters_joined(text).find(wanted) != std::string::npos;
}

bool mentions(const Study& study, const StudyRow& row, const std::string& word) {
  const Formula* const formula = find_formula(row.formula);
  return mentions(study.source, word) || mentions(study.title, word) ||
         mentions(study.claim, word) || mentions(row.regime, word) ||
         (formula != nullptr &&
          (mentions(name_of_group(formula->group()), word) || mentions(formula->title, word)));
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
