// Reads how Megatron Core divides layers into pipeline stages.

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace stepsim {

// Reads --pipeline-model-parallel-layout, "Et*3|(tt|)*29,m|L": E embedding, t a layer, m a module
// of multi-token prediction, L the loss, | the end of a stage. Returns the layers of each stage;
// nullopt if it can't be read.
std::optional<std::vector<std::int64_t>> core_layout(std::string_view text);

// The other ways: so many layers on the first and the last rank of the pipeline, and embedding and
// loss that count as a layer.
struct UnevenStages {
  std::int64_t layers = 0;
  std::int64_t pp = 1;
  std::int64_t chunks = 1;
  std::optional<std::int64_t> first{};
  std::optional<std::int64_t> last{};
  bool counts_embedding = false;
  bool counts_loss = false;
};
// Returns the layers of each stage, chunk by chunk; nullopt if they do not divide.
std::optional<std::vector<std::int64_t>> uneven_layout(const UnevenStages& stages);

}  // namespace stepsim
