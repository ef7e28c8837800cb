#include "workload/experts.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <utility>

#include "workload/parts/mlp.h"

namespace stepsim {
namespace {

struct ExpertPart {
  std::int64_t experts = 0;  // experts on this chip
  std::int64_t copies = 0;   // copies that came to them
  std::int64_t width = 0;    // this chip's features of each expert
};

// Returns the places that experts have for `copies`: with masks all of their capacity, full or not.
std::int64_t places_of(const Part& part, std::int64_t copies) {
  if (!part.shard.kernels.mask_dispatch) return copies;
  const double factor = part.model.experts.capacity_factor;
  return static_cast<std::int64_t>(std::ceil(factor * static_cast<double>(copies)));
}

ExpertPart expert_part(const Part& part) {
  const Shard& shard = part.shard;
  const ExpertSpec& spec = part.model.experts;
  assert(spec.routed % shard.experts.parts == 0 && spec.intermediate % shard.experts.tensor == 0);
  // Without sequence parallelism all ranks of the tensor group have the same tokens (inference.h).
  const std::int64_t alike = shard.sequence_parallel ? 1 : shard.tensor;
  const bool apart = shard.experts.sending_replicas > 0;
  const std::int64_t senders = apart ? shard.experts.sending_replicas * shard.tensor
                                     : shard.experts.parts * shard.experts.tensor;
  const std::int64_t sent = part.own_tokens * spec.visited() * senders / alike;
  const std::int64_t came = copies_by_expert_rank(
      spec, shard.experts.parts, sent)[static_cast<std::size_t>(shard.experts.rank)];
  return {
      .experts = spec.routed / shard.experts.parts,
      .copies = shard.kernels.mask_dispatch ? places_of(part, sent / shard.experts.parts) : came,
      .width = spec.intermediate / shard.experts.tensor};
}

constexpr std::int64_t kPlaceBytes = 4;  // place of each copy

// Returns the width in which tokens travel to their experts and back.
std::int64_t token_width(const Part& part) {
  return part.model.experts.latent > 0 ? part.model.experts.latent : part.hidden();
}

// Returns the bytes of a chip's own tokens in that width.
Bytes own_tokens_size(const Part& part) {
  return part.size(part.own_tokens * token_width(part));
}

// A token arrives once at each chip, for all of its experts there.
bool copied_by_receiver(const Part& part) {
  return part.shard.experts.arriving_tokens > 0;
}

// Computes the scores of the routed experts and chooses the best.
LayerOp router(const Part& part) {
  const ExpertSpec& spec = part.model.experts;
  LayerOp op = project_own(part, {.name = "router",
                                  .inputs = part.hidden(),
                                  .outputs = spec.routed + spec.zero,
                                  .bias = spec.router_bias});
  const std::int64_t scores = part.own_tokens * (spec.routed + spec.zero);
  const ElementwiseShape choose{.elements = scores, .flops = 5};
  Kernel choice = elementwise("choose_experts", DataType::kFp32, choose);
  choice.use = KernelUse::kChooseExperts;
  op.forward.push_back(choice);
  op.input_gradient.insert(op.input_gradient.begin(), choice);
  constexpr std::int64_t kChoiceBytes = 8;  // an expert's number and its fp32 weight
  op.reads = {"mlp_norm"};
  op.input = part.own_stream();
  if (spec.shared_intermediate == 0) keep_input(op, part.own_stream());
  op.saved.inside =
      scores * size_of(DataType::kFp32) + Bytes(part.own_tokens * spec.per_token * kChoiceBytes);
  if (copied_by_receiver(part)) {
    op.saved.inside += Bytes(part.own_tokens * spec.per_token * kPlaceBytes);
  }
  op.saved.total += op.saved.inside;
  return op;
}

// Tokens, and gradients of their results, travel in the type of the matmuls.
bool travels_narrow(const Part& part) {
  return part.narrows() && part.shard.types.dispatch == part.shard.types.matmul;
}

// Copies rows for each of their experts, ordered by expert, in the type in which they travel.
Kernel copy_rows(const Part& part, std::int64_t rows, std::int64_t copies) {
  const DataType type = part.shard.types.dispatch;
  Kernel kernel =
      elementwise("permute", type, {.elements = copies * token_width(part), .reads = 0});
  kernel.read = part.scaled_size(rows * token_width(part), type);
  kernel.written = part.scaled_size(copies * token_width(part), type);
  return kernel;
}

// The reverse of copy_rows: sums up the copies of each row.
Kernel sum_copies(const Part& part, std::int64_t copies, std::int64_t rows) {
  Kernel kernel = part.elementwise(
      "unpermute", {.elements = copies * token_width(part), .writes = 0, .flops = 1});
  kernel.written = part.size(rows * token_width(part));
  return kernel;
}

// A product with a mask of tokens and their places, which copies tokens into places or adds places
// up (Lepikhin et al., "GShard", arXiv 2006.16668, algorithm 2; MaxText with sparse_matmul =
// False): one for the tokens that a chip has of each sequence.
struct MaskProduct {
  const Part& part;
  std::int64_t sequences;
  std::int64_t tokens;  // of a sequence
  std::int64_t places;  // of a sequence, of all experts

