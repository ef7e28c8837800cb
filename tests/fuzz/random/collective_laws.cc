#include "tests/fuzz/random/collective_laws.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "books/collective_forms/group_levels.h"
#include "sim/collectives/choose_algorithm.h"
#include "sim/run/collectives/collective_task.h"
#include "tests/fuzz/random/changed_cluster.h"
#include "tests/support/idle_collective.h"

namespace stepsim {
namespace {

constexpr double kOfForms = 1e-3;  // as tests/sim/collective_forms_test.cc
constexpr double kRounding = 1e-6;
constexpr Bytes kWholePieces(1024);  // every member has a piece

struct RandomCollective {
  CollectiveWork work{};
  std::vector<std::uint32_t> chips{};  // of the members
  GroupShape shape{};
  Granularity granularity = Granularity::kPipelined;
};

std::vector<std::uint32_t> random_members(Choices& choices, std::uint32_t chips) {
  const auto stride = static_cast<std::uint32_t>(choices.between(1, chips == 2 ? 1 : 2));
  std::vector<std::uint32_t> members;
  const std::uint32_t end =
      choices.one_in(2) ? chips
                        : stride + 1 + static_cast<std::uint32_t>(choices.below(chips - stride));
  for (std::uint32_t chip = 0; chip < end; chip += stride) members.push_back(chip);
  return members;
}

RandomCollective random_collective(Choices& choices, const Cluster& cluster) {
  RandomCollective random;
  random.chips = random_members(choices, static_cast<std::uint32_t>(cluster.places.chips.size()));
  random.shape = describe(cluster, random.chips);
  CollectiveWork& work = random.work;
  work.op = choices.pick<CollectiveOp>(kCollectiveOps);
  work.algorithm = choices.pick<AlgorithmChoice>(algorithms_for(work.op, random.shape));
  if (work.op != CollectiveOp::kBarrier) {
    work.bytes = choices.pick({30'240, 302'400'000, 1, 2048, 500'001}) * size_of(work.type);
  }
  work.root = static_cast<std::uint32_t>(choices.below(random.chips.size()));
  if (choices.one_in(2)) random.granularity = Granularity::kStepped;
  return random;
}

double seconds(const Cluster& cluster, const RandomCollective& random, Bytes bytes,
               Granularity granularity) {
  CollectiveWork work = random.work;
  work.bytes = bytes;
  const OpGraph graph = graph_of(cluster, work, random.chips);
  return to_seconds(simulate(graph, cluster, {.granularity = granularity}).step_time);
}

std::string text_of(const RandomCollective& random) {
  return fmt::format("{} {} {} of {} bytes on {} members", name_of(random.granularity),
                     name_of(random.work.algorithm), name_of(random.work.op),
                     random.work.bytes.value(), random.chips.size());
}

std::string broken_form(const Cluster& cluster, const RandomCollective& random, double time) {
  const OpGraph graph = graph_of(cluster, random.work, random.chips);
  const CollectiveTask task = task_of(graph, graph.collective_works[0]);
  const CollectiveFormula form =
      stated_form(cluster, random.chips, random.shape,
                  {.task = task,
                   .algorithm = random.work.algorithm,
                   .cost = {},
                   .overlapped = random.granularity == Granularity::kPipelined});
  // A few bytes are rounded up to whole bytes and picoseconds in every round.
  const double slack = kOfForms * form.seconds + 1e-9;
  const bool holds =
      form.exact ? std::abs(time - form.seconds) <= slack : time >= form.seconds - slack;
  if (holds) return "";
  return fmt::format("{} takes {} s, but the form {} says {}{}", text_of(random), time, form.text,
                     form.exact ? "" : "at least ", form.seconds);
}

std::string broken_order(const RandomCollective& random, const char* change, double less,
                         double more) {
  if (less <= more * (1 + kRounding)) return "";
  return fmt::format("{} takes {} s with {}, and {} s without", text_of(random), less, change,
                     more);
}

}  // namespace

std::string broken_collective(Choices& choices, const std::function<Cluster()>& build) {
  const Cluster cluster = with_ideal_library(build());
  if (cluster.places.chips.size() < 2) return "";
  const RandomCollective random = random_collective(choices, cluster);
  const Bytes bytes = random.work.bytes;
  const double time = seconds(cluster, random, bytes, random.granularity);
  std::string broken = broken_form(cluster, random, time);
  // A few elements are cut in another way than twice as many, and not every member has one.
  if (broken.empty() && bytes >= kWholePieces) {
    const double twice = seconds(cluster, random, 2 * bytes, random.granularity);
    broken = broken_order(random, "half of twice the bytes", time, twice);
  }
  if (broken.empty()) {
    const LinkId link(static_cast<std::uint32_t>(choices.below(cluster.fabric.links().size())));
    const Cluster faster = with_faster_link(with_ideal_library(build()), link);
    broken = broken_order(random, "a faster link",
                          seconds(faster, random, bytes, Granularity::kPipelined),
                          seconds(cluster, random, bytes, Granularity::kPipelined));
  }
  return broken;
}

}  // namespace stepsim
