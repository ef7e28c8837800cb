// CheckpointCycle says how far a stretch of training is: work, then a checkpoint, over and over.
//
//   |-- interval --|copy|-- interval --|copy|storage|-- interval --|copy| ...      per_storage = 2
//
// Everything follows from the time since the stretch began by a few divisions, so checkpoints are
// no events: a run with a checkpoint a step costs as much as one with a checkpoint a day.

#pragma once

#include "goodput/run_setup.h"

namespace stepsim {

// A point in the stretch. Within a checkpoint `work` stands still and `in_stall` grows.
struct CyclePoint {
  std::int64_t saves = 0;  // checkpoints that were made
  Ticks partial = 0;       // work since the last of them
  Ticks in_stall = 0;
  Ticks stalled = 0;  // in all, `in_stall` included
};

class CheckpointCycle {
 public:
  // `work` is what remains; a checkpoint to all places follows its end, and is waited for.
  CheckpointCycle(const CheckpointCosts& costs, Pace pace, Ticks work);

  CyclePoint at(Ticks elapsed) const;
  Ticks elapsed_at(const CyclePoint& point) const;  // the least time at which that much is done
  Ticks work_at(const CyclePoint& point) const;
  Ticks length() const;  // until all work is done and saved

  // Work that checkpoints of the stretch hold; of storage, only those sent there.
  Ticks copied_at(Ticks elapsed) const;
  Ticks stored_at(Ticks elapsed) const;

 private:
  Ticks last_piece_begins() const;

  CheckpointCosts costs_;
  Pace pace_;
  Ticks gap_;    // time of a whole interval
  Ticks cycle_;  // with its copy
  Ticks super_;  // per_storage of them, with one to storage
  std::int64_t pieces_;
  Ticks last_;  // work of the last piece
};

}  // namespace stepsim
