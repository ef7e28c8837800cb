#include "experiment/passes/pass_times.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "experiment/pass_dispatch.h"
#include "schedules/lowering/stages/lowered_model.h"
#include "schedules/plan/pass_exchange.h"

namespace stepsim {
namespace {

Duration between(std::int64_t low, Duration at_low, std::int64_t high, Duration at_high,
                 std::int64_t tokens) {
  const double share = static_cast<double>(tokens - low) / static_cast<double>(high - low);
  const double rise = static_cast<double>((at_high - at_low).count());
  return at_low + Duration(std::llround(rise * share));
}

// Returns numbers of tokens in between, at which a line from `low` to `high` may miss most. Times
// of matmuls step up where another tile begins. The ends of wide intervals are multiples of tiles,
// and so a line lies below the steps: every second number begins a tile, the others fill one.
std::array<std::int64_t, 4> probes(std::int64_t low, std::int64_t high) {
  constexpr std::int64_t kTile = 128;
  std::array<std::int64_t, 4> result{};
  for (std::int64_t i = 0; i < 4; ++i) {
    std::int64_t& tokens = result[static_cast<std::size_t>(i)];
    tokens = low + (i + 1) * (high - low) / 5;
    if (high - low > 4 * kTile) tokens = tokens / kTile * kTile + (i % 2 == 0 ? 1 : 0);
  }
  return result;
}

}  // namespace

PassTimes::PassTimes(Experiment experiment, Cluster cluster, ExperimentOptions options,
                     Precision precision)
    : experiment_(std::move(experiment)),
      cluster_(std::move(cluster)),
      options_(std::move(options)),
      precision_(precision),
      mixing_(experiment_.model, shard_of(experiment_.plan, {}), experiment_.plan.cached()) {}

Duration PassTimes::of(const RequestBatch& batch) {
  if (precision_ == Precision::kEveryBatch) return simulated(batch);
  if (!is_sum(batch)) return whole(batch);
  const std::int64_t outputs = batch.outputs();
  Duration time = mixing(batch);
  if (!batch.has_prompts()) return time + at(outputs_, outputs);
  if (experiment_.plan.mesh.cp > 1) time += gathers_of_cached(batch);
  const std::int64_t tokens = tokens_of_chip(batch, experiment_.plan.mesh.cp, 1);
  if (outputs == tokens) return time + at(outputs_beside_prompts(), outputs);
  time += at(prompts_, tokens);
  if (outputs > 1) time += at(outputs_beside_prompts(), outputs) - at(prompts_, outputs);
  return time;
}

PassTimes::Curve& PassTimes::outputs_beside_prompts() {
  return experiment_.plan.experts.dispatch == Dispatch::kAuto ? outputs_beside_prompts_ : outputs_;
}

bool PassTimes::is_sum(const RequestBatch& batch) {
  const Ranks& mesh = experiment_.plan.mesh;
  const HostLaunches& launches = experiment_.plan.launches;
  if (mesh.splits_ffn()) return false;
  if (mesh.cp > 1 && experiment_.plan.tensor.cp_mode != ContextMode::kAllGather) return false;
  if (!sends_in_pass(mesh)) return !launches.delay_ops();
  if (!launches.host_launch_cost && !cluster_.library.host_launch) return true;
  experiment_.plan.pass.own_requests = batch;
  return !plan_of_pass(experiment_.plan, cluster_.library, cluster_.places).launches.delay_ops();
}

Duration PassTimes::whole(const RequestBatch& batch) {
  const RequestGroup& first = batch.groups.front();
  if (batch.groups.size() == 1 && first.generates && first.queries == 1) {
    Curve& curve = contexts_[first.sequences];
    curve.passes = Passes::kContexts;
    curve.requests = first.sequences;
    return at(curve, first.keys());
  }
  std::vector<std::array<std::int64_t, 4>> key;
  for (const RequestGroup& group : batch.groups) {
    key.push_back({group.generates ? 1 : 0, group.sequences, group.queries, group.cached});
  }
  std::ranges::sort(key);
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  return known_[key] = simulated(batch);
}

RequestBatch PassTimes::batch_at(const Curve& curve, std::int64_t tokens) const {
  const std::int64_t ranks = experiment_.plan.mesh.cp;
  if (curve.passes == Passes::kContexts) {
    return {.groups = {{.sequences = curve.requests, .cached = tokens - 1, .generates = true}}};
  }
  if (curve.passes == Passes::kPrompt) return {.groups = {{.queries = tokens * ranks}}};
  if (curve.passes == Passes::kCachedKeys) {
    return {.groups = {{.queries = ranks, .cached = (tokens - 1) * ranks}}};
  }
  return {.groups = {{.sequences = tokens, .generates = ranks == 1}}};
}

// New keys and values travel in the type of communication, those of the cache in its own. Both
// count as tokens of the cache here.
Duration PassTimes::gathers_of_cached(const RequestBatch& batch) {
  const double of_new = static_cast<double>(bits_of(experiment_.plan.precision.communicated())) /
                        static_cast<double>(bits_of(experiment_.plan.cached()));
  const std::int64_t ranks = experiment_.plan.mesh.cp;
  const std::int64_t tokens = tokens_of_chip(batch, ranks, 1);
  std::int64_t cached = 0;
  for (const RequestGroup& group : batch.groups) {
    cached += group.sequences * ((group.cached + ranks - 1) / ranks);
  }
  if (cached == 0) return {};
  const std::int64_t before = std::llround(static_cast<double>(tokens - 1) * of_new);
  return at(cached_keys_, 1 + before + cached) - at(cached_keys_, 1 + before);
}

Duration PassTimes::simulated(const RequestBatch& batch) {
  ++simulations_;
  experiment_.plan.pass.own_requests = batch;
  experiment_.plan.pass.own_requests->cache = experiment_.plan.cached();
  return simulate_experiment(experiment_, cluster_, options_).runs.front().result.step_time;
}

Duration PassTimes::mixing(const RequestBatch& batch) const {
  Duration sum;
  for (std::size_t kind = 0; kind < mixing_.kinds(); ++kind) {
    Duration of_layer;
    for (const Kernel& kernel : mixing_.kernels(kind, batch)) {
      of_layer += time_of(kernel, cluster_.chip).total;
    }
    sum += mixing_.layers_of(kind) * of_layer;
  }
  return sum;
}

Duration PassTimes::point(Curve& curve, std::int64_t tokens) {
  const auto known = curve.points.find(tokens);
  if (known != curve.points.end()) return known->second;
  const RequestBatch batch = batch_at(curve, tokens);
  const Dispatch dispatch = experiment_.plan.experts.dispatch;
  if (curve.beside_prompts) {
    experiment_.plan.experts.dispatch =
        dispatch_with_prompts(experiment_.plan.mesh, cluster_.library, cluster_.places);
  }
  Duration rest = simulated(batch);
  if (curve.passes != Passes::kContexts) rest -= mixing(batch);
  experiment_.plan.experts.dispatch = dispatch;
  curve.points.emplace(tokens, rest);
  return rest;
}

bool PassTimes::is_straight(Curve& curve, std::int64_t low, std::int64_t high) {
  if (curve.straight.contains({low, high})) return true;
  const Duration at_low = point(curve, low);
  const Duration at_high = point(curve, high);
  for (const std::int64_t tokens : probes(low, high)) {
    const Duration exact = point(curve, tokens);
    const Duration off = between(low, at_low, high, at_high, tokens) - exact;
    const double error = static_cast<double>(off.count()) / static_cast<double>(exact.count());
    if (std::abs(error) > kMostError) return false;
  }
  curve.straight.insert({low, high});
  return true;
}

// Points that other passes needed don't count, so the time of a pass does not depend on those
// before.
Duration PassTimes::at(Curve& curve, std::int64_t tokens) {
  std::int64_t low = 1;
  while (2 * low <= tokens) low *= 2;
  std::int64_t high = 2 * low;
  constexpr std::int64_t kNarrow = 4;  // nothing is saved inside
  while (high - low > kNarrow && !is_straight(curve, low, high)) {
    const std::int64_t middle = low + (high - low) / 2;
    (tokens < middle ? high : low) = middle;
  }
  if (high - low <= kNarrow) return point(curve, tokens);
  return between(low, point(curve, low), high, point(curve, high), tokens);
}

}  // namespace stepsim
