#include "sim/collectives/algorithms/trees/chain.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "sim/collectives/algorithms/flat_algorithm.h"
#include "sim/collectives/parts.h"

namespace stepsim {

Chain::Chain(const CollectiveTask& task, std::vector<std::vector<std::uint32_t>> rows)
    : task_(task), n_(static_cast<std::uint32_t>(rows.front().size())) {
  assert(task.op == CollectiveOp::kBroadcast || task.op == CollectiveOp::kReduce);
  for (std::vector<std::uint32_t>& members : rows) {
    assert(members.front() == task.root && members.size() == n_);
    Row row{.members = std::move(members), .place = std::vector<std::uint32_t>(n_)};
    for (std::uint32_t place = 0; place < n_; ++place) row.place[row.members[place]] = place;
    rows_.push_back(std::move(row));
  }
  const Bytes share = task.bytes / std::int64_t{lanes()};
  chunks_ = pipeline_chunks(share);
  chunk_ = std::max(share / std::int64_t{chunks_}, std::min(share, kPipelineChunk));
  if (task.in_one_piece) chunks_ = 1;
}

std::uint32_t Chain::hops_before(std::uint32_t lane, std::uint32_t member) const {
  const std::uint32_t place = rows_[lane].place[member];
  return reduces() ? n_ - 1 - place : place;
}

Bytes Chain::bytes_of(std::uint32_t lane, std::uint32_t chunk) const {
  const std::int64_t elements = task_.bytes.value() / task_.element.value();
  return Bytes(part(elements, lane * chunks_ + chunk, shards()) * task_.element.value());
}

std::pair<std::uint32_t, std::uint32_t> Chain::sending_rounds(std::uint32_t lane,
                                                              std::uint32_t member) const {
  const std::uint32_t hops = hops_before(lane, member);
  if (hops == n_ - 1) return {0, 0};
  return {hops, hops + chunks_};
}

std::optional<CollectiveMessage> Chain::message(std::uint32_t lane, std::uint32_t round,
                                                std::uint32_t member) const {
  const auto [first, last] = sending_rounds(lane, member);
  if (round < first || round >= last) return std::nullopt;
  const Row& row = rows_[lane];
  const std::uint32_t place = row.place[member];
  return CollectiveMessage{.to = row.members[reduces() ? place - 1 : place + 1],
                           .bytes = bytes_of(lane, round - first),
                           .reduce = reduces()};
}

std::uint32_t Chain::receives(std::uint32_t lane, std::uint32_t round, std::uint32_t member) const {
  const std::uint32_t hops = hops_before(lane, member);
  return hops > 0 && round + 1 >= hops && round + 1 - hops < chunks_ ? 1 : 0;
}

void Chain::blocks(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
                   std::vector<std::uint32_t>& out) const {
  out.push_back(lane * chunks_ + round - hops_before(lane, member));
}

}  // namespace stepsim
