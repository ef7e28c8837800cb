#include "proto/network_case/case_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "sim/base/suggestion.h"
#include "sim/fields/quantity_field.h"
#include "sim/network/transport/transport_table.h"

namespace stepsim {
namespace {

enum class Unit { kPlain, kBytes, kSeconds, kMicroseconds, kNanoseconds, kMegabits };

// How a parameter of a reference run is called here.
struct Parameter {
  std::string_view name;
  std::string_view field;
  Unit unit = Unit::kPlain;
  std::string_view protocol = {};  // only with protocols that begin so
};

constexpr std::array kParameters = {
    Parameter{"queue_bytes", "queue", Unit::kBytes},
    Parameter{"shared_buffer_bytes", "shared_buffer", Unit::kBytes},
    Parameter{"control_queue_bytes", "control_queue", Unit::kBytes},
    Parameter{"ecn_low_bytes", "ecn_low", Unit::kBytes},
    Parameter{"ecn_high_bytes", "ecn_high", Unit::kBytes},
    Parameter{"ecn_pmax", "ecn_most"},
    Parameter{"ecn_at", "ecn_at"},
    Parameter{"ecn_on_last_hop", "ecn_on_last_hop"},
    Parameter{"pfc", "pfc"},
    Parameter{"pfc_xoff_bytes", "pfc_xoff", Unit::kBytes},
    Parameter{"pfc_xon_bytes", "pfc_xon", Unit::kBytes},
    Parameter{"pfc_alpha", "pfc_alpha"},
    Parameter{"pfc_resume_offset_bytes", "pfc_resume_offset", Unit::kBytes},
    Parameter{"pfc_headroom_bytes", "pfc_headroom", Unit::kBytes},
    Parameter{"pfc_reserve_bytes", "pfc_reserve", Unit::kBytes},
    Parameter{"pfc_frame_bytes", "pfc_frame", Unit::kBytes},
    Parameter{"trim", "trim"},
    Parameter{"trimmed_bytes", "trimmed", Unit::kBytes},
    Parameter{"trim_arriving_probability", "trims_arriving"},
    Parameter{"payload_bytes", "payload", Unit::kBytes},
    Parameter{"header_bytes", "header", Unit::kBytes},
    Parameter{"last_packet_padded", "pads_last_packet"},
    Parameter{"ack_bytes", "ack", Unit::kBytes},
    Parameter{"packets_per_ack", "packets_per_ack"},
    Parameter{"ack_every_bytes", "ack_every", Unit::kBytes},
    Parameter{"initial_window_bytes", "window", Unit::kBytes},
    Parameter{"path_policy", "paths_by"},
    Parameter{"paths", "paths"},
    Parameter{"min_rto_s", "rto", Unit::kSeconds},
    Parameter{"base_rtt_s", "base_rtt", Unit::kSeconds},
    Parameter{"pull_rate_fraction", "pull_rate"},
    Parameter{"seed", "seed"},
    Parameter{"handshake_round_trips", "handshakes"},
    Parameter{"trailing_packets", "trailing_packets"},
    Parameter{"loss_probability", "loss"},
    Parameter{"time_unit_s", "time_unit", Unit::kSeconds},
    Parameter{"nack_interval_s", "nack_interval", Unit::kSeconds},
    Parameter{"delayed_ack_s", "delayed_ack", Unit::kSeconds},
    Parameter{"clamp", "dcqcn_clamp_target"},
    Parameter{"dcqcn_alpha_start", "dcqcn_initial_alpha"},
    Parameter{"g", "dcqcn_gain", Unit::kPlain, "dcqcn"},
    Parameter{"alpha_us", "dcqcn_alpha_interval", Unit::kMicroseconds},
    Parameter{"dec_us", "dcqcn_decrease_interval", Unit::kMicroseconds},
    Parameter{"rp_us", "dcqcn_increase_interval", Unit::kMicroseconds},
    Parameter{"fr", "dcqcn_fast_stages"},
    Parameter{"ai_mbps", "dcqcn_additive", Unit::kMegabits, "dcqcn"},
    Parameter{"hai_mbps", "dcqcn_hyper", Unit::kMegabits, "dcqcn"},
    Parameter{"min_mbps", "dcqcn_least", Unit::kMegabits, "dcqcn"},
    Parameter{"var_win", "window_follows_rate"},
    Parameter{"g", "dctcp_gain", Unit::kPlain, "dctcp"},
    Parameter{"g", "dctcp_gain", Unit::kPlain, "DCTCP"},
    Parameter{"g", "dctcp_gain", Unit::kPlain, "Tcp"},
    Parameter{"dctcp_alpha_start", "dctcp_initial_alpha"},
    Parameter{"dctcp_ai_mbps", "dctcp_increase", Unit::kMegabits},
    Parameter{"min_mbps", "dctcp_least", Unit::kMegabits, "dctcp"},
    Parameter{"tlow_ns", "timely_low", Unit::kNanoseconds},
    Parameter{"thigh_ns", "timely_high", Unit::kNanoseconds},
    Parameter{"tminrtt_ns", "timely_least_rtt", Unit::kNanoseconds},
    Parameter{"timely_alpha", "timely_smoothing"},
    Parameter{"tbeta", "timely_decrease"},
    Parameter{"timely_hai_after", "timely_hyper_after"},
    Parameter{"ai_mbps", "timely_additive", Unit::kMegabits, "timely"},
    Parameter{"hai_mbps", "timely_hyper", Unit::kMegabits, "timely"},
    Parameter{"min_mbps", "timely_least", Unit::kMegabits, "timely"},
    Parameter{"eta", "hpcc_target"},
    Parameter{"mi", "hpcc_most_stages"},
    Parameter{"fast_react", "hpcc_reacts_to_each"},
    Parameter{"ai_mbps", "hpcc_increase", Unit::kMegabits, "hpcc"},
    Parameter{"min_mbps", "hpcc_least", Unit::kMegabits, "hpcc"},
    Parameter{"eqds_pull_quantum_bytes", "pull_quantum", Unit::kBytes},
    Parameter{"eqds_credit_per_pull_bytes", "pull_credit", Unit::kBytes},
    Parameter{"eqds_path_skip_per_mark_or_trim", "skip_per_mark"},
    Parameter{"eqds_path_skip_per_mark_or_trim", "skip_per_trim"},
    Parameter{"eqds_path_skip_max", "most_skips"},
    Parameter{"rccc_pull_quantum_bytes", "pull_quantum", Unit::kBytes},
    Parameter{"rccc_credit_per_pull_bytes", "pull_credit", Unit::kBytes},
    Parameter{"uec_path_skip_per_mark", "skip_per_mark"},
    Parameter{"uec_path_skip_per_trim", "skip_per_trim"},
    Parameter{"uec_path_skip_max", "most_skips"},
    Parameter{"swift_base_target_s", "swift_base", Unit::kSeconds},
    Parameter{"swift_hop_target_s", "swift_hop", Unit::kSeconds},
    Parameter{"swift_fs_range_s", "swift_fs_range", Unit::kSeconds},
    Parameter{"swift_fs_min_packets", "swift_fs_least"},
    Parameter{"swift_fs_max_packets", "swift_fs_most"},
    Parameter{"swift_ai_packets", "swift_increase"},
    Parameter{"swift_beta", "swift_decrease"},
    Parameter{"swift_max_mdf", "swift_most_decrease"},
    Parameter{"swift_min_window_bytes", "swift_least_window", Unit::kBytes},
    Parameter{"swift_max_window_bytes", "swift_most_window", Unit::kBytes},
    Parameter{"swift_retransmit_reset", "swift_resets_after"},
    Parameter{"nscc_target_queue_delay_s", "nscc_target", Unit::kSeconds},
    Parameter{"nscc_gamma", "nscc_gamma"},
    Parameter{"nscc_delay_ewma", "nscc_delay_weight"},
    Parameter{"nscc_quick_adapt_gate", "nscc_quick_adapt_gate"},
    Parameter{"nscc_fast_increase_below_s", "nscc_fast_increase_below", Unit::kSeconds},
    Parameter{"uec_dctcp_cut_fraction", "uec_dctcp_cut"},
};

struct Protocol {
  std::string_view name;  // or how it begins
  TransportKind kind;
};

// The first that fits counts.
constexpr std::array kProtocols = {
    Protocol{"pfc", TransportKind::kGoBackN},
    Protocol{"window", TransportKind::kGoBackN},
    Protocol{"roce", TransportKind::kGoBackN},
    Protocol{"dcqcn", TransportKind::kDcqcn},
    Protocol{"dctcp", TransportKind::kDctcp},
    Protocol{"timely", TransportKind::kTimely},
    Protocol{"hpcc", TransportKind::kHpcc},
    Protocol{"swift", TransportKind::kSwift},
    Protocol{"DCTCP", TransportKind::kTcpDctcp},
    Protocol{"TcpDctcp", TransportKind::kTcpDctcp},
    Protocol{"Tcp", TransportKind::kTcp},
    Protocol{"ndp", TransportKind::kNdp},
    Protocol{"eqds", TransportKind::kEqds},
    Protocol{"rccc", TransportKind::kRccc},
    Protocol{"nscc", TransportKind::kNscc},
    Protocol{"uec-dctcp", TransportKind::kUecDctcp},
    Protocol{"uec-constant", TransportKind::kUecConstant},
};

constexpr double kMostTime = 1e6;  // seconds

// Returns the text of a value for a field; nothing if it is of no such kind.
std::optional<std::string> text_of(const Json& value, Unit unit) {
  if (value.is_boolean()) return std::string(value.get<bool>() ? "true" : "false");
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_number()) return std::nullopt;
  const double number = value.get<double>();
  const auto time = [](double seconds) -> std::optional<std::string> {
    if (!(seconds >= 0) || seconds > kMostTime) return std::nullopt;
    return exact_seconds(Duration(std::llround(seconds * kPicosecondsPerSecond))) + "s";
  };
  switch (unit) {
    case Unit::kSeconds:
      return time(number);
    case Unit::kMicroseconds:
      return time(number * 1e-6);
    case Unit::kNanoseconds:
      return time(number * 1e-9);
    case Unit::kMegabits:
      return write_double(number * 1e6 / 8);
    case Unit::kBytes:
    case Unit::kPlain:
      break;
  }
  const bool is_whole = number == std::floor(number) && std::abs(number) < 1e15;
  return is_whole ? std::to_string(static_cast<std::int64_t>(number)) : write_double(number);
}

// Sets one field; reports problems under `name`.
void set_field(const std::string& name, std::string_view field, const Json& value, Unit unit,
               TransportSpec& spec, CaseProblems& problems) {
  const AnyField& row = *transport_fields().find(field);
  const auto text = text_of(value, unit);
  if (!text) {
    problems.add(name, "must be " + row.accepts() + ", is " + shown(value));
    return;
  }
  std::string written = *text;
  // Truth values are 0 and 1 in some files.
  if (row.accepts() == "true or false" && value.is_number())
    written = written == "0" ? "false" : "true";
  for (const std::string& problem : row.read(written, &spec)) problems.add(name, problem);
  if (const auto broken = limit_problem(row, &spec)) problems.add(name, *broken);
}

bool has_truth(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() && found->get<double>() != 0;
}

TransportSpec read_reference(const Json& transport, CaseProblems& problems) {
  TransportSpec spec;
  const auto text = [&transport](const char* key) {
    const auto found = transport.find(key);
    return found != transport.end() && found->is_string() ? found->get<std::string>()
                                                          : std::string();
  };
  const std::string protocol = text("protocol");
  const auto known = std::ranges::find_if(
      kProtocols, [&protocol](const Protocol& row) { return protocol.starts_with(row.name); });
  if (known == kProtocols.end()) {
    std::vector<std::string> names;
    for (const Protocol& row : kProtocols) names.emplace_back(row.name);
    problems.add("transport.protocol",
                 "must begin with " + either_of(names) + ", is \"" + protocol + "\"");
    return spec;
  }
  spec.kind = known->kind;
  const Json& parameters = transport.at("parameters");
  if (!parameters.is_object()) {
    problems.add("transport.parameters", "must be an object");
    return spec;
  }
  for (const Parameter& row : kParameters) {
    const auto found = parameters.find(row.name);
    if (found == parameters.end() || found->is_null()) continue;
    if (!protocol.starts_with(row.protocol)) continue;
    set_field("transport.parameters." + std::string(row.name), row.field, *found, row.unit, spec,
              problems);
  }
  const std::string simulator = text("simulator");
  const bool is_htsim = simulator.find("htsim") != std::string::npos;
  spec.acks_first = parameters.value("ack_priority", Json()) == "control";
  spec.window_counts_headers = parameters.value("window_unit", Json()) == "wire";
  spec.switches.holds_leaving_packet = is_htsim;
  spec.answers_by_destination = !is_htsim;
  spec.htsim_credit = is_htsim;
  spec.reuses_good_paths = parameters.contains("uec_bdp_bytes");
  if (spec.switches.shared_buffer) spec.switches.queue.reset();
  if (parameters.value("base_rtt_by_flow_s", Json()).is_array()) {
    // Each flow is told its own: there and back, with a payload's time on each link.
    spec.base_rtt.reset();
    spec.base_rtt_without_headers = true;
    if (spec.window) {
      spec.window.reset();
      spec.window_round_trips = 1;
    }
  }
  if (spec.kind == TransportKind::kDcqcn && spec.dcqcn.decrease_interval) {
    spec.dcqcn.notification_interval.reset();
    spec.dcqcn.increase_bytes.reset();
  }
  if (const auto multi = parameters.find("int_multi");
      multi != parameters.end() && multi->is_number()) {
    constexpr double kByteUnit = 128;
    constexpr double kQueueUnit = 80;
    spec.hpcc.byte_unit = Bytes(std::llround(kByteUnit * multi->get<double>()));
    spec.hpcc.queue_unit = Bytes(std::llround(kQueueUnit * multi->get<double>()));
  }
  if (spec.kind == TransportKind::kSwift && is_htsim) {
    spec.swift.whole_packets = true;
    spec.host_queue = 3;
  }
  if (has_truth(parameters, "rccc_oversubscribed_rule")) {
    problems.add("transport.parameters.rccc_oversubscribed_rule",
                 "must be false: it isn't modelled");
  }
  return spec;
}

TransportSpec read_own(const Json& transport, CaseProblems& problems) {
  const Json name = transport.value("name", Json());
  const auto kind =
      name.is_string() ? Text<TransportKind>::read(name.get<std::string>()) : std::nullopt;
  if (!kind) {
    problems.add("transport.name",
                 "must be " + Text<TransportKind>::accepts() + ", is " + shown(name) +
                     (name.is_string() ? Text<TransportKind>::hint(name.get<std::string>()) : ""));
    return {};
  }
  TransportSpec spec = default_transport(*kind);
  for (const auto& [key, value] : transport.items()) {
    if (key == "name") continue;
    if (transport_fields().find(key) == nullptr) {
      problems.add("transport." + key,
                   "is no field of a transport" + did_you_mean(key, transport_fields().names()));
      continue;
    }
    set_field("transport." + key, key, value, Unit::kPlain, spec, problems);
  }
  return spec;
}

}  // namespace

