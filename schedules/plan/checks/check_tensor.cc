#include <string>
#include <utility>

#include "schedules/plan/plan_rules.h"
#include "schedules/plan/plan_schedule.h"

namespace stepsim {
namespace {

// Checks collective matmuls.
void check_chunks(const ParallelPlan& plan, Rules& rules) {
  rules.require(plan.pieces.tensor_chunks <= 1 || plan.divides_tokens(), "tensor_chunks",
                "is " + std::to_string(plan.pieces.tensor_chunks) +
                    ", but matmuls are cut by the tokens that are gathered or scattered: needs tp "
                    "above 1 and sequence_parallel");
  rules.require(plan.pieces.tensor_chunks <= 1 || plan.mesh.cp * plan.mesh.ep * plan.mesh.etp <= 1,
                "tensor_chunks",
                "is " + std::to_string(plan.pieces.tensor_chunks) +
                    ", which is only possible with tp, dp and pp: cp, ep and etp must be 1");
}

void check_pieces(const ParallelPlan& plan, Rules& rules) {
  if (plan.pieces.tensor_pieces <= 1) return;
  const std::string is = "is " + std::to_string(plan.pieces.tensor_pieces) + ", but ";
  rules.require(plan.divides_tokens(), "tensor_pieces",
                is + "only tokens are exchanged in pieces: needs tp above 1 and sequence_parallel");
  rules.require(plan.pieces.tensor_chunks <= 1, "tensor_pieces",
                is + "tensor_chunks cuts the same matmuls: 1, or tensor_chunks = 1");
  rules.require(!splits_all_backwards(plan.pipeline), "tensor_pieces",
                is + std::string(schedule_text(plan.pipeline)) +
                    " runs weight gradients separately: 1, or a schedule with whole backwards");
}

void check_copies(const ParallelPlan& plan, Rules& rules) {
  rules.require(!plan.buffers.copy_inputs || (plan.mesh.tp > 1 && !plan.tensor.sequence_parallel),
                "copy_inputs",
                "is true, but no tensor ranks share whole inputs: false, or tp above 1 without "
                "sequence_parallel");
}

// Checks input gradients that are reduced beside weight gradients.
void check_overlap(const ParallelPlan& plan, Rules& rules) {
  if (!plan.pieces.overlap_tensor) return;
  rules.require(plan.mesh.tp != 1, "overlap_tensor",
                "is true, but with tp = 1 no input gradients are reduced: false, or tp above 1");
  rules.require(!splits_all_backwards(plan.pipeline), "overlap_tensor",
                "is true, but " + std::string(schedule_text(plan.pipeline)) +
                    " runs weight gradients separately, so nothing runs beside the reduction of "
                    "input gradients: false, or a schedule with whole backwards");
}

// If there are fewer key-value heads (or groups of a state) than tensor ranks, several ranks hold
// each.
void check_shared_heads(const ParallelPlan& plan, const char* what, std::int64_t heads,
                        Rules& rules) {
  if (plan.mesh.tp >= 1 && heads >= 1 && plan.mesh.tp % heads != 0)
    rules.divides("tp", plan.mesh.tp, what, heads);
}

}  // namespace

void check_tensor(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  rules.divides("tp", plan.mesh.tp, "model's attention heads", model.attention.heads);
  check_shared_heads(plan, "model's key-value heads", model.attention.kv_heads, rules);
  if (model.local.heads > 0) {
    rules.divides("tp", plan.mesh.tp, "model's heads in local layers", model.local.heads);
  }
  check_shared_heads(plan, "model's key-value heads in local layers", model.local.kv_heads, rules);
  rules.divides("tp", plan.mesh.tp, "heads of the model's state", model.state.heads);
  rules.divides("tp", plan.mesh.tp, "groups of heads of the model's output projection",
                model.compressed.output_groups);
  check_shared_heads(plan, "groups of the model's state", model.state.groups, rules);
  rules.divides("tp", plan.mesh.tp, "model's MLP width", model.mlp.width);
  for (const std::int64_t width : model.mlp.widths) {
    rules.divides("tp", plan.mesh.tp, "width of a layer's MLP", width);
  }
  if (plan.tensor.sequence_parallel && !plan.is_inference() && plan.batch.microbatch_size >= 1 &&
      plan.mesh.cp >= 1 && plan.batch.sequence % plan.mesh.cp == 0) {
    rules.divides("tp", plan.mesh.tp, "tokens of a micro-batch, as sequence parallelism asks",
                  plan.batch.microbatch_size * plan.batch.sequence / plan.mesh.cp);
  }
  check_chunks(plan, rules);
  check_pieces(plan, rules);
  check_copies(plan, rules);
  check_overlap(plan, rules);
}

void check_width(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  if (plan.tensor.tensor_width <= 1) return;
  const std::string is = "is " + std::to_string(plan.tensor.tensor_width);
  rules.divides("tensor_width", plan.tensor.tensor_width, "tensor ranks (tp)", plan.mesh.tp);
  rules.require(plan.tensor.tensor_width != plan.mesh.tp, "tensor_width",
                is + ", all of tp: some ranks must divide the features");
  rules.divides("tp", plan.mesh.tp, "model's width, as tensor_width asks", model.hidden);
  if (model.kind != ModelKind::kMlpStack && !plan.is_inference()) {
    rules.divides("tp", plan.mesh.tp, "model's key-value heads, as tensor_width asks",
                  model.attention.kv_heads);
  }
  const auto only = [&](bool holds, const char* what) {
    rules.require(holds, "tensor_width", is + ", which goes with " + what);
  };
  only(plan.tensor.sequence_parallel, "sequence_parallel only: the residual stream is divided");
  only(model.experts.routed == 0, "dense models only");
  only(model.latent.kv_rank == 0, "plain attention only, not latent");
  only(model.state.heads == 0 && model.indexer.heads == 0 && model.local == LocalSpec{} &&
           !model.attention.qk_norm_whole && model.attention.gate == AttentionGate::kNone &&
           model.attention.query_rank == 0 && !model.norms.parallel &&
           model.embedding.of_layers == 0 && model.hyper.streams == 0 &&
           model.compressed.output_groups == 0 &&
           model.mixer_pattern.find_first_of("gXNZ") == std::string::npos,
       "layers that are alike and without gates, states and norms over all heads");
  only(model.prediction.modules == 0, "models without multi-token prediction");
  only(plan.pieces.tensor_chunks <= 1 && plan.pieces.tensor_pieces <= 1 &&
           !plan.pieces.overlap_tensor,
       "tensor_chunks = 1, tensor_pieces = 1 and overlap_tensor = false");
  only(plan.recomputing.kind == Recompute::kNone || plan.recomputing.kind == Recompute::kFull,
       "recompute none or full");
}

void check_documents(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  if (plan.batch.document_length == 0) return;
  const std::string is = "is " + std::to_string(plan.batch.document_length) + ", but ";
  rules.require(
      plan.batch.document_length <= plan.batch.sequence, "document_length",
      is + "a sequence has " + std::to_string(plan.batch.sequence) + " tokens: at most that, or 0");
  rules.require(model.kind == ModelKind::kTransformer, "document_length",
                is + "the model is an mlp_stack, which has no attention: 0");
  rules.require(model.indexer.heads == 0 && model.compressed.output_groups == 0, "document_length",
                is + "the tokens that an indexer chooses from are those of the sequence: 0");
  rules.require(model.mixer_pattern.find_first_of("NX") == std::string::npos, "document_length",
                is + "an encoder has a sequence of its own: 0");
  rules.require(!plan.is_inference(), "document_length",
                is + "the plan is of inference, whose requests are never packed: 0");
}

void check_pictures(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  const BatchShape& batch = plan.batch;
  const std::string is = "is " + std::to_string(batch.vision_tokens) + ", but ";
  rules.require(batch.vision_tokens == 0 || model.vision.layers > 0, "vision_tokens",
                is + "the model has no vision part that is read: 0");
  rules.require(
      batch.vision_tokens == 0 || plan.is_inference() || batch.vision_tokens <= batch.sequence,
      "vision_tokens", is + "a sequence has " + std::to_string(batch.sequence) + " tokens");
  rules.require(
      batch.vision_tokens == 0 || plan.training.vision == VisionTraining::kAll ||
          plan.state.zero < 3,
      "vision",
      "is " + std::string(name_of(plan.training.vision)) +
          ", but with zero = 3 a frozen vision part is not modelled: all, or zero below 3");
  rules.require(batch.picture_tokens == 0 ||
                    (batch.vision_tokens > 0 && batch.vision_tokens % batch.picture_tokens == 0),
                "picture_tokens",
                "must divide vision_tokens (" + std::to_string(batch.vision_tokens) + "), is " +
                    std::to_string(batch.picture_tokens));
}

void check_context(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  rules.require(plan.mesh.cp != 1 || plan.tensor.cp_mode == ParallelPlan{}.tensor.cp_mode,
                "cp_mode",
                "is " + std::string(name_of(plan.tensor.cp_mode)) +
                    ", but with cp = 1 every rank has all keys and values: leave it out, or cp "
                    "above 1");
  if (plan.mesh.cp <= 1) return;
  const bool halves = plan.tensor.cp_mode == ContextMode::kZigzagRing ||
                      plan.tensor.cp_mode == ContextMode::kAllGather;
  rules.multiple_of("sequence", plan.batch.sequence,
                    (halves ? "2 x cp = " : "cp = ") +
                        std::to_string((halves ? 2 : 1) * plan.mesh.cp) + " (cp_mode is " +
                        std::string(name_of(plan.tensor.cp_mode)) + ")",
                    (halves ? 2 : 1) * plan.mesh.cp);
  const bool ring =
      plan.tensor.cp_mode == ContextMode::kRing || plan.tensor.cp_mode == ContextMode::kZigzagRing;
  rules.require(plan.kernels.fused_attention || !ring, "fused_attention",
                "is false, but the chunks of a ring are merged by a fused kernel: true, or cp_mode "
                "all_gather or ulysses");
  rules.require((model.indexer.heads == 0 && model.compressed.output_groups == 0) || !ring,
                "cp_mode",
                "is " + std::string(name_of(plan.tensor.cp_mode)) +
                    ", but the model's sparse attention reads tokens of all ranks at once: "
                    "all_gather or ulysses");
  rules.require(model.mixer_pattern.find('X') == std::string::npos, "cp",
                "is " + std::to_string(plan.mesh.cp) +
                    ", but cross attention is not divided over context ranks: 1");
  if (plan.tensor.cp_mode != ContextMode::kUlysses || plan.mesh.tp < 1) return;
  for (const auto& [what, heads] : {std::pair{"attention heads", model.attention.heads},
                                    std::pair{"key-value heads", model.attention.kv_heads}}) {
    if (heads % plan.mesh.tp != 0) continue;
    rules.divides("cp", plan.mesh.cp,
                  std::string(what) + " of a tensor rank, as cp_mode = ulysses asks",
                  heads / plan.mesh.tp);
  }
}

}  // namespace stepsim
