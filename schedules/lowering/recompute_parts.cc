#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "schedules/lowering/recompute.h"

namespace stepsim {
namespace {

enum class Policy : std::uint8_t {
  kKeep,
  kInside,  // what only its own backward reads is made again, its result stays
  kResult,  // its result too, where somebody reads it
  kModule,  // with its neighbours: all of them run again, whoever reads what
};

bool is_projection(const LayerOp& op) {
  return std::ranges::any_of(
      op.weight_gradient, [](const Kernel& kernel) { return kernel.kind == KernelKind::kMatmul; });
}

bool is_tensor(const LayerOp& op) {
  return op.region == Region::kTensor;
}

bool one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::count(names, name) > 0;
}

// Whether a module that the plan makes again has the op, and how.
Policy policy_of(RecomputeModule module, const LayerOp& op) {
  const std::string_view name = op.name;
  switch (module) {
    case RecomputeModule::kAttention:
      return name == "attention" ? Policy::kInside : Policy::kKeep;
    case RecomputeModule::kNorm:
      return name.ends_with("norm") ? Policy::kResult : Policy::kKeep;
    case RecomputeModule::kActivation:
      return name.ends_with("_activation") ? Policy::kResult : Policy::kKeep;
    case RecomputeModule::kLatentUp:
      return one_of(name, {"query_up_projection", "key_value_up_projection", "rope"})
                 ? Policy::kResult
                 : Policy::kKeep;
    case RecomputeModule::kMlp:
      return one_of(name,
                    {"gate_up_projection", "up_projection", "mlp_activation", "down_projection"})
                 ? Policy::kModule
                 : Policy::kKeep;
    case RecomputeModule::kSharedExperts:
      return name.starts_with("shared_") ? Policy::kModule : Policy::kKeep;
    case RecomputeModule::kExperts:
      return op.region == Region::kExpert || name.starts_with("shared_") ||
                     one_of(name, {"router", "permute", "unpermute"})
                 ? Policy::kModule
                 : Policy::kKeep;
  }
  return Policy::kKeep;
}

Policy policy_of(const ParallelPlan& plan, const LayerOp& op) {
  if (op.forward.empty()) return Policy::kKeep;
  if (plan.recompute == Recompute::kMatmuls) {
    return is_projection(op) || one_of(op.name, {"permute", "unpermute"}) ? Policy::kKeep
                                                                          : Policy::kResult;
  }
  if (plan.recompute == Recompute::kAlternate) {
    const bool stays = is_projection(op) || one_of(op.name, {"attention", "permute", "unpermute"});
    return stays ? Policy::kKeep : Policy::kResult;
  }
  if (plan.recompute != Recompute::kSelective) return Policy::kKeep;
  Policy most = Policy::kKeep;
  for (const RecomputeModule module : plan.recompute_modules) {
    most = std::max(most, policy_of(module, op));
  }
  return most;
}

// Who reads whose result: positions of ops, those before it in the order of LayerOp::reads. The
// first op of a block reads the block's input, which is not an op.
using Sources = std::vector<std::vector<std::size_t>>;
Sources sources_of(const Layer& block) {
  Sources sources(block.ops.size());
  for (std::size_t i = 0; i < block.ops.size(); ++i) {
    for (const std::string_view name : block.ops[i].reads) {
      const auto found = std::ranges::find(block.ops, name, &LayerOp::name);
      sources[i].push_back(static_cast<std::size_t>(found - block.ops.begin()));
    }
    if (sources[i].empty() && i > 0) sources[i] = {i - 1};
  }
  return sources;
}

// Of the columns of a projection's result, those that are dropped.
struct Dropped {
  std::int64_t columns = 0;
  std::int64_t of = 1;

