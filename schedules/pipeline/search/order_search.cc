#include "schedules/pipeline/search/order_search.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <limits>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "schedules/pipeline/search/search_state.h"

namespace stepsim {
namespace {

constexpr std::size_t kMostNodes = std::numeric_limits<std::uint32_t>::max();

// Node is an op at the end of an order. Node 0 stands for the start, in which nothing has run, and
// is its own parent.
struct Node {
  std::uint32_t parent = 0;
  std::int16_t rank = 0;
  std::int16_t move = 0;
};

// SearchLayer holds the states after equally many ops, stored flat: words of `counts`, equal for
// states that have run the same ops, and words of `times`.
class SearchLayer {
 public:
  struct Entry {
    std::uint32_t node = 0;
    std::size_t counts = 0;
    std::size_t times = 0;
    std::uint32_t time_count = 0;
    std::optional<std::uint32_t> next{};  // with the same counts
    bool is_alive = true;
    StateScore score{};
  };

  explicit SearchLayer(std::size_t counts_size) : counts_size_(counts_size) {}

  void clear() {
    entries_.clear();
    counts_.clear();
    times_.clear();
    first_.clear();
    alive_ = 0;
  }

  // Returns false if a state with the same counts is as early in every time. Removes the states
  // that this one matches or beats in every time.
  bool insert(const PackedState& state, const StateScore& score, std::uint32_t node) {
    const std::uint64_t hash = hash_of(state.counts);
    const auto [place, is_new] = first_.try_emplace(hash);
    for (std::optional<std::uint32_t> at = place->second; at; at = entries_[*at].next) {
      Entry& other = entries_[*at];
      if (!other.is_alive || !has_counts(other, state.counts)) continue;
      const std::int64_t* theirs = times_.data() + other.times;
      bool is_no_later = true;
      bool is_no_earlier = true;
      for (std::size_t i = 0; i < state.times.size(); ++i) {
        is_no_later = is_no_later && theirs[i] <= state.times[i];
        is_no_earlier = is_no_earlier && theirs[i] >= state.times[i];
        if (!is_no_later && !is_no_earlier) break;
      }
      if (is_no_later) return false;
      if (is_no_earlier) {
        other.is_alive = false;
        --alive_;
      }
    }
    entries_.push_back({.node = node,
                        .counts = counts_.size(),
                        .times = times_.size(),
                        .time_count = static_cast<std::uint32_t>(state.times.size()),
                        .next = place->second,
                        .score = score});
    place->second = static_cast<std::uint32_t>(entries_.size() - 1);
    counts_.insert(counts_.end(), state.counts.begin(), state.counts.end());
    times_.insert(times_.end(), state.times.begin(), state.times.end());
    ++alive_;
    return true;
  }

  // Returns the `width` states with the least known idle time of all ranks together. Ties go by
  // score, then by order of creation.
  std::vector<std::uint32_t> best(std::int64_t width, bool& left_out) const {
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i].is_alive) order.push_back(i);
    }
    if (static_cast<std::int64_t>(order.size()) <= width) return order;
    left_out = true;
    const auto middle = order.begin() + width;
    std::nth_element(order.begin(), middle, order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::tuple(entries_[a].score.sum, entries_[a].score, a) <
             std::tuple(entries_[b].score.sum, entries_[b].score, b);
    });
    order.erase(middle, order.end());
    std::sort(order.begin(), order.end());
    return order;
  }

  const Entry& entry(std::uint32_t index) const { return entries_[index]; }
  std::span<const std::int32_t> counts(const Entry& entry) const {
    return {counts_.data() + entry.counts, counts_size_};
  }
  std::span<const std::int64_t> times(const Entry& entry) const {
    return {times_.data() + entry.times, entry.time_count};
  }
  std::size_t size() const { return entries_.size(); }

 private:
  static std::uint64_t hash_of(const std::vector<std::int32_t>& counts) {
    std::uint64_t hash = 0x9e3779b97f4a7c15U;
    for (const std::int32_t count : counts) {
      hash = (hash ^ static_cast<std::uint32_t>(count)) * 0xff51afd7ed558ccdU;
      hash ^= hash >> 29;
    }
    return hash;
  }
  bool has_counts(const Entry& entry, const std::vector<std::int32_t>& counts) const {
    return std::equal(counts.begin(), counts.end(),
                      counts_.begin() + static_cast<std::ptrdiff_t>(entry.counts));
  }

  std::size_t counts_size_;
  std::vector<Entry> entries_;
  std::vector<std::int32_t> counts_;
  std::vector<std::int64_t> times_;
  std::unordered_map<std::uint64_t, std::optional<std::uint32_t>>
      first_;  // by hash; never iterated
  std::int64_t alive_ = 0;
};