  explicit MaskProduct(const Part& own)
      : part(own),
        sequences(std::max<std::int64_t>(1, own.shard.sequences)),
        tokens((own.own_tokens + sequences - 1) / sequences),
        places(places_of(own, tokens * own.model.experts.visited())) {}

  Kernel product(std::string_view name, const MatmulShape& shape) const {
    const DataType type = part.shard.types.activations;
    return matmul(name, {type, type}, shape);
  }
  Kernel copying() const {
    return product("dispatch_mask", {sequences, places, token_width(part), tokens});
  }
  Kernel adding() const {
    return product("combine_mask", {sequences, tokens, token_width(part), places});
  }
  Bytes size() const { return part.size(sequences * tokens * places); }
  Kernel making() const {
    return part.elementwise("mask", {.elements = sequences * tokens * places, .reads = 0});
  }
  // The gradient of the weights in the mask.
  Kernel mask_gradient() const {
    return product("mask_gradient", {sequences, tokens, places, token_width(part)});
  }
};

// Copies each token, ordered by destination; in the backward, sums the copies.
LayerOp permute(const Part& part) {
  const std::int64_t copies = places_of(part, part.own_tokens * part.model.experts.visited());
  LayerOp op{.name = "permute"};
  // Shared experts have rounded the same tokens, unless they use those of the whole group.
  const bool is_rounded = part.model.experts.shared_intermediate > 0 &&
                          part.model.experts.latent == 0 && part.shard.tensor == 1;
  if (travels_narrow(part) && !is_rounded) {
    add_rounding(part, KernelUse::kRoundInput, part.own_tokens * token_width(part), op.forward);
  }
  op.reads = {part.model.experts.latent > 0 ? OpName("latent_down_projection")
                                            : OpName("mlp_norm")};
  op.input = own_tokens_size(part);
  op.host_reads = part.shard.experts.host_reads_counts;
  if (copied_by_receiver(part)) return op;
  if (part.shard.kernels.mask_dispatch) {
    const MaskProduct mask(part);
    op.forward.push_back(mask.copying());
    op.input_gradient = {mask.adding()};
    op.saved.total = op.saved.inside = mask.size();
  } else {
    op.forward.push_back(copy_rows(part, part.own_tokens, copies));
    op.input_gradient = {sum_copies(part, copies, part.own_tokens)};
  }
  op.workspace.forward = copies * token_width(part) * size_of(part.shard.types.dispatch);
  op.workspace.backward = part.size(copies * token_width(part)) + own_tokens_size(part);
  return op;
}

LayerOp unpermute(const Part& part) {
  const std::int64_t copies = places_of(part, part.own_tokens * part.model.experts.visited());
  LayerOp op{.name = "unpermute"};
  if (travels_narrow(part)) {
    add_rounding(part, KernelUse::kRoundGradient, part.own_tokens * token_width(part),
                 op.input_gradient);
  }
  if (copied_by_receiver(part)) {
    op.input = own_tokens_size(part);
    op.workspace.backward = own_tokens_size(part);
    return op;
  }
  op.saved.total = op.saved.inside = Bytes(copies * kPlaceBytes);
  if (part.shard.kernels.mask_dispatch) {
    const MaskProduct mask(part);
    op.forward = {mask.adding()};
    op.input_gradient.push_back(mask.copying());
    op.input_gradient.push_back(mask.mask_gradient());
    // The gradient of the router's weights reads the results; the mask alone is made again.
    op.again = {mask.making()};
    op.saved.input = part.size(copies * token_width(part));
    op.saved.inside = mask.size();
    op.saved.total = op.saved.input + op.saved.inside;
  } else {
    op.forward = {sum_copies(part, copies, part.own_tokens)};
    op.input_gradient.push_back(copy_rows(part, part.own_tokens, copies));
  }
  op.input = part.size(copies * token_width(part));
  op.workspace.forward = part.size(copies * token_width(part));
  op.workspace.backward = op.workspace.forward + own_tokens_size(part);
  return op;
}

// Brings copies from the order of their senders into that of the experts, or back.
Kernel sort_copies(std::int64_t rows, std::int64_t width, DataType type) {
  return elementwise("sort_copies", type, {.elements = rows * width});
}

// The matmuls of a projection of all experts, or of their gradients.
enum class Product : std::uint8_t { kForward, kInputGradient, kWeightGradient };

// A loop of a library launches as many matmuls as fast as the framework calls one kernel.
constexpr std::int64_t kLaunchesOfALoop = 3;

// Multiplies expert after expert. Nothing hides that the last tiles of a matmul add to accumulators
// in memory, as the next expert's matmul begins behind it.
void multiply_one_by_one(Product product, std::string_view name, const DataTypes& types,
                         const GroupedShape& all, std::vector<Kernel>& kernels) {
  const MatmulTypes own{types.matmul, types.activations};
  for (std::int64_t expert = 0; expert < all.groups; ++expert) {
    const std::int64_t rows = all.rows / all.groups + (expert < all.rows % all.groups ? 1 : 0);
    if (rows == 0) continue;
    const std::uint16_t launches = expert % kLaunchesOfALoop == 0 ? 1 : 0;
    if (product != Product::kWeightGradient) {
      kernels.push_back(matmul(name, own, {.m = rows, .n = all.n, .k = all.k}));
      kernels.back().launches = launches;
      continue;
    }
    Kernel kernel = matmul(name, own, {.m = all.n, .n = all.k, .k = rows});
    kernel.written = Bytes(0);
    kernel.launches = launches;
    kernels.push_back(kernel);
    kernels.push_back(elementwise(
        name, types.gradients, {.elements = all.n * all.k, .reads = 1, .writes = 1, .flops = 1}));
    kernels.back().launches = 0;  // the end of the matmul
  }
}

void multiply(const Part& part, Product product, std::string_view name, const GroupedShape& shape,
              std::vector<Kernel>& kernels) {
  const DataTypes& types = part.shard.types;
  if (!part.shard.kernels.grouped_experts && shape.groups > 1) {
    return multiply_one_by_one(product, name, types, shape, kernels);
  }
  if (product == Product::kWeightGradient) {
    kernels.push_back(accumulating_grouped_matmul(name, {types.matmul, types.gradients}, shape));
  } else {
    kernels.push_back(grouped_matmul(name, {types.matmul, types.activations}, shape));
  }
}

struct ExpertProjection {
  OpName name{};
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  bool arrives = false;  // its input comes over the network
  bool returns = false;  // its results, and the gradients of them, travel over the network
};

LayerOp project_grouped(const Part& part, const ExpertPart& mine,
                        const ExpertProjection& projection) {
  const auto& [name, inputs, outputs, arrives, returns] = projection;
  const DataTypes& types = part.shard.types;
  const std::int64_t rows = mine.copies;
  const std::int64_t tokens = part.shard.experts.arriving_tokens;
  const bool narrow_input = arrives && travels_narrow(part);
  const bool narrow_gradient = returns && travels_narrow(part);
  const bool sorts = part.shard.kernels.sort_copies && part.shard.experts.one_copy_each &&
                     part.shard.experts.parts > 1 && mine.experts > 1;
  LayerOp op{.name = name, .region = Region::kExpert};
  if (arrives && sorts) op.forward.push_back(sort_copies(rows, inputs, types.dispatch));
  if (returns && sorts) op.input_gradient.push_back(sort_copies(rows, outputs, types.dispatch));
  if (arrives && copied_by_receiver(part)) op.forward.push_back(copy_rows(part, tokens, rows));
  if (!narrow_input) add_rounding(part, KernelUse::kRoundInput, rows * inputs, op.forward);
  if (returns && copied_by_receiver(part)) {
    op.input_gradient.push_back(copy_rows(part, tokens, rows));
  }
  if (narrow_gradient) {
    add_turning(part, "turn_gradient", rows * outputs, false, op);
  } else {
    add_gradient_rounding(part, rows * outputs, op);
  }
  add_transpose(part, mine.experts * inputs * outputs, op);
  const GroupedShape shape{.groups = mine.experts, .rows = rows, .n = outputs, .k = inputs};
  const GroupedShape mirrored{.groups = mine.experts, .rows = rows, .n = inputs, .k = outputs};
  multiply(part, Product::kForward, name, shape, op.forward);
  multiply(part, Product::kInputGradient, name, mirrored, op.input_gradient);
  add_turning(part, "turn_input", rows * inputs,
              !narrow_input && !part.shard.kernels.fused_elementwise, op);
  multiply(part, Product::kWeightGradient, name, shape, op.weight_gradient);
  keep_input(op, part.operand_size(rows * inputs));
  op.workspace.backward = part.size(rows * (inputs + outputs));
  op.parameters.own = mine.experts * inputs * outputs;
  if (part.model.mlp.bias) {
    const std::int64_t biases = mine.experts * outputs;
    op.forward.back().read += part.size(biases);
    op.weight_gradient.push_back(part.elementwise(
        "bias_gradient",
        {.elements = rows * outputs, .writes = 0, .flops = 1, .accumulated = biases}));
    op.parameters.own += biases;
  }
  if (arrives && sorts) {
    op.input_gradient.push_back(sort_copies(rows, inputs, types.activations));
    op.workspace.forward = part.scaled_size(rows * inputs, types.dispatch);
  }
  if (returns && sorts) {
    op.forward.push_back(sort_copies(rows, outputs, types.activations));
    op.workspace.forward = 2 * part.size(rows * outputs);
  }
  if (!copied_by_receiver(part)) return op;
  if (arrives) {
    op.input_gradient.push_back(sum_copies(part, rows, tokens));
    op.workspace.forward = part.scaled_size(tokens * inputs, types.dispatch);
    op.workspace.backward += part.size(tokens * inputs);
  }
  if (returns) {
    op.forward.push_back(sum_copies(part, rows, tokens));
    op.workspace.forward = part.size((rows + tokens) * outputs);
    op.workspace.backward += part.scaled_size(tokens * outputs, types.dispatch);
  }
  return op;
}

// Multiplies the shared experts' result by a weight for each token, computed from the same input.
// It keeps that result.
LayerOp shared_gate(const Part& part) {
  LayerOp op = project_own(part, {.name = "shared_gate", .inputs = part.hidden(), .outputs = 1});
  const std::int64_t values = part.own_tokens * part.hidden();
  op.forward.push_back(part.elementwise("weigh_shared", {.elements = values, .flops = 1}));
  op.input_gradient.insert(
      op.input_gradient.begin(),
      part.elementwise("weigh_shared", {.elements = values, .reads = 2, .flops = 2}));
  op.reads = {"shared_down_projection", "mlp_norm"};
  keep_input(op, part.own_stream());
  return op;
}

void add_shared_experts(const Part& part, std::vector<LayerOp>& ops) {
  const std::int64_t shared = part.model.experts.shared_intermediate;
  if (shared == 0) return;
  assert(shared % part.shard.tensor == 0);
  const std::int64_t width = shared / part.shard.tensor;
  ops.push_back(project_gathered(part, {.name = "shared_gate_up_projection",
                                        .inputs = part.hidden(),
                                        .outputs = part.mlp_inputs() * width,
                                        .bias = part.model.mlp.bias,
                                        .narrow = true}));
  ops.push_back(mlp_activation(part, "shared_activation", Region::kTensor, part.tokens, width));
  LayerOp down = project_partial(part, {.name = "shared_down_projection",
                                        .inputs = width,
                                        .outputs = part.hidden(),
                                        .narrow = true});
  keep_input(down, part.operand_size(part.tokens * width));
  if (part.model.mlp.bias) down.parameters.own += part.hidden();
  ops.push_back(std::move(down));
  if (part.model.experts.shared_gate) ops.push_back(shared_gate(part));
}

LayerOp latent_down(const Part& part) {
  LayerOp op = project_own(part, {.name = "latent_down_projection",
                                  .inputs = part.hidden(),
                                  .outputs = token_width(part),
                                  .narrow = true});
  op.reads = {"mlp_norm"};
  op.input = part.own_stream();  // the router keeps it
  return op;
}

LayerOp latent_up(const Part& part) {
  LayerOp op = project_own(part, {.name = "latent_up_projection",
                                  .inputs = token_width(part),
                                  .outputs = part.hidden(),
                                  .narrow = true});
  keep_input(op, part.operand_size(part.own_tokens * token_width(part)));
  return op;
}

}  // namespace

std::vector<std::int64_t> copies_by_expert_rank(const ExpertSpec& experts, std::int64_t ranks,
                                                std::int64_t copies) {
  assert(ranks >= 1 && experts.routed % ranks == 0);
  const auto routed = static_cast<std::size_t>(experts.routed);
  const std::vector<double> even(experts.load.empty() ? routed : 0, 1.0);
  const std::vector<double>& load = experts.load.empty() ? even : experts.load;
  const double sum = std::accumulate(load.begin(), load.end(), 0.0);
  const auto all = static_cast<double>(copies);
  const double capacity =
      experts.capacity_factor == 0
          ? all
          : std::ceil(experts.capacity_factor * all / static_cast<double>(routed));
  std::vector<std::int64_t> result;
  const std::size_t of_a_rank = routed / static_cast<std::size_t>(ranks);
  // Each running sum is rounded, so that nothing is lost between ranks.
  double running = 0;
  std::int64_t given = 0;
  for (std::size_t expert = 0; expert < routed; ++expert) {
    running += std::min(load[expert] / sum * all, capacity);
    if ((expert + 1) % of_a_rank != 0) continue;
    const auto until = static_cast<std::int64_t>(std::llround(running));
    result.push_back(until - given);
    given = until;
  }
  return result;
}

TokenRouting token_routing(const Part& part) {
  const DataTypes& types = part.shard.types;
  return {.tokens = part.own_tokens,
          .copies = part.model.experts.visited(),
          .experts = part.model.experts.routed,
          .dispatched = part.scaled_size(token_width(part), types.dispatch),
          .combined = part.scaled_size(token_width(part), types.combine)};
}

std::vector<LayerOp> expert_branch(const Part& part) {
  const ExpertPart mine = expert_part(part);
  std::vector<LayerOp> ops;
  open_branch(part, "mlp_mapping", "mlp_norm", ops);
  add_shared_experts(part, ops);
  ops.push_back(router(part));
  if (part.model.experts.latent > 0) ops.push_back(latent_down(part));
  ops.push_back(permute(part));
  ops.push_back(project_grouped(part, mine,
                                {.name = "expert_gate_up_projection",
                                 .inputs = token_width(part),
                                 .outputs = part.mlp_inputs() * mine.width,
                                 .arrives = true}));
  ops.push_back(
      mlp_activation(part, "expert_activation", Region::kExpert, mine.copies, mine.width));
  if (!part.shard.kernels.fused_elementwise && !part.shard.kernels.mask_dispatch) {
    // Sums the products of each copy's result and its gradient.
    Kernel kernel = part.elementwise(
        "choice_gradient",
        {.elements = mine.copies * mine.width, .reads = 2, .writes = 0, .flops = 2});
    kernel.written = mine.copies * size_of(DataType::kFp32);
    kernel.use = KernelUse::kChoiceGradient;
    ops.back().input_gradient.push_back(kernel);
  }
  ops.push_back(project_grouped(part, mine,
                                {.name = "expert_down_projection",
                                 .inputs = mine.width,
                                 .outputs = token_width(part),
                                 .returns = true}));
  ops.push_back(unpermute(part));
  if (part.model.experts.latent > 0) ops.push_back(latent_up(part));
  add_post_norm(part, "mlp_post_norm", ops);
  close_branch(part, "mlp_residual", false, ops);
  return ops;
}

}  // namespace stepsim
