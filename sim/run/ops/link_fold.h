// LinkFold turns the links of one transfer into what all transfers that look like it do to one link
// of each class. Without a quotient nothing changes.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/units.h"
#include "sim/folding/quotient.h"
#include "sim/network/fabric.h"
#include "sim/run/ops/exact_bytes.h"

namespace stepsim {

// Each link of the class `link` (a link, if nothing is folded) is crossed by `times` transfers that
// use `weight` of their rate there.
struct LinkTrack {
  LinkId link;
  double weight = 1;
  std::uint64_t times = 1;
};

// TransferLinks are the links of a transfer as the network and the books need them.
struct TransferLinks {
  std::vector<LinkUse> uses;  // a link once; weight: what all transfers alike use together
  std::vector<double> alone;  // what one of them uses; empty: the same
  std::vector<LinkTrack> tracks;
};

class LinkFold {
 public:
  explicit LinkFold(const Quotient* quotient) : quotient_(quotient) {}

  bool folds() const { return quotient_ != nullptr; }

  // `count`: transfers that look alike, of which one has these uses. Throws std::logic_error if the
  // links of a class are not crossed equally often.
  TransferLinks fold(std::span<const LinkUse> uses, std::uint32_t count) const;

  // Returns the bytes over one link of each class, in the order of classes, if a transfer has
  // `bytes` over each of its links. REQUIRES: folds().
  std::vector<ExactBytes> fold(std::span<const LinkUse> uses, std::span<const ExactBytes> bytes,
                               std::uint32_t count) const;

 private:
  const Quotient* quotient_;
};

}  // namespace stepsim
