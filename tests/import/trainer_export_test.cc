// Plans as settings of trainers: 1,000 random plans of each software are written, read again from
// the file and compared, and what a software can't do is refused.

#include "import/exports/trainer_export.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "import/exports/same_plan.h"
#include "import/importer.h"
#include "import/torchtitan/torchtitan_import.h"
#include "import/trainer/cluster_choice.h"
#include "import/trainer/trainer_experiment.h"
#include "tests/fuzz/random/choices.h"
#include "tests/support/temporary_folder.h"

namespace stepsim {
namespace {

constexpr int kPlans = 1'000;

// RandomSettings makes an experiment that a trainer can run: its model, its axes, its schedules.
class RandomSettings {
 public:
  RandomSettings(std::string_view kind, std::uint64_t seed) : kind_(kind), choices_(seed) {}

  Json experiment() {
    axes();
    model();
    batch();
    pipeline();
    sharding();
    recompute();
    types();
    Json made;
    made["name"] = "random";
    made["model"] = model_;
    made["cluster"]["catalog"] = cluster();
    made["plan"] = plan_;
    made["software"] = software_;
    return made;
  }

 private:
  bool is_core() const { return kind_ == "megatron" || kind_ == "nemo"; }
  bool is_titan() const { return kind_ == "torchtitan"; }
  bool is_maxtext() const { return kind_ == "maxtext"; }

  std::string cluster() const {
    return is_maxtext() && on_tpu_ ? "v5p-8x8x8" : *gpu_cluster(tp_ * pp_ * cp_ * dp_);
  }

  void axes() {
    on_tpu_ = choices_.one_in(2);
    tp_ = choices_.pick({1, 2, 4});
    pp_ = choices_.pick({1, 2, 4});
    cp_ = choices_.pick({1, 1, 2});
    dp_ = choices_.pick({2, 1, 4, 8});
    plan_["tp"] = tp_;
    plan_["pp"] = pp_;
    plan_["cp"] = cp_;
    plan_["dp"] = dp_;
    plan_["allow_idle_chips"] = true;
    if (cp_ > 1) {
      plan_["cp_mode"] = is_titan() ? choices_.pick({"zigzag_ring", "all_gather"})
                                    : choices_.pick({"zigzag_ring", "all_gather", "ulysses"});
    }
    const bool may_differ = is_core() || is_titan();
    if (tp_ > 1) plan_["sequence_parallel"] = !may_differ || !choices_.one_in(3);
  }

  void model() {
    has_experts_ = choices_.one_in(3);
    chunks_ = pp_ > 1 && choices_.one_in(2) ? 2 : 1;
    if (is_titan()) return flavor();
    layers_ = pp_ * chunks_ * choices_.between(1, 3);
    model_["layers"] = layers_;
    model_["hidden"] = 64 * tp_ * choices_.pick({4, 2, 8});
    model_["heads"] = 8 * tp_;
    model_["head_dim"] = choices_.pick({32, 64, 128});
    model_["vocabulary"] = 128 * tp_ * choices_.pick({250, 100, 1001});
    model_["intermediate"] = 128 * tp_ * choices_.pick({2, 3});
    model_["gated_mlp"] = !choices_.one_in(3);
    model_["tied_embeddings"] = choices_.one_in(4);
    model_["norm"] = choices_.pick({"rms", "rms", "layer"});
    if (is_maxtext() && model_["norm"] == "layer") {  // its block "gpt3"
      model_["attention_bias"] = true;
      model_["mlp_bias"] = true;
    }
    if (choices_.one_in(4)) {
      latent();
    } else {
      model_["kv_heads"] = choices_.pick({8, 4}) * tp_;
      model_["qk_norm"] = choices_.one_in(4);
    }
    if (choices_.one_in(6)) model_["prediction_modules"] = 1;
    if (has_experts_) experts();
    if (is_core()) blocks();
  }

  void flavor() {
    const char* const name = choices_.pick({"llama3.1-8b", "llama3.2-1b", "qwen3-8b"});
    model_["catalog"] = has_experts_ ? "deepseek-v2-lite" : name;
    const std::string chosen = model_["catalog"];
    layers_ = load_model(chosen).layers;
    if (has_experts_ && dp_ > 1) plan_["ep"] = 2;
  }

