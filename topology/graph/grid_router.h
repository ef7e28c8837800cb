// GridRouter routes in dimension order over a torus or mesh: all of the first axis, then the next
// one. On a wrapped axis it goes the shorter way round, and towards higher coordinates if both ways
// are equally long. A pair has one route, so the flow key changes nothing.

#pragma once

#include <cstdint>
#include <vector>

#include "sim/network/router.h"

namespace stepsim {

struct GridAxis {
  std::uint32_t size = 1;
  bool wraps = false;
};

// The two directions of the cable from a place to the next one on an axis.
struct GridCable {
  LinkId plus;
  LinkId minus;
};

// Places are numbers in the box of axes, the first axis fastest.
class GridRouter : public Router {
 public:
  // `cables`: indexed [place * axes + axis]. Those of places without a next one are never read.
  // `place`: by chip, whose number is its NodeId; empty: chip c has place c.
  GridRouter(const std::vector<GridAxis>& axes, std::vector<GridCable> cables,
             std::vector<std::uint32_t> place = {});

  void route(NodeId from, NodeId to, std::uint64_t flow_key,
             std::vector<LinkId>& out) const override;

 private:
  struct Axis {
    std::uint32_t size = 1;
    std::uint32_t stride = 1;  // places of neighbours on this axis differ by this
    bool wraps = false;
  };

  std::vector<Axis> axes_;
  std::vector<GridCable> cables_;
  std::vector<std::uint32_t> place_;
};

// Returns the next place on an axis of `size` places, which differ by `stride`; round the ring at
// its end.
std::uint32_t next_place(std::uint32_t place, std::uint32_t size, std::uint32_t stride);

}  // namespace stepsim
