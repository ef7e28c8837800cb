#include "experiment/pass_times.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "experiment/pass_dispatch.h"
#include "schedules/lowering/lowered_model.h"

namespace stepsim {
namespace {

RequestBatch one_group(std::int64_t tokens, bool generates) {
  if (generates) return {.groups = {{.sequences = tokens, .generates = true}}};
  return {.groups = {{.queries = tokens}}};
}

Duration between(std::int64_t low, Duration at_low, std::int64_t high, Duration at_high,
                 std::int64_t tokens) {
  const double share = static_cast<double>(tokens - low) / static_cast<double>(high - low);
  const double rise = static_cast<double>((at_high - at_low).count());
  return at_low + Duration(std::llround(rise * share));
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
  if (precision_ == Precision::kExact) return simulated(batch);
  const std::int64_t outputs = batch.outputs();
  Duration time = mixing(batch);
  const bool all_generate = std::ranges::all_of(batch.groups, &RequestGroup::generates);
  if (all_generate) return time + at(generations_, outputs);
  if (outputs == batch.tokens()) return time + at(outputs_beside_prompts(), outputs);
  time += at(prompts_, batch.tokens());
  if (outputs > 1) time += at(outputs_beside_prompts(), outputs) - at(prompts_, outputs);
  return time;
}

PassTimes::Curve& PassTimes::outputs_beside_prompts() {
  return experiment_.plan.dispatch == Dispatch::kAuto ? beside_prompts_ : generations_;
}

Duration PassTimes::simulated(const RequestBatch& batch) {
  ++simulations_;
  experiment_.plan.own_requests = batch;
  experiment_.plan.own_requests->cache = experiment_.plan.cached();
  return simulate_experiment(experiment_, cluster_, options_).runs.front().result.step_time;
}

Duration PassTimes::mixing(const RequestBatch& batch) const {
  Duration sum;
  for (std::size_t kind = 0; kind < mixing_.kinds(); ++kind) {
    Duration of_layer;
    for (const RequestGroup& group : batch.groups) {
      for (const Kernel& kernel : mixing_.kernels(kind, group)) {
        of_layer += time_of(kernel, cluster_.chip).total;
      }
    }
    sum += mixing_.layers_of(kind) * of_layer;
  }
  return sum;
}

Duration PassTimes::point(Curve& curve, std::int64_t tokens) {
  const auto known = curve.points.find(tokens);
  if (known != curve.points.end()) return known->second;
  const RequestBatch batch = one_group(tokens, curve.generates);
  const Dispatch dispatch = experiment_.plan.dispatch;
  if (curve.beside_prompts) {
    experiment_.plan.dispatch =
        dispatch_with_prompts(experiment_.plan, cluster_.library, cluster_.places);
  }
  const Duration rest = simulated(batch) - mixing(batch);
  experiment_.plan.dispatch = dispatch;
  curve.points.emplace(tokens, rest);
  return rest;
}

bool PassTimes::is_straight(Curve& curve, std::int64_t low, std::int64_t high) {
  if (curve.straight.contains({low, high})) return true;
  const Duration at_low = point(curve, low);
  const Duration at_high = point(curve, high);
  for (const std::int64_t tokens : {low + (high - low) / 3, low + 2 * (high - low) / 3}) {
    const Duration exact = point(curve, tokens);
    const Duration off = between(low, at_low, high, at_high, tokens) - exact;
    const double error = static_cast<double>(off.count()) / static_cast<double>(exact.count());
    if (std::abs(error) > kMostError) return false;
  }
  curve.straight.insert({low, high});
  return true;
}

Duration PassTimes::at(Curve& curve, std::int64_t tokens) {
  const auto known = curve.points.find(tokens);
  if (known != curve.points.end()) return known->second;
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