  void latent() {
    model_.erase("head_dim");
    model_["latent"] = {{"q_rank", choices_.pick({0, 96})},
                        {"kv_rank", 64},
                        {"nope_dim", 32},
                        {"rope_dim", 16},
                        {"v_dim", 32}};
  }

  void experts() {
    Json& experts = model_["experts"];
    const bool divides = dp_ > 1 && choices_.one_in(2);
    if (divides) plan_["ep"] = 2;
    if (is_core() && tp_ > 1 && choices_.one_in(2)) plan_["etp"] = tp_;
    experts = {{"routed", choices_.pick({8, 16})},
               {"per_token", choices_.between(1, 4)},
               {"intermediate", 128 * tp_}};
    if (choices_.one_in(2)) experts["shared_intermediate"] = 128 * tp_ * choices_.between(1, 2);
    if (choices_.one_in(3)) experts["capacity_factor"] = 1.25;
    if (choices_.one_in(3)) {
      experts["first_dense"] = 1;
    } else if (choices_.one_in(3)) {
      experts["every"] = 2;
    }
    if (is_core() && divides && choices_.one_in(3)) plan_["dispatch"] = "two_level";
  }

  // What Megatron Core alone has.
  void blocks() {
    const bool biased = choices_.one_in(4);
    model_["attention_bias"] = biased;
    model_["mlp_bias"] = biased;
    model_["dropout"] = choices_.one_in(5);
    model_["attention_sinks"] = choices_.one_in(6);
    if (choices_.one_in(5)) {
      model_["window"] = 128;
      if (choices_.one_in(2)) model_["mixer_pattern"] = choices_.pick({"LG", "LLG", "GL"});
    }
    if (choices_.one_in(6)) model_["learned_positions"] = 4096;
    if (choices_.one_in(6)) plan_["order"] = "tp-cp-pp-dp";
  }

  void batch() {
    const std::int64_t micro = choices_.pick({1, 2});
    plan_["microbatch"] = micro;
    plan_["sequence"] = choices_.pick({1024, 2048, 4096});
    plan_["global_batch"] = micro * dp_ * pp_ * choices_.pick({1, 2, 4});
  }

  void pipeline() {
    if (pp_ == 1) return;
    const std::int64_t stages = pp_ * chunks_;
    if (is_core()) {
      plan_["schedule"] = chunks_ > 1 ? "interleaved_1f1b" : "1f1b";
      if (chunks_ > 1) plan_["overlap_pipeline"] = choices_.one_in(2);
    } else if (is_maxtext()) {
      plan_["schedule"] = chunks_ > 1 ? "breadth_first" : "gpipe";
    } else {
      plan_["schedule"] = chunks_ > 1 ? choices_.pick({"interleaved_1f1b", "breadth_first",
                                                       "zbv_hand", "interleaved_zb1p", "dualpipev"})
                                      : choices_.pick({"1f1b", "gpipe"});
      plan_["layout"] = layout_text(
          *torchtitan_layout(layers_, stages, choices_.between(0, 2), choices_.between(0, 2)));
    }
    if (chunks_ > 1) plan_["chunks"] = chunks_;
    if (is_core() && layers_ > stages && choices_.one_in(4)) {
      std::vector<std::int64_t> layers(static_cast<std::size_t>(stages), layers_ / stages);
      --layers.front();
      ++layers.back();
      plan_["layout"] = layout_text(layers);
    }
  }

  void sharding() {
    if (is_titan() || is_maxtext()) {
      const bool divides = cp_ > 1 || plan_.contains("ep") || choices_.one_in(2);
      plan_["zero"] = divides ? 3 : is_maxtext() && choices_.one_in(2) ? 1 : 0;
      if (divides && dp_ >= 4 && !plan_.contains("ep") && choices_.one_in(2)) {
        plan_["shard"] = dp_ / 2 * cp_;
      }
      if (divides && is_titan()) plan_["reshard_after_forward"] = choices_.one_in(2);
      return;
    }
    plan_["zero"] = choices_.pick({1, 0, 1, 2, 3});
    if (plan_["zero"] == 1 && dp_ >= 4 && choices_.one_in(3)) plan_["shard"] = dp_ * cp_ / 2;
    if (plan_["zero"] < 2) plan_["overlap_gradients"] = choices_.one_in(2);
    if (plan_["zero"] == 1) plan_["overlap_parameters"] = choices_.one_in(2);
  }

