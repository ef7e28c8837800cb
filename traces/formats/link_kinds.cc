#include "traces/formats/link_kinds.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "sim/base/small_letters.h"

namespace stepsim {
namespace {

std::string pattern_of(const std::string& name) {
  std::string text;
  for (const char character : name) {
    const bool digit = is_digit(character);
    if (!digit) text += character;
    if (digit && !text.ends_with('*')) text += '*';
  }
  for (std::size_t at = 0; (at = text.find("*.*", at)) != std::string::npos;) text.erase(at, 2);
  return text;
}

// Returns by position the number of each text in `different`, which becomes the texts in order.
std::vector<std::uint32_t> numbered(std::vector<std::string> texts,
                                    std::vector<std::string>& different) {
  std::unordered_map<std::string_view, std::uint32_t> number_of;
  for (const std::string& text : texts) number_of.emplace(text, 0);
  for (const auto& [text, number] : number_of) different.emplace_back(text);
  std::ranges::sort(different);
  for (std::uint32_t i = 0; i < different.size(); ++i) number_of[different[i]] = i;
  std::vector<std::uint32_t> numbers;
  numbers.reserve(texts.size());
  for (const std::string& text : texts) numbers.push_back(number_of[text]);
  return numbers;
}

}  // namespace

std::vector<std::string> node_kinds(const Fabric& fabric) {
  std::vector<std::string> kinds;
  for (const Node& node : fabric.nodes()) kinds.push_back(pattern_of(node.name));
  return kinds;
}

LinkKinds link_kinds(const Fabric& fabric, const Places& places) {
  std::vector<std::string> patterns;
  const std::vector<std::uint32_t> pattern_of_node = numbered(node_kinds(fabric), patterns);
  std::vector<std::optional<std::uint32_t>> chip_of(fabric.nodes().size());
  for (std::uint32_t chip = 0; chip < places.chips.size(); ++chip) {
    chip_of[places.chips[chip].index()] = chip;
  }
  // By the patterns of both ends and the levels along which they differ, a bit each.
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, std::uint32_t> numbers;
  const std::size_t levels = std::min<std::size_t>(64, places.levels.size());
  std::vector<std::string> names;
  std::vector<std::uint32_t> kinds;
  kinds.reserve(fabric.links().size());
  for (const Link& link : fabric.links()) {
    const auto from = chip_of[link.from.index()];
    const auto to = chip_of[link.to.index()];
    std::uint64_t along = 0;
    for (std::size_t level = 0; from && to && level < levels; ++level) {
      const bool differ = places.coordinate(*from, level) != places.coordinate(*to, level);
      along |= std::uint64_t{differ} << level;
    }
    const std::uint32_t start = pattern_of_node[link.from.index()];
    const std::uint32_t end = pattern_of_node[link.to.index()];
    const auto number = static_cast<std::uint32_t>(names.size());
    const auto [kind, is_new] = numbers.try_emplace({start, end, along}, number);
    if (is_new) {
      names.push_back(patterns[start] + " > " + patterns[end]);
      for (std::size_t level = 0; level < levels; ++level) {
        if ((along >> level & 1) != 0) names.back() += " along " + places.levels[level].name;
      }
    }
    kinds.push_back(kind->second);
  }
  LinkKinds result;
  const std::vector<std::uint32_t> of_name = numbered(std::move(names), result.names);
  for (std::uint32_t& kind : kinds) kind = of_name[kind];
  result.of_link = std::move(kinds);
  return result;
}

}  // namespace stepsim
