// Algorithms as XML of MSCCL, run as its interpreter runs them: thread blocks step by step, in any
// order that their messages and dependencies leave.

#include "import/msccl/msccl_export.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>

#include "import/importer.h"
#include "proto/collective_files.h"
#include "sim/base/error.h"
#include "sim/base/field_text.h"
#include "sim/collectives/choose_algorithm.h"
#include "sim/collectives/step_list.h"
#include "tests/support/temporary_folder.h"

namespace stepsim {
namespace {

using Attributes = std::map<std::string, std::string>;
using Contributions = std::multiset<int>;  // member * 1000 + chunk: what is added up in a chunk

// Reads the attributes of one line of the XML.
Attributes attributes_of(const std::string& line) {
  Attributes found;
  std::size_t at = 0;
  while ((at = line.find("=\"", at)) != std::string::npos) {
    const std::size_t begin = line.rfind(' ', at) + 1;
    const std::size_t end = line.find('"', at + 2);
    found[line.substr(begin, at - begin)] = line.substr(at + 2, end - at - 2);
    at = end;
  }
  return found;
}

struct Block {
  int send = -1;
  int receive = -1;
  int channel = 0;
  std::vector<Attributes> steps;
  std::size_t next = 0;
};

struct Gpu {
  std::map<char, std::vector<Contributions>> buffers;
  std::vector<Block> blocks;
};

int number(const Attributes& line, const char* key) {
  return std::stoi(line.at(key));
}

class Interpreter {
 public:
  Interpreter(const std::string& xml, unsigned seed) : random_(seed) {
    for (const std::string_view part : split_text(xml, '\n')) read(std::string(part));
  }

  // In place, one buffer is input and output.
  std::vector<Contributions>& buffer(std::size_t gpu, char name) {
    const bool is_other = coll_ == "allgather" ? name == 'i' : name == 'o';
    if (in_place_ && is_other) ADD_FAILURE() << "the other buffer is used";
    return gpus_[gpu].buffers[name];
  }
  std::size_t size() const { return gpus_.size(); }

  // Returns false if something waits for ever.
  bool run() {
    for (std::size_t moved = 1; moved > 0;) {
      std::vector<std::pair<std::size_t, std::size_t>> all;
      for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu) {
        for (std::size_t block = 0; block < gpus_[gpu].blocks.size(); ++block) {
          all.emplace_back(gpu, block);
        }
      }
      std::ranges::shuffle(all, random_);
      moved = 0;
      for (const auto& [gpu, block] : all) moved += step(gpu, gpus_[gpu].blocks[block]) ? 1U : 0U;
    }
    return std::ranges::all_of(gpus_, [](const Gpu& gpu) {
      return std::ranges::all_of(
          gpu.blocks, [](const Block& block) { return block.next == block.steps.size(); });
    });
  }

 private:
  void read(const std::string& line) {
    const Attributes found = attributes_of(line);
    if (line.starts_with("<algo")) {
      in_place_ = found.at("inplace") == "1";
      coll_ = found.at("coll");
    } else if (line.starts_with("  <gpu")) {
      Gpu& gpu = gpus_.emplace_back();
      for (const char name : {'i', 'o', 's'}) {
        gpu.buffers[name].resize(
            static_cast<std::size_t>(number(found, (std::string(1, name) + "_chunks").c_str())));
      }
    } else if (line.starts_with("    <tb")) {
      gpus_.back().blocks.push_back({.send = number(found, "send"),
                                     .receive = number(found, "recv"),
                                     .channel = number(found, "chan"),
                                     .steps = {}});
    } else if (line.starts_with("      <step")) {
      gpus_.back().blocks.back().steps.push_back(found);
    }
  }

  bool step(std::size_t id, Block& block) {
    if (block.next == block.steps.size()) return false;
    const Attributes& step = block.steps[block.next];
    const int other = number(step, "depid");
    if (other >= 0) {
      const Block& before = gpus_[id].blocks[static_cast<std::size_t>(other)];
      const auto needed = static_cast<std::size_t>(number(step, "deps"));
      EXPECT_EQ(before.steps[needed].at("hasdep"), "1");
      if (before.next <= needed) return false;
    }
    if (!move(static_cast<int>(id), block, step)) return false;
    ++block.next;
    return true;
  }

