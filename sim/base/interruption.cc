#include "sim/base/interruption.h"

#include <atomic>

namespace stepsim {
namespace {

// Loops run far below those who know of signals, so it is the process's.
std::atomic<void (*)()> stop_check = nullptr;

}  // namespace

void set_stop_check(void (*check)()) {
  stop_check = check;
}

void stop_if_asked() {
  if (void (*const check)() = stop_check) check();
}

}  // namespace stepsim
