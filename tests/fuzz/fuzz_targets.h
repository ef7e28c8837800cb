// Fuzz targets: the readers of what strangers write. Each takes any bytes. It may refuse them with
// a ConfigError, or a std::range_error where a time or a size is past its range, and must do
// nothing else: no crash, no hang, no other exception, no gigabytes.
//
//   cmake --preset fuzz && cmake --build --preset fuzz
//   STEPSIM_FUZZ_TARGET=network_case build/fuzz/tests/stepsim_fuzz tests/fuzz/corpus/network_case
//
// scripts/fuzz.sh runs them all. An input that broke something stays in corpus/ for good:
// corpus_test.cc gives each to its target in every run of the tests.

#pragma once

#include <span>
#include <string_view>

namespace stepsim {

struct FuzzTarget {
  std::string_view name;  // also that of its folder in tests/fuzz/corpus
  void (*read)(std::string_view input);
};

std::span<const FuzzTarget> fuzz_targets();
const FuzzTarget* fuzz_target(std::string_view name);  // nullptr: there is none

// Runs the target. Returns false if it refused the input. Other exceptions pass through.
bool is_accepted(const FuzzTarget& target, std::string_view input);

}  // namespace stepsim
