// Files that a file names: config.json, chips, libraries, schedules, tables of requests. An
// experiment may come from a stranger, so what it names must lie beside it, in its folder or one
// below it, also once links are followed: otherwise an experiment could have stepsim read any file
// of its user, and say in a message or a result what is in it. Whoever means another file names it
// on the command line.
//
//   place_files("downloads/", experiment, problems);   // plan.schedule: "order.txt" is
//   "downloads/order.txt"

#pragma once

#include <filesystem>

#include "proto/experiment.pb.h"
#include "proto/messages/problem_list.h"

namespace stepsim {

// Puts `folder` before the names of files, and adds a problem for each that leads out of it.
void place_files(const std::filesystem::path& folder, file::Experiment& experiment,
                 ProblemList& problems);
void place_files(const std::filesystem::path& folder, file::Cluster& cluster,
                 ProblemList& problems);
void place_files(const std::filesystem::path& folder, file::Plan& plan, ProblemList& problems);

}  // namespace stepsim
