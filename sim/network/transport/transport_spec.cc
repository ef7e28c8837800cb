#include "sim/network/transport/transport_spec.h"

#include <algorithm>
#include <array>
#include <string>

#include "sim/fields/quantity_field.h"

namespace stepsim {
namespace {

using Table = FieldTable<TransportSpec>;

constexpr double kMostPacket = 1 << 20;
constexpr double kMostTime = 1000;  // seconds

Limits packet_limits(double least) {
  return Limits::between(least, kMostPacket);
}
Limits time_limits() {
  return Limits::between(0, kMostTime);
}
Limits positive_time() {
  return {.low = 0, .high = kMostTime, .above_low = true};
}
Limits probability() {
  return Limits::between(0, 1);
}

void add_packet_fields(Table& table) {
  table.theme("Packets");
  table.add("payload", &TransportSpec::payload, packet_limits(1),
            {.help = "Bytes of the message in a full packet."});
  table.add("header", &TransportSpec::header, packet_limits(0),
            {.help = "Bytes that each packet has on the wire beside its payload."});
  table.add("pads_last_packet", &TransportSpec::pads_last_packet,
            {.help = "Sends a short last packet as a full one, as htsim does."});
  table.add("ack", &TransportSpec::ack, packet_limits(1),
            {.help = "Bytes of an acknowledgement, a NACK or a pull on the wire."});
  table.add("packets_per_ack", &TransportSpec::packets_per_ack, Limits::between(1, 1e6),
            {.help = "Packets that one acknowledgement answers.",
             .advice = "One acknowledgement of 64 B a packet of 1 KiB takes 6 % of the way back."});
  table.add("ack_every", &TransportSpec::ack_every, Limits::positive(),
            {.help = "Bytes on the wire that one acknowledgement answers.",
             .unset = "packets_per_ack says it"});
  table.add("acks_first", &TransportSpec::acks_first,
            {.help = "Sends acknowledgements and other control before data, in every queue."});
}

void add_sender_fields(Table& table) {
  table.theme("Senders");
  table.add("window", &TransportSpec::window, Limits::positive(),
            {.help = "Bytes that may be under way at the start.",
             .rules = "Stands before window_round_trips.",
             .unset = "window_round_trips says it"});
  table.add("window_round_trips", &TransportSpec::window_round_trips, Limits::between(0, 1e6),
            {.help = "The window in base round trips at the rate of the sender's link. 0: none.",
             .advice = "1 fills an idle path; less leaves it idle, more is a queue."});
  table.add("window_counts_headers", &TransportSpec::window_counts_headers,
            {.help = "Takes window for bytes on the wire, not of payload."});
  table.add("window_follows_rate", &TransportSpec::window_follows_rate,
            {.help = "Makes the window smaller in proportion to the rate."});
  table.add("base_rtt", &TransportSpec::base_rtt, positive_time(),
            {.help = "Round trip of an idle network that the transport is told.",
             .unset = "of each message's route"});
  table.add("base_rtt_without_headers", &TransportSpec::base_rtt_without_headers,
            {.help = "Leaves headers and acknowledgements out of the base round trip."});
  table.add("rto", &TransportSpec::rto, positive_time(),
            {.help = "Least time after which what is not acknowledged is sent again.",
             .advice = "Above the longest round trip with full queues; after a lost last packet "
                       "nothing else helps.",
             .unset = "nothing is repeated without a NACK"});
  table.add("nack_interval", &TransportSpec::nack_interval, time_limits(),
            {.help = "Go-back-N: least time between two NACKs for one gap.",
             .unset = "every packet beyond the gap has one"});
  table.add("delayed_ack", &TransportSpec::delayed_ack, positive_time(),
            {.help = "TCP: how long an acknowledgement may wait for further segments.",
             .unset = "not at all"});
  table.add("handshakes", &TransportSpec::handshakes, Limits::between(0, 16),
            {.help = "TCP: round trips of small packets before the first data."});
  table.add("trailing_packets", &TransportSpec::trailing_packets, Limits::between(0, 1e6),
            {.help = "Full packets sent behind each message and not waited for, as htsim's RoCE."});
  table.add("reorder", &TransportSpec::reorder, Limits::between(1, 1e6),
            {.help = "Selective repeat: packets that may pass another before it is taken as lost.",
             .rules = "Only for messages on one path.",
             .unset = "only trimmed packets and time-outs count"});
  table.add("host_queue", &TransportSpec::host_queue, Limits::between(0, 1e9),
            {.help = "Swift: packets of a message that wait in its host at most, and whose "
                     "round trip counts from there. 0: no limit."});
  table.add("pull_rate", &TransportSpec::pull_rate, Limits::fraction(),
            {.help = "Share of its link's rate at which a receiver grants credit.",
             .advice = "Just below 1 keeps the last queue short."});
  table.add("pull_credit", &TransportSpec::pull_credit, Limits::positive(),
            {.help = "Bytes of credit in one pull."});
  table.add("pull_quantum", &TransportSpec::pull_quantum, Limits::positive(),
            {.help = "Bytes in which credit is counted."});
  table.add("htsim_credit", &TransportSpec::htsim_credit,
            {.help = "Messages keep the turns in which they get credit in advance when they ask "
                     "again or are complete, as in htsim."});
}

void add_path_fields(Table& table) {
  table.theme("Paths and losses");
  table.add("paths_by", &TransportSpec::paths_by,
            {.help = "How packets choose among equal paths: the given one; one by chance for a "
                     "message; every path in turn in random order; by entropies that avoid marked "
                     "ones; by chance each."});
  table.add("paths", &TransportSpec::paths, Limits::between(1, 4096),
            {.help = "Entropies, or routes, that a message uses."});
  table.add("answers_by_destination", &TransportSpec::answers_by_destination,
            {.help = "Answers take the shortest path that the number of their host chooses, as "
                     "tables by destination do, not the way back of the data."});
  table.add("skip_per_mark", &TransportSpec::skip_per_mark, Limits::between(0, 255),
            {.help = "Turns that an entropy is passed over for a mark."});
  table.add("skip_per_trim", &TransportSpec::skip_per_trim, Limits::between(0, 255),
            {.help = "Turns that an entropy is passed over for a trimmed packet."});
  table.add("most_skips", &TransportSpec::most_skips, Limits::between(0, 255),
            {.help = "Turns that an entropy is passed over at most."});
  table.add("reuses_good_paths", &TransportSpec::reuses_good_paths,
            {.help = "Uses the entropies of unmarked acknowledgements again first."});
  table.add("loss", &TransportSpec::loss, Limits::share(),
            {.help = "Probability that a packet is lost on a link."});
  table.add("time_unit", &TransportSpec::time_unit, positive_time(),
            {.help = "Times are whole multiples of this.",
             .advice = "1ns for runs beside ns-3, whose clock has that grain."});
  table.add("seed", &TransportSpec::seed, {.help = "Of all random numbers."});
}

void add_switch_fields(Table& table) {
  const auto add = [&table](std::string_view name, auto member, Limits limits, FieldDoc doc) {
    table.add_inner(name, &TransportSpec::switches, member, std::move(limits), doc);
  };
  table.theme("Switches");
  add("queue", &SwitchSpec::queue, Limits::positive(),
      {.help = "Bytes of data in the queue of a port.", .unset = "no limit"});
  add("shared_buffer", &SwitchSpec::shared_buffer, Limits::positive(),
      {.help = "Bytes of data in all queues of a switch.", .unset = "no limit"});
  add("control_queue", &SwitchSpec::control_queue, Limits::positive(),
      {.help = "Bytes of control in the queue of a port.", .unset = "no limit"});
  add("ecn_low", &SwitchSpec::ecn_low, Limits::at_least(0),
      {.help = "Bytes in a port's queue above which packets are marked, with a probability that "
               "rises from 0 to ecn_most at ecn_high.",
       .unset = "no marks"});
  add("ecn_high", &SwitchSpec::ecn_high, Limits::at_least(0),
      {.help = "Bytes in a port's queue above which every packet is marked.",
       .rules = "At least ecn_low.",
       .unset = "ecn_low: a step"});
  add("ecn_most", &SwitchSpec::ecn_most, probability(),
      {.help = "Probability of a mark at ecn_high."});
  add("ecn_at", &SwitchSpec::ecn_at, {},
      {.help = "When a packet is marked: as it leaves the queue, by what it leaves behind, or as "
               "it comes."});
  add("ecn_on_last_hop", &SwitchSpec::ecn_on_last_hop, {},
      {.help = "Marks at the port to the receiver too."});
  add("pfc", &SwitchSpec::pfc, {},
      {.help = "Whether a switch pauses those who fill it (802.1Qbb): never, at fixed thresholds, "
               "or at a share of what is free."});
  add("pfc_xoff", &SwitchSpec::pfc_xoff, Limits::positive(),
      {.help = "Static: bytes that came by a port above which it is paused."});
  add("pfc_xon", &SwitchSpec::pfc_xon, Limits::positive(),
      {.help = "Static: bytes that came by a port below which it goes on.",
       .rules = "At most pfc_xoff."});
  add("pfc_alpha", &SwitchSpec::pfc_alpha, Limits::positive(),
      {.help = "Dynamic: the threshold of a port as a multiple of the free part of the pool."});
  add("pfc_resume_offset", &SwitchSpec::pfc_resume_offset, Limits::at_least(0),
      {.help = "Dynamic: a paused port goes on this many bytes below the threshold."});
  add("pfc_headroom", &SwitchSpec::pfc_headroom, Limits::at_least(0),
      {.help = "Bytes a port for what arrives after the pause; more is dropped.",
       .advice = "Two delays of the link at its rate, two packets and the frame.",
       .unset = "that, for the longest link of the switch; static: no limit"});
  add("pfc_reserve", &SwitchSpec::pfc_reserve, Limits::at_least(0),
      {.help = "Dynamic: bytes a port that are never shared."});
  add("pfc_frame", &SwitchSpec::pfc_frame, packet_limits(0),
      {.help = "Bytes of a pause frame. 0: it takes the delay of the link only."});
  add("trim", &SwitchSpec::trim, {},
      {.help = "A full queue cuts packets to their header instead of dropping them."});
  add("trimmed", &SwitchSpec::trimmed, packet_limits(1), {.help = "Bytes of a trimmed packet."});
  add("trims_arriving", &SwitchSpec::trims_arriving, probability(),
      {.help = "Probability that a full queue trims or drops the packet that comes, else its "
               "last one."});
  add("holds_leaving_packet", &SwitchSpec::holds_leaving_packet, {},
      {.help = "Counts a packet in its queue until its last bit has left, as htsim does."});
}

void add_rate_fields(Table& table) {
  const auto dctcp = [&table](std::string_view name, auto member, Limits limits, FieldDoc doc) {
    table.add_inner(name, &TransportSpec::dctcp, member, std::move(limits), doc);
  };
  table.theme("DCTCP", "Kinds dctcp and tcp-dctcp.");
  dctcp("dctcp_gain", &DctcpSettings::gain, Limits::fraction(),
        {.help = "Weight of the last window's share of marks in alpha."});
  dctcp("dctcp_initial_alpha", &DctcpSettings::initial_alpha, probability(),
        {.help = "Alpha at the start."});
  dctcp("dctcp_increase", &DctcpSettings::increase, Limits::positive(),
        {.help = "Rate that a window without marks adds; kind dctcp only."});
  dctcp("dctcp_least", &DctcpSettings::least, Limits::positive(), {.help = "Least rate."});

  const auto dcqcn = [&table](std::string_view name, auto member, Limits limits, FieldDoc doc) {
    table.add_inner(name, &TransportSpec::dcqcn, member, std::move(limits), doc);
  };
  table.theme("DCQCN");
  dcqcn("dcqcn_gain", &DcqcnSettings::gain, Limits::fraction(),
        {.help = "Weight of a notification in alpha."});
  dcqcn("dcqcn_initial_alpha", &DcqcnSettings::initial_alpha, probability(),
        {.help = "Alpha at the start."});
  dcqcn("dcqcn_alpha_interval", &DcqcnSettings::alpha_interval, positive_time(),
        {.help = "Time after which alpha falls without a notification."});
  dcqcn("dcqcn_decrease_interval", &DcqcnSettings::decrease_interval, positive_time(),
        {.help = "Time between looks whether a mark came, as in the RDMA models of ns-3.",
         .unset = "each notification cuts the rate"});
  dcqcn("dcqcn_increase_interval", &DcqcnSettings::increase_interval, positive_time(),
        {.help = "Time between increases."});
  dcqcn("dcqcn_increase_bytes", &DcqcnSettings::increase_bytes, Limits::positive().or_zero(),
        {.help = "Bytes sent between increases. 0: only the time counts."});
  dcqcn("dcqcn_fast_stages", &DcqcnSettings::fast_stages, Limits::between(0, 1000),
        {.help = "Increases that only halve the distance to the target."});
  dcqcn("dcqcn_clamp_target", &DcqcnSettings::clamp_target, {},
        {.help = "Each cut lowers the target too."});
  dcqcn("dcqcn_additive", &DcqcnSettings::additive, Limits::positive(),
        {.help = "Rate that the target rises by."});
  dcqcn("dcqcn_hyper", &DcqcnSettings::hyper, Limits::positive(),
        {.help = "Rate that the target rises by later on."});
  dcqcn("dcqcn_least", &DcqcnSettings::least, Limits::positive(), {.help = "Least rate."});
  dcqcn("dcqcn_notification_interval", &DcqcnSettings::notification_interval,
        positive_time().or_zero(),
        {.help = "Least time between two notifications of a message. 0: no such packets, "
                 "acknowledgements carry the marks."});

  const auto timely = [&table](std::string_view name, auto member, Limits limits, FieldDoc doc) {
    table.add_inner(name, &TransportSpec::timely, member, std::move(limits), doc);
  };
  table.theme("TIMELY");
  timely("timely_low", &TimelySettings::low, positive_time(),
         {.help = "Round trip below which the rate rises."});
  timely("timely_high", &TimelySettings::high, positive_time(),
         {.help = "Round trip above which the rate falls.", .rules = "At least timely_low."});
  timely("timely_least_rtt", &TimelySettings::least_rtt, positive_time(),
         {.help = "Round trip that gradients are measured in."});
  timely("timely_smoothing", &TimelySettings::smoothing, Limits::fraction(),
         {.help = "Weight of a new difference of round trips."});
  timely("timely_decrease", &TimelySettings::decrease, Limits::fraction(),
         {.help = "Share of the rate that a gradient of 1 takes."});
  timely("timely_additive", &TimelySettings::additive, Limits::positive(),
         {.help = "Rate that is added."});
  timely("timely_hyper", &TimelySettings::hyper, Limits::positive(),
         {.help = "Rate that is added after several increases in a row."});
  timely("timely_hyper_after", &TimelySettings::hyper_after, Limits::between(0, 1e6),
         {.help = "How many those are."});
  timely("timely_least", &TimelySettings::least, Limits::positive(), {.help = "Least rate."});
  timely("timely_patched", &TimelySettings::patched, {},
         {.help = "Blends increase and decrease, which gives it a fixed point."});

  const auto hpcc = [&table](std::string_view name, auto member, Limits limits, FieldDoc doc) {
    table.add_inner(name, &TransportSpec::hpcc, member, std::move(limits), doc);
  };
  table.theme("HPCC");
  hpcc("hpcc_target", &HpccSettings::target, Limits::fraction(),
       {.help = "Utilisation of the fullest link that is aimed at."});
  hpcc("hpcc_most_stages", &HpccSettings::most_stages, Limits::between(0, 1000),
       {.help = "Windows that only add; the next one multiplies."});
  hpcc("hpcc_increase", &HpccSettings::increase, Limits::positive(),
       {.help = "Rate that is added.", .advice = "The target's distance to 1, over the senders."});
  hpcc("hpcc_least", &HpccSettings::least, Limits::positive(), {.help = "Least rate."});
  hpcc("hpcc_reacts_to_each", &HpccSettings::reacts_to_each, {},
       {.help = "Follows each acknowledgement, not only one a window."});
  hpcc("hpcc_byte_unit", &HpccSettings::byte_unit, Limits::at_least(0),
       {.help = "Bytes that the counter of a link in the header counts in. 0: exact."});
  hpcc("hpcc_queue_unit", &HpccSettings::queue_unit, Limits::at_least(0),
       {.help = "Bytes that the queue in the header is counted in. 0: exact."});
}

void add_window_fields(Table& table) {
  const auto swift = [&table](std::string_view name, auto member, Limits limits, FieldDoc doc) {
    table.add_inner(name, &TransportSpec::swift, member, std::move(limits), doc);
  };
  table.theme("Swift");
  swift("swift_base", &SwiftSettings::base, positive_time(),
        {.help = "Target delay without hops."});
  swift("swift_hop", &SwiftSettings::hop, time_limits(), {.help = "Target delay of a link."});
  swift("swift_fs_range", &SwiftSettings::fs_range, time_limits(),
        {.help = "Most that small windows add to the target."});
  swift("swift_fs_least", &SwiftSettings::fs_least, Limits::positive(),
        {.help = "Window in packets that has all of that."});
  swift("swift_fs_most", &SwiftSettings::fs_most, Limits::positive(),
        {.help = "Window in packets that has none of it.", .rules = "Above swift_fs_least."});
  swift("swift_increase", &SwiftSettings::increase, Limits::positive(),
        {.help = "Packets that a round trip adds."});
  swift("swift_decrease", &SwiftSettings::decrease, Limits::fraction(),
        {.help = "Share of the excess delay that the window falls by."});
  swift("swift_most_decrease", &SwiftSettings::most_decrease, Limits::fraction(),
        {.help = "Share of the window that one decrease takes at most."});
  swift("swift_least_window", &SwiftSettings::least_window, Limits::positive(),
        {.help = "Least window."});
  swift("swift_most_window", &SwiftSettings::most_window, Limits::positive(),
        {.help = "Largest window."});
  swift("swift_resets_after", &SwiftSettings::resets_after, Limits::between(1, 1000),
        {.help = "Time-outs in a row after which the window is the least."});
  swift("swift_whole_packets", &SwiftSettings::whole_packets, {},
        {.help = "Cuts the window of the target to whole packets, as htsim does."});

  const auto nscc = [&table](std::string_view name, auto member, Limits limits, FieldDoc doc) {
    table.add_inner(name, &TransportSpec::nscc, member, std::move(limits), doc);
  };
  table.theme("UEC", "Kinds nscc and uec-dctcp.");
  nscc("nscc_target", &NsccSettings::target, positive_time(),
       {.help = "Queueing delay that is aimed at.",
        .unset = "0.75 of the base round trip with trimming, 1 without"});
  nscc("nscc_gamma", &NsccSettings::gamma, Limits::fraction(),
       {.help = "Share of the excess delay that the window falls by."});
  nscc("nscc_delay_weight", &NsccSettings::delay_weight, Limits::fraction(),
       {.help = "Weight of a new delay in the mean."});
  nscc("nscc_quick_adapt_gate", &NsccSettings::quick_adapt_gate, Limits::positive(),
       {.help = "The window is set to what arrived if that is less than the largest window over "
                "this."});
  nscc("nscc_quick_adapt_targets", &NsccSettings::quick_adapt_targets, Limits::positive(),
       {.help = "Targets of delay that have the same effect as a trimmed packet."});
  nscc("nscc_fast_increase_below", &NsccSettings::fast_increase_below, time_limits(),
       {.help = "Delay below which the window grows fast."});
  nscc("nscc_adjust_packets", &NsccSettings::adjust_packets, Limits::positive(),
       {.help = "Packets after which increases take effect."});
  table.add_inner("uec_dctcp_cut", &TransportSpec::uec_dctcp, &UecDctcpSettings::cut,
                  Limits::fraction(), {.help = "Share of marked bytes that the window falls by."});
}

std::string bytes_text(std::int64_t bytes) {
  return std::to_string(bytes) + " B";
}

}  // namespace

std::string_view name_of(EcnAt at) {
  return at == EcnAt::kDequeue ? "dequeue" : "enqueue";
}

std::string_view name_of(PfcKind kind) {
  constexpr std::array<std::string_view, 3> kNames{"none", "static", "dynamic"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view name_of(PathPolicy policy) {
  constexpr std::array<std::string_view, 5> kNames{"given_route", "ecmp_hash", "spray_permute",
                                                   "spray_adaptive", "spray_random"};
  return kNames[static_cast<std::size_t>(policy)];
}

const FieldTable<TransportSpec>& transport_fields() {
  static const Table kTable = [] {
    Table table("Transport");
    table.theme("Kind");
    table.add("name", &TransportSpec::kind, {.help = "The transport.", .required = true});
    add_packet_fields(table);
    add_sender_fields(table);
    add_path_fields(table);
    add_switch_fields(table);
    add_rate_fields(table);
    add_window_fields(table);
    return table;
  }();
  return kTable;
}

Bytes headroom_needed(const TransportSpec& spec, double rate, Instant latency) {
  const auto flight = static_cast<std::int64_t>(2 * rate * static_cast<double>(latency) * 1e-12);
  return Bytes(flight) + 2 * (spec.payload + spec.header) + spec.switches.pfc_frame;
}

std::vector<Problem> check_transport(const TransportSpec& spec, double most_rate,
                                     Instant most_latency) {
  std::vector<Problem> problems;
  const SwitchSpec& switches = spec.switches;
  const std::int64_t packet = (spec.payload + spec.header).value();
  const auto holds_packet = [&](const char* field, const std::optional<Bytes>& room) {
    if (!room || room->value() >= packet) return;
    problems.push_back({field, "must hold a packet of " + bytes_text(packet) +
                                   " (payload and header), is " + bytes_text(room->value())});
  };
  holds_packet("queue", switches.queue);
  holds_packet("shared_buffer", switches.shared_buffer);
  if (switches.trim && switches.trimmed.value() > packet) {
    problems.push_back({"trimmed", "must be at most a packet of " + bytes_text(packet) + ", is " +
                                       bytes_text(switches.trimmed.value())});
  }
  if (switches.ecn_high && switches.ecn_low && *switches.ecn_high < *switches.ecn_low) {
    problems.push_back({"ecn_high", "must be at least ecn_low (" +
                                        bytes_text(switches.ecn_low->value()) + "), is " +
                                        bytes_text(switches.ecn_high->value())});
  }
  if (switches.ecn_high && !switches.ecn_low) {
    problems.push_back({"ecn_low", "must be given with ecn_high"});
  }
  if (spec.timely.high < spec.timely.low) {
    problems.push_back({"timely_high", "must be at least timely_low"});
  }
  if (spec.swift.fs_most <= spec.swift.fs_least) {
    problems.push_back({"swift_fs_most", "must be above swift_fs_least"});
  }
  if (switches.pfc == PfcKind::kStatic) {
    holds_packet("pfc_xoff", switches.pfc_xoff);
    if (!switches.pfc_xoff || !switches.pfc_xon) {
      problems.push_back({"pfc_xoff", "must be given with pfc_xon for static pauses"});
    } else if (*switches.pfc_xon > *switches.pfc_xoff) {
      problems.push_back({"pfc_xon", "must be at most pfc_xoff (" +
                                         bytes_text(switches.pfc_xoff->value()) + "), is " +
                                         bytes_text(switches.pfc_xon->value())});
    }
  }
  if (switches.pfc == PfcKind::kDynamic && !switches.shared_buffer) {
    problems.push_back({"shared_buffer", "must be given for dynamic pauses"});
  }
  if (switches.pfc == PfcKind::kDynamic && most_rate > 0) {
    const std::int64_t needed = headroom_needed(spec, most_rate, most_latency).value();
    if (switches.pfc_headroom && switches.pfc_headroom->value() < needed) {
      problems.push_back({"pfc_headroom", "must be at least " + bytes_text(needed) +
                                              " on the longest link (two delays, two packets and "
                                              "the frame) or packets are lost, is " +
                                              bytes_text(switches.pfc_headroom->value())});
    }
  }
  return problems;
}

}  // namespace stepsim
