// Compares the fused forward and backward of DualPipe with the trace that DeepSeek published
// (tests/reference/measured/deepseek_v3_train_trace_h800.csv): four blocks with experts each way,
// 64-way expert parallelism over 8 nodes, 4,096 tokens.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiment/build_cluster.h"
#include "experiment/simulate_experiment.h"
#include "proto/load_experiment.h"
#include "schedules/plan/axis.h"
#include "schedules/plan/plan_schedule.h"
#include "sim/base/csv_table.h"
#include "sim/run/simulate.h"
#include "tests/support/reference_folder.h"

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
  double exposed_ms = 0;                       // time in which nothing computes
  double waiting_ms = 0;                       // all-to-alls that wait for other ranks
  double all_to_all_ms = 0;                    // all-to-alls while data move
  std::map<std::string, double> kernels_ms{};  // by class
  std::vector<double> dispatches_ms{};
  std::vector<double> combines_ms{};
};

bool has(const std::string& name, const char* word) {
  return name.find(word) != std::string::npos;
}

std::string class_of(const Kernel& kernel) {
  const std::string name(kernel.name);
  switch (kernel.kind) {
    case KernelKind::kAttentionForward:
      return "attention forward";
    case KernelKind::kAttentionBackward:
      return "attention backward";
    case KernelKind::kMatmul:
      if (kernel.type != DataType::kFp8) return "router";
      if (kernel.accumulates) return "weight gradients";
      return kernel.batch > 1 ? "experts" : "dense";
    case KernelKind::kAttentionDecode:
    case KernelKind::kLatentDecode:
    case KernelKind::kExperts:
      ADD_FAILURE() << name << ": no step of training generates tokens";
      break;
    case KernelKind::kElementwise:
      break;
  }
  if (kernel.elementwise == ElementwiseKind::kNorm) return "norms";
  const bool moves = has(name, "widen") || name == "transpose_weight";
  if (kernel.elementwise == ElementwiseKind::kRounding || moves) return "rounding";
  if (has(name, "permute")) return "permutations";
  if (has(name, "activation") || name == "choice_gradient") return "activations";
  if (name == "rope" || name == "join_keys") return "heads";
  return "other";
}

Experiment chunks(std::vector<std::string> overrides = {}) {
  return load_experiment(
      {.experiment = "deepseek-v3-chunks-dgx-h800-256", .overrides = std::move(overrides)});
}

// Returns the fused op in the middle of the step, on a rank of stage 1.
Chunk simulated(const Experiment& experiment) {
  std::vector<PipelineOp> fused = schedule_of(experiment.plan, {}).ranks[1];
  std::erase_if(fused,
                [](const PipelineOp& op) { return op.kind != PipelineOpKind::kForwardBackward; });
  const std::int32_t forward = fused[fused.size() / 2].microbatch;
  const std::int32_t backward = fused[fused.size() / 2].backward_microbatch;
  const Cluster cluster = cluster_for_steps(experiment);
  constexpr std::uint32_t kRank = 64;
  const SimulatedExperiment done =
      simulate_experiment(experiment, cluster, {.recorded_ranks = {RankId(kRank)}});
  const OpGraph& graph = done.graph;
  const SimulationResult& result = done.runs.front().result;
  const Program& program = graph.programs[graph.ranks[kRank].program.index()];
  const auto name = [&](const TimelineOp& op) -> const std::string& {
    return graph.names[program.labels[op.op].name];
  };
  const auto is_compute = [&](const TimelineOp& op) {
    return program.ops[op.op].kind == OpKind::kCompute;
  };
  Span span;
  for (const TimelineOp& op : result.timelines.front().ops) {
    const std::optional<std::int32_t> microbatch = program.labels[op.op].microbatch;
    if (!is_compute(op)) continue;
    const bool is_forward = has(name(op), " forward:");
    if (microbatch == (is_forward ? forward : backward)) span.cover(op);
  }
  Chunk chunk{.span_ms = milliseconds(span.end - span.begin)};
  Duration computing{};
  for (const TimelineOp& op : result.timelines.front().ops) {
    if (op.started < span.begin || op.ended > span.end) continue;
    const double took = milliseconds(op.ended - op.moving);
    const std::uint32_t work = program.ops[op.op].work;
    if (is_compute(op)) {
      computing += op.ended - op.started;
      for (const Kernel& kernel : graph.compute_works[work].kernels) {
        chunk.kernels_ms[class_of(kernel)] += milliseconds(time_of(kernel, cluster.chip).total);
      }
    } else if (program.ops[op.op].axis == Axis::kExpert) {
      const bool dispatches = graph.collective_works[work].type == DataType::kFp8;
      (dispatches ? chunk.dispatches_ms : chunk.combines_ms).push_back(took);
      chunk.all_to_all_ms += took;
      chunk.waiting_ms += milliseconds(op.moving - op.started);
    }
  }
  chunk.exposed_ms = chunk.span_ms - milliseconds(computing);
  return chunk;
}

const CsvTable& trace() {
  static const CsvTable table =
      read_csv(reference_folder() / "measured" / "deepseek_v3_train_trace_h800.csv");
  return table;
}

