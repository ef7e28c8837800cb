#include "traces/results/goodput_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/json_text.h"
#include "sim/base/quantity_text.h"
#include "traces/results/report_text.h"

namespace stepsim {
namespace {

constexpr std::size_t kListedClasses = 8;
constexpr double kHoursOfDay = 24;

double seconds_of(Ticks ticks) {
  return static_cast<double>(ticks) / kTicksPerSecond;
}

// "1.5 s", "23.4 min", "3.09 h", "1.2 days".
std::string span_text(double seconds) {
  if (seconds < 120) return fmt::format("{:.3g} s", seconds);
  if (seconds < 7200) return fmt::format("{:.3g} min", seconds / 60);
  if (seconds < 172800) return fmt::format("{:.3g} h", seconds / 3600);
  return fmt::format("{:.4g} days", seconds / 86400);
}

std::int64_t paid_nodes(const GoodputOutcome& outcome) {
  return outcome.setup.nodes + outcome.setup.spares;
}

std::optional<double> cost_of(const GoodputOutcome& outcome) {
  if (!outcome.price) return std::nullopt;
  const auto chips = static_cast<double>(paid_nodes(outcome) * outcome.trained.job.chips_per_node);
  return *outcome.price * chips * outcome.result.mean_days * kHoursOfDay;
}

std::optional<double> effective_mfu(const GoodputOutcome& outcome) {
  if (outcome.experiment.empty()) return std::nullopt;
  return outcome.result.goodput * outcome.trained.model_flops_utilization;
}

std::optional<double> tokens_per_day(const GoodputOutcome& outcome) {
  if (outcome.experiment.empty()) return std::nullopt;
  const double steps = seconds_of(outcome.setup.work) / seconds_of(outcome.trained.job.step);
  return steps * outcome.trained.tokens_per_step / outcome.result.mean_days;
}

const PublishedGoodput* published_figure(const GoodputOutcome& outcome) {
  const auto& published = outcome.table.published;
  return published && published->experiment == outcome.experiment ? &*published : nullptr;
}

std::string goodput_number(const std::optional<double>& value) {
  return value ? json_number(*value) : "null";
}

// ---- report ----

void add_head(ReportText& text, const GoodputOutcome& outcome) {
  const TrainedJob& trained = outcome.trained;
  text.line("{}", text.paint(outcome.experiment.empty() ? "training with a given step"
                                                        : outcome.experiment,
                             Paint::kBold));
  text.line("  {} chips on {} nodes, {} spare nodes; failures: {}", grouped(trained.job.chips),
            grouped(outcome.setup.nodes), outcome.setup.spares, outcome.table.name);
  if (trained.job.spare_groups > 1) {
    text.line(
        "  spares lie in {} groups of nodes; with one of another group a step takes {:+.2f} %",
        trained.job.spare_groups, 100 * (trained.job.far_slowdown - 1));
  }
  text.line("  {} steps of {}{}", grouped(outcome.setup.work / trained.job.step),
            to_text(trained.step),
            outcome.experiment.empty()
                ? ""
                : fmt::format(": {:.4g} tokens",
                              static_cast<double>(outcome.setup.work / trained.job.step) *
                                  trained.tokens_per_step));
}

// "812 kWh", "26.4 GWh".
std::string kilowatt_hours_text(double kilowatt_hours) {
  if (kilowatt_hours >= 1e6) return fmt::format("{:.4g} GWh", kilowatt_hours / 1e6);
  if (kilowatt_hours >= 1e4) return fmt::format("{:.4g} MWh", kilowatt_hours / 1e3);
  return fmt::format("{:.4g} kWh", kilowatt_hours);
}

void add_energy(ReportText& text, const GoodputOutcome& outcome) {
  if (outcome.experiment.empty()) return;
  if (!outcome.energy) {
    text.line("  {:<{}}{:>12}  {} doesn't say its power: `power` of the chip", "energy",
              kReportLabel, "not known", outcome.chip);
    return;
  }
  const RunEnergy& energy = *outcome.energy;
  text.line("  {:<{}}{:>12}  {:.0f} W a chip in a step, {:.0f} W idle{}", "energy", kReportLabel,
            kilowatt_hours_text(energy.kilowatt_hours), outcome.power.step_watts,
            outcome.power.idle_watts,
            outcome.power.pue == 1 ? "; chips alone"
                                   : fmt::format(", times a PUE of {}", outcome.power.pue));
  text.line("  {:<{}}{:>12}  while no progress was made, and of spares", "  of which", kReportLabel,
            kilowatt_hours_text(energy.standing_kilowatt_hours));
  if (!energy.carbon_kilograms) return;
  text.line("  {:<{}}{:>10} t  of CO2, {:.4g} g a kWh", "carbon", kReportLabel,
            fmt::format("{:.4g}", *energy.carbon_kilograms / 1000),
            *energy.carbon_kilograms * 1000 / energy.kilowatt_hours);
}

void add_result(ReportText& text, const GoodputOutcome& outcome) {
  const GoodputResult& result = outcome.result;
  text.blank();
  text.line("  {:<{}}{:>12.2f}  {:.2f} to {:.2f} in 8 of 10 runs", "days", kReportLabel,
            result.mean_days, result.p10_days, result.p90_days);
  text.line("  {:<{}}{:>10.2f} %", "goodput", kReportLabel, 100 * result.goodput);
  if (const PublishedGoodput* published = published_figure(outcome)) {
    text.line("  {:<{}}{:>10.2f} %  {}", published->at_least ? "published: over" : "published",
              kReportLabel, 100 * published->goodput, published->source);
  }
  if (const auto mfu = effective_mfu(outcome)) {
    text.line("  {:<{}}{:>10.2f} %  of {:.2f} % in a step", "effective MFU", kReportLabel,
              100 * *mfu, 100 * outcome.trained.model_flops_utilization);
    text.line("  {:<{}}{:>12.4g}", "tokens a day", kReportLabel, *tokens_per_day(outcome));
  }
  if (const auto cost = cost_of(outcome)) {
    text.line("  {:<{}}{:>12}", "cost", kReportLabel, grouped(*cost));
  }
  add_energy(text, outcome);
}

void add_assumed(ReportText& text, const GoodputOutcome& outcome) {
  if (outcome.assumed.empty()) return;
  text.section("Assumed", "not asked for, and not of this cluster");
  for (const AssumedField& one : outcome.assumed) {
    text.wrapped(2, fmt::format("{} = {}: {}", one.field, one.value, one.why));
  }
}

void add_time_parts(ReportText& text, const GoodputOutcome& outcome) {
  text.section("Where the time goes", "days of a run");
  for (std::size_t i = 0; i < kRunParts; ++i) {
    const double days = outcome.result.parts_days[i];
    text.line("  {:<{}}{:>12.3f}{:>9.2f} %", name_of(static_cast<RunPart>(i)), kReportLabel, days,
              100 * days / outcome.result.mean_days);
  }
}

std::string places_text(const GoodputOutcome& outcome) {
  std::string text;
  for (std::size_t i = 0; i < kCheckpointPlaces; ++i) {
    if (!outcome.setup.checkpoint.has[i]) continue;
    text += (text.empty() ? "" : ", ") + std::string(name_of(static_cast<CheckpointPlace>(i)));
  }
  return text;
}

void add_checkpoints(ReportText& text, const GoodputOutcome& outcome) {
  const CheckpointCosts& costs = outcome.setup.checkpoint;
  text.section("Checkpoints", places_text(outcome));
  if (outcome.trained.checkpoint.value() > 0) {
    text.line("  {:<{}}{:>12}", "size", kReportLabel, to_text(outcome.trained.checkpoint));
  }
  text.line("  {:<{}}{:>12}", "every", kReportLabel, span_text(seconds_of(costs.interval)));
  if (costs.has[2] && costs.per_storage > 1) {
    text.line("  {:<{}}{:>12}", "to storage every", kReportLabel,
              span_text(seconds_of(costs.interval * costs.per_storage)));
  }
  text.line("  {:<{}}{:>12}", "training stands for", kReportLabel,
            span_text(seconds_of(costs.per_storage > 1 ? costs.copy_stall
                                                       : costs.copy_stall + costs.storage_stall)));
  if (costs.has[2]) {
    text.line("  {:<{}}{:>12}", "safe in storage after", kReportLabel,
              span_text(seconds_of(costs.storage_stall + costs.storage_flush)));
  }
  text.line("  {:<{}}{:>12}", "restart from storage", kReportLabel,
            span_text(seconds_of(outcome.setup.restart + costs.load[2])));
}

void add_failures(ReportText& text, const GoodputOutcome& outcome) {
  const GoodputResult& result = outcome.result;
  text.section("Failures", "of a run");
  text.line("  {:<{}}{:>12.1f}{}", "all", kReportLabel, result.failures,
            result.failures > 0
                ? ", one every " + span_text(result.mean_days * 86400 / result.failures)
                : "");
  std::vector<std::size_t> order(result.failures_by_class.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&result](std::size_t a, std::size_t b) {
    return result.failures_by_class[a] > result.failures_by_class[b];
  });
  for (std::size_t i = 0; i < order.size() && i < kListedClasses; ++i) {
    text.line("  {:<{}}{:>12.1f}", outcome.table.classes[order[i]].name.substr(0, 21), kReportLabel,
              result.failures_by_class[order[i]]);
  }
  if (order.size() > kListedClasses) {
    text.line("  and {} more classes", order.size() - kListedClasses);
  }
  if (result.undetected >= 0.05) {
    text.line("  {:<{}}{:>12.1f}", "corruptions not found", kReportLabel, result.undetected);
  }
}

void add_curve(ReportText& text, const GoodputOutcome& outcome) {
  if (outcome.by_interval.empty()) return;
  text.section("Other intervals", "goodput");
  const std::size_t best = best_point(outcome.by_interval);
  for (std::size_t i = 0; i < outcome.by_interval.size(); ++i) {
    const CurvePoint& point = outcome.by_interval[i];
    text.line("  {:<{}}{:>10.2f} %{}", span_text(point.x), kReportLabel, 100 * point.result.goodput,
              i == best ? "  most" : "");
  }
  text.section("Other numbers of spares", "goodput");
  const std::size_t cheapest = best_spares(outcome.by_spares, outcome.setup.nodes);
  for (std::size_t i = 0; i < outcome.by_spares.size(); ++i) {
    const CurvePoint& point = outcome.by_spares[i];
    text.line("  {:<{}}{:>10.2f} %{}", point.x, kReportLabel, 100 * point.result.goodput,
              i == cheapest ? "  most for each node that is paid for" : "");
  }
}

void add_sensitivity(ReportText& text, const GoodputOutcome& outcome) {
  if (outcome.sensitivity.empty()) return;
  text.section("Rates", "days with half   and twice the failures");
  for (std::size_t i = 0; i < outcome.sensitivity.size() && i < kListedClasses; ++i) {
    const ClassSensitivity& each = outcome.sensitivity[i];
    text.line("  {:<{}}{:>12.2f}{:>12.2f}", outcome.table.classes[each.of].name.substr(0, 21),
              kReportLabel, each.half_days, each.twice_days);
  }
}

// ---- JSON ----

std::string parts_days_json(const GoodputResult& result) {
  std::string text;
  for (std::size_t i = 0; i < kRunParts; ++i) {
    text += fmt::format("{}\"{}\": {}", i == 0 ? "{" : ", ", name_of(static_cast<RunPart>(i)),
                        json_number(result.parts_days[i]));
  }
  return text + "}";
}

std::string classes_json(const GoodputOutcome& outcome) {
  std::string text = "[";
  for (std::size_t i = 0; i < outcome.table.classes.size(); ++i) {
    text += fmt::format("{}\n    {{\"name\": \"{}\", \"count\": {}}}", i == 0 ? "" : ",",
                        json_escaped(outcome.table.classes[i].name),
                        json_number(outcome.result.failures_by_class[i]));
  }
  return text + "\n  ]";
}

std::string checkpoint_json(const GoodputOutcome& outcome) {
  const CheckpointCosts& costs = outcome.setup.checkpoint;
  return fmt::format(
      "{{\"bytes\": {}, \"storage_interval_s\": {}, \"copy_stall_s\": {}, \"storage_stall_s\": {}, "
      "\"storage_flush_s\": {}}}",
      outcome.trained.checkpoint.value(),
      json_number(seconds_of(costs.interval * costs.per_storage)),
      json_number(seconds_of(costs.copy_stall)), json_number(seconds_of(costs.storage_stall)),
      json_number(seconds_of(costs.storage_flush)));
}

std::string curve_json(const std::vector<CurvePoint>& curve, std::string_view x) {
  std::string text = "[";
  for (std::size_t i = 0; i < curve.size(); ++i) {
    text += fmt::format("{}\n    {{\"{}\": {}, \"days\": {}, \"goodput\": {}}}", i == 0 ? "" : ",",
                        x, json_number(curve[i].x), json_number(curve[i].result.mean_days),
                        json_number(curve[i].result.goodput));
  }
  return text + (curve.empty() ? "]" : "\n  ]");
}

std::string sensitivity_json(const GoodputOutcome& outcome) {
  std::string text = "[";
  for (const ClassSensitivity& each : outcome.sensitivity) {
    text += fmt::format("{}\n    {{\"name\": \"{}\", \"half_days\": {}, \"twice_days\": {}}}",
                        text.back() == '[' ? "" : ",",
                        json_escaped(outcome.table.classes[each.of].name),
                        json_number(each.half_days), json_number(each.twice_days));
  }
  return text + (outcome.sensitivity.empty() ? "]" : "\n  ]");
}

std::string smaller_json(const GoodputOutcome& outcome) {
  std::string text = "[";
  for (const SmallerStep& smaller : outcome.trained.smaller) {
    text += fmt::format("{}\n    {{\"missing\": {}, \"step_time_s\": {}, \"slowdown\": {}}}",
                        text.back() == '[' ? "" : ",", smaller.missing, exact_seconds(smaller.step),
                        json_number(smaller.slowdown));
  }
  return text + (outcome.trained.smaller.empty() ? "]" : "\n  ]");
}

std::string timeline_json(const GoodputOutcome& outcome) {
  std::string text = "[";
  for (const RunSpan& span : outcome.sample.spans) {
    text += fmt::format(
        "{}\n    {{\"phase\": \"{}\", \"begin_s\": {:.6f}, \"end_s\": {:.6f}, "
        "\"replicas\": {}, \"failure\": {}}}",
        text.back() == '[' ? "" : ",", name_of(span.phase), seconds_of(span.begin),
        seconds_of(span.end), span.replicas,
        span.failure
            ? fmt::format("\"{}\"", json_escaped(outcome.table.classes[*span.failure].name))
            : "null");
  }
  return text + "\n  ]";
}

std::string energy_json(const GoodputOutcome& outcome) {
  if (!outcome.energy) return "null";
  const RunEnergy& energy = *outcome.energy;
  return fmt::format(
      "{{\"kwh\": {}, \"standing_kwh\": {}, \"mean_watts\": {}, \"step_watts_per_chip\": {}, "
      "\"idle_watts_per_chip\": {}, \"pue\": {}, \"carbon_kg\": {}}}",
      json_number(energy.kilowatt_hours), json_number(energy.standing_kilowatt_hours),
      json_number(energy.mean_watts), json_number(outcome.power.step_watts),
      json_number(outcome.power.idle_watts), json_number(outcome.power.pue),
      goodput_number(energy.carbon_kilograms));
}

std::string assumed_json(const GoodputOutcome& outcome) {
  std::vector<std::string> fields;
  for (const AssumedField& one : outcome.assumed) {
    fields.push_back(fmt::format(R"({{"field": {}, "value": {}, "why": {}}})",
                                 json_quoted(one.field), json_quoted(one.value),
                                 json_quoted(one.why)));
  }
  return json_lines(fields, 4);
}

std::string best_json(const GoodputOutcome& outcome) {
  if (outcome.by_interval.empty()) return "";
  return fmt::format(
      "  \"best_checkpoint_interval_s\": {},\n  \"best_spares\": {},\n",
      json_number(outcome.by_interval[best_point(outcome.by_interval)].x),
      json_number(outcome.by_spares[best_spares(outcome.by_spares, outcome.setup.nodes)].x));
}

}  // namespace

