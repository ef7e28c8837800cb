#include "schedules/pipeline/search/order_search.h"
#include "schedules/pipeline/search/search_state.h"

namespace stepsim {

SearchProblem::SearchProblem(const OrderSearchRequest& request)
    : ranks(request.shape.stages),
      chunks(request.shape.chunks),
      microbatches(request.shape.microbatches),
      memory_limit(request.memory_limit),
      send(request.costs.at(0).send),
      deadlines(request.deadlines) {
  const PipelineSchedule shape =
      schedule_by_rank(request.shape, [](std::int32_t) { return RankOrder(); });
  const std::int32_t stages = stage_count(shape);
  for (std::int32_t stage = 0; stage < stages; ++stage) {
    rank_at.push_back(rank_of(shape, 0, stage));
    chunk_at.push_back(chunk_of(shape, 0, stage));
    const bool stays = stage > 0 && rank_at.back() == rank_at[static_cast<std::size_t>(stage - 1)];
    is_local.push_back(stays ? 1 : 0);
    forward_time.push_back(request.costs.at(stage).forward);
    input_time.push_back(request.costs.at(stage).backward_input);
  }
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    for (std::int32_t chunk = 0; chunk < chunks; ++chunk) {
      stage_of_.push_back(static_cast<std::size_t>(stepsim::stage_of(shape, rank, chunk)));
    }
    weight_time.push_back(request.costs.at(rank).backward_weight);
    first_start.push_back(rank == 0 ? 0
                                    : first_start.back() +
                                          forward_time[static_cast<std::size_t>(rank - 1)] + send);
  }
  const auto last = static_cast<std::size_t>(stages - 1);
  way_to_end.assign(last + 1, input_time[last]);
  std::vector<std::int64_t> back(last + 1, 0);  // time from B on the last stage to B on this one
  for (std::size_t stage = last; stage-- > 0;) {
    const std::int64_t hop = is_local[stage + 1] != 0 ? 0 : send;
    way_to_end[stage] = way_to_end[stage + 1] + hop + forward_time[stage + 1];
    back[stage] = back[stage + 1] + hop + input_time[stage];
  }
  way_back.assign(back.begin(), back.begin() + ranks);
}

std::int64_t SearchProblem::time_of_move(std::int32_t rank, std::int32_t move) const {
  if (is_weight(move)) return weight_time[static_cast<std::size_t>(rank)];
  const std::size_t stage = stage_of(rank, chunk_of_move(move));
  return is_forward(move) ? forward_time[stage] : input_time[stage];
}

std::int64_t SearchProblem::ops() const {
  return std::int64_t{3} * ranks * chunks * microbatches;
}

std::size_t SearchProblem::counts_size() const {
  return static_cast<std::size_t>(ranks * (2 * chunks + 2));
}

}  // namespace stepsim
