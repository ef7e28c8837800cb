// WaitingQueue holds the requests that wait for a replica: in the order in which they came, or by
// priority and then in that order. A request that comes back stands at the head; by priority it
// stands where its priority puts it.

#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>

#include "serving/engines/engine_options.h"
#include "serving/requests/request.h"

namespace stepsim {

class WaitingQueue {
 public:
  struct Place {
    std::int32_t priority = 0;
    std::uint32_t order = 0;
    RequestId request;
    friend constexpr auto operator<=>(const Place&, const Place&) = default;
  };

  explicit WaitingQueue(bool by_priority) : by_priority_(by_priority) {}

  bool empty() const { return places_.empty(); }
  std::size_t size() const { return places_.size(); }
  RequestId front() const { return places_.front().request; }
  RequestId at(std::size_t position) const { return places_[position].request; }

  void push_back(const Place& place) {
    if (by_priority_) {
      insert(place);
    } else {
      places_.push_back(place);
    }
  }
  void push_front(const Place& place) {
    if (by_priority_) {
      insert(place);
    } else {
      places_.push_front(place);
    }
  }
  void pop_front() { places_.pop_front(); }
  void erase(std::size_t position) {
    places_.erase(places_.begin() + static_cast<std::ptrdiff_t>(position));
  }
  // O(size).
  void remove(RequestId request) {
    std::erase_if(places_, [request](const Place& place) { return place.request == request; });
  }

 private:
  void insert(const Place& place) {
    places_.insert(std::upper_bound(places_.begin(), places_.end(), place), place);
  }

  bool by_priority_;
  std::deque<Place> places_;
};

}  // namespace stepsim
