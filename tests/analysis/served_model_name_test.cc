#include "analysis/accuracy/served_model_name.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "proto/catalog/measured_tables.h"

namespace stepsim {
namespace {

const std::vector<ModelSpec>& models() {
  static const std::vector<ModelSpec> kModels = load_catalog_models();
  return kModels;
}

TEST(ServedModelNameTest, FindsTheModelThatANameMeans) {
  for (const auto& [name, model] : std::vector<std::pair<std::string, std::string>>{
           {"llama-3.1-8b-instruct", "llama3.1-8b"},
           {"meta-llama/Llama-3.1-405B-Instruct-FP8", "llama3.1-405b"},
           {"LLaMA-2 70B", "llama2-70b"},
           {"llama-2-70b-chat-hf", "llama2-70b"},
           {"nvidia/DeepSeek-R1-0528-FP4", "deepseek-r1"},
           {"deepseek-r1-671b", "deepseek-r1"},
           {"DeepSeek-V3.1-Terminus", "deepseek-v3"},
           {"DeepSeek-V3.2-Exp", "deepseek-v3.2"},
           {"deepseek-r1-distill-llama-70b", "llama3.3-70b"},
           {"DeepSeek-R1-Distill-Qwen-32B", "qwen2.5-32b"},
           {"dsr1-fp8", "deepseek-r1"},
           {"openai/gpt-oss-120b", "gpt-oss-120b"},
           {"gptoss-20b", "gpt-oss-20b"},
           {"Qwen3-235B-A22B-Instruct-2507-FP8", "qwen3-235b-a22b"},
           {"qwen3-coder-480b-a35b", "qwen3-coder-480b-a35b"},
           {"zai-org/GLM-4.6-FP8", "glm-4.5"},
           {"MiniMax-M2", "minimax-m2.5"},
           {"moonshotai/Kimi-K2-Thinking", "kimi-k2"},
           {"Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b"},
           {"Llama-4-Maverick-17B-128E-Instruct-FP8", "llama4-maverick"},
           {"nemotron-3-nano-30b-a3b", "nemotron3-nano-30b-a3b"},
           {"bloom-176b", "bloom-176b"},
           {"facebook/opt-66b", "opt-66b"}}) {
    const ModelSpec* found = served_model(name, models());
    ASSERT_NE(found, nullptr) << name;
    EXPECT_EQ(found->name, model) << name;
  }
}

// A word that is left may make it another model: "distill", "vl", "mini", "air" of one that the
// catalog has not.
TEST(ServedModelNameTest, TakesNoOtherModel) {
  for (const char* name :
       {"", "-", "/", "llama", "llama-3", "my-llama-3.1-8b", "deepseek-r1-distill-qwen-1.5b",
        "deepseek-r1-mini", "qwen3-vl-235b-a22b", "gpt-oss-120b-eagle", "falcon-180b", "mixtral",
        "8b-instruct"}) {
    EXPECT_EQ(served_model(name, models()), nullptr) << name;
  }
}

}  // namespace
}  // namespace stepsim
