// CompactOptional is a std::optional for a number that is never negative, in no more memory than
// the number itself. Large tables of replays and searches use it, where std::optional would take
// twice the memory.
//
//   std::vector<CompactOptional<std::int64_t>> ends(ops);  // nothing yet
//   ends[op] = 12;
//   if (ends[op]) start = *ends[op];

#pragma once

#include <cassert>
#include <concepts>

namespace stepsim {

template <std::signed_integral Number>
class CompactOptional {
 public:
  constexpr CompactOptional() = default;
  // REQUIRES: number >= 0.
  // NOLINTNEXTLINE(google-explicit-constructor): as std::optional
  constexpr CompactOptional(Number number) : number_(number) { assert(number >= 0); }

  constexpr explicit operator bool() const { return number_ >= 0; }
  // REQUIRES: it holds a number.
  constexpr Number operator*() const {
    assert(number_ >= 0);
    return number_;
  }
  friend constexpr bool operator==(const CompactOptional&, const CompactOptional&) = default;

 private:
  Number number_ = -1;
};

}  // namespace stepsim
