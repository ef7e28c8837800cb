// SpecChecks collects the problems of a spec's fields, with messages that all topologies share.
//
//   SpecChecks checks;
//   checks.at_least("gpus", spec.gpus, 1);
//   checks.positive("gpu_bandwidth", spec.gpu_bandwidth);
//   return checks.problems();

#pragma once

#include <string>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/units.h"

namespace stepsim {

class SpecChecks {
 public:
  void within(const char* field, int value, int least, int most);
  void at_least(const char* field, int value, int least);
  void positive(const char* field, Bandwidth value);  // also requires that it is finite
  void not_negative(const char* field, Duration value);
  void add(std::string field, std::string message);
  void add(std::vector<Problem> problems);

  bool found_none() const { return problems_.empty(); }
  const std::vector<Problem>& problems() const { return problems_; }  // in the order of the calls

 private:
  std::vector<Problem> problems_;
};

}  // namespace stepsim
