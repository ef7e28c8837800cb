// Reads the formulas of catalog/formulas: a file a group, and the inputs that groups share. The
// files are part of the program, so a mistake in one is std::logic_error; the test of the table
// evaluates every formula.

// toml++ 3.3 asserts that a key begins behind "[" before it looks, and where NDEBUG is defined it
// has compilers assume so.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expr) static_assert(true)
#include <toml++/toml.h>
#undef TOML_ASSERT
#pragma pop_macro("NDEBUG")

#include <algorithm>
#include <array>
#include <charconv>
#include <deque>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "books/formulas/formula_table.h"
#include "books/formulas/sources.h"
#include "catalog/catalog_data.h"

namespace stepsim {
namespace {

template <class Value, std::size_t kSize>
using Words = std::array<std::pair<std::string_view, Value>, kSize>;

constexpr Words<InputRange, 4> kRanges{{{"", InputRange::kPositive},
                                        {"not_negative", InputRange::kNotNegative},
                                        {"count", InputRange::kCount},
                                        {"fraction", InputRange::kFraction}}};

constexpr Words<CatalogValue, 14> kCatalogValues{
    {{"", CatalogValue::kNone},
     {"chip.bf16_peak", CatalogValue::kChipBf16Peak},
     {"chip.memory_bandwidth", CatalogValue::kChipMemoryBandwidth},
     {"chip.memory_capacity", CatalogValue::kChipMemoryCapacity},
     {"chip.link_bandwidth", CatalogValue::kChipLinkBandwidth},
     {"chip.axis_bandwidth", CatalogValue::kChipAxisBandwidth},
     {"model.layers", CatalogValue::kModelLayers},
     {"model.hidden", CatalogValue::kModelHidden},
     {"model.intermediate", CatalogValue::kModelIntermediate},
     {"model.heads", CatalogValue::kModelHeads},
     {"model.kv_heads", CatalogValue::kModelKvHeads},
     {"model.head_width", CatalogValue::kModelHeadWidth},
     {"model.vocabulary", CatalogValue::kModelVocabulary},
     {"model.parameters", CatalogValue::kModelParameters}}};

template <class List>
auto meaning_of(const List& words, std::string_view word) {
  const auto found = std::find_if(words.begin(), words.end(),
                                  [&](const auto& pair) { return pair.first == word; });
  if (found == words.end()) throw std::logic_error("catalog/formulas: " + std::string(word));
  return found->second;
}

using InputsByKey = std::map<std::string, FormulaInput, std::less<>>;

class FormulaFiles {
 public:
  FormulaFiles() {
    for (const CatalogFile& file : catalog_files()) {
      if (file.kind == "formulas") files_.emplace(file.name, toml::parse(file.text));
    }
    const toml::table& shared = files_.at("shared");
    shared_ = inputs_of(shared);
    for (const auto& [id, what] : *shared["no_formulas"].as_table()) {
      no_formulas_.push_back({kept(std::string(id.str())), text(what)});
    }
    std::ranges::sort(no_formulas_, {}, &NoFormula::id);
    for (const auto& [name, file] : files_) {
      if (name != "shared") read_group(file);
    }
    // By group; within one as in its file.
    std::ranges::stable_sort(formulas_, {}, &Formula::group);
  }

  const std::vector<Formula>& formulas() const { return formulas_; }
  const std::vector<NoFormula>& no_formulas() const { return no_formulas_; }
  std::string_view title_of(char group) const {
    const auto found = titles_.find(group);
    return found == titles_.end() ? std::string_view() : found->second;
  }

 private:
  // Texts live as long as the table.
  std::string_view kept(std::string text) { return texts_.emplace_back(std::move(text)); }

  template <class Node>
  std::string_view text(const Node& node) {
    return kept(node.template value<std::string>().value());
  }

  std::string_view text_or_none(const toml::table& row, std::string_view name) {
    return row.contains(name) ? text(row[name]) : std::string_view();
  }

  InputsByKey inputs_of(const toml::table& file) {
    InputsByKey inputs;
    const toml::table* const rows = file["inputs"].as_table();
    if (rows == nullptr) return inputs;
    for (const auto& [key, node] : *rows) {
      const toml::table& row = *node.as_table();
      const std::string name(key.str());
      inputs[name] = {.symbol = kept(name.substr(0, name.find('.'))),
                      .unit = text_or_none(row, "unit"),
                      .meaning = text_or_none(row, "meaning"),
                      .range = meaning_of(kRanges, text_or_none(row, "range")),
                      .catalog = meaning_of(kCatalogValues, text_or_none(row, "catalog"))};
    }
    return inputs;
  }

  // "P.pipeline", or with a value that holds where none is given: "b=1".
  FormulaInput input(const std::string& words, const InputsByKey& own) const {
    const std::size_t equals = words.find('=');
    const std::string key = words.substr(0, equals);
    const auto found = own.find(key);
    const FormulaInput input = found != own.end() ? found->second : shared_.at(key);
    return equals == std::string::npos ? input : input.or_else(std::stod(words.substr(equals + 1)));
  }

  Condition condition(const toml::node& node) {
    if (node.is_string()) return {.text = text(node)};
    const toml::table& row = *node.as_table();
    return {.text = text(row["text"]), .check = text(row["check"])};
  }

  // "T s": the symbol and its unit.
  static FormulaResult result(std::string_view words) {
    const std::size_t blank = words.find(' ');
    if (blank == std::string_view::npos) return {words, ""};
    return {words.substr(0, blank), words.substr(blank + 1)};
  }

  // "@lecture8" is a document of sources.h.
  static std::string_view source(std::string_view words) {
    return words.starts_with('@') ? meaning_of(kDocuments, words.substr(1)) : words;
  }

  void read_group(const toml::table& file) {
    titles_[text(file["group"]).front()] = text(file["title"]);
    const InputsByKey own = inputs_of(file);
    for (const toml::node& node : *file["formula"].as_array()) {
      const toml::table& row = *node.as_table();
      Formula formula{.id = text(row["id"]),
                      .title = text(row["title"]),
                      .expression = text(row["expression"]),
                      .result = result(text(row["result"])),
                      .inputs = {},
                      .source = source(text(row["source"])),
                      .correction = text_or_none(row, "correction"),
                      .example = text(row["example"])};
      for (const toml::node& words : *row["inputs"].as_array()) {
        formula.inputs.push_back(input(words.value<std::string>().value(), own));
      }
      if (const toml::array* const holds = row["holds"].as_array()) {
        for (const toml::node& one : *holds) formula.conditions.push_back(condition(one));
      }
      formulas_.push_back(std::move(formula));
    }
  }

  std::map<std::string, toml::table, std::less<>> files_;
  std::deque<std::string> texts_;
  InputsByKey shared_;
  std::map<char, std::string_view> titles_;
  std::vector<Formula> formulas_;
  std::vector<NoFormula> no_formulas_;
};

const FormulaFiles& formula_files() {
  static const FormulaFiles kFiles;
  return kFiles;
}

}  // namespace

const std::vector<Formula>& formulas() {
  return formula_files().formulas();
}

std::string_view name_of_group(char group) {
  return formula_files().title_of(group);
}

std::span<const NoFormula> no_formulas() {
  return formula_files().no_formulas();
}

}  // namespace stepsim
