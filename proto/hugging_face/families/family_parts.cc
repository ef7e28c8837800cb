#include "proto/hugging_face/families/family_parts.h"

#include <algorithm>

namespace stepsim {
namespace {

using Config = HuggingFaceConfig;

// Returns the first spelling that the file has, or the first of all.
std::string_view spelling(Config& config, std::initializer_list<std::string_view> keys) {
  std::string_view found = *keys.begin();
  bool has_one = false;
  for (const std::string_view key : keys) {
    const bool has = config.has(key);
    if (has && !has_one) found = key;
    has_one = has_one || has;
  }
  return found;
}

std::string name_with_letters(const LayerWords& words) {
  std::string names;
  for (const auto& [word, letter] : words) {
    names += (names.empty() ? "" : ", ") + std::string(word);
  }
  return names;
}

void check_length(Config& config, const file::Model& model, std::string_view key,
                  std::size_t length) {
  if (model.layers() == 0 || static_cast<std::int64_t>(length) == model.layers()) return;
  config.refuse(key, "",
                "must have one entry for each of the " + std::to_string(model.layers()) +
                    " layers, has " + std::to_string(length));
}

// What has no heads has been reported under their key.
void leave_out_empty(Config& config, const file::State& state) {
  if (state.heads() > 0) return;
  for (const char* field : {"state.heads", "mixer_pattern"}) config.leave_out(field);
}

}  // namespace

std::int64_t read_layers(Config& config, std::string_view key) {
  return config.size(key, "layers", kMostLayers);
}

void read_decoder(Config& config, file::Model& model, const DecoderDefaults& defaults) {
  model.set_layers(read_layers(config, "num_hidden_layers"));
  model.set_hidden(config.size("hidden_size", "hidden"));
  model.set_heads(config.size("num_attention_heads", "heads"));
  model.set_vocabulary(config.size("vocab_size", "vocabulary"));
  const std::int64_t kv_heads = defaults.kv_heads > 0 ? defaults.kv_heads : model.heads();
  model.set_kv_heads(config.size_or("num_key_value_heads", "kv_heads", kv_heads));
  if (model.heads() == 0) config.leave_out("kv_heads");
  if (config.has("head_dim") || defaults.head_dim > 0) {
    model.set_head_dim(config.size_or("head_dim", "head_dim", defaults.head_dim));
  } else {
    model.set_head_dim(
        config.divide_over_heads(model.hidden(), model.heads(), "num_attention_heads"));
  }
  model.set_learned_positions(0);
  model.set_gated_mlp(true);
  model.set_tied_embeddings(config.flag_or("tie_word_embeddings", defaults.tied));
  model.set_norm("rms");
}

void read_dense_mlp(Config& config, file::Model& model) {
  model.set_intermediate(config.size("intermediate_size", "intermediate"));
}

void set_gpt_block(file::Model& model) {
  model.set_gated_mlp(false);
  model.set_attention_bias(true);
  model.set_mlp_bias(true);
  model.set_norm("layer");
}

std::string layer_letters(Config& config, const file::Model& model, std::string_view key,
                          const LayerWords& words) {
  std::string letters;
  for (const std::string& text : config.texts(key)) {
    const auto found =
        std::ranges::find_if(words, [&text](const auto& word) { return word.first == text; });
    if (found == words.end()) {
      config.refuse(key, "",
                    "must hold " + name_with_letters(words) + " only; layer " +
                        std::to_string(letters.size()) + " is \"" + text + "\"");
      return letters;
    }
    letters += found->second;
  }
  if (!letters.empty()) check_length(config, model, key, letters.size());
  return letters;
}

std::string layer_letters(Config& config, const file::Model& model, std::string_view key,
                          std::string_view letters) {
  std::string result;
  for (const std::int64_t number : config.numbers(key)) {
    if (number < 0 || number >= static_cast<std::int64_t>(letters.size())) {
      config.refuse(key, "",
                    "must hold 0 to " + std::to_string(letters.size() - 1) + "; layer " +
                        std::to_string(result.size()) + " is " + std::to_string(number));
      return result;
    }
    result += letters[static_cast<std::size_t>(number)];
  }
  if (!result.empty()) check_length(config, model, key, result.size());
  return result;
}

std::string layers_where(const file::Model& model, const std::function<bool(std::int64_t)>& holds,
                         char then, char otherwise) {
  std::string letters;
  for (std::int64_t layer = 0; layer < model.layers(); ++layer) {
    letters += holds(layer) ? then : otherwise;
  }
  return letters;
}

std::string pattern_or(Config& config, std::string_view key, std::int64_t period) {
  if (!config.is_text(key)) return last_is_global(config.size_or(key, "mixer_pattern", period));
  std::string letters = config.text_or(key, "");
  if (!letters.empty() && letters.find_first_not_of("LG") == std::string::npos) return letters;
  config.refuse(key, "mixer_pattern",
                "must be letters L (with the window) and G (global), or the number of layers of "
                "which the last is global; is \"" +
                    letters + "\"");
  return "G";
}

void read_window(Config& config, file::Model& model, std::int64_t absent,
                 const std::string& pattern) {
  const std::int64_t window = config.size_or("sliding_window", "window", absent);
  const std::string letters = layer_letters(config, model, "layer_types",
                                            {{"full_attention", 'G'}, {"sliding_attention", 'L'}});
  if (window == 0) return;
  const std::string& chosen = letters.empty() ? pattern : letters;
  if (!chosen.empty() && chosen.find('L') == std::string::npos) return;
  model.set_window(window);
  if (!chosen.empty()) model.set_mixer_pattern(chosen);
}

std::string last_is_global(std::int64_t period) {
  return std::string(static_cast<std::size_t>(std::max<std::int64_t>(period, 1) - 1), 'L') + "G";
}

void read_experts(Config& config, file::Model& model, const ExpertKeys& keys) {
  file::Experts& experts = *model.mutable_experts();
  experts.set_routed(config.size(spelling(config, keys.routed), "experts.routed"));
  experts.set_per_token(config.size(spelling(config, keys.per_token), "experts.per_token"));
  experts.set_intermediate(config.size(keys.intermediate, "experts.intermediate"));
  if (experts.intermediate() == 0) config.leave_out("intermediate");
}

void read_shared_experts(Config& config, file::Model& model, std::string_view count) {
  file::Experts& experts = *model.mutable_experts();
  experts.set_shared_intermediate(config.count_or(count, "experts.shared_intermediate", 0) *
                                  experts.intermediate());
}

void read_sparse_layers(Config& config, file::Model& model) {
  const std::int64_t step = config.period_or("decoder_sparse_step", "mlp_pattern", 1);
  const std::vector<std::int64_t> dense = config.layers("mlp_only_layers", 0, model.layers() - 1);
  const std::string letters = layers_where(
      model,
      [&](std::int64_t layer) {
        return (layer + 1) % step == 0 && std::ranges::count(dense, layer) == 0;
      },
      'E', 'D');
  if (letters.find('D') == std::string::npos) {
    config.has("intermediate_size");  // used by no layer
    return;
  }
  model.set_mlp_pattern(letters);
  read_dense_mlp(config, model);
}

std::int64_t first_dense_layers(Config& config, const file::Model& model, std::string_view key) {
  const std::int64_t first = config.count_or(key, "experts.first_dense", 0);
  config.refuse_if(model.layers() > 0 && first > model.layers(), key,
                   "must be at most the " + std::to_string(model.layers()) + " layers, is " +
                       std::to_string(first));
  return first;
}

void read_first_dense(Config& config, file::Model& model, std::string_view key) {
  model.mutable_experts()->set_first_dense(first_dense_layers(config, model, key));
  if (model.experts().first_dense() > 0) {
    read_dense_mlp(config, model);
  } else {
    config.has("intermediate_size");  // used by no layer
  }
}

void read_prediction(Config& config, file::Model& model, std::string_view count,
                     const std::string& block) {
  const std::int64_t modules = config.count_or(count, "prediction_modules", 0);
  if (modules == 0) return;
  model.set_prediction_modules(modules);
  if (!block.empty()) model.set_prediction_block(block);
}

void read_latent(Config& config, file::Model& model) {
  config.expect("use_mla", true, " (its attention is latent)");
  file::Latent& latent = *model.mutable_latent();
  latent.set_q_rank(config.count_or("q_lora_rank", "latent.q_rank", 0));
  latent.set_kv_rank(config.size("kv_lora_rank", "latent.kv_rank"));
  latent.set_nope_dim(config.size("qk_nope_head_dim", "latent.nope_dim"));
  latent.set_rope_dim(config.size("qk_rope_head_dim", "latent.rope_dim"));
  latent.set_v_dim(config.size("v_head_dim", "latent.v_dim"));
  model.set_head_dim(latent.nope_dim() + latent.rope_dim());
}

void read_mamba2(Config& config, file::Model& model, const Mamba2Keys& keys) {
  file::State& state = *model.mutable_state();
  state.set_kind("mamba2");
  state.set_heads(config.size(keys.heads, "state.heads"));
  state.set_value_dim(config.size(keys.value_dim, "state.value_dim"));
  state.set_groups(config.size_or(keys.groups, "state.groups", 1));
  state.set_key_dim(config.size(keys.key_dim, "state.key_dim"));
  state.set_convolution(config.size_or(keys.convolution, "state.convolution", 4));
  state.set_convolution_bias(config.flag_or(keys.convolution_bias, true));
  state.set_chunk(config.size_or(keys.chunk, "state.chunk", 256));
  for (const char* unused : {"mamba_expand", "expand", "mamba_dt_rank", "time_step_rank"}) {
    config.has(unused);  // what heads and their width say, and a rank that Mamba-2 does not have
  }
  leave_out_empty(config, state);
}

void read_mamba(Config& config, file::Model& model, const MambaKeys& keys) {
  file::State& state = *model.mutable_state();
  state.set_kind("mamba");
  state.set_heads(config.size_or(keys.expand, "state.heads", 2) * model.hidden());
  state.set_groups(1);
  state.set_value_dim(1);
  state.set_key_dim(config.size_or(keys.key_dim, "state.key_dim", 16));
  state.set_convolution(config.size_or(keys.convolution, "state.convolution", 4));
  state.set_convolution_bias(config.flag_or(keys.convolution_bias, true));
  const std::int64_t sixteenth = (model.hidden() + 15) / 16;
  const bool is_auto = config.is_text(keys.rank) && config.text_or(keys.rank, "") == "auto";
  state.set_rank(is_auto ? sixteenth : config.size_or(keys.rank, "state.rank", sixteenth));
  state.set_bias(config.flag_or(keys.bias, false));
  leave_out_empty(config, state);
}

void read_gated_delta(Config& config, file::Model& model) {
  file::State& state = *model.mutable_state();
  state.set_kind("gated_delta");
  state.set_heads(config.size("linear_num_value_heads", "state.heads"));
  state.set_groups(config.size("linear_num_key_heads", "state.groups"));
  state.set_key_dim(config.size("linear_key_head_dim", "state.key_dim"));
  state.set_value_dim(config.size("linear_value_head_dim", "state.value_dim"));
  state.set_convolution(config.size_or("linear_conv_kernel_dim", "state.convolution", 4));
  leave_out_empty(config, state);
}

}  // namespace stepsim
