#include "cli/serve/served_load_options.h"

#include "cli/command_line.h"
#include "cli/help/moved_keys.h"
#include "cli/serve/serve_options.h"
#include "proto/load_experiment.h"
#include "sim/base/error.h"

namespace stepsim {

std::vector<std::string> with_served_load(const std::vector<std::string>& arguments) {
  std::vector<Problem> problems;
  const CommandLine line = read_command_line(arguments, serve_option_list(), problems);
  if (line.words.size() != 1 || !problems.empty() || line.options.count("cases") != 0) {
    return arguments;  // reading them finds the problems
  }
  ExperimentSource source;
  source.experiment = line.words.front();
  const LoadedExperiment loaded = load_with_topology(source);
  say_moved_keys(source.experiment, loaded.moved_keys);
  const ServedLoad& served = loaded.served;
  std::vector<std::string> all = arguments;
  const auto add = [&](const char* option, const std::string& value) {
    if (value.empty() || line.options.count(option) != 0) return;
    all.push_back(std::string("--") + option);
    all.push_back(value);
  };
  if (!served.given() && line.options.count("requests") == 0) {
    throw ConfigError({{line.words.front(),
                        "says nothing about how it is served: give --requests, or an experiment "
                        "with `serve`"}});
  }
  if (line.options.count("requests") == 0) {
    for (const std::string& requests : served.requests) {
      all.insert(all.end(), {"--requests", requests});
    }
  }
  add("engine", served.engine);
  add("prefill", served.prefill);
  add("decode", served.decode);
  add("decode-plan", served.decode_plan);
  add("transfer", served.transfer);
  add("software", served.software);
  if (served.replicas > 0) add("replicas", std::to_string(served.replicas));
  return all;
}

}  // namespace stepsim
