#include "cli/sweep/sweep_merge.h"

#include <fmt/format.h>

#include <utility>

#include "cli/version.h"
#include "proto/messages/json_value.h"
#include "sim/base/error.h"
#include "store/result_store.h"

namespace stepsim {
namespace {

constexpr std::size_t kResultsAtOnce = 1000;

void add_store(ResultStore& from, ResultStore& into) {
  std::vector<StoredResult> results;
  for (const StoredSweep& sweep : from.sweeps()) {
    const std::int64_t id = into.sweep_of(sweep.description, sweep.points);
    const std::vector<StoredPoint> points = from.points(sweep);
    for (std::size_t first = 0; first < points.size(); first += kResultsAtOnce) {
      const std::span some =
          std::span(points).subspan(first, std::min(kResultsAtOnce, points.size() - first));
      results.clear();
      for (const StoredPoint& point : some) {
        if (!point.key) continue;
        if (auto result = from.result(*point.key)) results.push_back(std::move(*result));
      }
      into.put(id, some, results);
    }
  }
}

// The value of each path of a point.
SweepRow row_of(const StoredPoint& point, std::vector<std::string>& paths,
                const std::string& store) {
  const std::optional<Json> inputs = parse_json(point.inputs).value;
  SweepRow row{.number = point.number, .problem = point.problem};
  std::vector<std::string> names;
  if (inputs && inputs->is_object()) {
    for (const auto& [path, value] : inputs->items()) {
      names.push_back(path);
      row.values.push_back(value.is_string() ? value.get<std::string>() : json_text(value));
    }
  }
  if (paths.empty()) paths = names;
  if (names != paths || paths.empty()) {
    throw ConfigError(
        {{store, fmt::format("is damaged: the inputs of point {} are wrong", point.number)}});
  }
  return row;
}

void add_row(ResultStore& store, const StoredPoint& point, MergedSweep& merged) {
  SweepRow row = row_of(point, merged.table.paths, store.path());
  if (const auto result = point.key ? store.result(*point.key) : std::nullopt) {
    row.cells = cells_of_result(result->json);
    ++merged.counts.stored;
  } else if (row.problem.empty()) {
    row.problem = "not run yet";
    ++merged.counts.missing;
  } else {
    ++merged.counts.refused;
  }
  merged.table.rows.push_back(std::move(row));
}

bool wants_table(const SweepOutputs& outputs) {
  return !outputs.csv.empty() || !outputs.json.empty() || !outputs.plot.file.empty();
}

}  // namespace

MergedSweep merge_stores(const MergeRequest& request) {
  ResultStore into(request.store, version());
  for (const std::string& input : request.inputs) {
    ResultStore from(input, version(), Database::Mode::kRead);
    add_store(from, into);
  }
  const std::vector<StoredSweep> sweeps = into.sweeps();
  MergedSweep merged;
  for (const StoredSweep& sweep : sweeps)
    merged.counts.points += static_cast<std::uint64_t>(sweep.points);
  if (sweeps.size() != 1) {
    if (wants_table(request.outputs)) {
      throw ConfigError(
          {{request.store, fmt::format("has {} sweeps, and a table is of one: run its `stepsim "
                                       "sweep` with this store, which runs nothing again",
                                       sweeps.size())}});
    }
    return merged;
  }
  const std::vector<StoredPoint> points = into.points(sweeps.front());
  for (const StoredPoint& point : points) add_row(into, point, merged);
  merged.counts.missing +=
      merged.counts.points - std::min<std::uint64_t>(merged.counts.points, points.size());
  return merged;
}

}  // namespace stepsim
