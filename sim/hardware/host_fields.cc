#include "sim/hardware/host_fields.h"

#include "sim/fields/quantity_field.h"

namespace stepsim {

const FieldTable<HostSpec>& host_fields() {
  static const FieldTable<HostSpec> kTable = [] {
    FieldTable<HostSpec> table("Host");
    table.add("link_bandwidth", &HostSpec::link_bandwidth, Limits::positive(),
              {.help = "Bandwidth of the link between a chip and its host, one way.",
               .advice = "What copies reach, not what the data sheet states: about 55GB/s of PCIe "
                         "5.0 x16. Plans that offload need it.",
               .unset = "there is no host"});
    table.add("link_latency", &HostSpec::link_latency,
              {.help = "Time to start a copy, and until its first byte is there.",
               .advice = "About 10us. It counts where many small tensors are copied."});
    table.add("chips", &HostSpec::chips, Limits::at_least(1),
              {.help = "Chips of a host. Hosts take chips in order of their numbers.",
               .advice = "More chips share one memory."});
    table.add("uplink_chips", &HostSpec::uplink_chips, Limits::at_least(1),
              {.help = "Chips that share one uplink to the host, behind a PCIe switch.",
               .rules = "Divides chips."});
    table.add("uplink_bandwidth", &HostSpec::uplink_bandwidth, Limits::positive(),
              {.help = "Bandwidth of an uplink, one way.",
               .advice = "It is usually less than the sum of the chips' links, so those chips wait "
                         "for each other.",
               .unset = "that of a link"});
    table.add("memory_bandwidth", &HostSpec::memory_bandwidth,
              {.help = "Bandwidth of the host's memory, which all copies and the host's optimizer "
                       "steps share.",
               .advice = "What a stream of reads and writes reaches: about 0.8 of the channels' "
                         "peak.",
               .rules = "Must be given where there is a host."});
    table.add("memory_capacity", &HostSpec::memory_capacity,
              {.help = "Memory of a host.",
               .advice = "What is offloaded beyond it doesn't fit.",
               .rules = "Must be given where there is a host."});
    return table;
  }();
  return kTable;
}

}  // namespace stepsim
