// Parts of the readers of trainers' settings. Whole files are read by
// tests/end_to_end/trainers_test.py.

#include <gtest/gtest.h>

#include "import/maxtext/maxtext_import.h"
#include "import/megatron/pipeline_layout.h"
#include "import/nemo/nemo_import.h"
#include "import/torchtitan/torchtitan_import.h"
#include "import/trainer/cluster_choice.h"
#include "import/trainer/trainer_experiment.h"
#include "proto/catalog/catalog.h"
#include "proto/catalog/trainer_names.h"
#include "schedules/plan/keys/key_groups.h"

namespace stepsim {
namespace {

using Layers = std::vector<std::int64_t>;

TEST(LayerListTest, ReadsThePythonOfMegatron) {
  EXPECT_EQ(layer_list("[0]*2+[1]*3"), (Layers{0, 0, 1, 1, 1}));
  EXPECT_EQ(layer_list("([1]*2+[0])*2"), (Layers{1, 1, 0, 1, 1, 0}));
  EXPECT_EQ(layer_list("[0, 1,1]"), (Layers{0, 1, 1}));
  EXPECT_EQ(layer_list("[1]*10000")->size(), 10'000U);
  EXPECT_FALSE(layer_list("[1]*10001"));
  EXPECT_FALSE(layer_list("[1"));
  EXPECT_FALSE(layer_list("import os"));
}

// "E" the embedding, then 3 layers; 29 stages of 2; one of 1 with a module; the loss.
TEST(PipelineLayoutTest, ReadsTheLayoutOfMegatronCore) {
  Layers expected = {3};
  expected.insert(expected.end(), 29, 2);
  expected.insert(expected.end(), {1, 0});
  EXPECT_EQ(core_layout("Et*3|(tt|)*29,t,m|L"), expected);
  EXPECT_EQ(core_layout("Et|t|tL"), (Layers{1, 1, 1}));
  EXPECT_FALSE(core_layout("Ex|L"));
  EXPECT_FALSE(core_layout("(t|"));
  EXPECT_FALSE(core_layout("((t)*90000)*90000"));
  EXPECT_EQ(layout_text(expected), "3,2*29,1,0");
}

// 61 layers on 4 ranks, 14 on the first and 15 on the last: (61 - 14 - 15) / 2 = 16 on the others.
TEST(PipelineLayoutTest, FirstAndLastRankMayDiffer) {
  EXPECT_EQ(uneven_layout({.layers = 61, .pp = 4, .first = 14, .last = 15}),
            (Layers{14, 16, 16, 15}));
  EXPECT_FALSE(uneven_layout({.layers = 62, .pp = 4, .first = 14, .last = 15}));
  // 6 + 2 count as 8 on 2 ranks with 2 chunks: 2 each, the ends with one less.
  EXPECT_EQ(uneven_layout(
                {.layers = 6, .pp = 2, .chunks = 2, .counts_embedding = true, .counts_loss = true}),
            (Layers{1, 2, 2, 1}));
}

// 6 layers, embedding and head count as one each: 8 on 4 stages.
TEST(TorchtitanTest, StagesAreAlikeWithEmbeddingAndHead) {
  EXPECT_EQ(torchtitan_layout(6, 4, 1, 1), (Layers{1, 2, 2, 1}));
  EXPECT_EQ(torchtitan_layout(126, 16, 1, 1),
            (Layers{7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7}));
  EXPECT_EQ(torchtitan_layout(7, 1, 1, 1), (Layers{7}));
  EXPECT_FALSE(torchtitan_layout(2, 9, 1, 1));
}

TEST(TorchtitanTest, FlavorsThatDifferInAKernelAreOne) {
  EXPECT_EQ(find_flavor("llama3", "70B_flex"), find_flavor("llama3", "70B"));
  EXPECT_EQ(find_flavor("deepseek_v3", "671B")->catalog, "deepseek-v3");
  EXPECT_EQ(find_flavor("llama3", "71B"), nullptr);
}

// 128 = 2^7: 7 / 3 is 2 with a rest of 1, so heads and MLP have 2^3, width and layers 2^2.
TEST(MaxtextTest, TheGlobalScaleIsDividedOverTheSizes) {
  const auto scales = maxtext_scales(128);
  ASSERT_TRUE(scales);
  EXPECT_EQ(scales->width, 4);
  EXPECT_EQ(scales->heads, 8);
  EXPECT_EQ(scales->mlp, 8);
  EXPECT_EQ(scales->layers, 4);
  EXPECT_FALSE(maxtext_scales(100));
  EXPECT_FALSE(maxtext_scales(0));
}

TEST(ModelNamesTest, NamesOfOthersAreThoseOfTheCatalog) {
  EXPECT_EQ(maxtext_model("llama3.1-70b"), "llama3.1-70b");
  EXPECT_EQ(maxtext_model("deepseek3-671b"), "deepseek-v3");
  EXPECT_EQ(maxtext_model("nobody-1b"), "");
  EXPECT_EQ(nemo_model("nemo.collections.llm.gpt.model.llama.Llama31Config405B"), "llama3.1-405b");
  EXPECT_EQ(nemo_model("megatron.bridge.models.llama.Llama3ModelProvider8B"), "llama3-8b");
  EXPECT_EQ(nemo_model("MixtralConfig8x7B"), "mixtral-8x7b");
  EXPECT_EQ(nemo_model("GPTConfig175B"), "gpt3-175b");
  EXPECT_EQ(nemo_model("megatron.bridge.models.gpt_provider.GPTModelProvider"), "");
}

TEST(TrainerNamesTest, ModelsAreThoseOfTheCatalog) {
  for (const char* const trainer : {"maxtext", "nemo", "torchtitan"}) {
    const std::vector<std::string> names = models_of_trainer(trainer);
    EXPECT_FALSE(names.empty()) << trainer;
    for (const std::string& name : names) {
      const TrainerModel& model = *find_trainer_model(trainer, name);
      EXPECT_TRUE(!model.fields.empty() || !model.catalog.empty()) << name;
      if (model.catalog.empty()) continue;
      EXPECT_TRUE(find(CatalogKind::kModel, model.catalog).found) << name << ": " << model.catalog;
    }
  }
}

// What the tables call kept results and modules are values of those keys.
TEST(TrainerNamesTest, WhatIsKeptIsAPlans) {
  ParallelPlan plan;
  const AnyField& modules = *plan_fields().find("recompute_modules");
  for (const std::string& name : recomputed_modules()) {
    EXPECT_TRUE(modules.read(find_recomputed_module(name)->module, &plan).empty()) << name;
  }
  const AnyField& keep = *plan_fields().find("recompute_keep");
  for (const char* const name : {"minimal", "save_qkv_proj", "save_dot_except_logits_ffn1"}) {
    EXPECT_TRUE(keep.read(find_remat_policy(name)->keep, &plan).empty()) << name;
  }
  EXPECT_EQ(find_remat_policy("full")->keep, "");
  EXPECT_TRUE(find_remat_policy("qkv_proj_offloaded")->offloads);
  EXPECT_EQ(find_remat_policy("nobodys"), nullptr);
}

TEST(ClusterChoiceTest, NamesOfTheCloudCountCoresOrChips) {
  EXPECT_EQ(tpu_name("v5p-256")->chips, 128);
  EXPECT_EQ(tpu_name("v5e-256")->chips, 256);
  EXPECT_FALSE(tpu_name("a3-8"));
  EXPECT_FALSE(tpu_name("v5p"));
}

TEST(ClusterChoiceTest, SlicesAreAsNearToACubeAsTheyCanBe) {
  EXPECT_EQ(tpu_cluster("v5p", 128), "v5p-4x4x8");
  EXPECT_EQ(tpu_cluster("v5p", 512), "v5p-8x8x8");
  EXPECT_EQ(tpu_cluster("v5e", 256), "v5e-16x16");
  EXPECT_EQ(tpu_cluster("v5p", 128, 2), "multislice-v5p-2x4x4x4");
  EXPECT_FALSE(tpu_cluster("v5p", 7));
  EXPECT_EQ(gpu_cluster(60), "dgx-h100-64");
  EXPECT_FALSE(gpu_cluster(1 << 19));
}

}  // namespace
}  // namespace stepsim
