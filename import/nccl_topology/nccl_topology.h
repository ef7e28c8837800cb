// The row `nccl-topology` of stepsim import: the XML that NCCL and RCCL write (NCCL_TOPO_DUMP_FILE)
// and read (NCCL_TOPO_FILE). It has a machine as it is:
//
//   system > cpu > pci > .. > gpu > nvlink | xgmi | c2c      sockets, PCIe trees, GPUs, their links
//                       .. > nic > net                       cards and their ports
//
// Nodes of the cluster: a chip a GPU, in the order of `rank`, or else `dev`; a host a socket; a
// switch a PCIe switch, and one for all NVSwitches; a card a PCI device with ports. Links, one way:
//
//   PCIe     GT/s x width / 8 x 128/130 (8/10 below 8 GT/s, 242/256 from 64 on), of each link as it
//   is;
//            without speed or width 8 GT/s and 16, as NCCL takes it: assumed
//   NVLink   count x the speed of a link of the chip (catalog/hardware/aliases.textproto); links to
//   xGMI     a processor go to its socket
//   c2c      count x bw MB/s, to the socket
//   sockets  each to each, what NCCL takes for the processor (the same file): assumed
//   net      speed Mbit/s of each port
//
// The chip is that of the PCI device, or the one taken for `sm` or `gcn` (assumed); --chip gives
// another. GPUs of one machine must be alike. --ranks N, a multiple of the GPUs, puts as many such
// machines side by side: ports of the same number meet in one switch (assumed: the file does not
// say how they are cabled). A machine alone has no network.
//
// As in NCCL: devices of a class without <gpu> or <nic> are left out, unless no device has one
// (files written by hand, which NCCL completes from the driver: it knows NVLinks that are not in
// the file). Latencies are not in the file: 0.25 us of NVLink and xGMI, 0.5 us of PCIe, sockets and
// the network are assumed. Not modelled: gdr, coll (reductions in the network), latency and maxconn
// of ports.

#pragma once

#include "import/importer.h"

namespace stepsim {

Imported import_nccl_topology(const ImportRequest& request);

}  // namespace stepsim
