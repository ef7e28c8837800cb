#include "search/plan_helper.h"

#include <fmt/format.h>

#include <chrono>
#include <locale>
#include <sstream>
#include <stdexcept>

#include "search/plan_bench.h"

namespace stepsim {
namespace {

// Reads words with spaces between them. Doubles have all their digits.
class Words {
 public:
  explicit Words(const std::string& text) : text_(text) { text_.imbue(std::locale::classic()); }

  template <typename Number>
  Number next() {
    Number number{};
    if (!(text_ >> number)) throw std::invalid_argument("no answer of a search");
    return number;
  }
  template <typename Number>
  std::optional<Number> next_or_none() {
    if (next<int>() == 0) return std::nullopt;
    return next<Number>();
  }
  Duration duration() { return Duration(next<std::int64_t>()); }

 private:
  std::istringstream text_;
};

// "1 0.25", or "0".
template <typename Number>
std::string optional_text(const std::optional<Number>& number) {
  return number ? fmt::format("1 {}", *number) : "0";
}

std::string text_of(const FoundPlan& plan) {
  std::string text =
      fmt::format("{} {} {} {} {} {} {} {} {}", plan.step.count(), plan.peak.value(),
                  int{plan.fits}, static_cast<int>(plan.certainty), int{plan.leaves_headroom},
                  plan.mfu, plan.chips, plan.cost, optional_text(plan.joules));
  for (const auto* const interval : {&plan.step_interval_s, &plan.peak_interval_bytes}) {
    text += *interval ? fmt::format(" 1 {} {}", (*interval)->low, (*interval)->high) : " 0";
  }
  const Breakdown& parts = plan.breakdown;
  for (const Duration part : {parts.compute, parts.bubble, parts.idle, parts.launch}) {
    text += fmt::format(" {}", part.count());
  }
  for (const Duration part : parts.exposed_communication) text += fmt::format(" {}", part.count());
  text += fmt::format(" {}", plan.axes.size());
  for (const std::string& axis : plan.axes) text += " " + axis;
  return text;
}

FoundPlan plan_in(Words& words) {
  FoundPlan plan;
  plan.step = words.duration();
  plan.peak = Bytes(words.next<std::int64_t>());
  plan.fits = words.next<int>() != 0;
  plan.certainty = static_cast<FitCertainty>(words.next<int>());
  plan.leaves_headroom = words.next<int>() != 0;
  plan.mfu = words.next<double>();
  plan.chips = words.next<std::int64_t>();
  plan.cost = words.next<double>();
  plan.joules = words.next_or_none<double>();
  for (std::optional<Interval>* const interval :
       {&plan.step_interval_s, &plan.peak_interval_bytes}) {
    if (words.next<int>() == 0) continue;
    *interval = Interval{.low = words.next<double>(), .high = words.next<double>()};
  }
  Breakdown& parts = plan.breakdown;
  for (Duration* const part : {&parts.compute, &parts.bubble, &parts.idle, &parts.launch}) {
    *part = words.duration();
  }
  for (Duration& part : parts.exposed_communication) part = words.duration();
  plan.axes.resize(words.next<std::size_t>());
  for (std::string& axis : plan.axes) axis = words.next<std::string>();
  return plan;
}

}  // namespace

std::string text_of(const PlanQuestion& question) {
  std::optional<std::int64_t> most_step;
  if (question.most_step) most_step = question.most_step->count();
  return fmt::format("{} {} {} {}", question.place, question.number,
                     optional_text(question.seconds), optional_text(most_step));
}

PlanQuestion question_of(const std::string& text) {
  Words words(text);
  PlanQuestion question;
  question.place = words.next<std::size_t>();
  question.number = words.next<std::uint64_t>();
  question.seconds = words.next_or_none<double>();
  if (const auto most = words.next_or_none<std::int64_t>()) question.most_step = Duration(*most);
  return question;
}

std::string text_of(const SimulatedPlan& simulated) {
  const std::string text =
      fmt::format("{} {} {}", int{simulated.cannot_run}, int{simulated.is_slower}, simulated.ops);
  return simulated.plan ? text + " 1 " + text_of(*simulated.plan) : text + " 0";
}

SimulatedPlan simulated_of(const std::string& text) {
  Words words(text);
  SimulatedPlan simulated;
  simulated.cannot_run = words.next<int>() != 0;
  simulated.is_slower = words.next<int>() != 0;
  simulated.ops = words.next<std::uint64_t>();
  if (words.next<int>() != 0) simulated.plan = plan_in(words);
  return simulated;
}

PlanAnswers::PlanAnswers(const std::vector<SearchPlace>& places, const SearchOptions& options)
    : options_(options) {
  for (const SearchPlace& place : places) benches_.push_back(std::make_unique<PlanBench>(place));
}

PlanAnswers::~PlanAnswers() = default;

SimulatedPlan PlanAnswers::simulated(const PlanQuestion& question) {
  std::optional<SearchClock::time_point> deadline;
  if (question.seconds) {
    deadline = SearchClock::now() + std::chrono::duration_cast<SearchClock::duration>(
                                        std::chrono::duration<double>(*question.seconds));
  }
  PlanBench& bench = *benches_.at(question.place);
  return bench.simulated(bench.plan(question.number), options_, deadline, question.most_step);
}

}  // namespace stepsim
