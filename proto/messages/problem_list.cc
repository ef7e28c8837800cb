#include "proto/messages/problem_list.h"

#include <utility>

namespace stepsim {

void ProblemList::add(std::string field, std::string message) {
  if (!reported_.insert(field).second) return;
  problems_.push_back({std::move(field), std::move(message)});
}

void ProblemList::add(std::vector<Problem> problems) {
  // Several problems of one field that are found together are all new.
  std::vector<Problem> news;
  for (Problem& problem : problems) {
    if (!reported_.contains(problem.field)) news.push_back(std::move(problem));
  }
  for (Problem& problem : news) {
    reported_.insert(problem.field);
    problems_.push_back(std::move(problem));
  }
}

}  // namespace stepsim
