#include "import/job_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <system_error>

#include "proto/messages/json_value.h"
#include "sim/base/field_text.h"
#include "sim/base/input_file.h"

namespace stepsim {
namespace {

constexpr std::size_t kMostJobProblems = 20;
constexpr std::int64_t kMostJobRanks = 1 << 20;
constexpr std::size_t kMostDivisions = 64;
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::array kNodeKinds = {TraceNodeKind::kNothing,    TraceNodeKind::kKernel,
                                   TraceNodeKind::kGap,        TraceNodeKind::kOther,
                                   TraceNodeKind::kCollective, TraceNodeKind::kSend,
                                   TraceNodeKind::kReceive};

bool is_message(TraceNodeKind kind) {
  return kind == TraceNodeKind::kSend || kind == TraceNodeKind::kReceive;
}

void append_node(std::string& text, const TraceNode& node,
                 std::span<const std::uint32_t> dependencies) {
  text += fmt::format(R"({{"kind": "{}", "name": {})", name_of(node.kind), node.name);
  if (node.lane) text += fmt::format(R"(, "lane": {})", *node.lane);
  if (node.kind == TraceNodeKind::kCollective) {
    text += fmt::format(R"(, "op": "{}", "group": {})", name_of(node.op), node.group);
    if (node.root > 0) text += fmt::format(R"(, "root": {})", node.root);
  }
  if (is_message(node.kind)) {
    text += fmt::format(R"(, "peer": {}, "tag": {})", node.peer, node.tag);
  }
  if (node.time) text += fmt::format(R"(, "time_ps": {})", node.time->count());
  if (node.flops > Flops()) text += fmt::format(R"(, "flops": {:.17g})", node.flops.value());
  if (node.bytes > Bytes()) text += fmt::format(R"(, "bytes": {})", node.bytes.value());
  if (!dependencies.empty()) {
    text += fmt::format(R"(, "after": [{}])", fmt::join(dependencies, ", "));
  }
  text += "}";
}

class JobReader {
 public:
  JobReader(const Json& root, const std::string& path, std::vector<Problem>& problems)
      : root_(root), path_(path), problems_(problems) {}

  std::optional<TraceJob> read() {
    const std::size_t before = problems_.size();
    if (whole(root_, "stepsim_workload", "stepsim_workload", 1, 1, 0) != 1) {
      refuse("stepsim_workload", "must be 1");
      return std::nullopt;
    }
    job_.ranks = static_cast<std::uint32_t>(whole(root_, "ranks", "ranks", 1, kMostJobRanks, 1));
    if (const Json* source = find(root_, "source"); source != nullptr && source->is_string()) {
      job_.source = shortened(source->get<std::string>());
    }
    read_names();
    read_groups();
    read_divisions();
    read_programs();
    if (problems_.size() > before) return std::nullopt;
    return std::move(job_);
  }

 private:
  void refuse(const std::string& field, const std::string& message) {
    if (problems_.size() < kMostJobProblems) problems_.push_back({path_ + ": " + field, message});
  }
  static const Json* find(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found == object.end() ? nullptr : &*found;
  }
  const Json& list(const char* key) {
    static const Json kEmpty = Json::array();
    const Json* found = find(root_, key);
    if (found != nullptr && found->is_array()) return *found;
    refuse(key, "must be a list");
    return kEmpty;
  }

  // A member that must be a whole number; `missing` if it is not given.
  std::int64_t whole(const Json& object, const char* key, const std::string& field,
                     std::int64_t low, std::int64_t high, std::int64_t missing) {
    const Json* found = find(object, key);
    if (found == nullptr) return missing;
    return whole(*found, field, low, high);
  }
  std::int64_t whole(const Json& value, const std::string& field, std::int64_t low,
                     std::int64_t high) {
    const bool is_signed = value.is_number_integer() &&
                           (!value.is_number_unsigned() ||
                            value.get<std::uint64_t>() <= static_cast<std::uint64_t>(kMost));
    if (is_signed && value.get<std::int64_t>() >= low && value.get<std::int64_t>() <= high) {
      return value.get<std::int64_t>();
    }
    refuse(field, fmt::format("must be a whole number, {} to {}, is {}", low, high, shown(value)));
    return low;
  }

  void read_names() {
    for (const Json& name : list("names")) {
      job_.names.push_back(name.is_string() ? shortened(name.get<std::string>(), 120) : "");
      if (!name.is_string()) refuse("names", "must be texts");
    }
  }

