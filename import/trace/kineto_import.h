// The row `kineto` of stepsim import: what a step of PyTorch's traces is made of, and its work as a
// job that can be replayed on another cluster.
//
// A kernel takes its own time. It follows what stood before it on its stream, and a collective
// whose end it began with, within 20 us; a gap before it that this does not explain is launching,
// and counts as time of its stream. A collective starts when the main stream has ended what it had
// ended in the trace. It is simulated if its size, operation and ranks are known and they are the
// job's; else it takes its own time, with the wait that this contains.

#pragma once

#include "import/importer.h"

namespace stepsim {

Imported import_kineto(const ImportRequest& request);

}  // namespace stepsim
