// Parts that families of models share when their config.json is read: sizes of decoders, windows,
// layer lists, experts, states. Defaults are those of the family's configuration class in
// transformers.

#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proto/hugging_face/families/hugging_face_config.h"
#include "proto/model.pb.h"

namespace stepsim {

// What decoders with rotary positions, RMS norms and a gated MLP leave open.
struct DecoderDefaults {
  std::int64_t head_dim = 0;  // where the file gives none; 0: hidden / heads
  std::int64_t kv_heads = 0;  // likewise; 0: as many as heads
  bool tied = false;
};

// Models have at most this many layers (workload/model/model_fields.cc).
inline constexpr std::int64_t kMostLayers = 1 << 10;
// Reads the number of layers, which must be given.
std::int64_t read_layers(HuggingFaceConfig& config, std::string_view key);

// Reads layers, hidden, heads, kv_heads, head_dim, vocabulary and tied_embeddings.
void read_decoder(HuggingFaceConfig& config, file::Model& model,
                  const DecoderDefaults& defaults = {});
void read_dense_mlp(HuggingFaceConfig& config, file::Model& model);

// GPT-2 and what came out of it: biases everywhere, layer norms, an MLP without a gate.
void set_gpt_block(file::Model& model);

// ---- which layer is what ----

// The words of a list of layers ("layer_types") and the letters of a pattern that they mean.
using LayerWords = std::initializer_list<std::pair<std::string_view, char>>;

// Returns one letter a layer from a list of words, or "" if the key is absent. Unknown words and
// lists of another length than the model has layers are reported with their position.
std::string layer_letters(HuggingFaceConfig& config, const file::Model& model, std::string_view key,
                          const LayerWords& words);
// The same from a list of whole numbers: `letters` by number (0, 1, ...).
std::string layer_letters(HuggingFaceConfig& config, const file::Model& model, std::string_view key,
                          std::string_view letters);
// Returns a letter for each layer of the model.
std::string layers_where(const file::Model& model, const std::function<bool(std::int64_t)>& holds,
                         char then, char otherwise);

// Reads sliding_window and the layers that have it: from layer_types, else `pattern` repeated
// (empty: all). `absent`: the window if the file gives none, 0: no window.
void read_window(HuggingFaceConfig& config, file::Model& model, std::int64_t absent,
                 const std::string& pattern);
// Returns a pattern of `period` layers of which the last is global: "LLLG".
std::string last_is_global(std::int64_t period);
// Reads such a pattern, in letters or as its length.
std::string pattern_or(HuggingFaceConfig& config, std::string_view key, std::int64_t period);

// ---- experts ----

// Reads routed, per_token and intermediate; the first spelling that the file has counts.
struct ExpertKeys {
  std::initializer_list<std::string_view> routed = {"num_local_experts", "num_experts",
                                                    "n_routed_experts"};
  std::initializer_list<std::string_view> per_token = {"num_experts_per_tok", "experts_per_token",
                                                       "num_experts_per_token", "moe_topk"};
  std::string_view intermediate = "moe_intermediate_size";
};
void read_experts(HuggingFaceConfig& config, file::Model& model, const ExpertKeys& keys = {});
// Shared experts as so many of the routed ones' width.
void read_shared_experts(HuggingFaceConfig& config, file::Model& model, std::string_view count);
// Qwen's way: every `decoder_sparse_step`-th layer has experts, but those of mlp_only_layers. It
// must be called behind the number of layers.
void read_sparse_layers(HuggingFaceConfig& config, file::Model& model);
// DeepSeek's way: the first layers are dense, all others have experts. first_dense_layers() reads
// how many; it must be called behind the number of layers.
std::int64_t first_dense_layers(HuggingFaceConfig& config, const file::Model& model,
                                std::string_view key = "first_k_dense_replace");
void read_first_dense(HuggingFaceConfig& config, file::Model& model,
                      std::string_view key = "first_k_dense_replace");

// Modules of multi-token prediction, if the file has any. `block`: prediction_block.
void read_prediction(HuggingFaceConfig& config, file::Model& model, std::string_view count,
                     const std::string& block = "");

// Latent attention (DeepSeek-V2); head_dim follows from it.
void read_latent(HuggingFaceConfig& config, file::Model& model);

// ---- states ----

// Reads a Mamba-2 mixer by the family's spelling of its keys.
struct Mamba2Keys {
  std::string_view heads, value_dim, groups, key_dim, convolution, chunk;
  std::string_view convolution_bias;
};
void read_mamba2(HuggingFaceConfig& config, file::Model& model, const Mamba2Keys& keys);
// The same for Mamba, whose inner width is `expand` times the model's.
struct MambaKeys {
  std::string_view expand, key_dim, convolution, convolution_bias, rank, bias;
};
void read_mamba(HuggingFaceConfig& config, file::Model& model, const MambaKeys& keys);
// Gated delta rule (Qwen3-Next).
void read_gated_delta(HuggingFaceConfig& config, file::Model& model);

}  // namespace stepsim
