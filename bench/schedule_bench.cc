// The cost of making a pipeline schedule and of replaying it without a network. Arguments: ranks,
// micro-batches. items_per_second counts ops. Expected: interleaved P = 64, M = 512, V = 4 is made
// in less than 0.2 s and replayed in less than 1 s; ZB auto P = 16, M = 64 in less than 1 s.
#include <benchmark/benchmark.h>

#include <cstdint>

#include "schedules/pipeline/published/make_schedule.h"
#include "schedules/pipeline/replay/replay.h"

namespace stepsim {
namespace {

ScheduleRequest request_of(ScheduleName name, const benchmark::State& state) {
  ScheduleRequest request{.name = name,
                          .stages = state.range(0),
                          .microbatches = state.range(1),
                          .costs = {10, 12, 8, 1}};
  if (name == ScheduleName::kInterleaved) request.chunks = 4;
  return request;
}

std::int64_t ops_of(const PipelineSchedule& schedule) {
  std::int64_t ops = 0;
  for (const auto& order : schedule.ranks) ops += static_cast<std::int64_t>(order.size());
  return ops;
}

void Make(benchmark::State& state, ScheduleName name) {
  const ScheduleRequest request = request_of(name, state);
  std::int64_t ops = 0;
  for (auto _ : state) {
    const PipelineSchedule schedule = make_schedule(request);
    ops = ops_of(schedule);
  }
  state.SetItemsProcessed(state.iterations() * ops);
}

void Replay(benchmark::State& state, ScheduleName name) {
  const ScheduleRequest request = request_of(name, state);
  const PipelineSchedule schedule = make_schedule(request);
  for (auto _ : state) benchmark::DoNotOptimize(replay(schedule, request.costs));
  state.SetItemsProcessed(state.iterations() * ops_of(schedule));
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->Args({16, 64})->Args({64, 512})->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(Make, interleaved_1f1b, ScheduleName::kInterleaved)->Apply(sizes);
BENCHMARK_CAPTURE(Replay, interleaved_1f1b, ScheduleName::kInterleaved)->Apply(sizes);
BENCHMARK_CAPTURE(Make, zb_auto_1p, ScheduleName::kZeroBubbleAuto1P)->Apply(sizes);
BENCHMARK_CAPTURE(Make, zb_auto_2p, ScheduleName::kZeroBubbleAuto2P)->Apply(sizes);
BENCHMARK_CAPTURE(Make, zbv_auto, ScheduleName::kZeroBubbleVAuto)->Apply(sizes);
BENCHMARK_CAPTURE(Make, v_half, ScheduleName::kVHalf)->Apply(sizes);
BENCHMARK_CAPTURE(Make, v_min, ScheduleName::kVMin)->Apply(sizes);
BENCHMARK_CAPTURE(Make, dualpipev, ScheduleName::kDualPipeV)->Apply(sizes);
BENCHMARK_CAPTURE(Make, hanayo, ScheduleName::kHanayo)->Apply(sizes);

}  // namespace
}  // namespace stepsim
