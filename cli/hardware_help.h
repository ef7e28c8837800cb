// `stepsim help chip` and its like: what the fields of chips, hosts, libraries and clusters are and
// when to change them.

#pragma once

#include <span>
#include <string>

namespace stepsim {

// All fields, or one for each name in `fields`, as in "efficiency.matmul"; "--markdown" alone is
// the text of the page in docs/. They throw ConfigError for a field that isn't there.
std::string chip_help(std::span<const std::string> fields);
std::string host_help(std::span<const std::string> fields);
std::string library_help(std::span<const std::string> fields);
std::string cluster_help(std::span<const std::string> fields);

// The kinds of topologies; the fields of the kind that `words` begin with, or those that follow it.
std::string topology_help(std::span<const std::string> words);

}  // namespace stepsim
