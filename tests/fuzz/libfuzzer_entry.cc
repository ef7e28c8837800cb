// The entry that libFuzzer calls. STEPSIM_FUZZ_TARGET names the target.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/fuzz_targets.h"

namespace {

const stepsim::FuzzTarget* chosen() {
  const char* const name = std::getenv("STEPSIM_FUZZ_TARGET");
  const stepsim::FuzzTarget* const target = stepsim::fuzz_target(name == nullptr ? "" : name);
  if (target == nullptr) {
    std::fputs("STEPSIM_FUZZ_TARGET must be one of:\n", stderr);
    for (const stepsim::FuzzTarget& each : stepsim::fuzz_targets()) {
      std::fprintf(stderr, "  %s\n", each.name.data());
    }
    std::exit(2);
  }
  return target;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const stepsim::FuzzTarget* const target = chosen();
  stepsim::is_accepted(*target, {reinterpret_cast<const char*>(data), size});
  return 0;
}
