#include "import/cluster_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "import/input_bytes.h"
#include "proto/catalog/catalog.h"
#include "proto/messages/message_file.h"
#include "sim/base/field_text.h"
#include "topology/kinds/graph_names.h"

namespace stepsim {
namespace {

// The name of the file, as names of clusters are.
std::string cluster_name(const std::string& path) {
  std::string name = stem_of(short_name(path));
  for (char& c : name) {
    const bool fits = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                      c == '-' || c == '_' || c == '.';
    if (!fits) c = '-';
  }
  return name;
}

std::string link_text(const ExplicitLink& link) {
  std::string text = fmt::format("  links {{ from: \"{}\" to: \"{}\" bandwidth: \"{:.0f}B/s\"",
                                 link.from, link.to, link.bandwidth.value());
  text += fmt::format(" latency: \"{}ps\"", link.latency.count());
  return text + (link.one_way ? " one_way: true }\n" : " }\n");
}

std::string graph_text(const ExplicitGraphSpec& spec) {
  std::string text = "explicit_graph {\n";
  if (spec.routing) text += fmt::format("  routing: \"{}\"\n", name_of(*spec.routing));
  for (const ExplicitNode& node : spec.nodes) {
    text += fmt::format("  nodes {{ name: \"{}\" kind: \"{}\" }}\n", node.name, name_of(node.kind));
  }
  for (const ExplicitLink& link : spec.links) text += link_text(link);
  for (const ExplicitLevel& level : spec.levels) {
    text += fmt::format("  levels {{ name: \"{}\" size: {}", level.name, level.size);
    if (level.kind) text += fmt::format(" kind: \"{}\"", name_of(*level.kind));
    text += " }\n";
  }
  return text + "}\n";
}

void check_name(CatalogKind kind, const char* option, const std::string& name,
                std::vector<Problem>& problems) {
  if (name.empty()) return;
  CatalogAnswer answer = find(kind, name);
  if (!answer.found) problems.push_back({option, std::move(answer.problem)});
}

}  // namespace

void GraphMaker::cable(const std::string& from, const std::string& to, Bandwidth bandwidth,
                       Duration latency) {
  add(std::minmax(from, to), {.from = from, .to = to, .bandwidth = bandwidth, .latency = latency});
}

void GraphMaker::one_way(const std::string& from, const std::string& to, Bandwidth bandwidth,
                         Duration latency) {
  add({from + ">", to},
      {.from = from, .to = to, .bandwidth = bandwidth, .latency = latency, .one_way = true});
}

void GraphMaker::from_card(const std::string& chip, const std::string& to, Bandwidth bandwidth,
                           Duration latency) {
  const std::string card = chip + ".nic";
  if (cards_.insert(card).second) node(card, NodeKind::kNic);
  cable(chip, card, bandwidth, Duration());
  cable(card, to, bandwidth, latency);
}

void GraphMaker::add(const std::pair<std::string, std::string>& key, ExplicitLink link) {
  const auto [found, is_new] = links_.try_emplace(key, spec.links.size());
  if (is_new) {
    spec.links.push_back(std::move(link));
    return;
  }
  ExplicitLink& known = spec.links[found->second];
  known.bandwidth = known.bandwidth + link.bandwidth;
  known.latency = std::max(known.latency, link.latency);
}

Imported imported_cluster(const ImportRequest& request, ClusterAbout about,
                          const ExplicitGraphSpec& spec, std::vector<Problem>& problems) {
  const std::string path = short_name(request.files[0]);
  if (!request.chip.empty()) about.chip = request.chip;
  if (!request.library.empty()) about.library = request.library;
  if (about.chip.empty()) {
    about.chip = "h100-sxm";
    about.assumed.emplace_back("chip h100-sxm: the file names none; --chip C gives another");
  }
  check_name(CatalogKind::kChip, "--chip", about.chip, problems);
  check_name(CatalogKind::kLibrary, "--library", about.library, problems);
  for (Problem& problem : check(spec)) {
    problems.push_back({path + ": " + problem.field, std::move(problem.message)});
  }
  if (!problems.empty()) return {};
  Imported imported;
  for (const std::string& text : about.assumed) imported.notes.push_back("assumed: " + text);
  for (const std::string& text : about.no_counterpart) {
    imported.notes.push_back("no counterpart: " + text);
  }
  for (const std::string& note : imported.notes) imported.text += "# " + note + "\n";
  imported.text +=
      fmt::format("name: \"{}\"\nchip {{ catalog: \"{}\" }}\n", cluster_name(path), about.chip);
  if (!about.library.empty()) {
    imported.text += fmt::format("library {{ catalog: \"{}\" }}\n", about.library);
  }
  imported.text += graph_text(spec);
  imported.facts["chip"] = about.chip;
  imported.facts["chips"] = std::ranges::count(spec.nodes, NodeKind::kChip, &ExplicitNode::kind);
  imported.facts["links"] = spec.links.size();
  imported.facts["assumed"] = about.assumed;
  imported.facts["no_counterpart"] = about.no_counterpart;
  return imported;
}

std::int64_t number_between(std::string_view text, std::int64_t low, std::int64_t high,
                            const std::string& field, std::string_view what,
                            std::vector<Problem>& problems) {
  const auto number = number_in<std::int64_t>(text);
  if (number && *number >= low && *number <= high) return *number;
  problems.push_back({field, fmt::format("{} must be a whole number, {} to {}, is {}", what, low,
                                         high, shortened(text))});
  return low;
}

}  // namespace stepsim
