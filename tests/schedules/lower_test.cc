// Compares the bytes, FLOPs and memory of lowered plans with closed forms, on small models.

#include "schedules/lowering/lower.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "schedules/lowering/stages/lowered_model.h"
#include "schedules/plan/axis.h"
#include "sim/run/simulate.h"
#include "tests/support/small_model.h"
#include "topology/small_clusters.h"
#include "workload/layers.h"
#include "workload/model_counts.h"
#include "workload/parts/adapters.h"

namespace stepsim {
namespace {

using namespace literals;

ParallelPlan plan_of(std::int64_t tp, std::int64_t dp, std::int64_t pp, int zero) {
  ParallelPlan plan;
  plan.mesh.tp = tp;
  plan.mesh.dp = dp;
  plan.mesh.pp = pp;
  plan.state.zero = zero;
  plan.batch.global_batch = dp * 4;
  plan.batch.sequence = 256;
  if (zero < 3) plan.messages.gradient_bucket_parameters = 1'000'000;
  return plan;
}

SimulationResult run(const ModelSpec& model, const ParallelPlan& plan, const Cluster& cluster,
                     SimulationOptions options = {}) {
  const auto problems = check(plan, model, cluster.places);
  for (const Problem& problem : problems) ADD_FAILURE() << problem.field << problem.message;
  const OpGraph graph = lower(model, plan, cluster.places, cluster.chip, {});
  return simulate(graph, cluster, options);
}

Bytes sent(const SimulationResult& result, Axis axis) {
  return result.bytes_by_axis[static_cast<std::size_t>(axis)];
}

// Per rank, block and micro-batch (tp - 1)/tp of 10 boundaries with sequence parallelism (E10: 4
// forward, 6 backward with the input gathered again), of 8 without (E18); embedding 2 and head 3 or
// 2 boundaries; loss 2 x 3 fp32 values a token.
TEST(LowerTest, TensorParallelBytesAreTheClosedForm) {
  for (const bool sequence_parallel : {true, false}) {
    ParallelPlan plan = plan_of(4, 1, 1, 0);
    plan.tensor.sequence_parallel = sequence_parallel;
    const SimulationResult result = run(small_model(), plan, one_node(4, 100_GBps));
    const std::int64_t boundary = 256 * 512 * 2;
    const std::int64_t boundaries = sequence_parallel ? 4 * 10 + 2 + 3 : 4 * 8 + 2 + 2;
    const std::int64_t loss = 2 * 3 * 256 * 4;
    // With sequence parallelism the nine norms' gradients are summed over the group once, in fp32.
    const std::int64_t norms = sequence_parallel ? 2 * 9 * 512 * 4 : 0;
    EXPECT_EQ(sent(result, Axis::kTensor).value(),
              3 * (4 * (boundaries * boundary + loss) + norms));
  }
}

// A block's activations cross the tensor group ten times. Six of these are gathers: of two inputs,
// twice, and of two gradients. In fp8 an input takes half as many bytes, in nvfp4 9/32, and a
// gradient twice that: matmuls read it along rows and along tokens. Embedding, head, loss and norms
// stay as they were.
TEST(LowerTest, TensorRanksGatherWhatNarrowMatmulsReadNarrow) {
  const Cluster cluster = one_node(4, 100_GBps);
  ParallelPlan plan = plan_of(4, 1, 1, 0);
  const auto bytes = [&](DataType type, bool narrow) {
    plan.precision.type = type;
    plan.narrow.gather_narrow = narrow;
    return sent(run(small_model(), plan, cluster), Axis::kTensor).value();
  };
  const std::int64_t gathered = 4 * 6 * 256 * 512 * 2 * 3 * 4;  // 4 blocks, (tp - 1) of 4 batches
  EXPECT_EQ(bytes(DataType::kBf16, true), bytes(DataType::kBf16, false));
  EXPECT_EQ(bytes(DataType::kFp8, false) - bytes(DataType::kFp8, true), gathered / 2);
  EXPECT_EQ(bytes(DataType::kNvfp4, false) - bytes(DataType::kNvfp4, true),
            gathered / 6 * (4 * 23 + 2 * 14) / 32);
}

// A rank rounds its own tokens before the group gathers them, forward and backward, and the matmul
// stands right behind the gather.
TEST(LowerTest, TensorRanksRoundBeforeTheyGather) {
  ParallelPlan plan = plan_of(4, 1, 1, 0);
  plan.precision.type = DataType::kFp8;
  plan.narrow.gather_narrow = true;
  const LoweredModel lowered = lower_model(small_model(), plan, {}, {});
  const LoweredLayer& block = lowered.blocks.front().in(BlockRecompute::kNone);
  // The last kernel before the first gather, and the first behind it.
  const auto around_gather = [](const std::vector<LayerStep>& steps) {
    std::string before;
    bool is_behind = false;
    for (const LayerStep& step : steps) {
      is_behind = is_behind || (step.kind == LayerStep::Kind::kCollective &&
                                step.collective == CollectiveOp::kAllGather);
      if (step.kind != LayerStep::Kind::kCompute || step.kernels.empty()) continue;
      if (is_behind) return before + ", " + std::string(step.kernels.front().name);
      before = step.kernels.back().name;
    }
    return before;
  };
  EXPECT_EQ(around_gather(block.forward), "round_input, qkv_projection");
  EXPECT_EQ(around_gather(block.backward), "round_gradient, down_projection");
  EXPECT_EQ(around_gather(block.split_backward), "round_gradient, down_projection");
  std::size_t roundings = 0;
  for (const LayerStep& step : block.forward) {
    roundings += static_cast<std::size_t>(
        std::ranges::count(step.kernels, std::string_view("round_input"), &Kernel::name));
  }
  EXPECT_EQ(roundings, 4U) << "each once";
}

// Elements per step and rank (F5), (n - 1)/n of: replicated 2 P, ZeRO-1 P in fp32 + P in bf16,
// ZeRO-2 the same with the gradients every micro-batch, FSDP (2 P in bf16 + P in fp32) a
// micro-batch. Summed over n = 4 ranks.
TEST(LowerTest, DataParallelBytesAreTheClosedForm) {
  const std::int64_t parameters = parameter_count(small_model());
  const std::int64_t expected[] = {2 * 4, 4 + 2, 4 * 4 + 2, (2 + 2 + 4) * 4};
  for (const int zero : {0, 1, 2, 3}) {
    const SimulationResult result =
        run(small_model(), plan_of(1, 4, 1, zero), one_node(4, 100_GBps));
    EXPECT_EQ(sent(result, Axis::kData).value(), 3 * parameters * expected[zero]) << zero;
  }
}

// 7 replicas don't divide the layers' parameters: buffers are padded, so that every rank has, sends
// and gets the same. Each rank's part of a layer is ceil(P / 7) elements.
TEST(LowerTest, BuffersArePaddedToEqualParts) {
  const ModelSpec model = small_model();
  const ModelLayers layers = build_layers(model, {.sequence_length = 256});
  std::int64_t padded_parameters = 0;
  const auto add = [&](const Layer& layer) {
    padded_parameters += 7 * ((layer.parameters() + 6) / 7);
  };
  add(layers.embedding);
  for (std::int64_t block = 0; block < model.layers; ++block) add(layers.block(block));
  add(layers.head);
  ASSERT_NE(padded_parameters, parameter_count(model));
  for (const int zero : {1, 2, 3}) {
    const std::int64_t expected[] = {0, 4 + 2, 4 * 4 + 2, (2 + 2 + 4) * 4};
    const SimulationResult result = run(model, plan_of(1, 7, 1, zero), one_node(7, 100_GBps));
    EXPECT_EQ(sent(result, Axis::kData).value(), 6 * padded_parameters * expected[zero]) << zero;
    for (const MemoryPeak& rank : result.memory_peaks) {
      EXPECT_EQ(rank.bytes, result.memory_peaks.front().bytes);
    }
  }
}

TEST(LowerTest, PipelineBytesAreOneBoundaryAMicrobatchEachWay) {
  const SimulationResult result = run(small_model(), plan_of(1, 1, 4, 0), one_node(4, 100_GBps));
  EXPECT_EQ(sent(result, Axis::kPipeline).value(), 2 * 3 * 4 * 256 * 512 * 2);
}

// Every product of the axes runs, sends what planned_bytes() says, frees what it allocates and adds
// up (all always-on checks). The FLOPs do not depend on how the work is divided.
TEST(LowerTest, AnyProductOfAxesDoesTheSameWork) {
  for (const std::int64_t tp : {1, 2, 4}) {
    for (const std::int64_t dp : {1, 2}) {
      for (const std::int64_t pp : {1, 2, 4}) {
        for (const int zero : {0, 1, 2, 3}) {
          for (const bool sequence_parallel : {true, false}) {
            ParallelPlan plan = plan_of(tp, dp, pp, zero);
            plan.batch.global_batch = 8;
            plan.tensor.sequence_parallel = sequence_parallel;
            plan.pieces.overlap_tensor = zero == 1 && tp > 1;
            plan.overlap.gradients = zero != 0;
            plan.overlap.parameters = zero == 2;
            plan.state.reshard_after_forward = zero != 3 || pp == 1;
            plan.update.clip_gradients = tp == 2;
            plan.recomputing.kind = dp == 2 ? Recompute::kFull : Recompute::kNone;
            const auto chips = static_cast<int>(tp * dp * pp);
            const SimulationResult result =
                run(small_model(), plan, one_node(chips, 100_GBps), {.steps = zero >= 2 ? 2U : 1U});
            double matmuls = 0;
            const OpGraph graph =
                lower(small_model(), plan, one_node(chips, 1_GBps).places, ideal_chip(), {});
            for (const RankData& rank : graph.ranks) {
              const Program& program = graph.programs[rank.program.index()];
              for (const Op& op : program.ops) {
                if (op.kind != OpKind::kCompute) continue;
                for (const Kernel& kernel : graph.compute_works[op.work].kernels) {
                  if (kernel.kind == KernelKind::kMatmul) matmuls += kernel.flops.value();
                }
              }
            }
            for (const CollectiveWork& work : graph.collective_works) {
              EXPECT_GT(work.bytes, Bytes(0)) << "a collective of nothing";
            }
            // A block's matmuls run once more with full recompute: 2 of 6 passes, unembedding out.
            const double parameters = static_cast<double>(matmul_parameter_count(small_model()));
            const double blocks = parameters - 1000 * 512;
            EXPECT_EQ(matmuls, (6 * parameters + (dp == 2 ? 2 * blocks : 0)) * 8 * 256);
            EXPECT_GT(result.step_time, 0s);
          }
        }
      }
    }
  }
}

TEST(LowerTest, TiedEmbeddingsAreSummedOverFirstAndLastStage) {
  ModelSpec model = small_model();
  model.embedding.tied = true;
  const SimulationResult result = run(model, plan_of(1, 1, 2, 0), one_node(2, 100_GBps));
  // An all-reduce of two: each sends the whole table once, in fp32.
  EXPECT_EQ(sent(result, Axis::kData).value(), 2 * 1000 * 512 * 4);
}

// At rest a rank holds 2 + 4 + 12 bytes a parameter, divided as ZeRO says (F1): optimizer by dp
// under ZeRO-1, gradients too under ZeRO-2, everything under FSDP.
TEST(LowerTest, ModelStateIsDividedAsZeroSays) {
  const std::int64_t parameters = parameter_count(small_model());
  const std::int64_t expected[] = {18 * parameters, 6 * parameters + 12 * parameters / 4,
                                   2 * parameters + 16 * parameters / 4, 18 * parameters / 4};
  for (const int zero : {0, 1, 2, 3}) {
    const OpGraph graph =
        lower(small_model(), plan_of(1, 4, 1, zero), one_node(4, 1_GBps).places, ideal_chip(), {});
    std::int64_t held = 0;
    for (const Bytes bytes : graph.programs[0].resident) held += bytes.value();
    EXPECT_NEAR(static_cast<double>(held), static_cast<double>(expected[zero]), 4);
  }
}

// The 16-byte accounting of F1, n = 8: 16 P; 4 P + 12 P/8 = 5.5 P; 2 P + 14 P/8 = 3.75 P; 2 P
// (cases F06 to F08); 12 bytes without an fp32 weight: ZeRO-2 2 P + 10 P/8 (F09).
TEST(LowerTest, BytesAParameterAreThoseOfTheAccounting) {
  const auto parameters = static_cast<double>(parameter_count(small_model()));
  const auto held = [&](int zero, std::int64_t optimizer) {
    ParallelPlan plan = plan_of(1, 8, 1, zero);
    plan.update.gradient_bytes = 2;
    plan.update.optimizer_bytes = optimizer;
    const OpGraph graph = lower(small_model(), plan, one_node(8, 1_GBps).places, ideal_chip(), {});
    double sum = 0;
    for (const Bytes bytes : graph.programs[0].resident) sum += static_cast<double>(bytes.value());
    return sum / parameters;
  };
  EXPECT_NEAR(held(0, 12), 16, 1e-5);
  EXPECT_NEAR(held(1, 12), 5.5, 1e-5);
  EXPECT_NEAR(held(2, 12), 3.75, 1e-5);
  EXPECT_NEAR(held(3, 12), 2, 1e-5);
  EXPECT_NEAR(held(2, 8), 3.25, 1e-5);
}

// ZeRO-2 releases a bucket of gradients with its reduction. So it holds at most two whole buckets
// (of one layer each here, with the head's in the first) beside the parts of all.
TEST(LowerTest, ZeroTwoHoldsTwoWholeBucketsAtMost) {
  const ModelLayers layers = build_layers(small_model(), {.sequences = 1, .sequence_length = 256});
  const std::int64_t whole =
      (2 * layers.blocks.front().parameters() + layers.head.parameters()) * 4;
  const std::int64_t parts = parameter_count(small_model()) * 4 / 4;
  const SimulationResult result = run(small_model(), plan_of(1, 4, 1, 2), one_node(4, 1_GBps));
  std::int64_t most = 0;
  for (const MemoryPeak& peak : result.memory_peaks) {
    most = std::max(most,
                    peak.by_category[static_cast<std::size_t>(MemoryCategory::kGradients)].value());
  }
  EXPECT_GT(most, parts);
  EXPECT_LE(most, parts + whole + 4);
}

Bytes resident(const ParallelPlan& plan, MemoryCategory category) {
  const OpGraph graph = lower(small_model(), plan, one_node(4, 1_GBps).places, ideal_chip(), {});
  return graph.programs[0].resident[static_cast<std::size_t>(category)];
}

// FSDP: 2 + 12 + 4 bytes of a parameter where a copy in bf16 is held, 4 + 8 + 4 where not.
TEST(LowerTest, MasterWeightsMayBeTheOnlyOnes) {
  ParallelPlan plan = plan_of(1, 4, 1, 3);
  const std::int64_t part = parameter_count(small_model()) / 4;
  EXPECT_EQ(resident(plan, MemoryCategory::kParameters), Bytes(2 * part));
  EXPECT_EQ(resident(plan, MemoryCategory::kOptimizer), Bytes(12 * part));
  plan.buffers.shared_master = true;
  EXPECT_EQ(resident(plan, MemoryCategory::kParameters), Bytes(4 * part));
  EXPECT_EQ(resident(plan, MemoryCategory::kOptimizer), Bytes(8 * part));
  EXPECT_EQ(resident(plan, MemoryCategory::kGradients), Bytes(4 * part));
}

struct GradientChanges {
  std::int64_t made = 0;
  std::int64_t freed = 0;
  std::int64_t held = 0;  // from the start of the run to its end
};
std::vector<GradientChanges> gradients_of_stages(const ModelSpec& model, const ParallelPlan& plan) {
  const OpGraph graph = lower(model, plan, one_node(4, 1_GBps).places, ideal_chip(), {});
  std::vector<GradientChanges> stages;
  for (const Program& program : graph.programs) {
    GradientChanges& changes = stages.emplace_back();
    changes.held = program.resident[static_cast<std::size_t>(MemoryCategory::kGradients)].value();
    for (const MemoryChange& change : program.memory_changes) {
      if (change.category != MemoryCategory::kGradients) continue;
      (change.at_end ? changes.freed : changes.made) += change.bytes.value();
    }
  }
  return stages;
}

// What is held otherwise is made once a step and freed once, whoever shares a table.
TEST(LowerTest, FreedGradientsAreMadeAgainInEachStep) {
  ModelSpec tied = small_model();
  tied.embedding.tied = true;
  for (const ModelSpec& model : {small_model(), tied}) {
    for (const int pp : {1, 2, 4}) {
      ParallelPlan plan = plan_of(1, 4 / pp, pp, 0);
      const std::vector<GradientChanges> kept = gradients_of_stages(model, plan);
      plan.update.free_gradients = true;
      const std::vector<GradientChanges> freed = gradients_of_stages(model, plan);
      ASSERT_EQ(kept.size(), freed.size());
      for (std::size_t stage = 0; stage < kept.size(); ++stage) {
        EXPECT_EQ(freed[stage].held, 0);
        EXPECT_EQ(freed[stage].made, kept[stage].held) << pp << " " << stage;
        EXPECT_EQ(freed[stage].freed, kept[stage].held) << pp << " " << stage;
      }
    }
  }
}

// Where activations fill the memory, their peak comes before the gradients.
TEST(LowerTest, ThePeakOfActivationsHasNoFreedGradients) {
  ParallelPlan plan = plan_of(1, 1, 1, 0);
  plan.batch.global_batch = plan.batch.microbatch_size = 64;
  const auto peak = [&](bool frees) {
    plan.update.free_gradients = frees;
    return run(small_model(), plan, one_node(1, 1_GBps)).memory_peaks[0].bytes.value();
  };
  const std::int64_t head = 1000 * 512 * 4;  // what the first backward makes
  const std::int64_t all = parameter_count(small_model()) * 4;
  EXPECT_NEAR(static_cast<double>(peak(false) - peak(true)), static_cast<double>(all - head),
              0.25 * static_cast<double>(all));
}

// Frozen weights in bf16 are held; the adapters have gradients and an optimizer. FSDP gathers both
// twice a micro-batch.
TEST(LowerTest, AFrozenModelIsHeldAndItsAdaptersAreTrained) {
  const std::int64_t frozen = parameter_count(small_model());
  const std::int64_t trained = adapter_parameter_count(small_model(), {.rank = 8});
  const std::int64_t expected[] = {2 * 4, 4 + 2, 4 * 4 + 2, (2 + 2 + 4) * 4};
  for (const int zero : {0, 1, 2, 3}) {
    ParallelPlan plan = plan_of(1, 4, 1, zero);
    plan.training.lora_rank = 8;
    const SimulationResult result =
        run(small_model(), plan, one_node(4, 100_GBps), {.steps = zero >= 2 ? 2U : 1U});
    const std::int64_t gathered = zero == 3 ? (2 + 2) * 4 * frozen : 0;
    EXPECT_EQ(sent(result, Axis::kData).value(), 3 * (trained * expected[zero] + gathered)) << zero;
    const std::int64_t parts = zero == 3 ? 4 : 1;
    EXPECT_EQ(resident(plan, MemoryCategory::kParameters), Bytes(2 * (frozen + trained) / parts));
    EXPECT_EQ(resident(plan, MemoryCategory::kOptimizer), Bytes(12 * trained / (zero > 0 ? 4 : 1)));
  }
  for (const std::int64_t tp : {1, 2}) {
    ParallelPlan plan = plan_of(tp, 1, 4 / tp, 1);
    plan.training.lora_rank = 8;
    plan.recomputing.kind = tp == 2 ? Recompute::kFull : Recompute::kSelective;
    EXPECT_GT(run(small_model(), plan, one_node(4, 100_GBps)).step_time, Duration(0));
  }
}

// One bf16 tensor for each shape of a block's weights, for any number of blocks. On two tensor
// ranks the halves of the query-key-value and the down projection have the same shape.
TEST(LowerTest, PlaceholdersOfWeightGradientsAreOneOfAShape) {
  ParallelPlan plan = plan_of(1, 4, 1, 0);
  EXPECT_EQ(resident(plan, MemoryCategory::kBuffers), Bytes(0));
  plan.buffers.gradient_placeholders = true;
  const std::int64_t qkv = 1024 * 512, out = 512 * 512, gate_up = 2048 * 512, down = 512 * 1024;
  EXPECT_EQ(resident(plan, MemoryCategory::kBuffers), Bytes(2 * (qkv + out + gate_up + down)));
  plan.mesh.tp = plan.mesh.dp = 2;
  EXPECT_EQ(resident(plan, MemoryCategory::kBuffers), Bytes(2 * (qkv + out + gate_up) / 2));
}

// The weights of a block's four matmuls in fp8, beside those in bf16: once, in both directions, or
// only the other direction, where the weights are fp8 themselves. FSDP gathers them anew.
TEST(LowerTest, NarrowWeightsAreKeptInTheDirectionsThatMatmulsRead) {
  const std::int64_t layers = small_model().layers;
  const std::int64_t weights = layers * (1024 * 512 + 512 * 512 + 2048 * 512 + 512 * 1024);
  ParallelPlan plan = plan_of(1, 4, 1, 0);
  plan.precision.type = DataType::kFp8;
  const Bytes wide = resident(plan, MemoryCategory::kParameters);
  const auto more = [&] { return (resident(plan, MemoryCategory::kParameters) - wide).value(); };
  plan.narrow.keep_narrow_weights = true;
  EXPECT_EQ(more(), weights);
  plan.narrow.transpose_operands = true;
  EXPECT_EQ(more(), 2 * weights);
  plan.narrow.round_weights = true;
  EXPECT_EQ(more(), 0);
  plan.narrow.round_weights = false;
  plan.precision.weight_type = DataType::kFp8;
  EXPECT_EQ(more(), weights - parameter_count(small_model()));
  plan.precision.weight_type.reset();
  plan.precision.type = DataType::kBf16;
  EXPECT_EQ(more(), 0);
}

// Hybrid sharding over 2 of 4 replicas: FSDP's (s - 1) P (2 w + g) m in each of two groups, and an
// all-reduce of half the gradients over pairs: 2 (2 - 1) P/2 g for each of two parts.
TEST(LowerTest, HybridShardingGathersInTheGroupAndSumsAcross) {
  const std::int64_t parameters = parameter_count(small_model());
  for (const int zero : {1, 2, 3}) {
    ParallelPlan plan = plan_of(1, 4, 1, zero);
    plan.state.shard = 2;
    const SimulationResult result = run(small_model(), plan, one_node(4, 100_GBps), {.steps = 2});
    const std::int64_t inside[] = {0, 4 + 2, 4 * 4 + 2, (2 + 2 + 4) * 4};
    EXPECT_EQ(sent(result, Axis::kData).value(), parameters * (2 * inside[zero] + 2 * 4)) << zero;
    const OpGraph graph = lower(small_model(), plan, one_node(4, 1_GBps).places, ideal_chip(), {});
    const Bytes optimizer =
        graph.programs[0].resident[static_cast<std::size_t>(MemoryCategory::kOptimizer)];
    EXPECT_EQ(optimizer.value(), 12 * parameters / 2);
  }
}

// A reduction that nothing computes beside costs its whole time in every layer.
TEST(LowerTest, FsdpWithoutOverlapComputesNothingBesideReductions) {
  ParallelPlan plan = plan_of(1, 4, 1, 3);
  plan.batch.sequence = 4096;  // a backward takes longer than a reduction
  const Cluster cluster = one_node(4, 100_GBps);
  const auto step = [&] { return run(small_model(), plan, cluster, {.steps = 2}).step_time; };
  const Duration beside = step();
  plan.overlap.gradients = false;
  const double sent_by_each = static_cast<double>(parameter_count(small_model()) * 4) * 3 / 4;
  const double reductions = sent_by_each * static_cast<double>(plan.microbatches()) / 100e9;
  const double longer = to_seconds(step() - beside);
  EXPECT_GT(longer, 0.7 * reductions) << "all but what had been exposed";
  EXPECT_LT(longer, 1.3 * reductions);
}

// F5: if the backward reuses gathered weights, FSDP sends what ZeRO-2 does, 2 P elements a step.
TEST(LowerTest, ParametersThatStayGatheredAreGatheredOnceAStep) {
  const std::int64_t parameters = parameter_count(small_model());
  ParallelPlan plan = plan_of(1, 4, 1, 3);
  plan.state.reshard_after_forward = false;
  const SimulationResult result = run(small_model(), plan, one_node(4, 100_GBps), {.steps = 2});
  EXPECT_EQ(sent(result, Axis::kData).value(), 3 * parameters * (2 + 4 * 4));
  const auto gathered = static_cast<std::size_t>(MemoryCategory::kGatheredParameters);
  EXPECT_EQ(result.memory_peaks[0].by_category[gathered].value(), 2 * parameters);
}

// What a forward gathered stays until its backward, which gathers again: behind the last block
// the weights of all of them are there.
TEST(LowerTest, GatheredParametersMayStayWithTheActivations) {
  ModelSpec model = small_model();
  ParallelPlan plan = plan_of(1, 4, 1, 3);
  plan.state.prefetch = 0;
  const auto run_it = [&] { return run(model, plan, one_node(4, 100_GBps), {.steps = 2}); };
  const SimulationResult dropped = run_it();
  plan.buffers.save_gathered = true;
  const SimulationResult kept = run_it();
  EXPECT_EQ(sent(kept, Axis::kData), sent(dropped, Axis::kData));
  EXPECT_EQ(kept.step_time, dropped.step_time);
  const std::int64_t blocks = parameter_count(model) - 2 * 1000 * 512 - 512;  // tables, last norm
  const auto gathered = [](const SimulationResult& result) {
    const auto at = static_cast<std::size_t>(MemoryCategory::kGatheredParameters);
    return result.memory_peaks[0].by_category[at].value();
  };
  EXPECT_EQ(gathered(kept), 2 * blocks) << "the peak is behind the last block";
  EXPECT_LT(gathered(dropped), gathered(kept) / 3);
  plan.recomputing.kind = Recompute::kFull;
  const SimulationResult again = run_it();
  EXPECT_LT(gathered(again), gathered(kept) / 3) << "layers whose forward is repeated keep nothing";
}

// Behind the last block the embedding's table is there too; a table that the head shares is there
// anyway.
TEST(LowerTest, TheEmbeddingMayStayGathered) {
  ModelSpec model = small_model();
  ParallelPlan plan = plan_of(1, 4, 1, 3);
  const auto run_it = [&] { return run(model, plan, one_node(4, 100_GBps), {.steps = 2}); };
  const auto gathered = [](const SimulationResult& result) {
    const auto at = static_cast<std::size_t>(MemoryCategory::kGatheredParameters);
    return result.memory_peaks[0].by_category[at].value();
  };
  const std::int64_t table = 1000 * 512 * 2;
  const SimulationResult dropped = run_it();
  plan.buffers.keep_root = true;
  const SimulationResult kept = run_it();
  EXPECT_EQ(gathered(kept), gathered(dropped) + table);
  EXPECT_EQ(sent(kept, Axis::kData), sent(dropped, Axis::kData));
  model.embedding.tied = true;
  const SimulationResult tied = run_it();
  plan.buffers.keep_root = false;
  EXPECT_EQ(gathered(tied), gathered(run_it()));
}

// The table is gathered for the embedding and for the head, forward and backward, and its gradient
// reduced after both; with two stages the two copies' parts are summed as well.
TEST(LowerTest, TiedEmbeddingsAreGatheredForBothOfTheirLayers) {
  ModelSpec model = small_model();
  model.embedding.tied = true;
  const std::int64_t table = 1000 * 512;
  const std::int64_t parameters = parameter_count(model) + table;
  for (const std::int64_t stages : {1, 2}) {
    const ParallelPlan plan = plan_of(1, 2, stages, 3);
    const SimulationResult result =
        run(model, plan, one_node(static_cast<int>(2 * stages), 100_GBps), {.steps = 2});
    const std::int64_t pairs = stages == 2 ? 2 * 2 * table / 2 * 4 : 0;
    EXPECT_EQ(sent(result, Axis::kData).value(), parameters * 8 * 4 + pairs) << stages;
  }
}

// With overlap the next step's first layers start before the last parameters are there.
TEST(LowerTest, ParametersAreGatheredBesideTheNextForward) {
  ParallelPlan plan = plan_of(1, 4, 1, 1);
  plan.batch.sequence = 4096;
  const Cluster cluster = one_node(4, 2_GBps);
  const Duration waits = run(small_model(), plan, cluster, {.steps = 2}).step_time;
  plan.overlap.parameters = true;
  EXPECT_LT(run(small_model(), plan, cluster, {.steps = 2}).step_time, waits);
}

// A norm of all gradients: replicas have the same one, parts of ZeRO-1 have their own.
TEST(LowerTest, ClippingNeedsOneValueOfEveryRank) {
  ParallelPlan plan = plan_of(2, 2, 1, 0);
  plan.update.clip_gradients = true;
  const Cluster cluster = one_node(4, 100_GBps);
  EXPECT_EQ(sent(run(small_model(), plan, cluster), Axis::kOther).value(), 2 * 2 * 1 * 4);
  plan.state.zero = 1;
  EXPECT_EQ(sent(run(small_model(), plan, cluster), Axis::kOther).value(), 2 * 3 * 4);
}

// H7: n - 1 hops of the keys and values of a chunk forward; n - 1 again and n of their gradients in
// the backward. 256/4 tokens x 4 heads x (64 + 64) x 2 bytes a chunk; 4 layers, 4 micro-batches.
TEST(LowerTest, KeysAndValuesGoRoundTheContextRanks) {
  const std::int64_t chunk = 64 * 4 * 128 * 2;
  for (const ContextMode mode : {ContextMode::kRing, ContextMode::kZigzagRing}) {
    ParallelPlan plan = plan_of(1, 1, 1, 0);
    plan.mesh.cp = 4;
    plan.tensor.cp_mode = mode;
    const SimulationResult result = run(small_model(), plan, one_node(4, 100_GBps));
    EXPECT_EQ(sent(result, Axis::kContext).value(), 4 * 4 * 4 * (3 + 3 + 4) * chunk);
  }
}

// Returns the FLOPs of a rank's attention, forward and backward.
double attention_flops(const OpGraph& graph, std::size_t rank) {
  double flops = 0;
  for (const Op& op : graph.programs[graph.ranks[rank].program.index()].ops) {
    if (op.kind != OpKind::kCompute) continue;
    for (const Kernel& kernel : graph.compute_works[op.work].kernels) {
      const bool attends = kernel.kind == KernelKind::kAttentionForward ||
                           kernel.kind == KernelKind::kAttentionBackward;
      if (attends) flops += kernel.flops.value();
    }
  }
  return flops;
}

// Causal work of a contiguous split grows with the rank (r + 1/2 chunks of n), that of a zig-zag
// split is equal; the sum is that of one rank with the whole sequence, forward and backward.
TEST(LowerTest, AZigZagSplitBalancesCausalAttention) {
  const Places places = one_node(4, 1_GBps).places;
  ParallelPlan plan = plan_of(1, 1, 1, 0);
  plan.mesh.allow_idle_chips = true;
  const double whole = attention_flops(lower(small_model(), plan, places, ideal_chip(), {}), 0);
  plan.mesh.cp = 4;
  plan.tensor.cp_mode = ContextMode::kRing;
  const OpGraph ring = lower(small_model(), plan, places, ideal_chip(), {});
  plan.tensor.cp_mode = ContextMode::kZigzagRing;
  const OpGraph zigzag = lower(small_model(), plan, places, ideal_chip(), {});
  ASSERT_EQ(ring.programs.size(), 4U);
  ASSERT_EQ(zigzag.programs.size(), 1U);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const double part = (static_cast<double>(rank) + 0.5) / 8;
    EXPECT_DOUBLE_EQ(attention_flops(ring, rank), whole * part);
    EXPECT_DOUBLE_EQ(attention_flops(zigzag, rank), whole / 4);
  }
}

// Ranks attend within the parts of documents that they hold or pass on: together to all pairs of
// all documents, each to its own where documents end with the ranks' parts.
TEST(LowerTest, ContextRanksDivideDocuments) {
  const Places places = one_node(4, 1_GBps).places;
  for (const std::int64_t document : {24, 50, 64, 100}) {
    ParallelPlan plan = plan_of(1, 1, 1, 0);
    plan.mesh.allow_idle_chips = true;
    plan.batch.document_length = document;
    const double whole = attention_flops(lower(small_model(), plan, places, ideal_chip(), {}), 0);
    plan.mesh.cp = 4;
    for (std::size_t mode = 0; mode < kContextModes; ++mode) {
      plan.tensor.cp_mode = static_cast<ContextMode>(mode);
      const OpGraph graph = lower(small_model(), plan, places, ideal_chip(), {});
      double sum = 0;
      for (std::size_t rank = 0; rank < 4; ++rank) sum += attention_flops(graph, rank);
      EXPECT_NEAR(sum, whole, 1e-9 * whole) << document << " " << name_of(plan.tensor.cp_mode);
      if (plan.tensor.cp_mode == ContextMode::kRing && plan.batch.sequence % (4 * document) == 0) {
        EXPECT_DOUBLE_EQ(attention_flops(graph, 0), whole / 4);
        EXPECT_DOUBLE_EQ(attention_flops(graph, 3), whole / 4);
      }
    }
  }
}

// Every mode runs with every other axis and with recompute, and sends what its closed form says.
TEST(LowerTest, ContextModesRunWithTheOtherAxes) {
  for (std::size_t mode = 0; mode < kContextModes; ++mode) {
    for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
      ParallelPlan plan = plan_of(2, 1, 2, 1);
      plan.mesh.cp = 2;
      plan.tensor.cp_mode = static_cast<ContextMode>(mode);
      plan.recomputing.kind = recompute;
      const SimulationResult result = run(small_model(), plan, one_node(8, 100_GBps));
      EXPECT_GT(sent(result, Axis::kContext), Bytes(0));
    }
  }
}

