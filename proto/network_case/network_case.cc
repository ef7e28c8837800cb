#include "proto/network_case/network_case.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "proto/network_case/case_elements.h"
#include "proto/network_case/case_fields.h"
#include "proto/network_case/case_transport.h"
#include "sim/base/error.h"
#include "sim/base/suggestion.h"

namespace stepsim {
namespace {

constexpr const char* kFlowFormat = "stepsim-oracle-flow/1";
constexpr const char* kPacketFormat = "stepsim-oracle-packet/1";

class CaseLoader {
 public:
  explicit CaseLoader(const std::string& path) : path_(path), file_(path, InputKind::kCase) {}

  NetworkCase load();

 private:
  bool wants(const std::string& list);
  void read_element(const std::string& list, std::size_t index, const Json& element);
  void read_link(CaseFields fields);
  void read_flow(CaseFields fields, std::size_t index);
  void read_route(CaseFields& fields, const Json& route);
  void check_ends(CaseFields& fields);
  void read_after(CaseFields& fields, const Json& after, std::size_t index, bool is_flow_kept);
  void read_expected(const Json& element);
  void check_format();
  void read_packet_rules();
  void read_transport();
  Bytes read_packet_size(const char* key, Bytes most);
  void check_dependences();

  struct Ends {
    std::uint32_t from;
    std::uint32_t to;
    bool are_known;
  };

  // EarlyReference is a flow that stands before the one it waits for.
  struct EarlyReference {
    std::size_t index;                  // index of the flow in the file
    std::size_t position;               // index in the flow's list
    std::optional<std::uint32_t> flow;  // unset: the flow is wrong and was not kept
    std::string after;
  };

