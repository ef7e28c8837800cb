#include "proto/catalog/cluster_family.h"

#include <fmt/format.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cstdint>
#include <numeric>
#include <optional>
#include <system_error>
#include <utility>

#include "proto/catalog/catalog_message.h"
#include "proto/cluster.pb.h"
#include "topology/kinds/torus/tpu_slice.h"
#include "topology/topology_table.h"

namespace stepsim {
namespace {

file::Cluster parse(const SourceText& file) {
  file::Cluster cluster;
  ProblemList problems;
  read_catalog_message(file, "", cluster, problems);
  assert(problems.empty());  // tests/proto/catalog_test.cc reads every file of the catalog
  return cluster;
}

// Reads positive numbers with "x" between them.
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

// Returns whether the box fits into the largest one, in some order of its axes.
bool fits(std::vector<std::int32_t> axes, std::vector<std::int32_t> box) {
  std::ranges::sort(axes);
  std::ranges::sort(box);
  return axes.size() == box.size() && std::ranges::equal(axes, box, std::ranges::less_equal{});
}

// Families of composed tori have a number of tori and their axes. Those whose tori are all alike
// (nodes of Trainium) have no box, and count chips.
bool is_composed_of_tori(const file::Cluster& cluster) {
  return cluster.has_composed() && cluster.composed().domain().has_torus() &&
         cluster.sizes().has_box();
}

// Shapes is a search for the most compact box of so many chips.
class Shapes {
 public:
  Shapes(std::vector<std::int32_t> box, std::int32_t multiple)
      : box_(std::move(box)), multiple_(multiple) {}

  // Returns ascending axes: cubes of the rule's multiple before others, then those with the
  // smallest sum. Empty if none fits into the box.
  std::vector<std::int32_t> of(std::int32_t chips) {
    axes_.clear();
    best_.clear();
    divide(chips, 1);
    return best_;
  }

 private:
  void divide(std::int32_t chips, std::int32_t least) {
    if (axes_.size() + 1 == box_.size()) {
      if (chips < least) return;
      axes_.push_back(chips);
      if (fits(axes_, box_) && (best_.empty() || is_better())) best_ = axes_;
      axes_.pop_back();
      return;
    }
    for (std::int32_t size = least; size <= chips / size; ++size) {
      if (chips % size != 0) continue;
      axes_.push_back(size);
      divide(chips / size, size);
      axes_.pop_back();
    }
  }

  bool is_better() const {
    const auto is_whole = [this](const std::vector<std::int32_t>& axes) {
      return std::ranges::all_of(axes, [this](std::int32_t size) { return size % multiple_ == 0; });
    };
    if (is_whole(axes_) != is_whole(best_)) return is_whole(axes_);
    return std::accumulate(axes_.begin(), axes_.end(), 0) <
           std::accumulate(best_.begin(), best_.end(), 0);
  }