  bool move(int id, const Block& block, const Attributes& step) {
    const std::string& type = step.at("type");
    if (type == "nop") return true;
    for (int i = 0; i < number(step, "cnt"); ++i) {
      auto& from = buffer(static_cast<std::size_t>(id), step.at("srcbuf")[0]);
      const auto source = static_cast<std::size_t>(number(step, "srcoff") + i);
      const auto target = static_cast<std::size_t>(number(step, "dstoff") + i);
      if (type == "s") {
        flying_[{id, block.send, block.channel}].push_back(from.at(source));
        continue;
      }
      if (type == "cpy") {
        buffer(static_cast<std::size_t>(id), step.at("dstbuf")[0]).at(target) = from.at(source);
        continue;
      }
      auto& queue = flying_[{block.receive, id, block.channel}];
      if (queue.size() < static_cast<std::size_t>(number(step, "cnt") - i)) return false;
      Contributions& here = buffer(static_cast<std::size_t>(id), step.at("dstbuf")[0]).at(target);
      if (type == "r") here.clear();
      here.insert(queue.front().begin(), queue.front().end());
      queue.pop_front();
    }
    return true;
  }

  std::mt19937 random_;
  bool in_place_ = true;
  std::string coll_;
  std::vector<Gpu> gpus_;
  std::map<std::tuple<int, int, int>, std::deque<Contributions>> flying_;
};

GroupShape shape_of(const std::vector<std::uint32_t>& sizes, bool torus = false) {
  GroupShape shape;
  std::uint32_t members = 1;
  for (const std::uint32_t size : sizes) {
    shape.dimensions.push_back({.size = size, .torus_axis = torus, .wraps = torus});
    members *= size;
  }
  shape.order.resize(members);
  std::iota(shape.order.begin(), shape.order.end(), 0U);
  return shape;
}

CollectiveTask task_of(CollectiveOp op, const GroupShape& shape) {
  return {.op = op, .bytes = Bytes(std::int64_t{shape.members()} * shape.members() * 64)};
}

MscclExport exported(CollectiveOp op, AlgorithmChoice choice, const GroupShape& shape) {
  const CollectiveTask task = task_of(op, shape);
  const auto algorithm = choose_algorithm(task, choice, shape);
  return export_msccl(task, *algorithm, name_of(choice));
}

int piece(std::size_t member, std::size_t chunk) {
  return static_cast<int>(member) * 1000 + static_cast<int>(chunk);
}

// Fills the inputs, runs, and says whether every member has what the operation promises.
void expect_done(CollectiveOp op, AlgorithmChoice choice, const GroupShape& shape) {
  const std::uint32_t members = shape.members();
  const MscclExport made = exported(op, choice, shape);
  for (unsigned seed = 0; seed < 5; ++seed) {
    SCOPED_TRACE(std::string(name_of(op)) + " " + std::string(name_of(choice)) + " " +
                 std::to_string(members));
    Interpreter machine(made.text, seed);
    ASSERT_EQ(machine.size(), members);
    const bool gathers = op == CollectiveOp::kAllGather;
    const char input = gathers ? 'o' : 'i';
    const std::size_t chunks = machine.buffer(0, input).size();
    const std::size_t of_member = chunks / members;
    for (std::size_t member = 0; member < members; ++member) {
      for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
        if (gathers && chunk / of_member != member) continue;
        if (op == CollectiveOp::kBroadcast && member != 0) continue;
        machine.buffer(member, input)[chunk] = {piece(member, chunk)};
      }
    }
    ASSERT_TRUE(machine.run());
    const char output = op == CollectiveOp::kAllToAll || gathers ? 'o' : 'i';
    for (std::size_t member = 0; member < members; ++member) {
      for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
        if (op == CollectiveOp::kReduceScatter && chunk / of_member != member) continue;
        Contributions wanted;
        if (gathers) wanted = {piece(chunk / of_member, chunk)};
        if (op == CollectiveOp::kBroadcast) wanted = {piece(0, chunk)};
        if (op == CollectiveOp::kAllToAll) {
          wanted = {piece(chunk / of_member, member * of_member + chunk % of_member)};
        }
        const bool adds = op == CollectiveOp::kAllReduce || op == CollectiveOp::kReduceScatter;
        for (std::size_t other = 0; adds && other < members; ++other) {
          wanted.insert(piece(other, chunk));
        }
        ASSERT_EQ(machine.buffer(member, output)[chunk], wanted) << member << " " << chunk;
      }
    }
  }
}

