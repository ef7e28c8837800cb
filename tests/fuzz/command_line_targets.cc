#include "tests/fuzz/command_line_targets.h"

#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/collective/routing_text.h"
#include "cli/formula/formula_answer.h"
#include "cli/rank_list.h"
#include "cli/schedule/schedule_options.h"
#include "cli/sweep/sweep_axes.h"
#include "proto/load_experiment.h"
#include "proto/plan_text.h"
#include "proto/to_spec.h"
#include "schedules/pipeline/replay/check_order.h"
#include "sim/base/field_text.h"
#include "store/result_store.h"
#include "tests/fuzz/input_on_disk.h"
#include "tests/fuzz/target_parts.h"
#include "topology/topology.h"

namespace stepsim {
namespace {

// Two chips and two layers, without the catalog: it is read in a fraction of a millisecond.
constexpr std::string_view kSmallExperiment = R"(
name: "small"
model { kind: "mlp_stack" layers: 2 hidden: 64 intermediate: 128 }
cluster {
  chip {
    name: "made" peak { type: "bf16" throughput: "1TFLOPS" } peak { type: "fp32" throughput: "1TFLOPS" }
    memory_bandwidth: "1TB/s" memory_capacity: "1GB"
  }
  nvlink_domain { gpus: 2 }
}
plan { tp: 2 global_batch: 4 sequence: 64 }
)";

// Options that write files, or change how much of a file is read.
bool is_about_files(std::string_view word) {
  for (const std::string_view beginning : {"--j", "--t", "--max"}) {
    if (word.starts_with(beginning)) return true;
  }
  return false;
}

// Also makes the schedule if it is small.
void make(const ScheduleRequest& request) {
  throw_if_any(check_options(request));
  constexpr std::int64_t kMostOps = 256;
  if (request.stages * request.microbatches * chunks_of(request) > kMostOps) return;
  require(check_order(make_schedule(request)).empty(), "an order that no rank can follow");
}

// Every copy of a token that is not dropped goes to one expert.
void check_traffic(const ExpertRouting& routing) {
  constexpr std::uint64_t kMostWork = 1'000'000;
  if (std::uint64_t{routing.members} * routing.members > kMostWork ||
      std::uint64_t{routing.experts} * routing.experts * routing.top_k > kMostWork) {
    return;
  }
  const ExpertTraffic traffic = route_tokens(routing);
  const double copies =
      static_cast<double>(routing.members) * static_cast<double>(routing.tokens) * routing.top_k;
  const double arrived = std::accumulate(traffic.tokens_of_expert.begin(),
                                         traffic.tokens_of_expert.end(), traffic.dropped);
  require(std::abs(arrived / copies - 1) < 1e-3, "copies of tokens were lost or made");
  for (const Bytes bytes : traffic.dispatch.bytes) require(bytes >= Bytes(0), "negative bytes");
}

}  // namespace

void read_plan_keys(std::string_view input) {
  static const ModelSpec model = load_model("llama3-8b");
  static const BuiltTopology built = build_topology(load_cluster("dgx-h100-8").topology);
  ProblemList problems;
  file::Plan message;
  const KeyTexts keys = split_keys_text(input);
  read_keys_text(keys.plan, KeyGroup::kPlan, message, problems);
  if (!keys.software.empty()) {
    read_keys_text(keys.software, KeyGroup::kSoftware, message, problems);
  }
  if (!keys.pass.empty()) read_keys_text(keys.pass, KeyGroup::kPass, message, problems);
  const ParallelPlan plan = to_plan(message, problems);
  problems.add(check(plan, model, built.places));
  throw_if_any(problems.all());
}

void read_overrides(std::string_view input) {
  static const InputOnDisk base(kSmallExperiment, "-base.textproto");
  load_experiment({.experiment = base.path(), .overrides = parts_of(input, '\n', 20)});
}

// Points of the axes, and some of them loaded.
void read_sweep_axes(std::string_view input) {
  static const InputOnDisk base(kSmallExperiment, "-base.textproto");
  std::vector<Problem> problems;
  const SweepSpace space(parts_of(input, '\n', 20), "--over", problems);
  throw_if_any(std::move(problems));
  const std::uint64_t last = space.size() - 1;
  require(space.values(last).size() == space.paths().size(), "a point has no value for each path");
  for (const std::uint64_t point : {std::uint64_t{0}, last / 2, last}) {
    load_experiment({.experiment = base.path(), .overrides = space.overrides(point)});
  }
}

// The file of another process, which may be no store, damaged or made to hurt.
void read_result_store(std::string_view input) {
  const InputOnDisk file(input, ".sqlite");
  ResultStore store(file.path(), "0.1.0", Database::Mode::kRead);
  for (const StoredSweep& sweep : store.sweeps()) store.points(sweep);
  for (const std::string& key : store.keys()) {
    require(store.result(key).has_value(), "a result is listed and is not there");
  }
}

void read_formula_words(std::string_view input) {
  const std::vector<std::string> words = parts_of(input, ' ', 30);
  if (words.empty()) throw_if_any({{"formula", "has no words"}});
  answer(read_formula(words[0]), std::span(words).subspan(1), {});
}

void read_schedule_words(std::string_view input) {
  const std::vector<std::string> words = parts_of(input, '\n', 30);
  for (const std::string& word : words) {
    if (is_about_files(word)) throw_if_any({{word, "is for people"}});
  }
  std::vector<Problem> problems;
  ScheduleOptions options = read_schedule_options(words, problems);
  throw_if_any(std::move(problems));
  const auto name = schedule_named(options.name);
  if (!name) throw_if_any({{"schedule", "has no such name"}});
  options.request.name = *name;
  make(options.request);
}

void read_expert_routing(std::string_view input) {
  const std::vector<std::string> lines = parts_of(input, '\n', 3);
  const auto members = lines.empty() ? std::nullopt : number_in<std::uint32_t>(lines[0]);
  const auto of_node = lines.size() < 3 ? std::nullopt : number_in<std::uint32_t>(lines[1]);
  if (!members || !of_node) throw_if_any({{"routing", "has no members, nodes and keys"}});
  std::vector<Problem> problems;
  const ExpertRouting routing = read_routing(lines[2], *members, *of_node, problems);
  throw_if_any(std::move(problems));
  check_traffic(routing);
}

void read_ranks(std::string_view input) {
  std::vector<Problem> problems;
  const std::vector<std::uint32_t> ranks = read_rank_list(
      input, {.option = "--ranks", .what = "chips of the cluster", .count = 1024}, problems);
  throw_if_any(std::move(problems));
  for (const std::uint32_t rank : ranks) require(rank < 1024, "a rank that is not there");
}

}  // namespace stepsim
