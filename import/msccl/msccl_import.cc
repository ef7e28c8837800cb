#include "import/msccl/msccl_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <tuple>

#include "import/input_bytes.h"
#include "import/xml_file.h"
#include "proto/collective_files.h"
#include "proto/messages/message_file.h"
#include "sim/base/field_text.h"
#include "sim/base/suggestion.h"

namespace stepsim {
namespace {

constexpr std::int64_t kMostGpus = 1024;
constexpr std::int64_t kMostChunks = 1 << 20;  // of a buffer
constexpr std::size_t kMostCells = 1U << 24;   // of all buffers
constexpr std::size_t kMostCounts = 1U << 24;  // rounds that are kept for other thread blocks
constexpr std::size_t kMostMoved = 1U << 22;   // blocks of all messages

struct MscclOp {
  std::string_view name;
  CollectiveOp op;
};
constexpr std::array<MscclOp, 6> kMscclOps = {{{"allreduce", CollectiveOp::kAllReduce},
                                               {"allgather", CollectiveOp::kAllGather},
                                               {"reduce_scatter", CollectiveOp::kReduceScatter},
                                               {"reducescatter", CollectiveOp::kReduceScatter},
                                               {"alltoall", CollectiveOp::kAllToAll},
                                               {"broadcast", CollectiveOp::kBroadcast}}};

// What a step does, of receiving, adding, storing and sending, in that order.
struct StepType {
  std::string_view name;
  bool receives = false;
  bool adds = false;    // what the source buffer has
  bool stores = false;  // in the destination buffer
  bool sends = false;
};
constexpr std::array<StepType, 10> kStepTypes = {{
    {.name = "s", .sends = true},
    {.name = "r", .receives = true, .stores = true},
    {.name = "rcs", .receives = true, .stores = true, .sends = true},
    {.name = "rrs", .receives = true, .adds = true, .sends = true},
    {.name = "rrc", .receives = true, .adds = true, .stores = true},
    {.name = "rrcs", .receives = true, .adds = true, .stores = true, .sends = true},
    {.name = "cpy", .stores = true},
    {.name = "re", .adds = true, .stores = true},
    {.name = "nop"},
    {.name = "rs", .receives = true, .sends = true},
}};

using Blocks = std::vector<std::int32_t>;  // -1: nothing
using Rounds = std::vector<std::int32_t>;  // by lane: the last that must be over; -1: none

struct Place {
  char buffer = 'i';
  std::uint32_t offset = 0;
};

struct Step {
  pugi::xml_node node;
  const StepType* type = nullptr;
  Place source;
  Place target;
  std::uint32_t count = 0;
  std::optional<std::pair<std::uint32_t, std::uint32_t>> after;  // thread block, step
  bool is_awaited = false;
};

struct ThreadBlock {
  std::optional<std::uint32_t> send;
  std::optional<std::uint32_t> receive;
  std::uint32_t channel = 0;
  std::vector<Step> steps;
  std::size_t next = 0;                // step
  std::int32_t sent = -1;              // round of its last message
  Rounds waits;                        // what everything after it waits for
  std::map<std::size_t, Rounds> past;  // waits behind the steps that others wait for
};

struct MscclGpu {
  std::map<std::uint32_t, std::uint32_t> block_of;  // thread block by its id
  std::vector<ThreadBlock> blocks;
  std::array<Blocks, 3> buffers;                       // i, o, s
  std::array<std::vector<std::int32_t>, 3> came_with;  // by chunk: the message that brought it; -1
};

struct InFlight {
  Blocks blocks;
  std::uint32_t lane = 0;
  std::int32_t round = 0;
  std::size_t step = 0;  // of the list
};

class MscclReader {
 public:
  MscclReader(const ImportRequest& request, std::vector<Problem>& problems)
      : path_(short_name(request.files[0])),
        problems_(problems),
        xml_(request.files[0], problems) {}

