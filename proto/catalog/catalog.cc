#include "proto/catalog/catalog.h"

#include "proto/catalog/catalog_data.h"
#include "proto/catalog/cluster_family.h"
#include "proto/suggestion.h"

namespace stepsim {
namespace {

SourceText source_of(const CatalogFile& file) {
  return {.name = "catalog/" + std::string(file.kind) + "/" + std::string(file.name) +
                  std::string(file.extension),
          .extension = std::string(file.extension),
          .text = std::string(file.text)};
}

std::vector<std::string> members_of(const CatalogFile& file, CatalogKind kind) {
  return kind == CatalogKind::kCluster ? listed_sizes(source_of(file)) : std::vector<std::string>{};
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
    case CatalogKind::kExperiment:
      break;
  }
  return "experiments";
}

std::string_view one_of(CatalogKind kind) {
  if (kind == CatalogKind::kLibrary) return "library";
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
    for (const auto& size : members) names.push_back(std::string(file.name) + "-" + size);
  }
  return names;
}

CatalogAnswer find(CatalogKind kind, std::string_view name) {
  for (const CatalogFile& file : catalog_files()) {
    if (file.kind != name_of(kind) || !name.starts_with(file.name)) continue;
    const std::string_view rest = name.substr(file.name.size());
    const bool is_family = !members_of(file, kind).empty();
    if (rest.empty() && !is_family) return {source_of(file), ""};
    if (!is_family || !(rest.empty() || rest.front() == '-')) continue;
    return sized_cluster(source_of(file), std::string(file.name),
                         rest.substr(rest.empty() ? 0 : 1));
  }
  const std::vector<std::string> names = list(kind);
  const std::string suggestion = did_you_mean(name, names);
  return {std::nullopt, "no " + std::string(one_of(kind)) + " " + std::string(name) +
                            " in the catalog" + (suggestion.empty() ? "." : suggestion) +
                            " There are: " + comma_separated(names)};
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
