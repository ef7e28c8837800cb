// The catalog: chips, communication libraries, clusters, models, plans and experiments that are
// built into the binary.
//
//   for (const std::string& name : list(CatalogKind::kModel)) ...
//   const CatalogAnswer answer = find(CatalogKind::kCluster, "dgx-h100-512");
//
// Clusters come in families (the numbers in their names count chips): list() shows the usual
// sizes, find() knows every size that the family's file allows.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proto/messages/message_file.h"

namespace stepsim {

enum class CatalogKind : std::uint8_t {
  kChip,
  kLibrary,
  kCluster,
  kModel,
  kPlan,
  kExperiment,
  kFailures,  // of machines: proto/catalog/load_failures.h
  kMix,       // of requests: proto/catalog/load_mix.h
};
inline constexpr std::array kCatalogKinds = {
    CatalogKind::kChip, CatalogKind::kLibrary,    CatalogKind::kCluster,  CatalogKind::kModel,
    CatalogKind::kPlan, CatalogKind::kExperiment, CatalogKind::kFailures, CatalogKind::kMix};
std::string_view name_of(CatalogKind kind);  // "chips": the folder
std::string_view one_of(CatalogKind kind);   // "chip"

// Returns names in order; a family's sizes are in the order of its file.
std::vector<std::string> list(CatalogKind kind);

// The clusters of one file of the catalog: a family, or one cluster of a fixed size.
struct ClusterFamily {
  std::string name;                // "dgx-h100"; a cluster of a fixed size: its own name
  std::string sizes;               // "a multiple of 8 chips, up to 16384"; fixed size: empty
  std::vector<std::string> usual;  // names in full; fixed size: empty
};
std::vector<ClusterFamily> cluster_families();  // in order of name

struct CatalogAnswer {
  std::optional<SourceText> found;
  std::string problem;  // if nothing was found: why, and what exists
};
CatalogAnswer find(CatalogKind kind, std::string_view name);

// Returns the kind of the entry with that name; nullopt if there is none. If several kinds have the
// name, it returns the first.
std::optional<CatalogKind> kind_of_entry(std::string_view name);

// Describes an entry and how to run it: "llama3-8b is a model. Type: stepsim run --model llama3-8b
// ...".
std::string explain_entry(CatalogKind kind, std::string_view name);

// Returns the files of a folder of tables whose entries belong to no kind: "hardware", "software",
// "engines".
std::vector<SourceText> catalog_tables(std::string_view folder);

// The worked figures of the books, for books/formulas/worked_cases.h. They are not a kind,
// because they cannot be run.
struct WorkedCaseTexts {
  std::string_view cases;     // comma-separated values
  std::string_view formulas;  // formulas of the cases
};
WorkedCaseTexts worked_case_texts();

}  // namespace stepsim