  bool any() const { return columns > 0; }
  bool all() const { return columns == of; }
  Bytes part(Bytes bytes) const { return Bytes(bytes.value() / of * columns); }
};

// Every second matmul of the block, matrices side by side counted one by one: torchtitan's
// checkpointing of operations.
std::vector<Dropped> dropped_alternately(const Layer& block) {
  std::vector<Dropped> dropped(block.ops.size());
  std::int64_t matmuls = 0;
  for (std::size_t i = 0; i < block.ops.size(); ++i) {
    const LayerOp& op = block.ops[i];
    if (!is_projection(op) || op.region == Region::kExpert) continue;
    const std::vector<std::int64_t> columns =
        op.columns.empty() ? std::vector<std::int64_t>{1} : op.columns;
    dropped[i].of = 0;
    for (const std::int64_t matrix : columns) {
      dropped[i].of += matrix;
      if (++matmuls % 2 == 0) dropped[i].columns += matrix;
    }
  }
  return dropped;
}

// Bytes of the result of a projection.
Bytes result_size(const LayerOp& op) {
  Bytes most;
  for (const Kernel& kernel : op.forward) {
    if (kernel.kind == KernelKind::kMatmul) most = std::max(most, kernel.written);
  }
  return most;
}

// The kernels that make the dropped columns: the whole input, a part of the matrix.
std::vector<Kernel> part_of(std::vector<Kernel> kernels, const Dropped& dropped) {
  if (dropped.all()) return kernels;
  for (Kernel& kernel : kernels) {
    if (kernel.kind != KernelKind::kMatmul) continue;
    const double share = static_cast<double>(dropped.columns) / static_cast<double>(dropped.of);
    const Bytes input = kernel.m * kernel.k * size_of(kernel.type);
    kernel.flops = share * kernel.flops;
    kernel.read = input + dropped.part(kernel.read - input);
    kernel.written = dropped.part(kernel.written);
    kernel.n = kernel.n * dropped.columns / dropped.of;
  }
  return kernels;
}

class Choice {
 public:
  Choice(const Layer& block, const ParallelPlan& plan)
      : ops_(block.ops), plan_(plan), sources_(sources_of(block)), result_(block.ops.size()) {
    for (const LayerOp& op : ops_) policies_.push_back(policy_of(plan, op));
    dropped_.resize(ops_.size());
    if (plan.recompute == Recompute::kAlternate) dropped_ = dropped_alternately(block);
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (dropped_[i].all()) policies_[i] = Policy::kResult;
    }
    for (std::size_t i = ops_.size(); i-- > 0;) choose(i);
    for (std::size_t i = 0; i < ops_.size(); ++i) count_bytes(i);
    for (std::size_t i = 0; i < ops_.size(); ++i) communicate(i);
  }

  const std::vector<OpRecompute>& ops() const { return result_; }
  const std::vector<std::size_t>& sources(std::size_t i) const { return sources_[i]; }
  bool is_module(std::size_t i) const { return policies_[i] == Policy::kModule; }
  // Its whole result, or some columns of it.
  bool makes_again(std::size_t i) const { return result_[i].result_again || dropped_[i].any(); }
  const Dropped& dropped(std::size_t i) const { return dropped_[i]; }

 private:
  bool reads(std::size_t reader, std::size_t op) const {
    return std::ranges::count(sources_[reader], op) > 0;
  }
  // The result of the first op that it reads was dropped.
  bool input_again(std::size_t i) const {
    return !sources_[i].empty() && result_[sources_[i].front()].result_again;
  }
  // Whether an op that passes reads what `op` makes, for its backward or to run again.
  template <typename Passes>
  bool is_read_again(std::size_t op, const Passes& passes) const {
    for (std::size_t reader = op + 1; reader < ops_.size(); ++reader) {
      if (!reads(reader, op) || !passes(ops_[reader])) continue;
      if (ops_[reader].backward_reads_input || result_[reader].again) return true;
    }
    return false;
  }

  void choose(std::size_t i) {
    const auto anybody = [](const LayerOp&) { return true; };
    const bool is_needed = ops_[i].saved_result > Bytes(0) || is_read_again(i, anybody);
    result_[i].again = policies_[i] == Policy::kInside || policies_[i] == Policy::kModule ||
                       (policies_[i] == Policy::kResult && is_needed);
    result_[i].result_again = result_[i].again && policies_[i] != Policy::kInside;
  }

