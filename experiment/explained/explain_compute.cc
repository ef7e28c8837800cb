// Compute: FLOPs over peak, and what keeps kernels from the peak. All causes but the last are sums
// over the kernels of the graph. The last is the remainder that the run measured.

#include <fmt/format.h>

#include <algorithm>

#include "experiment/explained/explain_parts.h"
#include "sim/base/quantity_text.h"

namespace stepsim {
namespace {

struct Buckets {
  double flops = 0;  // seconds at the peak
  double matmul = 0;
  double attention = 0;
  double memory = 0;
  double launches = 0;
  double recompute = 0;
  double optimizer = 0;
  double all() const {
    return flops + matmul + attention + memory + launches + recompute + optimizer;
  }
};

void add_kernel(const Kernel& kernel, const ChipSpec& chip, double peak, double share,
                Buckets& buckets) {
  const KernelTime time = time_of(kernel, chip);
  const double ideal = kernel.flops.value() / peak;
  const double overhead = to_seconds(time.overhead);
  const double busy = to_seconds(time.total) - overhead;
  buckets.flops += share * ideal;
  buckets.launches += share * overhead;
  const bool attention =
      kernel.kind == KernelKind::kAttentionForward || kernel.kind == KernelKind::kAttentionBackward;
  double& rest = time.memory_bound() || kernel.kind == KernelKind::kElementwise ? buckets.memory
                 : attention                                                    ? buckets.attention
                                                                                : buckets.matmul;
  rest += share * (busy - ideal);
}

Buckets buckets_of(const FinishedRun& run, const std::vector<ExplainedRole>& roles) {
  const double peak = run.metrics.peak_per_chip.value();
  Buckets buckets;
  for (const ExplainedRole& role : roles) {
    for (const Op& op : run.graph.programs[role.program].ops) {
      if (op.kind != OpKind::kCompute) continue;
      const ComputeWork& work = run.graph.compute_works[op.work];
      const std::string& label = run.graph.path_labels[work.path_label];
      Buckets own;
      for (const Kernel& kernel : work.kernels) {
        add_kernel(kernel, run.cluster.chip, peak, role.share, own);
      }
      if (label == "recompute") {
        buckets.recompute += own.all();
      } else if (label == "optimizer") {
        buckets.optimizer += own.all();
      } else {
        buckets.flops += own.flops;
        buckets.matmul += own.matmul;
        buckets.attention += own.attention;
        buckets.memory += own.memory;
        buckets.launches += own.launches;
      }
    }
  }
  return buckets;
}

}  // namespace

double ideal_compute(const FinishedRun& run) {
  return run.metrics.model_flops /
         (static_cast<double>(run.metrics.chips) * run.metrics.peak_per_chip.value());
}

ExplainedPart explain_compute(const FinishedRun& run, const std::vector<ExplainedRole>& roles) {
  const double ideal = ideal_compute(run);
  ExplainedPart part{.name = "compute",
                     .formula = "D6",
                     .text = fmt::format("model FLOPs / (chips x peak) = {:.4g} / ({} x {})",
                                         run.metrics.model_flops, run.metrics.chips,
                                         to_text(run.metrics.peak_per_chip)),
                     .predicted = ideal,
                     .simulated = to_seconds(run.result.breakdown.compute),
                     .causes = {}};
  const Buckets buckets = buckets_of(run, roles);
  const auto add = [&](const char* text, double amount) {
    add_cause(part.causes, text, amount, part.simulated);
  };
  add("matmuls below the peak (shape, tiles, clocks)", buckets.matmul);
  add("attention kernels below the peak", buckets.attention);
  add("kernels bound by memory (norms, activations, small matmuls)", buckets.memory);
  add("launches", buckets.launches);
  add("recompute", buckets.recompute);
  add("optimizer", buckets.optimizer);
  add("FLOPs beyond the model's (fused backward of attention, elementwise kernels, padding)",
      buckets.flops - ideal);
  add("slowed by concurrent communication and by stragglers", part.simulated - buckets.all());
  return part;
}

}  // namespace stepsim
