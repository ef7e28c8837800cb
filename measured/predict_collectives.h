// Rows of measured collectives (docs/measured-tables.md): each runs as with `stepsim collective`,
// on the first chips of its cluster, or of each of its nodes.
//
// Libraries of serving have kernels of their own (sim/collectives/direct_kernels.h). An all-reduce
// that such a library's kernel is for takes its closed form; larger ones are simulated. Halves of
// an exchange of tokens with experts among the chips of a node always take one:
//
//   dispatch, combine            kernels of low latency
//   bulk_dispatch, bulk_combine  those for many tokens, on some of a chip's units
//
// As DeepEP is measured, a dispatch sends fp8 with a scale for each 128 values, a combine bf16.
// Their metrics are dispatch_s and combine_s.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "measured/accuracy.h"
#include "sim/chips/kernel.h"
#include "sim/collectives/choose_algorithm.h"
#include "sim/collectives/collective.h"
#include "sim/network/places.h"
#include "sim/program/op_graph.h"

namespace stepsim {

struct MeasuredCollective {
  CollectiveOp op = CollectiveOp::kAllReduce;
  DataType type = DataType::kBf16;
  AlgorithmChoice algorithm = AlgorithmChoice::kAuto;
  std::int64_t bytes = 0;
  std::int64_t ranks = 0;
  std::int64_t nodes = 1;  // that hold equally many; 1: the ranks are the first chips
};

// Returns why the row cannot run; "" if it can.
std::string read_collective(const CsvTable& table, std::size_t record,
                            MeasuredCollective& measured);

// Whether the row is half of an exchange with experts, which read_collective() doesn't read.
bool is_exchange(std::string_view op);

// Returns why the cluster has no such ranks; "" if it has them.
std::string misfit_of(const MeasuredCollective& measured, const Places& places);

// Returns a graph in which every rank runs one op of one communicator. The ranks are the first
// chips of each node, equally many in each. REQUIRES: misfit_of() is "".
OpGraph graph_of(const MeasuredCollective& measured, const Places& places);

// Returns the row without a prediction, skipped if it has other cells than collectives have or no
// time.
AccuracyRow begin_collective_row(const CsvTable& table, std::size_t record);

std::vector<AccuracyRow> predict_collectives(const CsvTable& table, const PredictOptions& options);

}  // namespace stepsim
