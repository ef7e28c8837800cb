#include "import/aicb/aicb.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "import/input_bytes.h"
#include "sim/base/field_text.h"

namespace stepsim {
namespace {

constexpr std::size_t kMostAicbProblems = 20;
constexpr std::int64_t kMostAicbTime = std::numeric_limits<std::int64_t>::max() / 1000;

// The groups that a rank is a member of.
enum class AicbGroup : std::uint8_t { kTensor, kData, kExpert, kExpertData, kAll };

struct AicbWork {
  std::int64_t nanoseconds = 0;
  std::optional<CollectiveOp> op{};
  std::int64_t bytes = 0;
  AicbGroup group = AicbGroup::kTensor;
};

struct AicbRow {
  std::string name;
  std::array<AicbWork, 3> works{};  // forward, input gradient, weight gradient
};

struct AicbSizes {
  std::uint32_t ranks = 0;
  std::uint32_t tensor = 1;
  std::uint32_t expert = 1;
  std::uint32_t pipeline = 1;
};

class AicbReader {
 public:
  AicbReader(const std::string& path, std::uint32_t ranks, std::vector<Problem>& problems)
      : path_(short_name(path)), problems_(problems) {
    sizes_.ranks = ranks;
  }

  AicbJob read(std::string_view text) {
    std::vector<std::string_view> lines;
    for (const std::string_view line : split_text(text, '\n')) {
      if (!words_of(line).empty()) lines.push_back(line);
    }
    if (lines.size() < 3) {
      refuse("has no rows: it must have a header, their number, and rows of 12 columns");
      return {};
    }
    read_header(words_of(lines[0]));
    const std::vector<std::string_view> counted = words_of(lines[1]);
    const auto count = number_in<std::size_t>(counted[0]);
    if (counted.size() != 1 || !count || *count != lines.size() - 2) {
      line_ = 2;
      refuse(fmt::format("must be the number of rows, {}, is {}", lines.size() - 2,
                         shortened(counted[0])));
    }
    for (std::size_t i = 2; i < lines.size(); ++i) {
      line_ = i + 1;
      read_row(words_of(lines[i]));
      if (problems_.size() >= kMostAicbProblems) return {};
    }
    check_sizes();
    if (!problems_.empty()) return {};
    return make();
  }

 private:
  void refuse(const std::string& message) {
    if (problems_.size() < kMostAicbProblems) {
      problems_.push_back({fmt::format("{}:{}", path_, line_), message});
    }
  }

  // "model_parallel_NPU_group: 8 ep: 1 pp: 1 all_gpus: 128 ..."
  void read_header(const std::vector<std::string_view>& words) {
    is_micro_ = words[0] == "MICRO";
    if (!is_micro_ && words[0] != "HYBRID_TRANSFORMER_FWD_IN_BCKWD" &&
        words[0] != "HYBRID_TRANSFORMER") {
      refuse("must begin with HYBRID_TRANSFORMER_FWD_IN_BCKWD or MICRO, is " + shortened(words[0]));
    }
    const std::map<std::string_view, std::uint32_t*> known = {
        {"model_parallel_NPU_group:", &sizes_.tensor},
        {"ep:", &sizes_.expert},
        {"pp:", &sizes_.pipeline},
        {"all_gpus:", &stated_ranks_}};
    for (std::size_t i = 1; i + 1 < words.size(); i += 2) {
      const auto found = known.find(words[i]);
      if (found == known.end()) continue;
      const auto number = number_in<std::uint32_t>(words[i + 1]);
      if (!number || *number < 1 || *number > (1U << 20)) {
        refuse(std::string(words[i]) + " must be a number, 1 to 1048576, is " +
               shortened(words[i + 1]));
      } else {
        *found->second = *number;
      }
    }
  }