ModelSpec small_experts() {
  ModelSpec model = small_model();
  model.experts = {.routed = 8, .per_token = 2, .intermediate = 256};
  return model;
}

// Dispatch and combine, forward and backward: each rank sends tokens x copies x hidden x 2 bytes,
// of which 3/4 leave it, in 4 layers and 4 micro-batches.
TEST(LowerTest, CopiesOfTokensTravelToTheirExpertsAndBack) {
  ParallelPlan plan = plan_of(1, 4, 1, 1);
  plan.mesh.ep = 4;
  const SimulationResult result = run(small_experts(), plan, one_node(4, 100_GBps));
  EXPECT_EQ(sent(result, Axis::kExpert).value(), 4 * 4 * 4 * 4 * 256 * 2 * 512 * 2 * 3 / 4);
}

// Experts that are not divided have dp replicas, with ep = 2 half as many; their bytes are apart.
TEST(LowerTest, ExpertsAreReducedOverTheirOwnReplicas) {
  for (const std::int64_t ep : {1, 2, 4}) {
    ParallelPlan plan = plan_of(1, 4, 1, 0);
    plan.mesh.ep = ep;
    const ModelSpec model = small_experts();
    const SimulationResult result = run(model, plan, one_node(4, 100_GBps));
    const std::int64_t experts = 4 * 8 * 3 * 512 * 256;
    const std::int64_t dense = parameter_count(model) - experts;
    const std::int64_t edp = 4 / ep;
    EXPECT_EQ(sent(result, Axis::kData).value(), 2 * 4 * (3 * dense + (edp - 1) * experts));
  }
}