std::string goodput_report(const GoodputOutcome& outcome, bool color) {
  ReportText text(color);
  add_head(text, outcome);
  add_result(text, outcome);
  add_time_parts(text, outcome);
  add_checkpoints(text, outcome);
  add_assumed(text, outcome);
  add_failures(text, outcome);
  add_curve(text, outcome);
  add_sensitivity(text, outcome);
  text.blank();
  text.line("{} runs, {} events in {:.3g} s CPU, {} at the peak", grouped(outcome.result.runs),
            grouped(static_cast<std::int64_t>(outcome.result.events)), outcome.cpu_s,
            to_text(Bytes(outcome.peak_rss_bytes)));
  return text.text();
}

std::string goodput_json(const GoodputOutcome& outcome) {
  const GoodputResult& result = outcome.result;
  std::string text = fmt::format(
      "{{\n  \"asked\": {},\n  \"days\": {{\"mean\": {}, \"p10\": {}, \"p90\": {}, "
      "\"standard_error\": {}}},\n"
      "  \"goodput\": {},\n  \"effective_mfu\": {},\n  \"parts_days\": {},\n"
      "  \"checkpoint_interval_s\": {},\n  \"failures\": {},\n  \"failures_by_class\": {},\n",
      outcome.asked.empty() ? "{}" : outcome.asked, json_number(result.mean_days),
      json_number(result.p10_days), json_number(result.p90_days),
      json_number(result.standard_error_days), json_number(result.goodput),
      goodput_number(effective_mfu(outcome)), parts_days_json(result),
      json_number(seconds_of(outcome.setup.checkpoint.interval)), json_number(result.failures),
      classes_json(outcome));
  text += fmt::format(
      "  \"restarts\": {},\n  \"undetected_corruptions\": {},\n  \"tokens_per_day\": {},\n"
      "  \"cost\": {},\n  \"energy\": {},\n  \"assumed\": {},\n  \"runs\": {},\n  \"chips\": {},\n "
      " \"nodes\": {},\n  \"spares\": {},\n"
      "  \"step_time_s\": {},\n  \"checkpoint\": {},\n",
      json_number(result.restarts), json_number(result.undetected),
      goodput_number(tokens_per_day(outcome)), goodput_number(cost_of(outcome)),
      energy_json(outcome), assumed_json(outcome), result.runs, outcome.trained.job.chips,
      outcome.setup.nodes, outcome.setup.spares, exact_seconds(outcome.trained.step),
      checkpoint_json(outcome));
  text += best_json(outcome);
  text += fmt::format(
      "  \"by_interval\": {},\n  \"by_spares\": {},\n  \"sensitivity\": {},\n"
      "  \"smaller_steps\": {},\n  \"spare_groups\": {},\n  \"far_spare_slowdown\": {},\n"
      "  \"timeline\": {},\n",
      curve_json(outcome.by_interval, "interval_s"), curve_json(outcome.by_spares, "spares"),
      sensitivity_json(outcome), smaller_json(outcome), outcome.trained.job.spare_groups,
      json_number(outcome.trained.job.far_slowdown), timeline_json(outcome));
  return text + fmt::format(
                    "  \"simulator\": {{\"events\": {}, \"wall_s\": {:.6f}, \"cpu_s\": {:.6f}, "
                    "\"peak_rss_bytes\": {}}}\n}}\n",
                    result.events, outcome.wall_s, outcome.cpu_s, outcome.peak_rss_bytes);
}

}  // namespace stepsim
