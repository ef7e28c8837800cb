#include "workload/model/model_fields.h"

#include "sim/chips/data_type_text.h"

namespace stepsim {

template <>
inline constexpr std::size_t kValuesOf<ModelKind> = kModelKinds;
template <>
inline constexpr std::size_t kValuesOf<NormKind> = kNormKinds;
template <>
inline constexpr std::size_t kValuesOf<AttentionGate> = kAttentionGates;
template <>
inline constexpr std::size_t kValuesOf<WindowKind> = kWindowKinds;
template <>
inline constexpr std::size_t kValuesOf<StateKind> = kStateKinds;

namespace {

// Far above existing models.
constexpr double kMostOfAnything = 1 << 21;

// Layers are gone through one by one.
constexpr double kMostLayers = 1 << 10;  // all are simulated: 4,096 on 8 chips take 2.2 GB
static_assert(kMostOfAnything * kMostOfAnything * kMostLayers < 0x1p63, "a matrix in each layer");
constexpr double kMostModules = 64;  // of prediction; DeepSeek-V3 has one

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

FieldTable<LocalSpec> make_local_fields() {
  FieldTable<LocalSpec> table("Local");
  table.add("heads", &LocalSpec::heads, sizes_or_none(),
            {.help = "Query heads of layers with a window. 0: as in the other layers."});
  table.add("kv_heads", &LocalSpec::kv_heads, sizes_or_none(),
            {.help = "Key-value heads of layers with a window. 0: as in the other layers."});
  table.add("head_dim", &LocalSpec::head_dim, sizes_or_none(),
            {.help = "Width of a head in layers with a window. 0: as in the other layers."});
  table.add("value_dim", &LocalSpec::value_dim, sizes_or_none(),
            {.help = "Width of a head's values in layers with a window. 0: as in the others."});
  return table;
}

FieldTable<IndexerSpec> make_indexer_fields() {
  FieldTable<IndexerSpec> table("Indexer");
  table.add("heads", &IndexerSpec::heads, sizes_or_none(),
            {.help = "Heads that score the tokens. 0: no layer has an indexer."});
  table.add("head_dim", &IndexerSpec::head_dim, sizes_or_none(), {.help = "Width of such a head."});
  table.add("top_k", &IndexerSpec::top_k, Limits::between(0, 1 << 30),
            {.help = "Tokens that attention looks at, the best of all before a query."});
  return table;
}

FieldTable<CompressedSpec> make_compressed_fields() {
  using Compressed = CompressedSpec;
  FieldTable<Compressed> table("Compressed");
  table.add("ratio", &Compressed::ratio, sizes_or_none(),
            {.help = "Tokens that a key of layers C stands for, of which the indexer chooses.",
             .rules = "At least 2 with layers C."});
  table.add("heavy_ratio", &Compressed::heavy_ratio, sizes_or_none(),
            {.help = "Tokens that a key of layers H stands for, of which all are scored.",
             .rules = "At least 2 with layers H."});
  table.add("rope_dim", &Compressed::rope_dim, sizes_or_none(),
            {.help = "Width of the rotated part of a head, in queries, keys and results."});
  table.add("output_groups", &Compressed::output_groups, sizes_or_none(),
            {.help = "Groups of heads whose results go through a narrow vector each. 0: no "
                     "attention to compressed keys.",
             .rules = "Divides heads."});
  table.add("output_rank", &Compressed::output_rank, sizes_or_none(),
            {.help = "Width of such a vector."});
  return table;
}

FieldTable<HyperSpec> make_hyper_fields() {
  constexpr double kMostStreams = 64;
  constexpr double kMostIterations = 1024;
  FieldTable<HyperSpec> table("Hyper");
  table.add("streams", &HyperSpec::streams, Limits::between(0, kMostStreams),
            {.help = "Residual streams, which branches mix into their input and their result "
                     "into them. 0: one, which branches add to."});
  table.add("sinkhorn_iterations", &HyperSpec::sinkhorn_iterations,
            Limits::between(0, kMostIterations),
            {.help = "Times that rows and columns of the mixing matrix are scaled to a sum of "
                     "one (mHC). 0: never."});
  return table;
}

FieldTable<VisionSpec> make_vision_fields() {
  using Vision = VisionSpec;
  constexpr double kMostPixels = 4096;  // of a patch's side
  constexpr double kMostAtATime = 64;
  FieldTable<Vision> table("Vision");
  table.add("layers", &Vision::layers, Limits::between(0, kMostLayers),
            {.help = "Blocks of the encoder. 0: the model has no vision part."});
  table.add("hidden", &Vision::hidden, sizes_or_none(), {.help = "Width of its stream."});
  table.add("heads", &Vision::heads, sizes_or_none(),
            {.help = "Heads of its attention.", .rules = "Divides hidden."});
  table.add("intermediate", &Vision::intermediate, sizes_or_none(), {.help = "Width of its MLP."});
  table.add("patch", &Vision::patch, Limits::between(0, kMostPixels),
            {.help = "Pixels along a side of a patch; a pixel has three colours."});
  table.add("frames", &Vision::frames, Limits::between(1, kMostAtATime),
            {.help = "Pictures of a film that a patch reaches over; a lone one is repeated."});
  table.add("merge", &Vision::merge, Limits::between(1, kMostAtATime),
            {.help = "Patches along a side of a token."});
  table.add("positions", &Vision::positions, sizes_or_none(),
            {.help = "Rows of a learned embedding of positions."});
  table.add("projectors", &Vision::projectors, Limits::between(1, kMostAtATime),
            {.help = "Projectors into the text's width: one, and one for each earlier layer whose "
                     "result goes to the text, too."});
  return table;
}

FieldTable<SharedSpec> make_shared_fields() {
  FieldTable<SharedSpec> table("Shared");
  table.add("blocks", &SharedSpec::blocks, sizes_or_none(),
            {.help = "Blocks, which layers Z have in turn. 0: no layer shares weights."});
  table.add("adapter_rank", &SharedSpec::adapter_rank, sizes_or_none(),
            {.help = "Width of each layer's own low-rank path beside the first matrix of the "
                     "shared MLP. 0: none."});
  table.add("attention_adapter_rank", &SharedSpec::attention_adapter_rank, sizes_or_none(),
            {.help = "The same beside each projection of queries, keys and values of the shared "
                     "attention. 0: none."});
  return table;
}

FieldTable<StateSpec> make_state_fields() {
  using State = StateSpec;
  FieldTable<StateSpec> table("State");
  table.add("kind", &State::kind,
            {.help = "How the state runs along the tokens: mamba2 (arXiv 2405.21060), gated_delta "
                     "(2412.06464), kimi_delta (2510.26692), lightning (2401.04658), mamba "
                     "(2312.00752); or short, a gated convolution alone (LFM2)."});
  table.add("heads", &State::heads, sizes_or_none(),
            {.help = "Heads, each with a state of key_dim x value_dim; with mamba the inner width. "
                     "0: no layer has a state."});
  table.add("groups", &State::groups, sizes_or_none(),
            {.help = "Heads of keys and queries (Mamba's B and C), each for some of the heads.",
             .rules = "Divides heads; 1 with mamba and short."});
  table.add("key_dim", &State::key_dim, sizes_or_none(),
            {.help = "Width of a head's keys and queries: the state's size N of Mamba."});
  table.add("value_dim", &State::value_dim, sizes_or_none(),
            {.help = "Width of a head's values.", .rules = "1 with mamba and short."});
  table.add("convolution", &State::convolution, sizes_or_none(),
            {.help = "Taps of the short convolution along the tokens. 0: none."});
  table.add("convolution_bias", &State::convolution_bias,
            {.help = "The convolution has a bias. No effect with delta rules, which have none."});
  table.add("rank", &State::rank, sizes_or_none(),
            {.help = "Width of low-rank projections: of mamba's steps, of kimi_delta's gates.",
             .rules = "Only with these two kinds."});
  table.add("full_gate", &State::full_gate,
            {.help = "The gate of the result is a whole projection, not a low-rank one (Kimi K3).",
             .rules = "Only with kimi_delta."});
  table.add("bias", &State::bias, {.help = "The input and output projections have a bias."});
  table.add("inner_norm", &State::inner_norm,
            {.help = "The result is normalised before the output projection (with mamba: steps, B "
                     "and C are)."});
  table.add("chunk", &State::chunk, sizes(),
            {.help = "Tokens that the kernels take together. More of them mean fewer steps of the "
                     "recurrence and more FLOPs within the chunks. No effect with mamba."});
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
  table.add("zero", &ExpertSpec::zero, sizes_or_none(),
            {.help = "Choices besides the routed experts that compute nothing (LongCat-Flash).",
             .rules = "per_token x routed / (routed + zero) is whole."});
  table.add(
      "latent", &ExpertSpec::latent, sizes_or_none(),
      {.help = "Width to which tokens are projected before they go to their experts (Nemotron "
               "3). 0: they go as they are."});
  table.add("shared_gate", &ExpertSpec::shared_gate,
            {.help = "A learned gate scales the shared experts' result (Qwen2)."});
  return table;
}

void add_shape(FieldTable<ModelSpec>& table) {
  using Model = ModelSpec;
  table.theme("Shape");
  table.add("name", &Model::name, {.help = "The model's name in results."});
  table.add("weight_type", &Model::weight_type,
            {.help = "Type in which the published file has its weights.",
             .unset = "16 bits. A step's types are the plan's."});
  table.add("note", &Model::note,
            {.help = "What the model leaves out of what its source describes. Reports show it."});
  table.add("kind", &Model::kind,
            {.help = "transformer, or mlp_stack: two matmuls a layer and nothing else. It takes "
                     "layers, hidden and intermediate only."});
  table.add("layers", &Model::layers, Limits::between(1, kMostLayers),
            {.help = "Layers of the model.", .required = true});
  table.add("hidden", &Model::hidden, sizes(),
            {.help = "Width of the residual stream.", .required = true});
  table.add_inner("intermediate", &Model::mlp, &MlpSpec::width, sizes().or_zero(),
                  {.help = "Width of the MLP. If every layer has experts it may be left out."});
  table.add_inner("heads", &Model::attention, &AttentionSpec::heads, sizes().or_zero(),
                  {.help = "Query heads of attention.", .rules = "At least 1 in a transformer."});
  table.add_inner(
      "kv_heads", &Model::attention, &AttentionSpec::kv_heads, sizes().or_zero(),
      {.help = "Key-value heads. As many as heads: multi-head; 1: multi-query; between: "
               "grouped-query. Left out: as many as heads.",
       .rules = "Divides heads."});
  table.add_inner("head_dim", &Model::attention, &AttentionSpec::head_dim, sizes().or_zero(),
                  {.help = "Width of a head. Left out: hidden / heads, or latent.nope_dim + "
                           "latent.rope_dim."});
  table.add_inner(
      "query_rank", &Model::attention, &AttentionSpec::query_rank, sizes_or_none(),
      {.help = "Width of the vector out of which queries are projected (Step 3). 0: directly.",
       .rules = "Not with latent attention, which has latent.q_rank."});
  table.add_inner("value_dim", &Model::attention, &AttentionSpec::value_dim, sizes_or_none(),
                  {.help = "Width of a head's values. 0: head_dim."});
  table.add_inner(
      "vocabulary", &Model::embedding, &EmbeddingSpec::vocabulary, sizes().or_zero(),
      {.help = "Rows of the embedding's table.", .rules = "At least 1 in a transformer."});
  table.add_inner("learned_positions", &Model::embedding, &EmbeddingSpec::learned_positions,
                  sizes_or_none(), {.help = "Rows of a learned position embedding. 0: none."});
  table.add_inner(
      "extra_rows", &Model::embedding, &EmbeddingSpec::extra_rows, sizes_or_none(),
      {.help = "Further rows of such tables: token types (BERT), positions that no token "
               "takes (OPT), positions of a decoder (BART)."});
  table.add_inner(
      "layer_embedding", &Model::embedding, &EmbeddingSpec::of_layers, sizes_or_none(),
      {.help = "Width of vectors that each layer looks up for itself and adds to the stream "
               "(Gemma 4 E2B). 0: none."});
  table.add_inner(
      "prediction_modules", &Model::prediction, &PredictionSpec::modules,
      Limits::between(0, kMostModules),
      {.help = "Modules of multi-token prediction behind the last layer (DeepSeek-V3)."});
  table.add_inner(
      "prediction_block", &Model::prediction, &PredictionSpec::block,
      {.help = "The block of such a module: a letter of mixer_pattern and one of mlp_pattern, as "
               "LE. Empty: as the last layer's.",
       .rules = "Needs prediction_modules."});
}

void add_blocks(FieldTable<ModelSpec>& table) {
  using Model = ModelSpec;
  table.theme("Blocks");
  table.add_inner("gated_mlp", &Model::mlp, &MlpSpec::gated,
                  {.help = "The MLP has a gate and an up projection, whose product goes down."});
  table.add_inner("tied_embeddings", &Model::embedding, &EmbeddingSpec::tied,
                  {.help = "The head shares the embedding's table."});
  table.add_inner("attention_bias", &Model::attention, &AttentionSpec::bias,
                  {.help = "The query, key, value and output projections have a bias."});
  table.add_inner("qkv_bias", &Model::attention, &AttentionSpec::qkv_bias,
                  {.help = "The query, key and value projections alone have a bias."});
  table.add_inner("mlp_bias", &Model::mlp, &MlpSpec::bias,
                  {.help = "MLPs and experts have a bias."});
  table.add_inner("norm", &Model::norms, &NormSpec::kind,
                  {.help = "Kind of the norms: rms, layer, which has a bias besides its scale, or "
                           "layer_without_bias."});
  table.add_inner(
      "pre_norms", &Model::norms, &NormSpec::pre,
      {.help = "Each branch begins with a norm.", .rules = "Needs post_norms if false."});
  table.add_inner(
      "post_norms", &Model::norms, &NormSpec::post,
      {.help = "The result of each branch is normalised (Gemma 2 and 3: too; OLMo 2: only "
               "that)."});
  table.add("parallel_branches", &Model::parallel_branches,
            {.help = "Attention and MLP read the same norm's output (PaLM).",
             .rules = "Not with experts, a state or post_norms."});
  table.add_inner("parallel_norms", &Model::norms, &NormSpec::parallel,
                  {.help = "Parallel branches read a norm each (GPT-NeoX).",
                   .rules = "Needs parallel_branches."});
  table.add_inner("embedding_norm", &Model::norms, &NormSpec::embedding,
                  {.help = "A norm stands behind the embedding (BLOOM)."});
  table.add("head_projection", &Model::head_projection,
            {.help = "A square projection and an activation stand before the last norm (BERT)."});
  table.add("dropout", &Model::dropout,
            {.help = "Dropout masks stand behind the embedding, attention and the MLP, and on "
                     "attention's scores."});
}

void add_attention(FieldTable<ModelSpec>& table) {
  using Model = ModelSpec;
  static const FieldTable<LocalSpec> kLocal = make_local_fields();
  static const FieldTable<LatentSpec> kLatent = make_latent_fields();
  static const FieldTable<StateSpec> kState = make_state_fields();
  static const FieldTable<SharedSpec> kShared = make_shared_fields();
  static const FieldTable<IndexerSpec> kIndexer = make_indexer_fields();
  static const FieldTable<CompressedSpec> kCompressed = make_compressed_fields();
  static const FieldTable<HyperSpec> kHyper = make_hyper_fields();
  static const FieldTable<VisionSpec> kVision = make_vision_fields();
  static const FieldTable<ExpertSpec> kExperts = make_expert_fields();
  table.theme("Attention and experts");
  table.add_inner(
      "rotary", &Model::attention, &AttentionSpec::rotary,
      {.help = "Queries and keys are rotated by position, if no positions are learned."});
  table.add_inner("qk_norm", &Model::attention, &AttentionSpec::qk_norm,
                  {.help = "Queries and keys of each head are normalised (RMS over head_dim)."});
  table.add_inner("qk_norm_whole", &Model::attention, &AttentionSpec::qk_norm_whole,
                  {.help = "Queries and keys are normalised over all heads together (OLMo 2).",
                   .rules = "Not with qk_norm."});
  table.add_inner("attention_sinks", &Model::attention, &AttentionSpec::sinks,
                  {.help = "Each head has one learned logit that belongs to no token."});
  table.add_inner(
      "attention_gate", &Model::attention, &AttentionSpec::gate,
      {.help = "A learned gate on attention's result: none, head (a value a head) or value (a "
               "value a feature: Qwen3-Next)."});
  table.add_inner(
      "values_are_keys", &Model::attention, &AttentionSpec::values_are_keys,
      {.help = "In global layers one projection gives both keys and values (Gemma 4)."});
  table.add_inner("causal", &Model::attention, &AttentionSpec::causal,
                  {.help = "A token sees only those before it. false: an encoder."});
  table.add_inner(
      "window", &Model::attention, &AttentionSpec::window, sizes_or_none(),
      {.help = "Tokens that a local layer looks back at, itself included; without causal "
               "also as many behind it. 0: all."});
  table.add_inner(
      "window_kind", &Model::attention, &AttentionSpec::window_kind,
      {.help = "sliding, or chunked: a token looks at those before it in its own chunk of "
               "window tokens (Llama 4).",
       .rules = "chunked needs causal."});
  table.add(
      "mixer_pattern", &Model::mixer_pattern,
      {.help =
           "How each layer mixes tokens: a letter a layer, repeated over the model, as "
           "in LLLLLG. G: global attention; L: local, with the window; S: a state; B: "
           "global attention and a state side by side; I: sparse attention with an "
           "indexer; C: the window and compressed keys that an indexer chooses; H: the window "
           "and all compressed keys; N: attention that is not causal, of an encoder; X: its "
           "decoder, with "
           "cross attention to the last layer N; Z: a block of shared weights, then a state; -: "
           "not at all. A small g or l reads the "
           "keys and values of an earlier layer of its kind, a small i the choice of an "
           "earlier indexer. Empty: all local if there is a window, otherwise global.",
       .rules = "L needs window; S, B and Z need state; I and C need indexer; C and H need "
                "compressed; Z needs shared."});
  table.add("mlp_pattern", &Model::mlp_pattern,
            {.help = "What follows in each layer, the same way. D: a dense MLP; E: experts; -: "
                     "nothing. Empty: as experts.first_dense and experts.every say.",
             .rules = "Instead of experts.first_dense and experts.every."});
  table.add_inner(
      "mlp_widths", &Model::mlp, &MlpSpec::widths,
      {.help = "Width of each layer's MLP, repeated over the model, where they differ. "
               "Layers without a dense MLP need a number, too. Empty: intermediate in all.",
       .rules = "Numbers of 1 to 2097152, at most intermediate."});
  table.group("local", &Model::local, kLocal,
              {.help = "Sizes of attention in layers with a window, where they differ from the "
                       "others' (Gemma 4, MiMo)."});
  table.group("latent", &Model::latent, kLatent,
              {.help = "Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434): queries, "
                       "keys and values come out of narrow latent vectors."});
  table.group(
      "state", &Model::state, kState,
      {.help = "A state that runs along the tokens in place of attention, in layers S and B "
               "of mixer_pattern."});
  table.group("indexer", &Model::indexer, kIndexer,
              {.help = "The indexer of sparse attention (DeepSeek-V3.2), in layers I and C of "
                       "mixer_pattern."});
  table.group("compressed", &Model::compressed, kCompressed,
              {.help = "Attention to compressed keys (DeepSeek-V4): a token has one vector, key "
                       "and value of all heads, and results go out through narrow vectors. Every "
                       "layer of such a model has it."});
  table.group("hyper", &Model::hyper, kHyper,
              {.help = "Hyper-connections (arXiv 2512.24880): the residual is several streams."});
  table.group("vision", &Model::vision, kVision,
              {.help = "The part that makes tokens of pictures: a vision transformer whose blocks "
                       "have layer norms, biases and an MLP without a gate, and a projector of two "
                       "matrices. A plan says by vision_tokens how many it makes."});
  table.group("shared", &Model::shared, kShared,
              {.help = "Blocks of attention and MLP whose weights the layers Z of mixer_pattern "
                       "share (Zamba 2)."});
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
