#include "sim/collectives/algorithms/flat_algorithm.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace stepsim {

std::uint32_t pipeline_chunks(Bytes bytes) {
  constexpr std::int64_t kMost = 1024;
  const std::int64_t chunks = (bytes.value() + kPipelineChunk.value() - 1) / kPipelineChunk.value();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(chunks, 1, kMost));
}

std::uint32_t rounds_of_doubling(std::uint32_t members) {
  return static_cast<std::uint32_t>(std::bit_width(members - 1));
}

FlatAlgorithm::FlatAlgorithm(const CollectiveTask& task, const std::vector<std::uint32_t>& order)
    : task_(task),
      order_(order),
      position_(order.size()),
      elements_(task.bytes.value() / task.element.value()) {
  assert(task.bytes.value() % task.element.value() == 0);
  assert(task.root < order.size());
  for (std::uint32_t position = 0; position < order_.size(); ++position) {
    position_[order_[position]] = position;
  }
}

std::uint32_t FlatAlgorithm::place_of(std::uint32_t member) const {
  return (position_[member] + members() - position_[task_.root]) % members();
}

std::uint32_t FlatAlgorithm::position_after_root(std::uint32_t place) const {
  return (place + position_[task_.root]) % members();
}

std::uint32_t FlatAlgorithm::member_after_root(std::uint32_t place) const {
  return order_[position_after_root(place)];
}

Bytes FlatAlgorithm::bytes_of_parts(std::uint32_t begin, std::uint32_t count,
                                    std::uint32_t parts) const {
  const auto below = [&](std::uint32_t part) { return std::int64_t{part} * elements_ / parts; };
  const std::uint32_t end = begin + count;
  const std::int64_t elements =
      end <= parts ? below(end) - below(begin) : elements_ - below(begin) + below(end - parts);
  return Bytes(elements * task_.element.value());
}

void append_parts(std::uint32_t begin, std::uint32_t count, std::uint32_t parts,
                  std::vector<std::uint32_t>& out) {
  for (std::uint32_t i = 0; i < count; ++i) out.push_back((begin + i) % parts);
}

}  // namespace stepsim
