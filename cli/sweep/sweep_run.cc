#include "cli/sweep/sweep_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "cli/sweep/point_bench.h"
#include "cli/version.h"
#include "proto/catalog/measured_tables.h"
#include "proto/messages/json_value.h"
#include "sim/base/error.h"
#include "sim/base/parallel.h"

namespace stepsim {
namespace {

using Clock = std::chrono::steady_clock;

std::string inputs_json(const SweepRequest& request, const std::vector<std::string>& values) {
  const std::vector<std::string> paths = request.space.paths();
  Json object = Json::object();
  for (std::size_t i = 0; i < paths.size(); ++i) object[paths[i]] = values[i];
  return json_text(object);
}

class PointRuns {
 public:
  PointRuns(const SweepRequest& request, ResultStore* store, ProcessGroup* group,
            const SweepWatch& watch)
      : request_(request), store_(store), watch_(watch), paths_(request.space.paths()) {
    for (std::size_t i = 0; i < request.jobs; ++i) free_.push_back(make_bench(request, intervals_));
    const std::size_t places = group == nullptr ? 0 : group->start(job_of(request));
    for (std::size_t i = 0; i < places; ++i) free_.push_back(make_remote_bench(*group, i));
    for (std::uint64_t i = request.shard.index; i < request.space.size();
         i += request.shard.count) {
      rows_.push_back({.number = static_cast<std::int64_t>(i), .values = request.space.values(i)});
    }
    counts_.points = rows_.size();
    keys_.resize(rows_.size());
    is_done_.resize(rows_.size());
    if (store_ == nullptr) return;
    const auto points = static_cast<std::int64_t>(request.space.size());
    sweep_ = store_->sweep_of(request.description, points);
    stored_ = store_->keys();
    for (StoredPoint& point : store_->points({request.description, points})) {
      stored_points_[point.number] = std::move(point);
    }
  }

  SweepResult run() {
    const auto start = Clock::now();
    for_each_in_parallel(rows_.size(), free_.size(), [&](std::size_t i) {
      std::unique_ptr<PointBench> bench = take_bench();
      do_point(i, *bench);
      const std::lock_guard lock(mutex_);
      free_.push_back(std::move(bench));
    });
    counts_.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return {{paths_, std::move(rows_)}, counts_};
  }

 private:
  std::unique_ptr<PointBench> take_bench() {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<PointBench> bench = std::move(free_.back());
    free_.pop_back();
    return bench;
  }

  void do_point(std::size_t i, PointBench& bench) {
    SweepRow& row = rows_[i];
    PointState state = bench.read(static_cast<std::uint64_t>(row.number));
    row.problem = std::move(state.problem);
    keys_[i] = std::move(state.key);
    if (!row.problem.empty()) return finish(i, std::nullopt, &SweepCounts::refused);
    switch (claim(i)) {
      case Claim::kTaken:
        return finish(i, std::nullopt, &SweepCounts::stored);
      case Claim::kStored:
        return take_from_store(i);
      case Claim::kOwn:
        break;
    }
    const auto start = Clock::now();
    PointResult result = bench.run();
    row.problem = std::move(result.problem);
    if (!row.problem.empty()) return finish(i, std::nullopt, &SweepCounts::refused);
    row.cells = cells_of_result(result.json);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    finish(i, StoredResult{keys_[i], std::move(result.json), seconds, std::string(version())},
           &SweepCounts::run);
  }

  enum class Claim { kOwn, kTaken, kStored };
  // Says who has the result of a point: the store, another point of this sweep, or nobody yet.
  Claim claim(std::size_t i) {
    const std::lock_guard lock(mutex_);
    if (stored_.contains(keys_[i])) return Claim::kStored;
    return owner_.try_emplace(keys_[i], i).second ? Claim::kOwn : Claim::kTaken;
  }

  void take_from_store(std::size_t i) {
    std::optional<StoredResult> result;
    {
      const std::lock_guard lock(store_mutex_);
      result = store_->result(keys_[i]);
    }
    if (!result) throw ConfigError({{store_->path(), "is damaged: a result is not there"}});
    rows_[i].cells = cells_of_result(result->json);
    finish(i, std::nullopt, &SweepCounts::stored);
  }

  // Counts a point that is done, and shows the rows that have become the next ones. REQUIRES: the
  // thread holds mutex_.
  void count(std::size_t i, std::uint64_t SweepCounts::*counter) {
    ++(counts_.*counter);
    is_done_[i] = true;
    while (shown_ < rows_.size() && is_done_[shown_] && take_from_twin(shown_)) {
      if (watch_.row) watch_.row(paths_, rows_[shown_]);
      ++shown_;
    }
  }

