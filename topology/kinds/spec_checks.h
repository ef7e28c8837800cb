// SpecChecks collects the problems of a spec: first the values beyond the limits of its table of
// fields, then what the rules between its fields find.
//
//   SpecChecks checks(nvlink_domain_fields(), spec);
//   if (spec.gpus % 2 != 0) checks.add("gpus", "must be even");
//   return checks.problems();

#pragma once

#include <string>
#include <vector>

#include "sim/base/error.h"
#include "sim/fields/field.h"

namespace stepsim {

class SpecChecks {
 public:
  SpecChecks() = default;
  template <class Spec>
  SpecChecks(const FieldTable<Spec>& fields, const Spec& spec) : problems_(fields.problems(spec)) {}

  void add(std::string field, std::string message);
  void add(std::vector<Problem> problems);  // those that are not there yet

  bool found_none() const { return problems_.empty(); }
  const std::vector<Problem>& problems() const { return problems_; }  // in the order found

 private:
  std::vector<Problem> problems_;
};

}  // namespace stepsim
