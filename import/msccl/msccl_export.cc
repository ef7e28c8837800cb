#include "import/msccl/msccl_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>

#include "sim/base/error.h"
#include "sim/base/xml_text.h"

namespace stepsim {
namespace {

constexpr std::uint64_t kMostMessages = 4'000'000;
// The interpreter of MSCCL takes at most so many (src/include/msccl.h and NCCL's MAXCHANNELS).
constexpr std::size_t kMostStepsOfBlock = 256;
constexpr std::uint32_t kMostChannels = 32;

[[noreturn]] void refuse_msccl(const std::string& why) {
  throw ConfigError({Problem{"--export msccl", why}});
}

struct MscclName {
  CollectiveOp op;
  std::string_view name;
};
constexpr std::array kMscclNames = {MscclName{CollectiveOp::kAllReduce, "allreduce"},
                                    MscclName{CollectiveOp::kAllGather, "allgather"},
                                    MscclName{CollectiveOp::kReduceScatter, "reduce_scatter"},
                                    MscclName{CollectiveOp::kAllToAll, "alltoall"},
                                    MscclName{CollectiveOp::kBroadcast, "broadcast"}};

struct ChunkPlace {
  char buffer = 'i';
  std::uint32_t offset = 0;
};

// A step of a GPU: its thread block and its place there.
struct StepRef {
  std::uint32_t block = 0;
  std::uint32_t step = 0;
};

struct WrittenStep {
  std::string_view type;
  ChunkPlace from{};
  ChunkPlace to{};
  std::uint32_t count = 1;
  std::optional<StepRef> after{};
  bool is_awaited = false;
};

struct WrittenBlock {
  std::int64_t send = -1;
  std::int64_t receive = -1;
  std::uint32_t channel = 0;
  std::vector<WrittenStep> steps{};
};

// Who wrote a chunk last, and who has read it since.
struct ChunkUse {
  std::optional<StepRef> writer{};
  std::vector<StepRef> readers{};
};

struct WrittenGpu {
  std::vector<WrittenBlock> blocks{};
  std::map<std::tuple<bool, std::uint32_t, std::uint32_t>, std::uint32_t> block_of{};
  std::map<std::uint32_t, ChunkUse> uses{};          // by block of the collective
  std::map<std::uint32_t, std::uint32_t> scratch{};  // offset of what is passed on
};

class MscclWriter {
 public:
  MscclWriter(const CollectiveTask& task, const CollectiveAlgorithm& algorithm)
      : task_(task),
        algorithm_(algorithm),
        members_(algorithm.members()),
        gpus_(members_),
        turns_(std::size_t{algorithm.lanes()} * members_) {}

  MscclExport write(std::string_view name) {
    check();
    owner_.resize(algorithm_.shards());
    if (task_.op == CollectiveOp::kAllGather || task_.op == CollectiveOp::kReduceScatter) {
      for (std::uint32_t member = 0; member < members_; ++member) {
        owner_[algorithm_.shard_of(member)] = member;
      }
    }
    if (task_.op == CollectiveOp::kAllToAll) copy_own();
    run();
    return {text(name), notes()};
  }

 private:
  // What a member does next in a lane.
  struct Turn {
    std::uint32_t round = 0;
    bool has_sent = false;
  };
  struct Message {
    std::uint32_t from = 0;
    bool reduce = false;
    std::vector<std::uint32_t> blocks{};
  };

  void check() const {
    const bool is_known =
        std::ranges::find(kMscclNames, task_.op, &MscclName::op) != kMscclNames.end();
    if (!is_known) {
      refuse_msccl("has no " + std::string(name_of(task_.op)) +
                   ": allreduce, allgather, reduce_scatter, alltoall and broadcast");
    }
    if (task_.op == CollectiveOp::kBroadcast && task_.root != 0) {
      refuse_msccl("broadcasts from member 0");
    }
    if (algorithm_.endpoints() > members_) refuse_msccl("has no switches that add");
    const std::uint64_t messages =
        std::uint64_t{algorithm_.lanes()} * algorithm_.rounds() * members_;
    if (messages > kMostMessages) {
      refuse_msccl(
          fmt::format("would have up to {} messages, more than {}", messages, kMostMessages));
    }
  }

