#include "sim/program/program_builder.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace stepsim {
namespace {

// What was added to ops that were no longer the last of their stream: the changes of one op follow
// each other, in the order in which they were added.
template <typename Late>
void sort_by_op(std::vector<Late>& late) {
  std::ranges::stable_sort(
      late, {}, [](const Late& one) { return std::tuple(one.op.stream.index(), one.op.position); });
}

// Appends what came late for an op.
template <typename Item, typename Late>
void append_late(const std::vector<Late>& late, std::size_t& next, OpRef op,
                 std::vector<Item>& to) {
  for (; next < late.size() && late[next].op.stream == op.stream &&
         late[next].op.position == op.position;
       ++next) {
    to.push_back(late[next].item);
  }
}

}  // namespace

void ProgramBuilder::expect(const Program& like) {
  std::uint32_t dependencies = 0;
  std::uint32_t changes = 0;
  for (const Stream& stream : like.streams) {
    if (stream.ops == 0) {
      expected_.emplace_back();
      continue;
    }
    const Op& last = like.ops[stream.first_op + stream.ops - 1];
    expected_.push_back(
        {.ops = stream.ops,
         .dependencies = last.dependencies_end - std::exchange(dependencies, last.dependencies_end),
         .memory_changes = last.memory_end - std::exchange(changes, last.memory_end)});
  }
}

StreamId ProgramBuilder::add_stream(std::string name, bool computes) {
  program_.streams.push_back({.name = std::move(name), .computes = computes});
  StreamDraft& draft = drafts_.emplace_back();
  if (drafts_.size() <= expected_.size()) {
    const Expected& expected = expected_[drafts_.size() - 1];
    draft.ops.reserve(expected.ops);
    draft.labels.reserve(expected.ops);
    draft.dependencies.reserve(expected.dependencies);
    draft.memory_changes.reserve(expected.memory_changes);
  }
  return StreamId(static_cast<std::uint32_t>(drafts_.size() - 1));
}

OpRef ProgramBuilder::add(const OpDraft& op) {
  StreamDraft& stream = drafts_[op.stream.index()];
  const OpRef ref{op.stream, static_cast<std::uint32_t>(stream.ops.size())};
  stream.dependencies.insert(stream.dependencies.end(), op.dependencies.begin(),
                             op.dependencies.end());
  for (const MemoryChange& change : op.memory_changes) {
    if (change.bytes > Bytes(0)) stream.memory_changes.push_back(change);
  }
  stream.ops.push_back({.kind = op.kind,
                        .axis = op.axis,
                        .work = op.work,
                        .work_count = op.work_count,
                        .dependencies_end = static_cast<std::uint32_t>(stream.dependencies.size()),
                        .memory_end = static_cast<std::uint32_t>(stream.memory_changes.size())});
  stream.labels.push_back(op.label);
  if (launched_by_host_) added_.push_back(ref);
  if (op.host_waits) wait_on_host(ref);
  return ref;
}

bool ProgramBuilder::is_last(OpRef op) const {
  return drafts_[op.stream.index()].ops.size() == op.position + 1;
}

void ProgramBuilder::change_memory(OpRef op, MemoryChange change) {
  if (change.bytes <= Bytes(0)) return;
  if (!is_last(op)) return late_changes_.push_back({op, change});
  StreamDraft& stream = drafts_[op.stream.index()];
  stream.memory_changes.push_back(change);
  ++stream.ops.back().memory_end;
}

void ProgramBuilder::add_dependency(OpRef op, Dependency dependency) {
  if (!is_last(op)) return late_dependencies_.push_back({op, dependency});
  StreamDraft& stream = drafts_[op.stream.index()];
  stream.dependencies.push_back(dependency);
  ++stream.ops.back().dependencies_end;
}

void ProgramBuilder::hold(MemoryCategory category, Bytes bytes) {
  program_.resident[static_cast<std::size_t>(category)] += bytes;
}

void ProgramBuilder::add_launches() {
  if (!launched_by_host_) return;
  std::vector<bool> waits(program_.ops.size(), false);
  const auto id = [this](OpRef op) {
    return OpId(program_.streams[op.stream.index()].first_op + op.position);
  };
  for (const OpRef& op : waited_for_) waits[id(op).index()] = true;
  for (const OpRef& op : added_) {
    program_.launches.push_back({.op = id(op), .waits = waits[id(op).index()]});
  }
}

void ProgramBuilder::append(const StreamDraft& stream, std::uint32_t first, std::uint32_t end) {
  if (first == end) return;
  const std::uint32_t dependency = first == 0 ? 0 : stream.ops[first - 1].dependencies_end;
  const std::uint32_t change = first == 0 ? 0 : stream.ops[first - 1].memory_end;
  const Op& last = stream.ops[end - 1];
  const auto dependencies_before = static_cast<std::uint32_t>(program_.dependencies.size());
  const auto changes_before = static_cast<std::uint32_t>(program_.memory_changes.size());
  program_.dependencies.insert(program_.dependencies.end(),
                               stream.dependencies.begin() + dependency,
                               stream.dependencies.begin() + last.dependencies_end);
  program_.memory_changes.insert(program_.memory_changes.end(),
                                 stream.memory_changes.begin() + change,
                                 stream.memory_changes.begin() + last.memory_end);
  for (std::uint32_t position = first; position < end; ++position) {
    Op& op = program_.ops.emplace_back(stream.ops[position]);
    op.dependencies_end += dependencies_before - dependency;
    op.memory_end += changes_before - change;
  }
}

Program ProgramBuilder::build() && {
  sort_by_op(late_dependencies_);
  sort_by_op(late_changes_);
  std::size_t ops = 0;
  std::size_t dependencies = late_dependencies_.size();
  std::size_t changes = late_changes_.size();
  for (const StreamDraft& stream : drafts_) {
    ops += stream.ops.size();
    dependencies += stream.dependencies.size();
    changes += stream.memory_changes.size();
  }
  program_.ops.reserve(ops);
  program_.labels.reserve(ops);
  program_.dependencies.reserve(dependencies);
  program_.memory_changes.reserve(changes);
  std::size_t next_dependency = 0;
  std::size_t next_change = 0;
  for (std::uint32_t s = 0; s < drafts_.size(); ++s) {
    const StreamDraft& stream = drafts_[s];
    program_.streams[s].first_op = static_cast<std::uint32_t>(program_.ops.size());
    program_.streams[s].ops = static_cast<std::uint32_t>(stream.ops.size());
    program_.labels.insert(program_.labels.end(), stream.labels.begin(), stream.labels.end());
    const auto late_position = [&](const auto& late, std::size_t next) {
      const bool is_here = next < late.size() && late[next].op.stream == StreamId(s);
      return is_here ? late[next].op.position : program_.streams[s].ops;
    };
    for (std::uint32_t position = 0; position < stream.ops.size(); ++position) {
      const std::uint32_t late = std::min(late_position(late_dependencies_, next_dependency),
                                          late_position(late_changes_, next_change));
      append(stream, std::exchange(position, late), late);
      if (late == stream.ops.size()) break;
      append(stream, late, late + 1);
      const OpRef op{StreamId(s), late};
      append_late(late_dependencies_, next_dependency, op, program_.dependencies);
      append_late(late_changes_, next_change, op, program_.memory_changes);
      program_.ops.back().dependencies_end =
          static_cast<std::uint32_t>(program_.dependencies.size());
      program_.ops.back().memory_end = static_cast<std::uint32_t>(program_.memory_changes.size());
    }
  }
  add_launches();
  return std::move(program_);
}

}  // namespace stepsim
