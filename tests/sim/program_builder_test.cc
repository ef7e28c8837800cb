// Programs hold what was added to their ops, in time or late.
#include "sim/program/program_builder.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace stepsim {
namespace {

// Returns the positions that an op depends on, and the bytes of its memory changes: "0 3 | 16".
std::string contents(const Program& program, std::uint32_t op) {
  std::string text;
  for (const Dependency& dependency : program.dependencies_of(OpId(op))) {
    text += std::to_string(dependency.position) + " ";
  }
  text += "|";
  for (const MemoryChange& change : program.memory_changes_of(OpId(op))) {
    text += " " + std::to_string(change.bytes.value());
  }
  return text;
}

// Two streams of 4 ops. Each op depends on the same position of the other stream, and holds 10
// bytes more than the one before.
Program written(const Program* like) {
  ProgramBuilder builder("two streams");
  if (like != nullptr) builder.expect(*like);
  const StreamId compute = builder.add_stream("compute", true);
  const StreamId reduce = builder.add_stream("reduce");
  std::vector<OpRef> ops;
  for (std::uint32_t i = 0; i < 8; ++i) {
    OpDraft op{.stream = i % 2 == 0 ? compute : reduce};
    op.dependencies = {{.stream = i % 2 == 0 ? reduce : compute, .position = i / 2}};
    op.memory_changes = {{.bytes = Bytes(10 * i)}};
    ops.push_back(builder.add(op));
  }
  builder.change_memory(ops[7], {.bytes = Bytes(1)});  // the last of its stream
  builder.change_memory(ops[1], {.bytes = Bytes(2)});
  builder.add_dependency(ops[0], {.stream = reduce, .position = 9});
  builder.add_dependency(ops[5], {.stream = compute, .position = 8});
  builder.change_memory(ops[0], {.bytes = Bytes(3)});
  builder.change_memory(ops[1], {.bytes = Bytes(4)});
  return std::move(builder).build();
}

void expect_written(const Program& program) {
  const std::vector<std::string> expected = {"0 9 | 3",    "1 | 20", "2 | 40",   "3 | 60",
                                             "0 | 10 2 4", "1 | 30", "2 8 | 50", "3 | 70 1"};
  ASSERT_EQ(program.ops.size(), expected.size());
  ASSERT_EQ(program.labels.size(), expected.size());
  EXPECT_EQ(program.streams[1].first_op, 4U);
  for (std::uint32_t op = 0; op < expected.size(); ++op) {
    EXPECT_EQ(contents(program, op), expected[op]) << op;
  }
}

TEST(ProgramBuilderTest, KeepsWhatComesLateWithItsOp) {
  expect_written(written(nullptr));
}

TEST(ProgramBuilderTest, RoomForOtherOpsChangesNothing) {
  const Program program = written(nullptr);
  expect_written(written(&program));
  ProgramBuilder small("one stream");
  small.add_stream("compute", true);
  const Program empty = std::move(small).build();
  expect_written(written(&empty));
}

}  // namespace
}  // namespace stepsim
