#include "proto/catalog/catalog.h"

#include <fmt/format.h>

#include <utility>

#include "catalog/catalog_data.h"
#include "proto/catalog/cluster_family.h"
#include "sim/base/suggestion.h"

namespace stepsim {
namespace {

SourceText source_of(const CatalogFile& file) {
  return {.name = "catalog/" + std::string(file.kind) + "/" + std::string(file.name) +
                  std::string(file.extension),
          .extension = std::string(file.extension),
          .text = std::string(file.text)};
}

// Returns the names of a family's usual sizes; empty if the file is no family.
std::vector<std::string> members_of(const CatalogFile& file, CatalogKind kind) {
  std::vector<std::string> names;
  if (kind != CatalogKind::kCluster) return names;
  for (const std::string& size : listed_sizes(source_of(file))) {
    names.push_back(std::string(file.name) + "-" + size);
  }
  return names;
}

}  // namespace

std::string_view name_of(CatalogKind kind) {
  switch (kind) {
    case CatalogKind::kChip:
      return "chips";
    case CatalogKind::kLibrary:
      return "libraries";
    case CatalogKind::kCluster:
      return "clusters";
    case CatalogKind::kModel:
      return "models";
    case CatalogKind::kPlan:
      return "plans";
    case CatalogKind::kFailures:
      return "failures";
    case CatalogKind::kMix:
      return "mixes";
    case CatalogKind::kExperiment:
      break;
  }
  return "experiments";
}

std::string_view one_of(CatalogKind kind) {
  if (kind == CatalogKind::kLibrary) return "library";
  if (kind == CatalogKind::kFailures) return "table of failures";
  if (kind == CatalogKind::kMix) return "mix of requests";
  std::string_view name = name_of(kind);
  name.remove_suffix(1);
  return name;
}

std::vector<std::string> list(CatalogKind kind) {
  std::vector<std::string> names;
  for (const CatalogFile& file : catalog_files()) {
    if (file.kind != name_of(kind)) continue;
    const auto members = members_of(file, kind);
    if (members.empty()) names.emplace_back(file.name);
    names.insert(names.end(), members.begin(), members.end());
  }
  return names;
}

std::vector<ClusterFamily> cluster_families() {
  std::vector<ClusterFamily> families;
  for (const CatalogFile& file : catalog_files()) {
    if (file.kind != name_of(CatalogKind::kCluster)) continue;
    ClusterFamily family{.name = std::string(file.name),
                         .sizes = {},
                         .usual = members_of(file, CatalogKind::kCluster)};
    if (!family.usual.empty()) family.sizes = accepted_sizes(source_of(file));
    families.push_back(std::move(family));
  }
  return families;
}

namespace {

CatalogAnswer entry_named(CatalogKind kind, std::string_view name) {
  for (const CatalogFile& file : catalog_files()) {
    if (file.kind != name_of(kind) || !name.starts_with(file.name)) continue;
    const std::string_view rest = name.substr(file.name.size());
    const bool is_family = !members_of(file, kind).empty();
    if (rest.empty() && !is_family) return {source_of(file), ""};
    if (!is_family || !(rest.empty() || rest.front() == '-')) continue;
    return sized_cluster(source_of(file), std::string(file.name),
                         rest.substr(rest.empty() ? 0 : 1));
  }
  return {};
}

// Returns the option that takes an entry; "" for an experiment, which needs none.
std::string_view option_for(CatalogKind kind) {
  switch (kind) {
    case CatalogKind::kChip:
      return "--chip ";
    case CatalogKind::kLibrary:
      return "--library ";
    case CatalogKind::kCluster:
      return "--cluster ";
    case CatalogKind::kModel:
      return "--model ";
    case CatalogKind::kPlan:
      return "--plan ";
    case CatalogKind::kFailures:
      return "--failures ";
    case CatalogKind::kMix:
      return "--requests poisson:rate=4,count=1000,mix=";
    case CatalogKind::kExperiment:
      break;
  }
  return "";
}

// Returns the command for a run with an experiment, model, cluster or plan; "" for other kinds.
std::string run_with(CatalogKind kind, std::string_view name) {
  if (kind == CatalogKind::kChip || kind == CatalogKind::kLibrary) return {};
  if (kind == CatalogKind::kFailures || kind == CatalogKind::kMix) return {};
  if (kind == CatalogKind::kExperiment) return fmt::format("stepsim run {}", name);
  const auto flag = [&](CatalogKind one, std::string_view otherwise) {
    return fmt::format(" {}{}", option_for(one), one == kind ? name : otherwise);
  };
  return "stepsim run" + flag(CatalogKind::kModel, "MODEL") +
         flag(CatalogKind::kCluster, "CLUSTER") + flag(CatalogKind::kPlan, "KEYS");
}

std::string option_sentence(CatalogKind kind, std::string_view name) {
  const char* const command = kind == CatalogKind::kFailures ? "goodput"
                              : kind == CatalogKind::kMix    ? "serve"
                                                             : "run";
  return fmt::format("stepsim {} takes it as {}{}", command, option_for(kind), name);
}

// Returns a sentence that says how to run with an entry.
std::string run_sentence(CatalogKind kind, std::string_view name) {
  const std::string command = run_with(kind, name);
  return command.empty() ? option_sentence(kind, name) : "Type: " + command;
}

std::string with_article(CatalogKind kind) {
  return fmt::format("{} {}", kind == CatalogKind::kExperiment ? "an" : "a", one_of(kind));
}

std::vector<std::string> names_with(CatalogKind kind, const std::string& part) {
  std::vector<std::string> names;
  for (const std::string& name : list(kind)) {
    if (name.find(part) != std::string::npos) names.push_back(name);
  }
  return names;
}

// Returns the message for the name of an entry of kind `is` where one of kind `wanted` must stand.
std::string wrong_kind(CatalogKind wanted, CatalogKind is, const std::string& name) {
  const bool is_for_run = wanted == CatalogKind::kExperiment || is == CatalogKind::kExperiment;
  std::string text =
      fmt::format("{} is {}, not {}. {}", name, with_article(is), with_article(wanted),
                  is_for_run ? run_sentence(is, name) : option_sentence(is, name));
  const std::vector<std::string> similar = names_with(wanted, name);
  if (!similar.empty()) {
    text += fmt::format(". Or give one of the {} with it: {}", name_of(wanted),
                        comma_separated(similar));
  }
  return text;
}

}  // namespace

CatalogAnswer find(CatalogKind kind, std::string_view name) {
  if (CatalogAnswer entry = entry_named(kind, name); entry.found || !entry.problem.empty()) {
    return entry;
  }
  for (const CatalogKind other : kCatalogKinds) {
    const CatalogAnswer entry = entry_named(other, name);
    if (entry.found) return {std::nullopt, wrong_kind(kind, other, std::string(name))};
    if (!entry.problem.empty()) {
      return {std::nullopt, fmt::format("must be {}. As {}: {}", with_article(kind),
                                        with_article(other), entry.problem)};
    }
  }
  if (is_foreign_file(std::string(name))) {
    return {std::nullopt, std::string(name) +
                              " is a file of another kind: must be one of the "
                              "catalog's " +
                              std::string(name_of(kind)) +
                              ", or a file ending in "
                              ".textproto or .json. " +
                              std::string(kForeignFiles)};
  }
  const std::vector<std::string> names = list(kind);
  const std::string suggestion = did_you_mean(name, names);
  return {std::nullopt, "no " + std::string(one_of(kind)) + " " + std::string(name) +
                            " in the catalog" + (suggestion.empty() ? "." : suggestion) +
                            " There are: " + comma_separated(names)};
}

std::optional<CatalogKind> kind_of_entry(std::string_view name) {
  for (const CatalogKind kind : kCatalogKinds) {
    if (entry_named(kind, name).found) return kind;
  }
  return std::nullopt;
}

std::string explain_entry(CatalogKind kind, std::string_view name) {
  return fmt::format("{} is {}. {}", name, with_article(kind), run_sentence(kind, name));
}

std::vector<SourceText> catalog_tables(std::string_view folder) {
  std::vector<SourceText> tables;
  for (const CatalogFile& file : catalog_files()) {
    if (file.kind == folder) tables.push_back(source_of(file));
  }
  return tables;
}

WorkedCaseTexts worked_case_texts() {
  WorkedCaseTexts texts;
  for (const CatalogFile& file : catalog_files()) {
    if (file.kind != "cases") continue;
    (file.name == "worked_cases" ? texts.cases : texts.formulas) = file.text;
  }
  return texts;
}

}  // namespace stepsim
