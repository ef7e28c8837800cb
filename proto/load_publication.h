// load_publication() reads what was published about an experiment, from its file or the catalog.
//
//   for (const PublishedFigure& figure : load_publication("bloom-176b-dgx-a100-384").figures) ...

#pragma once

#include <string>

#include "experiment/published.h"

namespace stepsim {

// `experiment` is a file (.textproto or .json) or a name of the catalog. Throws ConfigError with
// every problem of what it says there, and if it can't be read.
Publication load_publication(const std::string& experiment);

}  // namespace stepsim