  Imported read() {
    if (!problems_.empty()) return {};
    read_algorithm(xml_.root());
    if (!problems_.empty()) return {};
    fill_buffers();
    run();
    if (!problems_.empty()) return {};
    for (Problem& problem : problems_of(list_)) {
      problems_.push_back(
          {path_ + ": " + problem.field, "has no form of its own here: " + problem.message});
    }
    return problems_.empty() ? written() : Imported{};
  }

 private:
  // ---- reading ----

  void read_algorithm(pugi::xml_node root) {
    if (std::string_view(root.name()) != "algo") {
      return xml_.refuse(root, "must begin with <algo>, is <" + shortened(root.name()) + ">");
    }
    const std::string_view name = XmlFile::text(root, "coll");
    const auto* const op = std::ranges::find(kMscclOps, name, &MscclOp::name);
    if (op == kMscclOps.end()) {
      std::vector<std::string> names;
      for (const MscclOp& known : kMscclOps) names.emplace_back(known.name);
      return xml_.refuse(root, "coll must be " + either_of(names) + ", is \"" + shortened(name) +
                                   "\"" + did_you_mean(name, names));
    }
    list_.op = op->op;
    list_.name = std::string(XmlFile::text(root, "name"));
    members_ = static_cast<std::uint32_t>(xml_.number(root, "ngpus", 2, kMostGpus));
    is_in_place_ = xml_.number(root, "outofplace", 0, 1, 1) == 0;
    bytes_ = {xml_.number(root, "minBytes", 0, 1LL << 50, 0),
              xml_.number(root, "maxBytes", 0, 1LL << 50, 0)};
    if (!problems_.empty()) return;
    gpus_.resize(members_);
    std::vector<bool> is_there(members_);
    for (const pugi::xml_node node : root.children()) {
      if (std::string_view(node.name()) != "gpu") {
        xml_.refuse(node, "must be <gpu> in <algo>, is <" + shortened(node.name()) + ">");
        continue;
      }
      const auto id = static_cast<std::size_t>(xml_.number(node, "id", 0, members_ - 1));
      if (is_there[id]) xml_.refuse(node, fmt::format("gpu {} is given twice", id));
      is_there[id] = true;
      read_gpu(node, gpus_[id]);
    }
    const auto missing = std::ranges::find(is_there, false);
    if (missing != is_there.end()) {
      xml_.refuse(root, fmt::format("must have {} GPUs, has no gpu {}", members_,
                                    missing - is_there.begin()));
    }
  }

  void read_gpu(pugi::xml_node node, MscclGpu& gpu) {
    constexpr std::array kNames = {"i_chunks", "o_chunks", "s_chunks"};
    for (std::size_t buffer = 0; buffer < kNames.size(); ++buffer) {
      const std::int64_t chunks = xml_.number(node, kNames[buffer], 0, kMostChunks, 0);
      cells_ += static_cast<std::size_t>(chunks);
      if (cells_ > kMostCells) return xml_.refuse(node, "has more than 16 million chunks");
      gpu.buffers[buffer].assign(static_cast<std::size_t>(chunks), -1);
      gpu.came_with[buffer].assign(static_cast<std::size_t>(chunks), -1);
    }
    for (const pugi::xml_node child : node.children("tb")) {
      const auto id = static_cast<std::uint32_t>(xml_.number(child, "id", 0, kMostGpus * 16));
      const auto place = static_cast<std::uint32_t>(gpu.blocks.size());
      if (!gpu.block_of.emplace(id, place).second) {
        xml_.refuse(child, fmt::format("thread block {} is given twice", id));
      }
      read_block(child, gpu.blocks.emplace_back());
    }
    lanes_ = std::max(lanes_, gpu.blocks.size());
    for (ThreadBlock& block : gpu.blocks) find_dependencies(gpu, block);
  }

