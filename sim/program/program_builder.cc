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

// Appends an op's part of a stream's table, and what came late for it.
template <typename Item, typename Late>
void append_of_op(const std::vector<Item>& table, std::uint32_t begin, std::uint32_t end,
                  const std::vector<Late>& late, std::size_t& next_late, OpRef op,
                  std::vector<Item>& to) {
  to.insert(to.end(), table.begin() + begin, table.begin() + end);
  for (; next_late < late.size() && late[next_late].op.stream == op.stream &&
         late[next_late].op.position == op.position;
       ++next_late) {
    to.push_back(late[next_late].item);
  }
}

}  // namespace

StreamId ProgramBuilder::add_stream(std::string name, bool computes) {
  program_.streams.push_back({.name = std::move(name), .computes = computes});
  drafts_.emplace_back();
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
    std::uint32_t first_dependency = 0;
    std::uint32_t first_change = 0;
    for (std::uint32_t position = 0; position < stream.ops.size(); ++position) {
      Op op = stream.ops[position];
      const OpRef ref{StreamId(s), position};
      append_of_op(stream.dependencies, std::exchange(first_dependency, op.dependencies_end),
                   op.dependencies_end, late_dependencies_, next_dependency, ref,
                   program_.dependencies);
      append_of_op(stream.memory_changes, std::exchange(first_change, op.memory_end), op.memory_end,
                   late_changes_, next_change, ref, program_.memory_changes);
      op.dependencies_end = static_cast<std::uint32_t>(program_.dependencies.size());
      op.memory_end = static_cast<std::uint32_t>(program_.memory_changes.size());
      program_.ops.push_back(op);
    }
  }
  add_launches();
  return std::move(program_);
}

}  // namespace stepsim
