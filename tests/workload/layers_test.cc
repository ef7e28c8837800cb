#include "workload/layers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tests/support/layer_ops.h"
#include "tests/support/published_models.h"
#include "workload/model_counts.h"
#include "workload/parts/kernels.h"

namespace stepsim {
namespace {

using namespace literals;

// FLOPs by kind of kernel.
struct Work {
  double matmul = 0;
  double attention_forward = 0;
  double attention_backward = 0;
};

Work work_of(const Layer& layer) {
  Work work;
  for (const LayerOp& op : layer.ops) {
    for (const auto* kernels : {&op.forward, &op.input_gradient, &op.weight_gradient}) {
      for (const Kernel& kernel : *kernels) {
        const double flops = kernel.flops.value();
        if (kernel.kind == KernelKind::kMatmul) work.matmul += flops;
        if (kernel.kind == KernelKind::kAttentionForward) work.attention_forward += flops;
        if (kernel.kind == KernelKind::kAttentionBackward) work.attention_backward += flops;
      }
    }
  }
  return work;
}

Work work_of(const ModelLayers& layers, std::int64_t blocks) {
  const Work block = work_of(layers.block(0));
  return {.matmul = static_cast<double>(blocks) * block.matmul + work_of(layers.head).matmul,
          .attention_forward = static_cast<double>(blocks) * block.attention_forward,
          .attention_backward = static_cast<double>(blocks) * block.attention_backward};
}

std::int64_t parameters_of(const ModelLayers& layers, std::int64_t blocks) {
  return layers.embedding.parameters() + blocks * layers.block(0).parameters() +
         layers.head.parameters();
}

Shard whole(std::int64_t sequences, std::int64_t sequence_length) {
  return {.sequences = sequences, .sequence_length = sequence_length};
}

Shard eighth(std::int64_t sequences, std::int64_t sequence_length) {
  return {.sequences = sequences,
          .sequence_length = sequence_length,
          .tensor = 8,
          .sequence_parallel = true};
}

TEST(KernelsTest, AMatmulReadsBothInputsAndWritesItsResultOnce) {
  const Kernel kernel = matmul("product", {}, {.batch = 3, .m = 10, .n = 20, .k = 30});
  EXPECT_EQ(kernel.flops, Flops(2 * 3 * 10 * 20 * 30));
  EXPECT_EQ(kernel.read, Bytes(3 * (10 * 30 + 30 * 20) * 2));
  EXPECT_EQ(kernel.written, Bytes(3 * 10 * 20 * 2));
}

TEST(KernelsTest, AnAccumulatingMatmulReadsAndWritesFp32) {
  const Kernel kernel =
      accumulating_matmul("gradient", {.result = DataType::kFp32}, {.m = 10, .n = 20, .k = 30});
  EXPECT_EQ(kernel.read, Bytes((10 * 30 + 30 * 20) * 2 + 10 * 20 * 4));
  EXPECT_EQ(kernel.written, Bytes(10 * 20 * 4));
}

TEST(KernelsTest, AttentionCountsHalfThePairsIfCausalAndKeysOnceAKvHead) {
  AttentionShape shape{.sequences = 2,
                       .heads = 8,
                       .kv_heads = 2,
                       .queries = 100,
                       .keys = 100,
                       .qk_dim = 16,
                       .v_dim = 32,
                       .pairs = attention_pairs(100, true, 0)};
  const Kernel forward = attention_forward("attention", DataType::kBf16, shape);
  // 2 FLOPs x 5000 pairs x 2 sequences x 8 heads x (16 + 32).
  EXPECT_EQ(forward.flops, Flops(2.0 * 5000 * 2 * 8 * 48));
  // q 2 x 100 x 8 x 16, k 2 x 100 x 2 x 16, v 2 x 100 x 2 x 32, in two bytes each.
  EXPECT_EQ(forward.read, Bytes((25'600 + 6'400 + 12'800) * 2));
  // output 2 x 100 x 8 x 32 in two bytes, log-sum-exp 2 x 100 x 8 in four.
  EXPECT_EQ(forward.written, Bytes(51'200 * 2 + 1'600 * 4));

  const Kernel backward = attention_backward("attention", DataType::kBf16, shape);
  EXPECT_EQ(backward.flops, 2.5 * forward.flops);
  EXPECT_EQ(backward.read, Bytes((25'600 + 6'400 + 12'800 + 2 * 51'200) * 2 + 1'600 * 4));
  EXPECT_EQ(backward.written, forward.read);

  shape.pairs = attention_pairs(100, false, 0);
  EXPECT_EQ(attention_forward("attention", DataType::kBf16, shape).flops, 2 * forward.flops);
}

TEST(LayersTest, ABlockOfLlama3KeepsEachActivationOnce) {
  // 8,192 tokens, tensor and sequence parallel over 8, in bytes on one chip:
  const Bytes stream(8192 * 8192 * 2 / 8);  // one [tokens, hidden]: 16,777,216
  const Bytes kv(8192 * 1024 * 2 / 8);      // keys of 8 heads: 2,097,152
  const Bytes mlp(8192 * 28672 * 2 / 8);    // one [tokens, intermediate]: 58,720,256
  const Bytes log_sum_exp(8192 * 64 / 8 * 4);
  const Layer block = build_layers(llama3_70b(), eighth(1, 8192)).block(0);
  EXPECT_EQ(op_named(block, "attention_norm").saved.total, stream);
  EXPECT_EQ(op_named(block, "qkv_projection").saved.total, stream)
      << "its part of the norm's output";
  EXPECT_EQ(op_named(block, "rope").saved.total, 0_B);
  EXPECT_EQ(op_named(block, "attention").saved.total, 2 * stream + 2 * kv + log_sum_exp)
      << "q, output";
  EXPECT_EQ(op_named(block, "out_projection").saved.total, 0_B) << "attention keeps its output";
  EXPECT_EQ(op_named(block, "attention_residual").saved.total, 0_B);
  EXPECT_EQ(op_named(block, "mlp_norm").saved.total, stream);
  EXPECT_EQ(op_named(block, "gate_up_projection").saved.total, stream);
  EXPECT_EQ(op_named(block, "mlp_activation").saved.total, 2 * mlp) << "gate and up";
  EXPECT_EQ(op_named(block, "down_projection").saved.total, mlp) << "their product";
  EXPECT_EQ(op_named(block, "mlp_residual").saved.total, 0_B);
  EXPECT_EQ(block.saved(), 6 * stream + 2 * kv + 3 * mlp + log_sum_exp);
  EXPECT_EQ(block.saved(), Bytes(281'280'512));
}

TEST(LayersTest, ABlockOfGpt3KeepsWhatKorthikantiCountWithoutDropoutMasks) {
  // arXiv 2205.05198, equation 4 without the 5 a s / h of the unfused scores: s b h (34 / t). Of
  // the 34, two are the dropout masks after attention and MLP; fused attention adds 4 bytes a row.
  const std::int64_t s = 2048, b = 2, h = 12288, t = 8, heads = 96;
  const ModelLayers layers = build_layers(gpt3_175b(), eighth(b, s));
  EXPECT_EQ(layers.block(0).saved(), Bytes(s * b * h * 32 / t + s * b * heads * 4 / t));
}

TEST(LayersTest, WithoutSequenceParallelismTheStreamIsKeptWhole) {
  // Equation 2 of the same: s b h (10 + 24 / t), of which the two dropout masks are 2 of the 10.
  const std::int64_t s = 2048, b = 2, h = 12288, t = 8, heads = 96;
  Shard shard = eighth(b, s);
  shard.sequence_parallel = false;
  const ModelLayers layers = build_layers(gpt3_175b(), shard);
  EXPECT_EQ(layers.block(0).saved(),
            Bytes(s * b * h * 8 + s * b * h * 24 / t + s * b * heads * 4 / t));
  for (const LayerOp& op : layers.block(0).ops)
    EXPECT_FALSE(op.tensor.regathers_input) << op.name.text();
}

TEST(LayersTest, OnlyOpsThatReadGatheredTokensGatherThemAgain) {
  const ModelLayers layers = build_layers(llama3_70b(), eighth(1, 8192));
  for (const LayerOp& op : layers.block(0).ops) {
    const bool gathers = op.name == "qkv_projection" || op.name == "gate_up_projection";
    EXPECT_EQ(op.tensor.regathers_input, gathers) << op.name.text();
  }
  EXPECT_TRUE(op_named(layers.head, "unembedding").tensor.regathers_input);
  EXPECT_EQ(layers.boundary, Bytes(8192 * 8192 * 2));
}

TEST(LayersTest, RegionsAlternateAsDrawn) {
  const Layer block = build_layers(llama3_70b(), eighth(1, 8192)).block(0);
  std::string regions;
  for (const LayerOp& op : block.ops) regions += op.region == Region::kSequence ? 'S' : 'T';
  // norm | qkv, rope, attention, out | add, norm | gate_up, activation, down | add
  EXPECT_EQ(regions, "STTTTSSTTTS");
}

TEST(LayersTest, MatmulKernelsAddUpToTheModelsFlops) {
  for (const ModelSpec& model : {llama3_8b(), llama3_70b(), llama2_13b(), gpt3_175b()}) {
    const std::int64_t s = 4096;
    const Work work = work_of(build_layers(model, whole(1, s)), model.layers);
    const double matmul =
        6.0 * static_cast<double>(s) * static_cast<double>(matmul_parameter_count(model));
    EXPECT_EQ(work.matmul, matmul) << model.name;
    // The model's FLOPs outside matmuls are 3 x attention forward. The kernels recompute the scores
    // in the backward and run 3.5 x.
    const double attention = model_flops(model, 1, s, AttentionFlops::kCausal) - matmul;
    EXPECT_DOUBLE_EQ(3 * work.attention_forward, attention) << model.name;
    EXPECT_EQ(work.attention_backward, 2.5 * work.attention_forward) << model.name;
  }
}

// 4,096 tokens are 20 documents of 200 and one of 96.
TEST(LayersTest, AttentionStaysWithinDocuments) {
  const ModelSpec model = llama3_8b();
  Shard packed = whole(2, 4096);
  packed.document_length = 200;
  const Work work = work_of(build_layers(model, packed), model.layers);
  const double pairs = 20 * 200.0 * 200 / 2 + 96.0 * 96 / 2;
  EXPECT_DOUBLE_EQ(work.attention_forward, 2 * 2 * pairs * 32 * (128 + 128) * 32);
  EXPECT_EQ(work.matmul, work_of(build_layers(model, whole(2, 4096)), model.layers).matmul);
  const double flops = model_flops(model, 2, 4096, AttentionFlops::kCausal, 200);
  EXPECT_DOUBLE_EQ(flops - work.matmul, 3 * work.attention_forward);
  EXPECT_EQ(model_flops(model, 2, 4096, AttentionFlops::kFull, 200),
            model_flops(model, 2, 4096, AttentionFlops::kFull))
      << "the convention counts every pair of the sequence";

  const Layer block = build_layers(model, packed).block(0);
  const auto& ops = block.ops;
  const auto op = std::ranges::find(ops, std::string_view("attention"), text_of_op);
  ASSERT_NE(op, ops.end());
  EXPECT_EQ(op->forward.front().m, 200);
  EXPECT_EQ(op->forward.front().n, 200);
  EXPECT_EQ(op->forward.front().batch, 20 * 2 * 32);
}

// Two of four context ranks' heads or tokens: the kernel sees documents, whoever divides them.
TEST(LayersTest, ContextRanksSeeDocumentsToo) {
  Shard packed = whole(1, 8192);
  packed.document_length = 512;
  packed.context = 4;
  const Layer block = build_layers(llama3_8b(), packed).block(0);
  const auto op = std::ranges::find(block.ops, std::string_view("attention"), text_of_op);
  EXPECT_EQ(op->forward.front().m, 512);
  EXPECT_EQ(op->forward.front().n, 512);
  EXPECT_EQ(op->forward.front().batch, 4 * 32) << "2,048 queries";
}

TEST(LayersTest, ShardsDivideTheMatmulsExactly) {
  const ModelSpec model = llama3_70b();
  const Work all = work_of(build_layers(model, whole(2, 4096)), model.layers);
  for (const std::int64_t tensor : {2, 4, 8}) {
    for (const bool sequence_parallel : {false, true}) {
      const Shard shard{.sequences = 2,
                        .sequence_length = 4096,
                        .tensor = tensor,
                        .sequence_parallel = sequence_parallel};
      const Work part = work_of(build_layers(model, shard), model.layers);
      EXPECT_EQ(static_cast<double>(tensor) * part.matmul, all.matmul);
      EXPECT_EQ(static_cast<double>(tensor) * part.attention_forward, all.attention_forward);
    }
  }
}

TEST(LayersTest, SequenceParallelismDividesTheNorms) {
  const Layer whole_block = build_layers(llama3_70b(), whole(1, 8192)).block(0);
  const Layer block = build_layers(llama3_70b(), eighth(1, 8192)).block(0);
  const Kernel& all = op_named(whole_block, "mlp_norm").forward.front();
  const Kernel& part = op_named(block, "mlp_norm").forward.front();
  EXPECT_EQ(8 * part.flops, all.flops);
  EXPECT_EQ(8 * part.written, all.written);
}

TEST(LayersTest, OneChipHoldsThePublishedParameters) {
  for (const ModelSpec& model : {llama3_8b(), llama3_405b(), llama2_13b(), gpt3_175b()}) {
    const ModelLayers layers = build_layers(model, whole(1, 2048));
    EXPECT_EQ(parameters_of(layers, model.layers), parameter_count(model)) << model.name;
  }
}

TEST(LayersTest, ShardsHoldTheParametersOnceAndTheNormsEach) {
  const ModelSpec model = llama3_70b();
  const std::int64_t norms = (2 * 80 + 1) * 8192;  // replicated
  const std::int64_t part = parameters_of(build_layers(model, eighth(1, 8192)), model.layers);
  EXPECT_EQ(8 * (part - norms) + norms, parameter_count(model));
}

TEST(LayersTest, ColumnBiasesAreDividedAndRowBiasesReplicated) {
  ModelSpec model = gpt3_175b();
  model.embedding.vocabulary = 51200;  // a multiple of 8
  const std::int64_t h = 12288;
  // Replicated: 2 norms of 2 h and 2 row biases of h a block, the final norm, the positions.
  const std::int64_t replicated = 96 * 6 * h + 2 * h + 2048 * h;
  const std::int64_t part = parameters_of(build_layers(model, eighth(1, 2048)), model.layers);
  EXPECT_EQ(8 * (part - replicated) + replicated, parameter_count(model));
}

TEST(LayersTest, AVocabularyThatDoesNotDivideIsPadded) {
  const ModelLayers layers = build_layers(gpt3_175b(), eighth(1, 2048));
  // 50257 / 8 = 6282.125: 6283 rows a chip.
  EXPECT_EQ(op_named(layers.embedding, "embedding").parameters.own, 6283 * 12288);
  EXPECT_EQ(op_named(layers.head, "unembedding").forward.front().n, 6283);
  EXPECT_EQ(op_named(layers.head, "unembedding").parameters.own, 0) << "tied";
}

TEST(LayersTest, WeightGradientsAccumulateInFp32) {
  const LayerOp down =
      op_named(build_layers(llama3_70b(), eighth(1, 8192)).block(0), "down_projection");
  ASSERT_EQ(down.weight_gradient.size(), 1U);
  // [8192, 3584] weights: 4 bytes read and 4 written each, beside the two bf16 inputs.
  EXPECT_EQ(down.weight_gradient.front().written, Bytes(8192 * 3584 * 4));
  EXPECT_EQ(down.weight_gradient.front().read,
            Bytes(8192 * 3584 * 4 + (8192 * 8192 + 8192 * 3584) * 2));
}

TEST(LayersTest, TheHeadKeepsLogitsAndTwoStatisticsAToken) {
  const ModelLayers layers = build_layers(llama3_70b(), eighth(1, 8192));
  const LayerOp& loss = op_named(layers.head, "cross_entropy");
  // 128256 / 8 = 16032 bf16 logits, two fp32 statistics and an 8-byte target a token.
  EXPECT_EQ(loss.saved.total, Bytes(8192 * (16032 * 2 + 2 * 4 + 8)));
  EXPECT_EQ(loss.tensor.reduced_values_per_token, 3);
  EXPECT_EQ(op_named(layers.head, "final_norm").saved.total, Bytes(8192 * 8192 * 2 / 8));
}

// The bytes in memory for 1,000 tokens' logits while a loss of several kernels runs.
TEST(LayersTest, ALossInPassesKeepsFp32) {
  const std::int64_t tokens = 1024, logits = tokens * 128'256;
  const auto head_of = [&](LossKernels loss, std::int64_t tensor) {
    return build_layers(llama3_70b(),
                        {.sequence_length = tokens, .tensor = tensor, .loss = {.kernels = loss}})
        .head;
  };
  const Layer in_place = head_of(LossKernels::kInPlace, 1);
  EXPECT_EQ(op_named(in_place, "cross_entropy").saved.total, Bytes(logits * 4 + tokens * (4 + 8)));
  EXPECT_EQ(op_named(in_place, "cross_entropy").workspace.forward, Bytes(logits * 2 + tokens * 12));
  EXPECT_EQ(op_named(in_place, "cross_entropy").workspace.backward, Bytes(logits * 2));
  // Log-softmax, the gradients of it and of the fp32 copy, and the block of the bf16 logits.
  const LayerOp separate = op_named(head_of(LossKernels::kSeparate, 1), "cross_entropy");
  EXPECT_EQ(separate.saved.total + separate.workspace.backward, Bytes(logits * 14 + tokens * 12));
  const Shard holds{.sequence_length = tokens,
                    .loss = {.kernels = LossKernels::kSeparate, .hold_logits = true}};
  const LayerOp held = op_named(build_layers(llama3_70b(), holds).head, "cross_entropy");
  EXPECT_EQ(held.saved.total + held.workspace.backward, Bytes(logits * 16 + tokens * 12));
  EXPECT_EQ(held.saved.total, separate.saved.total);
  Shard holds_in_place = holds;
  holds_in_place.loss.kernels = LossKernels::kInPlace;
  const LayerOp held_in_place =
      op_named(build_layers(llama3_70b(), holds_in_place).head, "cross_entropy");
  EXPECT_EQ(held_in_place.saved.total + held_in_place.workspace.backward,
            Bytes(logits * 8 + tokens * 12));
  const LayerOp parallel = op_named(head_of(LossKernels::kSeparate, 8), "cross_entropy");
  EXPECT_EQ(parallel.saved.total + parallel.workspace.backward,
            Bytes(logits / 8 * 18 + tokens * 12));
  // The gradient of the logits takes the logits' place only in the fused kernel.
  const auto workspace = [&](LossKernels loss) {
    return op_named(head_of(loss, 1), "unembedding").workspace.backward;
  };
  EXPECT_EQ(workspace(LossKernels::kInPlace) - workspace(LossKernels::kFused), Bytes(logits * 2));
}

// Each metric makes an fp32 copy (6 bytes a logit) and a log-softmax (4 + 4 + 8) in the main head
// alone, and needs room for both.
TEST(LayersTest, MetricsPassOverTheLogitsAgain) {
  const std::int64_t tokens = 1024, logits = tokens * 128'256;
  const auto loss_with = [&](std::int64_t metrics, LossKernels loss) {
    const Shard shard{.sequence_length = tokens,
                      .loss = {.kernels = loss, .metric_losses = metrics}};
    return op_named(build_layers(llama3_70b(), shard).head, "cross_entropy");
  };
  const auto traffic = [](const LayerOp& op) {
    Bytes bytes{};
    for (const Kernel& kernel : op.forward) bytes += kernel.read + kernel.written;
    return bytes;
  };
  for (const LossKernels kind :
       {LossKernels::kFused, LossKernels::kInPlace, LossKernels::kSeparate}) {
    const LayerOp without = loss_with(0, kind);
    const LayerOp with_two = loss_with(2, kind);
    EXPECT_EQ(traffic(with_two) - traffic(without), Bytes(2 * 22 * logits));
    EXPECT_EQ(with_two.input_gradient.size(), without.input_gradient.size());
    EXPECT_EQ(with_two.saved.total, without.saved.total);
    EXPECT_EQ(with_two.workspace.forward, std::max(without.workspace.forward, Bytes(8 * logits)));
  }
}

// Bytes of device memory traffic per bf16 logit, forward and backward, counted in the software.
// Megatron-LM's passes (vocab_parallel cross entropy) write in place. PyTorch's log-softmax reads
// three times and writes once (SoftMax.cu); its backward reads one tensor twice and one once. Over
// a tensor group its loss_parallel has a kernel for each step.
TEST(LayersTest, TrafficOfALoss) {
  const std::int64_t tokens = 1024;
  const auto traffic = [&](LossKernels loss, std::int64_t tensor, bool forward) {
    const Layer head =
        build_layers(llama3_70b(),
                     {.sequence_length = tokens, .tensor = tensor, .loss = {.kernels = loss}})
            .head;
    const LayerOp& op = op_named(head, "cross_entropy");
    double bytes = 0;
    for (const Kernel& kernel : forward ? op.forward : op.input_gradient) {
      bytes += static_cast<double>((kernel.read + kernel.written).value());
    }
    return std::round(bytes / static_cast<double>(tokens * 128'256 / tensor));
  };
  using enum LossKernels;
  EXPECT_EQ(traffic(kFused, 1, true), 2);
  EXPECT_EQ(traffic(kFused, 1, false), 2 + 2);
  EXPECT_EQ(traffic(kInPlace, 1, true), 6 + 4 + 8 + 8 + 4 + 8);
  EXPECT_EQ(traffic(kInPlace, 1, false), 8 + 6);
  EXPECT_EQ(traffic(kSeparate, 1, true), 6 + 4 + 4 + 8);
  EXPECT_EQ(traffic(kSeparate, 1, false), 4 + 4 + 12 + 6);
  EXPECT_EQ(traffic(kSeparate, 8, true), 6 + 4 + 8 + 8 + 4 + 8);
  EXPECT_EQ(traffic(kSeparate, 8, false), 4 + 8 + 12 + 8 + 6);
  for (const std::int64_t tensor : {1, 8}) {
    const auto all = [&](LossKernels loss) {
      return traffic(loss, tensor, true) + traffic(loss, tensor, false);
    };
    EXPECT_LT(all(kFused), std::min(all(kInPlace), all(kSeparate)));
    EXPECT_EQ(all(kSeparate) < all(kInPlace), tensor == 1) << "one kernel in place of several";
  }
}

TEST(LayersTest, TheLookupDoesNoArithmeticForward) {
  const ModelLayers layers = build_layers(llama3_70b(), eighth(1, 8192));
  const LayerOp& lookup = op_named(layers.embedding, "embedding");
  EXPECT_EQ(lookup.forward.front().flops, Flops(0));
  EXPECT_TRUE(lookup.input_gradient.empty());
  // Scatter-add: an eighth of the gradient's rows, bf16 in, fp32 read and written.
  ASSERT_EQ(lookup.weight_gradient.size(), 1U);
  EXPECT_EQ(lookup.weight_gradient.front().read, Bytes(8192 * 1024 * (2 + 4)));
  EXPECT_EQ(lookup.weight_gradient.front().written, Bytes(8192 * 1024 * 4));
}

TEST(LayersTest, LearnedPositionsReplaceRope) {
  const ModelLayers gpt = build_layers(gpt3_175b(), whole(1, 2048));
  EXPECT_EQ(gpt.embedding.ops.size(), 2U);
  EXPECT_THROW(op_named(gpt.block(0), "rope"), std::out_of_range);
  const ModelLayers llama = build_layers(llama3_8b(), whole(1, 2048));
  EXPECT_EQ(llama.embedding.ops.size(), 1U);
  EXPECT_NO_THROW(op_named(llama.block(0), "rope"));
}

TEST(LayersTest, BytesFollowTheDataType) {
  Shard shard = eighth(1, 8192);
  const ModelLayers two = build_layers(llama3_70b(), shard);
  shard.types = all_of_type(DataType::kFp32);
  const ModelLayers four = build_layers(llama3_70b(), shard);
  EXPECT_EQ(four.boundary, 2 * two.boundary);
  EXPECT_EQ(op_named(four.block(0), "down_projection").saved.total,
            2 * op_named(two.block(0), "down_projection").saved.total);
}

// Each operand that is rounded is read once more, in bf16. Rounded weights are rounded twice.
TEST(LayersTest, ScalesOfATensorAreFoundBeforeItIsRounded) {
  const auto count = [](const Shard& shard, std::string_view name) {
    std::int64_t kernels = 0;
    const ModelLayers layers = build_layers(llama3_8b(), shard);
    for (const LayerOp& op : layers.block(0).ops) {
      for (const auto* list : {&op.forward, &op.input_gradient, &op.weight_gradient}) {
        kernels += std::ranges::count(*list, name, &Kernel::name);
      }
    }
    return kernels;
  };
  Shard shard{.sequence_length = 1024};
  shard.types.matmul = DataType::kFp8;
  EXPECT_EQ(count(shard, "find_scale"), 0);
  EXPECT_EQ(count(shard, "round_weight"), 0);
  const std::int64_t rounded = count(shard, "round_input") + count(shard, "round_gradient");
  EXPECT_GE(rounded, 4 + 4) << "inputs and gradients of four projections";
  shard.narrow.current_scaling = true;
  EXPECT_EQ(count(shard, "find_scale"), rounded);
  shard.narrow.round_weights = true;
  EXPECT_EQ(count(shard, "round_weight"), 4 * 2);
  EXPECT_EQ(count(shard, "find_scale"), rounded + 4 * 2);
  shard.narrow.scale_block = 128;
  EXPECT_EQ(count(shard, "find_scale"), 0) << "a block's scale is found where it is rounded";
}

}  // namespace
}  // namespace stepsim
