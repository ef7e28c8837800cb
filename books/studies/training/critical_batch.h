// The critical batch of a matmul whose weights are loaded while it computes, as measured: the
// number of tokens at which arithmetic takes as long as the load.

#pragma once

#include <functional>

namespace stepsim {

// `time(tokens)` is the simulated time in seconds. One token shows the load alone; at 200,000 and
// 400,000 tokens arithmetic hides it, so their difference is the time of one token's arithmetic.
inline double critical_batch(const std::function<double(double tokens)>& time) {
  const double per_token = (time(400'000) - time(200'000)) / 200'000;
  return time(1) / per_token;
}

}  // namespace stepsim
