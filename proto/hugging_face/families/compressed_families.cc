// Models with attention to compressed keys (DeepSeek-V4).

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "proto/hugging_face/families/families.h"
#include "proto/hugging_face/families/family_parts.h"

namespace stepsim {
namespace {

using Config = HuggingFaceConfig;

constexpr std::int64_t kChosenRatio = 4;  // that of layers whose keys an indexer chooses

// Reads a number of tokens a key for each layer, then for each module of prediction: 0 is a window
// alone, 4 is chosen from, any other is attended to as it is. Returns a letter for each.
std::string letters_of_ratios(Config& config, file::Model& model) {
  const std::vector<std::int64_t> ratios = config.numbers("compress_ratios");
  file::Compressed& compressed = *model.mutable_compressed();
  std::string letters;
  for (const std::int64_t ratio : ratios) {
    const bool is_heavy = ratio != 0 && ratio != kChosenRatio;
    const std::int64_t heavy = compressed.has_heavy_ratio() ? compressed.heavy_ratio() : ratio;
    config.refuse_if(is_heavy && (ratio < 2 || ratio != heavy), "compress_ratios",
                     "must be 0, 4 or one other number of at least 2; entry " +
                         std::to_string(letters.size()) + " is " + std::to_string(ratio));
    if (is_heavy) compressed.set_heavy_ratio(heavy);
    letters += ratio == 0 ? 'L' : is_heavy ? 'H' : 'C';
  }
  if (letters.find('C') != std::string::npos) compressed.set_ratio(kChosenRatio);
  return letters;
}

// The spelling of transformers 5: words a layer, and the tokens of a key by word.
std::string letters_of_words(Config& config, file::Model& model) {
  std::string letters = layer_letters(config, model, "layer_types",
                                      {{"sliding_attention", 'L'},
                                       {"compressed_sparse_attention", 'C'},
                                       {"heavily_compressed_attention", 'H'}});
  file::Compressed& compressed = *model.mutable_compressed();
  Config rates = config.nested("compress_rates");
  if (letters.find('C') != std::string::npos) {
    compressed.set_ratio(rates.size_or("compressed_sparse_attention", "compressed.ratio", 4));
  }
  if (letters.find('H') != std::string::npos) {
    compressed.set_heavy_ratio(
        rates.size_or("heavily_compressed_attention", "compressed.heavy_ratio", 128));
  }
  return letters;
}

void read_layers_of(Config& config, file::Model& model) {
  const std::int64_t modules = config.count_or("num_nextn_predict_layers", "prediction_modules", 0);
  const bool in_words = config.has("layer_types") && !config.has("compress_ratios");
  std::string letters =
      in_words ? letters_of_words(config, model) : letters_of_ratios(config, model);
  const auto layers = static_cast<std::size_t>(model.layers());
  const bool fine =
      letters.size() >= layers && letters.size() <= layers + static_cast<std::size_t>(modules);
  config.refuse_if(!fine && layers > 0, in_words ? "layer_types" : "compress_ratios",
                   "must have an entry for each of the " + std::to_string(layers) +
                       " layers, and may have one for each of the " + std::to_string(modules) +
                       " modules of prediction; has " + std::to_string(letters.size()));
  const char last = letters.size() > layers ? letters[layers] : 'L';  // of the first module
  config.refuse_if(
      letters.find_first_not_of(last, std::min(letters.size(), layers)) != std::string::npos,
      "compress_ratios", "must be the same for all modules of prediction");
  model.set_mixer_pattern(letters.substr(0, layers));
  model.set_prediction_modules(modules);
  if (modules > 0) model.set_prediction_block(std::string{last, 'E'});
}

void read_deepseek_v4(Config& config, file::Model& model) {
  read_decoder(config, model);
  model.set_query_rank(config.size("q_lora_rank", "query_rank"));
  model.set_attention_sinks(true);
  model.set_window(config.size("sliding_window", "window"));
  file::Compressed& compressed = *model.mutable_compressed();
  compressed.set_rope_dim(config.size("qk_rope_head_dim", "compressed.rope_dim"));
  compressed.set_output_groups(config.size("o_groups", "compressed.output_groups"));
  compressed.set_output_rank(config.size("o_lora_rank", "compressed.output_rank"));
  read_layers_of(config, model);
  file::Indexer& indexer = *model.mutable_indexer();
  indexer.set_heads(config.size("index_n_heads", "indexer.heads"));
  indexer.set_head_dim(config.size("index_head_dim", "indexer.head_dim"));
  indexer.set_top_k(config.size("index_topk", "indexer.top_k"));
  file::Hyper& hyper = *model.mutable_hyper();
  hyper.set_streams(config.size("hc_mult", "hyper.streams"));
  hyper.set_sinkhorn_iterations(
      config.count_or("hc_sinkhorn_iters", "hyper.sinkhorn_iterations", 20));
  read_experts(config, model);
  read_shared_experts(config, model, "n_shared_experts");
  config.expect("attention_bias", false, " (biases are not modelled in this family)");
  config.expect("mlp_bias", false, " (biases are not modelled in this family)");
  if (config.count_or("num_hash_layers", "", 0) > 0) {
    model.set_note("its first layers choose experts by a table of tokens, counted as by scores");
  }
  if (config.text_or("expert_dtype", "") == "fp4") {
    model.set_note(model.note() + (model.note().empty() ? "" : "; ") +
                   "weights of its experts have 4 bits");
  }
}

constexpr HuggingFaceFamily kCompressedFamilies[] = {
    {"deepseek_ref", read_deepseek_v4},  // as sglang's own files call it
    {"deepseek_v4", read_deepseek_v4},
};

}  // namespace

std::span<const HuggingFaceFamily> compressed_families() {
  return kCompressedFamilies;
}

}  // namespace stepsim
