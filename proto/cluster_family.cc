#include "proto/cluster_family.h"

#include <fmt/format.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cstdint>
#include <optional>
#include <system_error>

#include "proto/cluster.pb.h"

namespace stepsim {
namespace {

file::Cluster parse(const SourceText& file) {
  file::Cluster cluster;
  ProblemList problems;
  read_message(file, "", cluster, problems);
  assert(problems.empty());  // tests/proto/catalog_test.cc reads every file of the catalog
  return cluster;
}

// Positive numbers with "x" between them.
std::optional<std::vector<std::int32_t>> numbers_of(std::string_view text) {
  std::vector<std::int32_t> numbers;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (true) {
    std::int32_t& number = numbers.emplace_back();
    const auto [rest, error] = std::from_chars(at, end, number);
    if (error != std::errc() || number < 1) return std::nullopt;
    if (rest == end) return numbers;
    if (*rest != 'x') return std::nullopt;
    at = rest + 1;
  }
}

// Says what sizes there are if this is none of them.
std::optional<std::string> set_size(file::DgxSuperpod& superpod,
                                    const std::vector<std::int32_t>& numbers,
                                    const file::Sizes& rule) {
  const std::int32_t gpus = superpod.gpus_per_node();
  if (numbers.size() != 1 || numbers[0] % gpus != 0 || numbers[0] > rule.maximum_chips()) {
    return fmt::format("must be a multiple of {} chips, up to {}", gpus, rule.maximum_chips());
  }
  superpod.set_nodes(numbers[0] / gpus);
  return std::nullopt;
}

std::optional<std::string> set_size(file::Torus& torus, const std::vector<std::int32_t>& numbers,
                                    const file::Sizes& rule) {
  std::int64_t chips = 1;
  bool wraps = true;
  for (const std::int32_t size : numbers) {
    if (chips <= rule.maximum_chips()) chips *= size;
    wraps = wraps && size % rule.wraps_when_multiple_of() == 0;
  }
  if (numbers.size() != 3 || chips > rule.maximum_chips()) {
    return fmt::format("must be the three axes of the torus, as in 4x4x8, at most {} chips",
                       rule.maximum_chips());
  }
  for (const std::int32_t size : numbers) {
    file::Torus::Axis& axis = *torus.add_axes();
    axis.set_size(size);
    axis.set_wraps(wraps);
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> listed_sizes(const SourceText& file) {
  const file::Cluster cluster = parse(file);
  return {cluster.sizes().listed().begin(), cluster.sizes().listed().end()};
}

CatalogAnswer sized_cluster(const SourceText& file, const std::string& family,
                            std::string_view size) {
  file::Cluster cluster = parse(file);
  const file::Sizes rule = cluster.sizes();
  cluster.clear_sizes();
  cluster.set_name(family + "-" + std::string(size));
  const auto numbers = numbers_of(size).value_or(std::vector<std::int32_t>{});
  const auto problem = cluster.has_torus()
                           ? set_size(*cluster.mutable_torus(), numbers, rule)
                           : set_size(*cluster.mutable_dgx_superpod(), numbers, rule);
  if (problem) {
    return {std::nullopt,
            fmt::format("the size of {}-<size> {}; is \"{}\"", family, *problem, size)};
  }
  SourceText text{.name = file.name, .extension = ".textproto", .text = {}};
  google::protobuf::TextFormat::PrintToString(cluster, &text.text);
  return {text, ""};
}

}  // namespace stepsim
