// Measured collectives: each row runs as with `stepsim collective`, on the cluster that its
// hardware stands for. Columns: hardware, nodes, ranks, ranks_per_node, op, bytes (as in
// nccl-tests), time_us, dtype, algo (Ring or empty), source or source_id.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "analysis/accuracy/accuracy.h"
#include "sim/chips/kernel.h"
#include "sim/collectives/choose_algorithm.h"
#include "sim/collectives/collective.h"
#include "sim/program/op_graph.h"

namespace stepsim {

struct MeasuredCollective {
  CollectiveOp op = CollectiveOp::kAllReduce;
  DataType type = DataType::kBf16;
  AlgorithmChoice algorithm = AlgorithmChoice::kAuto;
  std::int64_t bytes = 0;
  std::int64_t ranks = 0;
  std::int64_t nodes = 1;
};

// Returns why the row cannot run; "" if it can.
std::string read_collective(const CsvTable& table, std::size_t record,
                            MeasuredCollective& measured);

// Returns a graph in which every rank runs one op of one communicator. The ranks are the first
// chips of each node, equally many in each.
OpGraph graph_of(const MeasuredCollective& measured, std::int64_t chips_per_node);

std::vector<AccuracyRow> predict_collectives(const CsvTable& table,
                                             const std::vector<Hardware>& hardware,
                                             const PredictOptions& options);

// Measured collectives of serving: NCCL's run likewise; all-reduces of vLLM, SGLang and
// TensorRT-LLM and the dispatch and combine of DeepEP in a node take what a library of the catalog
// says (sim/collectives/direct_kernels.h), all-reduces beyond its limit what NCCL's take.
// Columns: chip, table, op, kernel, dtype, num_gpus, nodes, message_elements, latency_ms, or
// tokens, hidden, topk, experts, sms, dispatch_us, combine_us; those of
// ai-dynamo/aiconfigurator@095f58a5. DeepEP runs on all chips of a node there; its dispatch sends
// fp8 with a scale for each 128 values, its combine bf16. A row of DeepEP gives two, of metrics
// dispatch_s and combine_s. Its normal kernels run on `sms` units; where that is not given, six
// rows of one shape are of 4, 8, .. 24 units in this order, and a single one of 20, DeepEP's
// default. Skipped are eager calls, which wait for the host.
std::vector<AccuracyRow> predict_serving_collectives(const CsvTable& table,
                                                     const std::vector<Hardware>& hardware,
                                                     const PredictOptions& options);

}  // namespace stepsim
