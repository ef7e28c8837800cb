#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "import/megatron/core_experiment.h"
#include "import/trainer/trainer_fields.h"
#include "proto/catalog/trainer_names.h"
#include "sim/base/field_text.h"
#include "sim/base/small_letters.h"

namespace stepsim {
namespace {

constexpr std::int64_t kUsualPadding = 128;  // make_vocab_size_divisible_by
constexpr std::int64_t kMostVocabulary = 100'000'000;

class CoreModel {
 public:
  CoreModel(const CoreOptions& options, std::int64_t padding, TrainerExperiment& made)
      : options_(options), padding_(padding), made_(made), s_(made.settings()) {}

  void read() {
    is_based_ = !options_.model.empty();
    if (is_based_) made_.start_from_model(options_.model, options_.model_from);
    is_hybrid_ = s_.has("hybrid_layer_pattern");
    sizes();
    vocabulary();
    attention();
    positions();
    mlp();
    norms();
    if (is_hybrid_) hybrid();
    experts();
    if (s_.text("experimental_attention_variant") == "gated_delta_net") gated_delta();
    rest();
  }

 private:
  bool needs(const char* key) {
    if (s_.has(key) || is_based_) return s_.has(key);
    made_.fail(key, "must be given: the settings have no such key");
    return false;
  }

  void sizes() {
    if (!is_hybrid_ && needs("num_layers")) {
      layers_ = s_.integer_or("num_layers", 0);
      made_.set("model.layers", layers_, "num_layers");
    }
    for (const char* const key : {"hidden_size", "num_attention_heads"}) needs(key);
    hidden_ = s_.integer_or("hidden_size", 0);
    read_fields("megatron", "sizes", made_);
    if (!is_based_) made_.set("model.name", "imported");
  }

  void vocabulary() {
    if (const auto padded = s_.integer("padded_vocab_size")) {
      s_.use("vocab_size");
      s_.use("make_vocab_size_divisible_by");
      made_.set("model.vocabulary", *padded, "padded_vocab_size");
      return;
    }
    const std::int64_t unit =
        s_.integer_or("make_vocab_size_divisible_by", kUsualPadding) * padding_;
    std::optional<std::int64_t> size = s_.integer("vocab_size");
    const std::string tokenizer = in_small_letters(s_.text("tokenizer_type").value_or(""));
    if (size && tokenizer == "nulltokenizer") ++*size;  // it adds the end of a document
    if (!size && is_based_) return;
    if (!size) size = of_tokenizer(tokenizer);
    if (*size < 1 || *size > kMostVocabulary || unit < 1 || unit > kMostVocabulary) {
      return made_.fail("vocab_size",
                        fmt::format("must be 1 to {}, is {}, padded to a multiple of {}",
                                    kMostVocabulary, *size, unit));
    }
    made_.set("model.vocabulary", (*size + unit - 1) / unit * unit, "vocab_size");
  }

  std::int64_t of_tokenizer(const std::string& type) {
    std::string words = type;
    for (const char* const key : {"tokenizer_model", "vocab_file", "tokenizer_name_or_path"}) {
      if (const auto text = s_.text(key)) words += " " + in_small_letters(*text);
    }
    constexpr std::int64_t kGpt2 = 50'257;
    // Each by a part of the tokenizer's type, model or file.
    for (const std::string& part : models_of_trainer("tokenizer")) {
      if (words.find(part) == std::string::npos) continue;
      const std::string& size = find_trainer_model("tokenizer", part)->fields;
      made_.assume(
          fmt::format("vocabulary of {} words, as {} has, before it is padded; "
                      "--set model.vocabulary=N gives another",
                      size, part));
      return number_in<std::int64_t>(size).value_or(kGpt2);
    }
    made_.assume(
        fmt::format("vocabulary of {} words, that of GPT-2, before it is padded: the "
                    "tokenizer is not there; --set model.vocabulary=N gives another",
                    kGpt2));
    return kGpt2;
  }

