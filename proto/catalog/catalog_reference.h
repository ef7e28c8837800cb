// Resolves messages that are based on something else: `catalog: "llama3-70b"`, `huggingface:
// "config.json"`. resolve() puts the named entry under the fields that the message itself has.
//
// A chip or a library may also name a file (`catalog: "my-chip.textproto"`), which may itself start
// from an entry of the catalog, but not from another file.
//
// If a reference cannot be followed, resolve() reports it and returns false. A field that is
// missing in the message then means nothing.

#pragma once

#include <filesystem>

#include "proto/cluster.pb.h"
#include "proto/messages/problem_list.h"
#include "proto/model.pb.h"
#include "proto/plan.pb.h"

namespace stepsim {

// `folder`: the folder in which `huggingface` paths start.
bool resolve(file::Model& model, const std::filesystem::path& folder, ProblemList& problems);
bool resolve(file::Cluster& cluster, ProblemList& problems);  // and its chip and library

bool resolve(file::Plan& plan, ProblemList& problems);

// Puts the keys of the plan's software under the plan's own, and its efficiencies over the chip's,
// but under `own`: the fields of a chip that the experiment itself gives. Does nothing if the plan
// names none.
bool resolve_software(file::Plan& plan, file::Chip& chip, const file::Chip& own,
                      ProblemList& problems);

}  // namespace stepsim