// Returns the total time of a category, or of the kernels with these words in their names.
double traced_ms(const std::string& level, const std::vector<std::string>& words,
                 const char* column = "sum_us") {
  double sum = 0;
  for (std::size_t record = 0; record < trace().records.size(); ++record) {
    if (trace().at(record, "level") != level) continue;
    const std::string name(trace().at(record, level));
    const bool wanted = std::ranges::any_of(
        words, [&name](const std::string& word) { return name.find(word) != std::string::npos; });
    if (wanted) sum += trace().number(record, column).value() / 1e3;
  }
  EXPECT_GT(sum, 0) << words.front();
  return sum;
}

// Compares the kernels of a fused op by class. The H800's efficiencies are fitted to DeepGEMM's
// table (matmuls) and to kernels of this trace (attention, weight gradients, norms, rotation,
// rounding). So the test is whether the same kernels run as often and on as much data. In the trace
// two streams share the weight gradients and slow one another: the sum of their times is up to a
// fifth more than the time in which they keep the chip busy.
TEST(TrainingTraceTest, KernelsTakeWhatTheyTakeInTheTrace) {
  const Chunk chunk = simulated(chunks());
  const auto expect = [&chunk](const char* kind, double traced, double within) {
    EXPECT_NEAR(chunk.kernels_ms.at(kind) / traced, 1, within)
        << kind << ": " << chunk.kernels_ms.at(kind) << " ms, traced " << traced << " ms";
  };
  expect("experts", traced_ms("category", {"grouped GEMM fp8"}), 0.1);
  expect("dense", traced_ms("category", {"GEMM fp8 dense"}), 0.1);
  expect("attention forward", traced_ms("category", {"attention forward"}), 0.05);
  expect("attention backward", traced_ms("category", {"attention backward"}), 0.05);
  expect("weight gradients", traced_ms("category", {"GEMM fp8 wgrad"}) / 1.2, 0.1);
  expect("norms", traced_ms("category", {"RMSNorm"}), 0.1);
  expect("activations", traced_ms("kernel", {"swiglu"}), 0.1);
  expect("permutations", traced_ms("kernel", {"expand_to_fused", "reduce_fused_impl"}), 0.15);
  expect("heads", traced_ms("kernel", {"rotary_kernel", "_copy_tensor_kernel"}), 0.1);
  expect("rounding",
         traced_ms("kernel",
                   {"::per_token_cast", "::per_channel_cast", "transpose<512", "cast_back_impl"}),
         0.2);
}

// 130 ms, where the trace has 129. The time computing and the time waiting for peers are nearly the
// same too. Not modelled: the choice of experts (kernels on a few units, 1.6 ms), a hundred small
// kernels per block, and matmuls that are a twentieth slower in the trace. Half of the dispatches
// in the trace build their layout and take a quarter longer.
TEST(TrainingTraceTest, AFusedChunkTakesAsLongAsInTheTrace) {
  const Chunk chunk = simulated(chunks());
  EXPECT_NEAR(chunk.span_ms / 129.012, 1, 0.02);
  EXPECT_NEAR((chunk.span_ms - chunk.exposed_ms) / 124.286, 0.98, 0.02);
  EXPECT_NEAR(chunk.exposed_ms, 4.229, 4);
  const double waits = traced_ms("category", {"waits for peers"});
  EXPECT_NEAR(chunk.waiting_ms / waits, 1, 0.2) << waits;
  ASSERT_EQ(chunk.dispatches_ms.size(), 8U);  // four blocks, forward and backward
  ASSERT_EQ(chunk.combines_ms.size(), 8U);
  const double moving = traced_ms("category", {"a2a combine", "a2a dispatch"});
  EXPECT_NEAR(chunk.all_to_all_ms / moving, 0.95, 0.05);
  for (const double combine : chunk.combines_ms) EXPECT_NEAR(combine / 6.074, 1, 0.06);
  for (const double dispatch : chunk.dispatches_ms) EXPECT_NEAR(dispatch / 3.575, 0.92, 0.05);
}

std::string even_loads() {
  std::string loads = "model.experts.load=1";
  for (int expert = 1; expert < 256; ++expert) loads += ",1";
  return loads;
}

// If ranks are alike nobody waits, and every all-to-all is hidden.
TEST(TrainingTraceTest, EvenLoadsExposeNothing) {
  const Chunk chunk = simulated(chunks({even_loads()}));
  EXPECT_NEAR(chunk.span_ms / 129.012, 0.90, 0.02);
  EXPECT_LT(chunk.exposed_ms, 0.1);
  EXPECT_LT(chunk.waiting_ms, 0.1);
}

// The bottleneck rates of DeepEP's benchmark: bytes of a token for each of its nodes, including its
// own. The later README has 51 and 50 GB/s.
TEST(TrainingTraceTest, AllToAllsTakeWhatTheyTakeInTheBenchmark) {
  const Chunk chunk = simulated(chunks({"cluster.library.catalog=nccl-2.29-hopper", even_loads()}));
  const double copies = 4096 * 3.90;  // sets of 8 experts on at most 4 of 8 nodes
  for (const double dispatch : chunk.dispatches_ms) {
    EXPECT_NEAR(dispatch / (copies * 7168 * 132 / 128 / 51e6), 1, 0.1);
  }
  for (const double combine : chunk.combines_ms) {
    EXPECT_NEAR(combine / (copies * 7168 * 2 / 50e6), 1, 0.1);
  }
}

}  // namespace
}  // namespace stepsim
