// Messages that start from something else: `catalog: "llama3-70b"`, `huggingface: "config.json"`.
// resolve() puts what they name in their place, under the fields that they give themselves.
//
// A reference that can't be followed is reported, and resolve() returns false: what is missing in
// the message then says nothing.

#pragma once

#include <filesystem>

#include "proto/cluster.pb.h"
#include "proto/model.pb.h"
#include "proto/plan.pb.h"
#include "proto/problem_list.h"

namespace stepsim {

// `folder`: where `huggingface` paths start.
bool resolve(file::Model& model, const std::filesystem::path& folder, ProblemList& problems);
bool resolve(file::Cluster& cluster, ProblemList& problems);  // its chip and its library
bool resolve(file::Plan& plan, ProblemList& problems);

}  // namespace stepsim