  void recompute() {
    const std::uint64_t kind = choices_.below(4);
    if (kind == 0) return;
    if (is_core() && kind == 1) {
      plan_["recompute"] = "selective";
      plan_["recompute_modules"] = choices_.pick({"attention", "attention+norm", "mlp"});
      return;
    }
    if (is_core()) {
      plan_["recompute"] = "full";
      if (kind == 2) plan_["recompute_layers"] = 1;
      return;
    }
    plan_["recompute"] = "all_but";
    plan_["recompute_keep"] = "down";
    if (is_titan() && kind == 2) {
      plan_["recompute"] = "alternate";
      plan_.erase("recompute_keep");
    } else if (is_maxtext() && kind == 2) {
      plan_["recompute_keep"] = choices_.pick({"qkv", "qkv+out", "qkv+attention+out+up"});
    }
    if (is_titan() && kind == 3) {
      plan_["recompute"] = "full";
      plan_.erase("recompute_keep");
    } else if (is_titan() && has_experts_ && kind == 1) {
      plan_["recompute"] = "alternate";
      plan_.erase("recompute_keep");
    }
  }

  void types() {
    if (is_maxtext() && on_tpu_) {
      plan_["dtype"] = choices_.pick({"bf16", "bf16", "int8"});
    } else {
      plan_["dtype"] = choices_.pick({"bf16", "bf16", "fp8", "bf16"});
    }
    if (is_core() && choices_.one_in(6)) plan_["dtype"] = choices_.pick({"fp16", "fp32"});
    software_["clip_gradients"] = choices_.one_in(2);
    if (is_core() && plan_["dtype"] == "bf16") software_["gradient_bytes"] = choices_.pick({4, 2});
  }