  void read_block(pugi::xml_node node, ThreadBlock& block) {
    const auto peer = [&](const char* name) -> std::optional<std::uint32_t> {
      const std::int64_t number = xml_.number(node, name, -1, members_ - 1);
      if (number < 0) return std::nullopt;
      return static_cast<std::uint32_t>(number);
    };
    block.send = peer("send");
    block.receive = peer("recv");
    block.channel = static_cast<std::uint32_t>(xml_.number(node, "chan", 0, 1 << 16));
    for (const pugi::xml_node child : node.children("step")) {
      if (problems_.size() >= kMostXmlProblems) return;
      Step& step = block.steps.emplace_back();
      step.node = child;
      const std::int64_t number = xml_.number(child, "s", 0, 1 << 24);
      if (number != static_cast<std::int64_t>(block.steps.size()) - 1) {
        xml_.refuse(child, fmt::format("s must be {}, the place of the step, is {}",
                                       block.steps.size() - 1, number));
      }
      read_step(child, block, step);
    }
  }

  void read_step(pugi::xml_node node, const ThreadBlock& block, Step& step) {
    const std::string_view name = XmlFile::text(node, "type");
    step.type = &*std::ranges::find_if(kStepTypes, [&](const StepType& type) {
      return type.name == name || &type == &kStepTypes.back();
    });
    if (step.type->name != name || name == "rs") {
      return xml_.refuse(node, "type must be s, r, rcs, rrs, rrc, rrcs, cpy, re or nop, is \"" +
                                   shortened(name) + "\"");
    }
    if (step.type->sends && !block.send)
      xml_.refuse(node, "sends, but its thread block has send=-1");
    if (step.type->receives && !block.receive) {
      xml_.refuse(node, "receives, but its thread block has recv=-1");
    }
    step.is_awaited = xml_.number(node, "hasdep", 0, 1, 0) == 1;
    const std::int64_t block_id = xml_.number(node, "depid", -1, 1 << 24, -1);
    const std::int64_t number = xml_.number(node, "deps", -1, 1 << 24, -1);
    if (block_id >= 0 && number >= 0) {
      step.after = {static_cast<std::uint32_t>(block_id), static_cast<std::uint32_t>(number)};
    }
    if (name == "nop") return;
    step.count = static_cast<std::uint32_t>(xml_.number(node, "cnt", 1, kMostChunks));
    step.source = place(node, "srcbuf", "srcoff");
    step.target = place(node, "dstbuf", "dstoff");
  }

  Place place(pugi::xml_node node, const char* buffer, const char* offset) {
    const std::string_view name = XmlFile::text(node, buffer);
    if (name != "i" && name != "o" && name != "s") {
      xml_.refuse(node, fmt::format("{} must be i, o or s, is \"{}\"", buffer, shortened(name)));
      return {};
    }
    return {name[0], static_cast<std::uint32_t>(xml_.number(node, offset, 0, kMostChunks))};
  }

  void find_dependencies(MscclGpu& gpu, ThreadBlock& block) {
    for (Step& step : block.steps) {
      if (!step.after) continue;
      const auto found = gpu.block_of.find(step.after->first);
      const bool is_there = found != gpu.block_of.end() &&
                            step.after->second < gpu.blocks[found->second].steps.size();
      if (!is_there) {
        xml_.refuse(step.node,
                    fmt::format("depends on step {} of thread block {}, which isn't there",
                                step.after->second, step.after->first));
        step.after.reset();
        continue;
      }
      step.after->first = found->second;
      gpu.blocks[found->second].steps[step.after->second].is_awaited = true;
    }
  }

  // ---- blocks of the collective ----

