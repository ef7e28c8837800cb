#include "schedules/lowering/collective_matmul.h"

#include <algorithm>
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

// Returns part `i` of `parts` of a matmul [m,k] @ [k,n], cut by rows. Input and output shrink with
// m; the weights do not.
Kernel rows(const Kernel& whole, std::int64_t i, std::int64_t parts) {
  Kernel kernel = whole;
  kernel.m = part(whole.m, i, parts);
  const double share = static_cast<double>(kernel.m) / static_cast<double>(whole.m);
  const std::int64_t input = whole.read.value() / (whole.m + whole.n) * whole.m;
  kernel.flops = share * whole.flops;
  kernel.read = Bytes(whole.read.value() - input + part(input, i, parts));
  kernel.written = Bytes(part(whole.written.value(), i, parts));
  return kernel;
}

LayerStep collective_part(const LayerStep& whole, std::int64_t i, std::int64_t parts, Kind kind) {
  LayerStep step = whole;
  const std::int64_t element = size_of(whole.type).value();
  step.bytes = Bytes(part(whole.bytes.value() / element, i, parts) * element);
  step.kind = kind;
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

}  // namespace

std::vector<LayerStep> overlap_matmuls(std::vector<LayerStep> steps, std::int64_t chunks) {
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

}  // namespace stepsim