  void attention() {
    if (s_.is_true("multi_latent_attention")) {
      latent();
    } else {
      // Groups without the switch are those of TransformerConfig; arguments have both.
      const auto groups = s_.integer("num_query_groups");
      const bool switched_off = s_.truth("group_query_attention") == std::optional(false);
      if (groups && !switched_off) {
        made_.set("model.kv_heads", *groups, "num_query_groups");
      }
      read_fields("megatron", "heads", made_);
    }
    windows();
    read_fields("megatron", "blocks", made_);
    if (is_based_ && !s_.has("hidden_dropout") && !s_.has("attention_dropout")) return;
    constexpr double kUsualDropout = 0.1;
    const bool drops = s_.number("hidden_dropout").value_or(kUsualDropout) > 0 ||
                       s_.number("attention_dropout").value_or(kUsualDropout) > 0;
    made_.set("model.dropout", drops, "hidden_dropout");
  }

  void latent() {
    if (is_based_ && !s_.has("kv_lora_rank")) return;
    read_fields("megatron", "latent", made_);
    for (const char* const key :
         {"kv_channels", "qk_layernorm", "num_query_groups", "group_query_attention"}) {
      s_.use(key);  // latent attention has its own
    }
  }

  // "127,0": the token itself and 127 before it. Every n-th layer sees all.
  void windows() {
    const auto window = s_.words("window_size");
    if (!window || window->empty()) return s_.use("window_attn_skip_freq");
    std::string digits = (*window)[0];
    std::erase_if(digits, [](char c) { return c == '(' || c == ')'; });
    const auto back = number_in<std::int64_t>(digits);
    if (!back || *back < -1) {
      return made_.fail("window_size", "must be LEFT,RIGHT in tokens, as in 127,0");
    }
    if (*back == -1) return s_.use("window_attn_skip_freq");
    made_.set("model.window", *back + 1, "window_size");
    const auto skip = s_.text("window_attn_skip_freq");
    if (!skip) return;
    std::string pattern;
    if (const auto every = number_in<std::int64_t>(*skip); every && *every > 0 && *every <= 1'000) {
      pattern = std::string(static_cast<std::size_t>(*every - 1), 'L') + "G";
    } else if (const auto list = layer_list(in_brackets(*skip))) {
      for (const std::int64_t is_local : *list) pattern += is_local != 0 ? 'L' : 'G';
    }
    if (pattern.empty()) {
      return made_.fail("window_attn_skip_freq", "must be a number or a list, is " + *skip);
    }
    made_.set("model.mixer_pattern", pattern, "window_attn_skip_freq");
  }

  void positions() {
    if (is_based_ && !s_.has("position_embedding_type")) {
      return;
    }
    std::string kind = in_small_letters(s_.text("position_embedding_type").value_or(""));
    if (kind.empty()) {
      const bool rotary = s_.is_true("use_rotary_position_embeddings");
      const bool none = s_.truth("add_position_embedding") == std::optional(false);
      kind = rotary ? "rope" : none ? "none" : "learned_absolute";
    }
    if (kind == "learned_absolute") {
      const auto length = s_.integer("max_position_embeddings");
      made_.set("model.learned_positions", length ? *length : s_.integer_or("seq_length", 1),
                "max_position_embeddings");
    } else if (kind == "none" || kind == "nope" || kind == "relative" || kind == "alibi") {
      made_.set("model.rotary", false, "position_embedding_type");
    } else {
      made_.leave_unless("position_embedding_type", "rope", "rotated as rope is");
    }
    for (const char* const key : {"use_rotary_position_embeddings", "add_position_embedding"}) {
      s_.use(key);
    }
    s_.use("position_embedding_type");
  }