  // Puts the blocks into the input buffers.
  void fill_buffers() {
    const bool by_output = list_.op == CollectiveOp::kAllGather;
    const std::size_t chunks = gpus_[0].buffers[by_output ? 1 : 0].size();
    const bool by_member =
        list_.op != CollectiveOp::kAllReduce && list_.op != CollectiveOp::kBroadcast;
    const std::size_t input = by_output ? chunks / members_ : chunks;
    for (std::size_t member = 0; member < members_; ++member) {
      const std::size_t own = gpus_[member].buffers[0].size();
      const bool may_lack = is_in_place_ && own == 0;
      if (gpus_[member].buffers[by_output ? 1 : 0].size() != chunks ||
          (own != input && !may_lack)) {
        problems_.push_back(
            {path_, fmt::format("gpu {} must have as many chunks as gpu 0", member)});
      }
    }
    if (chunks == 0 || (by_member && chunks % members_ != 0)) {
      problems_.push_back({path_, fmt::format("buffers must have a multiple of {} chunks, have {}",
                                              members_, chunks)});
    }
    if (!problems_.empty()) return;
    list_.members = members_;
    list_.pieces = by_member ? static_cast<std::uint32_t>(chunks / members_) : 1;
    list_.shards = list_.op == CollectiveOp::kAllToAll ? members_ * members_
                   : by_member                         ? members_
                                                       : static_cast<std::uint32_t>(chunks);
    for (std::uint32_t member = 0; member < members_; ++member) {
      for (std::uint32_t chunk = 0; chunk < input; ++chunk) {
        if (list_.op == CollectiveOp::kBroadcast && member != 0) continue;
        *cell(member, {'i', chunk}) = static_cast<std::int32_t>(block_of_input(member, chunk));
      }
      for (ThreadBlock& block : gpus_[member].blocks) block.waits.assign(lanes_, -1);
    }
  }

  std::uint32_t block_of_input(std::uint32_t member, std::uint32_t chunk) const {
    const std::uint32_t shard = chunk / list_.pieces;
    const std::uint32_t piece = chunk % list_.pieces;
    switch (list_.op) {
      case CollectiveOp::kAllGather:
        return chunk * list_.shards + member;
      case CollectiveOp::kReduceScatter:
        return piece * list_.shards + shard;
      case CollectiveOp::kAllToAll:
        return piece * list_.shards + member * members_ + shard;
      default:
        return chunk;
    }
  }

  // In place, input and output are one buffer.
  Place aliased(std::uint32_t member, Place place) const {
    if (!is_in_place_ || place.buffer == 's') return place;
    const std::uint32_t first = member * list_.pieces;
    if (list_.op == CollectiveOp::kAllGather && place.buffer == 'i') {
      return {'o', place.offset + first};
    }
    if (list_.op == CollectiveOp::kReduceScatter && place.buffer == 'o') {
      return {'i', place.offset + first};
    }
    const bool is_one =
        list_.op == CollectiveOp::kAllReduce || list_.op == CollectiveOp::kBroadcast;
    return is_one ? Place{'i', place.offset} : place;
  }
  static std::size_t index_of(char buffer) { return buffer == 'i' ? 0 : buffer == 'o' ? 1 : 2; }

  // nullptr: the buffer has no such chunk.
  std::int32_t* cell(std::uint32_t member, Place place) {
    const Place at = aliased(member, place);
    Blocks& buffer = gpus_[member].buffers[index_of(at.buffer)];
    return at.offset < buffer.size() ? &buffer[at.offset] : nullptr;
  }
  std::int32_t& came_with(std::uint32_t member, Place place) {
    const Place at = aliased(member, place);
    return gpus_[member].came_with[index_of(at.buffer)][at.offset];
  }

  // ---- running ----

  void run() {
    bool is_moving = true;
    while (is_moving && problems_.empty()) {
      is_moving = false;
      for (std::uint32_t member = 0; member < members_; ++member) {
        for (std::uint32_t lane = 0; lane < gpus_[member].blocks.size(); ++lane) {
          while (problems_.empty() && run_step(member, lane)) is_moving = true;
        }
      }
    }
    for (std::uint32_t member = 0; member < members_ && problems_.empty(); ++member) {
      for (const ThreadBlock& block : gpus_[member].blocks) {
        if (block.next == block.steps.size()) continue;
        return xml_.refuse(block.steps[block.next].node,
                           fmt::format("never runs: gpu {} waits for a message or a step", member));
      }
    }
    if (list_.steps.empty()) problems_.push_back({path_, "sends nothing"});
  }

