#include "sim/program/program_builder.h"

#include <utility>

namespace stepsim {

StreamId ProgramBuilder::add_stream(std::string name, bool computes) {
  program_.streams.push_back({.name = std::move(name), .computes = computes});
  drafts_.emplace_back();
  return StreamId(static_cast<std::uint32_t>(drafts_.size() - 1));
}

OpRef ProgramBuilder::add(OpDraft op) {
  std::vector<OpDraft>& stream = drafts_[op.stream.index()];
  const OpRef ref{op.stream, static_cast<std::uint32_t>(stream.size())};
  stream.push_back(std::move(op));
  if (launched_by_host_) added_.push_back(ref);
  return ref;
}

void ProgramBuilder::change_memory(OpRef op, MemoryChange change) {
  drafts_[op.stream.index()][op.position].memory_changes.push_back(change);
}

void ProgramBuilder::add_dependency(OpRef op, Dependency dependency) {
  drafts_[op.stream.index()][op.position].dependencies.push_back(dependency);
}

void ProgramBuilder::hold(MemoryCategory category, Bytes bytes) {
  program_.resident[static_cast<std::size_t>(category)] += bytes;
}

void ProgramBuilder::add_launches() {
  for (const OpRef& op : added_) {
    const std::uint32_t first = program_.streams[op.stream.index()].first_op;
    program_.launches.push_back({.op = OpId(first + op.position),
                                 .waits = drafts_[op.stream.index()][op.position].host_waits});
  }
}

Program ProgramBuilder::build() && {
  for (std::size_t s = 0; s < drafts_.size(); ++s) {
    program_.streams[s].first_op = static_cast<std::uint32_t>(program_.ops.size());
    program_.streams[s].ops = static_cast<std::uint32_t>(drafts_[s].size());
    for (const OpDraft& draft : drafts_[s]) {
      program_.dependencies.insert(program_.dependencies.end(), draft.dependencies.begin(),
                                   draft.dependencies.end());
      for (const MemoryChange& change : draft.memory_changes) {
        if (change.bytes > Bytes(0)) program_.memory_changes.push_back(change);
      }
      program_.labels.push_back(draft.label);
      program_.ops.push_back(
          {.kind = draft.kind,
           .axis = draft.axis,
           .work = draft.work,
           .work_count = draft.work_count,
           .dependencies_end = static_cast<std::uint32_t>(program_.dependencies.size()),
           .memory_end = static_cast<std::uint32_t>(program_.memory_changes.size())});
    }
  }
  add_launches();
  return std::move(program_);
}

}  // namespace stepsim
