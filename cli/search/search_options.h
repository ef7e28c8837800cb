// The options of `stepsim search`.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/run/export_option.h"
#include "cli/subcommand.h"
#include "proto/load_experiment.h"
#include "search/refine.h"
#include "search/search.h"

namespace stepsim {

struct SearchRequest {
  std::vector<SearchPlace> places;
  std::vector<ExperimentSource> sources;  // of each place, without a plan
  SearchOptions options;
  RefineEffort refine = RefineEffort::kNone;
  SettledKeys settled{};              // for refine_plans()
  std::optional<ParallelPlan> why{};  // on the first cluster
  bool has_price = false;
  std::optional<double> tokens{};  // of a whole training: what it takes is said, too
  std::string json{};              // files to be written; empty: none; "-": standard output
  std::string csv{};
  std::string plot{};
  std::string experiment{};  // of the best plan
  std::string html{};
  std::optional<AskedExport> exported{};  // of the best plan, as the settings of a trainer
  std::string asked{};                    // asked_json()
};

// Throws ConfigError with all problems of the options, the model and the clusters.
SearchRequest read_search_request(const std::vector<std::string>& arguments);

OptionList search_option_list();

}  // namespace stepsim
