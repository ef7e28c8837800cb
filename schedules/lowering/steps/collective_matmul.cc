#include "schedules/lowering/steps/collective_matmul.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>

namespace stepsim {
namespace {

using Kind = LayerStep::Kind;

std::int64_t part(std::int64_t whole, std::int64_t i, std::int64_t parts) {
  return (i + 1) * whole / parts - i * whole / parts;
}

bool is_matmul(const Kernel& kernel) {
  return kernel.kind == KernelKind::kMatmul;
}

// Returns rows [begin, end) of a matmul [m,k] @ [k,n]. Input and output shrink with m; the weights
// do not.
Kernel rows_between(const Kernel& whole, std::int64_t begin, std::int64_t end) {
  Kernel kernel = whole;
  kernel.m = end - begin;
  const double share = static_cast<double>(kernel.m) / static_cast<double>(whole.m);
  const std::int64_t input = whole.read.value() / (whole.m + whole.n) * whole.m;
  const auto part_of = [&](std::int64_t bytes) {
    return bytes * end / whole.m - bytes * begin / whole.m;
  };
  kernel.flops = share * whole.flops;
  kernel.read = Bytes(whole.read.value() - input + part_of(input));
  kernel.written = Bytes(part_of(whole.written.value()));
  return kernel;
}

// Returns part `i` of `parts`.
Kernel rows(const Kernel& whole, std::int64_t i, std::int64_t parts) {
  return rows_between(whole, i * whole.m / parts, (i + 1) * whole.m / parts);
}

LayerStep collective_part(const LayerStep& whole, std::int64_t i, std::int64_t parts, Kind kind) {
  LayerStep step = whole;
  const std::int64_t element = size_of(whole.type).value();
  step.bytes = Bytes(part(whole.bytes.value() / element, i, parts) * element);
  step.kind = kind;
  return step;
}

// All pieces of a collective but the last, beside a compute step.
LayerStep all_but_the_last(const LayerStep& whole, std::int64_t pieces) {
  LayerStep step = whole;
  step.kind = Kind::kDetached;
  step.bytes = whole.bytes - collective_part(whole, pieces - 1, pieces, step.kind).bytes;
  return step;
}

class Overlap {
 public:
  explicit Overlap(std::int64_t chunks) : chunks_(chunks) {}

  // `gather` precedes the step and `scatter` follows it. Either may be nullptr.
  void add(const LayerStep& whole, const LayerStep* gather, const LayerStep* scatter) {
    const std::size_t count = whole.kernels.size();
    const std::int64_t front = gather != nullptr ? chunks_of(whole.kernels.front()) : 1;
    const bool alone =
        count == 1 && front > 1;  // one matmul is cut for only one of its two collectives
    const std::int64_t back = scatter != nullptr && !alone ? chunks_of(whole.kernels.back()) : 1;

    std::vector<LayerStep> computes;
    const auto run = [&](const Kernel& kernel) {
      computes.emplace_back();
      computes.back().kernels = {kernel};
    };
    if (front > 1) {
      for (std::int64_t i = 0; i < front; ++i) run(rows(whole.kernels.front(), i, front));
    } else {
      computes.emplace_back();
    }
    // The steps in between go with the last chunk of the front.
    const auto begin = whole.kernels.begin() + (front > 1 ? 1 : 0);
    const auto end = whole.kernels.end() - (back > 1 ? 1 : 0);
    if (begin < end) {
      computes.back().kernels.insert(computes.back().kernels.end(), begin, end);
    }
    if (computes.back().kernels.empty()) computes.pop_back();
    const std::size_t first_of_back = computes.size();
    if (back > 1) {
      for (std::int64_t i = 0; i < back; ++i) run(rows(whole.kernels.back(), i, back));
    }
    for (LayerStep& step : computes) {
      step.recomputes = whole.recomputes;
      step.weight_gradient = whole.weight_gradient;
      step.workspace = whole.workspace;
    }
    computes.front().kept = whole.kept;
    computes.front().needs_background = whole.needs_background;
    computes.back().let_go = whole.let_go;

    if (gather != nullptr) result_.push_back(collective_part(*gather, 0, front, Kind::kCollective));
    for (std::size_t i = 0; i < computes.size(); ++i) {
      const auto chunk = static_cast<std::int64_t>(i);
      if (chunk + 1 < front) {
        result_.push_back(collective_part(*gather, chunk + 1, front, Kind::kDetached));
      }
      result_.push_back(std::move(computes[i]));
      if (back > 1 && i >= first_of_back && i + 1 < computes.size()) {
        const auto scattered = static_cast<std::int64_t>(i - first_of_back);
        result_.push_back(collective_part(*scatter, scattered, back, Kind::kDetached));
      }
    }
    if (scatter != nullptr) {
      result_.push_back(collective_part(*scatter, back - 1, back, Kind::kCollective));
    }
  }
  void add(const LayerStep& step) { result_.push_back(step); }

  std::vector<LayerStep> take() { return std::move(result_); }

 private:
  std::int64_t chunks_of(const Kernel& kernel) const {
    return is_matmul(kernel) ? std::min(chunks_, kernel.m) : 1;
  }

