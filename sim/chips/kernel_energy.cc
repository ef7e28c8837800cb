#include "sim/chips/kernel_energy.h"

namespace stepsim {
namespace {

// Returns the share of the peak that large kernels of this one's class reach at the full clock.
double busy_share_of(const Kernel& kernel, const ChipSpec& chip) {
  const Efficiency& efficiency = chip.efficiency;
  if (kernel.kind == KernelKind::kAttentionForward) return efficiency.attention_forward_fraction;
  if (kernel.kind == KernelKind::kAttentionBackward) return efficiency.attention_backward_fraction;
  return busy_share(efficiency.matmul_for(kernel.type, kernel.stored), kernel.type,
                    chip.peak_of(kernel.type).value());
}

}  // namespace

double joules_of_flop(const PowerLimit& power, DataType type) {
  constexpr double kHalfPrecision = 16;  // bits
  const double narrower = static_cast<double>(bits_of(type)) / kHalfPrecision;
  return power.joules_per_teraflop * 1e-12 * narrower;
}

double joules_of(const Kernel& kernel, const ChipSpec& chip) {
  if (!chip.power) return 0;
  const bool is_fp32 = kernel.kind == KernelKind::kElementwise;
  const DataType type = is_fp32 ? DataType::kFp32 : kernel.type;
  const double clock = is_fp32 ? 1 : sustained_clock(chip, type, busy_share_of(kernel, chip));
  return kernel.flops.value() * joules_of_flop(*chip.power, type) * clock * clock;
}

}  // namespace stepsim