  bool is_all_to_all() const { return task_.op == CollectiveOp::kAllToAll; }

  ChunkPlace place(std::uint32_t member, std::uint32_t block) {
    const std::uint32_t pieces = algorithm_.pieces();
    const std::uint32_t shard = block % algorithm_.shards();
    const std::uint32_t piece = block / algorithm_.shards();
    if (task_.op == CollectiveOp::kAllGather) return {'o', owner_[shard] * pieces + piece};
    if (task_.op == CollectiveOp::kReduceScatter) return {'i', owner_[shard] * pieces + piece};
    if (!is_all_to_all()) return {'i', shard * pieces + piece};
    const std::uint32_t source = shard / members_;
    const std::uint32_t target = shard % members_;
    if (target == member) return {'o', source * pieces + piece};
    if (source == member) return {'i', target * pieces + piece};
    auto& scratch = gpus_[member].scratch;
    return {'s',
            scratch.try_emplace(block, static_cast<std::uint32_t>(scratch.size())).first->second};
  }

  std::uint32_t block_for(std::uint32_t member, bool sends, std::uint32_t lane,
                          std::uint32_t peer) {
    WrittenGpu& gpu = gpus_[member];
    const auto [found, is_new] = gpu.block_of.try_emplace(
        {sends, lane, peer}, static_cast<std::uint32_t>(gpu.blocks.size()));
    if (is_new) {
      gpu.blocks.push_back({.send = sends ? std::int64_t{peer} : -1,
                            .receive = sends ? -1 : std::int64_t{peer},
                            .channel = lane});
    }
    return found->second;
  }

  // ---- running ----

  // Every member takes its turns, as the rules of algorithm.h have them.
  void run() {
    bool is_moving = true;
    while (is_moving) {
      is_moving = false;
      for (std::uint32_t lane = 0; lane < algorithm_.lanes(); ++lane) {
        for (std::uint32_t member = 0; member < members_; ++member) {
          while (take_turn(lane, member)) is_moving = true;
        }
      }
    }
    for (const Turn& turn : turns_) {
      if (turn.round < algorithm_.rounds()) refuse_msccl("can't say lanes that wait in a circle");
    }
  }

  Turn& turn_of(std::uint32_t lane, std::uint32_t member) {
    return turns_[std::size_t{lane} * members_ + member];
  }

  bool may_send(std::uint32_t lane, std::uint32_t round, std::uint32_t member) {
    if (!algorithm_.gated()) return true;
    std::vector<LaneGate> gates;
    algorithm_.gates(lane, round, member, gates);
    return std::ranges::all_of(
        gates, [&](const LaneGate& gate) { return turn_of(gate.lane, member).round > gate.round; });
  }

  bool take_turn(std::uint32_t lane, std::uint32_t member) {
    Turn& turn = turn_of(lane, member);
    if (turn.round >= algorithm_.rounds()) return false;
    if (!turn.has_sent) {
      const auto message = algorithm_.message(lane, turn.round, member);
      if (message && !may_send(lane, turn.round, member)) return false;
      if (message) send(lane, turn.round, member, *message);
      turn.has_sent = true;
      return true;
    }
    const auto inbox = inboxes_.find({lane, turn.round, member});
    const std::size_t arrived = inbox == inboxes_.end() ? 0 : inbox->second.size();
    if (arrived < algorithm_.receives(lane, turn.round, member)) return false;
    if (arrived > 0) {
      for (const Message& message : inbox->second) receive(lane, member, message);
      inboxes_.erase(inbox);
    }
    turn = {.round = turn.round + 1};
    return true;
  }

