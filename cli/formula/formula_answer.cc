#include "cli/formula/formula_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "proto/catalog/catalog.h"
#include "proto/load_experiment.h"
#include "sim/base/suggestion.h"
#include "topology/kinds/torus/tpu_slice.h"
#include "workload/model_counts.h"

namespace stepsim {
namespace {

constexpr std::string_view kTpu = "tpu-";

// Returns tpu-v5p for "v5p" and h100-sxm for "h100": the name that contains this word, if all other
// names with the word begin with that name; else the SXM part of that name.
std::string chip_name(const std::string& text) {
  std::string shortest;
  std::vector<std::string> candidates;
  for (const std::string& name : list(CatalogKind::kChip)) {
    if (name == text) return name;
    if (("-" + name + "-").find("-" + text + "-") == std::string::npos) continue;
    candidates.push_back(name);
    if (shortest.empty() || name.size() < shortest.size()) shortest = name;
  }
  const bool is_clear = std::ranges::all_of(
      candidates, [&](const std::string& name) { return name.starts_with(shortest); });
  if (!candidates.empty() && is_clear) return shortest;
  const std::string module = text + "-sxm";
  return std::ranges::count(candidates, module) > 0 ? module : text;
}

// Returns the value from the catalog's chip or model; nullopt if it belongs to the other one.
std::optional<double> value_in(const ChipSpec& chip, CatalogValue value) {
  switch (value) {
    case CatalogValue::kChipBf16Peak:
      return chip.peak_of(DataType::kBf16).value();
    case CatalogValue::kChipMemoryBandwidth:
      return chip.memory_bandwidth.value();
    case CatalogValue::kChipMemoryCapacity:
      return chip.memory_capacity.value();
    case CatalogValue::kChipLinkBandwidth:
    case CatalogValue::kChipAxisBandwidth: {
      const bool is_tpu = chip.name.starts_with(kTpu);
      const auto generation =
          is_tpu ? tpu_generation_named(chip.name.substr(kTpu.size())) : std::nullopt;
      if (!generation) return std::nullopt;
      const double link = link_bandwidth_of(*generation).value();
      return value == CatalogValue::kChipAxisBandwidth ? 2 * link : link;
    }
    default:
      return std::nullopt;
  }
}

std::optional<double> value_in(const ModelSpec& model, CatalogValue value) {
  switch (value) {
    case CatalogValue::kModelLayers:
      return model.layers;
    case CatalogValue::kModelHidden:
      return model.hidden;
    case CatalogValue::kModelIntermediate:
      return model.mlp.width;
    case CatalogValue::kModelHeads:
      return model.attention.heads;
    case CatalogValue::kModelKvHeads:
      return model.attention.kv_heads;
    case CatalogValue::kModelHeadWidth:
      return model.attention.head_dim;
    case CatalogValue::kModelVocabulary:
      return model.embedding.vocabulary;
    case CatalogValue::kModelParameters:
      return parameter_count(model);
    default:
      return std::nullopt;
  }
}

// Fills inputs that are not given otherwise. A source that fills no input is a problem, because the
// user meant it to.
template <typename Source>
void fill(const Formula& formula, const Source& source, const std::string& word,
          FormulaInputs& inputs, std::vector<Problem>& problems) {
  bool knows_one = false;
  for (const FormulaInput& input : formula.inputs) {
    const auto value = value_in(source, input.catalog);
    if (!value) continue;
    knows_one = true;
    if (input.symbol != inputs.unknown) {
      inputs.values.try_emplace(std::string(input.symbol), *value);
    }
  }
  if (!knows_one) {
    problems.push_back({word, std::string(formula.id) + " has no symbol that this could fill"});
  }
}

void read_assignment(const Formula& formula, const std::string& symbol, const std::string& text,
                     FormulaInputs& inputs, std::vector<Problem>& problems) {
  std::vector<std::string> symbols;
  std::optional<std::string_view> unit;
  for (const FormulaInput& input : formula.inputs) {
    symbols.emplace_back(input.symbol);
    if (input.symbol == symbol) unit = input.unit;
  }
  const bool is_result = symbol == formula.result.symbol;
  if (is_result) unit = formula.result.unit;
  if (!unit) {
    problems.push_back(
        {symbol, "is no input of " + std::string(formula.id) +
                     did_you_mean(symbol, symbols, "There are: " + comma_separated(symbols))});
    return;
  }
  if (inputs.values.contains(symbol) || inputs.unknown == symbol) {
    problems.push_back({symbol, "is given twice"});
  } else if (text == "?" && is_result) {
    // The result is computed anyway.
  } else if (text == "?") {
    if (!inputs.unknown.empty()) problems.push_back({symbol, "only one input can be solved for"});
    inputs.unknown = symbol;
  } else if (const auto value = read_formula_value(text, *unit)) {
    inputs.values[symbol] = *value;
  } else {
    problems.push_back(
        {symbol, fmt::format("must be a number{} that is not negative, is \"{}\"",
                             unit->empty() ? "" : fmt::format(" of {}", *unit), text)});
    inputs.values[symbol] = 1;  // so that it is not reported as missing
  }
}

FormulaInputs read_inputs(const Formula& formula, std::span<const std::string> words,
                          std::vector<Problem>& problems) {
  FormulaInputs inputs;
  std::vector<std::pair<std::string, std::string>> references;  // chip, model
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) {
      problems.push_back({word, "must be SYMBOL=VALUE, as in B=48000"});
      continue;
    }
    const std::string symbol = word.substr(0, equals);
    const std::string text = word.substr(equals + 1);
    const bool is_reference = symbol == "chip" || symbol == "model";
    const auto is_same = [&](const auto& reference) { return reference.first == symbol; };
    if (is_reference && std::any_of(references.begin(), references.end(), is_same)) {
      problems.push_back({symbol, "is given twice"});
    } else if (is_reference) {
      references.emplace_back(symbol, text);
    } else {
      read_assignment(formula, symbol, text, inputs, problems);
    }
  }
  for (const auto& [kind, name] : references) {
    try {
      if (kind == "chip") {
        fill(formula, load_chip(chip_name(name)), kind + "=" + name, inputs, problems);
      }
      if (kind == "model") fill(formula, load_model(name), kind + "=" + name, inputs, problems);
    } catch (const ConfigError& error) {
      for (const Problem& problem : error.problems()) {
        problems.push_back({kind + "=" + name, problem.message});
      }
      // The inputs that it would have filled are not reported as missing.
      for (const FormulaInput& input : formula.inputs) {
        if (input.catalog == CatalogValue::kNone) continue;
        inputs.values.try_emplace(std::string(input.symbol), 1);
      }
    }
  }
  return inputs;
}

}  // namespace

