// ProcessGroup is the processes that mpirun or srun started together, all with the same arguments.
// The first one asks, the others answer; what is asked is the command's business.
//
//   if (const auto group = ProcessGroup::join()) {
//     if (!group->is_first()) return group->answer(jobs, make_answerer);
//     const std::size_t places = group->start();
//     const std::string answer = group->ask(3, "read 17");  // by one of the others
//   }
//
// A process that dies ends the job: MPI does that. Neither time-outs nor repetition is done here.

#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/processes/message_port.h"

namespace stepsim {

class ProcessGroup {
 public:
  // Returns nullptr if this process is alone. Throws ConfigError if this stepsim has no module for
  // MPI.
  static std::unique_ptr<ProcessGroup> join();
  ~ProcessGroup();  // ends the others
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  bool is_first() const { return process_ == 0; }

  // ---- of the first ----

  // Says what the job is, and returns how many questions the others answer at once. Throws
  // ConfigError with what keeps them from it.
  std::size_t start(const std::string& job);
  // Returns the answer of one of these places. One thread at a time may ask a place.
  std::string ask(std::size_t place, const std::string& question);

  // ---- of the others ----

  using Answerer = std::function<std::string(const std::string& question)>;
  struct Answerers {
    std::vector<Answerer> threads;  // one for each question that is answered at the same time
  };
  // Answers until the first process ends. `prepare` gets the job, and throws ConfigError if it is
  // not this process's. What an answerer throws ends the process, and so all of them.
  void answer(const std::function<Answerers(const std::string& job)>& prepare);

 private:
  explicit ProcessGroup(MessagePort* (*open)());
  struct Address {
    std::size_t process = 0;
    int lane = 0;
    auto operator<=>(const Address&) const = default;
  };

  void carry(MessagePort* (*open)());    // what the port's thread does
  bool send_waiting(MessagePort& port);  // returns whether there was anything
  bool receive_waiting(MessagePort& port);
  void send(Address to, std::string text);
  std::string receive(Address from);  // waits for it; "": the first process has ended

  std::size_t process_ = 0;
  std::size_t processes_ = 1;
  std::vector<Address> places_{};

  std::mutex mutex_;  // guards the rest
  std::condition_variable arrived_;
  std::vector<std::pair<Address, std::string>> outgoing_;
  std::map<Address, std::deque<std::string>> incoming_;
  bool is_open_ = false;
  bool is_closing_ = false;  // this process ends
  bool has_ended_ = false;   // the first one ended
  std::thread carrier_;
};

}  // namespace stepsim