  std::vector<std::int32_t> box_;
  std::int32_t multiple_;
  std::vector<std::int32_t> axes_{};
  std::vector<std::int32_t> best_{};
};

// A number of chips in the place of a torus's axes stands for its most compact shape.
std::vector<std::int32_t> with_axes(std::vector<std::int32_t> numbers,
                                    const file::Cluster& cluster) {
  const bool is_composed = is_composed_of_tori(cluster);
  const std::size_t before = is_composed ? 1 : 0;
  if ((!cluster.has_torus() && !is_composed) || numbers.size() != before + 1) return numbers;
  const file::Sizes& rule = cluster.sizes();
  const std::int32_t chips = numbers.back();
  const std::vector<std::int32_t> axes =
      Shapes(numbers_of(rule.box()).value_or(std::vector<std::int32_t>{}),
             std::max(1, rule.wraps_when_multiple_of()))
          .of(chips);
  if (axes.size() < 2) return numbers;
  numbers.pop_back();
  numbers.insert(numbers.end(), axes.begin(), axes.end());
  return numbers;
}

std::optional<std::int32_t> count_of(const file::Cluster& cluster,
                                     const std::vector<std::int32_t>& numbers) {
  const std::int32_t each = cluster.sizes().chips_per_count();
  if (numbers.size() != 1 || numbers[0] % each != 0 ||
      numbers[0] > cluster.sizes().maximum_chips()) {
    return std::nullopt;
  }
  return numbers[0] / each;
}

bool set_axes(file::Torus& torus, const std::vector<std::int32_t>& numbers,
              const file::Sizes& rule) {
  if (!fits(numbers, numbers_of(rule.box()).value_or(std::vector<std::int32_t>{}))) return false;
  const bool all_are_multiples =
      rule.has_wraps_when_multiple_of() && std::ranges::all_of(numbers, [&rule](std::int32_t size) {
        return size % rule.wraps_when_multiple_of() == 0;
      });
  for (const std::int32_t size : numbers) {
    file::Torus::Axis& axis = *torus.add_axes();
    axis.set_size(size);
    axis.set_wraps(all_are_multiples ||
                   (rule.has_wraps_when_size() && size == rule.wraps_when_size()));
  }
  return true;
}

// Sets the number of nodes, racks or pods: the field that the table of topologies names, or the
// first tier of a composed cluster.
void set_count(file::Cluster& cluster, std::int32_t count) {
  if (cluster.has_composed()) {
    cluster.mutable_composed()->mutable_tiers(0)->set_count(count);
    return;
  }
  const google::protobuf::FieldDescriptor& held = *cluster.GetReflection()->GetOneofFieldDescriptor(
      cluster, cluster.GetDescriptor()->FindOneofByName("topology"));
  google::protobuf::Message& topology = *cluster.GetReflection()->MutableMessage(&cluster, &held);
  const std::string field(count_field_of(block_named(held.name()).value()));
  topology.GetReflection()->SetInt32(&topology, topology.GetDescriptor()->FindFieldByName(field),
                                     count);
}

// Returns false if the family has no such size. REQUIRES: a composed cluster has a tier.
bool set_size(file::Cluster& cluster, const std::vector<std::int32_t>& numbers,
              const file::Sizes& rule) {
  if (cluster.has_torus()) return set_axes(*cluster.mutable_torus(), numbers, rule);
  if (is_composed_of_tori(cluster)) {
    file::Composed& composed = *cluster.mutable_composed();
    const std::vector<std::int32_t> axes(numbers.empty() ? numbers.end() : numbers.begin() + 1,
                                         numbers.end());
    if (!set_axes(*composed.mutable_domain()->mutable_torus(), axes, rule)) return false;
    composed.mutable_tiers(0)->set_count(numbers[0]);
    return numbers[0] <= rule.maximum_count();
  }
  const auto count = count_of(cluster, numbers);
  if (!count) return false;
  set_count(cluster, *count);
  return true;
}

// Describes the sizes that set_size() takes.
std::string sizes_in_words(const file::Cluster& cluster) {
  const file::Sizes& rule = cluster.sizes();
  const std::string axes =
      fmt::format("the axes of a torus that fits into {}, as in {}, or its number of chips",
                  rule.box(), rule.listed(0));
  if (cluster.has_torus()) return axes;
  if (is_composed_of_tori(cluster)) {
    return fmt::format("a number of {}s, up to {}, and {}", cluster.composed().tiers(0).name(),
                       rule.maximum_count(), axes);
  }
  return fmt::format("a multiple of {} chips, up to {}", rule.chips_per_count(),
                     rule.maximum_chips());
}

constexpr std::string_view kTwisted = "_twisted";

// Turns the axes into a twisted torus. Returns what is needed if they don't wrap.
std::optional<std::string> twist(file::Cluster& cluster) {
  const file::Torus torus = cluster.torus();
  file::TwistedTorus& twisted = *cluster.mutable_twisted_torus();  // replaces the torus
  for (const file::Torus::Axis& axis : torus.axes()) {
    if (!axis.wraps()) return fmt::format("must have axes that wrap, to end in {}", kTwisted);
    twisted.add_shape(axis.size());
  }
  twisted.set_link_bandwidth(torus.link_bandwidth());
  twisted.set_link_latency(torus.link_latency());
  return std::nullopt;
}

// Returns what is wrong with a slice that the generation's hardware does not have; nullopt for
// other families.
std::optional<std::string> missing_slice(const std::string& family,
                                         const std::vector<std::int32_t>& numbers) {
  const auto generation = tpu_generation_named(family);
  if (!generation) return std::nullopt;
  TpuSliceSpec slice;
  slice.generation = *generation;
  slice.shape.assign(numbers.begin(), numbers.end());
  const std::vector<Problem> problems = check(slice);
  if (problems.empty()) return std::nullopt;
  return "must be one that the hardware has: " + problems.front().message;
}

}  // namespace

std::vector<std::string> listed_sizes(const SourceText& file) {
  const file::Cluster cluster = parse(file);
  return {cluster.sizes().listed().begin(), cluster.sizes().listed().end()};
}

std::string accepted_sizes(const SourceText& file) {
  return sizes_in_words(parse(file));
}

CatalogAnswer sized_cluster(const SourceText& file, const std::string& family,
                            std::string_view size) {
  file::Cluster cluster = parse(file);
  const file::Sizes rule = cluster.sizes();
  cluster.set_name(family + "-" + std::string(size));
  const bool is_twisted = rule.may_be_twisted() && size.ends_with(kTwisted);
  const std::string_view axes = size.substr(0, size.size() - (is_twisted ? kTwisted.size() : 0));
  const auto numbers = with_axes(numbers_of(axes).value_or(std::vector<std::int32_t>{}), cluster);
  std::optional<std::string> problem;
  if (!set_size(cluster, numbers, rule)) problem = "must be " + sizes_in_words(cluster);
  if (!problem) problem = missing_slice(family, numbers);
  if (!problem && is_twisted) problem = twist(cluster);
  if (problem) {
    return {std::nullopt,
            fmt::format("the size of {}-<size> {}; is \"{}\"", family, *problem, size)};
  }
  cluster.clear_sizes();
  SourceText text{.name = file.name, .extension = ".textproto", .text = {}};
  google::protobuf::TextFormat::PrintToString(cluster, &text.text);
  return {text, ""};
}

}  // namespace stepsim
