// The fused forward and backward of DualPipe beside the trace that DeepSeek published of its own
// (tests/reference/measured/deepseek_v3_train_trace_h800.csv): four blocks with experts each way,
// 64-way expert parallelism over 8 nodes, 4,096 tokens.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "analysis/accuracy/csv_table.h"
#include "proto/experiment.h"
#include "schedules/lowering/lower.h"
#include "schedules/lowering/lowered_model.h"
#include "schedules/plan/plan_schedule.h"
#include "sim/simulate.h"
#include "tests/reference_folder.h"
#include "topology/topology.h"
#include "workload/layers.h"

namespace stepsim {
namespace {

struct Span {
  Time begin{Duration::max()};
  Time end{};
  void cover(const TimelineOp& op) {
    begin = std::min(begin, op.started);
    end = std::max(end, op.ended);
  }
};

double milliseconds(Duration duration) {
  return 1e3 * to_seconds(duration);
}

struct Chunk {
  double span_ms = 0;
  double exposed_ms = 0;     // nothing computes
  double all_to_all_ms = 0;  // data moving
  std::vector<double> dispatches_ms{};
  std::vector<double> combines_ms{};
};

bool has(const std::string& name, const char* word) {
  return name.find(word) != std::string::npos;
}

Experiment chunks() {
  return load_experiment({.experiment = "deepseek-v3-chunks-dgx-h800-256",
                          .model = {},
                          .cluster = {},
                          .plan = {},
                          .overrides = {}});
}

// The fused op in the middle of the step, on a rank of stage 1.
Chunk simulated() {
  const Experiment experiment = chunks();
  std::vector<PipelineOp> fused = schedule_of(experiment.plan, {}).ranks[1];
  std::erase_if(fused,
                [](const PipelineOp& op) { return op.kind != PipelineOpKind::kForwardBackward; });
  const std::int32_t forward = fused[fused.size() / 2].microbatch;
  const std::int32_t backward = fused[fused.size() / 2].backward_microbatch;
  BuiltTopology built = build_topology(experiment.cluster.topology);
  const Cluster cluster{.fabric = std::move(built.fabric),
                        .router = std::move(built.router),
                        .places = std::move(built.places),
                        .chip = sustained(experiment.cluster.chip),
                        .library = experiment.cluster.library};
  const OpGraph graph = lower(experiment.model, experiment.plan, cluster.places, cluster.chip);
  constexpr std::uint32_t kRank = 64;
  const SimulationResult result = simulate(graph, cluster, {.recorded_ranks = {RankId(kRank)}});
  const Program& program = graph.programs[graph.ranks[kRank].program.index()];
  const auto name = [&](const TimelineOp& op) -> const std::string& {
    return graph.names[program.labels[op.op].name];
  };
  const auto is_compute = [&](const TimelineOp& op) {
    return program.ops[op.op].kind == OpKind::kCompute;
  };
  Span span;
  for (const TimelineOp& op : result.timelines.front().ops) {
    const std::int32_t microbatch = program.labels[op.op].microbatch;
    if (!is_compute(op)) continue;
    const bool is_forward = has(name(op), " forward:");
    if (microbatch == (is_forward ? forward : backward)) span.cover(op);
  }
  Chunk chunk{.span_ms = milliseconds(span.end - span.begin)};
  Duration computing{};
  for (const TimelineOp& op : result.timelines.front().ops) {
    if (op.started < span.begin || op.ended > span.end) continue;
    const double took = milliseconds(op.ended - op.moving);
    if (is_compute(op)) {
      computing += op.ended - op.started;
    } else if (program.ops[op.op].axis == Axis::kExpert) {
      const auto& work = graph.collective_works[program.ops[op.op].work];
      (work.type == DataType::kFp8 ? chunk.dispatches_ms : chunk.combines_ms).push_back(took);
      chunk.all_to_all_ms += took;
    }
  }
  chunk.exposed_ms = chunk.span_ms - milliseconds(computing);
  return chunk;
}

double traced_ms(const char* column, const std::string& category) {
  const CsvTable table =
      read_csv(reference_folder() / "measured" / "deepseek_v3_train_trace_h800.csv");
  for (std::size_t record = 0; record < table.records.size(); ++record) {
    if (table.at(record, "category").starts_with(category)) {
      return table.number(record, column).value() / 1e3;
    }
  }
  ADD_FAILURE() << category;
  return 0;
}

// Times of the kernels of four blocks each way beside 20 of 132 units of communication, as the
// matmuls of the trace run on 112 (its grids). In the chip file their efficiencies are fitted to
// this trace (attention, weight gradients) and to DeepGEMM's table (the others): here they only
// have to add up with the shapes and numbers of our kernels. Two streams share the weight gradients
// there, and slow one another: their times add up to a fifth more than what they keep the chip
// busy.
TEST(TrainingTraceTest, KernelsTakeWhatTheyTakeInTheTrace) {
  const Experiment experiment = chunks();
  const ChipSpec chip = sustained(experiment.cluster.chip);
  const Layer block = build_layers(experiment.model, shard_of(experiment.plan, {})).block(8);
  const CommunicationCost taken{.compute_share = 20.0 / 132, .memory_share = 0.1};
  std::map<std::string, double> milliseconds_of;
  const auto add = [&](const LayerOp& op, const std::vector<Kernel>& kernels, double times) {
    for (const Kernel& kernel : kernels) {
      std::string kind = "other";
      if (kernel.kind == KernelKind::kAttentionForward) kind = "attention forward";
      if (kernel.kind == KernelKind::kAttentionBackward) kind = "attention backward";
      if (kernel.kind == KernelKind::kMatmul && kernel.type == DataType::kFp8) {
        kind = kernel.accumulates             ? "weight gradients"
               : op.region == Region::kExpert ? "experts"
                                              : "dense";
      }
      milliseconds_of[kind] += 4 * times * milliseconds(slowed(time_of(kernel, chip), taken));
    }
  };
  for (const LayerOp& op : block.ops) {
    const bool runs_twice =
        op.name == "query_up_projection" || op.name == "key_value_up_projection";
    add(op, op.forward, runs_twice ? 2 : 1);
    add(op, op.input_gradient, 1);
    add(op, op.weight_gradient, 1);
  }
  const auto ratio = [&](const char* kind, double traced) {
    return milliseconds_of[kind] / traced;
  };
  EXPECT_NEAR(ratio("experts", traced_ms("sum_us", "grouped GEMM fp8")), 1, 0.1);
  EXPECT_NEAR(ratio("dense", traced_ms("sum_us", "GEMM fp8 dense")), 1, 0.1);
  EXPECT_NEAR(ratio("attention forward", traced_ms("sum_us", "attention forward")), 1, 0.05);
  EXPECT_NEAR(ratio("attention backward", traced_ms("sum_us", "attention backward (") +
                                              traced_ms("sum_us", "attention backward pre")),
              1, 0.05);
  const double both_streams = 21.401 + 11.355;
  EXPECT_NEAR(ratio("weight gradients", both_streams / 1.2), 1, 0.1);
}

// In the trace communication is exposed for 4.2 of 129 ms. Ours takes 101 ms, as its elementwise
// kernels (casts, norms, permutations: 38 ms there) run at the speed of memory, and hides all of
// its all-to-alls, which run as quick as DeepEP's benchmark where those of the trace take 1.4 times
// as long beside the compute.
TEST(TrainingTraceTest, AFusedChunkHidesItsAllToAllsAsTheTraceDoes) {
  const Chunk chunk = simulated();
  EXPECT_LE(chunk.exposed_ms, 4.229);
  EXPECT_NEAR(chunk.span_ms / 129.012, 0.79, 0.05);
  ASSERT_EQ(chunk.dispatches_ms.size(), 8U);  // four blocks, forward and backward
  ASSERT_EQ(chunk.combines_ms.size(), 8U);
  // Bottleneck rates of DeepEP's benchmark, with what stays in the node: 51 and 50 GB/s of the
  // copies for 3.62 nodes a token.
  const double copies = 4096 * 3.62;
  for (const double dispatch : chunk.dispatches_ms) {
    EXPECT_NEAR(dispatch / (copies * 7168 * 132 / 128 / 51e6), 1, 0.15);
  }
  for (const double combine : chunk.combines_ms) {
    EXPECT_NEAR(combine / (copies * 7168 * 2 / 50e6), 1, 0.15);
  }
  EXPECT_LT(chunk.all_to_all_ms, traced_ms("sum_us", "a2a combine") +
                                     traced_ms("sum_us", "a2a dispatch (forward") +
                                     traced_ms("sum_us", "a2a dispatch (cached"));
}

}  // namespace
}  // namespace stepsim