  void count_bytes(std::size_t i) {
    const LayerOp& op = ops_[i];
    OpRecompute& chosen = result_[i];
    chosen.kept = op.saved;
    if (chosen.again) {
      chosen.restored = op.saved_inside;
      if (chosen.result_again) chosen.restored += op.saved_result;
      chosen.kept -= chosen.restored;
    }
    if (input_again(i)) {
      chosen.kept -= op.saved_input;
      chosen.input_restored = op.saved_input;
      chosen.input_restored -= std::min(op.saved_input, still_kept(sources_[i].front()));
    } else {
      Bytes input = op.saved_input;
      if (chosen.result_again) {
        const Bytes added = op.input - std::min(op.input, kept_by_others(i));
        chosen.kept += added;
        input += added;
      }
      if (!sources_[i].empty() && dropped_[sources_[i].front()].any()) {
        const Bytes part = dropped_[sources_[i].front()].part(input);
        chosen.kept -= part;
        chosen.input_restored = part;
      }
    }
    // The results that are not dropped are kept, whether somebody reads them or not.
    if (plan_.recompute == Recompute::kAlternate && is_projection(op) && !dropped_[i].any() &&
        is_read_by_nobody(i)) {
      chosen.kept += result_size(op);
    }
  }
  // No op of the block keeps the result of this one.
  bool is_read_by_nobody(std::size_t i) const {
    for (std::size_t reader = i + 1; reader < ops_.size(); ++reader) {
      if (sources_[reader].empty() || sources_[reader].front() != i) continue;
      if (ops_[reader].saved_input > Bytes(0) || result_[reader].result_again) return false;
    }
    return true;
  }
  // What an op that runs again hands on is still there where its input is kept.
  Bytes still_kept(std::size_t i) const {
    if (!input_again(i)) return ops_[i].passed_on;
    return std::min(ops_[i].passed_on, still_kept(sources_[i].front()));
  }

  // Of the input of an op that runs again, what somebody keeps anyway: an op with the same input,
  // or the one that made it. Of several that don't, the first one does.
  Bytes kept_by_others(std::size_t i) const {
    if (sources_[i].empty()) return ops_[i].saved_input;
    const std::size_t source = sources_[i].front();
    Bytes most = ops_[source].saved_result;
    for (std::size_t reader = source + 1; reader < ops_.size(); ++reader) {
      if (sources_[reader].empty() || sources_[reader].front() != source) continue;
      most = std::max(most, ops_[reader].saved_input);
      if (reader < i && result_[reader].result_again) most = std::max(most, ops_[reader].input);
    }
    return most;
  }

  void communicate(std::size_t i) {
    const LayerOp& op = ops_[i];
    OpRecompute& chosen = result_[i];
    const auto outside = [&op](const LayerOp& reader) { return reader.region != op.region; };
    const bool is_last = i + 1 == ops_.size();
    if (is_tensor(op) && i > 0 && !is_tensor(ops_[i - 1])) {
      for (std::size_t other = i; other < ops_.size() && is_tensor(ops_[other]); ++other) {
        const bool reads_gathered =
            std::ranges::any_of(sources_[other], [&](std::size_t source) { return source < i; });
        chosen.gathers_again = chosen.gathers_again || (makes_again(other) && reads_gathered);
      }
    }
    if (is_tensor(op) && (is_last || !is_tensor(ops_[i + 1]))) {
      chosen.reduces_again = chosen.result_again && (is_module(i) || is_read_again(i, outside));
    }
    // What Ulysses and experts have received is what they keep, not what was there before.
    const bool keeps_received =
        op.region == Region::kExpert || plan_.cp_mode == ContextMode::kUlysses;
    const bool rings =
        plan_.cp_mode == ContextMode::kRing || plan_.cp_mode == ContextMode::kZigzagRing;
    chosen.receives_again = keeps_received
                                ? input_again(i) && (op.backward_reads_input || chosen.again)
                            : rings ? chosen.again
                                    : chosen.result_again;
    chosen.returns_again = chosen.result_again && (is_module(i) || op.saved_result > Bytes(0) ||
                                                   is_read_again(i, outside));
  }

