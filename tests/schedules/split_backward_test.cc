// The backward in two parts does the same work as the whole one, and keeps what its second part
// reads.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "schedules/lowering/recompute/recompute.h"
#include "schedules/lowering/steps/tensor.h"
#include "tests/support/small_model.h"
#include "workload/layers.h"

namespace stepsim {
namespace {

struct Case {
  std::int64_t tp = 1;
  bool sequence_parallel = true;
};

ParallelPlan plan_of(const Case& of) {
  ParallelPlan plan;
  plan.mesh.tp = of.tp;
  plan.tensor.sequence_parallel = of.sequence_parallel;
  plan.batch.sequence = 256;
  return plan;
}

std::vector<LoweredLayer> layers_of(const Case& of) {
  const ParallelPlan plan = plan_of(of);
  const ModelLayers layers = build_layers(
      small_model(), {.sequences = 1,
                      .sequence_length = plan.batch.sequence,
                      .tensor = plan.mesh.tp,
                      .sequence_parallel = plan.tensor.sequence_parallel && plan.mesh.tp > 1});
  const LoweredLayer block =
      lower_tensor(layers.blocks.front(), tensor_group(plan), layers.boundary, false);
  return {lower_tensor(layers.embedding, tensor_group(plan), layers.boundary, false), block,
          recompute_fully(block),
          lower_tensor(layers.head, tensor_group(plan), layers.boundary, true)};
}

constexpr Case kCases[] = {{1, true}, {2, true}, {2, false}, {4, true}};

// Returns names, FLOPs and bytes of every kernel, in any order.
std::vector<std::string> work_of(const std::vector<LayerStep>& steps) {
  std::vector<std::string> work;
  for (const LayerStep& step : steps) {
    for (const Kernel& kernel : step.kernels) {
      work.push_back(std::string(kernel.name) + " " + std::to_string(kernel.flops.value()) + " " +
                     std::to_string((kernel.read + kernel.written).value()));
    }
    if (step.kind == LayerStep::Kind::kCompute) continue;
    work.push_back(std::string(name_of(step.collective)) + " " +
                   std::to_string(step.bytes.value()));
  }
  std::ranges::sort(work);
  return work;
}

TEST(SplitBackwardTest, DoesTheWorkOfTheWholeBackward) {
  for (const Case& of : kCases) {
    for (const LoweredLayer& layer : layers_of(of)) {
      EXPECT_EQ(work_of(layer.split_backward), work_of(layer.backward)) << of.tp;
    }
  }
}

// Every projection has its weight gradient in W; norms, attention and activations have none.
TEST(SplitBackwardTest, TakesTheMatmulsOfWeightsApart) {
  for (const Case& of : kCases) {
    const LoweredLayer block = layers_of(of)[1];
    std::vector<std::string> names;
    for (const LayerStep& step : block.split_backward) {
      if (!step.weight_gradient) continue;
      for (const Kernel& kernel : step.kernels) names.emplace_back(kernel.name);
    }
    EXPECT_EQ(names, (std::vector<std::string>{"down_projection", "gate_up_projection",
                                               "out_projection", "qkv_projection"}));
  }
}

// W gathers the two inputs that only sequence parallelism has divided. All other communication is
// B's.
TEST(SplitBackwardTest, CommunicatesWithTheInputGradients) {
  for (const Case& of : kCases) {
    const LoweredLayer block = layers_of(of)[1];
    int gathers = 0;
    for (const LayerStep& step : block.split_backward) {
      if (!step.weight_gradient || step.kind == LayerStep::Kind::kCompute) continue;
      EXPECT_EQ(step.kind, LayerStep::Kind::kBackground);
      ++gathers;
    }
    EXPECT_EQ(gathers, of.tp > 1 && of.sequence_parallel ? 2 : 0);
  }
}

// B and W release what the forward and B keep.
TEST(SplitBackwardTest, LeavesNothingBehind) {
  for (const Case& of : kCases) {
    for (const LoweredLayer& layer : layers_of(of)) {
      Bytes held;
      for (const LayerStep& step : layer.forward) held += step.kept;
      for (const bool weights : {false, true}) {
        for (const LayerStep& step : layer.split_backward) {
          if (step.weight_gradient != weights) continue;
          held += step.kept;
          held -= step.let_go;
          EXPECT_GE(held, Bytes(0));
        }
      }
      EXPECT_EQ(held, Bytes(0));
    }
  }
}

// Between B and W a block of 256 tokens keeps the inputs of its four projections (hidden 512, heads
// 8 x 64, width 1024) and the gradients of their results (q, k, v 1024 wide, out 512, gate and up
// 2048, down 512), 2 bytes each.
TEST(SplitBackwardTest, KeepsWhatWeightGradientsRead) {
  const LoweredLayer block = layers_of({1, true})[1];
  Bytes held;
  for (const LayerStep& step : block.forward) held += step.kept;
  for (const LayerStep& step : block.split_backward) {
    if (step.weight_gradient) continue;
    held += step.kept;
    held -= step.let_go;
  }
  const std::int64_t inputs = 512 + 8 * 64 + 512 + 1024;
  const std::int64_t gradients = 1024 + 512 + 2048 + 512;
  EXPECT_EQ(held.value(), 2 * 256 * (inputs + gradients));
}

}  // namespace
}  // namespace stepsim
