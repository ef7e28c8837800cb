// The cost of making the op graph of a step: GPT-3 175B on 16 pipeline ranks of 8 chips, by
// schedule and micro-batches. items_per_second counts the ops of the programs, which the ranks of a
// role share. Expected: below 1 us per op for any number of chunks.
#include <benchmark/benchmark.h>

#include <cstdint>

#include "schedules/lowering/lower.h"
#include "schedules/pipeline/schedule_name.h"
#include "topology/topology.h"

namespace stepsim {
namespace {

ModelSpec gpt3_175b() {
  return {.name = "gpt3-175b",
          .layers = 96,
          .hidden = 12288,
          .attention = {.heads = 96, .kv_heads = 96, .head_dim = 128},
          .mlp = {.width = 49152},
          .embedding = {.vocabulary = 51200}};
}

void Lower(benchmark::State& state, ScheduleName schedule, std::int64_t chunks) {
  ParallelPlan plan;
  plan.mesh.tp = 8;
  plan.mesh.pp = 16;
  plan.batch.global_batch = state.range(0);
  plan.batch.sequence = 2048;
  plan.pipeline.schedule = schedule;
  plan.pipeline.chunks = chunks;
  DgxSuperPodSpec spec;
  spec.nodes = 16;
  const BuiltTopology cluster = build_topology(spec);
  ChipSpec chip;
  chip.peak = peaks_of_all_types(Throughput(1e15));
  chip.memory_bandwidth = Bandwidth(3e12);
  std::int64_t ops = 0;
  for (auto _ : state) {
    const OpGraph graph = lower(gpt3_175b(), plan, cluster.places, chip, {});
    ops = 0;
    for (const Program& program : graph.programs) {
      ops += static_cast<std::int64_t>(program.ops.size());
    }
  }
  state.SetItemsProcessed(state.iterations() * ops);
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->Arg(64)->Arg(512)->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(Lower, 1f1b, ScheduleName::kOneForwardOneBackward, 1)->Apply(sizes);
BENCHMARK_CAPTURE(Lower, interleaved_1f1b_2_chunks, ScheduleName::kInterleaved, 2)->Apply(sizes);
BENCHMARK_CAPTURE(Lower, interleaved_1f1b_6_chunks, ScheduleName::kInterleaved, 6)->Apply(sizes);
BENCHMARK_CAPTURE(Lower, interleaved_zb1p_6_chunks, ScheduleName::kInterleavedZeroBubble, 6)
    ->Apply(sizes);
BENCHMARK_CAPTURE(Lower, dualpipe, ScheduleName::kDualPipe, 2)->Apply(sizes);

}  // namespace
}  // namespace stepsim