  // Calls `step` for each run of blocks that lie side by side on both sides.
  template <class Step>
  void in_runs(std::uint32_t from, std::uint32_t to, const std::vector<std::uint32_t>& blocks,
               Step step) {
    for (std::size_t begin = 0; begin < blocks.size();) {
      const ChunkPlace source = place(from, blocks[begin]);
      const ChunkPlace target = place(to, blocks[begin]);
      std::size_t end = begin + 1;
      const auto follows = [&](const ChunkPlace& first, const ChunkPlace& next) {
        return next.buffer == first.buffer &&
               next.offset == first.offset + static_cast<std::uint32_t>(end - begin);
      };
      while (end < blocks.size() && follows(source, place(from, blocks[end])) &&
             follows(target, place(to, blocks[end]))) {
        ++end;
      }
      step(std::span(blocks).subspan(begin, end - begin), source, target);
      begin = end;
    }
  }

  void send(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
            const CollectiveMessage& message) {
    Message sent{.from = member, .reduce = message.reduce};
    algorithm_.blocks(lane, round, member, sent.blocks);
    const std::uint32_t block = block_for(member, true, lane, message.to);
    in_runs(member, message.to, sent.blocks,
            [&](std::span<const std::uint32_t> run, ChunkPlace source, ChunkPlace target) {
              std::vector<StepRef> waits;
              auto& uses = gpus_[member].uses;
              for (const std::uint32_t each : run) {
                if (const auto& writer = uses[each].writer) waits.push_back(*writer);
              }
              const StepRef step =
                  add_step(member, block, waits,
                           {.type = "s", .from = source, .to = target, .count = length(run)});
              for (const std::uint32_t each : run) uses[each].readers.push_back(step);
            });
    inboxes_[{lane, round, message.to}].push_back(std::move(sent));
  }

  void receive(std::uint32_t lane, std::uint32_t member, const Message& message) {
    const std::uint32_t block = block_for(member, false, lane, message.from);
    in_runs(message.from, member, message.blocks,
            [&](std::span<const std::uint32_t> run, ChunkPlace source, ChunkPlace target) {
              std::vector<StepRef> waits;
              auto& uses = gpus_[member].uses;
              for (const std::uint32_t each : run) {
                if (const auto& writer = uses[each].writer) waits.push_back(*writer);
                waits.insert(waits.end(), uses[each].readers.begin(), uses[each].readers.end());
              }
              const StepRef step = add_step(member, block, waits,
                                            {.type = message.reduce ? "rrc" : "r",
                                             .from = message.reduce ? target : source,
                                             .to = target,
                                             .count = length(run)});
              for (const std::uint32_t each : run) uses[each] = {.writer = step};
            });
  }

  static std::uint32_t length(std::span<const std::uint32_t> run) {
    return static_cast<std::uint32_t>(run.size());
  }

  // Adds a step behind those that it waits for: the last of each other thread block.
  StepRef add_step(std::uint32_t member, std::uint32_t block, const std::vector<StepRef>& waits,
                   WrittenStep step) {
    WrittenGpu& gpu = gpus_[member];
    std::map<std::uint32_t, std::uint32_t> last;
    for (const StepRef& wait : waits) {
      if (wait.block == block) continue;
      std::uint32_t& latest = last.try_emplace(wait.block, wait.step).first->second;
      latest = std::max(latest, wait.step);
    }
    std::vector<WrittenStep>& steps = gpu.blocks[block].steps;
    std::size_t left = last.size();
    for (const auto& [other, number] : last) {
      gpu.blocks[other].steps[number].is_awaited = true;
      const StepRef after{other, number};
      if (--left > 0) {
        steps.push_back({.type = "nop", .after = after});
      } else {
        step.after = after;
      }
    }
    steps.push_back(step);
    return {block, static_cast<std::uint32_t>(steps.size() - 1)};
  }

  // What members keep of an all-to-all.
  void copy_own() {
    for (std::uint32_t member = 0; member < members_; ++member) {
      const std::uint32_t pieces = algorithm_.pieces();
      const std::uint32_t first = member * pieces;
      gpus_[member].blocks.push_back({});
      gpus_[member].blocks[0].steps.push_back(
          {.type = "cpy", .from = {'i', first}, .to = {'o', first}, .count = pieces});
    }
  }