  const std::string path_;
  InputFile file_;
  CaseProblems problems_;
  NetworkCase result_;
  std::set<std::string> lists_begun_;  // lists found in any pass over the file
  std::set<std::string> lists_to_read_{"links", "flows", "expect"};
  bool may_read_values_ = true;
  Json values_ = Json::object();        // plain values of the root object
  NameTable nodes_;                     // JSON texts, by NodeId
  std::vector<Ends> ends_;              // by LinkId
  std::vector<std::uint32_t> used_by_;  // by LinkId: number of the last flow that used it, plus one
  std::vector<LinkId> route_;           // route of one flow
  std::vector<EarlyReference> early_references_;
};

// A list can be read once the lists that it refers to have been read. Files with flows before links
// are read again for the flows.
bool CaseLoader::wants(const std::string& list) {
  lists_begun_.insert(list);
  if (!lists_to_read_.contains(list)) return false;
  if (list == "flows" && lists_to_read_.contains("links")) return false;
  if (list == "expect" && lists_to_read_.contains("flows")) return false;
  lists_to_read_.erase(list);
  return true;
}

NetworkCase CaseLoader::load() {
  const CaseVisitor visitor{
      .wants = [this](const std::string& list) { return wants(list); },
      .element = [this](const std::string& list, std::size_t index,
                        const Json& element) { read_element(list, index, element); },
      .value =
          [this](const std::string& key, const Json& value) {
            if (may_read_values_) values_[key] = value;
          }};
  bool is_readable = true;
  for (std::size_t to_read = 4; is_readable && lists_to_read_.size() < to_read;) {
    to_read = lists_to_read_.size();
    std::vector<Problem> problems = read_case_elements(file_, path_, visitor);
    is_readable = problems.empty();
    problems_.add(std::move(problems));
    may_read_values_ = false;
    if (lists_to_read_.empty()) break;
  }
  if (is_readable) {
    for (const char* const list : {"links", "flows"}) {
      if (!lists_begun_.contains(list)) problems_.add(list, "is missing");
    }
    check_format();
    check_dependences();
  }
  std::move(problems_).throw_if_any();
  return std::move(result_);
}

void CaseLoader::read_element(const std::string& list, std::size_t index, const Json& element) {
  if (list == "expect") {
    read_expected(element);
    return;
  }
  const CaseFields fields(list, index, element, problems_);
  if (list == "links") {
    read_link(fields);
  } else {
    read_flow(fields, index);
  }
}

void CaseLoader::read_link(CaseFields fields) {
  const std::optional<std::string> id = fields.id("id");
  const std::optional<std::string> from = fields.id("from");
  const std::optional<std::string> to = fields.id("to");
  const double capacity = fields.positive("capacity_Bps").value_or(1);
  const std::optional<Duration> latency = fields.duration("latency_s", "latency_ps");
  if (!id) return;
  if (!result_.link_ids.add(*id)) {
    fields.complain("id", fmt::format("{} is the id of an earlier link too", *id));
    return;
  }
  const auto node = [this](const std::optional<std::string>& name) {
    const std::uint32_t number = nodes_.find_or_add(name.value_or("?"));
    if (number == result_.fabric.nodes().size()) {
      result_.fabric.add(NodeKind::kSwitch, std::string(plain_id(nodes_.name(number))));
    }
    return number;
  };
  const Ends ends{node(from), node(to), from && to};
  ends_.push_back(ends);
  used_by_.push_back(0);
  // A wrong link is kept, so that flows can be checked against its id.
  result_.fabric.connect_one_way(NodeId(ends.from), NodeId(ends.to), Bandwidth(capacity),
                                 latency.value_or(Duration::zero()));
}

void CaseLoader::read_flow(CaseFields fields, std::size_t index) {
  const std::optional<std::string> id = fields.id("id");
  const std::optional<std::int64_t> bytes = fields.whole("bytes");
  const std::optional<Duration> start = fields.duration("start_s", "start_ps");
  const bool is_kept = id && result_.flow_ids.add(*id);
  if (id && !is_kept) {
    fields.complain("id", fmt::format("{} is the id of an earlier flow too", *id));
  }
  route_.clear();
  const Json* const route = fields.list("route");
  if (route != nullptr && route->empty())
    fields.complain("route", "must have at least one link, is empty");
  if (route != nullptr) read_route(fields, *route);
  const Json* const after = fields.list("after");
  if (after != nullptr) read_after(fields, *after, index, is_kept);
  if (!is_kept) return;
  result_.flows.add(Time{start.value_or(Duration::zero())}, Bytes(bytes.value_or(0)), route_);
}

void CaseLoader::read_route(CaseFields& fields, const Json& route) {
  bool is_complete = true;
  const auto flow = static_cast<std::uint32_t>(result_.flows.flows.size());
  for (std::size_t i = 0; i < route.size(); ++i) {
    const std::string field = fmt::format("route[{}]", i);
    const std::optional<std::string> id = fields.id_of(field, route[i]);
    const std::optional<std::uint32_t> link = id ? result_.link_ids.find(*id) : std::nullopt;
    if (id && !link) fields.complain(field, fmt::format("no link has the id {}", *id));
    if (link && used_by_[*link] == flow + 1) {
      fields.complain(field, fmt::format("uses link {} for the second time", *id));
    }
    is_complete = is_complete && link && ends_[*link].are_known;
    if (!link) continue;
    used_by_[*link] = flow + 1;
    route_.emplace_back(*link);
    if (i == 0 || !is_complete) continue;
    const Ends& before = ends_[route_[route_.size() - 2].index()];
    if (before.to != ends_[*link].from) {
      fields.complain(field,
                      fmt::format("link {} begins at {}, but the link before it ends at {}", *id,
                                  nodes_.name(ends_[*link].from), nodes_.name(before.to)));
    }
  }
  if (is_complete) check_ends(fields);
}

void CaseLoader::check_ends(CaseFields& fields) {
  const std::optional<std::string> src = fields.has("src") ? fields.id("src") : std::nullopt;
  const std::optional<std::string> dst = fields.has("dst") ? fields.id("dst") : std::nullopt;
  if (route_.empty()) return;  // which is reported
  const std::string_view first = nodes_.name(ends_[route_.front().index()].from);
  const std::string_view last = nodes_.name(ends_[route_.back().index()].to);
  if (src && *src != first) {
    fields.complain("src", fmt::format("is {}, but the route begins at {}", *src, first));
  }
  if (dst && *dst != last) {
    fields.complain("dst", fmt::format("is {}, but the route ends at {}", *dst, last));
  }
}

void CaseLoader::read_after(CaseFields& fields, const Json& after, std::size_t index,
                            bool is_flow_kept) {
  const auto flow = static_cast<std::uint32_t>(result_.flows.flows.size());
  for (std::size_t i = 0; i < after.size(); ++i) {
    const std::optional<std::string> id = fields.id_of(fmt::format("after[{}]", i), after[i]);
    if (!id) continue;
    const std::optional<std::uint32_t> before = result_.flow_ids.find(*id);
    if (!before) {
      early_references_.push_back(
          {index, i, is_flow_kept ? std::optional(flow) : std::nullopt, *id});
    } else if (is_flow_kept) {
      result_.flows.dependences.push_back({flow, *before});
    }
  }
}

// A run does not need expected times, so unreadable ones are left out.
void CaseLoader::read_expected(const Json& element) {
  if (!element.is_object() || !element.contains("flow")) return;
  const auto flow = result_.flow_ids.find(json_text(element["flow"]));
  if (!flow) return;
  if (element.contains("finish_ps") && element["finish_ps"].is_number()) {
    result_.expected.push_back({*flow, element["finish_ps"].get<double>()});
  } else if (element.contains("finish_s") && element["finish_s"].is_number()) {
    result_.expected.push_back({*flow, element["finish_s"].get<double>() * kPicosecondsPerSecond});
  }
}

void CaseLoader::check_format() {
  const Json format = values_.value("format", Json());
  if (format == kPacketFormat) {
    read_packet_rules();
  } else if (format.is_null()) {
    problems_.add("format",
                  fmt::format("is missing; must be \"{}\" or \"{}\"", kFlowFormat, kPacketFormat));
  } else if (format != kFlowFormat) {
    problems_.add("format", fmt::format("must be \"{}\" or \"{}\", is {}", kFlowFormat,
                                        kPacketFormat, shown(format)));
  }
  const Json name = values_.value("name", Json());
  result_.name = name.is_string() ? name.get<std::string>() : path_;
}

void CaseLoader::read_packet_rules() {
  constexpr Bytes kMostPacketBytes(INT32_MAX);
  PacketRules rules{.packet_bytes = read_packet_size("packet_bytes", kMostPacketBytes),
                    .header_bytes = std::nullopt};
  const Json switching = values_.value("switching", Json());
  if (switching == "cut_through") {
    rules.header_bytes = read_packet_size("header_bytes", rules.packet_bytes);
  } else if (switching != "store_and_forward") {
    problems_.add("switching",
                  "must be \"store_and_forward\" or \"cut_through\", is " + shown(switching));
  }
  result_.packets = rules;
  if (values_.contains("transport")) read_transport();
}

void CaseLoader::read_transport() {
  const Json& transport = values_.at("transport");
  if (!transport.is_object()) {
    problems_.add("transport", "must be an object");
    return;
  }
  TransportSpec spec = read_case_transport(transport, problems_);
  if (!transport.contains("parameters")) {
    if (!transport.contains("payload")) spec.payload = result_.packets->packet_bytes;
    if (values_.contains("switches")) read_case_switches(values_.at("switches"), spec, problems_);
    const Json seed = values_.value("seed", Json());
    if (seed.is_number_unsigned()) {
      spec.seed = seed.get<std::uint64_t>();
    } else if (!seed.is_null()) {
      problems_.add("seed", "must be a whole number from 0, is " + shown(seed));
    }
  }
  if (result_.packets->header_bytes) {
    problems_.add("switching", "must be \"store_and_forward\" with a transport");
  }
  // Reference runs are run as they are, whatever their headroom loses.
  const Link* longest = nullptr;
  for (const Link& link : result_.fabric.links()) {
    const auto flight = [](const Link& of) {
      return of.bandwidth.value() * static_cast<double>(of.latency.count());
    };
    if (longest == nullptr || flight(link) > flight(*longest)) longest = &link;
  }
  const bool is_own = longest != nullptr && !transport.contains("parameters");
  for (const Problem& problem :
       check_transport(spec, is_own ? longest->bandwidth.value() : 0,
                       is_own ? longest->latency.count() : 0)) {
    problems_.add("transport." + problem.field, problem.message);
  }
  result_.transport = std::move(spec);
}

Bytes CaseLoader::read_packet_size(const char* key, Bytes most) {
  const Json value = values_.value(key, Json());
  if (value.is_number_integer() && value >= 1 && value <= most.value()) {
    return Bytes(value.get<std::int64_t>());
  }
  problems_.add(key, value.is_null()
                         ? "is missing"
                         : fmt::format("must be a whole number of bytes from 1 to {}, is {}",
                                       most.value(), shown(value)));
  return most;
}

void CaseLoader::check_dependences() {
  for (const EarlyReference& reference : early_references_) {
    const std::optional<std::uint32_t> before = result_.flow_ids.find(reference.after);
    if (!before) {
      problems_.add(fmt::format("flows[{}].after[{}]", reference.index, reference.position),
                    fmt::format("no flow has the id {}", reference.after));
    } else if (reference.flow) {
      result_.flows.dependences.push_back({*reference.flow, *before});
    }
  }
  constexpr std::size_t kMostNames = 20;
  for (const std::vector<std::uint32_t>& cycle : find_cycles(result_.flows)) {
    std::string text;
    for (std::size_t i = 0; i < cycle.size() && i < kMostNames; ++i) {
      text += fmt::format("{} waits for ", result_.flow_ids.name(cycle[i]));
    }
    if (cycle.size() > kMostNames) {
      text += fmt::format("... ({} flows) ... waits for ", cycle.size());
    }
    problems_.add("flows", fmt::format("can never begin, because they wait for each other: {}{}",
                                       text, result_.flow_ids.name(cycle.front())));
  }
}

}  // namespace

std::string_view plain_id(std::string_view json_text) {
  if (json_text.size() < 2 || json_text.front() != '"') return json_text;
  return json_text.substr(1, json_text.size() - 2);
}

NetworkCase load_network_case(const std::string& path) {
  return CaseLoader(path).load();
}

}  // namespace stepsim