  void read_row(const std::vector<std::string_view>& words) {
    if (words.size() != 12) {
      return refuse(fmt::format("must have 12 columns, has {}", words.size()));
    }
    AicbRow row{.name = shortened(words[0])};
    for (std::size_t pass = 0; pass < 3; ++pass) {
      AicbWork& work = row.works[pass];
      const auto time = number_in<std::int64_t>(words[2 + 3 * pass]);
      const auto bytes = number_in<std::int64_t>(words[4 + 3 * pass]);
      if (!time || *time < 0 || *time > kMostAicbTime) {
        refuse("must have whole nanoseconds, is " + shortened(words[2 + 3 * pass]));
      }
      if (!bytes || *bytes < 0 || *bytes > kMostCollectiveBytes.value()) {
        refuse("must have bytes, 0 to 16 TiB, is " + shortened(words[4 + 3 * pass]));
      }
      work.nanoseconds = time.value_or(0);
      work.bytes = bytes.value_or(0);
      read_collective(words[3 + 3 * pass], pass, work);
    }
    rows_.push_back(std::move(row));
  }

  void read_collective(std::string_view name, std::size_t pass, AicbWork& work) {
    work.group = is_micro_ ? AicbGroup::kAll : pass == 2 ? AicbGroup::kData : AicbGroup::kTensor;
    const std::string_view whole = name;
    if (name.ends_with("_DP_EP")) {
      work.group = AicbGroup::kExpertData;
      name.remove_suffix(6);
    } else if (name.ends_with("_EP")) {
      work.group = AicbGroup::kExpert;
      name.remove_suffix(3);
    }
    static const std::map<std::string_view, CollectiveOp> kOps = {
        {"ALLREDUCE", CollectiveOp::kAllReduce},
        {"ALLGATHER", CollectiveOp::kAllGather},
        {"REDUCESCATTER", CollectiveOp::kReduceScatter},
        {"ALLTOALL", CollectiveOp::kAllToAll},
        {"BROADCAST", CollectiveOp::kBroadcast}};
    if (name == "NONE") return;
    const auto found = kOps.find(name);
    if (found == kOps.end()) {
      return refuse(
          "must be NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER, ALLTOALL or BROADCAST, is " +
          shortened(whole));
    }
    work.op = found->second;
  }

  void check_sizes() {
    line_ = 1;
    if (stated_ranks_ > 0 && sizes_.ranks > 0 && sizes_.ranks != stated_ranks_) {
      refuse(fmt::format("has all_gpus: {}, but --ranks is {}", stated_ranks_, sizes_.ranks));
    }
    if (sizes_.ranks == 0) sizes_.ranks = stated_ranks_;
    if (sizes_.ranks == 0) return refuse("does not say how many ranks there are: --ranks says so");
    // The rows are those of one stage.
    if (sizes_.ranks % sizes_.pipeline != 0) return refuse("pp must divide all_gpus");
    sizes_.ranks /= sizes_.pipeline;
    if (sizes_.ranks % sizes_.tensor != 0) {
      return refuse("model_parallel_NPU_group must divide the ranks of a stage");
    }
    if (sizes_.ranks / sizes_.tensor % sizes_.expert != 0) {
      refuse("ep must divide the data-parallel ranks");
    }
  }

  // first, first + stride, ...: so many ranks.
  struct Members {
    std::uint32_t first = 0;
    std::uint32_t stride = 1;
    std::uint32_t count = 1;

    friend auto operator<=>(const Members&, const Members&) = default;
  };

  // The ranks that share a group with `rank`.
  Members members(AicbGroup group, std::uint32_t rank) const {
    const std::uint32_t tensor = sizes_.tensor;
    std::uint32_t first = rank % tensor;
    std::uint32_t stride = tensor;
    std::uint32_t count = sizes_.ranks / tensor;
    const std::uint32_t data = rank / tensor;
    switch (group) {
      case AicbGroup::kTensor:
        first = rank - rank % tensor;
        stride = 1;
        count = tensor;
        break;
      case AicbGroup::kData:
        break;
      case AicbGroup::kExpert:
        first += (data - data % sizes_.expert) * tensor;
        count = sizes_.expert;
        break;
      case AicbGroup::kExpertData:
        first += data % sizes_.expert * tensor;
        stride *= sizes_.expert;
        count /= sizes_.expert;
        break;
      case AicbGroup::kAll:
        return {.first = 0, .stride = 1, .count = sizes_.ranks};
    }
    return {.first = first, .stride = count == 1 ? 1 : stride, .count = count};
  }

