// Decoders of attention in which layers have experts.

#include <algorithm>
#include <charconv>
#include <set>

#include "proto/hugging_face/families/families.h"
#include "proto/hugging_face/families/family_parts.h"

namespace stepsim {
namespace {

using Config = HuggingFaceConfig;

void read_mixtral(Config& config, file::Model& model) {
  read_decoder(config, model);
  read_window(config, model, 0, "");
  read_experts(config, model, {.intermediate = "intermediate_size"});
}

void read_qwen2_moe(Config& config, file::Model& model) {
  read_decoder(config, model);
  model.set_qkv_bias(config.flag_or("qkv_bias", true));
  read_qwen_window(config, model);
  read_experts(config, model);
  file::Experts& experts = *model.mutable_experts();
  experts.set_shared_intermediate(
      config.size("shared_expert_intermediate_size", "experts.shared_intermediate"));
  experts.set_shared_gate(true);
  read_sparse_layers(config, model);
}

void read_qwen3_moe(Config& config, file::Model& model) {
  read_qwen3_attention(config, model);
  read_experts(config, model);
  read_sparse_layers(config, model);
}

void read_gpt_oss(Config& config, file::Model& model) {
  read_decoder(config, model, {.head_dim = 64});
  model.set_attention_bias(config.flag_or("attention_bias", true));
  model.set_mlp_bias(true);
  model.set_attention_sinks(true);
  read_window(config, model, 128, "LG");
  read_experts(config, model, {.intermediate = "intermediate_size"});
  model.mutable_experts()->set_router_bias(true);
}

// Reads which layers are dense and which have experts from a list of words, where there is one.
void read_mlp_types(Config& config, file::Model& model) {
  const std::string letters =
      layer_letters(config, model, "mlp_layer_types", {{"dense", 'D'}, {"sparse", 'E'}});
  if (letters.empty()) return;
  model.set_mlp_pattern(letters);
  model.mutable_experts()->clear_first_dense();
}

void read_deepseek_mlps(Config& config, file::Model& model) {
  read_dense_mlp(config, model);
  model.set_attention_bias(config.flag_or("attention_bias", false));
  if (config.count_or("n_routed_experts", "experts.routed", 0) == 0) return;
  read_experts(config, model);
  read_shared_experts(config, model, "n_shared_experts");
  model.mutable_experts()->set_first_dense(first_dense_layers(config, model));
  config.expect("moe_layer_freq", 1, " (all layers behind the dense ones have experts)");
}

// DeepSeekMoE, with plain attention.
void read_deepseek_moe(Config& config, file::Model& model) {
  read_decoder(config, model);
  read_deepseek_mlps(config, model);
}

void read_deepseek_v3(Config& config, file::Model& model) {
  read_deepseek(config, model);
  model.set_prediction_modules(
      config.count_or("num_nextn_predict_layers", "prediction_modules", 0));
}

// Sparse attention in every layer. Where the file says so, layers share an earlier one's choice.
void read_deepseek_v32(Config& config, file::Model& model) {
  read_deepseek_v3(config, model);
  read_mlp_types(config, model);
  file::Indexer& indexer = *model.mutable_indexer();
  indexer.set_heads(config.size("index_n_heads", "indexer.heads"));
  indexer.set_head_dim(config.size("index_head_dim", "indexer.head_dim"));
  indexer.set_top_k(config.size("index_topk", "indexer.top_k"));
  const std::string letters =
      layer_letters(config, model, "indexer_types", {{"full", 'I'}, {"shared", 'i'}});
  const std::int64_t period = config.period_or("index_topk_freq", "mixer_pattern", 1);
  const std::int64_t first = config.count_or("index_skip_topk_offset", "mixer_pattern", 0);
  const auto chooses = [&](std::int64_t layer) {
    return layer < first || (layer - first + 1) % period == 0;
  };
  model.set_mixer_pattern(!letters.empty() ? letters
                          : period > 1     ? layers_where(model, chooses, 'I', 'i')
                                           : "I");
}

void read_glm4_moe(Config& config, file::Model& model) {
  read_decoder(config, model, {.head_dim = 128});
  model.set_qkv_bias(config.flag_or("attention_bias", false));
  model.set_qk_norm(config.flag_or("use_qk_norm", false));
  read_experts(config, model);
  read_shared_experts(config, model, "n_shared_experts");
  read_first_dense(config, model);
  model.set_prediction_modules(
      config.count_or("num_nextn_predict_layers", "prediction_modules", 0));
}

void read_dots1(Config& config, file::Model& model) {
  read_decoder(config, model);
  model.set_attention_bias(config.flag_or("attention_bias", false));
  model.set_qk_norm(true);
  read_qwen_window(config, model);
  read_experts(config, model);
  read_shared_experts(config, model, "n_shared_experts");
  read_first_dense(config, model);
  config.expect("moe_layer_freq", 1, " (all layers behind the dense ones have experts)");
}

// Llama 4: three of four layers look at chunks and rotate, the fourth at all without rotation. Some
// layers have one shared expert as wide as a routed one, the others a wider MLP.
void read_llama4(Config& config, file::Model& model) {
  read_decoder(config, model, {.head_dim = 128});
  model.set_attention_bias(config.flag_or("attention_bias", false));
  model.set_qk_norm(config.flag_or("use_qk_norm", true));
  const std::string words = layer_letters(config, model, "layer_types",
                                          {{"chunked_attention", 'L'}, {"full_attention", 'G'}});
  const std::int64_t period = config.size_or("no_rope_layer_interval", "mixer_pattern", 4);
  const std::string rotated = layer_letters(config, model, "no_rope_layers", "GL");
  const std::int64_t chunk = config.count_or("attention_chunk_size", "window", 8192);
  if (chunk > 0) {
    model.set_window(chunk);
    model.set_window_kind("chunked");
    model.set_mixer_pattern(!words.empty()     ? words
                            : !rotated.empty() ? rotated
                                               : last_is_global(period));
  }
  read_experts(config, model, {.intermediate = "intermediate_size"});
  file::Experts& experts = *model.mutable_experts();
  experts.set_shared_intermediate(experts.intermediate());
  experts.set_every(config.period_or("interleave_moe_layer_step", "experts.every", 1));
  model.set_intermediate(config.size("intermediate_size_mlp", "intermediate"));
  config.numbers("moe_layers");  // what interleave_moe_layer_step says, written out
}

void read_minimax_m2(Config& config, file::Model& model) {
  read_decoder(config, model);
  model.set_qk_norm_whole(config.flag_or("use_qk_norm", true));
  read_window(config, model, 0, "");
  const std::vector<std::int64_t> kinds = config.numbers("attn_type_list");
  config.refuse_if(std::ranges::any_of(kinds, [](std::int64_t kind) { return kind != 1; }),
                   "attn_type_list", "must be 1 (softmax attention) for every layer");
  read_experts(config, model, {.intermediate = "intermediate_size"});
  const std::int64_t shared =
      config.count_or("shared_intermediate_size", "experts.shared_intermediate", 0);
  model.mutable_experts()->set_shared_intermediate(shared);
  if (config.flag_or("use_mtp", true)) read_prediction(config, model, "num_mtp_modules");
}

void read_granite_moe(Config& config, file::Model& model) {
  read_decoder(config, model);
  model.set_attention_bias(config.flag_or("attention_bias", false));
  read_experts(config, model, {.intermediate = "intermediate_size"});
  model.mutable_experts()->set_shared_intermediate(
      config.count_or("shared_intermediate_size", "experts.shared_intermediate", 0));
}

void read_olmoe(Config& config, file::Model& model) {
  read_decoder(config, model);
  model.set_attention_bias(config.flag_or("attention_bias", false));
  model.set_qk_norm_whole(true);
  read_experts(config, model, {.intermediate = "intermediate_size"});
}

void read_phimoe(Config& config, file::Model& model) {
  read_decoder(config, model);
  model.set_norm("layer");
  model.set_attention_bias(config.flag_or("attention_bias", true));
  read_window(config, model, 0, "");
  read_experts(config, model, {.intermediate = "intermediate_size"});
}

void read_dbrx(Config& config, file::Model& model) {
  model.set_layers(read_layers(config, "n_layers"));
  model.set_hidden(config.size("d_model", "hidden"));
  model.set_heads(config.size("n_heads", "heads"));
  model.set_vocabulary(config.size("vocab_size", "vocabulary"));
  model.set_head_dim(config.divide_over_heads(model.hidden(), model.heads(), "n_heads"));
  model.set_norm("layer_without_bias");
  model.set_tied_embeddings(config.flag_or("tie_word_embeddings", false));
  Config attention = config.nested("attn_config");
  model.set_kv_heads(attention.size("kv_n_heads", "kv_heads"));
  Config mlp = config.nested("ffn_config");
  read_experts(mlp, model,
               {.routed = {"moe_num_experts"},
                .per_token = {"moe_top_k"},
                .intermediate = "ffn_hidden_size"});
}

// Tencent's lists say the same for each layer. With cross-layer attention all layers but the first
// of each `cla_share_factor` read the keys and values of that one.
void read_hunyuan_moe(Config& config, file::Model& model) {
  read_decoder(config, model, {.tied = true});
  config.has("attention_head_dim");
  model.set_attention_bias(config.flag_or("attention_bias", false));
  model.set_qk_norm(config.flag_or("use_qk_norm", false));
  const std::int64_t factor = config.period_or("cla_share_factor", "mixer_pattern", 1);
  if (config.flag_or("use_cla", false) && factor > 1) {
    model.set_mixer_pattern(layers_where(
        model, [&](std::int64_t layer) { return layer % factor == 0; }, 'G', 'g'));
  }
  file::Experts& experts = *model.mutable_experts();
  experts.set_routed(config.size("num_experts", "experts.routed"));
  experts.set_per_token(config.uniform("moe_topk", "experts.per_token"));
  const bool own_width = config.has("moe_intermediate_size");
  config.has("intermediate_size");
  experts.set_intermediate(config.uniform(own_width ? "moe_intermediate_size" : "intermediate_size",
                                          "experts.intermediate"));
  experts.set_shared_intermediate(
      config.uniform("num_shared_expert", "experts.shared_intermediate") * experts.intermediate());
}

// Grok 2 has a dense MLP beside the experts, and tables of its own for input and output.
void read_grok(Config& config, file::Model& model) {
  const bool has_dense = config.flag_or("residual_moe", false);
  read_decoder(config, model, {.tied = !has_dense});
  model.set_post_norms(true);
  config.has("moe_intermediate_size");
  config.has("intermediate_size");
  read_experts(config, model,
               {.intermediate = config.either("moe_intermediate_size", "intermediate_size")});
  if (!has_dense) return;
  read_dense_mlp(config, model);
  model.mutable_experts()->set_shared_intermediate(model.intermediate());
}

// A dense MLP as wide as the stream stands beside the experts. (It reads the layer's input through
// a norm of its own; here it reads the experts'.)
void read_arctic(Config& config, file::Model& model) {
  read_decoder(config, model);
  read_window(config, model, 0, "");
  read_experts(config, model, {.intermediate = "intermediate_size"});
  file::Experts& experts = *model.mutable_experts();
  if (config.flag_or("parallel_attn_mlp_res", false)) {
    experts.set_shared_intermediate(model.hidden());
  }
  experts.set_every(config.period_or("moe_layer_frequency", "experts.every", 1));
  if (experts.every() > 1) read_dense_mlp(config, model);
}

// The layers that a text of numbers lists: "4,5,6".
std::set<std::int64_t> listed_layers(Config& config, const file::Model& model,
                                     std::string_view key) {
  std::set<std::int64_t> layers;
  const std::string text = config.text_or(key, "");
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    std::int64_t layer = -1;
    const auto [next, error] = std::from_chars(at, end, layer);
    const bool is_last = next == end;
    if (error != std::errc() || layer < 0 || layer >= model.layers() ||
        (!is_last && *next != ',')) {
      config.refuse_if(model.layers() > 0, key,
                       "must list layers from 0 to " + std::to_string(model.layers() - 1) +
                           " with commas between them; entry " + std::to_string(layers.size()) +
                           " is \"" + std::string(at, std::find(at, end, ',')) + "\"");
      return layers;
    }
    layers.insert(layer);
    at = is_last ? end : next + 1;
  }
  return layers;
}

// Step 3: queries out of a narrow vector, one head of keys and values for all.
void read_step3(Config& config, file::Model& model) {
  read_decoder(config, model);
  model.set_kv_heads(config.size_or("num_attention_groups", "kv_heads", 1));
  model.set_query_rank(config.count_or("share_q_dim", "query_rank", 0));
  read_experts(config, model, {.routed = {"moe_num_experts"}, .per_token = {"moe_top_k"}});
  model.mutable_experts()->set_shared_intermediate(
      config.count_or("share_expert_dim", "experts.shared_intermediate", 0));
  const std::set<std::int64_t> layers = listed_layers(config, model, "moe_layers_enum");
  if (!layers.empty()) {
    model.set_mlp_pattern(layers_where(
        model, [&](std::int64_t layer) { return layers.contains(layer); }, 'E', 'D'));
  }
  read_dense_mlp(config, model);
}

// Step 3.5: more heads in layers with a window, and a gate for each head.
void read_step3p5(Config& config, file::Model& model) {
  read_decoder(config, model);
  model.set_qk_norm(true);
  model.set_attention_gate("head");
  read_window(config, model, 512, "GLLL");
  if (config.has("attention_other_setting")) {
    Config other = config.nested("attention_other_setting");
    model.mutable_local()->set_heads(other.size("num_attention_heads", "local.heads"));
    model.mutable_local()->set_kv_heads(
        other.size_or("num_attention_groups", "local.kv_heads", model.kv_heads()));
  }
  read_experts(config, model);
  model.mutable_experts()->set_shared_intermediate(
      config.count_or("share_expert_dim", "experts.shared_intermediate", 0));
  config.has("n_shared_experts");
  read_first_dense(config, model);
  // Its modules see the window and have a dense MLP.
  read_prediction(config, model, "num_nextn_predict_layers", "LD");
}

// LongCat: each layer of the file is two blocks, and the experts stand beside the first one's MLP.
void read_longcat(Config& config, file::Model& model) {
  model.set_layers(2 * read_layers(config, "num_layers"));
  model.set_hidden(config.size("hidden_size", "hidden"));
  model.set_heads(config.size("num_attention_heads", "heads"));
  model.set_kv_heads(model.heads());
  model.set_vocabulary(config.size("vocab_size", "vocabulary"));
  model.set_tied_embeddings(config.flag_or("tie_word_embeddings", false));
  model.set_attention_bias(config.flag_or("attention_bias", false));
  read_latent(config, model);
  model.set_intermediate(config.size("ffn_hidden_size", "intermediate"));
  read_experts(config, model, {.intermediate = "expert_ffn_hidden_size"});
  file::Experts& experts = *model.mutable_experts();
  experts.set_zero(config.count_or("zero_expert_num", "experts.zero", 0));
  experts.set_shared_intermediate(model.intermediate());
  model.set_mlp_pattern("ED");
}

void read_mimo_v2(Config& config, file::Model& model) {
  read_decoder(config, model);
  model.set_value_dim(config.size_or("v_head_dim", "value_dim", model.head_dim()));
  model.set_attention_bias(config.flag_or("attention_bias", false));
  model.set_attention_sinks(config.flag_or("add_swa_attention_sink_bias", false));
  model.set_window(config.size_or("sliding_window", "window", 128));
  const std::string letters = layer_letters(config, model, "hybrid_layer_pattern", "GL");
  config.refuse_if(letters.empty(), "hybrid_layer_pattern",
                   "must be given: a number a layer, 1 for one with the window and 0 for a global "
                   "one");
  model.set_mixer_pattern(letters);
  file::Local& local = *model.mutable_local();
  local.set_heads(config.size_or("swa_num_attention_heads", "local.heads", model.heads()));
  local.set_kv_heads(config.size_or("swa_num_key_value_heads", "local.kv_heads", model.kv_heads()));
  local.set_head_dim(config.size_or("swa_head_dim", "local.head_dim", model.head_dim()));
  local.set_value_dim(config.size_or("swa_v_head_dim", "local.value_dim", model.value_dim()));
  config.has("attention_chunk_size");  // the window once more
  read_experts(config, model);
  read_shared_experts(config, model, "n_shared_experts");
  model.set_mlp_pattern(layer_letters(config, model, "moe_layer_freq", "DE"));
  read_dense_mlp(config, model);
}

// Trinity: a gate on attention's result, four norms, windows in three of four layers.
void read_afmoe(Config& config, file::Model& model) {
  read_decoder(config, model);
  model.set_qk_norm(true);
  model.set_post_norms(true);
  model.set_attention_gate("value");
  read_window(config, model, 2048, "LLLG");
  config.has("global_attn_every_n_layers");  // what layer_types says
  read_experts(config, model);
  read_shared_experts(config, model, "num_shared_experts");
  read_first_dense(config, model, "num_dense_layers");
}

// K-EXAONE: EXAONE 4 with norms before the branches, and with experts.
void read_exaone_moe(Config& config, file::Model& model) {
  read_decoder(config, model);
  model.set_qk_norm(true);
  read_window(config, model, 0, pattern_or(config, "sliding_window_pattern", 4));
  read_experts(config, model);
  read_shared_experts(config, model, "num_shared_experts");
  read_dense_mlp(config, model);
  const std::vector<bool> experts = config.flags("is_moe_layer");
  const std::int64_t first = first_dense_layers(config, model);
  if (experts.empty()) {
    model.mutable_experts()->set_first_dense(first);
  } else {
    model.set_mlp_pattern(layers_where(
        model,
        [&](std::int64_t layer) {
          const auto at = static_cast<std::size_t>(layer);
          return at < experts.size() && experts[at];
        },
        'E', 'D'));
  }
  // Its modules see the window and have a dense MLP.
  read_prediction(config, model, "num_nextn_predict_layers", "LD");
}

constexpr HuggingFaceFamily kExpertFamilies[] = {
    {"afmoe", read_afmoe},
    {"exaone_moe", read_exaone_moe},
    {"solar_open", read_glm4_moe},
    {"qwen3_omni_moe_text", read_qwen3_moe},
    {"arctic", read_arctic},
    {"bailing_moe", read_bailing},
    {"bailing_moe_v2", read_bailing},
    {"dbrx", read_dbrx},
    {"deepseek", read_deepseek_moe},
    {"deepseek_v2", read_deepseek},
    {"deepseek_v3", read_deepseek_v3},
    {"deepseek_v32", read_deepseek_v32},
    {"dots1", read_dots1},
    {"ernie4_5_moe", read_ernie_moe},
    {"glm4_moe", read_glm4_moe},
    {"glm4_moe_lite", read_deepseek_v3},
    {"glm4v_moe_text", read_glm4_moe},
    {"glm_moe_dsa", read_deepseek_v32},
    {"gpt_oss", read_gpt_oss},
    {"granitemoe", read_granite_moe},
    {"granitemoeshared", read_granite_moe},
    {"git", read_grok},  // as Grok 2 names itself
    {"grok-1", read_grok},
    {"hunyuan", read_hunyuan_moe},
    {"hunyuan_v1_moe", read_hunyuan_moe},
    {"kimi_k2", read_deepseek_v3},
    {"llama4_text", read_llama4},
    {"longcat_flash", read_longcat},
    {"mimo_v2", read_mimo_v2},
    {"mimo_v2_flash", read_mimo_v2},
    {"minimax_m2", read_minimax_m2},
    {"minimax_m3", read_minimax_m3},
    {"mixtral", read_mixtral},
    {"olmoe", read_olmoe},
    {"phimoe", read_phimoe},
    {"qwen2_moe", read_qwen2_moe},
    {"qwen3_moe", read_qwen3_moe},
    {"qwen3_vl_moe_text", read_qwen3_moe},
    {"step3_text", read_step3},
    {"step3p5", read_step3p5},
    {"step3p7", read_step3p5},
};

}  // namespace

