#include "cli/subcommands.h"

#include <vector>

#include "cli/accuracy/accuracy_command.h"
#include "cli/calibrate/calibrate_command.h"
#include "cli/catalog/catalog_command.h"
#include "cli/collective/collective_command.h"
#include "cli/compare/compare_command.h"
#include "cli/diff/diff_command.h"
#include "cli/figures/figures_command.h"
#include "cli/formula/formula_command.h"
#include "cli/goodput/goodput_command.h"
#include "cli/help/help.h"
#include "cli/import/import_command.h"
#include "cli/network/network_command.h"
#include "cli/run/run_command.h"
#include "cli/schedule/schedule_command.h"
#include "cli/search/search_command.h"
#include "cli/serve/serve_command.h"
#include "cli/serve_search/serve_search_command.h"
#include "cli/sweep/sweep_command.h"
#include "cli/topology/topology_command.h"
#include "cli/validate/validate_command.h"
#include "cli/view/view_command.h"
#include "proto/catalog/catalog.h"
#include "proto/messages/message_file.h"
#include "sim/base/error.h"
#include "sim/base/suggestion.h"

namespace stepsim {
namespace {

constexpr const Subcommand* kSubcommands[] = {
    &kRunSubcommand,     &kSearchSubcommand,      &kSweepSubcommand,     &kCompareSubcommand,
    &kViewSubcommand,    &kCollectiveSubcommand,  &kNetworkSubcommand,   &kScheduleSubcommand,
    &kServeSubcommand,   &kServeSearchSubcommand, &kGoodputSubcommand,   &kTopologySubcommand,
    &kFormulaSubcommand, &kValidateSubcommand,    &kFiguresSubcommand,   &kImportSubcommand,
    &kDiffSubcommand,    &kAccuracySubcommand,    &kCalibrateSubcommand, &kCatalogSubcommand,
    &kHelpSubcommand,
};

}  // namespace

std::span<const Subcommand* const> subcommands() {
  return kSubcommands;
}

const Subcommand& find_subcommand(const std::string& name) {
  std::vector<std::string> names;
  for (const Subcommand* subcommand : kSubcommands) {
    if (subcommand->name == name) return *subcommand;
    names.emplace_back(subcommand->name);
  }
  if (const auto kind = kind_of_entry(name)) {
    throw ConfigError({{name, "no such subcommand: " + explain_entry(*kind, name)}});
  }
  if (looks_like_file(name)) {
    throw ConfigError({{name, "no such subcommand. For an experiment type: stepsim run " + name}});
  }
  throw ConfigError(
      {{name,
        "no such subcommand" + did_you_mean(name, names, "There are: " + comma_separated(names))}});
}

}  // namespace stepsim