  const std::vector<LayerOp>& ops_;
  const ParallelPlan& plan_;
  Sources sources_;
  std::vector<Policy> policies_;
  std::vector<Dropped> dropped_;
  std::vector<OpRecompute> result_;
};

OpExchange& exchange_at(std::vector<OpExchange>& exchanges, std::size_t op) {
  const auto found = std::ranges::find(exchanges, op, &OpExchange::op);
  if (found != exchanges.end()) return *found;
  return exchanges.emplace_back(OpExchange{.op = op});
}

// Writes the steps that make again what a backward reads, each op once, before the first backward
// that needs it.
class Remaking {
 public:
  Remaking(const Layer& block, const ParallelPlan& plan, Bytes boundary, const Choice& choice,
           const std::vector<OpExchange>& exchanges)
      : ops_(block.ops),
        plan_(plan),
        boundary_(boundary),
        choice_(choice),
        exchanges_(exchanges),
        done_(ops_.size()) {}

  std::vector<LayerStep> before_backward(std::size_t i) {
    steps_.clear();
    if (ops_[i].backward_reads_input) make_input(i);
    if (choice_.is_module(i) && !done_[i].made) {
      std::size_t first = i;
      while (first > 0 && choice_.is_module(first - 1)) --first;
      for (std::size_t op = first; op <= i; ++op) make(op);
    }
    return std::move(steps_);
  }

  // An op that keeps its result, right before its own backward.
  std::vector<LayerStep> inside(std::size_t i) {
    steps_.clear();
    const OpRecompute& chosen = choice_.ops()[i];
    if (chosen.again && !chosen.result_again) run(i);
    return std::move(steps_);
  }

 private:
  const OpExchange& exchange(std::size_t i) const {
    static const OpExchange kNone;
    const auto found = std::ranges::find(exchanges_, i, &OpExchange::op);
    return found == exchanges_.end() ? kNone : *found;
  }

  void append(const std::vector<LayerStep>& steps) {
    for (LayerStep step : steps) {
      step.recomputes = true;
      step.kept = Bytes(0);
      steps_.push_back(std::move(step));
    }
  }

  void make_input(std::size_t i) {
    for (const std::size_t source : choice_.sources(i)) {
      if (choice_.makes_again(source)) make(source);
    }
    if (!choice_.ops()[i].receives_again || std::exchange(done_[i].received, true)) return;
    append(exchange(i).before_forward);
  }

  // Of the stretch of the T region around an op that reads what was gathered at its beginning.
  void gather(std::size_t i) {
    if (plan_.tp == 1 || !is_tensor(ops_[i])) return;
    std::size_t first = i;
    while (first > 0 && is_tensor(ops_[first - 1])) --first;
    const bool reads_gathered = std::ranges::any_of(
        choice_.sources(i), [first](std::size_t source) { return source < first; });
    if (first == 0 || !reads_gathered || std::exchange(done_[first].gathered, true)) return;
    if (!plan_.sequence_parallel) return;
    const Bytes crossing = ops_[first].crossing;
    communicate(CollectiveOp::kAllGather, crossing == Bytes(0) ? boundary_ : crossing);
  }

  void communicate(CollectiveOp op, Bytes bytes) {
    LayerStep step;
    step.kind = LayerStep::Kind::kCollective;
    step.recomputes = true;
    step.collective = op;
    step.bytes = bytes;
    step.type = plan_.communicated();
    steps_.push_back(std::move(step));
  }

