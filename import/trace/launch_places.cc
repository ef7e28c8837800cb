#include "import/trace/launch_places.h"

#include <algorithm>
#include <tuple>

#include "sim/base/field_text.h"

namespace stepsim {

std::optional<std::int32_t> layer_of_module(std::string_view name) {
  constexpr std::string_view kModule = "nn.Module: ";
  constexpr std::int32_t kMostLayers = 1 << 20;
  if (!name.starts_with(kModule)) return std::nullopt;
  const std::size_t last = name.rfind('_');
  if (last == std::string_view::npos) return std::nullopt;
  const std::string_view type = name.substr(kModule.size(), last - kModule.size());
  if (!type.ends_with("Layer") && !type.ends_with("Block")) return std::nullopt;
  const auto number = number_in<std::int32_t>(name.substr(last + 1));
  if (!number || *number < 0 || *number > kMostLayers) return std::nullopt;
  return number;
}

std::uint32_t LaunchPlaces::thread(const std::string& name) {
  const auto [found, is_new] =
      numbers_.try_emplace(name, static_cast<std::uint32_t>(numbers_.size()));
  if (is_new) threads_.emplace_back();
  return found->second;
}

void LaunchPlaces::add_layer(std::uint32_t thread, std::int64_t start, std::int64_t end,
                             std::int32_t layer) {
  threads_[thread].layers.push_back({.start = start, .end = end, .number = layer});
}

void LaunchPlaces::add_op(std::uint32_t thread, std::int64_t start, std::int64_t end,
                          std::int64_t sequence, bool is_backward) {
  threads_[thread].ops.push_back(
      {.start = start, .end = end, .number = sequence, .is_backward = is_backward});
}

void LaunchPlaces::keep_outermost(std::vector<Stretch>& stretches) {
  std::ranges::stable_sort(stretches, [](const Stretch& a, const Stretch& b) {
    return std::tuple(a.start, -a.end) < std::tuple(b.start, -b.end);
  });
  std::size_t kept = 0;
  for (const Stretch& one : stretches) {
    if (kept > 0 && one.start < stretches[kept - 1].end) continue;
    stretches[kept++] = one;
  }
  stretches.resize(kept);
}

const LaunchPlaces::Stretch* LaunchPlaces::at(const std::vector<Stretch>& stretches,
                                              std::int64_t time) {
  const auto behind = std::ranges::upper_bound(stretches, time, {}, &Stretch::start);
  if (behind == stretches.begin()) return nullptr;
  const Stretch& last = *(behind - 1);
  return time < last.end ? &last : nullptr;
}

void LaunchPlaces::prepare() {
  for (Thread& thread : threads_) keep_outermost(thread.layers);
  for (Thread& thread : threads_) {
    // All of them, as the op that has the sequence number of a backward may stand inside another.
    for (const Stretch& op : thread.ops) {
      if (op.is_backward) continue;
      if (const Stretch* const layer = at(thread.layers, op.start)) {
        layer_of_.try_emplace(op.number, static_cast<std::int32_t>(layer->number));
      }
    }
    keep_outermost(thread.ops);
  }
}

LaunchPlace LaunchPlaces::at(std::uint32_t thread, std::int64_t time) const {
  LaunchPlace place;
  const Stretch* const op = at(threads_[thread].ops, time);
  const Stretch* const layer = at(threads_[thread].layers, time);
  if (op != nullptr && op->is_backward) {
    place.direction = SliceDirection::kBackward;
    const auto found = layer_of_.find(op->number);
    if (found != layer_of_.end()) place.layer = found->second;
  } else if (op != nullptr || layer != nullptr) {
    place.direction = SliceDirection::kForward;
  }
  if (layer != nullptr) place.layer = static_cast<std::int32_t>(layer->number);
  return place;
}

}  // namespace stepsim