TEST(LowerTest, ExpertsRunWithTheOtherAxes) {
  for (const std::int64_t etp : {1, 2}) {
    for (const int zero : {0, 1, 2, 3}) {
      for (const Dispatch dispatch : {Dispatch::kAllToAll, Dispatch::kTwoLevel}) {
        ParallelPlan plan = plan_of(2, 2, 2, zero);
        plan.mesh.ep = 4 / etp;
        plan.mesh.etp = etp;
        plan.experts.dispatch = dispatch;
        plan.recomputing.kind = etp == 2 ? Recompute::kFull : Recompute::kNone;
        const SimulationResult result =
            run(small_experts(), plan, one_node(8, 100_GBps), {.steps = 2});
        EXPECT_GT(sent(result, Axis::kExpert), Bytes(0));
      }
    }
  }
}

// 1F1B keeps min(P - r, M) micro-batches on stage r: the peak of activations is that many times a
// stage's kept bytes (the first stage's embedding and the last one's head besides).
TEST(LowerTest, ActivationsAreThoseOfTheMicrobatchesInFlight) {
  const ModelLayers layers = build_layers(small_model(), {.sequences = 1, .sequence_length = 256});
  const SimulationResult result = run(small_model(), plan_of(1, 1, 4, 0), one_node(4, 100_GBps));
  const auto activations = static_cast<std::size_t>(MemoryCategory::kActivations);
  EXPECT_EQ(result.memory_peaks[1].by_category[activations].value(),
            3 * layers.block(0).saved().value());
  EXPECT_EQ(result.memory_peaks[0].by_category[activations].value(),
            4 * (layers.block(0).saved() + layers.embedding.saved()).value());
}