std::span<const HuggingFaceFamily> expert_families() {
  return kExpertFamilies;
}

// Ling. Its first version has neither norms of queries and keys nor dense layers.
void read_bailing(HuggingFaceConfig& config, file::Model& model) {
  read_decoder(config, model);
  const bool bias = config.flag_or("use_bias", false);
  model.set_attention_bias(bias);
  model.set_mlp_bias(bias);
  model.set_qkv_bias(config.flag_or("use_qkv_bias", false));
  model.set_qk_norm(config.flag_or("use_qk_norm", false));
  config.has("sliding_window");  // max_window_layers: no layer has one
  read_experts(config, model);
  read_shared_experts(config, model, "num_shared_experts");
  read_first_dense(config, model);
  model.set_prediction_modules(
      config.count_or("num_nextn_predict_layers", "prediction_modules", 0));
}

// With latent attention the file's head_dim is only the rotary part, or is absent, so it is
// computed. Small models of DeepSeek-VL2 have plain attention.
void read_deepseek(HuggingFaceConfig& config, file::Model& model) {
  if (!config.flag_or("use_mla", true)) return read_deepseek_moe(config, model);
  read_decoder(config, model, {.head_dim = 1});
  read_latent(config, model);
  read_deepseek_mlps(config, model);
}

void read_ernie_moe(HuggingFaceConfig& config, file::Model& model) {
  read_decoder(config, model, {.tied = true});
  const bool bias = config.flag_or("use_bias", false);
  model.set_attention_bias(bias);
  model.set_mlp_bias(bias);
  read_experts(config, model, {.routed = {"moe_num_experts"}, .per_token = {"moe_k"}});
  read_shared_experts(config, model, "moe_num_shared_experts");
  const std::int64_t first = config.count_or("moe_layer_start_index", "mlp_pattern", 1);
  const std::int64_t last = config.integer_or("moe_layer_end_index", -1);
  const std::int64_t every = config.period_or("moe_layer_interval", "mlp_pattern", 1);
  const auto has_experts = [&](std::int64_t layer) {
    return layer >= first && (last < 0 || layer <= last) && (layer + 1) % every == 0;
  };
  model.set_mlp_pattern(layers_where(model, has_experts, 'E', 'D'));
  read_dense_mlp(config, model);
  // Its module has a dense MLP: 989,888,512 parameters of ERNIE 4.5 300B.
  read_prediction(config, model, "num_nextn_predict_layers", "GD");
}

