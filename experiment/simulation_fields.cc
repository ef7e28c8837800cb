#include "experiment/simulation_fields.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "sim/fields/quantity_field.h"

namespace stepsim {

// The number of routes.
template <>
struct Text<PacketSpraying> {
  static std::string accepts() { return Text<std::uint32_t>::accepts(); }
  static std::optional<PacketSpraying> read(std::string_view text) {
    const auto routes = number_in<std::uint32_t>(text);
    return routes ? std::optional(PacketSpraying{.routes = *routes}) : std::nullopt;
  }
  static std::string write(const PacketSpraying& spraying) {
    return std::to_string(spraying.routes);
  }
  static double number(const PacketSpraying& spraying) { return spraying.routes; }
  static std::string hint(std::string_view text) { return hint_for_whole_number(text); }
};

namespace {

constexpr double kMostSteps = 1000;
constexpr double kMostPacketBytes = std::numeric_limits<std::int32_t>::max();
constexpr double kMostBufferBytes = 1e18;
constexpr double kMostRoutes = 4096;

void add_packet_fields(FieldTable<ExperimentOptions>& table) {
  constexpr auto kPackets = &ExperimentOptions::packets;
  table.theme("Packets", "These fields act on runs with packets only.");
  table.add_inner(
      "packet_bytes", kPackets, &PacketOptions::packet_bytes, Limits::between(1, kMostPacketBytes),
      {.help = "Bytes of a packet.",
       .advice = "Smaller packets come closer to a fluid and take longer to simulate."});
  table.add_inner(
      "switching", kPackets, &PacketOptions::switching, {},
      {.help = "When a switch sends a packet on: once it has all of the packet, or once "
               "it has the header."});
  table.add_inner(
      "buffer_bytes", kPackets, &PacketOptions::buffer_bytes, Limits::between(1, kMostBufferBytes),
      {.help = "Room in the queue of a link. A full queue holds up its senders; nothing "
               "is lost.",
       .rules = "At least packet_bytes.",
       .unset = "no limit"});
  table.add_inner("spraying", kPackets, &PacketOptions::spraying, Limits::between(1, kMostRoutes),
                  {.help = "Spreads each message over up to this many routes.",
                   .unset = "one route, unless the cluster routes adaptively"});
}

}  // namespace

const FieldTable<ExperimentOptions>& simulation_fields() {
  static const FieldTable<ExperimentOptions> kTable = [] {
    FieldTable<ExperimentOptions> table("Simulation");
    table.theme("Every run");
    table.add("fidelity", &ExperimentOptions::fidelities,
              {.help = "Network models. Each is a run of its own.",
               .advice = "flow shares links fairly and answers most questions. packet shows queues "
                         "and takes 10 to 1,000 times as long. latency-bandwidth has no "
                         "contention: its difference from flow is what contention costs."});
    table.add("granularity", &ExperimentOptions::granularity,
              {.help = "Simulates a collective as one transfer, or every message of it.",
               .rules = "Packets are always stepped."});
    table.add("steps", &ExperimentOptions::steps, Limits::between(1, kMostSteps),
              {.help = "Training steps to simulate.",
               .unset = "1; 2 for FSDP and for schedules that overlap steps"});
    table.add("attention_flops", &ExperimentOptions::attention_flops,
              {.help = "How model FLOPs count the scores of causal attention: half of them, or "
                       "all."});
    table.add("explain", &ExperimentOptions::explains,
              {.help = "Compares each part of the step with the books' formulas and explains the "
                       "differences."});
    add_packet_fields(table);
    return table;
  }();
  return kTable;
}

bool acts_on_packets(const AnyField& field) {
  const AnyFieldTable& table = simulation_fields();
  const auto row =
      std::ranges::find(table.fields(), field.name(), [](const auto& of) { return of->name(); });
  const auto index = static_cast<std::size_t>(row - table.fields().begin());
  return index >= table.themes().back().first;
}

std::vector<Problem> check_simulation(const ExperimentOptions& options) {
  for (std::size_t i = 0; i < options.fidelities.size(); ++i) {
    const auto begin = options.fidelities.begin();
    if (std::count(begin, begin + static_cast<std::ptrdiff_t>(i), options.fidelities[i]) == 0)
      continue;
    return {{"fidelity", "must name each network model once, has " +
                             std::string(name_of(options.fidelities[i])) + " again"}};
  }
  const PacketOptions& packets = options.packets;
  if (options.transport) {
    std::vector<Problem> problems;
    const auto refuse = [&problems](bool is_given, const char* field, const char* instead) {
      if (!is_given) return;
      problems.push_back(
          {field, std::string("is of packets without a transport, which ") + instead});
    };
    refuse(packets.switching != PacketOptions{}.switching, "switching", "stores and forwards");
    refuse(packets.buffer_bytes.has_value(), "buffer_bytes", "has queue, shared_buffer and pfc");
    refuse(packets.spraying.has_value(), "spraying", "has paths_by and paths");
    return problems;
  }
  if (!packets.buffer_bytes || *packets.buffer_bytes >= packets.packet_bytes) return {};
  return {{"buffer_bytes", "must be at least " + std::to_string(packets.packet_bytes.value()) +
                               ", the bytes of a packet, is " +
                               std::to_string(packets.buffer_bytes->value())}};
}

}  // namespace stepsim
