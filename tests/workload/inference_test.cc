// Passes of inference: caches, FLOPs and bytes counted by hand.

#include "workload/inference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/layer_ops.h"
#include "tests/support/published_models.h"
#include "workload/parts/layer_op.h"

namespace stepsim {
namespace {

// DeepSeek-V3's attention (arXiv 2412.19437).
ModelSpec latent() {
  return {
      .name = "latent",
      .layers = 61,
      .hidden = 7168,
      .attention = {.heads = 128, .kv_heads = 128, .head_dim = 192},
      .mlp = {.width = 18432},
      .embedding = {.vocabulary = 129280},
      .latent = {.q_rank = 1536, .kv_rank = 512, .nope_dim = 128, .rope_dim = 64, .v_dim = 128}};
}

RequestBatch decoding(std::int64_t sequences, std::int64_t keys) {
  return {
      .groups = {{.sequences = sequences, .queries = 1, .cached = keys - 1, .generates = true}}};
}

RequestBatch prompts(std::int64_t sequences, std::int64_t tokens, std::int64_t cached = 0) {
  return {.groups = {{.sequences = sequences, .queries = tokens, .cached = cached}}};
}

const LayerOp& op(const Layer& layer, std::string_view name) {
  const auto found = std::ranges::find(layer.ops, name, text_of_op);
  if (found == layer.ops.end()) throw std::logic_error("no op " + std::string(name));
  return *found;
}

double flops_of(const ModelLayers& layers) {
  double sum = 0;
  const auto add = [&sum](const Layer& layer) {
    for (const LayerOp& op : layer.ops) {
      for (const Kernel& kernel : op.forward) {
        if (kernel.kind != KernelKind::kElementwise) sum += kernel.flops.value();
      }
    }
  };
  for (const std::uint32_t kind : layers.kind_of_block) add(layers.blocks[kind]);
  add(layers.head);
  return sum;
}

// 8 key-value heads on 16 chips: by head each chip reads one head of 20 requests, by request all
// heads of two. Queries of 4 heads and a 16th of new keys and values leave for the chips of their
// requests, as if 32 had come, and results of 4 heads come back.
TEST(InferenceTest, CachesByRequestAreReadOnce) {
  const RequestBatch batch = decoding(20, 8192);
  Shard shard{.tensor = 16};
  const ModelLayers heads = inference_layers(llama3_70b(), shard, batch);
  shard.cache.split = CacheSplit::kRequests;
  const ModelLayers requests = inference_layers(llama3_70b(), shard, batch);
  const LayerOp& by_head = op(heads.blocks[0], "attention");
  const LayerOp& by_request = op(requests.blocks[0], "attention");
  EXPECT_EQ(by_head.forward.size(), 1u);
  EXPECT_EQ(by_head.pass.sent_before, Bytes(0));
  const std::int64_t token = 2 * 128 * 2;
  EXPECT_NEAR(static_cast<double>(by_head.forward[0].read.value()), 20.0 * 8192 * token,
              1e-3 * 20.0 * 8192 * token);
  EXPECT_NEAR(static_cast<double>(by_request.forward[0].read.value()), 2.0 * 8192 * 8 * token,
              1e-3 * 2.0 * 8192 * 8 * token);
  EXPECT_EQ(by_request.forward[0].flops.value() * 20, by_head.forward[0].flops.value() * 32);
  EXPECT_EQ(by_request.pass.sent_before, Bytes(32 * (4 * 128 + 2 * 8 * 128 / 16) * 2));
  EXPECT_EQ(by_request.pass.sent_after, Bytes(32 * 4 * 128 * 2));
}

Shard ring_of(PromptRing ring, std::int64_t ranks, std::int64_t rank) {
  return {.tensor = 8, .prompt = {.parts = ranks, .ring = ring, .rank = rank}};
}

double attention_flops(const std::vector<Kernel>& kernels) {
  double sum = 0;
  for (const Kernel& kernel : kernels) {
    if (kernel.kind == KernelKind::kAttentionForward) sum += kernel.flops.value();
  }
  return sum;
}

// Of a causal prompt of n parts, rank r scores its own half part and the r parts before it, n^2 / 2
// in all; with two stretches each rank scores n / 2 parts, half a part with every hop.
TEST(InferenceTest, ARingScoresThePairsOfItsTokens) {
  constexpr std::int64_t kRanks = 4;
  const RequestBatch batch = prompts(1, 4096);
  const ModelLayers whole = inference_layers(llama3_70b(), {.tensor = 8}, batch);
  const double all = attention_flops(op(whole.blocks[0], "attention").forward);
  const double part = 2 * all / (kRanks * kRanks);
  for (std::int64_t rank = 0; rank < kRanks; ++rank) {
    const auto parts = [&](PromptRing ring) {
      const ModelLayers layers = inference_layers(llama3_70b(), ring_of(ring, kRanks, rank), batch);
      return op(layers.blocks[0], "attention").pass.parts;
    };
    const auto stretches = parts(PromptRing::kStretch);
    const auto zigzag = parts(PromptRing::kZigzag);
    ASSERT_EQ(stretches.size(), 4u);
    for (std::int64_t hop = 0; hop < kRanks; ++hop) {
      const auto at = static_cast<std::size_t>(hop);
      const double expected = hop == 0 ? part / 2 : hop <= rank ? part : 0;
      EXPECT_NEAR(attention_flops(stretches[at]), expected, 1e-9 * all) << rank << " " << hop;
      EXPECT_EQ(stretches[at].empty(), expected == 0);
      EXPECT_NEAR(attention_flops(zigzag[at]), part / 2, 1e-9 * all) << rank << " " << hop;
    }
  }
}

// Each rank hands on its keys and values: one of 8 heads of 1,024 + 512 tokens, 2 x 128 values of
// two bytes; those of the cache in fp8. All new tokens score all of the cache.
TEST(InferenceTest, ARingPassesTheCacheRound) {
  RequestBatch batch = prompts(2, 4096, 2048);
  batch.cache = DataType::kFp8;
  const LayerOp ring =
      op(inference_layers(llama3_70b(), ring_of(PromptRing::kZigzag, 4, 1), batch).blocks[0],
         "attention");
  EXPECT_EQ(ring.pass.handed_round, Bytes(2 * (1024 * 256 * 2 + 512 * 256)));
  EXPECT_EQ(ring.pass.gathered_before, Bytes(0));
  const ModelLayers gathers =
      inference_layers(llama3_70b(), {.tensor = 8, .prompt = {.parts = 4}}, batch);
  const LayerOp& gather = op(gathers.blocks[0], "attention");
  EXPECT_EQ(gather.pass.gathered_before, 4 * ring.pass.handed_round);
  EXPECT_NEAR(attention_flops(ring.forward) / attention_flops(gather.forward), 1, 1e-12);
  // Two parts of others instead of all.
  EXPECT_EQ(gather.workspace.forward - ring.workspace.forward, 2 * ring.pass.handed_round);
}

// Latents go round; a rank multiplies those of the others, and those of its own part of the cache.
TEST(InferenceTest, LatentsGoRound) {
  const RequestBatch batch = prompts(1, 4096, 2048);
  const ModelLayers layers = inference_layers(latent(), ring_of(PromptRing::kZigzag, 4, 2), batch);
  const LayerOp& ring = op(layers.blocks[0], "attention");
  EXPECT_EQ(ring.pass.handed_round, Bytes((1024 + 512) * 576 * 2));
  std::vector<std::int64_t> multiplied;
  for (const std::vector<Kernel>& part : ring.pass.parts) {
    multiplied.push_back(part.front().kind == KernelKind::kMatmul ? part.front().m : 0);
  }
  EXPECT_EQ(multiplied, (std::vector<std::int64_t>{512, 1536, 1536, 1536}));
}

// A latent is on every chip by head; by request a chip has those of its own requests, and only
// queries travel.
TEST(InferenceTest, LatentsByRequestAreReadOnce) {
  const RequestBatch batch = decoding(16, 4096);
  Shard shard{.tensor = 8};
  const ModelLayers heads = inference_layers(latent(), shard, batch);
  shard.cache.split = CacheSplit::kRequests;
  const ModelLayers requests = inference_layers(latent(), shard, batch);
  const LayerOp& by_head = op(heads.blocks[0], "attention");
  const LayerOp& by_request = op(requests.blocks[0], "attention");
  EXPECT_LT(by_request.forward[0].read.value(), by_head.forward[0].read.value() / 4);
  EXPECT_EQ(by_request.forward[0].flops, by_head.forward[0].flops);
  EXPECT_EQ(by_request.pass.sent_before, Bytes(16 * 16 * 576 * 2));
  EXPECT_EQ(by_request.pass.sent_after, Bytes(16 * 16 * 512 * 2));
}

// 2 x 80 layers x 8 heads x 128 x 2 bytes; of latents 61 layers x 576 x 2.
TEST(InferenceTest, ACacheHasKeysAndValuesOrLatents) {
  EXPECT_EQ(cache_bytes_per_token(llama3_70b(), DataType::kBf16), Bytes(327'680));
  EXPECT_EQ(cache_bytes_per_token(llama3_70b(), DataType::kFp8), Bytes(163'840));
  EXPECT_EQ(cache_bytes_per_token(latent(), DataType::kBf16), Bytes(70'272));
}

TEST(InferenceTest, ALayerWithAWindowKeepsNoMoreThanThat) {
  ModelSpec model = llama3_70b();
  model.attention.window = 1024;
  model.mixer_pattern = "LG";
  ASSERT_EQ(check(model), std::vector<Problem>{});
  const auto of = [&](Mixer mixer, std::int64_t tokens) {
    return cache_size(model, {.mixer = mixer}, 1, DataType::kBf16, tokens);
  };
  const Bytes token(2 * 8 * 128 * 2);
  EXPECT_EQ(of(Mixer::kGlobal, 8192), 8192 * token);
  EXPECT_EQ(of(Mixer::kLocal, 8192), 1024 * token);
  EXPECT_EQ(of(Mixer::kLocal, 100), 100 * token);
}

TEST(InferenceTest, HeadsOfTheCacheAreDividedAsFarAsTheyGo) {
  const auto on_chip = [](std::int64_t tensor) {
    return cache_size(llama3_70b(), {}, tensor, DataType::kBf16, 10);
  };
  EXPECT_EQ(on_chip(8), on_chip(1) / 8);
  EXPECT_EQ(on_chip(16), on_chip(8));  // eight heads are on two chips each
  EXPECT_EQ(cache_size(latent(), {}, 8, DataType::kBf16, 10),
            cache_size(latent(), {}, 1, DataType::kBf16, 10));
}

// Weights: 2 FLOPs a parameter and token. Scores: 2 x keys x heads x (128 + 128) a token and layer.
TEST(InferenceTest, KernelsComputeTheModelFlops) {
  for (const RequestBatch& batch : {decoding(64, 8192), prompts(2, 512), prompts(1, 512, 1024)}) {
    const ModelLayers layers = inference_layers(llama3_70b(), {}, batch);
    EXPECT_NEAR(flops_of(layers) / inference_flops(llama3_70b(), batch), 1, 1e-3);
  }
  const double attention = 64 * 80 * 2.0 * 8192 * 64 * 256;
  const double weights =
      64 * 2.0 *
      (80 * (8192.0 * (8192 + 2048) + 8192.0 * 8192 + 3 * 8192.0 * 28672) + 8192.0 * 128256);
  EXPECT_NEAR(inference_flops(llama3_70b(), decoding(64, 8192)), attention + weights,
              1e-4 * weights);
}

TEST(InferenceTest, GenerationReadsTheCacheOnce) {
  const ModelLayers layers = inference_layers(llama3_70b(), {.tensor = 8}, decoding(64, 8192));
  const std::vector<Kernel>& kernels = op(layers.block(0), "attention").forward;
  ASSERT_EQ(kernels.size(), 1U);
  EXPECT_EQ(kernels[0].kind, KernelKind::kAttentionDecode);
  const Bytes cache = 64 * cache_size(llama3_70b(), {}, 8, DataType::kBf16, 8192);
  EXPECT_NEAR(static_cast<double>(kernels[0].read.value()) / static_cast<double>(cache.value()), 1,
              0.001);  // and the queries
  EXPECT_EQ(op(layers.block(0), "qkv_projection").forward.front().m, 64);
}

TEST(InferenceTest, LatentsAreReadOnceForAllHeads) {
  const ModelLayers layers = inference_layers(latent(), {}, decoding(8, 4096));
  const std::vector<Kernel>& kernels = op(layers.block(0), "attention").forward;
  ASSERT_EQ(kernels.size(), 1U);
  EXPECT_EQ(kernels[0].kind, KernelKind::kLatentDecode);
  const auto cache = static_cast<double>(8 * 4096 * 576 * 2);
  EXPECT_NEAR(static_cast<double>(kernels[0].read.value()) / cache, 1, 0.1);
}

// A chunk of a prompt beside requests that generate: one matmul for all tokens, and a kernel of
// attention for each group.
TEST(InferenceTest, AChunkRunsBesideGeneration) {
  RequestBatch batch = decoding(32, 2048);
  batch.groups.push_back({.queries = 512, .cached = 512});
  const ModelLayers layers = inference_layers(llama3_70b(), {}, batch);
  EXPECT_EQ(op(layers.block(0), "qkv_projection").forward.front().m, 544);
  const std::vector<Kernel>& kernels = op(layers.block(0), "attention").forward;
  ASSERT_EQ(kernels.size(), 3U);  // generation, prompt, its keys and values into the cache
  EXPECT_TRUE(kernels[0].beside_prompts);
  const ModelLayers alone = inference_layers(llama3_70b(), {}, decoding(32, 2048));
  EXPECT_FALSE(op(alone.block(0), "attention").forward.front().beside_prompts);
  // Token i of the chunk sees 512 + i keys.
  const double pairs = 512.0 * 512 + 512.0 * 512 / 2;
  EXPECT_DOUBLE_EQ(kernels[1].flops.value(), 2 * pairs * 64 * 256);
  EXPECT_EQ(op(layers.head, "unembedding").forward.front().m, 33);
}

TEST(InferenceTest, OnlyLastTokensOfPromptsBecomeLogits) {
  const ModelLayers layers = inference_layers(llama3_70b(), {}, prompts(4, 1000));
  EXPECT_EQ(op(layers.head, "unembedding").forward.front().m, 4);
  EXPECT_EQ(layers.head.ops.back().name.text(), "sampling");
}

TEST(InferenceTest, NothingIsKept) {
  const ModelLayers layers = inference_layers(latent(), {.tensor = 4}, prompts(2, 128));
  for (const Layer* const layer : {&layers.embedding, &layers.blocks[0], &layers.head}) {
    EXPECT_EQ(layer->saved(), Bytes(0)) << layer->name;
    for (const LayerOp& op : layer->ops) EXPECT_TRUE(op.input_gradient.empty()) << op.name.text();
  }
}

ModelSpec experts() {
  ModelSpec model = llama3_70b();
  model.experts = {.routed = 64, .per_token = 4, .intermediate = 1024};
  return model;
}

const Kernel& experts_of(const ModelLayers& layers) {
  return op(layers.block(0), "experts").forward.front();
}

// 64 (1 - (1 - 4 / 64)^8) = 25.8 of 64 experts have one of eight tokens.
TEST(InferenceTest, FewTokensReadTheWeightsOfFewExperts) {
  const auto read = [](std::int64_t tokens) {
    const ModelLayers layers = inference_layers(experts(), {}, decoding(tokens, 100));
    return (experts_of(layers).read - Bytes(tokens * 8192 * 2)) / (3 * 8192 * 1024 * 2);
  };
  EXPECT_EQ(read(8), Bytes(26));
  EXPECT_EQ(read(1), Bytes(4));
  EXPECT_EQ(read(4096), Bytes(64));
}

// The tensor group divides the experts: together its ranks compute each copy once.
TEST(InferenceTest, ATensorGroupDividesTheExperts) {
  const auto flops = [](const Shard& shard) {
    const ModelLayers layers = inference_layers(experts(), shard, decoding(64, 100));
    EXPECT_EQ(layers.block(0).routing.has_value(), shard.tensor == 1);
    EXPECT_EQ(is_tensor(op(layers.block(0), "experts")), shard.tensor > 1);
    return experts_of(layers).flops.value();
  };
  const double whole = flops({});
  EXPECT_DOUBLE_EQ(whole, 2.0 * 64 * 4 * 3 * 8192 * 1024);
  EXPECT_DOUBLE_EQ(4 * flops({.tensor = 4, .experts = {.parts = 4}}), whole);
  EXPECT_DOUBLE_EQ(4 * flops({.tensor = 4, .experts = {.tensor = 4}}), whole);
}

TEST(InferenceTest, ExpertsMayComputeInATypeOfTheirOwn) {
  DataTypes types = all_of_type(DataType::kBf16);
  types.experts = DataType::kFp8;
  types.expert_weights = DataType::kFp8;
  const Kernel narrow = experts_of(inference_layers(experts(), {.types = types}, decoding(8, 1)));
  EXPECT_EQ(narrow.type, DataType::kFp8);
  EXPECT_EQ(narrow.stored, std::nullopt);
  types.expert_weights = DataType::kInt4;
  const Kernel wider = experts_of(inference_layers(experts(), {.types = types}, decoding(8, 1)));
  EXPECT_EQ(wider.stored, DataType::kInt4);
  EXPECT_LT(wider.read, narrow.read);
}

// With chances 16 apart the weights of fewer experts are read, of the same FLOPs.
TEST(InferenceTest, PopularExpertsAreSharedByMoreTokens) {
  const auto kernel = [](double spread) {
    return experts_of(inference_layers(experts(), {.expert_spread = spread}, decoding(8, 1)));
  };
  EXPECT_LT(kernel(16).read, kernel(1).read);
  EXPECT_EQ(kernel(16).flops.value(), kernel(1).flops.value());
}

TEST(InferenceTest, WeightsTakeWhatTheirTypesTake) {
  DataTypes types = all_of_type(DataType::kBf16);
  const auto size = [&types] {
    const ModelLayers layers = inference_layers(experts(), {.types = types}, decoding(1, 1));
    return weights_size(layers.block(0), types).value();
  };
  const std::int64_t wide = size();
  const std::int64_t of_experts = 64 * 3 * 8192 * 1024;
  types.expert_weights = DataType::kFp8;
  EXPECT_EQ(size(), wide - of_experts);
  types.weights = DataType::kFp8;
  const std::int64_t attention = 8192 * (8192 + 2048) + 8192 * 8192;
  EXPECT_EQ(size(), wide - of_experts - attention);
}

TEST(InferenceTest, NarrowWeightsAreReadNarrow) {
  DataTypes types = all_of_type(DataType::kBf16);
  types.weights = DataType::kInt8;
  const ModelLayers layers = inference_layers(llama3_70b(), {.types = types}, decoding(8, 100));
  const Kernel& qkv = op(layers.block(0), "qkv_projection").forward.back();
  EXPECT_EQ(qkv.stored, DataType::kInt8);
  EXPECT_EQ(qkv.read, Bytes(8 * 8192 * 2 + 8192 * 10240));
  EXPECT_EQ(op(layers.head, "unembedding").forward.back().stored, std::nullopt);
}

// A state is read and written once a step, whatever came before.
TEST(InferenceTest, AStateTakesTheSameMemoryForever) {
  ModelSpec model = llama3_70b();
  model.mixer_pattern = "S";
  model.state = {.kind = StateKind::kMamba2,
                 .heads = 128,
                 .groups = 8,
                 .key_dim = 128,
                 .value_dim = 64,
                 .convolution = 4};
  ASSERT_EQ(check(model), std::vector<Problem>{});
  const BlockKind kind{.mixer = Mixer::kState};
  EXPECT_EQ(cache_size(model, kind, 1, DataType::kBf16, 10),
            cache_size(model, kind, 1, DataType::kBf16, 100'000));
  EXPECT_EQ(cache_bytes_per_token(model, DataType::kBf16), Bytes(0));
  const ModelLayers layers = inference_layers(model, {}, decoding(16, 4096));
  const Kernel& step = op(layers.block(0), "scan").forward.front();
  const Bytes states(16 * 128 * 128 * 64 * 4);
  EXPECT_GE(step.read, states);
  EXPECT_GE(step.written, states);
  EXPECT_LT(10 * step.read, 11 * states);
}

}  // namespace
}  // namespace stepsim
