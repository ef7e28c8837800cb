#include "cli/catalog/catalog_command.h"

#include <boost/program_options.hpp>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "cli/catalog/catalog_experiments.h"
#include "cli/catalog/catalog_models.h"
#include "cli/command_line.h"
#include "cli/session/standard_output.h"
#include "proto/catalog/catalog.h"
#include "proto/load_experiment.h"
#include "sim/base/error.h"
#include "sim/base/suggestion.h"

namespace stepsim {
namespace {

namespace po = boost::program_options;

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

// The heading of a family gives the allowed sizes. The members below it are only the usual ones.
std::string clusters_text(const std::string& indent) {
  std::string text;
  for (const ClusterFamily& family : cluster_families()) {
    text += indent + family.name;
    text += family.sizes.empty() ? "\n" : "-<size>: <size> is " + family.sizes + "\n";
    for (const std::string& name : family.usual) text += indent + "  " + name + "\n";
  }
  return text;
}

// Chips of which no kernels were measured say whose constants they have.
std::string chips_text(const std::string& indent) {
  constexpr std::size_t kWidth = 16;
  std::string text;
  for (const std::string& name : list(CatalogKind::kChip)) {
    const std::string sister = load_chip(name).kernel_constants_of;
    text += indent + name;
    if (!sister.empty()) {
      text += std::string(name.size() < kWidth ? kWidth - name.size() : 1, ' ') +
              "(kernels as measured on " + sister + ")";
    }
    text += "\n";
  }
  return text;
}

std::string names_text(CatalogKind kind, const std::string& indent) {
  if (kind == CatalogKind::kCluster) return clusters_text(indent);
  if (kind == CatalogKind::kChip) return chips_text(indent);
  std::string text;
  for (const std::string& name : list(kind)) text += indent + name + "\n";
  return text;
}

std::string catalog_text(const std::vector<std::string>& words) {
  if (words.empty()) {
    std::string text;
    for (const CatalogKind kind : kCatalogKinds) {
      text += std::string(name_of(kind)) + "\n" + names_text(kind, "  ");
    }
    return text;
  }
  const CatalogKind kind = read_kind(words[0]);
  if (words.size() == 1)
    return kind == CatalogKind::kModel ? catalog_models_text() : names_text(kind, "");
  const CatalogAnswer answer = find(kind, words[1]);
  if (!answer.found) throw ConfigError({{"NAME", answer.problem}});
  return answer.found->text;
}

po::options_description catalog_option_list() {
  po::options_description options("Options of stepsim catalog experiments", 100, 50);
  auto add = options.add_options();
  add("list", "only list them with their published figures; simulate none");
  add("most-chips", po::value<std::string>()->value_name("N"),
      "simulate only those on at most N chips; list the others");
  add_json_option(options);
  return options;
}

CatalogExperimentsOptions read_experiments_options(const CommandLine& line,
                                                   std::vector<Problem>& problems) {
  CatalogExperimentsOptions options;
  options.most_chips =
      read_whole_number(line, "most-chips", 1, std::numeric_limits<std::int64_t>::max(), problems);
  if (line.options.contains("list")) options.most_chips = 0;
  options.json = read_output_path(line, "json", OutputFormat::kJson, problems);
  return options;
}

ExitStatus run_catalog_command(const std::vector<std::string>& arguments) {
  std::vector<Problem> problems;
  const CommandLine line = read_command_line(arguments, catalog_option_list(), problems);
  if (line.words.size() > 2) {
    problems.push_back({line.words[2], "stepsim catalog takes at most KIND and NAME"});
  }
  const bool all_experiments =
      line.words.size() == 1 && kind_named(line.words[0]) == CatalogKind::kExperiment;
  for (const char* option : {"list", "most-chips", "json"}) {
    if (!all_experiments && line.options.contains(option)) {
      problems.push_back(
          {std::string("--") + option, "only goes with stepsim catalog experiments"});
    }
  }
  const CatalogExperimentsOptions options = read_experiments_options(line, problems);
  throw_if_any(std::move(problems));
  if (all_experiments) return show_catalog_experiments(options);
  print(catalog_text(line.words));
  return ExitStatus::kDone;
}

std::vector<CommandResult> catalog_command_results() {
  return {{"experiments", &catalog_results()}};
}

}  // namespace

constinit const Subcommand kCatalogSubcommand = {
    .name = "catalog",
    .arguments = "[KIND] [NAME] [options]",
    .summary = "list or print built-in chips, clusters, models, ...",
    .description =
        R"(stepsim catalog lists the built-in chips, libraries, clusters, models, plans and experiments.

Usage:
  stepsim catalog              every kind and its names
  stepsim catalog KIND         names of chips, libraries, clusters, models or plans; models with their
                               parameters, those that a token uses, and what their layers are
  stepsim catalog KIND NAME    one entry, as in its file
  stepsim catalog experiments [--list] [--most-chips N] [--json FILE]
                               published figures of each beside simulated ones

All experiments together take some minutes; the quick ones come first. The exit status is 1 if a
simulated figure is outside the range that its experiment states.

Clusters come in families that have any size: dgx-h100-<chips>, v5p-<x>x<y>x<z>, ...
`stepsim catalog clusters` says which sizes each family has, and lists the usual ones.
)",
    .options = catalog_option_list,
    .run = run_catalog_command,
    .results = catalog_command_results,
};

}  // namespace stepsim