// If messages are free, a stage starts the forward of a micro-batch as soon as the stage before it
// has ended its own, and the backward as soon as the stage behind it has ended its own.
TEST(LowerTest, StagesWaitForEachOther) {
  const ParallelPlan plan = plan_of(1, 1, 4, 0);
  const Cluster cluster = one_node(4, Bandwidth(1e30));
  const OpGraph graph = lower(small_model(), plan, cluster.places, cluster.chip, {});
  const SimulationResult result =
      simulate(graph, cluster, {.recorded_ranks = {RankId(0), RankId(1), RankId(2), RankId(3)}});
  // First start and last end of the compute ops of micro-batch 0 in a pass.
  const auto pass = [&](std::size_t rank, const std::string& what) {
    const Program& program = graph.programs[rank];
    std::pair<Time, Time> span{Time{Duration::max()}, Time{}};
    for (const TimelineOp& op : result.timelines[rank].ops) {
      const OpLabel& label = program.labels[op.op];
      if (program.ops[op.op].kind != OpKind::kCompute || label.microbatch != 0) continue;
      if (graph.names[label.name].find(what) == std::string::npos) continue;
      span.first = std::min(span.first, op.started);
      span.second = std::max(span.second, op.ended);
    }
    return span;
  };
  for (std::size_t rank = 1; rank < 4; ++rank) {
    EXPECT_EQ(pass(rank, "forward").first, pass(rank - 1, "forward").second);
    // 1F1B: the stage before may still run the forward of its last warm-up micro-batch.
    EXPECT_GE(pass(rank - 1, "backward").first, pass(rank, "backward").second);
  }
  EXPECT_EQ(pass(3, "backward").first, pass(3, "forward").second);
}

