// What readers of networks share: they list nodes and links, and what they assume, and the cluster
// becomes a file of stepsim. Assumptions and what has no counterpart stand above it as comments.
//
//   GraphMaker graph;
//   graph.node("gpu0", NodeKind::kChip);
//   graph.cable("gpu0", "switch0", 50_GBps, 500ns);   // twice: one link of the sum
//   return imported_cluster(request, "ns3", std::move(graph.spec), about, problems);

#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "import/importer.h"
#include "import/input_bytes.h"
#include "topology/kinds/explicit_graph.h"

namespace stepsim {

class GraphMaker {
 public:
  void node(std::string name, NodeKind kind) { spec.nodes.push_back({std::move(name), kind}); }
  // Links each way, or one. Parallel ones are added up, with the longer latency.
  void cable(const std::string& from, const std::string& to, Bandwidth bandwidth, Duration latency);
  void one_way(const std::string& from, const std::string& to, Bandwidth bandwidth,
               Duration latency);
  // A cable from a chip's card, which has the speed of its cables together and no latency of its
  // own. So two chips of a node below one switch are nearer over the links inside.
  void from_card(const std::string& chip, const std::string& to, Bandwidth bandwidth,
                 Duration latency);

  ExplicitGraphSpec spec{};

 private:
  void add(const std::pair<std::string, std::string>& key, ExplicitLink link);

  std::map<std::pair<std::string, std::string>, std::size_t> links_;  // by ends
  std::set<std::string> cards_;
};

struct ClusterAbout {
  std::string chip{};     // of the catalog; empty: the file has none
  std::string library{};  // of the catalog; empty: that of the chip
  std::vector<std::string> assumed{};
  std::vector<std::string> no_counterpart{};
};

// Returns the file, with request.chip and request.library over what `about` says. Adds the problems
// of the graph, and of names that the catalog doesn't have.
Imported imported_cluster(const ImportRequest& request, ClusterAbout about,
                          const ExplicitGraphSpec& spec, std::vector<Problem>& problems);

// Reads the only file of a request with a Reader(request, problems). Throws ConfigError with all
// problems.
template <typename Reader>
Imported read_network(const ImportRequest& request, InputKind kind) {
  std::vector<Problem> problems;
  const auto text = read_bytes(request.files[0], problems, kind);
  throw_if_any(problems);
  Imported imported = Reader(request, problems).read(*text);
  throw_if_any(std::move(problems));
  return imported;
}

// Returns the whole number, from low to high; adds a problem at `field` otherwise.
std::int64_t number_between(std::string_view text, std::int64_t low, std::int64_t high,
                            const std::string& field, std::string_view what,
                            std::vector<Problem>& problems);

}  // namespace stepsim
