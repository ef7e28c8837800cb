// Which model of the catalog a row of serving runs means: "Llama-3.3-70B-Instruct-FP8",
// "nvidia/DeepSeek-R1-0528-FP4", "gpt-oss-120b".

#pragma once

#include <string_view>
#include <vector>

#include "workload/model_spec.h"

namespace stepsim {

// Returns the model of this name, whatever its case and what stands between its words, less an
// owner before "/" and words behind it that leave the architecture as it is: releases, types,
// "instruct", and the size where the catalog's name has none. A distilled model is the one that it
// was made of, and releases of one architecture are one. Returns nullptr where another word is
// left: it may be another model.
const ModelSpec* served_model(std::string_view name, const std::vector<ModelSpec>& models);

}  // namespace stepsim
