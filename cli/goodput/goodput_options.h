// The arguments of `stepsim goodput` as values. The fuzz targets of tests/ read them too.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/subcommand.h"
#include "goodput/energy/carbon_table.h"
#include "goodput/failure_table.h"
#include "goodput/goodput.h"
#include "goodput/steps/trained_job.h"
#include "proto/load_experiment.h"
#include "sim/base/error.h"

namespace stepsim {

struct GoodputRequest {
  ExperimentSource source{};            // unused with step_time
  std::optional<Duration> step_time{};  // of every step, instead of a simulated one
  std::int64_t chips = 0;               // with step_time
  std::int64_t chips_per_node = 8;      // with step_time
  FailureTable table{};                 // with all that the options change
  RunLength length{};
  std::int64_t shrink = 0;
  std::optional<double> price{};  // of a chip for an hour
  std::optional<CarbonTable> carbon{};
  double pue = 1;
  bool table_is_of_catalog = false;
  std::vector<std::string> checkpoint_keys{};  // that --checkpoint set
  std::vector<std::string> restart_keys{};     // that --restart set
  bool gives_spares = false;
  bool gives_repair = false;
  GoodputOptions runs{};
  bool has_curves = true;

  std::string json;
  std::string html;
  std::string asked;  // asked_json()
  std::string plot;
};

OptionList goodput_option_list();

// Reads the options, and the table of failures that they name. Adds all problems.
GoodputRequest read_goodput_request(const std::vector<std::string>& arguments,
                                    std::vector<Problem>& problems);

}  // namespace stepsim
