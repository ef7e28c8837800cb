// KvTransport carries KV caches from replicas that prefill to replicas that decode, or between
// replicas and the memory of their hosts. It has its own
// clock of events, as sim/network/network.h, so that transfers can share links with each other and
// with everything else that a network carries.

#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

#include "serving/requests/request.h"
#include "sim/base/units.h"

namespace stepsim {

enum class KvWay {
  kBetweenReplicas,
  kFromHost,  // from the memory of the host of replica `to`
  kToHost,    // to the memory of the host of replica `from`
};

struct KvTransfer {
  RequestId request{};     // unused on the way to the host
  std::uint32_t from = 0;  // replicas
  std::uint32_t to = 0;
  std::int64_t tokens = 0;
  KvWay way = KvWay::kBetweenReplicas;
};

class KvTransport {
 public:
  virtual ~KvTransport() = default;
  // Times never go back from call to call.
  virtual void start(Time now, const KvTransfer& transfer) = 0;
  virtual std::optional<Time> next_event() const = 0;  // nothing is under way: nullopt
  // Moves the clock. Adds the transfers that have arrived by then, in order of arrival.
  virtual void advance(Time now, std::vector<KvTransfer>& arrived) = 0;
};

// TimedKvTransport takes a fixed time and a time for each token. Transfers do not share anything.
class TimedKvTransport final : public KvTransport {
 public:
  struct Rates {
    Duration base{};
    Duration token{};
  };
  explicit TimedKvTransport(Rates rates) : rates_(rates) {}

  void start(Time now, const KvTransfer& transfer) override;
  std::optional<Time> next_event() const override;
  void advance(Time now, std::vector<KvTransfer>& arrived) override;

 private:
  struct UnderWay {
    Time end;
    std::uint64_t order;
    KvTransfer transfer;
    friend bool operator>(const UnderWay& a, const UnderWay& b) {
      return a.end != b.end ? a.end > b.end : a.order > b.order;
    }
  };

  Rates rates_;
  std::priority_queue<UnderWay, std::vector<UnderWay>, std::greater<>> under_way_;
  std::uint64_t started_ = 0;
};

}  // namespace stepsim