  // ---- writing ----

  std::uint32_t chunks() const {
    return is_all_to_all() ? members_ * algorithm_.pieces()
                           : algorithm_.shards() * algorithm_.pieces();
  }

  static std::string step_text(std::size_t number, const WrittenStep& step) {
    return fmt::format(
        "      <step s=\"{}\" type=\"{}\" srcbuf=\"{}\" srcoff=\"{}\" dstbuf=\"{}\" dstoff=\"{}\" "
        "cnt=\"{}\" depid=\"{}\" deps=\"{}\" hasdep=\"{}\"/>\n",
        number, step.type, step.from.buffer, step.from.offset, step.to.buffer, step.to.offset,
        step.count, step.after ? std::int64_t{step.after->block} : -1,
        step.after ? std::int64_t{step.after->step} : -1, step.is_awaited ? 1 : 0);
  }

  std::string text(std::string_view name) const {
    const bool in_place = !is_all_to_all();
    const std::uint32_t input =
        task_.op == CollectiveOp::kAllGather ? algorithm_.pieces() : chunks();
    const std::uint32_t output =
        task_.op == CollectiveOp::kReduceScatter ? algorithm_.pieces() : chunks();
    std::string all = fmt::format(
        "<algo name=\"{}\" proto=\"Simple\" nchannels=\"{}\" nchunksperloop=\"{}\" ngpus=\"{}\" "
        "coll=\"{}\" inplace=\"{}\" outofplace=\"{}\" minBytes=\"0\" maxBytes=\"0\">\n",
        xml_escaped(name), algorithm_.lanes(), chunks(), members_,
        std::ranges::find(kMscclNames, task_.op, &MscclName::op)->name, in_place ? 1 : 0,
        in_place ? 0 : 1);
    for (std::size_t id = 0; id < gpus_.size(); ++id) {
      const WrittenGpu& gpu = gpus_[id];
      all += fmt::format("  <gpu id=\"{}\" i_chunks=\"{}\" o_chunks=\"{}\" s_chunks=\"{}\">\n", id,
                         input, output, gpu.scratch.size());
      for (std::size_t block = 0; block < gpu.blocks.size(); ++block) {
        const WrittenBlock& each = gpu.blocks[block];
        all += fmt::format("    <tb id=\"{}\" send=\"{}\" recv=\"{}\" chan=\"{}\">\n", block,
                           each.send, each.receive, each.channel);
        for (std::size_t i = 0; i < each.steps.size(); ++i) all += step_text(i, each.steps[i]);
        all += "    </tb>\n";
      }
      all += "  </gpu>\n";
    }
    return all + "</algo>\n";
  }

  std::vector<std::string> notes() const {
    std::size_t longest = 0;
    for (const WrittenGpu& gpu : gpus_) {
      for (const WrittenBlock& block : gpu.blocks) longest = std::max(longest, block.steps.size());
    }
    std::vector<std::string> found;
    if (longest > kMostStepsOfBlock) {
      found.push_back(fmt::format("a thread block has {} steps: MSCCL's interpreter takes {}",
                                  longest, kMostStepsOfBlock));
    }
    if (algorithm_.lanes() > kMostChannels) {
      found.push_back(
          fmt::format("there are {} channels: NCCL has {}", algorithm_.lanes(), kMostChannels));
    }
    return found;
  }

  const CollectiveTask& task_;
  const CollectiveAlgorithm& algorithm_;
  std::uint32_t members_;
  std::vector<std::uint32_t> owner_{};  // by shard, of all-gathers and reduce-scatters
  std::vector<WrittenGpu> gpus_;
  std::vector<Turn> turns_;  // lane by lane
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::vector<Message>>
      inboxes_{};  // by lane, round, receiver
};

}  // namespace

MscclExport export_msccl(const CollectiveTask& task, const CollectiveAlgorithm& algorithm,
                         std::string_view name) {
  return MscclWriter(task, algorithm).write(name);
}

}  // namespace stepsim