  void read_groups() {
    for (const Json& group : list("groups")) {
      std::vector<std::uint32_t> ranks;
      if (!group.is_array()) refuse("groups", "must be lists of ranks");
      for (const Json& rank : group) {
        ranks.push_back(
            static_cast<std::uint32_t>(whole(rank, "groups", 0, std::int64_t{job_.ranks} - 1)));
      }
      std::vector<std::uint32_t> sorted = ranks;
      std::ranges::sort(sorted);
      if (std::ranges::adjacent_find(sorted) != sorted.end()) {
        refuse("groups", "must have different ranks");
      }
      job_.groups.push_back(std::move(ranks));
    }
    if (job_.groups.empty() || job_.groups[0] != all_ranks(job_.ranks)) {
      refuse("groups", "the first must have all ranks, from 0 on");
    }
  }

  // Each has every rank once, in groups of one size.
  void read_divisions() {
    if (find(root_, "divisions") == nullptr || job_.groups.empty()) return;
    const auto groups = static_cast<std::int64_t>(job_.groups.size());
    const Json& divisions = list("divisions");
    if (divisions.size() > kMostDivisions) return refuse("divisions", "must be at most 64");
    for (const Json& division : divisions) {
      std::vector<std::uint32_t>& numbers = job_.divisions.emplace_back();
      std::vector<bool> is_there(job_.ranks);
      std::size_t ranks = 0;
      for (const Json& number : division.is_array() ? division : Json::array()) {
        numbers.push_back(static_cast<std::uint32_t>(whole(number, "divisions", 0, groups - 1)));
        for (const std::uint32_t rank : job_.groups[numbers.back()]) {
          ranks += is_there[rank] ? 0U : 1U;
          is_there[rank] = true;
        }
      }
      const bool is_whole = ranks == job_.ranks &&
                            numbers.size() * job_.groups[numbers[0]].size() == job_.ranks &&
                            std::ranges::all_of(numbers, [&](std::uint32_t number) {
                              return job_.groups[number].size() == job_.groups[numbers[0]].size();
                            });
      if (!is_whole) refuse("divisions", "must be groups of one size that have each rank once");
      if (numbers.empty()) numbers.push_back(0);
    }
  }

  void read_programs() {
    const Json& programs = list("programs");
    if (!job_.divisions.empty() && programs.size() != 1) {
      refuse("programs", "must be one where there are divisions");
    }
    if (programs.size() != job_.ranks && programs.size() != 1) {
      refuse("programs", "must be one, or one a rank");
    }
    for (const Json& program : programs) {
      if (!program.is_array()) {
        refuse("programs", "must be lists of nodes");
        continue;
      }
      job_.programs.emplace_back();
      for (const Json& node : program) read_node(node, program.size());
    }
  }

  void read_node(const Json& object, std::size_t nodes) {
    TraceRank& rank = job_.programs.back();
    const std::string field =
        fmt::format("programs[{}][{}]", job_.programs.size() - 1, rank.nodes.size());
    TraceNode node;
    std::vector<std::uint32_t> dependencies;
    if (object.is_object()) {
      fill(object, field, node);
      if (const Json* after = find(object, "after"); after != nullptr && after->is_array()) {
        for (const Json& before : *after) {
          dependencies.push_back(static_cast<std::uint32_t>(
              whole(before, field + ".after", 0, static_cast<std::int64_t>(nodes) - 1)));
        }
      }
    } else {
      refuse(field, "must be an object");
    }
    rank.add(node, dependencies);
  }