// Full recompute (H: 8ND instead of 6ND) runs every matmul of the blocks once more, keeps only the
// input of each block, and repeats the forward's four boundaries of tensor communication.
TEST(LowerTest, FullRecomputeTradesFlopsForMemory) {
  ParallelPlan plan = plan_of(2, 1, 2, 0);
  const Cluster cluster = one_node(4, 100_GBps);
  const SimulationResult kept = run(small_model(), plan, cluster);
  plan.recomputing.kind = Recompute::kFull;
  const SimulationResult again = run(small_model(), plan, cluster);
  const ModelLayers layers = build_layers(
      small_model(),
      {.sequences = 1, .sequence_length = 256, .tensor = 2, .sequence_parallel = true});
  Flops block_forward{};
  for (const LayerOp& op : layers.block(0).ops) {
    for (const Kernel& kernel : op.forward) block_forward += kernel.flops;
  }
  const double more = (again.flops - kept.flops).value();
  EXPECT_DOUBLE_EQ(more, 4 * 4 * 2 * block_forward.value()) << "4 blocks, 4 micro-batches, tp 2";
  EXPECT_EQ((sent(again, Axis::kTensor) - sent(kept, Axis::kTensor)).value(),
            4 * 4 * 4 * layers.boundary.value());
  // Stage 0: 2 micro-batches in flight, of each the embedding's ids and 2 block inputs, and one
  // block made again.
  const auto activations = static_cast<std::size_t>(MemoryCategory::kActivations);
  const Bytes input = layers.boundary / 2;
  EXPECT_EQ(again.memory_peaks[0].by_category[activations],
            2 * (layers.embedding.saved() + 2 * input) + layers.block(0).saved() - input);
  EXPECT_GT(again.step_time, kept.step_time);
}

