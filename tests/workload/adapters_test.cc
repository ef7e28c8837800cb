#include "workload/parts/adapters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "tests/support/layer_ops.h"
#include "tests/support/published_models.h"
#include "workload/layers.h"
#include "workload/model_counts.h"
#include "workload/parts/kernels.h"

namespace stepsim {
namespace {

double matmul_flops(const std::vector<Kernel>& kernels) {
  double flops = 0;
  for (const Kernel& kernel : kernels) {
    if (kernel.kind == KernelKind::kMatmul) flops += kernel.flops.value();
  }
  return flops;
}

struct Flops3 {
  double forward = 0;
  double inputs = 0;
  double weights = 0;
};

Flops3 flops_of(const Layer& layer) {
  Flops3 sum;
  for (const LayerOp& op : layer.ops) {
    sum.forward += matmul_flops(op.forward);
    sum.inputs += matmul_flops(op.input_gradient);
    sum.weights += matmul_flops(op.weight_gradient);
  }
  return sum;
}

constexpr std::int64_t kTokens = 4096;
constexpr std::int64_t kRank = 16;

Shard shard() {
  return {.sequence_length = kTokens};
}

// Llama-3 8B: qkv 4096 -> 6144, out 4096 -> 4096, gate and up 4096 -> 28672, down 14336 -> 4096; 32
// blocks of rank x (in + out) each.
TEST(AdaptersTest, CountsWhatIsTrained) {
  const std::int64_t block = 10240 + 8192 + 32768 + 18432;
  EXPECT_EQ(adapter_parameter_count(llama3_8b(), {.rank = kRank}), 32 * kRank * block);
}

TEST(AdaptersTest, AFrozenModelHasNoWeightGradientsButThoseOfItsAdapters) {
  const ModelLayers whole = build_layers(llama3_8b(), shard());
  const ModelLayers adapted = with_adapters(whole, {.rank = kRank}, shard().types);
  const Layer& before = whole.block(0);
  const Layer& after = adapted.block(0);
  EXPECT_EQ(after.frozen(), before.parameters());
  const double beside = 2.0 * kTokens * static_cast<double>(after.parameters());
  EXPECT_DOUBLE_EQ(flops_of(after).forward, flops_of(before).forward + beside);
  EXPECT_DOUBLE_EQ(flops_of(after).inputs, flops_of(before).inputs + beside);
  EXPECT_DOUBLE_EQ(flops_of(after).weights, beside);
  for (const Layer* layer : {&adapted.embedding, &adapted.head}) {
    EXPECT_EQ(layer->parameters(), 0);
    EXPECT_GT(layer->frozen(), 0);
    EXPECT_DOUBLE_EQ(flops_of(*layer).weights, 0);
  }
}

TEST(AdaptersTest, StandWhereTheyAreAsked) {
  using enum AdapterPlace;
  const auto count = [](const ModelSpec& model, std::vector<AdapterPlace> places) {
    return adapter_parameter_count(model, {.rank = kRank, .places = std::move(places)});
  };
  EXPECT_EQ(count(llama3_8b(), {kQkv}), 32 * kRank * 10240);
  EXPECT_EQ(count(llama3_8b(), {kOut}), 32 * kRank * 8192);
  EXPECT_EQ(count(llama3_8b(), {kMlp, kQkv}), 32 * kRank * (10240 + 32768 + 18432));
  EXPECT_EQ(count(mixtral_8x7b(), {kMlp}), 0) << "all its MLPs are routed";

  const ModelLayers whole = build_layers(llama3_8b(), shard());
  const ModelLayers adapted =
      with_adapters(whole, {.rank = kRank, .places = {kQkv}}, shard().types);
  EXPECT_DOUBLE_EQ(flops_of(adapted.block(0)).weights, 2.0 * kTokens * kRank * 10240);
  EXPECT_EQ(adapted.block(0).frozen(), whole.block(0).parameters()) << "all of the model is frozen";
}

// Parallel branches gather their input once, in front of the first projection. If that one is
// frozen, the MLP's adapters have the input gathered again for their weight gradients.
TEST(AdaptersTest, AdaptersOfAParallelBranchGatherAgain) {
  ModelSpec model = llama3_8b();
  model.parallel_branches = true;
  Shard divided{.sequence_length = kTokens, .tensor = 4, .sequence_parallel = true};
  const ModelLayers whole = build_layers(model, divided);
  const auto regathers = [&](std::vector<AdapterPlace> places) {
    const ModelLayers adapted =
        with_adapters(whole, {.rank = kRank, .places = std::move(places)}, divided.types);
    return std::ranges::count_if(adapted.block(0).ops,
                                 [](const LayerOp& op) { return op.tensor.regathers_input; });
  };
  using enum AdapterPlace;
  EXPECT_EQ(regathers({kQkv, kOut, kMlp}), 1);
  EXPECT_EQ(regathers({kQkv}), 1);
  EXPECT_EQ(regathers({kMlp}), 1);
  EXPECT_EQ(regathers({kOut}), 0) << "it reads what attention made";
}

// Adapters read wide values, so what they read is gathered wide and rounded whole; a frozen matmul
// makes nothing for a weight gradient.
TEST(AdaptersTest, NarrowOperandsThatNobodyReadsAreNotMade) {
  Shard divided{.sequence_length = kTokens, .tensor = 4, .sequence_parallel = true};
  divided.types.matmul = DataType::kFp8;
  divided.narrow.gather_narrow = true;
  divided.narrow.transpose_operands = true;
  const ModelLayers whole = build_layers(llama3_8b(), divided);
  const ModelLayers adapted =
      with_adapters(whole, {.rank = kRank, .places = {AdapterPlace::kQkv}}, divided.types);
  const auto op = [](const ModelLayers& layers, std::string_view name) {
    return *std::ranges::find(layers.block(0).ops, name, text_of_op);
  };
  EXPECT_EQ(op(whole, "qkv_projection").tensor.input_gathered_as, DataType::kFp8);
  EXPECT_EQ(op(adapted, "qkv_projection").tensor.input_gathered_as, std::nullopt);
  EXPECT_EQ(op(adapted, "qkv_projection").forward[0].written, Bytes(kTokens * 4096));
  EXPECT_EQ(op(adapted, "gate_up_projection").tensor.input_gathered_as, DataType::kFp8) << "frozen";
  EXPECT_EQ(op(whole, "gate_up_projection").input_gradient[0].written,
            2 * op(adapted, "gate_up_projection").input_gradient[0].written);
}

TEST(AdaptersTest, RoutedExpertsGetNone) {
  const Shard one = shard();
  const ModelLayers adapted =
      with_adapters(build_layers(mixtral_8x7b(), one), {.rank = kRank}, one.types);
  EXPECT_EQ(adapted.block(0).parameters(Region::kExpert), 0);
  EXPECT_GT(adapted.block(0).frozen(Region::kExpert), 0);
  EXPECT_EQ(adapted.block(0).parameters(), kRank * (10240 + 8192)) << "attention's";
}

}  // namespace
}  // namespace stepsim
