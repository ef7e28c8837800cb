#include "workload/model_fields.h"

namespace stepsim {

template <>
inline constexpr std::size_t kValuesOf<ModelKind> = kModelKinds;
template <>
inline constexpr std::size_t kValuesOf<NormKind> = kNormKinds;

namespace {

// Far above existing models. It keeps products of sizes in 64 bits.
constexpr double kMostOfAnything = 1 << 21;

Limits sizes() {
  return Limits::between(1, kMostOfAnything);
}
Limits sizes_or_none() {
  return Limits::between(0, kMostOfAnything);
}

FieldTable<LatentSpec> make_latent_fields() {
  FieldTable<LatentSpec> table("Latent");
  table.add("q_rank", &LatentSpec::q_rank, sizes_or_none(),
            {.help = "Width of the latent vector of queries. 0: queries are projected directly."});
  table.add("kv_rank", &LatentSpec::kv_rank, sizes_or_none(),
            {.help = "Width of the latent vector of keys and values. 0: no latent attention."});
  table.add("nope_dim", &LatentSpec::nope_dim, sizes_or_none(),
            {.help = "Width of a head's queries and keys that carry no position."});
  table.add("rope_dim", &LatentSpec::rope_dim, sizes_or_none(),
            {.help = "Width of a head's rotated queries and keys; all heads share the keys'."});
  table.add("v_dim", &LatentSpec::v_dim, sizes_or_none(), {.help = "Width of a head's values."});
  return table;
}

FieldTable<ExpertSpec> make_expert_fields() {
  FieldTable<ExpertSpec> table("Experts");
  table.add("routed", &ExpertSpec::routed, sizes_or_none(),
            {.help = "Routed experts of a layer. 0: a dense model."});
  table.add(
      "per_token", &ExpertSpec::per_token, sizes_or_none(),
      {.help = "Routed experts that each token visits (top-k).", .rules = "From 1 to routed."});
  table.add("intermediate", &ExpertSpec::intermediate, sizes_or_none(),
            {.help = "Width of one routed expert.", .rules = "At least 1."});
  table.add("shared_intermediate", &ExpertSpec::shared_intermediate, sizes_or_none(),
            {.help = "Width of all shared experts side by side. 0: none."});
  table.add("first_dense", &ExpertSpec::first_dense, sizes_or_none(),
            {.help = "Layers at the beginning that keep their MLP."});
  table.add("every", &ExpertSpec::every, sizes(),
            {.help = "Period of the layers after those: the last of each period has experts."});
  table.add("router_bias", &ExpertSpec::router_bias, {.help = "The router has a bias."});
  table.add("capacity_factor", &ExpertSpec::capacity_factor, Limits::between(0, kMostOfAnything),
            {.help = "An expert takes at most this many times its even share of the tokens; the "
                     "rest is dropped. 0: it takes all that come."});
  table.add("load", &ExpertSpec::load,
            {.help = "How often each routed expert is chosen, relative to the others. Empty: "
                     "equally often.",
             .rules = "One number for each routed expert, each less than the sum / per_token."});
  table.add("shared_gate", &ExpertSpec::shared_gate,
            {.help = "A learned gate scales the shared experts' result (Qwen2)."});
  return table;
}

void add_shape(FieldTable<ModelSpec>& table) {
  using Model = ModelSpec;
  table.theme("Shape");
  table.add("name", &Model::name, {.help = "The model's name in results."});
  table.add("kind", &Model::kind,
            {.help = "transformer, or mlp_stack: two matmuls a layer and nothing else. It takes "
                     "layers, hidden and intermediate only."});
  table.add("layers", &Model::layers, sizes(), {.help = "Layers of the model.", .required = true});
  table.add("hidden", &Model::hidden, sizes(),
            {.help = "Width of the residual stream.", .required = true});
  table.add("intermediate", &Model::intermediate, sizes().or_zero(),
            {.help = "Width of the MLP. If every layer has experts it may be left out."});
  table.add("heads", &Model::heads, sizes().or_zero(),
            {.help = "Query heads of attention.", .rules = "At least 1 in a transformer."});
  table.add("kv_heads", &Model::kv_heads, sizes().or_zero(),
            {.help = "Key-value heads. As many as heads: multi-head; 1: multi-query; between: "
                     "grouped-query. Left out: as many as heads.",
             .rules = "Divides heads."});
  table.add("head_dim", &Model::head_dim, sizes().or_zero(),
            {.help = "Width of a head. Left out: hidden / heads, or latent.nope_dim + "
                     "latent.rope_dim."});
  table.add("vocabulary", &Model::vocabulary, sizes().or_zero(),
            {.help = "Rows of the embedding's table.", .rules = "At least 1 in a transformer."});
  table.add("learned_positions", &Model::learned_positions, sizes_or_none(),
            {.help = "Rows of a learned position embedding. 0: none."});
  table.add("prediction_modules", &Model::prediction_modules, sizes_or_none(),
            {.help = "Modules of multi-token prediction behind the last layer (DeepSeek-V3)."});
}

void add_blocks(FieldTable<ModelSpec>& table) {
  using Model = ModelSpec;
  table.theme("Blocks");
  table.add("gated_mlp", &Model::gated_mlp,
            {.help = "The MLP has a gate and an up projection, whose product goes down."});
  table.add("tied_embeddings", &Model::tied_embeddings,
            {.help = "The head shares the embedding's table."});
  table.add("attention_bias", &Model::attention_bias,
            {.help = "The query, key, value and output projections have a bias."});
  table.add("qkv_bias", &Model::qkv_bias,
            {.help = "The query, key and value projections alone have a bias."});
  table.add("mlp_bias", &Model::mlp_bias, {.help = "MLPs and experts have a bias."});
  table.add("norm", &Model::norm,
            {.help = "Kind of the norms: rms, or layer, which has a bias besides its scale."});
  table.add("post_norms", &Model::post_norms,
            {.help = "The result of each branch is normalised, too (Gemma 2 and 3)."});
  table.add("parallel_branches", &Model::parallel_branches,
            {.help = "Attention and MLP read the same norm's output (PaLM).",
             .rules = "Not with experts or post_norms."});
  table.add("embedding_norm", &Model::embedding_norm,
            {.help = "A norm stands behind the embedding (BLOOM)."});
  table.add("dropout", &Model::dropout,
            {.help = "Dropout masks stand behind the embedding, attention and the MLP, and on "
                     "attention's scores."});
}

void add_attention(FieldTable<ModelSpec>& table) {
  using Model = ModelSpec;
  static const FieldTable<LatentSpec> kLatent = make_latent_fields();
  static const FieldTable<ExpertSpec> kExperts = make_expert_fields();
  table.theme("Attention and experts");
  table.add("rotary", &Model::rotary,
            {.help = "Queries and keys are rotated by position, if no positions are learned."});
  table.add("qk_norm", &Model::qk_norm,
            {.help = "Queries and keys of each head are normalised (RMS over head_dim)."});
  table.add("attention_sinks", &Model::attention_sinks,
            {.help = "Each head has one learned logit that belongs to no token."});
  table.add("causal", &Model::causal,
            {.help = "A token sees only those before it. false: an encoder."});
  table.add("window", &Model::window, sizes_or_none(),
            {.help = "Tokens that a local layer looks back at, itself included. 0: all.",
             .rules = "Needs causal."});
  table.add("window_pattern", &Model::window_pattern,
            {.help = "Which layers are local: a letter a layer, repeated over the model, L for "
                     "local and G for global, as in LLLLLG. Empty: all are local.",
             .rules = "Needs window."});
  table.group("latent", &Model::latent, kLatent,
              {.help = "Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434): queries, "
                       "keys and values come out of narrow latent vectors."});
  table.group("experts", &Model::experts, kExperts,
              {.help = "Mixture of experts: a layer has a router and many small MLPs in place of "
                       "its MLP."});
}

}  // namespace

const FieldTable<ModelSpec>& model_fields() {
  static const FieldTable<ModelSpec> kTable = [] {
    FieldTable<ModelSpec> table("Model");
    add_shape(table);
    add_blocks(table);
    add_attention(table);
    return table;
  }();
  return kTable;
}

}  // namespace stepsim