  // Returns false if the thread block is done, or has to wait.
  bool run_step(std::uint32_t member, std::uint32_t lane) {
    MscclGpu& gpu = gpus_[member];
    ThreadBlock& block = gpu.blocks[lane];
    if (block.next == block.steps.size()) return false;
    const Step& step = block.steps[block.next];
    std::deque<InFlight>* arriving = nullptr;
    if (step.type->receives) {
      arriving = &flying_[{*block.receive, member, block.channel}];
      if (arriving->empty()) return false;
    }
    if (step.after) {
      const ThreadBlock& other = gpu.blocks[step.after->first];
      if (other.next <= step.after->second) return false;
      wait_for(block, other.past.at(step.after->second));
    }
    std::optional<InFlight> message;
    if (arriving != nullptr) {
      message = std::move(arriving->front());
      arriving->pop_front();
      std::int32_t& round = block.waits[message->lane];
      round = std::max(round, message->round);
    }
    move(member, lane, step, message);
    if (step.is_awaited) {
      kept_ += lanes_;
      if (kept_ > kMostCounts)
        return xml_.refuse(step.node, "too many steps are waited for"), false;
      block.past[block.next] = block.waits;
    }
    ++block.next;
    return true;
  }

  static void wait_for(ThreadBlock& block, const Rounds& rounds) {
    for (std::size_t lane = 0; lane < rounds.size(); ++lane) {
      block.waits[lane] = std::max(block.waits[lane], rounds[lane]);
    }
  }

  void move(std::uint32_t member, std::uint32_t lane, const Step& step,
            const std::optional<InFlight>& message) {
    if (step.count == 0) return;
    if (message && message->blocks.size() != step.count) {
      return xml_.refuse(step.node, fmt::format("receives {} chunks, but {} were sent", step.count,
                                                message->blocks.size()));
    }
    Blocks blocks = message ? message->blocks : Blocks(step.count, -1);
    for (std::uint32_t i = 0; i < step.count; ++i) {
      const Place from{step.source.buffer, step.source.offset + i};
      const Place to{step.target.buffer, step.target.offset + i};
      const bool reads = !message || step.type->adds;
      const std::int32_t* const source = reads ? cell(member, from) : nullptr;
      std::int32_t* const target = step.type->stores ? cell(member, to) : nullptr;
      if ((reads && source == nullptr) || (step.type->stores && target == nullptr)) {
        return xml_.refuse(step.node, "reads or writes behind the end of its buffer");
      }
      if (message && step.type->adds) list_.steps[message->step].reduce = true;
      if (!add_chunk(member, step, from, to, source, target, blocks[i])) return;
      if (target == nullptr) continue;
      *target = blocks[i];
      came_with(member, to) = message ? static_cast<std::int32_t>(message->step) : -1;
    }
    if (step.type->sends) send(member, lane, step, std::move(blocks));
  }

  // Sets what the step makes of a chunk. Returns false, with a problem, if that is no block.
  bool add_chunk(std::uint32_t member, const Step& step, Place from, Place to,
                 const std::int32_t* source, const std::int32_t* target, std::int32_t& block) {
    if (step.type->receives) {
      if (step.type->adds && *source != block) return refuse_sum(step, *source, block);
      return true;
    }
    block = *source;
    if (block < 0) {
      xml_.refuse(step.node, "reads a chunk that nothing has filled");
      return false;
    }
    if (!step.type->adds) return true;
    if (*target != block) return refuse_sum(step, *target, block);
    // A partial sum that was put aside is added: it counts as added when it came.
    for (const std::int32_t brought : {came_with(member, from), came_with(member, to)}) {
      if (brought >= 0) list_.steps[static_cast<std::size_t>(brought)].reduce = true;
    }
    return true;
  }

