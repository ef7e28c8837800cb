// Quotient says which ranks, groups, links and hosts of a job look alike (docs/folding.md): one of
// each class is simulated and stands for all. The representative is always the lowest number of its
// class, and classes are numbered in the order of their representatives.

#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sim/base/ids.h"

namespace stepsim {

template <typename IdType>
struct Classes {
  std::vector<std::uint32_t> class_of;  // by number
  std::vector<IdType> representatives;  // by class
  std::vector<std::uint32_t> sizes;     // by class

  std::size_t size() const { return sizes.size(); }
};

// `colours`: any numbers. Equal ones are one class.
template <typename IdType>
Classes<IdType> classes_of(const std::vector<std::uint32_t>& colours) {
  Classes<IdType> classes;
  classes.class_of.reserve(colours.size());
  std::unordered_map<std::uint32_t, std::uint32_t> numbers;  // looked up, never iterated
  for (std::uint32_t i = 0; i < colours.size(); ++i) {
    const auto next = static_cast<std::uint32_t>(classes.sizes.size());
    const auto [place, is_new] = numbers.try_emplace(colours[i], next);
    if (is_new) {
      classes.representatives.emplace_back(i);
      classes.sizes.push_back(0);
    }
    classes.class_of.push_back(place->second);
    ++classes.sizes[place->second];
  }
  return classes;
}

struct Quotient {
  Classes<RankId> ranks;
  std::vector<Classes<GroupId>> groups;  // by communicator
  Classes<LinkId> links;                 // links, then groups of links (Fabric::link_id)
  Classes<HostId> hosts;                 // none in clusters without hosts
};

}  // namespace stepsim
