// The row `msccl` of stepsim import: an algorithm of MSCCL's XML (microsoft/msccl, msccl-tools;
// RCCL's tools/msccl-algorithms) as one that `stepsim collective --algorithm FILE` runs.
//
//   <algo coll="allreduce" ngpus="8" nchunksperloop="8" inplace="1" ..>
//     <gpu id="0" i_chunks="8" o_chunks="8" s_chunks="0">
//       <tb id="0" send="1" recv="7" chan="0">
//         <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1"
//         deps="-1"
//               hasdep="0"/>
//
// The thread blocks are run on symbols: each chunk of a buffer is a block of the collective, and
// each send is a step of the algorithm.
//
//   lane   the place of the sender's thread block on its GPU: they send side by side
//   round  one more than all that the send waits for: sends of its thread block, what that has
//          received, and what the steps that it depends on have received
//   after  what was received in other lanes
//
// So ring, all pairs, recursive and hierarchical algorithms keep their order and what they move.
// What comes out is proved to do what the operation promises, as of every algorithm file. An
// algorithm that keeps several partial sums of a block apart until a late reduction has no form
// here, and is refused by that proof.
//
// Not modelled: local copies and reductions take no time; proto, nchannels and the range of bytes
// are not in the file of stepsim: the library chooses a protocol, and the algorithm is taken for
// any size. Operations: allreduce, allgather, reduce_scatter, alltoall, broadcast (from GPU 0).

#pragma once

#include "import/importer.h"

namespace stepsim {

Imported import_msccl(const ImportRequest& request);

}  // namespace stepsim
