// Variations of the block: unfused attention with dropout, latent attention, parallel branches,
// post-norms, multi-token prediction, FP8.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/layer_ops.h"
#include "tests/support/published_models.h"
#include "workload/layers.h"
#include "workload/model_counts.h"

namespace stepsim {
namespace {

std::string regions_of(const Layer& layer) {
  std::string regions;
  for (const LayerOp& op : layer.ops) regions += "STE"[static_cast<std::size_t>(op.region)];
  return regions;
}

// "round_input down_projection"
std::string names_of(const std::vector<Kernel>& kernels) {
  std::string names;
  for (const Kernel& kernel : kernels)
    names += (names.empty() ? "" : " ") + std::string(kernel.name);
  return names;
}

Bytes cheap(const Layer& layer) {
  Bytes sum;
  for (const LayerOp& op : layer.ops) sum += op.saved.inside;
  return sum;
}

// Korthikanti et al. (arXiv 2205.05198), table 2, bytes per layer. The code contains none of these
// formulas: the kernels keep exactly these bytes.
TEST(KorthikantiTest, TheFormulasFallOutOfTheKernelLists) {
  const std::int64_t s = 2048, b = 2, h = 12288, a = 96, t = 8;
  ModelSpec model = gpt3_175b();
  model.dropout = true;
  const auto block = [&](std::int64_t tensor, bool sequence_parallel) {
    return build_layers(model, {.sequences = b,
                                .sequence_length = s,
                                .tensor = tensor,
                                .sequence_parallel = sequence_parallel,
                                .kernels = {.fused_attention = false}})
        .block(0);
  };
  const std::int64_t sbh = s * b * h;
  const std::int64_t scores = 5 * a * s * s * b;  // s b h x 5 a s / h
  EXPECT_EQ(block(1, false).saved(), Bytes(34 * sbh + scores)) << "equation 1";
  EXPECT_EQ(block(t, false).saved(), Bytes(10 * sbh + 24 * sbh / t + scores / t)) << "equation 2";
  EXPECT_EQ(block(t, true).saved(), Bytes(34 * sbh / t + scores / t)) << "equation 4";
  // Selective recompute drops what only attention repeats: equation 6.
  EXPECT_EQ(block(t, true).saved() - cheap(block(t, true)), Bytes(34 * sbh / t));
  EXPECT_EQ(block(t, false).saved() - cheap(block(t, false)), Bytes(10 * sbh + 24 * sbh / t));
  // Full recompute: the input of the layer.
  EXPECT_EQ(block(1, false).ops.front().saved.total, Bytes(2 * sbh));
  EXPECT_EQ(block(t, true).ops.front().saved.total, Bytes(2 * sbh / t));
}

TEST(KorthikantiTest, TheEmbeddingKeepsItsDropoutMask) {
  ModelSpec model = gpt3_175b();
  model.dropout = true;
  const ModelLayers layers = build_layers(
      model, {.sequences = 2, .sequence_length = 2048, .tensor = 8, .sequence_parallel = true});
  EXPECT_EQ(op_named(layers.embedding, "embedding_dropout").saved.total,
            Bytes(2 * 2048 * 12288 / 8));
}

TEST(UnfusedAttentionTest, MultipliesEveryPairSixTimes) {
  Shard shard{.sequence_length = 1024, .kernels = {.fused_attention = false}};
  const LayerOp attention = op_named(build_layers(gpt3_175b(), shard).block(0), "attention");
  Flops forward, backward;
  for (const Kernel& kernel : attention.forward) {
    if (kernel.kind == KernelKind::kMatmul) forward += kernel.flops;
  }
  for (const Kernel& kernel : attention.input_gradient) {
    if (kernel.kind == KernelKind::kMatmul) backward += kernel.flops;
  }
  // Two matmuls of 2 x 1024^2 x 128 FLOPs a head forward, masked pairs too, and four backward.
  EXPECT_EQ(forward, Flops(2 * 2.0 * 1024 * 1024 * 128 * 96));
  EXPECT_EQ(backward, 2 * forward);
  EXPECT_EQ(attention.saved.inside, Bytes(1024 * 1024 * 96 * 2)) << "probabilities, no dropout";
}

ModelSpec deepseek() {
  ModelSpec model{
      .name = "deepseek-v3",
      .layers = 61,
      .hidden = 7168,
      .attention = {.heads = 128, .kv_heads = 128, .head_dim = 192},
      .mlp = {.width = 18432},
      .embedding = {.vocabulary = 129280},
      .latent = {.q_rank = 1536, .kv_rank = 512, .nope_dim = 128, .rope_dim = 64, .v_dim = 128},
      .experts = {.routed = 256,
                  .per_token = 8,
                  .intermediate = 2048,
                  .shared_intermediate = 2048,
                  .first_dense = 3},
      .prediction = {.modules = 1}};
  return model;
}

TEST(LatentAttentionTest, KeepsLatentsAndWhatTheKernelReads) {
  const std::int64_t s = 4096;
  const ModelLayers layers = build_layers(deepseek(), {.sequence_length = s});
  ASSERT_EQ(layers.blocks.size(), 2U);
  const Layer& block = layers.block(0);
  EXPECT_EQ(block.name, "dense block");
  EXPECT_EQ(layers.block(3).name, "expert block");
  EXPECT_EQ(op_named(block, "latent_projection").parameters.own, 7168 * (1536 + 512 + 64));
  EXPECT_EQ(op_named(block, "query_up_projection").parameters.own, 1536 * 128 * 192);
  EXPECT_EQ(op_named(block, "key_value_up_projection").parameters.own, 512 * 128 * 256);
  EXPECT_EQ(op_named(block, "latent_norm").saved.total, Bytes(s * 2048 * 2));
  EXPECT_EQ(op_named(block, "query_up_projection").saved.total, Bytes(s * 1536 * 2));
  EXPECT_EQ(op_named(block, "key_value_up_projection").saved.total, Bytes(s * 512 * 2));
  // q and k of 192 a head, v and output of 128, and the log-sum-exp.
  EXPECT_EQ(op_named(block, "attention").saved.total, Bytes(s * 128 * (2 * 640 + 4)));
}

TEST(LatentAttentionTest, OnlyTheLatentsCrossTheTensorGroup) {
  const ModelLayers layers =
      build_layers(deepseek(), {.sequence_length = 4096, .tensor = 8, .sequence_parallel = true});
  const Layer& block = layers.block(0);
  EXPECT_EQ(regions_of(block), "SSSTTTTTSSTTTS");
  EXPECT_EQ(op_named(block, "query_up_projection").tensor.crossing,
            Bytes(4096 * (1536 + 512 + 64) * 2));
  EXPECT_TRUE(op_named(block, "query_up_projection").tensor.regathers_input);
  EXPECT_FALSE(op_named(block, "key_value_up_projection").tensor.regathers_input);
}

TEST(PredictionTest, AModuleHasAProjectionABlockAndSharedTables) {
  const ModelLayers layers = build_layers(deepseek(), {.sequence_length = 512});
  ASSERT_EQ(layers.prediction.size(), 1U);
  const PredictionModule& module = layers.prediction.front();
  EXPECT_EQ(layers.blocks[module.kind_of_block].name, "expert block");
  EXPECT_EQ(module.entry.parameters(), 2 * 7168 * 7168 + 2 * 7168);
  EXPECT_EQ(module.head.parameters(), 7168) << "its norm";
  EXPECT_EQ(regions_of(module.entry), "TSSS");
  EXPECT_EQ(regions_of(module.head), "STT");
}

TEST(ParallelBranchesTest, ShareANormAndARunOfTensorOps) {
  ModelSpec model = llama3_8b();
  model.parallel_branches = true;
  const Shard shard{.sequence_length = 1024, .tensor = 4, .sequence_parallel = true};
  const Layer block = build_layers(model, shard).block(0);
  EXPECT_EQ(regions_of(block), "STTTTTTTS");
  std::int64_t gathered_again = 0;
  for (const LayerOp& op : block.ops) gathered_again += op.tensor.regathers_input ? 1 : 0;
  EXPECT_EQ(gathered_again, 1);
  const Layer serial = build_layers(llama3_8b(), shard).block(0);
  EXPECT_EQ(serial.parameters() - block.parameters(), 4096) << "a norm";
  EXPECT_EQ(serial.saved() - block.saved(), Bytes(2 * 1024 * 4096 * 2 / 4))
      << "the second norm's input and output";
}

TEST(PostNormsTest, StandBeforeTheAdditions) {
  ModelSpec model = llama3_8b();
  model.norms.post = true;
  const Layer block = build_layers(model, {.sequence_length = 64}).block(0);
  EXPECT_EQ(regions_of(block), "STTTTSSSTTTSS");
  EXPECT_EQ(
      block.parameters() - build_layers(llama3_8b(), {.sequence_length = 64}).block(0).parameters(),
      2 * 4096);
}

TEST(WindowTest, LocalLayersComputeTheirOwnPairs) {
  ModelSpec model = llama3_8b();
  model.attention.window = 512;
  model.mixer_pattern = "LG";
  const ModelLayers layers = build_layers(model, {.sequence_length = 4096});
  ASSERT_EQ(layers.blocks.size(), 2U);
  EXPECT_EQ(layers.block(0).name, "local block");
  const double local = op_named(layers.block(0), "attention").forward.front().flops.value();
  const double global = op_named(layers.block(1), "attention").forward.front().flops.value();
  EXPECT_DOUBLE_EQ(local / global, (4096.0 * 512 - 512 * 512 / 2) / (4096.0 * 4096 / 2));
}

TEST(EncoderTest, LooksAtEveryPair) {
  ModelSpec encoder = gpt3_175b();
  encoder.attention.causal = false;
  const auto flops = [](const ModelSpec& model) {
    return op_named(build_layers(model, {.sequence_length = 512}).block(0), "attention")
        .forward.front()
        .flops;
  };
  EXPECT_EQ(flops(encoder), 2 * flops(gpt3_175b()));
  EXPECT_EQ(model_flops(encoder, 1, 512, AttentionFlops::kCausal),
            model_flops(gpt3_175b(), 1, 512, AttentionFlops::kFull));
}

TEST(ContextParallelismTest, DividesTokensAndPairs) {
  const Layer whole = build_layers(llama3_8b(), {.sequence_length = 8192}).block(0);
  const Layer part = build_layers(llama3_8b(), {.sequence_length = 8192, .context = 4}).block(0);
  EXPECT_EQ(4 * part.saved(), whole.saved());
  EXPECT_EQ(4 * op_named(part, "attention").forward.front().flops,
            op_named(whole, "attention").forward.front().flops);
  EXPECT_EQ(part.parameters(), whole.parameters());
}

TEST(Fp8Test, ProjectionsMultiplyAndKeepInOneByte) {
  Shard shard{.sequence_length = 1024};
  const Layer wide = build_layers(llama3_8b(), shard).block(0);
  shard.types.matmul = DataType::kFp8;
  const Layer narrow = build_layers(llama3_8b(), shard).block(0);
  EXPECT_EQ(2 * op_named(narrow, "qkv_projection").saved.total,
            op_named(wide, "qkv_projection").saved.total);
  EXPECT_EQ(2 * op_named(narrow, "down_projection").saved.total,
            op_named(wide, "down_projection").saved.total);
  EXPECT_EQ(op_named(narrow, "attention").saved.total, op_named(wide, "attention").saved.total);
  const LayerOp down = op_named(narrow, "down_projection");
  ASSERT_EQ(down.forward.size(), 2U);
  EXPECT_EQ(down.forward[0].name, "round_input");
  EXPECT_EQ(down.forward[0].written, Bytes(1024 * 14336));
  EXPECT_EQ(down.forward[1].type, DataType::kFp8);
  EXPECT_EQ(down.forward[1].written, Bytes(1024 * 4096 * 2));
  EXPECT_EQ(down.weight_gradient.front().written, Bytes(4096 * 14336 * 4)) << "fp32 accumulator";
}

// One fp32 scale for 128 values: 132 bytes. Weight gradients sum over tokens, so both operands are
// rounded that way too: the input again from what was kept, the gradient at once.
TEST(Fp8Test, BlocksOfARowHaveScales) {
  Shard shard{.sequence_length = 1024};
  shard.types.matmul = DataType::kFp8;
  shard.narrow.scale_block = 128;
  const LayerOp down = op_named(build_layers(llama3_8b(), shard).block(0), "down_projection");
  EXPECT_EQ(down.saved.total, Bytes(1024 * 14336 / 128 * 132));
  ASSERT_EQ(down.weight_gradient.size(), 2U);
  EXPECT_EQ(down.weight_gradient[0].read + down.weight_gradient[0].written, 2 * down.saved.total);
  EXPECT_TRUE(down.weight_gradient[1].accumulates);
  EXPECT_EQ(down.input_gradient[0].read, Bytes(1024 * 4096 * 2));
  EXPECT_EQ(down.input_gradient[0].written, Bytes(2 * 1024 * 4096 / 128 * 132));
}

// A scale a row costs the kernels along the tokens that blocks cost, but no bytes to speak of.
TEST(Fp8Test, RowsHaveScales) {
  Shard shard{.sequence_length = 1024};
  shard.types.matmul = DataType::kFp8;
  shard.narrow.scale_rows = true;
  const LayerOp down = op_named(build_layers(llama3_8b(), shard).block(0), "down_projection");
  EXPECT_EQ(down.saved.total, Bytes(1024 * 14336));
  ASSERT_EQ(down.weight_gradient.size(), 2U);
  EXPECT_EQ(down.weight_gradient[0].name, "turn_input");
  EXPECT_EQ(down.input_gradient[0].written, Bytes(2 * 1024 * 4096));
}

// 16 values of nvfp4 take 9 bytes, in memory and in what kernels read; both operands of weight
// gradients are rounded along the tokens.
TEST(Fp8Test, FormatsWithScalesAreSmallerStill) {
  Shard shard{.sequence_length = 1024};
  shard.types.matmul = DataType::kNvfp4;
  const LayerOp down = op_named(build_layers(llama3_8b(), shard).block(0), "down_projection");
  EXPECT_EQ(down.saved.total, Bytes(1024 * 14336 / 16 * 9));
  ASSERT_EQ(down.forward.size(), 2U);
  EXPECT_EQ(down.forward[0].written, down.saved.total);
  EXPECT_EQ(down.forward[1].type, DataType::kNvfp4);
  EXPECT_EQ(down.forward[1].read, Bytes((1024 + 4096) * 14336 / 16 * 9));
  EXPECT_EQ(down.forward[1].written, Bytes(1024 * 4096 * 2));
  ASSERT_EQ(down.weight_gradient.size(), 2U);
  EXPECT_EQ(down.weight_gradient[1].written, Bytes(4096 * 14336 * 4)) << "fp32 accumulator";
}

// Gate and up are kept in one byte with scales. They are written beside the product, and the
// backward reads them instead of the two-byte values that the matmul made.
TEST(Fp8Test, InputsOfActivationsAreKeptNarrow) {
  Shard shard{.sequence_length = 1024};
  const LayerOp wide = op_named(build_layers(llama3_8b(), shard).block(0), "mlp_activation");
  shard.narrow.scale_block = 128;
  shard.narrow.activation_input_type = DataType::kFp8;
  const LayerOp narrow = op_named(build_layers(llama3_8b(), shard).block(0), "mlp_activation");
  const Bytes kept(1024 * 2 * 14336 / 128 * 132);
  EXPECT_EQ(wide.saved.total, Bytes(1024 * 2 * 14336 * 2));
  EXPECT_EQ(narrow.saved.total, kept);
  EXPECT_EQ(narrow.forward.front().written - wide.forward.front().written, kept);
  EXPECT_EQ(wide.input_gradient.front().read - narrow.input_gradient.front().read,
            wide.saved.total - kept);
}

// Tokens and the gradients of their results are rounded before they leave, and rounded along the
// other dimension where they arrive.
TEST(Fp8Test, TokensThatTravelNarrowArriveNarrow) {
  Shard shard{.sequence_length = 1024};
  shard.types.matmul = shard.types.dispatch = DataType::kFp8;
  shard.narrow.scale_block = 128;
  const Layer block = build_layers(mixtral_8x7b(), shard).block(0);
  EXPECT_EQ(names_of(op_named(block, "permute").forward), "round_input permute");
  EXPECT_EQ(names_of(op_named(block, "unpermute").input_gradient), "round_gradient permute");
  const LayerOp& up = op_named(block, "expert_gate_up_projection");
  EXPECT_EQ(up.forward.size(), 1U);
  EXPECT_EQ(up.saved.total, Bytes(2 * 1024 * 4096 / 128 * 132));
  const LayerOp& down = op_named(block, "expert_down_projection");
  EXPECT_EQ(down.input_gradient.size(), 1U);
  EXPECT_EQ(names_of(down.weight_gradient), "turn_gradient turn_input expert_down_projection");
  EXPECT_EQ(down.weight_gradient[0].read, Bytes(2 * 1024 * 4096 / 128 * 132)) << "arrived narrow";
}

// With separate kernels the gradient is read twice, once for each direction. Values that the
// backward reads are widened first.
TEST(Fp8Test, SeparateKernelsReadWhatTheyRoundAgain) {
  Shard shard{.sequence_length = 1024, .kernels = {.fused_elementwise = false}};
  shard.types.matmul = DataType::kFp8;
  shard.narrow.scale_block = 128;
  shard.narrow.activation_input_type = DataType::kFp8;
  const Layer block = build_layers(llama3_8b(), shard).block(0);
  const LayerOp& down = op_named(block, "down_projection");
  const Bytes wide(1024 * 4096 * 2);
  const Bytes narrow(1024 * 4096 / 128 * 132);
  EXPECT_EQ(names_of(down.input_gradient), "round_gradient down_projection");
  EXPECT_EQ(down.input_gradient[0].read, wide);
  EXPECT_EQ(down.input_gradient[0].written, narrow);
  EXPECT_EQ(names_of(down.weight_gradient), "turn_gradient turn_input down_projection");
  EXPECT_EQ(down.weight_gradient[0].read, wide);
  EXPECT_EQ(down.weight_gradient[0].written, narrow);
  EXPECT_EQ(down.weight_gradient[1].read, Bytes(1024 * 14336 * 2)) << "made again, wide";
  EXPECT_EQ(down.weight_gradient[1].elementwise, ElementwiseKind::kRounding);

  const LayerOp& activation = op_named(block, "mlp_activation");
  EXPECT_EQ(names_of(activation.forward), "mlp_activation round_input");
  EXPECT_EQ(names_of(activation.again), "mlp_activation");
  EXPECT_EQ(names_of(activation.input_gradient), "widen_input mlp_activation");
  EXPECT_EQ(activation.input_gradient[0].read, activation.saved.total);
  EXPECT_EQ(activation.input_gradient[0].written, Bytes(1024 * 2 * 14336 * 2));

  const Layer experts = build_layers(mixtral_8x7b(), shard).block(0);
  const std::vector<Kernel>& gradient = op_named(experts, "expert_activation").input_gradient;
  EXPECT_EQ(names_of(gradient), "widen_input expert_activation choice_gradient");
  EXPECT_EQ(gradient[2].read, Bytes(2 * 1024 * 14336 * 2 * 2)) << "result and gradient of a copy";
}

TEST(Fp8Test, WeightsAreTurnedForTheirInputGradient) {
  Shard shard{.sequence_length = 1024, .narrow = {.transpose_weights = true}};
  const auto of = [&shard](const char* name) {
    return op_named(build_layers(mixtral_8x7b(), shard).block(0), name).input_gradient;
  };
  EXPECT_EQ(names_of(of("out_projection")), "out_projection") << "bf16 is read either way";
  shard.types.matmul = DataType::kFp8;
  EXPECT_EQ(names_of(of("out_projection")), "round_gradient transpose_weight out_projection");
  EXPECT_EQ(of("out_projection")[1].read, Bytes(4096 * 4096));
  EXPECT_EQ(of("out_projection")[1].written, Bytes(4096 * 4096));
  EXPECT_EQ(of("expert_down_projection")[1].read, Bytes(8 * 14336 * 4096));
  EXPECT_EQ(names_of(of("router")), "choose_experts router") << "stays in bf16";
}

// With one scale a tensor the narrow operands of weight gradients are moved as they are: the kept
// input by a kernel, the gradient by the one that rounds it, which writes it twice.
TEST(Fp8Test, OperandsOfWeightGradientsAreTurned) {
  Shard shard{.sequence_length = 1024, .narrow = {.transpose_operands = true}};
  const auto down = [&shard] {
    return op_named(build_layers(llama3_8b(), shard).block(0), "down_projection");
  };
  EXPECT_EQ(names_of(down().weight_gradient), "down_projection") << "bf16 is read either way";
  shard.types.matmul = DataType::kFp8;
  const LayerOp turned = down();
  EXPECT_EQ(names_of(turned.weight_gradient), "turn_input down_projection");
  EXPECT_EQ(turned.weight_gradient[0].read, Bytes(1024 * 14336));
  EXPECT_EQ(turned.weight_gradient[0].written, Bytes(1024 * 14336));
  EXPECT_EQ(turned.input_gradient[0].written, Bytes(2 * 1024 * 4096));
}

// Each of 4 tensor ranks rounds its own tokens, of inputs that are gathered and of gradients that
// are; what was gathered is turned by all of them.
TEST(Fp8Test, TensorRanksRoundBeforeTheyGather) {
  Shard shard{.sequence_length = 1024, .tensor = 4, .sequence_parallel = true};
  shard.types.matmul = DataType::kFp8;
  const auto of = [&shard](const char* name) {
    return op_named(build_layers(llama3_8b(), shard).block(0), name);
  };
  EXPECT_EQ(of("qkv_projection").forward[0].written, Bytes(1024 * 4096));
  shard.narrow.gather_narrow = true;
  EXPECT_EQ(of("qkv_projection").forward[0].written, Bytes(1024 / 4 * 4096));
  EXPECT_EQ(of("qkv_projection").input_gradient[0].written, Bytes(1024 * 6144 / 4));
  EXPECT_EQ(of("qkv_projection").tensor.input_gathered_as, DataType::kFp8);
  EXPECT_EQ(of("out_projection").forward[0].written, Bytes(1024 * 4096 / 4));
  EXPECT_EQ(of("out_projection").input_gradient[0].written, Bytes(1024 / 4 * 4096));
  EXPECT_EQ(of("out_projection").tensor.gradient_gathered_as, DataType::kFp8);
  shard.narrow.transpose_operands = true;
  EXPECT_EQ(names_of(of("out_projection").weight_gradient),
            "turn_input turn_gradient out_projection");
  EXPECT_EQ(of("out_projection").weight_gradient[1].written, Bytes(1024 * 4096));
  const Layer head = build_layers(llama3_8b(), shard).head;
  EXPECT_EQ(op_named(head, "unembedding").tensor.input_gathered_as, std::nullopt)
      << "it is in bf16";
}

// E5M6: 12 bits and one scale per 128 values, in addition to the 2 bytes that the next matmul
// reads.
TEST(Fp8Test, ResultsOfAttentionAreKeptInSoManyBits) {
  Shard shard{.sequence_length = 1024};
  shard.narrow.scale_block = 128;
  const LayerOp wide = op_named(build_layers(llama3_8b(), shard).block(0), "attention");
  shard.narrow.attention_result_bits = 12;
  const LayerOp narrow = op_named(build_layers(llama3_8b(), shard).block(0), "attention");
  const std::int64_t values = 1024 * 4096;
  EXPECT_EQ(wide.saved.result, Bytes(2 * values));
  EXPECT_EQ(narrow.saved.result, Bytes(values * 12 / 8 + values / 128 * 4));
  EXPECT_EQ(wide.saved.total - narrow.saved.total, wide.saved.result - narrow.saved.result);
  EXPECT_EQ(names_of(narrow.forward), "attention round_result");
  EXPECT_EQ(narrow.forward[1].written, narrow.saved.result);
  EXPECT_EQ(names_of(narrow.again), "attention");
  EXPECT_EQ(names_of(narrow.input_gradient), "widen_result attention");
  EXPECT_EQ(narrow.input_gradient[0].written, wide.saved.result);
}

// 1,500 tokens arrive for 2,048 copies. In both passes the copies are made and summed at the
// experts.
TEST(ExpertsTest, TokensThatComeOnceAreCopiedAtTheExperts) {
  Shard shard{.sequence_length = 1024};
  const Layer sorted = build_layers(mixtral_8x7b(), shard).block(0);
  shard.experts.arriving_tokens = 1500;
  const Layer block = build_layers(mixtral_8x7b(), shard).block(0);
  for (const char* name : {"permute", "unpermute"}) {
    EXPECT_TRUE(op_named(block, name).forward.empty()) << name;
    EXPECT_TRUE(op_named(block, name).input_gradient.empty()) << name;
  }
  const LayerOp& up = op_named(block, "expert_gate_up_projection");
  const LayerOp& down = op_named(block, "expert_down_projection");
  EXPECT_EQ(names_of(up.forward), "permute expert_gate_up_projection");
  EXPECT_EQ(names_of(up.input_gradient), "expert_gate_up_projection unpermute");
  EXPECT_EQ(names_of(down.forward), "expert_down_projection unpermute");
  EXPECT_EQ(names_of(down.input_gradient), "permute expert_down_projection");
  const Bytes rows(1500 * 4096 * 2);
  const Bytes copies(2 * 1024 * 4096 * 2);
  EXPECT_EQ(up.forward[0].read, rows);
  EXPECT_EQ(up.forward[0].written, copies);
  EXPECT_EQ(down.forward[1].read, copies);
  EXPECT_EQ(down.forward[1].written, rows);
  EXPECT_EQ(block.saved(), sorted.saved());
}

}  // namespace
}  // namespace stepsim
