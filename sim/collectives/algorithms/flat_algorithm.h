// FlatAlgorithm is the common part of algorithms that treat the members as one row: the position of
// each member in that row, counted from the root if there is one, and the bytes of a part of the
// data.

#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/units.h"
#include "sim/collectives/algorithm.h"

namespace stepsim {

// Chunks of pipelines through rows of members, unless that makes too many.
inline constexpr Bytes kPipelineChunk{64 << 10};

// Returns how many chunks of 64 KiB a pipeline through a row or tree of members uses, at most
// 1,024.
std::uint32_t pipeline_chunks(Bytes bytes);

std::uint32_t rounds_of_doubling(std::uint32_t members);  // ceil(log2 members)

class FlatAlgorithm : public CollectiveAlgorithm {
 public:
  // REQUIRES: order is a permutation of the members, task.root is one of them.
  FlatAlgorithm(const CollectiveTask& task, const std::vector<std::uint32_t>& order);

  std::uint32_t members() const override { return static_cast<std::uint32_t>(order_.size()); }
  std::uint32_t lanes() const override { return 1; }
  std::uint32_t shards() const override { return members(); }
  std::uint32_t shard_of(std::uint32_t member) const override { return position_[member]; }

 protected:
  const CollectiveTask& task() const { return task_; }
  std::uint32_t position_of(std::uint32_t member) const { return position_[member]; }
  std::uint32_t member_at(std::uint32_t position) const { return order_[position]; }

  // Returns the number of places after the root, cyclically.
  std::uint32_t place_of(std::uint32_t member) const;
  std::uint32_t member_after_root(std::uint32_t place) const;
  std::uint32_t position_after_root(std::uint32_t place) const;

  // Returns the bytes of the parts [begin, begin + count) if the data are cut into `parts`,
  // cyclically. REQUIRES: count <= parts.
  Bytes bytes_of_parts(std::uint32_t begin, std::uint32_t count, std::uint32_t parts) const;

 private:
  CollectiveTask task_;
  std::vector<std::uint32_t> order_;
  std::vector<std::uint32_t> position_;
  std::int64_t elements_;
};

// Appends shards [begin, begin + count), cyclically.
void append_parts(std::uint32_t begin, std::uint32_t count, std::uint32_t parts,
                  std::vector<std::uint32_t>& out);

}  // namespace stepsim
