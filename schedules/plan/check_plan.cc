// The rules of a plan, one line each. A rule that fails names the field, its value, what it has to
// agree with, and the nearest values that would do.

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "schedules/plan/expert_places.h"
#include "schedules/plan/parallel_plan.h"
#include "schedules/plan/plan_schedule.h"

namespace stepsim {
namespace {

// "4 or 8": the divisors of `whole` next to `part`.
std::string nearest_divisors(std::int64_t part, std::int64_t whole) {
  std::int64_t below = 0;
  std::int64_t above = 0;
  for (std::int64_t small = 1; small * small <= whole; ++small) {
    if (whole % small != 0) continue;
    for (const std::int64_t divisor : {small, whole / small}) {
      if (divisor < part) below = std::max(below, divisor);
      if (divisor > part && (above == 0 || divisor < above)) above = divisor;
    }
  }
  if (below == 0 || above == 0) return std::to_string(std::max(below, above));
  return std::to_string(below) + " or " + std::to_string(above);
}

// "8 or 12": the multiples of `part` next to `whole`.
std::string nearest_multiples(std::int64_t part, std::int64_t whole) {
  const std::int64_t below = whole / part * part;
  const std::string above = std::to_string(below + part);
  return below == 0 ? above : std::to_string(below) + " or " + above;
}

// Collects problems.
class Rules {
 public:
  void require(bool holds, std::string field, std::string message) {
    if (!holds) problems_.push_back({std::move(field), std::move(message)});
  }
  void at_least(const std::string& field, std::int64_t least, std::int64_t value) {
    require(value >= least, field,
            "must be at least " + std::to_string(least) + ", is " + std::to_string(value));
  }
  // `whole` must be a multiple of `part`, which is the value of `field`.
  void divides(const std::string& field, std::int64_t part, const std::string& what,
               std::int64_t whole) {
    if (part < 1 || whole < 1 || whole % part == 0) return;
    problems_.push_back({field, "is " + std::to_string(part) + ", which does not divide the " +
                                    what + " (" + std::to_string(whole) +
                                    "); nearest: " + nearest_divisors(part, whole)});
  }
  // `whole`, the value of `field`, must be a multiple of `part`.
  void multiple_of(const std::string& field, std::int64_t whole, const std::string& what,
                   std::int64_t part) {
    if (part < 1 || whole < 1 || whole % part == 0) return;
    problems_.push_back({field, "is " + std::to_string(whole) + ", which is not a multiple of " +
                                    what + "; nearest: " + nearest_multiples(part, whole)});
  }
  bool good() const { return problems_.empty(); }
  std::vector<Problem> take() { return std::move(problems_); }