  void make(std::size_t i) {
    if (std::exchange(done_[i].made, true)) return;
    make_input(i);
    gather(i);
    run(i);
    if (plan_.tp > 1 && choice_.ops()[i].reduces_again) {
      communicate(plan_.sequence_parallel ? CollectiveOp::kReduceScatter : CollectiveOp::kAllReduce,
                  boundary_);
    }
    if (choice_.ops()[i].returns_again) append(exchange(i).after_forward);
  }

  void run(std::size_t i) {
    Bytes restored = choice_.ops()[i].restored;
    for (std::size_t reader = i + 1; reader < ops_.size(); ++reader) {
      const std::vector<std::size_t>& sources = choice_.sources(reader);
      if (sources.empty() || sources.front() != i) continue;
      restored += choice_.ops()[reader].input_restored;
    }
    const std::size_t before = steps_.size();
    if (!exchange(i).forward.empty()) {
      append(exchange(i).forward);
    } else if (!ops_[i].forward.empty()) {
      LayerStep& step = compute();
      step.workspace = std::max(step.workspace, ops_[i].forward_workspace);
      const Dropped& dropped = choice_.dropped(i);
      const std::vector<Kernel> kernels =
          dropped.any() ? part_of(ops_[i].forward, dropped) : ops_[i].forward;
      step.kernels.insert(step.kernels.end(), kernels.begin(), kernels.end());
      step.kept += restored;
      return;
    }
    const auto first =
        std::find_if(steps_.begin() + static_cast<std::ptrdiff_t>(before), steps_.end(),
                     [](const LayerStep& step) { return step.kind == LayerStep::Kind::kCompute; });
    if (first != steps_.end()) first->kept = restored;
  }

  LayerStep& compute() {
    if (steps_.empty() || steps_.back().kind != LayerStep::Kind::kCompute) {
      steps_.emplace_back();
      steps_.back().recomputes = true;
    }
    return steps_.back();
  }

  const std::vector<LayerOp>& ops_;
  const ParallelPlan& plan_;
  Bytes boundary_;
  const Choice& choice_;
  const std::vector<OpExchange>& exchanges_;
  struct Done {
    bool made = false;
    bool received = false;
    bool gathered = false;
  };
  std::vector<Done> done_;
  std::vector<LayerStep> steps_;
};

}  // namespace

std::vector<OpRecompute> recomputed_ops(const Layer& block, const ParallelPlan& plan) {
  return Choice(block, plan).ops();
}

Bytes kept(const std::vector<OpRecompute>& ops) {
  Bytes sum;
  for (const OpRecompute& op : ops) sum += op.kept;
  return sum;
}

Layer recompute_parts(Layer block, const ParallelPlan& plan, Bytes boundary,
                      std::vector<OpExchange>& exchanges) {
  const Layer whole = block;
  const Choice choice(whole, plan);
  const std::vector<OpExchange> before = exchanges;
  Remaking remaking(whole, plan, boundary, choice, before);
  for (std::size_t i = block.ops.size(); i-- > 0;) {
    const OpRecompute& chosen = choice.ops()[i];
    const Bytes let_go = chosen.kept + chosen.restored + chosen.input_restored;
    std::vector<LayerStep> steps = remaking.before_backward(i);
    std::vector<LayerStep> own = remaking.inside(i);
    if (steps.empty() && own.empty() && chosen.kept == block.ops[i].saved) continue;
    OpExchange& exchange = exchange_at(exchanges, i);
    exchange.kept = chosen.kept;
    for (LayerStep& step : exchange.forward) {
      if (step.kept > Bytes(0)) step.kept = chosen.kept;
    }
    for (LayerStep& step : exchange.backward) {
      if (step.let_go > Bytes(0)) step.let_go = let_go;
    }
    exchange.before_backward.insert(exchange.before_backward.begin(), steps.begin(), steps.end());
    exchange.before_backward.insert(exchange.before_backward.end(), own.begin(), own.end());
    block.ops[i].saved = let_go;
  }
  return block;
}

}  // namespace stepsim