// Sparse attention that chooses blocks of keys.
void read_minimax_m3(HuggingFaceConfig& config, file::Model& model) {
  read_decoder(config, model);
  model.set_qk_norm(config.flag_or("use_qk_norm", true));
  Config sparse = config.nested("sparse_attention_config");
  file::Indexer& indexer = *model.mutable_indexer();
  indexer.set_heads(sparse.size("sparse_num_index_heads", "indexer.heads"));
  indexer.set_head_dim(sparse.size("sparse_index_dim", "indexer.head_dim"));
  indexer.set_top_k(sparse.size("sparse_topk_blocks", "indexer.top_k") *
                    sparse.size("sparse_block_size", "indexer.top_k"));
  model.set_mixer_pattern(layer_letters(sparse, model, "sparse_attention_freq", "GI"));
  config.has("intermediate_size");
  read_experts(config, model,
               {.intermediate = config.either("moe_intermediate_size", "intermediate_size")});
  file::Experts& experts = *model.mutable_experts();
  experts.set_shared_intermediate(
      config.count_or("n_shared_experts", "experts.shared_intermediate", 0) *
      config.count_or("shared_intermediate_size", "experts.shared_intermediate", 0));
  model.set_mlp_pattern(layer_letters(config, model, "moe_layer_freq", "DE"));
  config.has("first_k_dense_replace");  // what moe_layer_freq says
  read_prediction(config, model, "num_nextn_predict_layers");
  config.has("num_mtp_modules");  // the other key counts those that are read
  model.set_intermediate(config.size("dense_intermediate_size", "intermediate"));
}

}  // namespace stepsim