  void fill(const Json& object, const std::string& field, TraceNode& node) {
    const Json* kind = find(object, "kind");
    const std::string name = kind != nullptr && kind->is_string() ? kind->get<std::string>() : "";
    const auto* const known = std::ranges::find(
        kNodeKinds, name, [](TraceNodeKind one) { return std::string(name_of(one)); });
    if (known == kNodeKinds.end()) {
      refuse(field + ".kind",
             "must be nothing, kernel, gap, other, collective, send or receive, is \"" +
                 shortened(name) + "\"");
      return;
    }
    node.kind = *known;
    const auto number = [&](const char* key, std::int64_t high) {
      return whole(object, key, field + "." + key, 0, high, 0);
    };
    node.name = static_cast<std::uint32_t>(
        number("name", static_cast<std::int64_t>(job_.names.size()) - 1));
    if (find(object, "lane") != nullptr) {
      node.lane = static_cast<std::uint32_t>(number("lane", 0x7fffffff));
    }
    if (find(object, "time_ps") != nullptr) node.time = Duration(number("time_ps", kMost));
    node.bytes = Bytes(number(
        "bytes", node.kind == TraceNodeKind::kKernel ? kMost : kMostCollectiveBytes.value()));
    if (const Json* flops = find(object, "flops"); flops != nullptr) {
      const bool fits = flops->is_number() && flops->get<double>() >= 0;
      if (!fits) refuse(field + ".flops", "must be a number, is " + shown(*flops));
      node.flops = Flops(fits ? flops->get<double>() : 0);
    }
    node.peer = static_cast<std::uint32_t>(number("peer", std::int64_t{job_.ranks} - 1));
    node.tag =
        whole(object, "tag", field + ".tag", std::numeric_limits<std::int64_t>::min(), kMost, 0);
    fill_collective(object, field, node);
  }

  void fill_collective(const Json& object, const std::string& field, TraceNode& node) {
    if (node.kind != TraceNodeKind::kCollective || job_.groups.empty()) return;
    const auto groups = static_cast<std::int64_t>(job_.divisions.empty() ? job_.groups.size()
                                                                         : job_.divisions.size());
    node.group =
        static_cast<std::uint32_t>(whole(object, "group", field + ".group", 0, groups - 1, 0));
    const auto members =
        static_cast<std::int64_t>(job_.groups[job_.first_group(node.group)].size());
    node.root = static_cast<std::uint32_t>(
        whole(object, "root", field + ".root", 0, std::max<std::int64_t>(0, members - 1), 0));
    const Json* op = find(object, "op");
    const std::string name = op != nullptr && op->is_string() ? op->get<std::string>() : "";
    const auto* const known = std::ranges::find(
        kCollectiveOps, name, [](CollectiveOp one) { return std::string(name_of(one)); });
    if (known == kCollectiveOps.end()) {
      refuse(field + ".op",
             "must be a collective such as all-reduce, is \"" + shortened(name) + "\"");
    } else {
      node.op = *known;
    }
  }

  const Json& root_;
  const std::string& path_;
  std::vector<Problem>& problems_;
  TraceJob job_;
};

}  // namespace

std::string job_text(const TraceJob& job) {
  std::string text =
      fmt::format("{{\"stepsim_workload\": 1, \"source\": {}, \"ranks\": {},\n \"groups\": [",
                  json_text(Json(job.source)), job.ranks);
  for (std::size_t group = 0; group < job.groups.size(); ++group) {
    text += fmt::format("{}[{}]", group == 0 ? "" : ", ", fmt::join(job.groups[group], ", "));
  }
  for (std::size_t i = 0; i < job.divisions.size(); ++i) {
    text += fmt::format("{}[{}]", i == 0 ? "],\n \"divisions\": [" : ", ",
                        fmt::join(job.divisions[i], ", "));
  }
  text += "],\n \"names\": " + json_text(Json(job.names)) + ",\n \"programs\": [";
  for (const TraceRank& program : job.programs) {
    text += &program == &job.programs.front() ? "\n  [" : ",\n  [";
    for (std::size_t node = 0; node < program.nodes.size(); ++node) {
      if (node > 0) text += ",\n   ";
      append_node(text, program.nodes[node], program.dependencies_of(node));
    }
    text += "]";
  }
  return text + "]}\n";
}

bool looks_like_job(const std::string& path) {
  std::error_code error;
  if (!path.ends_with(".json") || !std::filesystem::is_regular_file(path, error)) return false;
  InputFile file(path, InputKind::kCase);
  std::array<char, 64> block{};
  const std::size_t size = file.read(block);
  return std::string_view(block.data(), size).find("\"stepsim_workload\"") !=
         std::string_view::npos;
}

std::optional<TraceJob> read_job(std::string_view text, const std::string& path,
                                 std::vector<Problem>& problems) {
  const JsonOrProblem read = parse_json(text);
  if (read.value && read.value->is_object()) return JobReader(*read.value, path, problems).read();
  problems.push_back({path, read.value ? "must be a workload of stepsim import" : read.problem});
  return std::nullopt;
}

}  // namespace stepsim