TEST(LowerTest, SelectiveRecomputeRunsTheAttentionKernelAgain) {
  ParallelPlan plan = plan_of(1, 1, 1, 0);
  const Cluster cluster = one_node(1, 100_GBps);
  const SimulationResult kept = run(small_model(), plan, cluster);
  plan.recomputing.kind = Recompute::kSelective;
  const SimulationResult again = run(small_model(), plan, cluster);
  // Causal attention forward: 2 x s^2/2 pairs x heads x (64 + 64), 4 layers, 4 micro-batches.
  EXPECT_DOUBLE_EQ((again.flops - kept.flops).value(), 4 * 4 * 2.0 * 256 * 256 / 2 * 8 * 128);
}

TEST(LowerTest, StagesHaveTheLayersOfTheLayout) {
  ParallelPlan plan = plan_of(1, 1, 2, 0);
  plan.pipeline.layout = {1, 3};
  const OpGraph graph = lower(small_model(), plan, one_node(2, 1_GBps).places, ideal_chip(), {});
  std::int32_t last[] = {-1, -1};
  for (std::size_t stage = 0; stage < 2; ++stage) {
    for (const OpLabel& label : graph.programs[stage].labels) {
      last[stage] = std::max(last[stage], label.layer.value_or(-1));
    }
  }
  EXPECT_EQ(last[0], 0);
  EXPECT_EQ(last[1], 3);
  run(small_model(), plan, one_node(2, 100_GBps));
}

