#include "proto/mlp_stack_text.h"

#include <gtest/gtest.h>

#include <string>

#include "proto/load_experiment.h"

namespace stepsim {
namespace {

TEST(MlpStackTextTest, IsAModel) {
  const ModelSpec model = load_model("mlp-stack:D=8192,F=32768,layers=32");
  EXPECT_EQ(model.kind, ModelKind::kMlpStack);
  EXPECT_EQ(model.hidden, 8192);
  EXPECT_EQ(model.mlp.width, 32768);
  EXPECT_EQ(model.layers, 32);
  EXPECT_EQ(model.name, "mlp-stack:D=8192,F=32768,layers=32");
}

std::string problems_of(const std::string& model) {
  try {
    load_model(model);
  } catch (const ConfigError& error) {
    std::string text;
    for (const Problem& problem : error.problems()) {
      text += problem.field + ": " + problem.message + "\n";
    }
    return text;
  }
  return "none";
}

TEST(MlpStackTextTest, WhatIsWrongIsNamed) {
  EXPECT_EQ(problems_of("mlp-stack:D=8,F=16"),
            "--model layers: must be given, as in mlp-stack:D=8192,F=32768,layers=32\n");
  const std::string all = problems_of("mlp-stack:D=wide,F=0,heads=4,F=8");
  EXPECT_NE(all.find("--model D: must be a whole number"), std::string::npos) << all;
  EXPECT_NE(all.find("--model F: is given twice"), std::string::npos) << all;
  EXPECT_NE(all.find("--model heads=4: must be one of D, F and layers"), std::string::npos) << all;
  EXPECT_NE(all.find("--model layers: must be given"), std::string::npos) << all;
  EXPECT_NE(all.find("model.intermediate: must be at least 1, is 0"), std::string::npos) << all;
  EXPECT_NE(problems_of("mlp-stack").find("--model D: must be given"), std::string::npos);
}

}  // namespace
}  // namespace stepsim