 private:
  std::vector<Problem> problems_;
};

std::string list_of_levels(const Places& places) {
  std::string text;
  for (const Level& level : places.levels) {
    text += (text.empty() ? "" : ", ") + level.name + " (" + std::to_string(level.size) + ")";
  }
  return text;
}

constexpr double kMostLayerPasses = 4e6;

void check_sizes(const ParallelPlan& plan, Rules& rules) {
  rules.at_least("tp", 1, plan.tp);
  rules.at_least("cp", 1, plan.cp);
  rules.at_least("dp", 1, plan.dp);
  rules.at_least("pp", 1, plan.pp);
  rules.at_least("ep", 1, plan.ep);
  rules.at_least("etp", 1, plan.etp);
  rules.at_least("microbatch", 1, plan.microbatch);
  rules.at_least("global_batch", 1, plan.global_batch);
  rules.at_least("sequence", 1, plan.sequence);
  rules.at_least("gradient_bucket_parameters", 1, plan.gradient_bucket_parameters);
  rules.at_least("prefetch", 0, plan.prefetch);
  rules.at_least("tensor_chunks", 1, plan.tensor_chunks);
  rules.require(plan.tensor_chunks <= 1 || plan.divides_tokens(), "tensor_chunks",
                "is " + std::to_string(plan.tensor_chunks) +
                    ", but matmuls are cut by the tokens that are gathered or scattered: needs tp "
                    "above 1 and sequence_parallel");
  rules.require(plan.tensor_chunks <= 1 || plan.cp * plan.ep * plan.etp <= 1, "tensor_chunks",
                "is " + std::to_string(plan.tensor_chunks) +
                    ", which goes with tp, dp and pp only: cp, ep and etp must be 1");
  rules.at_least("recompute_block", 1, plan.recompute_block);
  rules.at_least("recompute_layers", 0, plan.recompute_layers);
  rules.at_least("shard", 0, plan.shard);
  rules.at_least("optimizer_bytes", 1, plan.optimizer_bytes);
  rules.require(plan.gradient_bytes == 2 || plan.gradient_bytes == 4, "gradient_bytes",
                "must be 2 (bf16) or 4 (fp32), is " + std::to_string(plan.gradient_bytes));
  rules.require(plan.zero >= 0 && plan.zero <= 3, "zero",
                "must be 0 (replicated), 1 (optimizer state divided), 2 (and gradients) or 3 "
                "(FSDP), is " +
                    std::to_string(plan.zero));
  const std::set<PlanAxis> named(plan.order.begin(), plan.order.end());
  rules.require(named.size() == kPlanAxes, "order",
                "must name each of tp, cp, dp and pp once, innermost first");
}

std::string describe_stages(const ParallelPlan& plan) {
  if (stages_of(plan) == plan.pp) return "pp is " + std::to_string(plan.pp);
  return "pp x chunks is " + std::to_string(plan.pp) + " x " + std::to_string(chunks_of(plan)) +
         " = " + std::to_string(stages_of(plan));
}

void check_layout(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  std::int64_t sum = 0;
  for (const std::int64_t layers : plan.layout) {
    rules.require(layers >= 0, "layout",
                  "has a stage of " + std::to_string(layers) + " layers, must be at least 0");
    sum += layers;
  }
  rules.require(
      static_cast<std::int64_t>(plan.layout.size()) == stages_of(plan), "layout",
      "has " + std::to_string(plan.layout.size()) + " stages, but " + describe_stages(plan));
  // An empty stage in the middle would hand on what it has not made.
  for (std::size_t stage = 1; stage + 1 < plan.layout.size(); ++stage) {
    rules.require(plan.layout[stage] != 0, "layout",
                  "has no layers in stage " + std::to_string(stage) +
                      "; only the first stage, with the embedding, and the last, with the head, "
                      "may have none");
  }
  rules.require(sum == model.layers, "layout",
                "adds up to " + std::to_string(sum) + " layers, but the model has " +
                    std::to_string(model.layers));
}

// "2 or 4": chunks next to the plan's with which the stages divide the layers; "": there are none.
std::string nearest_chunks(const ParallelPlan& plan, std::int64_t layers) {
  if (layers % plan.pp != 0) return "";
  return "nearest: " + nearest_divisors(chunks_of(plan), layers / plan.pp) + ", or ";
}

void check_stages(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  if (!plan.layout.empty()) return check_layout(plan, model, rules);
  if (stages_of(plan) == plan.pp) {
    rules.divides("pp", plan.pp, "model's layers", model.layers);
  } else if (plan.pp >= 1 && model.layers >= 1) {
    rules.require(model.layers % stages_of(plan) == 0, "chunks",
                  describe_stages(plan) + " stages, which do not divide the model's layers (" +
                      std::to_string(model.layers) + "); " + nearest_chunks(plan, model.layers) +
                      "give the layers of each by layout");
  }
}

void check_tensor(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  rules.divides("tp", plan.tp, "model's attention heads", model.heads);
  // Key-value heads fewer than tensor ranks are on several of them each.
  if (plan.tp >= 1 && model.kv_heads >= 1 && plan.tp % model.kv_heads != 0) {
    rules.divides("tp", plan.tp, "model's key-value heads", model.kv_heads);
  }
  rules.divides("tp", plan.tp, "model's MLP width", model.intermediate);
  if (plan.sequence_parallel && plan.microbatch >= 1 && plan.cp >= 1 &&
      plan.sequence % plan.cp == 0) {
    rules.divides("tp", plan.tp, "tokens of a micro-batch, as sequence parallelism asks",
                  plan.microbatch * plan.sequence / plan.cp);
  }
}

// Two-dimensional weights.
void check_width(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  if (plan.tensor_width <= 1) {
    rules.at_least("tensor_width", 1, plan.tensor_width);
    return;
  }
  const std::string is = "is " + std::to_string(plan.tensor_width);
  rules.divides("tensor_width", plan.tensor_width, "tensor ranks (tp)", plan.tp);
  rules.require(plan.tensor_width != plan.tp, "tensor_width",
                is + ", all of tp: some ranks must divide the features");
  rules.divides("tp", plan.tp, "model's width, as tensor_width asks", model.hidden);
  if (model.kind != ModelKind::kMlpStack) {
    rules.divides("tp", plan.tp, "model's key-value heads, as tensor_width asks", model.kv_heads);
  }
  const auto only = [&](bool holds, const char* what) {
    rules.require(holds, "tensor_width", is + ", which goes with " + what);
  };
  only(plan.sequence_parallel, "sequence_parallel only: the residual stream is divided");
  only(model.experts.routed == 0, "dense models only");
  only(model.latent.kv_rank == 0, "plain attention only, not latent");
  only(model.prediction_modules == 0, "models without multi-token prediction");
  only(plan.tensor_chunks <= 1 && !plan.overlap_tensor,
       "tensor_chunks = 1 and overlap_tensor = false");
  only(plan.recompute == Recompute::kNone || plan.recompute == Recompute::kFull,
       "recompute none or full");
}

void check_context(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  if (plan.cp <= 1) return;
  const bool halves =
      plan.cp_mode == ContextMode::kZigzagRing || plan.cp_mode == ContextMode::kAllGather;
  rules.multiple_of("sequence", plan.sequence,
                    (halves ? "2 x cp = " : "cp = ") + std::to_string((halves ? 2 : 1) * plan.cp) +
                        " (cp_mode is " + std::string(name_of(plan.cp_mode)) + ")",
                    (halves ? 2 : 1) * plan.cp);
  const bool ring = plan.cp_mode == ContextMode::kRing || plan.cp_mode == ContextMode::kZigzagRing;
  rules.require(plan.fused_attention || !ring, "fused_attention",
                "is false, but the chunks of a ring are merged by a fused kernel: true, or cp_mode "
                "all_gather or ulysses");
  if (plan.cp_mode != ContextMode::kUlysses || plan.tp < 1) return;
  for (const auto& [what, heads] :
       {std::pair{"attention heads", model.heads}, std::pair{"key-value heads", model.kv_heads}}) {
    if (heads % plan.tp != 0) continue;
    rules.divides("cp", plan.cp, std::string(what) + " of a tensor rank, as cp_mode = ulysses asks",
                  heads / plan.tp);
  }
}

void check_experts(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  const ExpertSpec& experts = model.experts;
  if (experts.routed == 0) {
    for (const auto& [field, value] : {std::pair{"ep", plan.ep}, std::pair{"etp", plan.etp}}) {
      rules.require(value <= 1, field,
                    "is " + std::to_string(value) + ", but the model has no routed experts: 1");
    }
    for (const auto& [field, value] :
         {std::pair{"node_limit", plan.node_limit}, std::pair{"expert_node", plan.expert_node}}) {
      rules.require(value == 0, field,
                    "is " + std::to_string(value) + ", but the model has no routed experts: 0");
    }
    rules.require(plan.dispatch == Dispatch::kAllToAll, "dispatch",
                  "is two_level, but the model has no routed experts: all_to_all");
    for (const auto& [field, value] :
         {std::pair{"overlap_expert_parallel", plan.overlap_expert_parallel},
          std::pair{"overlap_shared_experts", plan.overlap_shared_experts}}) {
      rules.require(!value, field, "is true, but the model has no routed experts: false");
    }
    for (const auto& [field, type] : {std::pair{"dispatch_dtype", plan.dispatch_type},
                                      std::pair{"combine_dtype", plan.combine_type}}) {
      rules.require(!type, field,
                    "is " + std::string(type ? name_of(*type) : "") +
                        ", but the model has no routed experts: leave it out");
    }
    return;
  }
  rules.require(plan.dispatch == Dispatch::kTwoLevel || plan.node_limit == 0, "node_limit",
                "is " + std::to_string(plan.node_limit) +
                    ", but a copy for each expert goes straight to it (dispatch = all_to_all): 0, "
                    "or dispatch = two_level");
  for (const auto& [field, value] :
       {std::pair{"overlap_expert_parallel", plan.overlap_expert_parallel},
        std::pair{"overlap_shared_experts", plan.overlap_shared_experts}}) {
    rules.require(!value || plan.ep > 1, field, "is true, but with ep = 1 nothing travels: false");
  }
  if (plan.overlap_shared_experts) {
    rules.require(experts.shared_intermediate > 0, "overlap_shared_experts",
                  "is true, but the model has no shared experts: false");
    rules.require(plan.tp <= 1, "overlap_shared_experts",
                  "is true with tp = " + std::to_string(plan.tp) +
                      ", whose own collectives stand around the shared experts: tp = 1");
    const bool fuses = plan.overlap_expert_parallel || plan.schedule == ScheduleName::kDualPipe ||
                       plan.schedule == ScheduleName::kDualPipeV;
    rules.require(!fuses, "overlap_shared_experts",
                  "is true, but fused forwards and backwards run beside the all-to-alls already: "
                  "false");
  }
  rules.divides("ep", plan.ep, "model's routed experts", experts.routed);
  rules.divides("etp", plan.etp, "width of an expert", experts.intermediate);
  rules.divides("tp", plan.tp, "width of the shared experts", experts.shared_intermediate);
  rules.require(plan.tp <= 1 || plan.sequence_parallel, "sequence_parallel",
                "is false, but with experts and tp = " + std::to_string(plan.tp) +
                    " tensor ranks would all send the same tokens: true");
  if (plan.tp < 1 || plan.cp < 1 || plan.dp < 1 || plan.etp < 1) return;
  const std::int64_t ranks = plan.tp * plan.cp * plan.dp;
  rules.divides("etp", plan.etp, "ranks of a stage, tp x cp x dp", ranks);
  if (ranks % plan.etp == 0) {
    rules.divides("ep", plan.ep, "ranks of a stage, tp x cp x dp / etp", ranks / plan.etp);
  }
}

// REQUIRES: nothing is wrong with the plan so far.
void check_expert_places(const ParallelPlan& plan, const ModelSpec& model, const Places& places,
                         Rules& rules) {
  // Loads of another number of experts are the model's problem.
  const std::size_t loads = model.experts.load.size();
  if (loads > 0 && static_cast<std::int64_t>(loads) != model.experts.routed) return;
  if (!routes_by_matrix(model, plan)) return;
  std::int64_t node = plan.ep;
  if (plan.dispatch == Dispatch::kTwoLevel) {
    node = ranks_of_expert_node(plan, places);
    rules.require(node > 0, "dispatch",
                  "is two_level, but the " + std::to_string(plan.ep) +
                      " ranks of ep do not stand in nodes, as many in each and in the same places "
                      "of it: all_to_all, or another order or map");
    if (node == 0) return;
    rules.require(plan.expert_node == 0 || plan.expert_node == node, "expert_node",
                  "is " + std::to_string(plan.expert_node) + ", but in each node of the cluster " +
                      std::to_string(node) + " neighbouring ranks of ep stand: " +
                      std::to_string(node) + ", or 0 for as many as there are");
  }
  ExpertRouting routing = expert_routing(model, plan, node);
  for (const Problem& problem : check(routing)) {
    const bool of_plan = problem.field == "node_limit";
    rules.require(false, of_plan ? problem.field : "ep",
                  of_plan ? problem.message
                          : "routes tokens to the model's experts, of which " + problem.field +
                                " " + problem.message);
  }
}

void check_batch(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  if (plan.dp >= 1 && plan.microbatch >= 1) {
    rules.multiple_of(
        "global_batch", plan.global_batch,
        "dp x microbatch = " + std::to_string(plan.dp) + " x " + std::to_string(plan.microbatch),
        plan.dp * plan.microbatch);
  }
  rules.require(model.learned_positions == 0 || plan.sequence <= model.learned_positions,
                "sequence",
                "is " + std::to_string(plan.sequence) + " tokens, but the model has " +
                    std::to_string(model.learned_positions) + " learned positions");
  if (plan.dp >= 1 && plan.pp >= 1 && plan.microbatch >= 1) {
    // About 25 ops a layer and micro-batch, 50 bytes each.
    const double passes =
        static_cast<double>(plan.microbatches()) * static_cast<double>(model.layers);
    rules.require(passes <= kMostLayerPasses, "global_batch",
                  "makes " + std::to_string(plan.microbatches()) + " micro-batches a rank of " +
                      std::to_string(model.layers) +
                      " layers, more than a step can hold (4 million layers x micro-batches): "
                      "raise dp or microbatch");
  }
}

void check_sharding(const ParallelPlan& plan, Rules& rules) {
  rules.require(plan.shard != 1, "shard",
                "is 1, which divides nothing: 2 and more, or 0 for all replicas");
  if (plan.shard > 0) {
    rules.require(plan.zero >= 1, "shard",
                  "is " + std::to_string(plan.shard) +
                      ", but with zero = 0 nothing is divided: zero must be 1, 2 or 3");
    rules.require(placement_of(plan) != Placement::kBidirectional, "shard",
                  "is " + std::to_string(plan.shard) +
                      " with a schedule that holds two copies of each stage: only 0");
    if (plan.cp >= 1 && plan.dp >= 1) {
      rules.divides("shard", plan.shard, "replicas, cp x dp", plan.replicas());
    }
  }
  rules.require(plan.reshard_after_forward || plan.zero == 3, "reshard_after_forward",
                "is false, but only FSDP (zero = 3) gathers parameters for the forward");
  rules.require(!plan.shared_master || plan.zero == 3, "shared_master",
                "is true, but zero is " + std::to_string(plan.zero) +
                    ": only FSDP (zero = 3) computes with weights that it casts while gathering");
  rules.require(!plan.shared_master || plan.optimizer_bytes >= 4, "optimizer_bytes",
                "is " + std::to_string(plan.optimizer_bytes) +
                    ", but with shared_master 4 of them are the fp32 weights: 4 or more");
  rules.require(!plan.overlap_parameters || plan.zero == 1 || plan.zero == 2, "overlap_parameters",
                "is true, but zero is " + std::to_string(plan.zero) +
                    ": parameters are gathered after the optimizer with zero = 1 or 2 only");
  if (!plan.hold_gradients && plan.dp >= 1 && plan.microbatch >= 1) {
    rules.require(plan.microbatches() == 1, "state_bytes",
                  "is 10, without a place for gradients, but they are summed over " +
                      std::to_string(plan.microbatches()) +
                      " micro-batches: 12, 16 or 18, or a single micro-batch");
  }
}

// Modules that the model's blocks have.
std::vector<RecomputeModule> modules_of(const ModelSpec& model) {
  using enum RecomputeModule;
  if (model.kind == ModelKind::kMlpStack) return {kMlp};
  const ExpertSpec& experts = model.experts;
  std::vector<RecomputeModule> modules = {kAttention, kNorm, kActivation};
  if (model.latent.kv_rank > 0) modules.push_back(kLatentUp);
  const bool has_mlp = experts.routed == 0 || experts.first_dense > 0 || experts.every > 1;
  if (has_mlp) modules.push_back(kMlp);
  if (experts.routed > 0 && experts.shared_intermediate > 0) modules.push_back(kSharedExperts);
  if (experts.routed > 0) modules.push_back(kExperts);
  return modules;
}

void check_recompute_modules(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  rules.require(plan.recompute != Recompute::kAlternate || !model.qk_norm, "recompute",
                "is alternate, which can't be simulated yet for a model that normalises q and k: "
                "none, selective, matmuls or full");
  rules.require(plan.recompute != Recompute::kAlternate || !plan.overlap_shared_experts,
                "recompute",
                "is alternate, which can't be simulated yet with overlap_shared_experts: none, "
                "selective, matmuls or full");
  const std::vector<RecomputeModule> there = modules_of(model);
  std::string names;
  for (const RecomputeModule module : there) {
    names += (names.empty() ? "" : ", ") + std::string(name_of(module));
  }
  const auto has = [](const std::vector<RecomputeModule>& modules, RecomputeModule module) {
    return std::ranges::count(modules, module) > 0;
  };
  if (plan.recompute == Recompute::kSelective) {
    for (const RecomputeModule module : plan.recompute_modules) {
      rules.require(has(there, module), "recompute_modules",
                    "has " + std::string(name_of(module)) +
                        ", of which the model's blocks have none: " + names);
    }
    return;
  }
  rules.require(plan.recompute_modules == ParallelPlan{}.recompute_modules, "recompute_modules",
                "is given, but recompute is " + std::string(name_of(plan.recompute)) +
                    ": only selective takes modules");
}

void check_clipping(const ParallelPlan& plan, Rules& rules) {
  rules.require(plan.clip_gradients || !plan.post_validation, "post_validation",
                "is true, but without clip_gradients there is no norm to wait for");
}

void check_recompute(const ParallelPlan& plan, Rules& rules) {
  rules.require(plan.recompute_block <= 1 || plan.recompute == Recompute::kFull, "recompute_block",
                "is " + std::to_string(plan.recompute_block) + ", but recompute is " +
                    std::string(name_of(plan.recompute)) + ": only full keeps inputs of blocks");
  rules.require(plan.recompute_layers == 0 || plan.recompute != Recompute::kNone,
                "recompute_layers",
                "is " + std::to_string(plan.recompute_layers) +
                    ", but recompute is none: selective, matmuls or full");
}

void check_mapping(const ParallelPlan& plan, const Places& places, Rules& rules) {
  std::set<PlanAxis> axes;
  std::set<std::string> levels;
  for (const AxisMapping& mapping : plan.map) {
    const std::string field = "map." + std::string(name_of(mapping.axis));
    rules.require(axes.insert(mapping.axis).second, field, "is mapped twice");
    std::int64_t size = 1;
    bool known = true;
    for (const std::string& name : mapping.levels) {
      const std::optional<std::size_t> level = places.find(name);
      rules.require(level.has_value(), field,
                    "names level '" + name + "', but the cluster has " + list_of_levels(places));
      rules.require(levels.insert(name).second, field,
                    "uses level '" + name + "', which is mapped already");
      known = known && level.has_value();
      if (level) size *= places.levels[*level].size;
    }
    rules.require(!known || size == plan.size_of(mapping.axis), field,
                  "its levels have " + std::to_string(size) + " places, but " +
                      std::string(name_of(mapping.axis)) + " is " +
                      std::to_string(plan.size_of(mapping.axis)));
  }
}

void check_chips(const ParallelPlan& plan, const Places& places, Rules& rules) {
  for (const PlanAxis axis :
       {PlanAxis::kTensor, PlanAxis::kContext, PlanAxis::kData, PlanAxis::kPipeline}) {
    if (plan.size_of(axis) < 1 || plan.size_of(axis) > 100'000'000) return;
  }
  const auto chips = static_cast<std::int64_t>(places.chips.size());
  const std::string ranks = "tp x cp x dp x pp = " + std::to_string(plan.tp) + " x " +
                            std::to_string(plan.cp) + " x " + std::to_string(plan.dp) + " x " +
                            std::to_string(plan.pp);
  const std::int64_t of_a_replica = plan.tp * plan.cp * plan.pp;
  const std::int64_t most = chips / of_a_replica;
  rules.require(plan.ranks() <= chips, "ranks",
                ranks + " is more than the cluster's " + std::to_string(chips) + " chips" +
                    (most > 0 ? "; nearest: dp = " + std::to_string(most) : ""));
  rules.require(plan.ranks() >= chips || plan.allow_idle_chips, "ranks",
                ranks + " leaves " + std::to_string(chips - plan.ranks()) + " of the cluster's " +
                    std::to_string(chips) + " chips idle: " +
                    (most * of_a_replica == chips ? "dp = " + std::to_string(most) + ", or " : "") +
                    "set allow_idle_chips if that is meant");
}

void check_offload(const ParallelPlan& plan, Rules& rules) {
  rules.require(!plan.host_optimizer || plan.offload_optimizer, "host_optimizer",
                "is true, which needs offload_optimizer: the host updates what lies there");
  rules.require(!plan.offload_optimizer || !plan.shared_master, "offload_optimizer",
                "is true, but with shared_master the master weights are those of the chip");
  rules.at_least("offload_layers", 0, plan.offload_layers);
  rules.require(plan.offload_layers == 0 || plan.offload_activations, "offload_layers",
                "is " + std::to_string(plan.offload_layers) + ", which needs offload_activations");
}

}  // namespace

std::vector<Problem> check(const ParallelPlan& plan, const ModelSpec& model, const Places& places) {
  Rules rules;
  check_sizes(plan, rules);
  check_tensor(plan, model, rules);
  check_width(plan, model, rules);
  check_context(plan, model, rules);
  check_experts(plan, model, rules);
  check_stages(plan, model, rules);
  check_batch(plan, model, rules);
  check_sharding(plan, rules);
  check_recompute(plan, rules);
  check_clipping(plan, rules);
  check_recompute_modules(plan, model, rules);
  check_offload(plan, rules);
  check_chips(plan, places, rules);
  check_mapping(plan, places, rules);
  if (rules.good()) check_expert_places(plan, model, places, rules);
  std::vector<Problem> problems = rules.take();
  for (Problem& problem : check_schedule(plan)) problems.push_back(std::move(problem));
  return problems;
}

std::vector<Problem> check(const ParallelPlan& plan, const ChipSpec& chip) {
  if (chip.peak_of(plan.type) > Throughput(0)) return {};
  std::string supported;
  for (int i = 0; i < kDataTypes; ++i) {
    const auto type = static_cast<DataType>(i);
    if (chip.peak_of(type) > Throughput(0)) {
      supported += (supported.empty() ? "" : ", ") + std::string(name_of(type));
    }
  }
  return {{"dtype", "is " + std::string(name_of(plan.type)) + ", but " + chip.name +
                        " has a peak throughput for " + supported + " only"}};
}

}  // namespace stepsim
