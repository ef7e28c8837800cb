#include "cli/catalog_command.h"

#include <optional>
#include <string_view>

#include "cli/standard_output.h"
#include "proto/catalog/catalog.h"
#include "sim/base/error.h"
#include "sim/base/suggestion.h"

namespace stepsim {
namespace {

std::optional<CatalogKind> kind_named(std::string_view name) {
  for (const CatalogKind kind : kCatalogKinds) {
    if (name == name_of(kind) || name == one_of(kind)) return kind;
  }
  return std::nullopt;
}

CatalogKind read_kind(const std::string& name) {
  if (const auto kind = kind_named(name)) return *kind;
  if (const auto kind = kind_of_entry(name)) {
    throw ConfigError({{"KIND", "must be given; type: stepsim catalog " +
                                    std::string(name_of(*kind)) + " " + name}});
  }
  std::vector<std::string> names;
  for (const CatalogKind kind : kCatalogKinds) names.emplace_back(name_of(kind));
  throw ConfigError({{"KIND", "must be one of " + comma_separated(names) + "; is \"" + name + "\"" +
                                  did_you_mean(name, names)}});
}

// A family says which sizes it has; those that are listed below it are only the usual ones.
std::string clusters_text(const std::string& indent) {
  std::string text;
  for (const ClusterFamily& family : cluster_families()) {
    text += indent + family.name;
    text += family.sizes.empty() ? "\n" : "-<size>: <size> is " + family.sizes + "\n";
    for (const std::string& name : family.usual) text += indent + "  " + name + "\n";
  }
  return text;
}

std::string names_text(CatalogKind kind, const std::string& indent) {
  if (kind == CatalogKind::kCluster) return clusters_text(indent);
  std::string text;
  for (const std::string& name : list(kind)) text += indent + name + "\n";
  return text;
}

std::string catalog_text(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    std::string text;
    for (const CatalogKind kind : kCatalogKinds) {
      text += std::string(name_of(kind)) + "\n" + names_text(kind, "  ");
    }
    return text;
  }
  if (arguments.size() > 2) {
    throw ConfigError({{arguments[2], "stepsim catalog takes at most KIND and NAME"}});
  }
  const CatalogKind kind = read_kind(arguments[0]);
  if (arguments.size() == 1) return names_text(kind, "");
  const CatalogAnswer answer = find(kind, arguments[1]);
  if (!answer.found) throw ConfigError({{"NAME", answer.problem}});
  return answer.found->text;
}

ExitStatus run_catalog_command(const std::vector<std::string>& arguments) {
  print(catalog_text(arguments));
  return ExitStatus::kDone;
}

}  // namespace

constinit const Subcommand kCatalogSubcommand = {
    .name = "catalog",
    .arguments = "[KIND] [NAME]",
    .summary = "list or print built-in chips, clusters, models, ...",
    .description = R"(stepsim catalog says what is built in.

Usage:
  stepsim catalog              every kind and its names
  stepsim catalog KIND         names of chips, libraries, clusters, models, plans or experiments
  stepsim catalog KIND NAME    one entry, as its file says it

Clusters come in families that have any size: dgx-h100-<chips>, v5p-<x>x<y>x<z>, ...
`stepsim catalog clusters` says which sizes each family has, and lists the usual ones.
)",
    .options = nullptr,
    .run = run_catalog_command,
};

}  // namespace stepsim