  void mlp() {
    std::optional<bool> gated;
    if (const auto swiglu = s_.truth("swiglu")) gated = *swiglu;
    if (const auto unit = s_.truth("gated_linear_unit")) gated = gated.value_or(false) || *unit;
    if (const auto name = s_.text("activation")) {
      gated = name->ends_with("glu") && *name != "relu";
    }
    if (!is_based_ || gated) made_.set("model.gated_mlp", gated.value_or(false), "swiglu");
    if (const auto width = s_.integer("ffn_hidden_size")) {
      width_ = *width;
    } else if (!is_based_ && hidden_ > 0 && hidden_ < (1LL << 40)) {
      constexpr std::int64_t kUnit = 64;
      width_ = gated.value_or(false) ? 4 * hidden_ * 2 / 3 / kUnit * kUnit : 4 * hidden_;
    }
    const auto bias = s_.truth("add_bias_linear");
    if (!is_based_ || bias) {
      made_.set("model.mlp_bias", bias.value_or(true), "add_bias_linear");
      made_.set("model.attention_bias", bias.value_or(true), "add_bias_linear");
    }
  }

  void norms() {
    if (!is_based_ || s_.has("normalization")) read_fields("megatron", "norm", made_);
    const bool unties = s_.has("untie_embeddings_and_output_weights");
    read_fields("megatron", unties ? "untied" : "tied", made_);
    if (!is_based_ && !made_.draft().has("model.tied_embeddings")) {
      made_.set("model.tied_embeddings", true);
    }
  }

  // Symbols are layers: M a state of Mamba 2, * attention, - an MLP, E experts; | ends a stage, and
  // / begins the modules of multi-token prediction.
  void hybrid() {
    const std::string text = s_.text("hybrid_layer_pattern").value_or("");
    const std::string main = text.substr(0, text.find('/'));
    std::string mixers;
    std::string mlps;
    for (const char c : main) {
      if (c == '|') continue;
      if (c != 'M' && c != '*' && c != '-' && c != 'E') {
        return made_.fail(
            "hybrid_layer_pattern",
            fmt::format("has the layer \"{}\": only M, *, - and E are known here", c));
      }
      mixers += c == 'M' ? 'S' : c == '*' ? 'G' : '-';
      mlps += c == '-' ? 'D' : c == 'E' ? 'E' : '-';
    }
    layers_ = static_cast<std::int64_t>(mixers.size());
    s_.use("num_layers");
    made_.set("model.layers", layers_, "hybrid_layer_pattern");
    made_.set("model.mixer_pattern", mixers, "hybrid_layer_pattern");
    made_.set("model.mlp_pattern", mlps, "hybrid_layer_pattern");
    has_pattern_ = true;
    has_experts_layer_ = mlps.find('E') != std::string::npos;
    has_dense_layer_ = mlps.find('D') != std::string::npos;
    if (mixers.find('S') == std::string::npos) return;
    // Defaults of TransformerConfig; Mamba 2 has heads for twice the model's width.
    const std::int64_t head = std::max<std::int64_t>(1, s_.integer_or("mamba_head_dim", 64));
    made_.set("model.state.kind", "mamba2");
    made_.set("model.state.heads", s_.integer("mamba_num_heads").value_or(2 * hidden_ / head),
              "mamba_num_heads");
    read_fields("megatron", "mamba", made_);
    made_.set("model.state.value_dim", head, "mamba_head_dim");
    made_.set("model.state.convolution", std::int64_t{4});
  }

  // Every n-th layer attends, or those with 0 in a list.
  void gated_delta() {
    const std::string freq = s_.text("linear_attention_freq").value_or("");
    std::string pattern;
    if (const auto every = number_in<std::int64_t>(freq); every && *every > 0 && *every <= 1'000) {
      pattern = std::string(static_cast<std::size_t>(*every - 1), 'S') + "G";
    } else if (const auto list = layer_list(freq)) {
      for (const std::int64_t is_linear : *list) pattern += is_linear != 0 ? 'S' : 'G';
    }
    if (pattern.empty()) {
      return made_.fail("linear_attention_freq",
                        "must be a number or a list, as in ([1]*3+[0])*12");
    }
    made_.set("model.mixer_pattern", pattern, "linear_attention_freq");
    made_.set("model.state.kind", "gated_delta");
    read_fields("megatron", "gated_delta", made_);
  }

