#include "cli/serve/served_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "experiment/build_cluster.h"
#include "proto/catalog/engine_releases.h"
#include "proto/catalog/serving_software.h"
#include "proto/load_experiment.h"
#include "schedules/plan/keys/key_groups.h"
#include "serving/passes/pool_text.h"
#include "sim/base/field_text.h"
#include "sim/base/quantity_text.h"

namespace stepsim {
namespace {

// Returns cp of the plan's keys; 1 if that is no number, which reading the plan reports.
std::int64_t context_ranks(const ServedModelSource& source) {
  constexpr std::int64_t kMost = 1 << 20;
  const std::string_view text = value_of_plan(source.plan, "cp");
  std::int64_t ranks = 1;
  std::from_chars(text.data(), text.data() + text.size(), ranks);
  return std::clamp<std::int64_t>(ranks, 1, kMost);
}

void check_context_ranks(const ServedModelSource& source, std::vector<Problem>& problems) {
  const std::int64_t ranks = context_ranks(source);
  if (ranks == 1 || source.part == ServedPart::kPrompts) return;
  const std::string is = fmt::format("is {}, but ", ranks);
  const std::string only =
      " only prompts are divided over context ranks, in replicas that compute nothing else";
  problems.push_back(
      source.part == ServedPart::kAll
          ? Problem{"--plan cp", is + "these replicas generate, too, and" + only +
                                     ": leave it out, or have such replicas, as in --prefill "
                                     "workers=2,cp=2 --decode workers=1"}
          : Problem{"--decode cp", is + "decode replicas generate, and" + only +
                                       ": 1. What --plan says holds for both; --prefill "
                                       "workers=2,cp=2 says it of the others"});
}

// A pass of prompts that context ranks divide, whichever way.
std::string pass_of_prompts(const ServedModelSource& source) {
  return fmt::format("inference=prefill,sequence={0},context={0}", 2 * context_ranks(source));
}

// Any pass of the plan will do: batches come from the engine.
Experiment load(const ServedModelSource& source) {
  std::vector<Problem> problems;
  check_context_ranks(source, problems);
  const bool divides_prompts = context_ranks(source) > 1;
  for (const char* const key : {"inference", "batch", "global_batch", "context", "sequence"}) {
    if (value_of_plan(source.plan, key).empty()) continue;
    const std::string_view group = name_of(group_of(key).value_or(KeyGroup::kPlan));
    problems.push_back({fmt::format("--{} {}", group, key),
                        "must be left out: the engine decides what a pass computes"});
  }
  throw_if_any(std::move(problems));
  if (!source.experiment.empty()) {
    // A pass has at least a request for each rank.
    const std::string_view own_ranks = value_of_plan(source.plan, "dp");
    std::string plan =
        own_ranks.empty() ? source.plan : fmt::format("{},batch={}", source.plan, own_ranks);
    if (divides_prompts) plan += "," + pass_of_prompts(source);
    Experiment experiment = load_experiment(with_keys({.experiment = source.experiment,
                                                       .model = source.model,
                                                       .cluster = source.cluster,
                                                       .chip = source.chip,
                                                       .library = source.library},
                                                      plan));
    if (experiment.plan.pass.inference == Inference::kDecode || divides_prompts) return experiment;
    throw ConfigError({{source.experiment, "must have a plan of inference=decode to be served"}});
  }
  const std::string_view ranks = value_of_plan(source.plan, "dp");
  const std::string pass =
      fmt::format("{},batch={},allow_idle_chips=true",
                  divides_prompts ? pass_of_prompts(source) : "inference=decode,context=2",
                  ranks.empty() ? "1" : ranks);
  return load_experiment(with_keys({.model = source.model,
                                    .cluster = source.cluster,
                                    .chip = source.chip,
                                    .library = source.library},
                                   source.plan.empty() ? pass : pass + "," + source.plan));
}

// SGLang's tp counts all ranks, of which dp divide the requests.
Experiment load_explained(const ServedModelSource& source) {
  const EngineSetting asked = setting_of(source.plan, {}, {});
  const bool may_count_all = source.engine == "sglang" && asked.dp > 1 && asked.tp % asked.dp == 0;
  try {
    return load(source);
  } catch (const ConfigError& error) {
    if (!may_count_all) throw;
    std::vector<Problem> problems = error.problems();
    problems.push_back(
        {"--plan tp", fmt::format("is of each group of attention here: SGLang's tp={0},dp={1}, "
                                  "where tp counts all ranks, is tp={2},dp={1}",
                                  asked.tp, asked.dp, asked.tp / asked.dp)});
    throw ConfigError(std::move(problems));
  }
}

// Kernels of the software go before those of others, and its library takes the place of the one
// that the chips have, unless another is named.
Experiment load_with_software(const ServedModelSource& source) {
  Experiment experiment = load_explained(source);
  const auto software = software_of(source.software, source.engine);
  if (!software) return experiment;
  const auto library = software->libraries.find(experiment.cluster.library.name);
  if (source.library.empty() && library != software->libraries.end()) {
    ServedModelSource with_library = source;
    with_library.library = library->second;
    experiment = load(with_library);
  }
  prefer_kernels_of(*software, experiment.cluster.chip.serving);
  return experiment;
}

}  // namespace

ServedModel::ServedModel(const ServedModelSource& source)
    : experiment_(load_with_software(source)),
      times_(
          experiment_, cluster_for_steps(experiment_), {},
          source.exact ? PassTimes::Precision::kEveryBatch : PassTimes::Precision::kInterpolated),
      cost_(times_, experiment_.plan.mesh.dp) {}

void ServedModel::complete(EngineOptions& engine, std::vector<Problem>& problems) {
  engine = of_ranks(engine, experiment_.plan.mesh.dp);
  if (engine.cache.host_memory > Bytes(0) || engine.cache.host_blocks > 0)
    complete_host(engine, problems);
  const KvRoom room = fit_cache(experiment_, times_.cluster(), engine);
  if (engine.cache.kv_blocks && engine.batching.sequences > 0) return;
  problems.push_back(
      {"--model", fmt::format("leaves no room for a KV cache: weights and the largest pass take {} "
                              "of the {} that kv-fraction={} gives: more chips ({}), narrower "
                              "weights (weight_dtype), or a smaller budget",
                              to_text(room.others), to_text(room.available + room.others),
                              engine.cache.kv_fraction,
                              experiment_.plan.mesh.splits_ffn() ? "tp, ffn_chips" : "tp")});
}

const Cluster& ServedModel::cluster_with_hosts() {
  if (!with_hosts_) with_hosts_ = build_cluster(experiment_.cluster, true);
  return *with_hosts_;
}

// A block of a data-parallel group is on all its chips.
void ServedModel::complete_host(EngineOptions& engine, std::vector<Problem>& problems) {
  const Hosts& hosts = cluster_with_hosts().hosts;
  if (hosts.count == 0) {
    problems.push_back({"--engine host-memory",
                        "needs a host: the chip of this cluster has none (host.link_bandwidth)"});
    return;
  }
  const ReplicaPlace of_group = place(0);
  const Bytes block = engine.cache.block * std::int64_t{of_group.ranks} * of_group.token;
  const Bytes share = chips() * hosts.spec.memory_capacity / hosts.spec.chips;
  if (engine.cache.host_blocks == 0 && block > Bytes(0)) {
    engine.cache.host_blocks = engine.cache.host_memory.value() / block.value();
    if (engine.cache.host_blocks == 0) {
      problems.push_back({"--engine host-memory", "must be at least a block, " + to_text(block) +
                                                      ", is " + to_text(engine.cache.host_memory)});
    }
  }
  if (engine.cache.host_blocks * block <= share) return;
  problems.push_back(
      {"--engine host-memory",
       fmt::format("must be at most {}, the replica's share of its hosts' memory, is {}",
                   to_text(share), to_text(engine.cache.host_blocks * block))});
}

ReplicaPlace ServedModel::place(std::uint32_t first) const {
  const ParallelPlan& plan = experiment_.plan;
  std::int64_t stride = 1;
  for (const PlanAxis axis : plan.mesh.order) {
    if (axis == PlanAxis::kContext) break;
    if (axis != PlanAxis::kData) stride *= plan.mesh.size_of(axis);
  }
  return {.first = first,
          .ranks = static_cast<std::uint32_t>(plan.mesh.mesh_ranks() / plan.mesh.dp),
          .groups = static_cast<std::uint32_t>(plan.mesh.dp),
          .token = cache_of_token(experiment_.model, plan),
          .contexts = static_cast<std::uint32_t>(plan.mesh.cp),
          .context_stride = static_cast<std::uint32_t>(stride)};
}

}  // namespace stepsim
