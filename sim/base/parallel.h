// for_each_in_parallel() does independent pieces of work in several threads.
//
//   std::vector<double> results(rows.size());
//   for_each_in_parallel(rows.size(), threads_of_machine(),
//                        [&](std::size_t i) { results[i] = predict(rows[i]); });
//
// Pieces that only write what is their own make the same results with any number of threads.

#pragma once

#include <cstddef>
#include <functional>

namespace stepsim {

// Returns how many threads the machine runs at once, at least 1.
std::size_t threads_of_machine();

// Calls work(0) to work(count - 1), each once. They begin in this order: a thread that is free
// takes the next. The caller's is one of the threads. Where the system gives fewer threads, fewer
// do the work. If a piece throws, no more begin. Once those that had begun have ended, this throws
// the exception of the first of the pieces that threw. REQUIRES: threads is at least 1.
void for_each_in_parallel(std::size_t count, std::size_t threads,
                          const std::function<void(std::size_t)>& work);

}  // namespace stepsim