TEST(MscclExportTest, EveryAlgorithmOfMembersDoesWhatItPromises) {
  int algorithms = 0;
  for (const CollectiveOp op :
       {CollectiveOp::kAllReduce, CollectiveOp::kAllGather, CollectiveOp::kReduceScatter,
        CollectiveOp::kAllToAll, CollectiveOp::kBroadcast}) {
    for (const GroupShape& shape :
         {shape_of({2}), shape_of({3}), shape_of({8}), shape_of({2, 4}), shape_of({4, 3}, true)}) {
      for (const AlgorithmChoice choice : algorithms_for(op, shape)) {
        ++algorithms;
        expect_done(op, choice, shape);
      }
    }
  }
  EXPECT_GE(algorithms, 60);
}

// What members send each other in all.
std::map<std::pair<std::uint32_t, std::uint32_t>, Bytes> traffic_of(
    const CollectiveAlgorithm& algorithm) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, Bytes> traffic;
  for (std::uint32_t lane = 0; lane < algorithm.lanes(); ++lane) {
    for (std::uint32_t round = 0; round < algorithm.rounds(); ++round) {
      for (std::uint32_t member = 0; member < algorithm.members(); ++member) {
        const auto message = algorithm.message(lane, round, member);
        if (message) traffic[{member, message->to}] += message->bytes;
      }
    }
  }
  return traffic;
}

// `import msccl` reads what `--export msccl` wrote, proves it, and finds the same traffic.
TEST(MscclExportTest, TheImporterReadsItBack) {
  int read_back = 0;
  for (const CollectiveOp op :
       {CollectiveOp::kAllReduce, CollectiveOp::kAllGather, CollectiveOp::kReduceScatter,
        CollectiveOp::kAllToAll, CollectiveOp::kBroadcast}) {
    for (const GroupShape& shape : {shape_of({2}), shape_of({8}), shape_of({2, 4})}) {
      for (const AlgorithmChoice choice : algorithms_for(op, shape)) {
        SCOPED_TRACE(std::string(name_of(op)) + " " + std::string(name_of(choice)) + " " +
                     std::to_string(shape.members()));
        const std::filesystem::path path = temporary_folder() / "exported";
        std::ofstream(path) << exported(op, choice, shape).text;
        const Imported imported = find_importer("msccl")->read({.files = {path.string()}});
        const std::filesystem::path steps = temporary_folder() / "steps.textproto";
        std::ofstream(steps) << imported.text;
        const StepList list = load_step_list(steps.string());
        const CollectiveTask task = task_of(op, shape);
        EXPECT_EQ(traffic_of(ListedSteps(task, list)),
                  traffic_of(*choose_algorithm(task, choice, shape)));
        ++read_back;
      }
    }
  }
  EXPECT_GE(read_back, 40);
}

TEST(MscclExportTest, WhatMscclHasNoNameForIsRefused) {
  EXPECT_THROW(exported(CollectiveOp::kReduce, AlgorithmChoice::kBinomialTree, shape_of({4})),
               ConfigError);
}

// A ring of 40: 2 x 39 messages a GPU, in one thread block for sends and one for receives.
TEST(MscclExportTest, LimitsOfTheInterpreterAreNoted) {
  EXPECT_TRUE(
      exported(CollectiveOp::kAllReduce, AlgorithmChoice::kRing, shape_of({40})).notes.empty());
  EXPECT_FALSE(
      exported(CollectiveOp::kAllReduce, AlgorithmChoice::kRing, shape_of({200})).notes.empty());
}

}  // namespace
}  // namespace stepsim