const Formula& read_formula(const std::string& id) {
  if (const Formula* const formula = find_formula(id)) return *formula;
  for (const NoFormula& row : no_formulas()) {
    if (row.id == id) throw ConfigError({{id, "is no formula but " + std::string(row.what)}});
  }
  std::vector<std::string> ids;
  for (const Formula& formula : formulas()) ids.emplace_back(formula.id);
  throw ConfigError(
      {{id, "no such formula" + did_you_mean(id, ids, "stepsim formula lists them all")}});
}

Answer answer(const Formula& formula, std::span<const std::string> words,
              std::vector<Problem> problems) {
  Answer result{.inputs = read_inputs(formula, words, problems), .evaluation = {}, .solutions = {}};
  const auto& [values, unknown] = result.inputs;
  const std::string symbol(formula.result.symbol);
  FormulaValues given = values;
  given.erase(symbol);
  FormulaValues checked = given;
  if (!unknown.empty()) checked[unknown] = 1;
  const std::vector<Problem> wrong = check_values(formula, checked);
  problems.insert(problems.end(), wrong.begin(), wrong.end());
  if (unknown.empty() && values.contains(symbol)) {
    problems.push_back({symbol, "is the result: to solve for an input, write it as SYMBOL=?"});
  } else if (!unknown.empty() && !values.contains(symbol)) {
    problems.push_back({symbol, "must be given, to solve for " + unknown});
  }
  throw_if_any(std::move(problems));
  if (!unknown.empty()) {
    result.solutions = solve(formula, values, unknown);
    given[unknown] = result.solutions.front();
    // A count that is solved for need not be whole; its conditions are checked at the next whole
    // number.
    for (const FormulaInput& input : formula.inputs) {
      if (input.symbol == unknown && input.range == InputRange::kCount) {
        given[unknown] = std::ceil(given[unknown]);
      }
    }
  }
  result.evaluation = evaluate(formula, given);
  return result;
}

}  // namespace stepsim
