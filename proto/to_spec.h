// These functions turn messages of files into the checked structs of the simulator. They report
// everything that is missing, unreadable or impossible under the field's path in the experiment
// ("plan.tp"). They return the spec in any case; if there are problems, it only serves to find more
// of them.

#pragma once

#include "experiment/experiment.h"
#include "experiment/published.h"
#include "proto/cluster.pb.h"
#include "proto/experiment.pb.h"
#include "proto/messages/problem_list.h"
#include "proto/model.pb.h"
#include "proto/plan.pb.h"
#include "sim/base/quantity_text.h"

namespace stepsim {

ModelSpec to_model(const file::Model& model, ProblemList& problems);          // under "model"
ClusterSpec to_cluster(const file::Cluster& cluster, ProblemList& problems);  // under "cluster"

// Reports under "plan". check() of schedules/plan/parallel_plan.h checks whether the plan fits a
// model and a cluster.
ParallelPlan to_plan(const file::Plan& plan, ProblemList& problems);

// Reports under "published" and "not_published".
Publication to_publication(const file::Experiment& experiment, ProblemList& problems);

}  // namespace stepsim