class Search {
 public:
  explicit Search(const OrderSearchRequest& request)
      : request_(request), problem_(request), layer_(counts_size()), next_(counts_size()) {}

  OrderSearchResult run() {
    SearchState state(problem_);
    PackedState packed;
    state.pack(packed);
    nodes_.push_back({});
    layer_.insert(packed, state.score(), 0);
    result_.is_complete = true;
    const std::int64_t ops = problem_.ops();
    for (std::int64_t done = 0; done < ops; ++done) {
      if (!step()) return std::move(result_);
      if (request_.progress != nullptr && !request_.progress(request_.progress_context)) {
        result_.is_complete = false;
        result_.was_stopped = true;
        return std::move(result_);
      }
    }
    take_best();
    return std::move(result_);
  }

 private:
  std::size_t counts_size() const { return problem_.counts_size(); }

  // Runs one more op in every state. Returns false if no state is left or memory is exhausted.
  bool step() {
    bool left_out = false;
    const std::vector<std::uint32_t> order = layer_.best(request_.limits.width, left_out);
    if (left_out) result_.is_complete = false;
    next_.clear();
    SearchState parent(problem_);
    SearchState child(problem_);
    PackedState packed;
    for (const std::uint32_t index : order) {
      const SearchLayer::Entry& entry = layer_.entry(index);
      parent.unpack(layer_.counts(entry), layer_.times(entry));
      const std::optional<std::int32_t> next = parent.next_rank();
      if (!next) continue;  // every rank waits for another one
      const std::int32_t rank = *next;
      for (std::int32_t move = 0; move < problem_.moves(); ++move) {
        if (!parent.may_run(rank, move)) continue;
        child = parent;
        if (!child.run(rank, move)) continue;
        child.pack(packed);
        ++result_.states;
        result_.words += static_cast<std::int64_t>(packed.counts.size() + packed.times.size());
        const auto node = static_cast<std::uint32_t>(nodes_.size());
        if (!next_.insert(packed, child.score(), node)) continue;
        nodes_.push_back(
            {entry.node, static_cast<std::int16_t>(rank), static_cast<std::int16_t>(move)});
      }
      if (result_.words > request_.limits.words || nodes_.size() >= kMostNodes) {
        result_.is_complete = false;
        return false;
      }
    }
    std::swap(layer_, next_);
    return layer_.size() > 0;
  }

  void take_best() {
    const SearchLayer::Entry* best = nullptr;
    for (std::uint32_t i = 0; i < layer_.size(); ++i) {
      const SearchLayer::Entry& entry = layer_.entry(i);
      if (entry.is_alive && (best == nullptr || entry.score < best->score)) best = &entry;
    }
    if (best == nullptr) return;
    std::vector<Node> path;
    for (std::uint32_t node = best->node; node != 0; node = nodes_[node].parent) {
      path.push_back(nodes_[node]);
    }
    result_.best = schedule_of(path);
  }

  // Turns each rank's moves into ops: micro-batches in order, W in the order of its B.
  PipelineSchedule schedule_of(const std::vector<Node>& reversed_path) const {
    const ScheduleShape& shape = request_.shape;
    PipelineSchedule schedule = schedule_by_rank(shape, [](std::int32_t) { return RankOrder(); });
    const auto chunks = static_cast<std::size_t>(shape.chunks);
    std::vector<std::int32_t> forwards(schedule.ranks.size() * chunks, 0);
    std::vector<std::int32_t> backwards = forwards;
    std::vector<RankOrder> due(schedule.ranks.size());  // W, in order
    std::vector<std::size_t> weights(schedule.ranks.size(), 0);
    for (auto node = reversed_path.rbegin(); node != reversed_path.rend(); ++node) {
      const auto rank = static_cast<std::size_t>(node->rank);
      RankOrder& order = schedule.ranks[rank];
      if (problem_.is_weight(node->move)) {
        order.push_back(due[rank][weights[rank]++]);
        continue;
      }
      const std::int32_t chunk = problem_.chunk_of_move(node->move);
      const std::size_t at = rank * chunks + static_cast<std::size_t>(chunk);
      if (problem_.is_forward(node->move)) {
        order.push_back(forward_op(forwards[at]++, chunk));
      } else {
        order.push_back(input_op(backwards[at]++, chunk));
        due[rank].push_back(weight_of(order.back()));
      }
    }
    return schedule;
  }

  const OrderSearchRequest& request_;
  SearchProblem problem_;
  SearchLayer layer_;
  SearchLayer next_;
  std::vector<Node> nodes_;
  OrderSearchResult result_;
};

}  // namespace

OrderSearchResult search_orders(const OrderSearchRequest& request) {
  assert(request.memory_limit >= request.shape.chunks);
  assert(request.deadlines.size() == static_cast<std::size_t>(request.shape.stages));
  return Search(request).run();
}

}  // namespace stepsim
