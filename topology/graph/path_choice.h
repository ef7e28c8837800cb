// PathChoice says which of several equal paths a message takes.
//
//   kDestination  destination modulo k: all messages to one chip take one path down, so static
//                 permutations meet little, and nothing depends on the sender or the flow key
//   kEcmp         a hash of (seed, source, destination, flow key): what switches do with
//                 five-tuples. Flows of one pair with different keys spread; a network model that
//                 gives every packet its own key sprays packets
//   kAdaptive     each switch sends each packet out of the least loaded of the ports that lead to
//                 its destination on a shortest path (InfiniBand: the ports of an AR group;
//                 Spectrum-X). A route names the path by destination and stands for all of them:
//                 the builder makes groups of the links that packets are spread over (fabric.h)

#pragma once

#include <cstdint>

namespace stepsim {

enum class PathRule : std::uint8_t { kDestination, kEcmp, kAdaptive };

struct PathChoice {
  PathRule rule = PathRule::kDestination;
  std::uint64_t seed = 0;  // kEcmp only
};

// Flow is a message as the routers of a fabric see it. Endpoints are numbers.
struct Flow {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint64_t key = 0;
};

// The finalizer of splitmix64: every bit of the input changes half of the output bits.
constexpr std::uint64_t mixed(std::uint64_t bits) {
  bits += 0x9E3779B97F4A7C15U;
  bits = (bits ^ (bits >> 30U)) * 0xBF58476D1CE4E5B9U;
  bits = (bits ^ (bits >> 27U)) * 0x94D049BB133111EBU;
  return bits ^ (bits >> 31U);
}

constexpr std::uint64_t hash_of(std::uint64_t seed, const Flow& flow) {
  const std::uint64_t ends = (std::uint64_t{flow.from} << 32U) | flow.to;
  return mixed(mixed(mixed(seed) ^ ends) ^ flow.key);
}

// Returns one of `paths` paths. `number` stands for the destination. Each stage of a route must
// pass other digits of it (number / paths of the stage before) and its own `stage`.
constexpr std::uint32_t choose(const PathChoice& choice, const Flow& flow, std::uint32_t number,
                               std::uint32_t stage, std::uint32_t paths) {
  if (choice.rule != PathRule::kEcmp) return number % paths;
  return static_cast<std::uint32_t>(hash_of(choice.seed + stage, flow) % paths);
}

}  // namespace stepsim
