#include "proto/collective_files.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "proto/algorithm.pb.h"
#include "proto/json_value.h"
#include "proto/message_file.h"
#include "sim/base/input_file.h"
#include "sim/base/quantity_text.h"
#include "sim/base/suggestion.h"
#include "sim/collectives/proof.h"

namespace stepsim {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 44;
constexpr std::size_t kMostMembers = 4096;
static_assert(kMostBytes <= INT64_MAX / std::int64_t{kMostMembers}, "bytes of all members");
constexpr std::size_t kMostWrongCells = 100;  // that are listed

std::optional<CollectiveOp> op_named(const std::string& name) {
  const auto found =
      std::ranges::find_if(kCollectiveOps, [&](CollectiveOp op) { return name_of(op) == name; });
  return found == kCollectiveOps.end() ? std::nullopt : std::optional(*found);
}

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const CollectiveOp op : kCollectiveOps) names.emplace_back(name_of(op));
  return names;
}

StepList to_step_list(const file::Algorithm& algorithm, ProblemList& problems) {
  StepList list{.name = algorithm.name()};
  list.members = algorithm.members();
  if (!algorithm.has_members()) problems.add("members", "must be given");
  if (const auto op = op_named(algorithm.op())) {
    list.op = *op;
  } else {
    problems.add("op", "must be one of " + comma_separated(op_names()) + "; is \"" +
                           algorithm.op() + "\"" + did_you_mean(algorithm.op(), op_names()));
  }
  const bool pairs = list.op == CollectiveOp::kAllToAll;
  list.shards =
      algorithm.has_shards() ? algorithm.shards() : list.members * (pairs ? list.members : 1);
  list.pieces = algorithm.has_pieces() ? algorithm.pieces() : 1;
  list.shard_of.assign(algorithm.shard_of().begin(), algorithm.shard_of().end());
  for (int i = 0; i < algorithm.step_size(); ++i) {
    const file::Algorithm::Step& step = algorithm.step(i);
    const std::string name = "step[" + std::to_string(i) + "].";
    if (!step.has_from()) problems.add(name + "from", "must be given");
    if (!step.has_to()) problems.add(name + "to", "must be given");
    ListedStep listed{.lane = step.lane(),
                      .round = step.round(),
                      .from = step.from(),
                      .to = step.to(),
                      .reduce = step.reduce(),
                      .blocks = {step.block().begin(), step.block().end()}};
    if (step.has_after()) {
      listed.after = LaneGate{.lane = step.after().lane(), .round = step.after().round()};
    }
    list.steps.push_back(std::move(listed));
  }
  return list;
}

std::optional<Bytes> bytes_of(const Json& value) {
  if (value.is_string()) return parse_bytes(value.get<std::string>());
  if (value.is_number_integer()) return Bytes(value.get<std::int64_t>());
  return std::nullopt;
}

void read_rows(const Json& rows, ByteMatrix& matrix, ProblemList& problems) {
  matrix.members = static_cast<std::uint32_t>(rows.size());
  for (std::size_t source = 0; source < rows.size(); ++source) {
    const std::string row = "bytes[" + std::to_string(source) + "]";
    if (!rows[source].is_array() || rows[source].size() != rows.size()) {
      problems.add(
          row, "must be a list of " + std::to_string(rows.size()) + " sizes, one for each row" +
                   (rows[source].is_array() ? ", has " + std::to_string(rows[source].size()) : ""));
      continue;
    }
    for (std::size_t to = 0; to < rows.size(); ++to) {
      if (problems.size() >= kMostWrongCells) return;
      const Json& value = rows[source][to];
      const auto bytes = bytes_of(value);
      if (!bytes || *bytes < Bytes(0) || bytes->value() > kMostBytes) {
        problems.add(row + "[" + std::to_string(to) + "]",
                     "must be " + std::string(accepted_bytes()) +
                         ", at least 0 and at most 16 TiB; is " + shown(value));
        continue;
      }
      matrix.bytes.push_back(*bytes);
    }
  }
}

std::optional<Json> read_json_file(const std::string& path, ProblemList& problems) {
  const TextOrProblem file = read_input(path, InputKind::kTable);
  if (!file.text) {
    problems.add(path, "can't be read: " + file.problem);
    return std::nullopt;
  }
  JsonOrProblem content = parse_json(*file.text);
  if (!content.value) problems.add(path, "must be JSON: " + content.problem);
  return std::move(content.value);
}

}  // namespace

StepList load_step_list(const std::string& path) {
  ProblemList problems;
  file::Algorithm algorithm;
  StepList list;
  const auto source = read_source(path, path, problems, InputKind::kTable);
  const bool whole = source && read_message(*source, "", algorithm, problems);
  if (whole) {
    list = to_step_list(algorithm, problems);
    if (problems.empty()) {
      std::vector<Problem> wrong = check(list);
      // In the file a step is "step", not "steps".
      for (Problem& problem : wrong) {
        if (problem.field.starts_with("steps")) problem.field.erase(4, 1);
      }
      problems.add(std::move(wrong));
    }
  }
  if (problems.empty()) {
    // Sizes that nothing divides reveal blocks that are counted wrongly.
    const CollectiveTask task{
        .op = list.op,
        .bytes = Bytes(list.op == CollectiveOp::kBarrier
                           ? 0
                           : 2 * (std::int64_t{list.shards} * list.pieces * 8 + 5)),
        .steps = &list};
    if (const auto wrong = disproof(task, ListedSteps(task, list))) {
      problems.add("step",
                   "must do what " + std::string(name_of(list.op)) + " promises, but " + *wrong);
    }
  }
  std::vector<Problem> all = problems.all();
  for (Problem& problem : all) {
    if (!problem.field.starts_with(path)) problem.field = path + ": " + problem.field;
  }
  throw_if_any(std::move(all));
  return list;
}

ByteMatrix load_byte_matrix(const std::string& path) {
  ProblemList problems;
  ByteMatrix matrix;
  if (const auto content = read_json_file(path, problems)) {
    const bool has_field = content->is_object() && content->contains("bytes");
    const Json& rows = has_field ? (*content)["bytes"] : *content;
    if (!rows.is_array() || rows.size() < 2 || rows.size() > kMostMembers) {
      problems.add(path, "must be JSON, a list of 2 to " + std::to_string(kMostMembers) +
                             " rows of sizes, or an object with such a list as \"bytes\"");
    } else {
      read_rows(rows, matrix, problems);
    }
  }
  std::vector<Problem> all = problems.all();
  for (Problem& problem : all) {
    if (problem.field != path) problem.field = path + ": " + problem.field;
  }
  throw_if_any(std::move(all));
  return matrix;
}

}  // namespace stepsim
