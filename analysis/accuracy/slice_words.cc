#include "analysis/accuracy/slice_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <vector>

namespace stepsim {
namespace {

constexpr std::int64_t kMostSlices = 1000;

std::vector<std::string_view> separate_words(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" (),;"), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

std::optional<std::int64_t> whole_number(std::string_view word) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size() || number < 1) return std::nullopt;
  return number;
}

// Returns whether the word is numbers with "x" between them: "8x12x16".
bool is_box(std::string_view word) {
  bool has_x = false;
  while (true) {
    const std::size_t x = std::min(word.find('x'), word.size());
    if (!whole_number(word.substr(0, x))) return false;
    if (x == word.size()) return has_x;
    has_x = true;
    word.remove_prefix(x + 1);
  }
}

std::int64_t chips_of_box(std::string_view axes) {
  std::int64_t chips = 1;
  while (!axes.empty()) {
    const std::size_t x = std::min(axes.find('x'), axes.size());
    chips *= std::min(*whole_number(axes.substr(0, x)), kMostSlices);
    axes.remove_prefix(std::min(x + 1, axes.size()));
  }
  return chips;
}

SliceCluster refused_slice(std::string problem) {
  return {.name = {}, .problem = std::move(problem)};
}

}  // namespace

SliceWords slice_words(std::string_view inside, std::string_view between) {
  SliceWords words;
  const std::vector<std::string_view> about = separate_words(inside);
  for (std::size_t i = 0; i < about.size(); ++i) {
    if (is_box(about[i]) && words.axes.empty()) words.axes = about[i];
    const std::size_t dash = about[i].rfind('-');
    if (i + 1 == about.size() || about[i + 1] != "slice" || dash == std::string_view::npos)
      continue;
    words.cores = whole_number(about[i].substr(dash + 1));
  }
  const std::vector<std::string_view> network = separate_words(between);
  for (std::size_t i = 1; i < network.size(); ++i) {
    if (network[i] != "slices" && network[i] != "pods") continue;
    words.slices = whole_number(network[i - 1]).value_or(words.slices);
  }
  return words;
}

SliceCluster slice_cluster(const Hardware& hardware, const SliceWords& words, std::int64_t chips) {
  if (words.slices > kMostSlices || chips % words.slices != 0) {
    return refused_slice(fmt::format("{} chips are not {} equal slices", chips, words.slices));
  }
  const std::int64_t of_slice = chips / words.slices;
  if (words.cores && *words.cores != of_slice * hardware.cores_per_chip) {
    return refused_slice(fmt::format(
        "the slice of {} cores or chips is not the {} chips of the run", *words.cores, of_slice));
  }
  if (!words.axes.empty() && chips_of_box(words.axes) != of_slice) {
    return refused_slice(
        fmt::format("the slice {} does not have the {} chips of the run", words.axes, of_slice));
  }
  const std::string size = words.axes.empty() ? std::to_string(of_slice) : words.axes;
  if (words.slices == 1) return {.name = hardware.cluster + "-" + size, .problem = {}};
  if (hardware.multislice.empty()) {
    return refused_slice("the catalog has no family of several slices of " + hardware.chip);
  }
  return {.name = fmt::format("{}-{}x{}", hardware.multislice, words.slices, size), .problem = {}};
}

}  // namespace stepsim