  // Gives a row the result of the point with the same experiment that ran. Returns false if that is
  // not done.
  bool take_from_twin(std::size_t i) {
    if (!rows_[i].problem.empty() || !rows_[i].cells.empty()) return true;
    const std::size_t owner = owner_.at(keys_[i]);
    if (!is_done_[owner]) return false;
    rows_[i].cells = rows_[owner].cells;
    rows_[i].problem = rows_[owner].problem;
    return true;
  }

  void tell_progress() const {
    if (watch_.progress) watch_.progress(counts_);
  }

  // Returns whether the store has the point as it is now.
  bool is_stored(const StoredPoint& point) const {
    const auto at = stored_points_.find(point.number);
    return at != stored_points_.end() && at->second.key == point.key &&
           at->second.problem == point.problem && at->second.inputs == point.inputs;
  }

  // Puts a point and its result on the disk, and then counts it. Points that end while others are
  // being written wait, and are written together.
  void finish(std::size_t i, std::optional<StoredResult> result,
              std::uint64_t SweepCounts::*counter) {
    if (store_ == nullptr) {
      const std::lock_guard lock(mutex_);
      count(i, counter);
      return tell_progress();
    }
    StoredPoint point{.number = rows_[i].number,
                      .inputs = inputs_json(request_, rows_[i].values),
                      .problem = rows_[i].problem};
    if (point.problem.empty()) point.key = keys_[i];
    std::unique_lock lock(mutex_);
    if (result) waiting_results_.push_back(std::move(*result));
    if (!is_stored(point)) waiting_points_.push_back(std::move(point));
    waiting_counters_.emplace_back(i, counter);
    if (is_writing_) return;
    is_writing_ = true;
    while (!waiting_counters_.empty()) write_waiting(lock);
    is_writing_ = false;
  }

  void write_waiting(std::unique_lock<std::mutex>& lock) {
    const auto points = std::exchange(waiting_points_, {});
    const auto results = std::exchange(waiting_results_, {});
    const auto counters = std::exchange(waiting_counters_, {});
    lock.unlock();
    if (!points.empty() || !results.empty()) {
      const std::lock_guard store_lock(store_mutex_);
      store_->put(sweep_, points, results);
    }
    lock.lock();
    for (const auto& [i, counter] : counters) count(i, counter);
    tell_progress();
  }

  const SweepRequest& request_;
  ResultStore* const store_;
  const SweepWatch& watch_;
  const std::vector<std::string> paths_;
  const std::vector<IntervalEntry> intervals_ = load_intervals();
  std::vector<SweepRow> rows_;     // each written by the thread that does it
  std::vector<std::string> keys_;  // of the rows; so are these
  std::int64_t sweep_ = 0;
  std::unordered_set<std::string> stored_;  // keys of what the store had
  std::map<std::int64_t, StoredPoint> stored_points_;

  std::mutex store_mutex_;
  std::mutex mutex_;                               // guards the rest
  std::vector<std::unique_ptr<PointBench>> free_;  // as many as threads
  std::unordered_map<std::string, std::size_t> owner_;
  SweepCounts counts_;
  bool is_writing_ = false;
  std::vector<StoredPoint> waiting_points_;
  std::vector<StoredResult> waiting_results_;
  std::vector<std::pair<std::size_t, std::uint64_t SweepCounts::*>> waiting_counters_;
  std::vector<bool> is_done_;  // of the rows
  std::size_t shown_ = 0;      // of the rows, from the first
};

// Throws ConfigError if the question has no answer at all.
void require_points(const SweepRequest& request, const SweepResult& result) {
  if (request.shard.count > 1 || result.counts.refused < result.counts.points) return;
  constexpr std::size_t kListed = 10;
  std::vector<Problem> problems;
  std::unordered_set<std::string> seen;
  for (const SweepRow& row : result.table.rows) {
    if (problems.size() == kListed || !seen.insert(row.problem).second) continue;
    std::string point;
    for (const std::string& text :
         request.space.overrides(static_cast<std::uint64_t>(row.number))) {
      point += (point.empty() ? "" : " ") + text;
    }
    problems.push_back({"--over " + point, "no point can run: " + row.problem});
  }
  throw_if_any(std::move(problems));
}

}  // namespace

SweepResult run_points(const SweepRequest& request, ResultStore* store, ProcessGroup* group,
                       const SweepWatch& watch) {
  SweepResult result = PointRuns(request, store, group, watch).run();
  require_points(request, result);
  return result;
}

}  // namespace stepsim
