// The row `nccl-tests` of stepsim import: a log as a table of collectives
// (docs/measured-tables.md), which `stepsim accuracy` and `stepsim calibrate` read. The reader is
// that of `stepsim calibrate` (measured/nccl_log.h).

#pragma once

#include "import/importer.h"

namespace stepsim {

Imported import_nccl_tests(const ImportRequest& request);

}  // namespace stepsim
