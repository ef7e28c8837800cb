#include "analysis/accuracy/slice_words.h"

#include <gtest/gtest.h>

namespace stepsim {
namespace {

Hardware v5p() {
  return {.names = {"TPU v5p"},
          .chip = "tpu-v5p",
          .cluster = "v5p",
          .chips_per_node = 1,
          .multislice = "multislice-v5p",
          .cores_per_chip = 2};
}

std::string cluster(const char* inside, const char* between, std::int64_t chips) {
  return slice_cluster(v5p(), slice_words(inside, between), chips).name;
}

std::string problem(const char* inside, const char* between, std::int64_t chips) {
  return slice_cluster(v5p(), slice_words(inside, between), chips).problem;
}

TEST(SliceWordsTest, NamesOfSlicesCountCores) {
  EXPECT_EQ(cluster("ICI torus (v5p-128 slice)", "n/a (one slice)", 64), "v5p-64");
  EXPECT_EQ(problem("ICI torus (v5p-64 slice)", "", 64),
            "the slice of 64 cores or chips is not the 64 chips of the run");
}

TEST(SliceWordsTest, AxesAreTakenAsTheyAre) {
  EXPECT_EQ(cluster("ICI topology 8x12x16", "n/a (one pod)", 1536), "v5p-8x12x16");
  EXPECT_EQ(problem("ICI topology 8x12x16", "", 1024),
            "the slice 8x12x16 does not have the 1024 chips of the run");
}

TEST(SliceWordsTest, SeveralSlicesStandOnANetwork) {
  EXPECT_EQ(cluster("ICI torus (v5p-128 slice)", "DCN between 16 slices (data parallel)", 1024),
            "multislice-v5p-16x64");
  EXPECT_EQ(cluster("", "2 slices over data-center network", 128), "multislice-v5p-2x64");
  EXPECT_EQ(cluster("ICI 3D torus, 3072-chip pods", "DCN between 2 pods", 6144),
            "multislice-v5p-2x3072");
  EXPECT_EQ(problem("", "3 slices", 128), "128 chips are not 3 equal slices");
}

TEST(SliceWordsTest, WithoutWordsTheChipsAreOneSlice) {
  EXPECT_EQ(cluster("", "", 512), "v5p-512");
  EXPECT_EQ(cluster("ICI", "not stated", 512), "v5p-512");
}

}  // namespace
}  // namespace stepsim
