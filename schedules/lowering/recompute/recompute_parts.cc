#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "schedules/lowering/recompute/recompute_choice.h"
#include "schedules/lowering/steps/tensor.h"

namespace stepsim {
namespace {

// Returns the kernels that make the dropped columns: they read the whole input and a part of the
// matrix.
std::vector<Kernel> kernels_of_part(std::vector<Kernel> kernels, const DroppedColumns& dropped) {
  if (dropped.all()) return kernels;
  for (Kernel& kernel : kernels) {
    // The narrow side of an adapter has no part in it: it runs whole.
    if (kernel.kind != KernelKind::kMatmul || kernel.n != dropped.of) continue;
    const double share = static_cast<double>(dropped.columns) / static_cast<double>(dropped.of);
    const Bytes input = bytes_of(kernel.m * kernel.k, kernel.type);
    kernel.flops = share * kernel.flops;
    kernel.read = input + dropped.part(kernel.read - input);
    kernel.written = dropped.part(kernel.written);
    kernel.n = kernel.n * dropped.columns / dropped.of;
  }
  return kernels;
}

OpExchange& exchange_at(std::vector<OpExchange>& exchanges, std::size_t op) {
  const auto found = std::ranges::find(exchanges, op, &OpExchange::op);
  if (found != exchanges.end()) return *found;
  return exchanges.emplace_back(OpExchange{.op = op});
}

// Remaking writes the steps that make again what a backward reads. Each op runs once, before the
// first backward that needs it.
class Remaking {
 public:
  Remaking(const Layer& block, const TensorGroup& group, Bytes boundary,
           const RecomputeChoice& choice, const std::vector<OpExchange>& exchanges)
      : ops_(block.ops),
        group_(group),
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
    if (arrived_ > Bytes(0)) compute().kept += std::exchange(arrived_, Bytes(0));
    return std::move(steps_);
  }

  // Repeats an op that keeps its result, just before its own backward.
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
    receive(i);
  }

  // Data that arrives for experts while the shared ones run arrives that way again if both are
  // repeated. If only the experts are, it arrives by itself.
  void receive(std::size_t i) {
    const OpExchange& own = exchange(i);
    if (own.receiver) {
      const bool both = choice_.is_module(i) && choice_.is_module(*own.receiver);
      if (!both || std::exchange(done_[*own.receiver].received, true)) return;
      return append(own.before_forward);
    }
    if (!choice_.ops()[i].receives_again || std::exchange(done_[i].received, true)) return;
    append(own.before_forward);
    const auto beside = std::ranges::find(exchanges_, std::optional(i), &OpExchange::receiver);
    if (beside == exchanges_.end()) return;
    append(beside->before_forward);
    for (LayerStep& step : steps_) {
      if (step.kind == LayerStep::Kind::kDetached) step.kind = LayerStep::Kind::kCollective;
    }
  }

  // Gathers again at the start of the stretch of the T region around an op that reads the input.
  void gather(std::size_t i) {
    if (group_.ranks == 1 || !is_tensor(ops_[i])) return;
    std::size_t first = i;
    while (first > 0 && is_tensor(ops_[first - 1])) --first;
    const bool reads_gathered = std::ranges::any_of(
        choice_.sources(i), [first](std::size_t source) { return source < first; });
    if (first == 0 || !reads_gathered || std::exchange(done_[first].gathered, true)) return;
    if (!group_.sequence_parallel) return;
    communicate(CollectiveOp::kAllGather, gathered_input(ops_[first], group_, boundary_));
  }

  void communicate(CollectiveOp op, Bytes bytes) {
    LayerStep step;
    step.kind = LayerStep::Kind::kCollective;
    step.recomputes = true;
    step.collective = op;
    step.bytes = bytes;
    step.type = group_.precision.communicated();
    steps_.push_back(std::move(step));
  }

  void make(std::size_t i) {
    if (std::exchange(done_[i].made, true)) return;
    make_input(i);
    gather(i);
    run(i);
    if (group_.ranks > 1 && choice_.ops()[i].reduces_again) {
      communicate(
          group_.sequence_parallel ? CollectiveOp::kReduceScatter : CollectiveOp::kAllReduce,
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
    if (exchange(i).starts_step) {
      steps_.emplace_back();
      steps_.back().recomputes = true;
    }
    if (exchange(i).forward.empty()) {
      run_kernels(i, restored);
      return;
    }
    append(exchange(i).forward);
    const auto first =
        std::find_if(steps_.begin() + static_cast<std::ptrdiff_t>(before), steps_.end(),
                     [](const LayerStep& step) { return step.kind == LayerStep::Kind::kCompute; });
    if (first != steps_.end()) first->kept = restored;
  }

  void run_kernels(std::size_t i, Bytes restored) {
    const LayerOp& op = ops_[i];
    if (op.forward.empty()) {
      arrived_ += restored;
      return;
    }
    LayerStep& step = compute();
    step.workspace = std::max(step.workspace, op.workspace.forward);
    const DroppedColumns& dropped = choice_.dropped(i);
    const std::vector<Kernel>& whole = op.again.empty() ? op.forward : op.again;
    const std::vector<Kernel> kernels = dropped.any() ? kernels_of_part(whole, dropped) : whole;
    step.kernels.insert(step.kernels.end(), kernels.begin(), kernels.end());
    step.kept += restored + std::exchange(arrived_, Bytes(0));
  }

  LayerStep& compute() {
    if (steps_.empty() || steps_.back().kind != LayerStep::Kind::kCompute) {
      steps_.emplace_back();
      steps_.back().recomputes = true;
    }
    return steps_.back();
  }

  const std::vector<LayerOp>& ops_;
  const TensorGroup& group_;
  Bytes boundary_;
  const RecomputeChoice& choice_;
  const std::vector<OpExchange>& exchanges_;
  struct Done {
    bool made = false;
    bool received = false;
    bool gathered = false;
  };
  std::vector<Done> done_;
  std::vector<LayerStep> steps_;
  // Activations restored by an op without kernels; the next kernels book them.
  Bytes arrived_{};
};

}  // namespace

Layer recompute_parts(const Layer& whole, const RecomputeChoice& choice, const TensorGroup& group,
                      Bytes boundary, std::vector<OpExchange>& exchanges) {
  Layer block = whole;
  const std::vector<OpExchange> before = exchanges;
  Remaking remaking(whole, group, boundary, choice, before);
  for (std::size_t i = block.ops.size(); i-- > 0;) {
    const OpRecompute& chosen = choice.ops()[i];
    const Bytes let_go = chosen.kept + chosen.restored + chosen.input_restored;
    std::vector<LayerStep> steps = remaking.before_backward(i);
    std::vector<LayerStep> own = remaking.inside(i);
    const bool as_before =
        chosen.kept == block.ops[i].saved.total && let_go == block.ops[i].saved.total;
    if (steps.empty() && own.empty() && as_before) continue;
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
    block.ops[i].saved.total = let_go;
  }
  return block;
}

}  // namespace stepsim
