// The arguments of `stepsim serve` as values. The fuzz targets of tests/ read them too.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.h"
#include "cli/serve/served_model.h"
#include "cli/subcommand.h"
#include "serving/requests/request_source.h"
#include "serving/serving_metrics.h"
#include "serving/serving_text.h"
#include "sim/base/error.h"

namespace stepsim {

struct ServeOptions {
  std::string cases;  // set: everything below but json is unused
  std::vector<RequestSource> sources;
  ServingOptions serving{};
  ServiceObjective objective{};
  ServedModelSource model{};
  std::optional<LinearStepTime::Rates> step_time{};         // unset: the model's
  std::optional<LinearStepTime::Rates> decode_step_time{};  // unset: as the others
  std::optional<std::string> decode_plan{};  // of decode replicas; unset: as the others
  bool transfer_over_network = false;
  TimedKvTransport::Rates transfer{};                      // else
  std::optional<TimedKvTransport::Rates> host_transfer{};  // unset: over the links to the host
  std::int64_t chips_per_replica = 1;
  // Further models: what stands behind a second --model and the next ones. Of these only sources,
  // serving, model, step times, decode_plan and asked are used.
  std::vector<ServeOptions> others{};

  std::string json;
  std::string html;
  std::string asked;  // asked_json(): of several models the first one's, and what holds for all
  std::string trace;
  std::string requests_out;
};

// Returns the keys of --plan and --pass, which with_keys() tells apart again. Adds the problems of
// keys of other groups and of a kind of pass.
std::string keys_of_replica(const CommandLine& line, std::vector<Problem>& problems);

OptionList serve_option_list();

// Adds all problems that can be found without opening a file.
ServeOptions read_serve_options(const std::vector<std::string>& arguments,
                                std::vector<Problem>& problems);

}  // namespace stepsim
