#include "workload/parts/eager.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/layer_ops.h"
#include "tests/support/published_models.h"
#include "workload/layers.h"

namespace stepsim {
namespace {

constexpr std::int64_t kTokens = 1024;

ModelLayers eager(const ModelSpec& model) {
  return with_eager_kernels(build_layers(model, {.sequence_length = kTokens}), model,
                            DataType::kBf16);
}

// RMS norm: cast 2 + 4, square 8, mean 4, scale 8, cast 4 + 2, weight 4: 36 bytes a value.
TEST(EagerTest, ANormTakesAPassForEachStep) {
  const ModelLayers layers = eager(llama3_8b());
  const LayerOp& norm = op_named(layers.block(0), "mlp_norm");
  EXPECT_EQ(norm.forward.size(), 6U);
  EXPECT_EQ(moved(norm.forward), Bytes(36 * kTokens * 4096));
}

// The norm keeps its values in fp32 and rounded, SwiGLU also what SiLU made.
TEST(EagerTest, KernelsKeepWhatTheirBackwardReads) {
  const ModelLayers layers = eager(llama3_8b());
  const LayerOp& norm = op_named(layers.block(0), "mlp_norm");
  EXPECT_EQ(norm.saved.total, Bytes(6 * kTokens * 4096));
  EXPECT_EQ(norm.saved.inside, Bytes(4 * kTokens * 4096)) << "recomputed with the norm";
  const LayerOp& activation = op_named(layers.block(0), "mlp_activation");
  EXPECT_EQ(activation.saved.total, Bytes((4 + 2) * kTokens * 14336));
  const ModelLayers before = build_layers(llama3_8b(), {.sequence_length = kTokens});
  EXPECT_EQ(op_named(before.block(0), "mlp_norm").saved.total, Bytes(2 * kTokens * 4096));
}

// SiLU 4 bytes, product 6; backward two products and SiLU's, 6 each.
TEST(EagerTest, AGatedActivationIsTwoKernels) {
  const ModelLayers layers = eager(llama3_8b());
  const LayerOp& activation = op_named(layers.block(0), "mlp_activation");
  EXPECT_EQ(moved(activation.forward), Bytes(10 * kTokens * 14336));
  EXPECT_EQ(moved(activation.input_gradient), Bytes(18 * kTokens * 14336));
}

// PaddleNLP fuses norms and rotations, not the gate.
TEST(EagerTest, TheGateAloneMayBeEager) {
  const ModelLayers before = build_layers(llama3_8b(), {.sequence_length = kTokens});
  const ModelLayers layers =
      with_eager_kernels(before, llama3_8b(), DataType::kBf16, EagerKernels::kGate);
  EXPECT_EQ(op_named(layers.block(0), "mlp_activation").saved.total,
            Bytes((4 + 2) * kTokens * 14336));
  for (const char* name : {"mlp_norm", "rope"}) {
    const LayerOp& op = op_named(layers.block(0), name);
    EXPECT_EQ(op.saved.total, op_named(before.block(0), name).saved.total) << name;
    EXPECT_EQ(moved(op.forward), moved(op_named(before.block(0), name).forward)) << name;
  }
}

// Query, key and value have three copies of the norm's result in place of one, gate and up two;
// each is read and written. Matmuls that are divided by rows have their own part already.
TEST(EagerTest, MatmulsDividedByColumnsMayCopyTheirInput) {
  const ModelLayers before = build_layers(llama3_8b(), {.sequence_length = kTokens, .tensor = 2});
  const ModelLayers layers = with_input_copies(before, DataType::kBf16);
  const Bytes input(2 * kTokens * 4096);
  const auto more = [&](const char* name) {
    const LayerOp& op = op_named(layers.block(0), name);
    const LayerOp& old = op_named(before.block(0), name);
    return std::pair(op.saved.total - old.saved.total, moved(op.forward) - moved(old.forward));
  };
  EXPECT_EQ(more("qkv_projection"), std::pair(2 * input, 3 * 2 * input));
  EXPECT_EQ(more("gate_up_projection"), std::pair(input, 2 * 2 * input));
  EXPECT_EQ(more("out_projection"), std::pair(Bytes(0), Bytes(0)));
  EXPECT_EQ(more("down_projection"), std::pair(Bytes(0), Bytes(0)));
}

// 32 and 8 heads of 128: cast 6, complex product 8, cast 6.
TEST(EagerTest, ARotationIsDoneInFp32) {
  const LayerOp& rope = op_named(eager(llama3_8b()).block(0), "rope");
  EXPECT_EQ(moved(rope.forward), Bytes(20 * kTokens * 40 * 128));
}

TEST(EagerTest, LayerNormAndGeluAreOneKernelEach) {
  const ModelSpec model = gpt3_175b();
  const ModelLayers before = build_layers(model, {.sequence_length = kTokens});
  const ModelLayers after = eager(model);
  for (std::size_t i = 0; i < before.block(0).ops.size(); ++i) {
    const LayerOp& op = after.block(0).ops[i];
    if (op.columns.empty()) {
      EXPECT_EQ(before.block(0).ops[i].forward, op.forward);
    }
  }
}

std::uint32_t launches(const std::vector<Kernel>& kernels) {
  std::uint32_t sum = 0;
  for (const Kernel& kernel : kernels) sum += kernel.launches;
  return sum;
}

// Hugging Face's LlamaDecoderLayer: two norms of 8, queries, keys and values, their rotation in 10,
// attention and its output, two residuals, gate and up, SiLU and product, down.
TEST(EagerTest, ABlockHasAsManyLaunchesAsKernelsThatRun) {
  const ModelLayers layers = eager(llama3_8b());
  std::uint32_t forward = 0, backward = 0;
  for (const LayerOp& op : layers.block(0).ops) {
    forward += launches(op.forward);
    backward += launches(op.input_gradient) + launches(op.weight_gradient);
  }
  EXPECT_EQ(forward, 2 * 8 + 3 + 10 + 2 + 2 + 2 + 2 + 1);
  EXPECT_NEAR(backward, 87, 9);
}

// Queries, keys and values give three gradients of their input, which two kernels add up.
TEST(EagerTest, GradientsOfMatricesSideBySideAreAddedUp) {
  const LayerOp& qkv = op_named(eager(llama3_8b()).block(0), "qkv_projection");
  ASSERT_EQ(qkv.input_gradient.size(), 3U);
  EXPECT_EQ(moved({qkv.input_gradient[1], qkv.input_gradient[2]}), Bytes(2 * 6 * kTokens * 4096));
}

}  // namespace
}  // namespace stepsim
