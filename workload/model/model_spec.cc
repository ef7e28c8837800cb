#include "workload/model/model_spec.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <string_view>

#include "workload/model/mlp_stack_spec.h"
#include "workload/model/model_fields.h"

namespace stepsim {
namespace {

class Rules {
 public:
  void at_least(std::string field, std::int64_t least, std::int64_t value) {
    require(value >= least, std::move(field),
            "must be at least " + std::to_string(least) + ", is " + std::to_string(value));
  }
  void require(bool holds, std::string field, std::string message) {
    if (!holds) problems_.push_back({std::move(field), std::move(message)});
  }
  void add(std::vector<Problem> problems) {
    for (Problem& problem : problems) problems_.push_back(std::move(problem));
  }
  std::vector<Problem> take() { return std::move(problems_); }

 private:
  std::vector<Problem> problems_;
};

// Returns whether the letter stands anywhere in the pattern, small or large.
bool has_letter(const std::string& pattern, std::string_view letters) {
  return pattern.find_first_of(letters) != std::string::npos;
}

// Checks that a pattern has known letters only, and names the first other one with its position.
void check_letters(const std::string& field, const std::string& pattern, std::string_view letters,
                   const std::string& meaning, Rules& rules) {
  const std::size_t wrong = pattern.find_first_not_of(letters);
  if (wrong == std::string::npos) return;
  rules.require(false, field,
                "must be letters " + meaning + ", one a layer; letter " +
                    std::to_string(wrong + 1) + " of \"" + pattern + "\" is " +
                    pattern.substr(wrong, 1));
}

void check_mixers(const ModelSpec& model, Rules& rules) {
  const std::string& pattern = model.mixer_pattern;
  check_letters(
      "mixer_pattern", pattern, "GLSBICHNXZgli-",
      "G (global attention), L (local), S (a state), B (both), I (sparse), C (compressed and "
      "chosen), H (compressed), N (not causal), "
      "X (with cross attention), Z (shared weights, then a state) or - (nothing), g and l (with "
      "the keys of an earlier "
      "layer), i (with its choice)",
      rules);
  rules.require(!has_letter(pattern, "Ll") || model.attention.window != 0, "mixer_pattern",
                "has local layers, but there is no window: window must be at least 1");
  rules.require(!has_letter(pattern, "SBZ") || model.state.heads != 0, "mixer_pattern",
                "has layers with a state, but state.heads is 0");
  rules.require(model.state.heads == 0 || has_letter(pattern, "SBZ"), "state.heads",
                "is " + std::to_string(model.state.heads) +
                    ", but mixer_pattern gives no layer a state (S, B or Z)");
  rules.require(!has_letter(pattern, "Z") || model.shared.blocks != 0, "mixer_pattern",
                "has layers Z, but shared.blocks is 0");
  rules.require(model.shared.blocks == 0 || has_letter(pattern, "Z"), "shared.blocks",
                "is " + std::to_string(model.shared.blocks) +
                    ", but mixer_pattern gives no layer a block of shared weights (Z)");
  rules.require(!has_letter(pattern, "Z") || (model.norms.pre && !model.norms.post),
                "mixer_pattern", "has layers Z, so pre_norms must be true and post_norms false");
  rules.require(
      !has_letter(pattern, "Z") || (model.latent.kv_rank == 0 && model.attention.query_rank == 0 &&
                                    !model.parallel_branches),
      "mixer_pattern",
      "has layers Z, so latent, query_rank and parallel_branches must be left out");
  rules.require(!has_letter(pattern, "Ii") || model.indexer.heads != 0, "mixer_pattern",
                "has sparse layers, but indexer.heads is 0");
  rules.require(!has_letter(pattern, "C") || model.indexer.heads != 0, "mixer_pattern",
                "has layers C, but indexer.heads is 0");
  rules.require(model.indexer.heads == 0 || has_letter(pattern, "IC"), "indexer.heads",
                "is " + std::to_string(model.indexer.heads) +
                    ", but mixer_pattern gives no layer an indexer (I or C)");
  rules.require(!has_letter(pattern, "NX") || model.attention.causal, "mixer_pattern",
                "has layers N or X, so causal must be true: it is said of the decoder");
  for (const auto& [shared, own] :
       {std::pair{'g', 'G'}, std::pair{'l', 'L'}, std::pair{'i', 'I'}, std::pair{'X', 'N'}}) {
    const std::size_t first = pattern.find(shared);
    rules.require(first == std::string::npos || pattern.rfind(own, first) != std::string::npos,
                  "mixer_pattern",
                  std::string("has a layer ") + shared + " before the first " + own +
                      ", which it would read from");
  }
  rules.require(model.latent.kv_rank == 0 || !has_letter(pattern, "gl"), "mixer_pattern",
                "must not share keys (g, l) where attention is latent");
}

void check_mlps(const ModelSpec& model, Rules& rules) {
  const std::string& pattern = model.mlp_pattern;
  check_letters("mlp_pattern", pattern, "DE-", "D (dense), E (experts) or - (nothing)", rules);
  rules.require(!has_letter(pattern, "E") || model.experts.routed != 0, "mlp_pattern",
                "has layers with experts, but experts.routed is 0");
  if (pattern.empty()) return;
  rules.require(model.experts.first_dense == 0 && model.experts.every == 1, "mlp_pattern",
                "says which layers have experts, so experts.first_dense and experts.every must be "
                "left out");
  rules.require(
      model.experts.routed == 0 || has_letter(pattern, "E"), "mlp_pattern",
      "gives no layer experts (E), but experts.routed is " + std::to_string(model.experts.routed));
}

void check_widths(const ModelSpec& model, Rules& rules) {
  for (std::size_t i = 0; i < model.mlp.widths.size(); ++i) {
    const std::int64_t width = model.mlp.widths[i];
    if (width >= 1 && width <= model.mlp.width) continue;
    rules.require(false, "mlp_widths",
                  "must be 1 to intermediate (" + std::to_string(model.mlp.width) + "); entry " +
                      std::to_string(i) + " is " + std::to_string(width));
    return;
  }
}

// A layer has a mixer or an MLP: the patterns must not leave both out in the same layer.
void check_layers(const ModelSpec& model, Rules& rules) {
  const std::string& mixers = model.mixer_pattern;
  const std::string& mlps = model.mlp_pattern;
  if (mixers.empty() || mlps.empty()) return;
  for (std::size_t layer = 0; layer < static_cast<std::size_t>(model.layers); ++layer) {
    if (mixers[layer % mixers.size()] != '-' || mlps[layer % mlps.size()] != '-') continue;
    rules.require(false, "mlp_pattern",
                  "leaves layer " + std::to_string(layer) + " with neither mixer nor MLP");
    return;
  }
}

void check_indexer(const IndexerSpec& indexer, Rules& rules) {
  if (indexer.heads == 0) {
    rules.require(indexer == IndexerSpec{}, "indexer.heads",
                  "must be at least 1 where other fields of indexer are given, is 0");
    return;
  }
  rules.at_least("indexer.head_dim", 1, indexer.head_dim);
  rules.at_least("indexer.top_k", 1, indexer.top_k);
}

// Checks attention to compressed keys, which all layers of a model have or none.
void check_compressed(const ModelSpec& model, Rules& rules) {
  const CompressedSpec& compressed = model.compressed;
  const bool has_layers = has_letter(model.mixer_pattern, "CH");
  if (compressed.output_groups == 0) {
    rules.require(compressed == CompressedSpec{}, "compressed.output_groups",
                  "must be at least 1 where other fields of compressed are given, is 0");
    rules.require(!has_layers, "mixer_pattern",
                  "has layers C or H, but compressed.output_groups is 0");
    return;
  }
  const AttentionSpec& attention = model.attention;
  rules.require(model.mixer_pattern.find_first_not_of("CHL") == std::string::npos && has_layers,
                "mixer_pattern", "must have layers C or H, and otherwise L, with compressed");
  if (has_letter(model.mixer_pattern, "C")) rules.at_least("compressed.ratio", 2, compressed.ratio);
  if (has_letter(model.mixer_pattern, "H"))
    rules.at_least("compressed.heavy_ratio", 2, compressed.heavy_ratio);
  rules.at_least("compressed.output_rank", 1, compressed.output_rank);
  rules.at_least("window", 1, attention.window);
  rules.at_least("query_rank", 1, attention.query_rank);
  rules.require(attention.heads % compressed.output_groups == 0, "compressed.output_groups",
                "must divide heads (" + std::to_string(attention.heads) + "), is " +
                    std::to_string(compressed.output_groups));
  rules.require(attention.kv_heads == 1, "kv_heads",
                "must be 1 with compressed, whose vector of a token is for all heads, is " +
                    std::to_string(attention.kv_heads));
  rules.require(compressed.rope_dim <= attention.head_dim, "compressed.rope_dim",
                "must be at most head_dim (" + std::to_string(attention.head_dim) + "), is " +
                    std::to_string(compressed.rope_dim));
  rules.require(model.latent == LatentSpec{} && model.local == LocalSpec{} &&
                    attention.value_dim == 0 && attention.gate == AttentionGate::kNone &&
                    !attention.qk_norm && !attention.qk_norm_whole && attention.causal &&
                    attention.window_kind == WindowKind::kSliding && !attention.bias &&
                    !attention.qkv_bias && !model.parallel_branches,
                "compressed",
                "goes with causal attention and a sliding window; without latent, local, "
                "value_dim, gates, biases, norms of queries and keys and parallel_branches");
}

void check_hyper(const ModelSpec& model, Rules& rules) {
  rules.require(model.hyper.streams != 0 || model.hyper == HyperSpec{}, "hyper.streams",
                "must be at least 2 where other fields of hyper are given, is 0");
  if (model.hyper.streams == 0) return;
  rules.at_least("hyper.streams", 2, model.hyper.streams);
  rules.require(model.norms.pre && !model.norms.post && !model.parallel_branches &&
                    model.embedding.of_layers == 0 && !has_letter(model.mixer_pattern, "NXZ"),
                "hyper",
                "goes with pre_norms alone, and without parallel_branches, "
                "layer_embedding and layers N, X and Z");
}

bool is_one_of(std::string_view letters, char letter) {
  return letters.find(letter) != std::string_view::npos;
}

void check_vision(const VisionSpec& vision, Rules& rules) {
  if (vision.layers == 0) {
    rules.require(vision == VisionSpec{}, "vision.layers",
                  "must be at least 1 where other fields of vision are given, is 0");
    return;
  }
  for (const auto& [field, value] :
       {std::pair{"vision.hidden", vision.hidden}, std::pair{"vision.heads", vision.heads},
        std::pair{"vision.intermediate", vision.intermediate},
        std::pair{"vision.patch", vision.patch}}) {
    rules.at_least(field, 1, value);
  }
  rules.require(vision.heads < 1 || vision.hidden % vision.heads == 0, "vision.heads",
                "must divide vision.hidden (" + std::to_string(vision.hidden) + "), is " +
                    std::to_string(vision.heads));
}

// Checks the block of prediction's modules.
void check_prediction(const ModelSpec& model, Rules& rules) {
  const std::string& block = model.prediction.block;
  if (block.empty()) return;
  rules.require(model.prediction.modules > 0, "prediction_block",
                "is given, but prediction_modules is 0");
  const bool fine = block.size() == 2 && is_one_of("GLSBICH-", block[0]) &&
                    is_one_of("DE-", block[1]) && block != "--";
  rules.require(fine, "prediction_block",
                "must be a letter of mixer_pattern that reads no other layer and one of "
                "mlp_pattern, as LE, is \"" +
                    block + "\"");
  if (!fine) return;
  const auto needs = [&](std::string_view letters, bool has, const char* what) {
    rules.require(!is_one_of(letters, block[0]) || has, "prediction_block",
                  "is " + block + ", but the model has no " + what);
  };
  needs("L", model.attention.window > 0, "window");
  needs("SB", model.state.heads > 0, "state");
  needs("IC", model.indexer.heads > 0, "indexer");
  needs("CH", model.compressed.output_groups > 0, "compressed keys");
  needs("GSBI-", model.compressed.output_groups == 0, "such layers with compressed keys");
  rules.require(block[1] != 'E' || model.experts.routed > 0, "prediction_block",
                "is " + block + ", but the model has no experts");
}

void check_state(const StateSpec& state, Rules& rules) {
  if (state.heads == 0) {
    rules.require(state == StateSpec{}, "state.heads",
                  "must be at least 1 where other fields of state are given, is 0");
    return;
  }
  const bool is_mamba = state.kind == StateKind::kMamba;
  const bool is_kimi = state.kind == StateKind::kKimiDelta;
  const bool is_short = state.kind == StateKind::kShort;
  if (is_short) rules.at_least("state.convolution", 1, state.convolution);
  rules.at_least("state.key_dim", 1, state.key_dim);
  rules.at_least("state.value_dim", 1, state.value_dim);
  rules.at_least("state.groups", 1, state.groups);
  rules.require(state.groups < 1 || state.heads % state.groups == 0, "state.groups",
                "must divide state.heads (" + std::to_string(state.heads) + "), is " +
                    std::to_string(state.groups));
  if (is_mamba || is_kimi) rules.at_least("state.rank", 1, state.rank);
  rules.require(is_kimi || !state.full_gate, "state.full_gate",
                "must be false in a state of kind " + std::string(name_of(state.kind)));
  rules.require(is_mamba || is_kimi || state.rank == 0, "state.rank",
                "must be 0 in a state of kind " + std::string(name_of(state.kind)) + ", is " +
                    std::to_string(state.rank));
  rules.require(!(is_mamba || is_short) || (state.groups == 1 && state.value_dim == 1),
                "state.value_dim",
                "must be 1 in a state of kind " + std::string(name_of(state.kind)) +
                    ", as must state.groups: each feature is a head");
}

void check_window(const ModelSpec& model, Rules& rules) {
  rules.require(model.attention.window_kind == WindowKind::kSliding || model.attention.causal,
                "window_kind",
                "is chunked, but only causal attention can have chunks: causal must be true");
  rules.require(model.local == LocalSpec{} || model.attention.window != 0, "local",
                "is given, but no window: window must be at least 1");
}

void check_latent(const ModelSpec& model, Rules& rules) {
  const LatentSpec& latent = model.latent;
  if (latent.kv_rank == 0) {
    rules.require(latent == LatentSpec{}, "latent.kv_rank",
                  "must be at least 1 where other fields of latent are given, is 0");
    return;
  }
  rules.at_least("latent.kv_rank", 1, latent.kv_rank);
  rules.at_least("latent.nope_dim", 1, latent.nope_dim);
  rules.at_least("latent.v_dim", 1, latent.v_dim);
  rules.require(model.attention.kv_heads == model.attention.heads, "kv_heads",
                "must be as many as heads (" + std::to_string(model.attention.heads) +
                    ") with latent attention, is " + std::to_string(model.attention.kv_heads));
  rules.require(model.attention.head_dim == latent.nope_dim + latent.rope_dim, "head_dim",
                "must be latent.nope_dim + latent.rope_dim (" +
                    std::to_string(latent.nope_dim + latent.rope_dim) + "), is " +
                    std::to_string(model.attention.head_dim));
  rules.require(!model.attention.qk_norm, "qk_norm",
                "must be false with latent attention, is true");
}

void check_experts(const ExpertSpec& experts, Rules& rules) {
  if (experts.routed == 0) {
    rules.require(experts == ExpertSpec{}, "experts.routed",
                  "must be at least 1 where other fields of experts are given, is 0");
    return;
  }
  rules.at_least("experts.per_token", 1, experts.per_token);
  rules.require(experts.per_token <= experts.routed, "experts.per_token",
                "must be at most experts.routed (" + std::to_string(experts.routed) + "), is " +
                    std::to_string(experts.per_token));
  rules.at_least("experts.intermediate", 1, experts.intermediate);
  if (experts.routed > 0 && experts.zero > 0) {
    rules.require(
        experts.per_token * experts.routed % (experts.routed + experts.zero) == 0, "experts.zero",
        "must leave a whole number of routed experts to visit: per_token x routed / (routed "
        "+ zero) is " +
            std::to_string(experts.per_token) + " x " + std::to_string(experts.routed) + " / " +
            std::to_string(experts.routed + experts.zero));
  }
  rules.require(!experts.shared_gate || experts.shared_intermediate > 0, "experts.shared_gate",
                "must be false where experts.shared_intermediate is 0, is true");
  if (experts.load.empty()) return;
  rules.require(static_cast<std::int64_t>(experts.load.size()) == experts.routed, "experts.load",
                "must have one number for each of the " + std::to_string(experts.routed) +
                    " routed experts, has " + std::to_string(experts.load.size()));
  double sum = 0;
  bool fine = true;
  for (const double load : experts.load) {
    fine = fine && std::isfinite(load) && load >= 0;
    sum += load;
  }
  rules.require(fine && sum > 0, "experts.load",
                "must be numbers of at least 0, one of them positive");
  if (!fine || experts.per_token < 1 || experts.per_token >= experts.routed) return;
  for (std::size_t expert = 0; expert < experts.load.size(); ++expert) {
    const double load = experts.load[expert];
    rules.require(load * static_cast<double>(experts.per_token) < sum, "experts.load",
                  "must be less than 1 / experts.per_token (" + std::to_string(experts.per_token) +
                      ") of the sum, as a token goes to an expert once; is " +
                      std::to_string(load) + " of " + std::to_string(sum) + " for expert " +
                      std::to_string(expert));
  }
}

void check_heads(const ModelSpec& model, const BlockKind& kind, Rules& rules) {
  if (!kind.attends()) return;
  const ModelSpec own = as_in(model, kind);
  const bool is_local = kind.mixer == Mixer::kLocal && model.local != LocalSpec{};
  rules.require(own.attention.heads < 1 || own.attention.kv_heads < 1 ||
                    own.attention.heads % own.attention.kv_heads == 0,
                is_local ? "local.kv_heads" : "kv_heads",
                "must divide heads (" + std::to_string(own.attention.heads) + "), is " +
                    std::to_string(own.attention.kv_heads));
  rules.require(!own.attention.values_are_keys || own.v_dim() == own.attention.head_dim,
                "values_are_keys", "is true, so value_dim must be head_dim");
}

// Checks how the branches of a block are joined.
void check_branches(const ModelSpec& model, const std::vector<BlockKind>& kinds, Rules& rules) {
  if (model.parallel_branches) {
    const bool plain = std::ranges::all_of(kinds, [](const BlockKind& kind) {
      return kind.mlp == MlpKind::kDense && kind.attends() && !kind.has_state() &&
             kind.mixer != Mixer::kCross;
    });
    rules.require(plain && !model.norms.post && model.norms.pre, "parallel_branches",
                  "must be false for a model with experts, a state, cross attention or "
                  "post_norms, is true");
  }
  rules.require(!model.norms.parallel || model.parallel_branches, "parallel_norms",
                "is true, but parallel_branches is false");
  rules.require(model.norms.pre || model.norms.post, "pre_norms",
                "must be true where post_norms is false: a branch has a norm");
  rules.require(!model.attention.qk_norm || !model.attention.qk_norm_whole, "qk_norm_whole",
                "must be false where qk_norm is true: there is one norm");
  rules.require(
      model.attention.query_rank == 0 || model.latent.kv_rank == 0, "query_rank",
      "must be 0 with latent attention, is " + std::to_string(model.attention.query_rank));
  rules.require(
      model.attention.query_rank == 0 || !model.parallel_branches, "query_rank",
      "must be 0 with parallel_branches, is " + std::to_string(model.attention.query_rank));
  rules.require(model.latent.kv_rank == 0 || !model.attention.qk_norm_whole, "qk_norm_whole",
                "must be false with latent attention, is true");
}

Mixer mixer_of(char letter) {
  switch (letter) {
    case 'L':
    case 'l':
      return Mixer::kLocal;
    case 'S':
      return Mixer::kState;
    case 'B':
      return Mixer::kBoth;
    case 'I':
    case 'i':
      return Mixer::kSparse;
    case 'C':
      return Mixer::kCompressed;
    case 'H':
      return Mixer::kHeavy;
    case 'N':
      return Mixer::kTwoSided;
    case 'X':
      return Mixer::kCross;
    case 'Z':
      return Mixer::kShared;
    case '-':
      return Mixer::kNone;
    default:
      return Mixer::kGlobal;
  }
}

MlpKind mlp_of(char letter) {
  return letter == 'E' ? MlpKind::kExperts : letter == '-' ? MlpKind::kNone : MlpKind::kDense;
}

// Returns the pairs of causal attention in chunks, the last of which may be shorter.
double chunked_pairs(std::int64_t length, std::int64_t chunk) {
  return static_cast<double>(length / chunk) * attention_pairs(chunk, true, 0) +
         attention_pairs(length % chunk, true, 0);
}

}  // namespace

std::string_view name_of(ModelKind kind) {
  return kind == ModelKind::kTransformer ? "transformer" : "mlp_stack";
}

std::string_view name_of(NormKind kind) {
  constexpr std::array<std::string_view, kNormKinds> kNames = {"rms", "layer",
                                                               "layer_without_bias"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view name_of(AttentionGate gate) {
  constexpr std::array<std::string_view, kAttentionGates> kNames = {"none", "head", "value"};
  return kNames[static_cast<std::size_t>(gate)];
}

std::string_view name_of(WindowKind kind) {
  return kind == WindowKind::kSliding ? "sliding" : "chunked";
}

std::string_view name_of(StateKind kind) {
  constexpr std::array<std::string_view, kStateKinds> kNames = {
      "mamba2", "gated_delta", "kimi_delta", "lightning", "mamba", "short"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::vector<Problem> check(const ModelSpec& model) {
  Rules rules;
  rules.add(model_fields().problems(model));
  if (model.kind == ModelKind::kMlpStack) {
    rules.add(check_mlp_stack(model));
    return rules.take();
  }
  const std::vector<BlockKind> kinds = kinds_of(model);
  const bool attends = std::ranges::any_of(kinds, &BlockKind::attends);
  const bool has_mlp =
      std::ranges::any_of(kinds, [](const BlockKind& kind) { return kind.mlp == MlpKind::kDense; });
  if (has_mlp || model.experts.routed > 0 || model.shared.blocks > 0)
    rules.at_least("intermediate", 1, model.mlp.width);
  if (attends) {
    rules.at_least("heads", 1, model.attention.heads);
    rules.at_least("kv_heads", 1, model.attention.kv_heads);
    rules.at_least("head_dim", 1, model.attention.head_dim);
  }
  rules.at_least("vocabulary", 1, model.embedding.vocabulary);
  for (const BlockKind& kind : kinds) check_heads(model, kind, rules);
  check_mixers(model, rules);
  check_mlps(model, rules);
  check_layers(model, rules);
  check_widths(model, rules);
  check_window(model, rules);
  check_latent(model, rules);
  check_state(model.state, rules);
  check_indexer(model.indexer, rules);
  check_compressed(model, rules);
  check_hyper(model, rules);
  check_prediction(model, rules);
  check_vision(model.vision, rules);
  check_branches(model, kinds, rules);
  check_experts(model.experts, rules);
  return rules.take();
}

namespace {

char mixer_letter(const ModelSpec& model, std::int64_t layer) {
  return model.mixer_pattern[static_cast<std::size_t>(layer) % model.mixer_pattern.size()];
}

// Returns whether an earlier layer owns the weights of this layer Z.
bool borrows_weights(const ModelSpec& model, std::int64_t layer) {
  std::int64_t before = 0;
  for (std::int64_t earlier = layer - 1; earlier >= 0 && before < model.shared.blocks; --earlier) {
    if (mixer_letter(model, earlier) == 'Z') ++before;
  }
  return before >= model.shared.blocks;
}

// Returns whether the next layer of the same family of letters reads what this one has made.
bool lends(const ModelSpec& model, std::int64_t layer) {
  const char letter = mixer_letter(model, layer);
  const char reader = letter == 'G' ? 'g' : letter == 'L' ? 'l' : letter == 'N' ? 'X' : '-';
  if (reader == '-' || model.mixer_pattern.find(reader) == std::string::npos) return false;
  for (std::int64_t later = layer + 1; later < model.layers; ++later) {
    const char next = mixer_letter(model, later);
    if (next == reader) return true;
    if (next == letter) return false;
  }
  return false;
}

}  // namespace

BlockKind kind_of(const ModelSpec& model, std::int64_t layer) {
  assert(layer >= 0 && layer < std::max<std::int64_t>(1, model.layers));
  const ExpertSpec& experts = model.experts;
  const auto at = [layer](const std::string& pattern) {
    return pattern[static_cast<std::size_t>(layer) % pattern.size()];
  };
  BlockKind kind{.mixer = model.attention.window > 0 ? Mixer::kLocal : Mixer::kGlobal};
  if (!model.mixer_pattern.empty()) {
    const char letter = at(model.mixer_pattern);
    kind.mixer = mixer_of(letter);
    kind.shares = letter == 'g' || letter == 'l' || letter == 'i';
    kind.borrows = letter == 'Z' && borrows_weights(model, layer);
    kind.lends = lends(model, layer);
  }
  if (!model.mlp_pattern.empty()) {
    kind.mlp = mlp_of(at(model.mlp_pattern));
  } else if (experts.routed > 0 && layer >= experts.first_dense &&
             (layer - experts.first_dense + 1) % std::max<std::int64_t>(1, experts.every) == 0) {
    kind.mlp = MlpKind::kExperts;
  }
  if (kind.mlp == MlpKind::kDense && !model.mlp.widths.empty()) {
    kind.mlp_width = model.mlp.widths[static_cast<std::size_t>(layer) % model.mlp.widths.size()];
  }
  return kind;
}

BlockKind prediction_kind_of(const ModelSpec& model) {
  if (const std::string& block = model.prediction.block; block.size() == 2) {
    return {.mixer = mixer_of(block[0]), .mlp = mlp_of(block[1])};
  }
  for (std::int64_t layer = model.layers - 1; layer > 0; --layer) {
    if (!kind_of(model, layer).shares) return kind_of(model, layer);
  }
  return kind_of(model, 0);
}

std::vector<BlockKind> kinds_of(const ModelSpec& model) {
  std::vector<BlockKind> kinds;
  for (std::int64_t layer = 0; layer < std::max<std::int64_t>(1, model.layers); ++layer) {
    const BlockKind kind = kind_of(model, layer);
    if (std::ranges::count(kinds, kind) == 0) kinds.push_back(kind);
  }
  if (model.prediction.modules > 0) {
    const BlockKind kind = prediction_kind_of(model);
    if (std::ranges::count(kinds, kind) == 0) kinds.push_back(kind);
  }
  return kinds;
}

ModelSpec as_in(const ModelSpec& model, const BlockKind& kind) {
  ModelSpec own = model;
  if (kind.mixer == Mixer::kTwoSided) own.attention.causal = false;
  const auto replace = [](std::int64_t& size, std::int64_t by) {
    if (by > 0) size = by;
  };
  replace(own.mlp.width, kind.mlp_width);
  if (kind.is_compressed()) return own;
  if (kind.mixer != Mixer::kLocal) {
    own.attention.window = 0;
    return own;
  }
  replace(own.attention.heads, model.local.heads);
  replace(own.attention.kv_heads, model.local.kv_heads);
  replace(own.attention.head_dim, model.local.head_dim);
  replace(own.attention.value_dim, model.local.value_dim);
  own.attention.values_are_keys = false;
  return own;
}

double pairs_of(const ModelSpec& model, const BlockKind& kind, std::int64_t length, bool masked) {
  if (kind.mixer == Mixer::kTwoSided) return attention_pairs(length, false, 0);
  if (kind.mixer == Mixer::kSparse) return attention_pairs(length, true, model.indexer.top_k);
  if (kind.is_compressed()) {
    return attention_pairs(length, true, model.attention.window) +
           compressed_pairs(model, kind, length);
  }
  if (kind.mixer != Mixer::kLocal)
    return attention_pairs(length, model.attention.causal && !masked, 0);
  return model.attention.window_kind == WindowKind::kChunked
             ? chunked_pairs(length, model.attention.window)
             : attention_pairs(length, model.attention.causal, model.attention.window);
}

double compressed_pairs(const ModelSpec& model, const BlockKind& kind, std::int64_t length) {
  const bool chooses = kind.mixer == Mixer::kCompressed;
  const std::int64_t ratio = chooses ? model.compressed.ratio : model.compressed.heavy_ratio;
  const std::int64_t reach = chooses ? ratio * model.indexer.top_k : 0;  // 0: all
  return attention_pairs(length, true, reach) / static_cast<double>(ratio);
}

double pairs_in_documents(const ModelSpec& model, const BlockKind& kind, std::int64_t length,
                          std::int64_t document) {
  if (document == 0 || document >= length) return pairs_of(model, kind, length);
  return static_cast<double>(length / document) * pairs_of(model, kind, document) +
         pairs_of(model, kind, length % document);
}

}  // namespace stepsim
