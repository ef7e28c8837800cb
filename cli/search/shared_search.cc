#include "cli/search/shared_search.h"

#include <memory>
#include <optional>

#include "cli/version.h"
#include "search/plan_helper.h"
#include "sim/base/error.h"

namespace stepsim {
namespace {

class RemoteHelper final : public PlanHelper {
 public:
  RemoteHelper(ProcessGroup& group, std::size_t place) : group_(group), place_(place) {}
  SimulatedPlan simulated(const PlanQuestion& question) override {
    return simulated_of(group_.ask(place_, text_of(question)));
  }

 private:
  ProcessGroup& group_;
  std::size_t place_;
};

// What all processes must agree in.
std::string search_job(const std::vector<std::string>& arguments) {
  std::string job = "stepsim " + std::string(version()) + " search";
  for (const std::string& argument : arguments) job += " " + argument;
  return job;
}

}  // namespace

void add_helpers(ProcessGroup& group, const std::vector<std::string>& arguments,
                 SearchOptions& options) {
  const std::size_t places = group.start(search_job(arguments));
  for (std::size_t place = 0; place < places; ++place) {
    options.helpers.push_back(std::make_shared<RemoteHelper>(group, place));
  }
}

void simulate_plans_for(ProcessGroup& group, const std::vector<std::string>& arguments) {
  std::optional<SearchRequest> request;
  std::optional<PlanAnswers> answers;
  group.answer([&](const std::string& job) {
    if (search_job(arguments) != job) {
      throw ConfigError({{"stepsim", "does not do what the first process does (" + job + "), but " +
                                         search_job(arguments)}});
    }
    request = read_search_request(arguments);
    answers.emplace(request->places, request->options);
    const auto answer = [&](const std::string& question) {
      return text_of(answers->simulated(question_of(question)));
    };
    return ProcessGroup::Answerers{
        std::vector<ProcessGroup::Answerer>(request->options.threads, answer)};
  });
}

}  // namespace stepsim
