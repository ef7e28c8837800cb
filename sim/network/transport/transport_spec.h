// TransportSpec is everything that a person can say about a transport and the switches that carry
// it: `transport {}` in files, --transport on the command line. The fields are declared in
// transport_fields() with their units and when to change them; the defaults of a kind come from its
// row (transport_table.h).

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/base/units.h"
#include "sim/fields/field.h"
#include "sim/network/transport/controls/dcqcn.h"
#include "sim/network/transport/controls/dctcp.h"
#include "sim/network/transport/controls/hpcc.h"
#include "sim/network/transport/controls/nscc.h"
#include "sim/network/transport/controls/swift.h"
#include "sim/network/transport/controls/timely.h"
#include "sim/network/transport/controls/uec_dctcp.h"

namespace stepsim {

enum class TransportKind : std::uint8_t {
  kGoBackN,
  kSelectiveRepeat,
  kDctcp,
  kDcqcn,
  kTimely,
  kHpcc,
  kSwift,
  kTcp,
  kTcpDctcp,
  kNdp,
  kEqds,
  kRccc,
  kNscc,
  kUecDctcp,
  kUecConstant,
};
template <>
inline constexpr std::size_t kValuesOf<TransportKind> = 15;
std::string_view name_of(TransportKind kind);

enum class EcnAt : std::uint8_t { kDequeue, kEnqueue };
template <>
inline constexpr std::size_t kValuesOf<EcnAt> = 2;
std::string_view name_of(EcnAt at);

enum class PfcKind : std::uint8_t { kNone, kStatic, kDynamic };
template <>
inline constexpr std::size_t kValuesOf<PfcKind> = 3;
std::string_view name_of(PfcKind kind);

enum class PathPolicy : std::uint8_t {
  kGivenRoute,
  kEcmpHash,
  kSprayPermute,
  kSprayAdaptive,
  kSprayRandom
};
template <>
inline constexpr std::size_t kValuesOf<PathPolicy> = 5;
std::string_view name_of(PathPolicy policy);

struct SwitchSpec {
  std::optional<Bytes> queue{};          // of a port, data; unset: no limit
  std::optional<Bytes> shared_buffer{};  // of a switch; unset: no limit
  std::optional<Bytes> control_queue{};  // of a port; unset: no limit
  std::optional<Bytes> ecn_low{};        // unset: no marks
  std::optional<Bytes> ecn_high{};       // unset: ecn_low
  double ecn_most = 1;                   // probability at ecn_high
  EcnAt ecn_at = EcnAt::kDequeue;
  bool ecn_on_last_hop = true;
  PfcKind pfc = PfcKind::kNone;
  std::optional<Bytes> pfc_xoff{};
  std::optional<Bytes> pfc_xon{};
  double pfc_alpha = 0.125;
  Bytes pfc_resume_offset{0};
  std::optional<Bytes> pfc_headroom{};  // unset: what the links of the switch need
  Bytes pfc_reserve{0};
  Bytes pfc_frame{64};
  bool trim = false;
  Bytes trimmed{64};
  double trims_arriving = 1;          // probability that the arriving packet is cut
  bool holds_leaving_packet = false;  // a packet leaves its queue with its last bit
};

struct TransportSpec {
  TransportKind kind = TransportKind::kGoBackN;
  // Packets.
  Bytes payload{4096};
  Bytes header{64};
  bool pads_last_packet = false;
  Bytes ack{64};
  std::uint32_t packets_per_ack = 1;
  std::optional<Bytes> ack_every{};  // unset: by packets
  bool acks_first = true;            // control goes before data in every queue
  // Senders.
  std::optional<Bytes> window{};  // unset: none, unless window_round_trips
  double window_round_trips = 0;  // of the base round trip x the link's rate; 0: see window
  bool window_counts_headers = false;
  bool window_follows_rate = false;
  bool waits_for_credit = false;       // the window is credit given in advance
  std::optional<Duration> base_rtt{};  // unset: of each message's route
  bool base_rtt_without_headers = false;
  std::optional<Duration> rto{};  // unset: no time-out
  std::optional<Duration> nack_interval{};
  std::optional<Duration> delayed_ack{};
  std::uint32_t handshakes = 0;
  std::uint32_t trailing_packets = 0;
  std::optional<std::uint32_t> reorder{};  // packets; unset: gaps mean nothing
  std::uint32_t host_queue = 0;            // packets of a message; 0: no limit
  // Receivers that grant credit.
  double pull_rate = 0.99;
  Bytes pull_credit{16384};
  Bytes pull_quantum{256};
  bool htsim_credit = false;
  // The network.
  PathPolicy paths_by = PathPolicy::kGivenRoute;
  std::uint32_t paths = 1;
  bool answers_by_destination = false;
  std::uint32_t skip_per_mark = 0;
  std::uint32_t skip_per_trim = 0;
  std::uint32_t most_skips = 0;
  bool reuses_good_paths = false;
  double loss = 0;
  Duration time_unit{1};
  std::uint64_t seed = 1;
  SwitchSpec switches;
  // Controls.
  DctcpSettings dctcp;
  DcqcnSettings dcqcn;
  TimelySettings timely;
  HpccSettings hpcc;
  SwiftSettings swift;
  NsccSettings nscc;
  UecDctcpSettings uec_dctcp;
};

const FieldTable<TransportSpec>& transport_fields();

// Returns the headroom of a link of this rate (bytes/s) and latency (ps): what comes after a pause
// was decided (802.1Qbb without the response of the far end): both delays, a packet that has just
// begun at either end, and the frame.
Bytes headroom_needed(const TransportSpec& spec, double rate, Instant latency);

// Returns what doesn't fit together: a queue below a packet, thresholds in the wrong order,
// headroom that PFC can't keep on a link of this rate and latency (0: unknown) with so much longest
// packets.
std::vector<Problem> check_transport(const TransportSpec& spec, double most_rate,
                                     Instant most_latency);

}  // namespace stepsim