  // Returns the number of the division of all ranks into such groups.
  std::uint32_t number_of_division(AicbGroup group) {
    const Members first = members(group, 0);
    if (first.count == sizes_.ranks) return 0;
    TraceJob& job = read_.job;
    const auto [found, is_new] =
        divisions_.try_emplace(group, static_cast<std::uint32_t>(job.divisions.size()));
    if (!is_new) return found->second;
    std::vector<std::uint32_t>& division = job.divisions.emplace_back();
    for (std::uint32_t rank = 0; rank < sizes_.ranks; ++rank) {
      const Members of = members(group, rank);
      if (of.first != rank) continue;
      const auto [number, is_new_group] =
          numbers_.try_emplace(of, static_cast<std::uint32_t>(job.groups.size()));
      if (is_new_group) {
        std::vector<std::uint32_t>& ranks = job.groups.emplace_back();
        for (std::uint32_t i = 0; i < of.count; ++i) ranks.push_back(of.first + i * of.stride);
      }
      division.push_back(number->second);
    }
    return found->second;
  }

  void add_work(const AicbRow& row, const AicbWork& work) {
    TraceRank& program = read_.job.programs.back();
    const auto last = [&] {
      return std::vector<std::uint32_t>(program.nodes.empty() ? 0 : 1, blocking_);
    };
    TraceNode node;
    node.kind = TraceNodeKind::kKernel;
    node.name = name_;
    node.lane = 0;
    node.time = Duration(1000) * work.nanoseconds;
    program.add(node, last());
    blocking_ = static_cast<std::uint32_t>(program.nodes.size() - 1);
    if (!work.op) return;
    TraceNode collective;
    collective.kind = TraceNodeKind::kCollective;
    collective.op = *work.op;
    collective.name = name_;
    collective.group = number_of_division(work.group);
    collective.bytes = Bytes(work.bytes);
    program.add(collective, last());
    // Nothing waits for gradients of weights.
    const bool blocks = &work != &row.works[2];
    if (blocks) blocking_ = static_cast<std::uint32_t>(program.nodes.size() - 1);
  }

  AicbJob make() {
    TraceJob& job = read_.job;
    job.source = "aicb";
    job.ranks = sizes_.ranks;
    job.groups = {all_ranks(sizes_.ranks)};
    TraceNames names(job.names);
    job.divisions = {{0}};
    job.programs.emplace_back();  // all ranks do the same
    for (const AicbRow& row : rows_) {
      name_ = names.number(row.name);
      add_work(row, row.works[0]);
    }
    for (std::size_t i = rows_.size(); i > 0; --i) {
      name_ = names.number(rows_[i - 1].name);
      add_work(rows_[i - 1], rows_[i - 1].works[1]);
      add_work(rows_[i - 1], rows_[i - 1].works[2]);
    }
    read_.notes.emplace_back("times are taken as nanoseconds; rows that were not measured have 1");
    if (!is_micro_) {
      read_.notes.emplace_back(
          "collectives of forward and input gradients run in tensor groups, those of weight "
          "gradients "
          "in data groups; the last column, the update, has no counterpart");
    }
    if (sizes_.pipeline > 1) {
      read_.notes.push_back(
          fmt::format("the rows are those of one of {} stages: its ranks are "
                      "replayed, without messages between stages",
                      sizes_.pipeline));
    }
    return std::move(read_);
  }

  const std::string path_;
  std::vector<Problem>& problems_;
  AicbSizes sizes_;
  std::uint32_t stated_ranks_ = 0;
  bool is_micro_ = false;
  std::size_t line_ = 1;
  std::vector<AicbRow> rows_;
  AicbJob read_;
  std::map<AicbGroup, std::uint32_t> divisions_;
  std::map<Members, std::uint32_t> numbers_;
  std::uint32_t blocking_ = 0;  // the last node that others wait for
  std::uint32_t name_ = 0;
};

}  // namespace

AicbJob read_aicb(std::string_view text, const std::string& path, std::uint32_t ranks,
                  std::vector<Problem>& problems) {
  return AicbReader(path, ranks, problems).read(text);
}

}  // namespace stepsim