TransportSpec read_case_transport(const Json& transport, CaseProblems& problems) {
  if (transport.contains("parameters")) return read_reference(transport, problems);
  return read_own(transport, problems);
}

void read_case_switches(const Json& switches, TransportSpec& spec, CaseProblems& problems) {
  const auto set = [&](const Json& object, const std::string& prefix, const std::string& key,
                       std::string_view field) {
    set_field(prefix + key, field, object.at(key), Unit::kPlain, spec, problems);
  };
  const auto read = [&](const Json& object, const std::string& prefix,
                        std::initializer_list<std::pair<const char*, const char*>> fields) {
    if (!object.is_object()) {
      problems.add(prefix.substr(0, prefix.size() - 1), "must be an object");
      return;
    }
    std::vector<std::string> names;
    for (const auto& [key, field] : fields) names.emplace_back(key);
    for (const auto& [key, value] : object.items()) {
      const auto row =
          std::ranges::find_if(fields, [&key = key](const auto& of) { return key == of.first; });
      if (row == fields.end()) {
        problems.add(prefix + key, "is no field of switches" + did_you_mean(key, names));
      } else if (*row->second != '\0') {
        set(object, prefix, key, row->second);
      }
    }
  };
  read(switches, "switches.",
       {{"buffer_bytes", "queue"},
        {"shared_buffer", "shared_buffer"},
        {"trim", "trim"},
        {"ecn", ""},
        {"pfc", ""}});
  if (!switches.is_object()) return;
  if (switches.contains("ecn")) {
    const Json& ecn = switches.at("ecn");
    read(ecn, "switches.ecn.",
         {{"kmin_bytes", "ecn_low"},
          {"kmax_bytes", "ecn_high"},
          {"pmax", "ecn_most"},
          {"threshold_bytes", "ecn_low"}});
    if (ecn.is_object() && ecn.contains("threshold_bytes")) spec.switches.ecn_high.reset();
  }
  if (switches.contains("pfc")) {
    spec.switches.pfc = PfcKind::kStatic;
    read(
        switches.at("pfc"), "switches.pfc.",
        {{"xoff_bytes", "pfc_xoff"}, {"xon_bytes", "pfc_xon"}, {"headroom_bytes", "pfc_headroom"}});
  }
}

}  // namespace stepsim