// Gradients of a bucket are reduced while the backward pass goes on: with a slow network that hides
// most of them, without overlap none.
TEST(LowerTest, OverlapHidesGradientReduction) {
  ParallelPlan plan = plan_of(1, 4, 1, 0);
  plan.batch.sequence = 4096;
  const Cluster cluster = one_node(4, 2_GBps);
  const SimulationResult overlapped = run(small_model(), plan, cluster);
  plan.overlap.gradients = false;
  const SimulationResult after_all = run(small_model(), plan, cluster);
  const auto data = static_cast<std::size_t>(Axis::kData);
  EXPECT_LT(overlapped.step_time, after_all.step_time);
  // All-reduce of P fp32 gradients over 4: 2 x 3/4 x 4 P / 2 GB/s, nothing else on the links.
  const double alone = 1.5 * 4 * static_cast<double>(parameter_count(small_model())) / 2e9;
  EXPECT_NEAR(to_seconds(after_all.breakdowns[0].exposed_communication[data]) / alone, 1, 1e-3);
}

// Backward: a head of 512,512 parameters, 4 blocks of 2,360,320 and an embedding of 512,000. A
// bucket takes no more once it is full: head and block, three blocks alone, embedding. One
// parameter more, and a block leaves room for what comes next.
TEST(LowerTest, ABucketIsFullWhenItHasAsManyParametersAsItMay) {
  for (const auto& [size, buckets] : {std::pair{2'360'320, 5}, std::pair{2'360'321, 3}}) {
    ParallelPlan plan = plan_of(1, 2, 1, 0);
    plan.overlap.gradients = false;
    plan.messages.gradient_bucket_parameters = size;
    const OpGraph graph =
        lower(small_model(), plan, one_node(2, 100_GBps).places, ideal_chip(), {});
    EXPECT_EQ(
        std::ranges::count_if(
            graph.programs[0].ops,
            [](const Op& op) { return op.kind == OpKind::kCollective && op.axis == Axis::kData; }),
        buckets)
        << size;
  }
}