  std::string_view kind_;
  Choices choices_;
  Json model_ = Json::object();
  Json plan_ = Json::object();
  Json software_ = Json::object();
  bool on_tpu_ = false;
  bool has_experts_ = false;
  std::int64_t tp_ = 1;
  std::int64_t pp_ = 1;
  std::int64_t cp_ = 1;
  std::int64_t dp_ = 1;
  std::int64_t chunks_ = 1;
  std::int64_t layers_ = 1;
};

std::string text_of(const ConfigError& error) {
  std::string text;
  for (const Problem& problem : error.problems()) {
    text += problem.field + " " + problem.message + "\n";
  }
  return text;
}

// nullopt: it breaks a rule of plans, which are not of interest here.
std::optional<LoadedExperiment> loaded(const Json& experiment) {
  const std::string path = temporary_folder() / "random.json";
  std::ofstream(path) << experiment.dump();
  try {
    return load_with_topology({.experiment = path});
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

Experiment read_back(std::string_view kind, const std::string& path, const Experiment& written,
                     const ExperimentRecord& record) {
  ImportRequest request = {.files = {path}};
  request.ranks = static_cast<std::uint32_t>(written.plan.mesh.ranks());
  request.cluster_record = record.fields;
  return load_experiment({.experiment = "read", .text = find_importer(kind)->read(request).text});
}

bool is_noted(const TrainerExport& made, const std::string& path) {
  return path.starts_with("software.") ||
         std::ranges::any_of(made.notes,
                             [&](const std::string& note) { return note.starts_with(path + " "); });
}

class TrainerExportTest : public testing::TestWithParam<const char*> {};

// Every plan that the software can run is written, and reads back as itself.
TEST_P(TrainerExportTest, PlansComeBack) {
  const std::string_view kind = GetParam();
  const TrainerExporter& exporter = *find_trainer_exporter(kind);
  const std::string path = temporary_folder() / "settings.txt";
  int plans = 0;
  for (std::uint64_t seed = 0; plans < kPlans && seed < 4 * kPlans; ++seed) {
    const Json experiment = RandomSettings(kind, seed).experiment();
    const auto made_of = loaded(experiment);
    if (!made_of) continue;
    ++plans;
    try {
      const TrainerExport made = export_settings(exporter, made_of->experiment, made_of->record);
      std::ofstream(path) << made.text;
      const Experiment read = read_back(kind, path, made_of->experiment, made_of->record);
      ASSERT_EQ(read.plan.mesh.ranks(), made_of->experiment.plan.mesh.ranks());
      ASSERT_EQ(read.plan.batch.global_batch, made_of->experiment.plan.batch.global_batch);
      ASSERT_EQ(read.model.layers, made_of->experiment.model.layers);
      for (const DifferingField& field : differences(made_of->experiment, read)) {
        ASSERT_TRUE(is_noted(made, field.path))
            << seed << " " << field.path << " " << field.wanted << " " << field.written;
      }
    } catch (const ConfigError& error) {
      FAIL() << seed << " " << experiment.dump() << "\n" << text_of(error);
    }
  }
  EXPECT_EQ(plans, kPlans);
}

INSTANTIATE_TEST_SUITE_P(Trainers, TrainerExportTest,
                         testing::Values("megatron", "torchtitan", "maxtext", "nemo"),
                         [](const auto& trainer) { return std::string(trainer.param); });

Json small_experiment() {
  return {
      {"name", "small"},
      {"model",
       {{"layers", 8}, {"hidden", 256}, {"intermediate", 512}, {"heads", 8}, {"vocabulary", 1024}}},
      {"cluster", {{"catalog", "dgx-h100-8"}}},
      {"plan",
       {{"pp", 2}, {"dp", 4}, {"microbatch", 1}, {"global_batch", 16}, {"sequence", 1024}}}};
}

// Returns the field of the first problem; "" if the plan is written.
std::string refused_field(const char* kind, const char* key, const Json& value,
                          const char* group = "plan") {
  Json experiment = small_experiment();
  experiment[group][key] = value;
  const auto made_of = loaded(experiment);
  if (!made_of) return "not loaded";
  try {
    export_settings(*find_trainer_exporter(kind), made_of->experiment, made_of->record);
    return "";
  } catch (const ConfigError& error) {
    return error.problems().front().field;
  }
}

TEST(TrainerExportRefusalTest, WhatASoftwareCannotDoIsRefusedByItsField) {
  EXPECT_EQ(refused_field("megatron", "microbatch", 1), "");
  EXPECT_EQ(refused_field("megatron", "schedule", "zb_h1"), "plan.schedule");
  EXPECT_EQ(refused_field("nemo", "schedule", "gpipe"), "plan.schedule");
  EXPECT_EQ(refused_field("maxtext", "schedule", "1f1b"), "plan.schedule");
  EXPECT_EQ(refused_field("megatron", "recompute", "matmuls"), "plan.recompute");
  EXPECT_EQ(refused_field("megatron", "dtype", "int8"), "plan.dtype");
  EXPECT_EQ(refused_field("megatron", "lora_rank", 16), "plan.lora_rank");
  EXPECT_EQ(refused_field("torchtitan", "microbatch", 1), "model");
  // Nobody lists this field: it is found by reading the file again.
  EXPECT_EQ(refused_field("megatron", "parallel_branches", true, "model"),
            "model.parallel_branches");
  EXPECT_EQ(refused_field("megatron", "document_length", 256), "plan.document_length");
}

TEST(SamePlanTest, FindsEveryDifferenceThatActs) {
  const Experiment one = loaded(small_experiment())->experiment;
  EXPECT_TRUE(differences(one, one).empty());
  Experiment other = one;
  other.plan.recomputing.kind = Recompute::kFull;
  other.model.norms.kind = NormKind::kLayer;
  other.plan.tensor.sequence_parallel = false;  // there are no tensor ranks
  other.plan.pipeline.layout = {4, 4};          // as many layers as without
  const std::vector<DifferingField> found = differences(one, other);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].path, "model.norm");
  EXPECT_EQ(found[1].path, "plan.recompute");
  EXPECT_EQ(found[1].written, "full");
}

}  // namespace
}  // namespace stepsim
