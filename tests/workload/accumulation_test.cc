#include "workload/parts/accumulation.h"

#include <gtest/gtest.h>

#include "tests/support/layer_ops.h"
#include "tests/support/published_models.h"
#include "workload/layers.h"

namespace stepsim {
namespace {

// A matmul that accumulates moves 8 bytes a parameter of its result; one that does not 2, and the
// two kernels behind it 2 + 4 and 8 + 4.
TEST(AccumulationTest, SumsTakeKernelsOfTheirOwn) {
  const ModelLayers fused = build_layers(llama3_8b(), {.sequence_length = 1024});
  const ModelLayers apart = with_separate_accumulation(fused);
  for (const char* name : {"qkv_projection", "out_projection", "gate_up_projection"}) {
    const LayerOp& before = op_named(fused.block(0), name);
    const LayerOp& after = op_named(apart.block(0), name);
    EXPECT_EQ(after.weight_gradient.size(), before.weight_gradient.size() + 2);
    EXPECT_EQ(moved(after.weight_gradient),
              moved(before.weight_gradient) + Bytes((2 + 18 - 8) * before.parameters.own))
        << name;
    EXPECT_EQ(after.weight_gradient.front().flops, before.weight_gradient.front().flops);
    EXPECT_FALSE(after.weight_gradient.front().accumulates);
  }
  EXPECT_EQ(op_named(apart.block(0), "attention").weight_gradient.size(), 0U);
}

// The head of tied embeddings writes its gradient in 16 bits too; the sums are the embedding's.
TEST(AccumulationTest, TiedHeadsHaveNoSumsOfTheirOwn) {
  ModelSpec model = llama3_8b();
  model.embedding.tied = true;
  const ModelLayers apart =
      with_separate_accumulation(build_layers(model, {.sequence_length = 1024}));
  const LayerOp& head = op_named(apart.head, "unembedding");
  ASSERT_EQ(head.weight_gradient.size(), 1U);
  EXPECT_FALSE(head.weight_gradient[0].accumulates);
  EXPECT_EQ(head.weight_gradient[0].written, Bytes(2 * 128256 * 4096));
}

}  // namespace
}  // namespace stepsim
