#include "sim/run/simulation_options.h"

namespace stepsim {

std::string_view name_of(Fidelity fidelity) {
  switch (fidelity) {
    case Fidelity::kFlow:
      return "flow";
    case Fidelity::kPacket:
      return "packet";
    case Fidelity::kLatencyBandwidth:
      break;
  }
  return "latency-bandwidth";
}

std::string_view name_of(Granularity granularity) {
  return granularity == Granularity::kPipelined ? "pipelined" : "stepped";
}

}  // namespace stepsim
