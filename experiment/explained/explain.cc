#include "experiment/explained/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "experiment/explained/explain_parts.h"
#include "schedules/plan/axis.h"
#include "sim/base/quantity_text.h"

namespace stepsim {

double value_of(std::string_view formula_id, const FormulaValues& values) {
  return evaluate(*find_formula(formula_id), values).value;
}

namespace {

std::string seconds_text(double seconds) {
  return to_text(duration_from_seconds(std::max(0.0, seconds)));
}

// Exposure is the time of an axis that the formulas do not hide, if its communication takes V / W
// in all.
struct Exposure {
  double seconds = 0;
  std::string formula;
  std::string text;
};

Exposure predicted_exposure(const FinishedRun& run, Axis axis, double whole, double background) {
  const ParallelPlan& plan = run.experiment.plan;
  const double ideal = ideal_compute(run);
  if (axis == Axis::kPipeline) return {0, "G1", "messages are taken to be free"};
  if (axis == Axis::kData) {
    const bool sharded = plan.state.zero == 3;
    const double behind = sharded ? ideal : plan.overlap.gradients ? 2 * ideal / 3 : 0;
    return {
        std::max(0.0, whole - behind), sharded ? "E2" : "E1",
        fmt::format("V / W = {}, hidden behind {} of arithmetic{}", seconds_text(whole),
                    seconds_text(behind), sharded ? "" : " (the backward's, all micro-batches)")};
  }
  if (axis == Axis::kContext && plan.tensor.cp_mode != ContextMode::kAllGather &&
      plan.tensor.cp_mode != ContextMode::kUlysses) {
    // Attention takes tokens / limit times as long as the rotation.
    const double limit = rotation_limit(run);
    const double tokens =
        static_cast<double>(plan.batch.sequence) / static_cast<double>(plan.mesh.cp);
    const double left = limit > 0 ? std::max(0.0, 1 - tokens / limit) : 1;
    return {left * whole, "E23",
            fmt::format("V / W = {}; attention over {:.0f} tokens a chip hides {}",
                        seconds_text(whole), tokens, left == 0 ? "it" : "a part of it")};
  }
  std::string text = fmt::format("V / W = {}, on the critical path", seconds_text(whole));
  if (background > 0) {
    text += fmt::format(" but for {} in the background", seconds_text(background));
  }
  const char* const formula = axis == Axis::kTensor ? "E6" : axis == Axis::kExpert ? "E13" : "";
  return {whole - background, formula, std::move(text)};
}

ExplainedPart explain_axis(const FinishedRun& run, Axis axis,
                           const std::vector<ExplainedTraffic>& traffic) {
  double whole = 0;
  double background = 0;
  double moved = 0;
  std::vector<ExplainedCause> causes;
  for (const ExplainedTraffic& one : traffic) {
    if (one.axis != name_of(axis)) continue;
    whole += one.predicted;
    moved += one.simulated;
    if (one.in_background) background += one.predicted;
    for (const ExplainedCause& cause : one.causes) {
      const auto same = std::ranges::find(causes, cause.text, &ExplainedCause::text);
      if (same == causes.end()) {
        causes.push_back(cause);
      } else {
        same->amount += cause.amount;
      }
    }
  }
  Exposure exposure = predicted_exposure(run, axis, whole, background);
  ExplainedPart part{
      .name = fmt::format("exposed {}", name_of(axis)),
      .formula = std::move(exposure.formula),
      .text = std::move(exposure.text),
      .predicted = exposure.seconds,
      .simulated =
          to_seconds(run.result.breakdown.exposed_communication[static_cast<std::size_t>(axis)]),
      .causes = std::move(causes)};
  // V / W and the causes above are the time in which data moved. A part of it is hidden, in the run
  // and in the formula.
  const double scale = std::max({part.simulated, part.predicted, moved});
  add_cause(part.causes, "parts that the formula assumes to be hidden or free",
            whole - part.predicted, scale);
  const double beyond = part.simulated - moved;
  add_cause(part.causes, "hidden in this run behind other work", std::min(beyond, 0.0), scale);
  add_cause(part.causes, "ranks that wait for traffic of other ranks", std::max(beyond, 0.0),
            scale);
  return part;
}

ExplainedPart explain_idle(const FinishedRun& run) {
  ExplainedPart part{.name = "idle",
                     .formula = "",
                     .text = "ranks of a stage are alike",
                     .predicted = 0,
                     .simulated = to_seconds(run.result.breakdown.idle),
                     .causes = {}};
  add_cause(part.causes, "waiting for peers of the same stage, or nothing left to do",
            part.simulated, part.simulated);
  return part;
}

}  // namespace

void add_cause(std::vector<ExplainedCause>& causes, std::string text, double amount, double scale) {
  constexpr double kNothing = 1e-9;
  if (std::abs(amount) <= kNothing * std::abs(scale)) return;
  causes.push_back({std::move(text), amount});
}

std::vector<ExplainedRole> roles_of(const FinishedRun& run) {
  std::map<std::uint32_t, ExplainedRole> roles;
  const auto ranks = static_cast<double>(run.graph.ranks.size());
  for (const RankData& rank : run.graph.ranks) {
    ExplainedRole& role = roles[rank.program.index()];
    role.program = rank.program.index();
    role.share += 1 / ranks;
  }
  for (const Timeline& timeline : run.result.timelines) {
    ExplainedRole& role = roles[run.graph.ranks[timeline.rank.index()].program.index()];
    if (role.timeline == nullptr) role.timeline = &timeline;
  }
  std::vector<ExplainedRole> all;
  for (const auto& [program, role] : roles) all.push_back(role);
  return all;
}

Explanation explain(const FinishedRun& run) {
  const std::vector<ExplainedRole> roles = roles_of(run);
  Explanation explanation;
  explanation.traffic = explain_traffic(run, roles);
  const bool generates = run.experiment.plan.pass.inference == Inference::kDecode;
  explanation.parts.push_back(generates ? explain_generation(run, roles)
                                        : explain_compute(run, roles));
  double work = explanation.parts.front().predicted;
  for (std::size_t i = 0; i < kAxes; ++i) {
    const auto axis = static_cast<Axis>(i);
    ExplainedPart part = explain_axis(run, axis, explanation.traffic);
    if (part.predicted == 0 && part.simulated == 0 && part.causes.empty()) continue;
    if (axis != Axis::kData && axis != Axis::kPipeline) work += part.predicted;
    explanation.parts.push_back(std::move(part));
  }
  if (run.experiment.plan.mesh.splits_ffn()) explanation.parts.push_back(explain_turns(run));
  if (run.experiment.plan.mesh.pp > 1) explanation.parts.push_back(explain_bubble(run, work));
  if (run.result.breakdown.idle.count() > 0) explanation.parts.push_back(explain_idle(run));

  ExplainedPart& step = explanation.step;
  step.name = "step";
  step.text = "the sum of the parts";
  step.simulated = to_seconds(run.result.step_time);
  for (const ExplainedPart& part : explanation.parts) step.predicted += part.predicted;
  for (const ExplainedPart& part : explanation.parts) {
    add_cause(step.causes, part.name, part.simulated - part.predicted, step.simulated);
  }
  explanation.limits = explain_limits(run);
  explanation.memory = explain_memory(run);
  return explanation;
}

}  // namespace stepsim
