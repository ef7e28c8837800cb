#include "sim/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace stepsim {
namespace {

class Pieces {
 public:
  Pieces(std::size_t count, const std::function<void(std::size_t)>& work)
      : count_(count), work_(work) {}

  // Does pieces until none is left. Called once by each thread.
  void run() noexcept {
    while (!failed_) {
      const std::size_t piece = next_++;
      if (piece >= count_) return;
      try {
        work_(piece);
      } catch (...) {
        keep(piece, std::current_exception());
      }
    }
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void keep(std::size_t piece, std::exception_ptr error) noexcept {
    const std::lock_guard lock(mutex_);
    if (!error_ || piece < error_piece_) {
      error_ = std::move(error);
      error_piece_ = piece;
    }
    failed_ = true;
  }

  const std::size_t count_;
  const std::function<void(std::size_t)>& work_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;  // guards the error
  std::exception_ptr error_;
  std::size_t error_piece_ = 0;
};

// Does not throw where the system gives no thread.
void add_thread(std::vector<std::jthread>& threads, Pieces& pieces) {
  try {
    threads.emplace_back([&pieces] { pieces.run(); });
  } catch (const std::exception&) {
  }
}

}  // namespace

std::size_t threads_of_machine() {
  return std::max<std::size_t>(1, std::thread::hardware_concurrency());
}

void for_each_in_parallel(std::size_t count, std::size_t threads,
                          const std::function<void(std::size_t)>& work) {
  Pieces pieces(count, work);
  {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < std::min(threads, count); ++i) add_thread(others, pieces);
    pieces.run();
  }
  pieces.rethrow();
}

}  // namespace stepsim