  std::int64_t chunks_;
  std::vector<LayerStep> result_;
};

bool is(const LayerStep& step, CollectiveOp op) {
  return step.kind == Kind::kCollective && step.collective == op;
}

bool is_of_tensor_group(const LayerStep& step, CollectiveOp op) {
  return is(step, op) && (step.lane == Lane::kTensor || step.lane == Lane::kTensorBackward);
}

bool can_be_cut(const Kernel& kernel) {
  return is_matmul(kernel) && kernel.m >= 2;
}

// Returns the matmul that reads what was gathered, with at most elementwise kernels before it,
// which round each piece as it comes; the end if there is none that can be cut.
std::vector<Kernel>::iterator first_matmul(std::vector<Kernel>& kernels) {
  const auto first = std::ranges::find_if(
      kernels, [](const Kernel& kernel) { return kernel.kind != KernelKind::kElementwise; });
  return first != kernels.end() && can_be_cut(*first) ? first : kernels.end();
}

// Returns the rows before and after `first` of `all` parts.
std::pair<Kernel, Kernel> cut(const Kernel& whole, std::int64_t first, std::int64_t all) {
  const std::int64_t border = std::clamp<std::int64_t>(whole.m * first / all, 1, whole.m - 1);
  return {rows_between(whole, 0, border), rows_between(whole, border, whole.m)};
}

// Returns `whole` as computes, of which the first has what comes in and the last what goes out.
std::vector<LayerStep> divided(const LayerStep& whole, std::vector<std::vector<Kernel>> kernels) {
  std::vector<LayerStep> steps(kernels.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    steps[i].kernels = std::move(kernels[i]);
    steps[i].recomputes = whole.recomputes;
    steps[i].weight_gradient = whole.weight_gradient;
    steps[i].workspace = whole.workspace;
  }
  steps.front().kept = whole.kept;
  steps.front().needs_background = whole.needs_background;
  steps.front().needs = whole.needs;
  steps.back().let_go = whole.let_go;
  steps.back().host_waits = whole.host_waits;
  return steps;
}

// Adds a compute step whose gather, scatter, or both (nullptr: none) run beside its first and its
// last matmul but for a piece.
void add_beside(const LayerStep& whole, const LayerStep* gather, const LayerStep* scatter,
                std::int64_t pieces, std::vector<LayerStep>& result) {
  std::vector<Kernel> kernels = whole.kernels;
  std::vector<std::vector<Kernel>> parts;
  if (gather != nullptr) {
    const auto matmul = first_matmul(kernels);
    auto [beside, after] = cut(*matmul, pieces - 1, pieces);
    *matmul = std::move(after);
    parts.emplace_back(kernels.begin(), matmul);
    parts.back().push_back(std::move(beside));
    kernels.erase(kernels.begin(), matmul);
  }
  std::optional<Kernel> last;
  if (scatter != nullptr) {
    auto [before, beside] = cut(kernels.back(), 1, pieces);
    kernels.back() = std::move(before);
    last = std::move(beside);
  }
  parts.push_back(std::move(kernels));
  if (last) parts.push_back({*last});
  std::vector<LayerStep> steps = divided(whole, std::move(parts));
  if (gather != nullptr) result.push_back(collective_part(*gather, 0, 1, Kind::kDetached));
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (scatter != nullptr && i + 1 == steps.size()) {
      result.push_back(all_but_the_last(*scatter, pieces));
    }
    result.push_back(std::move(steps[i]));
  }
  if (scatter != nullptr) {
    result.push_back(collective_part(*scatter, pieces - 1, pieces, Kind::kCollective));
  }
}

}  // namespace

std::vector<LayerStep> overlap_matmuls(std::vector<LayerStep> steps, std::int64_t chunks) {
  assert(chunks >= 1);
  Overlap overlap(chunks);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const bool gathers = is(steps[i], CollectiveOp::kAllGather) && i + 1 < steps.size() &&
                         steps[i + 1].kind == Kind::kCompute;
    const std::size_t compute = gathers ? i + 1 : i;
    if (steps[compute].kind != Kind::kCompute || steps[compute].kernels.empty()) {
      overlap.add(steps[i]);
      continue;
    }
    const bool scatters =
        compute + 1 < steps.size() && is(steps[compute + 1], CollectiveOp::kReduceScatter);
    overlap.add(steps[compute], gathers ? &steps[i] : nullptr,
                scatters ? &steps[compute + 1] : nullptr);
    i = scatters ? compute + 1 : compute;
  }
  return overlap.take();
}

std::vector<LayerStep> exchange_beside_matmuls(std::vector<LayerStep> steps, std::int64_t pieces) {
  assert(pieces >= 2);
  std::vector<LayerStep> result;
  const auto is_compute = [&steps](std::size_t i) {
    return i < steps.size() && steps[i].kind == Kind::kCompute && !steps[i].kernels.empty();
  };
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const bool gathers = is_of_tensor_group(steps[i], CollectiveOp::kAllGather) &&
                         is_compute(i + 1) &&
                         first_matmul(steps[i + 1].kernels) != steps[i + 1].kernels.end();
    const std::size_t compute = gathers ? i + 1 : i;
    // A matmul alone is cut for only one of its two collectives.
    const bool scatters =
        is_compute(compute) && compute + 1 < steps.size() &&
        is_of_tensor_group(steps[compute + 1], CollectiveOp::kReduceScatter) &&
        can_be_cut(steps[compute].kernels.back()) &&
        !(gathers && first_matmul(steps[compute].kernels) + 1 == steps[compute].kernels.end());
    if (!gathers && !scatters) {
      result.push_back(std::move(steps[i]));
      continue;
    }
    add_beside(steps[compute], gathers ? &steps[i] : nullptr,
               scatters ? &steps[compute + 1] : nullptr, pieces, result);
    i = scatters ? compute + 1 : compute;
  }
  return result;
}

}  // namespace stepsim
