// ProgramBuilder makes a Program: streams first, then ops in any order of streams; each op gets
// the next position of its stream.
//
//   ProgramBuilder builder("stage 0");
//   const StreamId compute = builder.add_stream("compute", true);
//   const OpRef forward = builder.add({.stream = compute, .work = work, .label = label});
//   builder.add({.stream = reduce, .kind = OpKind::kCollective, .axis = Axis::kData,
//                .work = gradients, .dependencies = {after(forward)}});
//   graph.programs.push_back(std::move(builder).build());

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/program/op_graph.h"

namespace stepsim {

struct OpRef {
  StreamId stream;
  std::uint32_t position = 0;
};

inline Dependency after(OpRef op) {
  return {op.stream, op.position, false};
}
inline Dependency after_previous_step(OpRef op) {
  return {op.stream, op.position, true};
}

struct OpDraft {
  StreamId stream;
  OpKind kind = OpKind::kCompute;
  Axis axis{};
  std::uint32_t work = 0;
  std::uint32_t work_count = 1;
  OpLabel label{};
  std::vector<Dependency> dependencies{};
  std::vector<MemoryChange> memory_changes{};
  bool host_waits = false;  // LaunchCall::waits
};

class ProgramBuilder {
 public:
  explicit ProgramBuilder(std::string name) { program_.name = std::move(name); }

  // Keeps room for as many ops as `like` has, stream by stream. Streams are added after that.
  void expect(const Program& like);

  StreamId add_stream(std::string name, bool computes = false);
  OpRef add(const OpDraft& op);

  // Adds a change to an op that exists already. For example, a buffer is freed by its last reader,
  // which is known only later.
  void change_memory(OpRef op, MemoryChange change);

  // Adds a dependency on an op that comes later in the program (in the previous step).
  void add_dependency(OpRef op, Dependency dependency);

  void wait_on_host(OpRef op) { waited_for_.push_back(op); }

  // The host launches the ops in the order in which they were added. build() then fills
  // Program::launches, with one launch an op.
  void launch_by_host() { launched_by_host_ = true; }

  void hold(MemoryCategory category, Bytes bytes);  // held from the start of the run to its end
  void hold_on_host(Bytes bytes) { program_.held_on_host += bytes; }

  Program build() &&;

 private:
  // The ops of a stream, with the ends of their ranges in its own tables.
  struct StreamDraft {
    std::vector<Op> ops{};
    std::vector<OpLabel> labels{};
    std::vector<Dependency> dependencies{};
    std::vector<MemoryChange> memory_changes{};
  };
  // What was added to an op that was no longer the last of its stream.
  struct LateDependency {
    OpRef op;
    Dependency item;
  };
  struct LateChange {
    OpRef op;
    MemoryChange item;
  };

  bool is_last(OpRef op) const;  // of its stream
  // Appends the ops [first, end) of a draft, to which nothing came late, to program_.
  void append(const StreamDraft& stream, std::uint32_t first, std::uint32_t end);
  void add_launches();

  struct Expected {
    std::size_t ops = 0;
    std::size_t dependencies = 0;
    std::size_t memory_changes = 0;
  };

  Program program_;
  std::vector<Expected> expected_;   // by stream
  std::vector<StreamDraft> drafts_;  // by stream
  std::vector<LateDependency> late_dependencies_;
  std::vector<LateChange> late_changes_;
  std::vector<OpRef> waited_for_;  // by the host
  std::vector<OpRef> added_;       // only launched_by_host_
  bool launched_by_host_ = false;
};

}  // namespace stepsim
