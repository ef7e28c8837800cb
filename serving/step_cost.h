// StepCost says how long a step of a replica takes. It is where chips come in: a batch (who decodes
// with which context, which chunks are computed behind which tokens) is everything that the time of
// a step depends on, so a simulated pass over a cluster plugs in here, as a table or a closed form
// does. The schedulers know nothing else about time.

#pragma once

#include "serving/engines/batch.h"
#include "sim/base/units.h"

namespace stepsim {

class StepCost {
 public:
  virtual ~StepCost() = default;
  // REQUIRES: the batch is not empty. Returns a time above zero.
  virtual Duration time_of(const Batch& batch) = 0;
};

// LinearStepTime is `base` + `token` for each token computed + `kv` for each KV token read: for a
// request with c tokens before the step and n in it, n and c + n.
class LinearStepTime final : public StepCost {
 public:
  struct Rates {
    Duration base{};
    Duration token{};
    Duration kv{};
  };
  explicit LinearStepTime(Rates rates) : rates_(rates) {}
  Duration time_of(const Batch& batch) override {
    return rates_.base + batch.tokens * rates_.token + batch.kv_tokens * rates_.kv;
  }

 private:
  Rates rates_;
};

}  // namespace stepsim
