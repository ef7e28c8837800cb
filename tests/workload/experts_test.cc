// Experts: compares what a chip computes, holds and sends with counts by hand.

#include "workload/experts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "tests/support/layer_ops.h"
#include "tests/support/published_models.h"
#include "workload/layers.h"
#include "workload/model_counts.h"

namespace stepsim {
namespace {

// Mixtral 8x7B: 32 layers of 8 experts of width 14336, 2 a token.
TEST(ExpertsTest, MixtralHasItsPublishedParameters) {
  EXPECT_EQ(parameter_count(mixtral_8x7b()), 46'702'792'704);
  EXPECT_EQ(active_parameter_count(mixtral_8x7b()), 12'879'925'248);
}

std::int64_t parameters_of(const ModelLayers& layers) {
  std::int64_t sum = layers.embedding.parameters() + layers.head.parameters();
  for (const std::uint32_t kind : layers.kind_of_block) sum += layers.blocks[kind].parameters();
  return sum;
}

TEST(ExpertsTest, OneChipHoldsThePublishedParameters) {
  const ModelLayers layers = build_layers(mixtral_8x7b(), {.sequence_length = 1024});
  EXPECT_EQ(parameters_of(layers), parameter_count(mixtral_8x7b()));
  EXPECT_EQ(layers.blocks.size(), 1U);
}

TEST(ExpertsTest, ExpertParallelismDividesTheExpertsAlone) {
  const ModelSpec model = mixtral_8x7b();
  const Layer all = build_layers(model, {.sequence_length = 1024}).block(0);
  const Layer part =
      build_layers(model, {.sequence_length = 1024, .experts = {.parts = 4, .tensor = 2}}).block(0);
  EXPECT_EQ(8 * part.parameters(Region::kExpert), all.parameters(Region::kExpert));
  EXPECT_EQ(all.parameters(Region::kExpert), 8 * 3 * 4096 * 14336);
  EXPECT_EQ(part.parameters(Region::kSequence), all.parameters(Region::kSequence));
  EXPECT_EQ(part.parameters(Region::kTensor), all.parameters(Region::kTensor));
}

double matmul_flops(const ModelLayers& layers) {
  double sum = 0;
  const auto add = [&sum](const Layer& layer) {
    for (const LayerOp& op : layer.ops) {
      for (const auto* kernels : {&op.forward, &op.input_gradient, &op.weight_gradient}) {
        for (const Kernel& kernel : *kernels) {
          if (kernel.kind == KernelKind::kMatmul) sum += kernel.flops.value();
        }
      }
    }
  };
  for (const std::uint32_t kind : layers.kind_of_block) add(layers.blocks[kind]);
  add(layers.head);
  return sum;
}

// Every chip sends as many copies as it receives: balanced routing divides the work of `expert`
// chips' tokens by `expert`, whatever `expert` is.
TEST(ExpertsTest, KernelsAddUpToTheFlopsOfTheActiveParameters) {
  const ModelSpec model = mixtral_8x7b();
  const double expected = 6.0 * 1024 * static_cast<double>(matmul_parameter_count(model));
  for (const std::int64_t expert : {1, 2, 8}) {
    EXPECT_EQ(
        matmul_flops(build_layers(model, {.sequence_length = 1024, .experts = {.parts = expert}})),
        expected);
  }
}

TEST(ExpertsTest, AChipOfATensorGroupHasItsShareOfTheExpertsFlops) {
  const ModelSpec model = mixtral_8x7b();
  for (const std::int64_t expert_tensor : {1, 2, 4}) {
    const ModelLayers layers =
        build_layers(model, {.sequence_length = 1024,
                             .tensor = 4,
                             .sequence_parallel = true,
                             .experts = {.parts = 2, .tensor = expert_tensor}});
    EXPECT_EQ(4 * matmul_flops(layers),
              6.0 * 1024 * static_cast<double>(matmul_parameter_count(model)));
  }
}

TEST(ExpertsTest, DispatchSendsACopyForEachExpertOfAToken) {
  Shard shard{
      .sequence_length = 1024, .tensor = 2, .sequence_parallel = true, .experts = {.parts = 4}};
  shard.types.matmul = shard.types.dispatch = DataType::kFp8;
  const TokenRouting routing = *build_layers(mixtral_8x7b(), shard).block(0).routing;
  EXPECT_EQ(routing.tokens, 512);
  EXPECT_EQ(routing.copies, 2);
  EXPECT_EQ(routing.dispatched, Bytes(4096));
  EXPECT_EQ(routing.combined, Bytes(8192));
}

TEST(ExpertsTest, CopiesFollowTheLoad) {
  ExpertSpec experts{.routed = 4, .per_token = 1, .intermediate = 8};
  EXPECT_EQ(copies_by_expert_rank(experts, 2, 1000), (std::vector<std::int64_t>{500, 500}));
  experts.load = {3, 3, 1, 1};
  EXPECT_EQ(copies_by_expert_rank(experts, 2, 1000), (std::vector<std::int64_t>{750, 250}));
  EXPECT_EQ(copies_by_expert_rank(experts, 4, 1000),
            (std::vector<std::int64_t>{375, 375, 125, 125}));
  // Even shares are 250; at most 1.2 x 250 = 300 come to the two that more would choose.
  experts.capacity_factor = 1.2;
  EXPECT_EQ(copies_by_expert_rank(experts, 4, 1000),
            (std::vector<std::int64_t>{300, 300, 125, 125}));
}

TEST(ExpertsTest, CopiesAddUpWhenTheyDontDivide) {
  const ExpertSpec experts{
      .routed = 6, .per_token = 1, .intermediate = 8, .load = {1, 2, 3, 4, 5, 6}};
  const std::vector<std::int64_t> copies = copies_by_expert_rank(experts, 6, 1001);
  EXPECT_EQ(std::accumulate(copies.begin(), copies.end(), std::int64_t{0}), 1001);
}

TEST(ExpertsTest, TheBusyChipComputesMore) {
  ModelSpec model = mixtral_8x7b();
  model.experts.load = {3, 1, 1, 1, 1, 1, 1, 1};
  Shard shard{.sequence_length = 1000, .experts = {.parts = 8}};
  const double busy = matmul_flops(build_layers(model, shard));
  shard.experts.rank = 1;
  const double idle = matmul_flops(build_layers(model, shard));
  // 16,000 copies of 8 chips: 4,800 and 1,600, of 6 FLOPs for each of 3 x 4096 x 14336 parameters.
  EXPECT_EQ(busy - idle, 32 * 6.0 * 3200 * 3 * 4096 * 14336);
}

TEST(ExpertsTest, ASharedGateWeighsTheSharedResult) {
  ModelSpec model = mixtral_8x7b();
  model.experts.shared_intermediate = 1024;
  const ModelLayers plain = build_layers(model, {.sequence_length = 256});
  model.experts.shared_gate = true;
  const ModelLayers gated = build_layers(model, {.sequence_length = 256});
  EXPECT_EQ(parameters_of(gated), parameter_count(model));
  EXPECT_EQ(parameters_of(gated) - parameters_of(plain), 32 * 4096);
  EXPECT_EQ(gated.block(0).saved() - plain.block(0).saved(), Bytes(256 * 4096 * 2));
  EXPECT_EQ(matmul_flops(gated), 6.0 * 256 * static_cast<double>(matmul_parameter_count(model)));
}

// A bias of the hidden width after the down projection; one of the inner width for each of gate and
// up.
TEST(ExpertsTest, SharedExpertsHaveTheBiasesOfTheMlp) {
  ModelSpec model = mixtral_8x7b();
  model.experts.shared_intermediate = 1024;
  const ModelLayers plain = build_layers(model, {.sequence_length = 256});
  model.mlp.bias = true;
  const ModelLayers biased = build_layers(model, {.sequence_length = 256});
  const auto parameters = [](const ModelLayers& layers, std::string_view name) {
    return std::ranges::find(layers.block(0).ops, name, text_of_op)->parameters.own;
  };
  for (const auto& [name, bias] : {std::pair<std::string_view, std::int64_t>{
                                       "shared_gate_up_projection", std::int64_t{2} * 1024},
                                   {"shared_down_projection", 4096}}) {
    EXPECT_EQ(parameters(biased, name) - parameters(plain, name), bias) << name;
  }
}

// bf16: the tokens of this chip, and the copies for their 2 experts each.
TEST(ExpertsTest, RouterAndPermutationReadTheTokens) {
  const ModelLayers layers = build_layers(mixtral_8x7b(), {.sequence_length = 256});
  const auto input = [&](std::string_view name) {
    return std::ranges::find(layers.block(0).ops, name, text_of_op)->input;
  };
  EXPECT_EQ(input("router"), Bytes(256 * 4096 * 2));
  EXPECT_EQ(input("permute"), Bytes(256 * 4096 * 2));
  EXPECT_EQ(input("unpermute"), Bytes(2 * 256 * 4096 * 2));
}

TEST(ExpertsTest, RegionsAlternateAsDrawn) {
  ModelSpec model = mixtral_8x7b();
  model.experts.shared_intermediate = 14336;
  std::string regions;
  for (const LayerOp& op : build_layers(model, {.sequence_length = 64}).block(0).ops) {
    regions += "STE"[static_cast<std::size_t>(op.region)];
  }
  EXPECT_EQ(regions, "STTTTSSTTTSSEEESS");
}

// A matmul an expert: as many FLOPs, and each reads its own matrix once. Its weight gradient writes
// nothing by itself; a pass behind it reads and writes the accumulators (8 bytes an element).
TEST(ExpertsTest, ExpertsMultiplyOneByOne) {
  const ModelSpec model = mixtral_8x7b();
  const Shard all{.sequence_length = 1000, .experts = {.parts = 2}};
  Shard single = all;
  single.kernels.grouped_experts = false;
  const ModelLayers grouped = build_layers(model, all);
  const ModelLayers layers = build_layers(model, single);
  EXPECT_EQ(matmul_flops(layers), matmul_flops(grouped));
  const LayerOp& op = op_named(layers.block(0), "expert_gate_up_projection");
  ASSERT_EQ(op.forward.size(), 4U) << "8 experts on 2 chips";
  EXPECT_EQ(op.forward[0].batch, 1);
  EXPECT_EQ(op.forward[0].m, 500) << "1000 tokens x 2 copies x 2 chips / 8";
  ASSERT_EQ(op.weight_gradient.size(), 8U);
  EXPECT_EQ(op.weight_gradient[0].written, Bytes(0));
  EXPECT_EQ(op.weight_gradient[1].read + op.weight_gradient[1].written,
            Bytes(8 * 4096 * 2 * 14336));
  EXPECT_EQ(op.saved.total, op_named(grouped.block(0), op.name.text()).saved.total);
}

// Four passes over the copies, two on the way of the results and two of their gradients; none where
// a chip has one expert, or nothing is sent.
TEST(ExpertsTest, CopiesAreSortedByExpert) {
  const auto passes = [](const Shard& shard) {
    std::int64_t count = 0;
    const ModelLayers layers = build_layers(mixtral_8x7b(), shard);
    for (const LayerOp& op : layers.block(0).ops) {
      for (const auto* kernels : {&op.forward, &op.input_gradient}) {
        for (const Kernel& kernel : *kernels) {
          if (kernel.name != "sort_copies") continue;
          ++count;
          EXPECT_EQ(kernel.read + kernel.written, Bytes(2 * 2 * 2000 * 4096));
        }
      }
    }
    return count;
  };
  EXPECT_EQ(passes({.sequence_length = 1000, .experts = {.parts = 2}}), 0);
  EXPECT_EQ(
      passes({.sequence_length = 1000, .experts = {.parts = 2}, .kernels = {.sort_copies = true}}),
      4);
  EXPECT_EQ(
      passes({.sequence_length = 1000, .experts = {.parts = 8}, .kernels = {.sort_copies = true}}),
      0);
  EXPECT_EQ(
      passes({.sequence_length = 1000, .experts = {.parts = 1}, .kernels = {.sort_copies = true}}),
      0);
}

// Each of 1,000 tokens visits 2 of 8 experts, which have places for 1.25 x 2,000 rows: the experts
// multiply 2,500 rows, and the mask of a sequence has 1,000 x 2,500 values.
TEST(ExpertsTest, MasksCopyTokensIntoAllPlacesOfACapacity) {
  ModelSpec model = mixtral_8x7b();
  model.experts.capacity_factor = 1.25;
  const Shard shard{.sequences = 2, .sequence_length = 1000, .kernels = {.mask_dispatch = true}};
  const ModelLayers layers = build_layers(model, shard);
  const auto flops = [&](std::string_view op, std::string_view kernel) {
    double sum = 0;
    for (const auto* kernels :
         {&op_named(layers.block(0), op).forward, &op_named(layers.block(0), op).input_gradient}) {
      for (const Kernel& one : *kernels) {
        if (one.name == kernel) sum += one.flops.value();
      }
    }
    return sum;
  };
  const double product = 2.0 * 2 * 1000 * 2500 * 4096;
  EXPECT_EQ(flops("permute", "dispatch_mask"), product);
  EXPECT_EQ(flops("permute", "combine_mask"), product);
  EXPECT_EQ(flops("unpermute", "combine_mask"), product);
  EXPECT_EQ(flops("unpermute", "dispatch_mask"), product);
  EXPECT_EQ(flops("unpermute", "mask_gradient"), product);
}

}  // namespace
}  // namespace stepsim
