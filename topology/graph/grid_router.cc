#include "topology/graph/grid_router.h"

#include <utility>

namespace stepsim {

std::uint32_t next_place(std::uint32_t place, std::uint32_t size, std::uint32_t stride) {
  const bool is_last = place / stride % size + 1 == size;
  return is_last ? place - (size - 1) * stride : place + stride;
}

GridRouter::GridRouter(const std::vector<GridAxis>& axes, std::vector<GridCable> cables,
                       std::vector<std::uint32_t> place)
    : cables_(std::move(cables)), place_(std::move(place)) {
  std::uint32_t stride = 1;
  for (const GridAxis& axis : axes) {
    axes_.push_back({.size = axis.size, .stride = stride, .wraps = axis.wraps});
    stride *= axis.size;
  }
}

void GridRouter::route(NodeId from, NodeId to, std::uint64_t /*flow_key*/,
                       std::vector<LinkId>& out) const {
  std::uint32_t place = place_.empty() ? from.index() : place_[from.index()];
  const std::uint32_t end = place_.empty() ? to.index() : place_[to.index()];
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    const Axis& axis = axes_[a];
    const std::uint32_t here = place / axis.stride % axis.size;
    const std::uint32_t there = end / axis.stride % axis.size;
    const std::uint32_t ahead = there >= here ? there - here : axis.size - here + there;
    const bool plus = axis.wraps ? ahead <= axis.size - ahead : there >= here;
    if (plus) {
      for (std::uint32_t hop = 0; hop < ahead; ++hop) {
        out.push_back(cables_[place * axes_.size() + a].plus);
        place = next_place(place, axis.size, axis.stride);
      }
    } else {
      for (std::uint32_t hop = 0; hop < axis.size - ahead; ++hop) {
        const bool is_first = place / axis.stride % axis.size == 0;
        place = is_first ? place + (axis.size - 1) * axis.stride : place - axis.stride;
        out.push_back(cables_[place * axes_.size() + a].minus);
      }
    }
  }
}

}  // namespace stepsim
