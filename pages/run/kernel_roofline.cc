#include "pages/run/kernel_roofline.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "pages/run/run_drawings.h"
#include "sim/chips/chip_spec.h"

namespace stepsim {
namespace {

constexpr std::size_t kMostKernels = 200;

struct DrawnKernel {
  const Kernel* kernel = nullptr;
  KernelTime time;
  double count = 0;  // in a step, on a mean rank
  double seconds() const { return count * to_seconds(time.total); }
};

// How often a mean rank runs each ComputeWork in a step.
std::vector<double> runs_of_works(const OpGraph& graph) {
  std::vector<double> share_of_program(graph.programs.size(), 0);
  for (const RankData& rank : graph.ranks) {
    share_of_program[rank.program.index()] += 1 / static_cast<double>(graph.ranks.size());
  }
  std::vector<double> runs(graph.compute_works.size(), 0);
  for (std::size_t i = 0; i < graph.programs.size(); ++i) {
    for (const Op& op : graph.programs[i].ops) {
      if (op.kind == OpKind::kCompute) runs[op.work] += share_of_program[i];
    }
  }
  return runs;
}

}  // namespace

Json kernel_roofline(const FinishedRun& run) {
  const ChipSpec& chip = run.cluster.chip;
  const std::vector<double> runs = runs_of_works(run.graph);
  std::map<std::tuple<std::string_view, DataType, double, std::int64_t>, DrawnKernel> kernels;
  for (std::size_t work = 0; work < runs.size(); ++work) {
    for (const Kernel& kernel : run.graph.compute_works[work].kernels) {
      const Bytes bytes = kernel.read + kernel.written;
      DrawnKernel& drawn = kernels[{kernel.name, kernel.type, kernel.flops.value(), bytes.value()}];
      if (drawn.kernel == nullptr) {
        drawn.kernel = &kernel;
        drawn.time = time_of(kernel, chip);
        if (kernel.recorded) drawn.time.total = *kernel.recorded;
      }
      drawn.count += runs[work];
    }
  }
  std::vector<DrawnKernel> all;
  double sum = 0;
  for (const auto& [key, kernel] : kernels) {
    all.push_back(kernel);
    sum += kernel.seconds();
  }
  std::ranges::stable_sort(
      all, [](const DrawnKernel& a, const DrawnKernel& b) { return a.seconds() > b.seconds(); });
  const auto share_of = [sum](double seconds) { return sum > 0 ? seconds / sum : 0; };
  Json roofline = Json::object();
  roofline["chip"] = chip.name;
  roofline["memory_bandwidth_bytes_per_s"] = chip.memory_bandwidth.value();
  roofline["kernels"] = Json::array();
  std::set<DataType> types;
  double left_out = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i >= kMostKernels) {
      left_out += all[i].seconds();
      continue;
    }
    const Kernel& kernel = *all[i].kernel;
    Json one = Json::object();
    one["name"] = std::string(kernel.name);
    one["type"] = std::string(name_of(kernel.type));
    one["flops"] = kernel.flops.value();
    one["bytes"] = (kernel.read + kernel.written).value();
    one["time_s"] = to_seconds(all[i].time.total);
    one["count"] = rounded(all[i].count);
    one["share"] = rounded(share_of(all[i].seconds()));
    const bool is_elementwise = kernel.kind == KernelKind::kElementwise;
    one["bound"] = all[i].time.memory_bound() ? "memory"
                   : is_elementwise           ? "vector units"
                                              : "compute";
    roofline["kernels"].push_back(std::move(one));
    if (kernel.flops.value() > 0) types.insert(kernel.type);
  }
  roofline["peaks"] = Json::array();
  for (const DataType type : types) {
    if (chip.peak_of(type).value() <= 0) continue;
    Json peak = Json::object();
    peak["type"] = std::string(name_of(type));
    peak["flops_per_s"] = chip.peak_of(type).value();
    roofline["peaks"].push_back(std::move(peak));
  }
  roofline["left_out"] = all.size() - std::min(all.size(), kMostKernels);
  roofline["left_out_share"] = rounded(share_of(left_out));
  return roofline;
}

}  // namespace stepsim
