// Models that came out of a search over layers (Nemotron Super and Ultra): layers differ in the
// width of their MLP, and some have no attention.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "proto/hugging_face/families/families.h"
#include "proto/hugging_face/families/family_parts.h"

namespace stepsim {
namespace {

using Config = HuggingFaceConfig;

struct Block {
  bool attends = false;
  std::int64_t group = 0;  // heads that share a head of keys and values
  std::int64_t width = 0;  // of the MLP; 0: none
};

Block read_attention(Config& block) {
  Config attention = block.nested("attention");
  attention.expect("replace_with_linear", false, " (linear layers are not modelled)");
  attention.expect("sparsify", nullptr, " (sparse layers are not modelled)");
  attention.expect("window_length", nullptr, " (windows are not modelled in this family)");
  if (attention.flag_or("no_op", false)) return {};
  return {.attends = true, .group = attention.size("n_heads_in_group", "kv_heads")};
}

// Returns the width for a multiple of the hidden size: two thirds of it, rounded up to 256.
std::int64_t read_width(Config& block, std::int64_t hidden) {
  Config mlp = block.nested("ffn");
  mlp.expect("replace_with_linear", false, " (linear layers are not modelled)");
  if (mlp.flag_or("no_op", false)) return 0;
  constexpr std::int64_t kMultiple = 256;
  constexpr auto kMost = static_cast<double>(Config::kMostOfAny);
  const double width = 2 * mlp.number_or("ffn_mult", 4) * static_cast<double>(hidden) / 3;
  const bool fine = width >= 1 && width <= kMost;
  mlp.refuse_if(!fine && hidden > 0, "ffn_mult",
                "must give a width (2/3 x ffn_mult x hidden_size) of 1 to " +
                    std::to_string(Config::kMostOfAny));
  const auto least = static_cast<std::int64_t>(std::clamp(width, 1.0, kMost));
  return (least + kMultiple - 1) / kMultiple * kMultiple;
}

std::vector<Block> read_blocks(Config& config, std::int64_t hidden) {
  std::vector<Block> blocks;
  std::int64_t group = 0;
  for (Config& entry : config.objects("block_configs")) {
    Block block = read_attention(entry);
    block.width = read_width(entry, hidden);
    if (block.attends && group == 0) group = block.group;
    entry.refuse_if(block.attends && block.group != group, "attention: n_heads_in_group",
                    "must be the same in all layers (" + std::to_string(group) + "), is " +
                        std::to_string(block.group));
    blocks.push_back(block);
  }
  return blocks;
}

// Writes the patterns. A block with neither attention nor MLP is no layer.
void set_layers(const std::vector<Block>& blocks, file::Model& model) {
  std::string mixers, mlps;
  std::int64_t widest = 1, group = 0;
  for (const Block& block : blocks) {
    if (!block.attends && block.width == 0) continue;
    mixers += block.attends ? 'G' : '-';
    mlps += block.width > 0 ? 'D' : '-';
    model.add_mlp_widths(std::max<std::int64_t>(1, block.width));
    widest = std::max(widest, block.width);
    group = std::max(group, block.group);
  }
  model.set_layers(static_cast<std::int64_t>(mixers.size()));
  model.set_mixer_pattern(mixers);
  model.set_mlp_pattern(mlps);
  model.set_intermediate(widest);
  model.set_kv_heads(group > 0 ? std::max<std::int64_t>(1, model.heads() / group) : model.heads());
}

void read_nemotron_nas(Config& config, file::Model& model) {
  model.set_hidden(config.size("hidden_size", "hidden"));
  model.set_heads(config.size("num_attention_heads", "heads"));
  const std::vector<Block> blocks = read_blocks(config, model.hidden());
  const auto count = static_cast<std::int64_t>(blocks.size());
  const std::int64_t layers = config.size_or("num_hidden_layers", "layers", count);
  config.refuse_if(count > 0 && layers != count, "block_configs",
                   "must have one entry for each of the " + std::to_string(layers) +
                       " layers, has " + std::to_string(count));
  set_layers(blocks, model);
  if (model.layers() == 0) config.leave_out("layers");
  for (const char* unused : {"intermediate_size", "num_key_value_heads"}) config.has(unused);
  model.set_head_dim(
      config.divide_over_heads(model.hidden(), model.heads(), "num_attention_heads"));
  model.set_vocabulary(config.size("vocab_size", "vocabulary"));
  model.set_gated_mlp(true);
  model.set_norm("rms");
  model.set_attention_bias(config.flag_or("attention_bias", false));
  model.set_mlp_bias(config.flag_or("mlp_bias", false));
  model.set_tied_embeddings(config.flag_or("tie_word_embeddings", false));
}

constexpr HuggingFaceFamily kSearchedFamilies[] = {
    {"nemotron-nas", read_nemotron_nas},
};

}  // namespace

std::span<const HuggingFaceFamily> searched_families() {
  return kSearchedFamilies;
}

}  // namespace stepsim
