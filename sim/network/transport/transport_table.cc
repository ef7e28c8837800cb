#include "sim/network/transport/transport_table.h"

#include <array>
#include <utility>

#include "sim/network/transport/controls/tcp_window.h"
#include "sim/network/transport/hosts/go_back_n.h"
#include "sim/network/transport/hosts/selective.h"
#include "sim/network/transport/hosts/stream.h"

namespace stepsim {
namespace {

using Control = std::unique_ptr<CongestionControl>;

double packet_bytes(const TransportSpec& spec) {
  return static_cast<double>((spec.payload + spec.header).value());
}

double payload_bytes(const TransportSpec& spec) {
  return static_cast<double>(spec.payload.value());
}

Control fixed(const TransportSpec& spec, const MessageView& message) {
  const double window = window_of(spec, message);
  return std::make_unique<CongestionControl>(message.rate,
                                             window > 0 ? window : CongestionControl::kUnlimited);
}
Control dctcp(const TransportSpec& spec, const MessageView& message) {
  return std::make_unique<Dctcp>(spec.dctcp, message.rate, payload_bytes(spec));
}
Control dcqcn(const TransportSpec& spec, const MessageView& message) {
  return std::make_unique<Dcqcn>(spec.dcqcn, message.rate);
}
Control timely(const TransportSpec& spec, const MessageView& message) {
  return std::make_unique<Timely>(spec.timely, message.rate);
}
Control hpcc(const TransportSpec& spec, const MessageView& message) {
  return std::make_unique<Hpcc>(spec.hpcc, message.rate, message.base_rtt);
}
Control nscc(const TransportSpec& spec, const MessageView& message) {
  const NsccParameters parameters = nscc_parameters(spec.nscc, message.rate, message.base_rtt,
                                                    payload_bytes(spec), spec.switches.trim);
  return std::make_unique<Nscc>(spec.nscc, parameters, message.rate, window_of(spec, message),
                                message.base_rtt, packet_bytes(spec));
}
Control uec_dctcp(const TransportSpec& spec, const MessageView& message) {
  return std::make_unique<UecDctcp>(spec.uec_dctcp, message.rate, window_of(spec, message),
                                    packet_bytes(spec));
}

template <Control (*control)(const TransportSpec&, const MessageView&)>
std::unique_ptr<Sender> go_back_n_sender(const TransportSpec& spec, const MessageView& message) {
  return std::make_unique<GoBackNSender>(spec, message, window_of(spec, message),
                                         control(spec, message));
}
std::unique_ptr<Receiver> go_back_n_receiver(const TransportSpec& spec, const MessageView& message,
                                             CreditOfHost&) {
  return std::make_unique<GoBackNReceiver>(spec, message);
}

template <CreditKind credit, Control (*control)(const TransportSpec&, const MessageView&)>
std::unique_ptr<Sender> selective_sender(const TransportSpec& spec, const MessageView& message) {
  return std::make_unique<SelectiveSender>(spec, message, credit, window_of(spec, message),
                                           control(spec, message));
}
std::unique_ptr<Receiver> selective_receiver(const TransportSpec& spec, const MessageView& message,
                                             CreditOfHost& credit) {
  return std::make_unique<SelectiveReceiver>(spec, message, credit.pulls.get(), credit.pacer.get());
}

std::unique_ptr<Sender> swift_sender(const TransportSpec& spec, const MessageView& message) {
  auto swift = std::make_unique<Swift>(spec.swift, message.rate, window_of(spec, message),
                                       payload_bytes(spec), message.hops);
  const Swift* const paces = swift.get();
  return std::make_unique<StreamSender>(spec, message, std::move(swift), paces);
}
template <bool reacts_to_marks>
std::unique_ptr<Sender> tcp_sender(const TransportSpec& spec, const MessageView& message) {
  return std::make_unique<StreamSender>(
      spec, message,
      std::make_unique<TcpWindow>(spec.dctcp, message.rate, window_of(spec, message),
                                  payload_bytes(spec), reacts_to_marks),
      nullptr);
}
std::unique_ptr<Receiver> stream_receiver(const TransportSpec& spec, const MessageView& message,
                                          CreditOfHost&) {
  return std::make_unique<StreamReceiver>(spec, message);
}

CreditOfHost pull_queue(const TransportSpec& spec, const MessageView& message) {
  return {.pulls = std::make_unique<PullQueue>(spec, message.rate), .pacer = {}};
}
template <bool repeats_first>
CreditOfHost credit_pacer(const TransportSpec& spec, const MessageView& message) {
  return {.pulls = {},
          .pacer = std::make_unique<CreditPacer>(spec, message.rate, window_of(spec, message),
                                                 repeats_first)};
}

// ---- defaults ----

// RDMA cards: 4 KiB and the headers of RoCEv2 (Ethernet, IPv4, UDP, BTH), PFC with the dynamic
// thresholds of common switches, and go-back-N with the card's time-out.
void roce(TransportSpec& spec) {
  spec.header = Bytes(48);
  spec.ack = Bytes(60);
  spec.rto = Duration(4'194'304'000);  // 4.096 us x 2^10
  spec.nack_interval = Duration(500'000'000);
  spec.switches.shared_buffer = Bytes(32 << 20);
  spec.switches.pfc = PfcKind::kDynamic;
  spec.switches.pfc_resume_offset = Bytes(3072);
  spec.switches.pfc_reserve = Bytes(4096);
}
void roce_with_marks(TransportSpec& spec) {
  roce(spec);
  spec.switches.ecn_low = Bytes(100'000);
  spec.switches.ecn_high = Bytes(400'000);
  spec.switches.ecn_most = 0.2;
}
void roce_dctcp(TransportSpec& spec) {
  roce(spec);
  spec.switches.ecn_low = Bytes(300'000);
  spec.window_round_trips = 1;
  spec.window_follows_rate = true;
}
void roce_hpcc(TransportSpec& spec) {
  roce(spec);
  spec.header = Bytes(90);
  spec.ack = Bytes(88);
  spec.window_round_trips = 1;
  spec.window_follows_rate = true;
}
void selective_repeat(TransportSpec& spec) {
  roce(spec);
  spec.reorder = 1;
  spec.window_round_trips = 2;
}
void stream(TransportSpec& spec) {
  spec.header = Bytes(54);
  spec.ack = Bytes(54);
  spec.acks_first = false;
  spec.packets_per_ack = 2;
  spec.delayed_ack = Duration(200'000'000'000);
  spec.rto = Duration(200'000'000'000);
  spec.handshakes = 1;
  spec.window = Bytes(40960);
}
void stream_dctcp(TransportSpec& spec) {
  stream(spec);
  spec.switches.ecn_low = Bytes(300'000);
  spec.switches.ecn_at = EcnAt::kEnqueue;
}
void swift_defaults(TransportSpec& spec) {
  spec.acks_first = false;
  spec.header = Bytes(64);
  spec.window_round_trips = 1;
  spec.rto = Duration(100'000'000);
  spec.host_queue = 3;
  spec.paths_by = PathPolicy::kEcmpHash;
}
void trimming(TransportSpec& spec) {
  spec.switches.trim = true;
  spec.switches.trims_arriving = 0.5;
  spec.paths_by = PathPolicy::kSprayAdaptive;
  spec.paths = 64;
}
void ndp(TransportSpec& spec) {
  trimming(spec);
  spec.paths_by = PathPolicy::kSprayPermute;
  spec.switches.queue = Bytes(8 * 4160);
  spec.switches.control_queue = Bytes(16 * 4160);
  spec.window_round_trips = 1;
  spec.rto = Duration(50'000'000'000);
}
void eqds(TransportSpec& spec) {
  trimming(spec);
  spec.switches.queue = Bytes(35 * 4160);
  spec.window_round_trips = 1.5;
  spec.ack_every = Bytes(16384);
  spec.rto = Duration(220'000'000);
  spec.pull_credit = Bytes(4096);
  spec.pull_quantum = Bytes(512);
  spec.skip_per_mark = 1;
  spec.skip_per_trim = 1;
  spec.most_skips = 1;
}
void uec(TransportSpec& spec) {
  trimming(spec);
  spec.switches.queue = Bytes(43 * 4160);
  spec.switches.ecn_low = Bytes(9 * 4160);
  spec.switches.ecn_high = Bytes(35 * 4160);
  spec.window_round_trips = 1.5;
  spec.ack_every = Bytes(16384);
  spec.rto = Duration(100'000'000);
  spec.skip_per_mark = 1;
  spec.skip_per_trim = 4;
  spec.most_skips = 15;
  spec.reuses_good_paths = true;
}
void rccc(TransportSpec& spec) {
  uec(spec);
  spec.switches.ecn_on_last_hop = false;
}

constexpr CreditOfHost (*kNoCredit)(const TransportSpec&, const MessageView&) = nullptr;

constexpr std::array kRows = {
    TransportRow{
        TransportKind::kGoBackN, "go-back-n",
        "RoCEv2 without congestion control: line rate or a fixed window, PFC against loss, "
        "go-back-N after one.",
        "InfiniBand Architecture Specification, annex A17; htsim 841d9e7 roce.cpp", roce,
        go_back_n_sender<fixed>, go_back_n_receiver, kNoCredit},
    TransportRow{TransportKind::kSelectiveRepeat, "selective-repeat",
                 "RoCEv2 that repeats only what is missing, with a fixed window.",
                 "Mittal et al., Revisiting Network Support for RDMA, SIGCOMM 2018",
                 selective_repeat, selective_sender<CreditKind::kNone, fixed>, selective_receiver,
                 kNoCredit},
    TransportRow{TransportKind::kDctcp, "dctcp",
                 "DCTCP's alpha on the rate and window of an RDMA card.",
                 "RFC 8257; HPCC 9f4be2a rdma-hw.cc", roce_dctcp, go_back_n_sender<dctcp>,
                 go_back_n_receiver, kNoCredit},
    TransportRow{TransportKind::kDcqcn, "dcqcn",
                 "RoCEv2 with DCQCN: marks become notifications, and these a rate.",
                 "Zhu et al., SIGCOMM 2015", roce_with_marks, go_back_n_sender<dcqcn>,
                 go_back_n_receiver, kNoCredit},
    TransportRow{TransportKind::kTimely, "timely", "A rate by the gradient of the round-trip time.",
                 "Mittal et al., SIGCOMM 2015; Zhu et al., CoNEXT 2016", roce,
                 go_back_n_sender<timely>, go_back_n_receiver, kNoCredit},
    TransportRow{TransportKind::kHpcc, "hpcc", "A rate by what switches report of their links.",
                 "Li et al., SIGCOMM 2019", roce_hpcc, go_back_n_sender<hpcc>, go_back_n_receiver,
                 kNoCredit},
    TransportRow{TransportKind::kSwift, "swift", "A window by the delay against a target.",
                 "Kumar et al., SIGCOMM 2020; csg-htsim 841d9e7 swift.cpp", swift_defaults,
                 swift_sender, stream_receiver, kNoCredit},
    TransportRow{TransportKind::kTcp, "tcp", "TCP Reno.", "RFC 5681, RFC 6582", stream,
                 tcp_sender<false>, stream_receiver, kNoCredit},
    TransportRow{TransportKind::kTcpDctcp, "tcp-dctcp", "TCP with DCTCP.", "RFC 8257", stream_dctcp,
                 tcp_sender<true>, stream_receiver, kNoCredit},
    TransportRow{TransportKind::kNdp, "ndp",
                 "Sprayed packets, trimmed where queues are full, pulled by the receiver.",
                 "Handley et al., SIGCOMM 2017; csg-htsim 841d9e7 ndp.cpp", ndp,
                 selective_sender<CreditKind::kPackets, fixed>, selective_receiver, pull_queue},
    TransportRow{TransportKind::kEqds, "eqds", "Credit of the receiver for sprayed packets.",
                 "Olteanu et al., NSDI 2022; csg-htsim 841d9e7 eqds.cpp", eqds,
                 selective_sender<CreditKind::kBytes, fixed>, selective_receiver,
                 credit_pacer<true>},
    TransportRow{TransportKind::kRccc, "rccc", "UEC's receiver-based control: credit in turn.",
                 "UEC specification 1.0; uet-htsim 40ccb05 uec.cpp", rccc,
                 selective_sender<CreditKind::kBytes, fixed>, selective_receiver,
                 credit_pacer<false>},
    TransportRow{TransportKind::kNscc, "nscc",
                 "UEC's sender-based control: a window by marks and delay, spraying, trimming.",
                 "UEC specification 1.0; uet-htsim 40ccb05 uec.cpp", uec,
                 selective_sender<CreditKind::kNone, nscc>, selective_receiver, kNoCredit},
    TransportRow{TransportKind::kUecDctcp, "uec-dctcp",
                 "UEC's packets with a window that marks cut at once.", "uet-htsim 40ccb05 uec.cpp",
                 uec, selective_sender<CreditKind::kNone, uec_dctcp>, selective_receiver,
                 kNoCredit},
    TransportRow{TransportKind::kUecConstant, "uec-constant", "UEC's packets with a fixed window.",
                 "uet-htsim 40ccb05 uec.cpp", uec, selective_sender<CreditKind::kNone, fixed>,
                 selective_receiver, kNoCredit},
};
static_assert(kRows.size() == kValuesOf<TransportKind>);

}  // namespace

std::span<const TransportRow> transport_table() {
  return kRows;
}

const TransportRow& row_of(TransportKind kind) {
  return kRows[static_cast<std::size_t>(kind)];
}

std::string_view name_of(TransportKind kind) {
  return row_of(kind).name;
}

TransportSpec default_transport(TransportKind kind) {
  TransportSpec spec;
  spec.kind = kind;
  row_of(kind).set_defaults(spec);
  return spec;
}

double window_of(const TransportSpec& spec, const MessageView& message) {
  if (spec.window) {
    const double unit = spec.window_counts_headers ? 1 : packet_bytes(spec) / payload_bytes(spec);
    // Senders that count packets on the wire are given what so much payload is there.
    const bool counts_wire =
        spec.kind >= TransportKind::kNdp || spec.kind == TransportKind::kSelectiveRepeat;
    return static_cast<double>(spec.window->value()) * (counts_wire ? unit : 1);
  }
  return spec.window_round_trips * static_cast<double>(message.base_rtt) * 1e-12 * message.rate;
}

}  // namespace stepsim
