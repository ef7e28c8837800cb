#include "traces/link_kinds.h"

#include <cctype>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace stepsim {
namespace {

std::string pattern_of(const std::string& name) {
  std::string text;
  for (const char character : name) {
    const bool digit = std::isdigit(static_cast<unsigned char>(character)) != 0;
    if (!digit) text += character;
    if (digit && !text.ends_with('*')) text += '*';
  }
  for (std::size_t at = 0; (at = text.find("*.*", at)) != std::string::npos;) text.erase(at, 2);
  return text;
}

}  // namespace

std::vector<std::string> node_kinds(const Fabric& fabric) {
  std::vector<std::string> kinds;
  for (const Node& node : fabric.nodes()) kinds.push_back(pattern_of(node.name));
  return kinds;
}

std::vector<std::string> link_kinds(const Fabric& fabric, const Places& places) {
  const std::vector<std::string> patterns = node_kinds(fabric);
  std::vector<std::optional<std::uint32_t>> chip_of(fabric.nodes().size());
  for (std::uint32_t chip = 0; chip < places.chips.size(); ++chip) {
    chip_of[places.chips[chip].index()] = chip;
  }
  std::vector<std::string> kinds;
  for (const Link& link : fabric.links()) {
    std::string kind = patterns[link.from.index()] + " > " + patterns[link.to.index()];
    const auto from = chip_of[link.from.index()];
    const auto to = chip_of[link.to.index()];
    for (std::size_t level = 0; from && to && level < places.levels.size(); ++level) {
      if (places.coordinate(*from, level) == places.coordinate(*to, level)) continue;
      kind += " along " + places.levels[level].name;
    }
    kinds.push_back(std::move(kind));
  }
  return kinds;
}

}  // namespace stepsim
