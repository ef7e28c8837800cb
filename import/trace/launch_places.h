// LaunchPlaces tells the layer and the direction of what a program launched, by what its threads
// were in at that time, as PyTorch's profiler writes it:
//
// - Modules: `nn.Module: TransformerBlock_3` (with_stack or with_modules). A class that ends in
//   "Layer" or "Block" is a layer, the outermost where they are nested; its number is the layer's.
// - Ops of autograd: those with a `Fwd thread id` are of the backward, other ops with a `Sequence
//   number` of the forward. A backward op has the layer in which the forward op with its sequence
//   number stood.
//
// What the trace doesn't say is not guessed: without modules no layer is known.
// Cost: O(windows x log).

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "import/trace/device_trace.h"

namespace stepsim {

struct LaunchPlace {
  std::optional<std::int32_t> layer{};
  SliceDirection direction = SliceDirection::kUnknown;
};

// Returns the number of a module that is a layer: 3 for "nn.Module: TransformerBlock_3".
std::optional<std::int32_t> layer_of_module(std::string_view name);

class LaunchPlaces {
 public:
  // Numbers the threads of a file.
  std::uint32_t thread(const std::string& name);

  void add_layer(std::uint32_t thread, std::int64_t start, std::int64_t end, std::int32_t layer);
  void add_op(std::uint32_t thread, std::int64_t start, std::int64_t end, std::int64_t sequence,
              bool is_backward);
  void prepare();  // after the last of them
  LaunchPlace at(std::uint32_t thread, std::int64_t time) const;

 private:
  struct Stretch {
    std::int64_t start = 0;
    std::int64_t end = 0;
    std::int64_t number = 0;  // layer, or sequence number
    bool is_backward = false;
  };
  struct Thread {
    std::vector<Stretch> layers;
    std::vector<Stretch> ops;
  };
  static void keep_outermost(std::vector<Stretch>& stretches);
  static const Stretch* at(const std::vector<Stretch>& stretches, std::int64_t time);

  std::map<std::string, std::uint32_t> numbers_;
  std::vector<Thread> threads_;
  std::unordered_map<std::int64_t, std::int32_t> layer_of_;  // by sequence number
};

}  // namespace stepsim
