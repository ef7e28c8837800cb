// Compares models of the catalog with what was published about them, and the layers that are built
// from them with their own counts.

#include <gtest/gtest.h>

#include <string>

#include "proto/catalog/catalog.h"
#include "proto/catalog/catalog_reference.h"
#include "proto/to_spec.h"
#include "workload/layers.h"
#include "workload/model_counts.h"

namespace stepsim {
namespace {

ModelSpec model_named(const std::string& name) {
  file::Model message;
  message.set_catalog(name);
  ProblemList problems;
  EXPECT_TRUE(resolve(message, "", problems)) << name;
  const ModelSpec model = to_model(message, problems);
  EXPECT_EQ(problems.all(), std::vector<Problem>{}) << name;
  return model;
}

std::vector<ModelSpec> every_model() {
  std::vector<ModelSpec> models;
  for (const std::string& name : list(CatalogKind::kModel)) models.push_back(model_named(name));
  return models;
}

// The number of elements in the safetensors files on huggingface.co. It excludes the tables that
// DeepSeek-V3 repeats for multi-token prediction, its FP8 scales and the bias of its router.
TEST(CatalogModelsTest, HaveTheParametersOfThePublishedFiles) {
  const std::pair<const char*, std::int64_t> published[] = {
      {"bloom-176b", 176'247'271'424},      {"deepseek-v2", 235'741'434'880},
      {"deepseek-v3", 671'026'404'352},     {"gemma-7b", 8'537'680'896},
      {"gemma2-27b", 27'227'128'320},       {"gpt-oss-120b", 116'829'156'672},
      {"llama2-7b", 6'738'415'616},         {"llama2-13b", 13'015'864'320},
      {"llama2-70b", 68'976'648'192},       {"llama3-8b", 8'030'261'248},
      {"llama3-70b", 70'553'706'496},       {"llama3-405b", 405'853'388'800},
      {"mistral-7b", 7'241'732'096},        {"mixtral-8x7b", 46'702'792'704},
      {"mixtral-8x22b", 140'620'634'112},   {"qwen3-30b-a3b", 30'532'122'624},
      {"qwen3-235b-a22b", 235'093'634'560}, {"yi-34b", 34'388'917'248}};
  for (const auto& [name, parameters] : published) {
    EXPECT_EQ(parameter_count(model_named(name)), parameters) << name;
  }
}

// The printed count in billions, and the unit of its last digit.
TEST(CatalogModelsTest, HaveTheParametersOfThePapers) {
  struct Row {
    const char* name;
    double billions;
    double unit;  // unit of the last printed digit
  };
  // Narayanan et al. (arXiv 2104.04473), table 1; Korthikanti et al. (arXiv 2205.05198), table 3;
  // Chowdhery et al. (arXiv 2204.02311), table 1; the README of Megatron-LM (core 0.8); Brown et
  // al. (arXiv 2005.14165), table 2.1. The first rounds 18.45 down.
  const Row rows[] = {{"megatron-1.7b", 1.7, 0.1},      {"megatron-3.6b", 3.6, 0.1},
                      {"megatron-7.5b", 7.5, 0.1},      {"megatron-18b", 18.4, 0.1},
                      {"megatron-39b", 39.1, 0.1},      {"megatron-76b", 76.1, 0.1},
                      {"megatron-145b", 145.6, 0.1},    {"megatron-310b", 310.1, 0.1},
                      {"megatron-530b", 529.6, 0.1},    {"megatron-1t", 1008.0, 0.1},
                      {"megatron-22b", 22, 1},          {"megatron-175b", 175, 1},
                      {"megatron-h100-7b", 7.1, 0.1},   {"megatron-h100-16b", 16, 1},
                      {"megatron-h100-32b", 32, 1.1},   {"megatron-h100-70b", 70, 1},
                      {"megatron-h100-119b", 119, 1.1}, {"megatron-h100-177b", 177, 1},
                      {"megatron-h100-314b", 314, 1},   {"megatron-h100-462b", 462, 1.1},
                      {"palm-540b", 540.35, 0.01},      {"gpt3-175b", 174.6, 0.1}};
  for (const Row& row : rows) {
    const double billions = static_cast<double>(parameter_count(model_named(row.name))) / 1e9;
    EXPECT_NEAR(billions, row.billions, 0.51 * row.unit + 0.005) << row.name;
  }
}

TEST(CatalogModelsTest, ActivateTheirPublishedParameters) {
  // Mixtral: 12.9B and 39B (arXiv 2401.04088; mistral.ai, 17 April 2024); DeepSeek: 21B and 37B
  // (arXiv 2405.04434, 2412.19437); Qwen3: 22B and 3.3B (arXiv 2505.09388).
  EXPECT_EQ(active_parameter_count(model_named("mixtral-8x7b")), 12'879'925'248);
  EXPECT_NEAR(static_cast<double>(active_parameter_count(model_named("mixtral-8x22b"))), 39e9,
              0.5e9);
  EXPECT_NEAR(static_cast<double>(active_parameter_count(model_named("deepseek-v2"))), 21e9, 0.5e9);
  EXPECT_NEAR(static_cast<double>(active_parameter_count(model_named("qwen3-235b-a22b"))), 22e9,
              0.5e9);
  EXPECT_NEAR(static_cast<double>(active_parameter_count(model_named("qwen3-30b-a3b"))), 3.3e9,
              0.06e9);
  // 37B counts one of the two tables of 129,280 x 7,168: 36.6 without, 37.55 with both.
  const std::int64_t table = std::int64_t{129'280} * 7168;
  EXPECT_NEAR(static_cast<double>(active_parameter_count(model_named("deepseek-v3")) - table), 37e9,
              0.5e9);
  // gpt-oss: 5.13B with the unembedding and without the embedding (arXiv 2508.10925, table 1).
  EXPECT_NEAR(
      static_cast<double>(active_parameter_count(model_named("gpt-oss-120b")) - 201'088 * 2880),
      5.13e9, 0.005e9);
  // The module of multi-token prediction: "14B" with a copy of both tables (DeepSeek-V3's README).
  EXPECT_NEAR(
      static_cast<double>(prediction_parameter_count(model_named("deepseek-v3")) + 2 * table), 14e9,
      0.6e9);
}

// Every layer of the whole model, in order.
template <typename Visit>
void visit_layers(const ModelLayers& layers, Visit visit) {
  visit(layers.embedding);
  for (const std::uint32_t kind : layers.kind_of_block) visit(layers.blocks[kind]);
  visit(layers.head);
  for (const PredictionModule& module : layers.prediction) {
    visit(module.entry);
    visit(layers.blocks[module.kind_of_block]);
    visit(module.head);
  }
}

struct Work {
  double weights = 0;  // matmuls with weights, forward and backward
  double attention_forward = 0;
};

Work work_of(const ModelLayers& layers) {
  Work work;
  visit_layers(layers, [&work](const Layer& layer) {
    for (const LayerOp& op : layer.ops) {
      const bool has_weights = weights_matmul(op) != nullptr;
      for (const auto* kernels : {&op.forward, &op.input_gradient, &op.weight_gradient}) {
        for (const Kernel& kernel : *kernels) {
          if (has_weights && kernel.kind == KernelKind::kMatmul) {
            work.weights += kernel.flops.value();
          }
          if (kernel.kind == KernelKind::kAttentionForward) {
            work.attention_forward += kernel.flops.value();
          }
        }
      }
    }
  });
  return work;
}

TEST(CatalogModelsTest, OneChipHoldsTheWholeModel) {
  for (const ModelSpec& model : every_model()) {
    std::int64_t parameters = 0;
    visit_layers(build_layers(model, {.sequence_length = 256}),
                 [&](const Layer& layer) { parameters += layer.parameters(); });
    EXPECT_EQ(parameters, parameter_count(model) + prediction_parameter_count(model)) << model.name;
  }
}

TEST(CatalogModelsTest, KernelsAddUpToTheModelFlops) {
  for (const ModelSpec& model : every_model()) {
    const Work work = work_of(build_layers(model, {.sequences = 2, .sequence_length = 2048}));
    const double matmul = 6.0 * 4096 * static_cast<double>(matmul_parameter_count(model));
    EXPECT_DOUBLE_EQ(work.weights, matmul) << model.name;
    if (model.state.heads > 0 || model.indexer.heads > 0)
      continue;  // StateMixerTest, SparseAttentionTest
    EXPECT_NEAR((matmul + 3 * work.attention_forward) /
                    model_flops(model, 2, 2048, AttentionFlops::kCausal),
                1, 1e-12)
        << model.name;
  }
}

TEST(CatalogModelsTest, TensorAndSequenceParallelismDivideTheFlops) {
  for (const ModelSpec& model : every_model()) {
    if (model.attention.heads % 8 != 0 || model.attention.kv_heads % 8 != 0 ||
        model.embedding.vocabulary % 8 != 0)
      continue;
    if (model.local.kv_heads % 8 != 0 || model.attention.query_rank > 0) continue;
    // Groups of a state and indexers are on every tensor rank.
    if (model.state.groups % 8 != 0 || model.state.rank > 0 || model.indexer.heads > 0) continue;
    const Work all = work_of(build_layers(model, {.sequence_length = 2048}));
    const Work part = work_of(
        build_layers(model, {.sequence_length = 2048, .tensor = 8, .sequence_parallel = true}));
    EXPECT_DOUBLE_EQ(8 * part.weights, all.weights) << model.name;
    EXPECT_DOUBLE_EQ(8 * part.attention_forward, all.attention_forward) << model.name;
  }
}

}  // namespace
}  // namespace stepsim
