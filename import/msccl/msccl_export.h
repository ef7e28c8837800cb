// Writes a collective algorithm as the XML of MSCCL (microsoft/msccl, and RCCL with
// tools/msccl-algorithms): `stepsim collective OP --algorithm A --export msccl FILE.xml`.
//
//   <algo coll="allreduce" ngpus="8" nchunksperloop="8" inplace="1" ..>
//     <gpu id="0" i_chunks="8" o_chunks="8" s_chunks="0">
//       <tb id="0" send="1" recv="-1" chan="0">
//         <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" .../>
//
// A lane is a channel. Each GPU has a thread block for each member that it sends to in a lane and
// one for each that it receives from. A message is a step on both sides, or several where its
// blocks don't lie side by side. A step waits for those that wrote what it reads, and for those
// that read what it writes: the data decides, rounds don't. Where it waits for several, steps nop
// stand before it, as each can name one.
//
// A block is a chunk of the buffers, which are one in place; all-to-alls are out of place, and what
// they pass on lies in scratch.
//
// Refused: operations that MSCCL has no name for, broadcasts not from member 0, algorithms in which
// switches add. Not said: bytes and protocol, which are of no algorithm here.
//
// Time and memory: O(messages + members x blocks).

#pragma once

#include <string>
#include <vector>

#include "sim/collectives/algorithm.h"

namespace stepsim {

struct MscclExport {
  std::string text;
  std::vector<std::string> notes;  // limits of MSCCL that it passes
};

// Throws ConfigError if it can't be said. REQUIRES: disproof(task, algorithm) finds nothing.
MscclExport export_msccl(const CollectiveTask& task, const CollectiveAlgorithm& algorithm,
                         std::string_view name);

}  // namespace stepsim