  bool refuse_sum(const Step& step, std::int32_t a, std::int32_t b) {
    xml_.refuse(step.node, fmt::format("adds block {} to block {}", b, a));
    return false;
  }

  void send(std::uint32_t member, std::uint32_t lane, const Step& step, Blocks blocks) {
    ThreadBlock& block = gpus_[member].blocks[lane];
    moved_ += blocks.size();
    if (moved_ > kMostMoved) return xml_.refuse(step.node, "more than 4 million chunks are sent");
    const std::int32_t round = 1 + std::max(block.sent, *std::ranges::max_element(block.waits));
    ListedStep listed{.lane = lane,
                      .round = static_cast<std::uint32_t>(round),
                      .from = member,
                      .to = *block.send,
                      .blocks = {blocks.begin(), blocks.end()}};
    for (std::uint32_t other = 0; other < lanes_; ++other) {
      if (other == lane || block.waits[other] < 0) continue;
      listed.also_after.push_back({other, static_cast<std::uint32_t>(block.waits[other])});
    }
    block.sent = round;
    flying_[{member, *block.send, block.channel}].push_back(
        {std::move(blocks), lane, round, list_.steps.size()});
    list_.steps.push_back(std::move(listed));
  }

  // ---- writing ----

  Imported written() {
    Imported imported;
    imported.notes.emplace_back(
        "no counterpart: local copies and reductions take no time here; the "
        "library chooses the protocol");
    if (bytes_[1] > 0 || bytes_[0] > 0) {
      imported.notes.push_back(fmt::format(
          "no counterpart: minBytes {} and maxBytes {}: the algorithm is taken for any size",
          bytes_[0], bytes_[1]));
    }
    std::string& text = imported.text;
    for (const std::string& note : imported.notes) text += "# " + note + "\n";
    text += fmt::format("name: \"{}\"\nop: \"{}\"\nmembers: {}\nshards: {}\npieces: {}\n",
                        plain_name(), name_of(list_.op), list_.members, list_.shards, list_.pieces);
    for (const ListedStep& step : list_.steps) {
      text += fmt::format("step {{ lane: {} round: {} from: {} to: {}{} block: [{}]", step.lane,
                          step.round, step.from, step.to, step.reduce ? " reduce: true" : "",
                          fmt::join(step.blocks, ", "));
      for (const LaneGate& gate : step.also_after) {
        text += fmt::format(" also_after {{ lane: {} round: {} }}", gate.lane, gate.round);
      }
      text += " }\n";
    }
    imported.facts["op"] = std::string(name_of(list_.op));
    imported.facts["members"] = list_.members;
    imported.facts["steps"] = list_.steps.size();
    return imported;
  }

  std::string plain_name() const {
    std::string name = list_.name.empty() ? stem_of(path_) : list_.name;
    for (char& c : name) {
      const bool fits = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      if (!fits) c = '-';
    }
    return name.substr(0, 60);
  }

  const std::string path_;
  std::vector<Problem>& problems_;
  XmlFile xml_;
  StepList list_;
  std::uint32_t members_ = 0;
  bool is_in_place_ = false;
  std::array<std::int64_t, 2> bytes_{};
  std::size_t lanes_ = 0;
  std::size_t cells_ = 0;
  std::size_t kept_ = 0;
  std::size_t moved_ = 0;
  std::vector<MscclGpu> gpus_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::deque<InFlight>> flying_;
};

}  // namespace

Imported import_msccl(const ImportRequest& request) {
  std::vector<Problem> problems;
  Imported imported = MscclReader(request, problems).read();
  throw_if_any(std::move(problems));
  return imported;
}

}  // namespace stepsim
