// Collective matmul: a collective and the matmul that reads or feeds it run in chunks. One part of
// the data moves while the part before it is multiplied (Wang and others, ASPLOS 2023, "Overlap
// communication with dependent computation via decomposition"). With k chunks the pair takes
//
//   max(T_math, T_comm) + min(T_math, T_comm) / k
//
// in place of T_math + T_comm (FORMULAS E6, S15). That holds if a chunk is much longer than a trip
// and the matmul loses nothing in its smaller shapes. Both effects are simulated, so more chunks
// may be worse.
//
//   all-gather | matmul            gather 1 | matmul 1  | matmul 2  | matmul 3
//                                           | gather 2  | gather 3  |
//   matmul | reduce-scatter                 | matmul 1  | matmul 2  | matmul 3  |
//                                                       | scatter 1 | scatter 2 | scatter 3
//
// The rows of the matmul (tokens) are gathered or scattered. Each chunk reads the whole weights
// again.

#pragma once

#include <cstdint>
#include <vector>

#include "schedules/lowering/steps/tensor.h"

namespace stepsim {

// Returns the steps with each all-gather before a matmul and each reduce-scatter behind one cut
// into at most `chunks` chunks (never more than the matmul has rows). Other steps are unchanged. So
// are kernels that stand between the matmul and the far end of its step. REQUIRES: chunks >= 1.
std::vector<LayerStep> overlap_matmuls(std::vector<LayerStep> steps, std::int64_t chunks);

// Returns the steps with each all-gather of the tensor group before a matmul, and each
// reduce-scatter of it behind one, beside that matmul but for one piece of `pieces`, as if the
// pieces were exchanged and multiplied one after the other without any loss:
//
//   gather          |--- gather ------|                       T_comm
//   matmul          |-- k - 1 of k -----|-- 1 of k --|        max(T_math (k-1)/k, T_comm) +
//   T_math/k
//
//   matmul          |- 1 of k -|--- k - 1 of k ------|
//   scatter                    |--- k - 1 of k --|    |- 1 of k -|
//
// So Transformer Engine's userbuffers exchange (transformer_engine/common/comm_gemm_overlap), whose
// pieces go round while a rank multiplies those it has. A matmul between a gather and a scatter is
// beside the gather. REQUIRES: pieces >= 2.
std::vector<LayerStep> exchange_beside_matmuls(std::vector<LayerStep> steps, std::int64_t pieces);

}  // namespace stepsim