  void experts() {
    const std::int64_t routed = s_.integer_or("num_experts", 0);
    const bool is_moe = routed > 0 && (!is_hybrid_ || has_experts_layer_);
    if (is_moe || (is_based_ && made_.based_model(options_.model).experts.routed > 0)) {
      read_fields("megatron", "capacity", made_);
    }
    if (!is_moe) {
      const bool needs_width = width_ > 0 && (!is_hybrid_ || has_dense_layer_);
      if (needs_width) made_.set("model.intermediate", width_, "ffn_hidden_size");
      return;
    }
    read_fields("megatron", "experts", made_);
    if (width_ > 0 && !s_.has("moe_ffn_hidden_size")) {
      made_.set("model.experts.intermediate", width_);
    }
    if (!is_hybrid_) expert_layers();
    const bool has_dense = is_hybrid_ ? has_dense_layer_ : has_dense_layer_ || is_based_;
    if (has_dense && width_ > 0 && s_.has("ffn_hidden_size")) {
      made_.set("model.intermediate", width_, "ffn_hidden_size");
    } else if (has_dense && width_ > 0 && !is_based_) {
      made_.set("model.intermediate", width_);
    }
  }

  // A list of JSON or YAML comes as words: "0 0 1".
  static std::string in_brackets(std::string text) {
    if (text.starts_with('[') || text.starts_with('(')) return text;
    std::ranges::replace(text, ' ', ',');
    return "[" + text + "]";
  }

  // A number n: the first of each n layers has experts. A list: 1 for those with experts.
  void expert_layers() {
    const auto text = s_.text("moe_layer_freq");
    if (!text) return;
    if (const auto every = number_in<std::int64_t>(*text);
        every && *every >= 1 && *every <= 1'000) {
      if (*every == 1) return;
      made_.set("model.mlp_pattern", "E" + std::string(static_cast<std::size_t>(*every - 1), 'D'),
                "moe_layer_freq");
      has_dense_layer_ = true;
      return;
    }
    const auto list = layer_list(in_brackets(*text));
    if (!list || list->empty()) {
      return made_.fail("moe_layer_freq",
                        "must be a number or a list, as in [0]*3+[1]*58, is " + shortened(*text));
    }
    if (layers_ > 0 && static_cast<std::int64_t>(list->size()) != layers_) {
      return made_.fail("moe_layer_freq",
                        fmt::format("has {} layers, but num_layers is {}", list->size(), layers_));
    }
    const auto first = std::ranges::find(*list, 1);
    has_dense_layer_ = std::ranges::find(*list, 0) != list->end();
    if (std::all_of(first, list->end(), [](std::int64_t is_moe) { return is_moe == 1; })) {
      made_.set("model.experts.first_dense", static_cast<std::int64_t>(first - list->begin()),
                "moe_layer_freq");
      return;
    }
    std::string pattern;
    for (const std::int64_t is_moe : *list) pattern += is_moe != 0 ? 'E' : 'D';
    made_.set("model.mlp_pattern", pattern, "moe_layer_freq");
  }

  void rest() {
    if (options_.prediction_by_flag && is_based_ && !s_.has("mtp_num_layers") &&
        made_.based_model(options_.model).prediction.modules > 0) {
      made_.set("model.prediction_modules", std::int64_t{0});
      made_.assume("no modules of multi-token prediction: mtp_num_layers is not there");
    }
    s_.use("mtp_loss_scaling_factor");
  }

  const CoreOptions& options_;
  std::int64_t padding_;
  TrainerExperiment& made_;
  Settings& s_;
  bool is_based_ = false;
  bool is_hybrid_ = false;
  bool has_pattern_ = false;
  bool has_experts_layer_ = false;
  bool has_dense_layer_ = false;
  std::int64_t layers_ = 0;
  std::int64_t hidden_ = 0;
  std::int64_t width_ = 0;
};

}  // namespace

void read_core_model(const CoreOptions& options, std::int64_t padding, TrainerExperiment& made) {
  CoreModel(options, padding, made).read();
}

}  // namespace stepsim
