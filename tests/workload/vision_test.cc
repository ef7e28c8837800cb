// The vision part of a model, counted by hand.

#include "workload/vision.h"

#include <gtest/gtest.h>

#include "tests/support/layer_ops.h"
#include "tests/support/small_model.h"
#include "workload/layers.h"
#include "workload/model_counts.h"

namespace stepsim {
namespace {

// That of Qwen3.5-27B.
ModelSpec with_pictures() {
  ModelSpec model = small_model();
  model.hidden = 5120;
  model.vision = {.layers = 27,
                  .hidden = 1152,
                  .heads = 16,
                  .intermediate = 4304,
                  .patch = 16,
                  .frames = 2,
                  .merge = 2,
                  .positions = 2304};
  return model;
}

// The published file has 460,730,096 parameters of it.
TEST(VisionTest, HasThePublishedParameters) {
  ASSERT_EQ(check(with_pictures()), std::vector<Problem>{});
  EXPECT_EQ(vision_parameter_count(with_pictures()), 460'730'096);
}

// 4,096 patches: 2 x the matrices' parameters for each, and all pairs of them in every block.
TEST(VisionTest, FlopsAreThoseOfMatricesAndPairs) {
  const double patches = 4096, width = 1152;
  const double block = 4 * width * width + 2 * width * 4304;
  const double pairs = patches * patches * 16 * 2 * (1152 / 16);
  const VisionFlops flops = vision_flops(with_pictures(), 4096);
  EXPECT_DOUBLE_EQ(flops.encoder,
                   2 * patches * (3 * 2 * 256 * width + 27 * block) + 27 * 2 * pairs);
  EXPECT_DOUBLE_EQ(flops.projectors, 2 * patches / 4 * (4608.0 * 4608 + 4608.0 * 5120));
}

TEST(VisionTest, StandsBeforeTheEmbeddingWhereThereArePictures) {
  EXPECT_EQ(build_layers(with_pictures(), {.sequence_length = 64}).vision.blocks, 0);
  const VisionLayers vision =
      build_layers(with_pictures(), {.sequence_length = 64, .pictures = 3, .picture_tokens = 16})
          .vision;
  EXPECT_EQ(vision.blocks, 27);
  EXPECT_EQ(op_named(vision.entry, "patch_projection").forward[0].m, 3 * 16 * 4);
  EXPECT_EQ(op_named(vision.projector, "projector_down_projection").forward[0].m, 3 * 16);
}

TEST(VisionTest, AFrozenLayerHasNoBackwardAndKeepsNothing) {
  const VisionLayers vision = vision_layers(with_pictures(), {.sequence_length = 64});
  const Layer layer = frozen(vision.block);
  EXPECT_EQ(layer.parameters(), 0);
  EXPECT_EQ(layer.frozen(), vision.block.parameters());
  EXPECT_EQ(layer.saved(), Bytes(0));
  for (const LayerOp& op : layer.ops) {
    EXPECT_TRUE(op.input_gradient.empty() && op.weight_gradient.empty());
  }
}

}  // namespace
}  // namespace stepsim