// Rings of many replicas need larger buckets
// (megatron/core/distributed/distributed_data_parallel.py).
TEST(LowerTest, BucketsGrowWithTheReplicas) {
  ParallelPlan plan;
  plan.mesh.dp = 8;
  EXPECT_EQ(plan.bucket_parameters(), 40'000'000);
  plan.mesh.dp = 64;
  EXPECT_EQ(plan.bucket_parameters(), 64'000'000);
  plan.messages.gradient_bucket_parameters = 1000;
  EXPECT_EQ(plan.bucket_parameters(), 1000);
}

TEST(LowerTest, PrefetchHidesTheGathersOfFullySharedData) {
  ParallelPlan plan = plan_of(1, 4, 1, 3);
  plan.batch.sequence = 4096;
  plan.state.prefetch = 0;
  const Cluster cluster = one_node(4, 20_GBps);
  const Duration none = run(small_model(), plan, cluster, {.steps = 2}).step_time;
  plan.state.prefetch = 1;
  EXPECT_LT(run(small_model(), plan, cluster, {.steps = 2}).step_time, none);
}

// Simultaneous ops in a shuffled order change no number.
TEST(LowerTest, TheOrderOfSimultaneousOpsChangesNothing) {
  ModelSpec model = small_model();
  for (const int zero : {1, 3}) {
    const ParallelPlan plan = plan_of(2, 2, 2, zero);
    Cluster cluster = one_node(8, 50_GBps, 300ns);
    cluster.chip.communication.fixed = {.compute_share = 0.2, .memory_share = 0.1};
    const SimulationOptions options{.steps = 2, .recorded_ranks = {RankId(0)}};
    const SimulationResult first = run(model, plan, cluster, options);
    for (const std::uint32_t seed : {1U, 2U, 3U, 4U}) {
      SimulationOptions shuffled = options;
      shuffled.shuffle_seed = seed;
      const SimulationResult again = run(model, plan, cluster, shuffled);
      EXPECT_EQ(again.step_time, first.step_time);
      EXPECT_EQ(again.breakdowns, first.breakdowns);
      EXPECT_EQ(again.breakdown, first.breakdown);
      for (std::size_t rank = 0; rank < first.memory_peaks.size(); ++rank) {
        EXPECT_EQ(again.memory_peaks[rank].bytes, first.memory_peaks[rank].bytes);
        EXPECT_EQ(again.memory_peaks[rank].at, first.memory_peaks[rank].at);
      }
      ASSERT_EQ(again.critical_path.size(), first.critical_path.size());
      for (std::size_t part = 0; part < first.critical_path.size(); ++part) {
        EXPECT_EQ(again.critical_path[part].label, first.critical_path[part].label);
        EXPECT_EQ(again.critical_path[part].duration, first.critical_path[part].duration);
      }
    }
  }
}

// Laws: more bandwidth, or a faster chip, is never slower.
TEST(LowerTest, BetterHardwareIsNeverSlower) {
  for (const int zero : {0, 1, 3}) {
    const ParallelPlan plan = plan_of(2, 2, 2, zero);
    Duration before = Duration::max();
    for (const double gigabytes : {5.0, 10.0, 20.0, 40.0, 80.0}) {
      const Duration now =
          run(small_model(), plan, one_node(8, Bandwidth(gigabytes * 1e9))).step_time;
      EXPECT_LE(now, before);
      before = now;
    }
  }
}

// Two gathers in bf16 are copied (2 x 4 bytes a parameter), gradients go from bf16 to fp32 (6): 14
// in all, for each of the micro-batches. With what is gathered once a step 4 fewer; full recompute
// copies as often.
TEST(LowerTest, FsdpCopiesParametersAndGradients) {
  const auto copied = [](const ParallelPlan& plan) {
    Bytes sum;
    const OpGraph graph = lower(small_model(), plan, one_node(4, 1_GBps).places, ideal_chip(), {});
    for (const Op& op : graph.programs[0].ops) {
      if (op.kind != OpKind::kCompute) continue;
      for (const Kernel& kernel : graph.compute_works[op.work].kernels) {
        if (kernel.name.starts_with("copy_")) sum += kernel.read + kernel.written;
      }
    }
    return sum.value();
  };
  ParallelPlan plan = plan_of(1, 4, 1, 3);
  EXPECT_EQ(copied(plan), 0);
  plan.buffers.fsdp_copies = true;
  const std::int64_t parameters = parameter_count(small_model());
  EXPECT_EQ(copied(plan), plan.microbatches() * 14 * parameters);
  plan.recomputing.kind = Recompute::kFull;
  EXPECT_EQ(copied(plan), plan.microbatches() * 14 * parameters);
  plan.state.reshard_after_forward = false;
  plan.recomputing.kind = Recompute::kNone;
  EXPECT_EQ(copied(plan), plan.microbatches() * 10 * parameters);
}

}  // namespace
}  // namespace stepsim
