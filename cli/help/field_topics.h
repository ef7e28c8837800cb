// `stepsim help plan`, `stepsim help chip` and similar topics: the fields of plans, simulations,
// models, chips, hosts, libraries and clusters, and when to change them.

#pragma once

#include <span>
#include <string>

namespace stepsim {

// These return the help of all fields, or of each name in `fields`, as in "efficiency.matmul".
// "--markdown" alone returns the text of the page in docs/. They throw ConfigError for a field that
// does not exist.
std::string plan_help(std::span<const std::string> keys);
std::string software_help(std::span<const std::string> keys);
std::string pass_help(std::span<const std::string> keys);
std::string transport_help(std::span<const std::string> fields);
std::string simulation_help(std::span<const std::string> fields);
std::string chip_help(std::span<const std::string> fields);
std::string model_help(std::span<const std::string> fields);
std::string host_help(std::span<const std::string> fields);
std::string library_help(std::span<const std::string> fields);
std::string cluster_help(std::span<const std::string> fields);
std::string engine_help(std::span<const std::string> keys);
std::string requests_help(std::span<const std::string> keys);
std::string failures_help(std::span<const std::string> fields);

// Returns the kinds of topologies, or the fields of the kind that `words` begin with; further words
// choose fields.
std::string topology_help(std::span<const std::string> words);

}  // namespace stepsim
