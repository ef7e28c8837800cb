// Interner gives equal lists of numbers the same number: 0, 1, 2, ... in the order in which they
// come. Lists are compared in full.

#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace stepsim {

class Interner {
 public:
  std::uint32_t number_of(const std::vector<std::uint64_t>& list) {
    return numbers_.try_emplace(list, static_cast<std::uint32_t>(numbers_.size())).first->second;
  }

 private:
  struct Hash {
    std::size_t operator()(const std::vector<std::uint64_t>& list) const {
      std::uint64_t hash = list.size();
      for (const std::uint64_t value : list) {
        hash = (hash ^ value) * 0x9e3779b97f4a7c15U;
        hash ^= hash >> 29;
      }
      return hash;
    }
  };
  std::unordered_map<std::vector<std::uint64_t>, std::uint32_t, Hash> numbers_;  // never iterated
};

}  // namespace stepsim
