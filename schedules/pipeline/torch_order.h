// The order of a pipeline schedule as PyTorch has it in CSV (torch.distributed.pipelining,
// PipelineScheduleMulti._dump_csv and _load_csv with format="compute_only"), which torchtitan reads
// from parallelism.pipeline_parallel_schedule_csv:
//
//   0F0,0F1,2F0,2B0,0B0,...
//   1F0,1F1,...
//
// A line is a rank, a cell an op: the stage, counted over all ranks, F a forward, B a whole
// backward, I its part for the inputs and W that for the weights, and the micro-batch;
// (0F3;2B1)OVERLAP_F_B is a forward fused with a backward. Cells may be empty. Sends, receives and
// what FSDP gathers are PyTorch's to add.
//
// Stage c P + r is chunk c of rank r; in a V odd chunks go back. PyTorch has one copy of each
// stage, so schedules in two directions have no such order.

#pragma once

#include <string>
#include <string_view>

#include "schedules/pipeline/pipeline_schedule.h"

namespace stepsim {

// Returns whether a text is such an order rather than one of schedule_file.h.
bool is_torch_order(std::string_view text);

// Throws ConfigError with every cell that can't be read. The result still needs check_order().
PipelineSchedule parse_torch_order(std::string_view text);

// Returns the text. Throws ConfigError if the schedule is bidirectional.
std::string write_torch_order(const PipelineSchedule& schedule);

}  // namespace stepsim
