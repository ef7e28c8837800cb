// MessagePort sends texts between processes that were started together. mpi_port.cc makes one of
// MPI; it is a module of its own (stepsim_mpi.so), which is loaded only where several processes
// run, so that stepsim itself needs no MPI.
//
// All calls, destruction included, are made by the thread that made the port.

#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace stepsim {

struct PortMessage {
  std::size_t process = 0;  // that sent it
  int lane = 0;  // texts of one sender and lane arrive in the order in which they were sent
  std::string text{};
};

class MessagePort {
 public:
  MessagePort() = default;
  virtual ~MessagePort() = default;
  MessagePort(const MessagePort&) = delete;
  MessagePort& operator=(const MessagePort&) = delete;

  virtual std::size_t process() const = 0;  // from 0
  virtual std::size_t processes() const = 0;
  // Returns at once; the text is on its way.
  virtual void send(std::size_t process, int lane, std::string text) = 0;
  // Returns a text that has arrived, if there is one.
  virtual std::optional<PortMessage> receive() = 0;
};

// What the module offers: a port to the processes of the job. The caller owns it.
inline constexpr const char* kOpenPort = "stepsim_open_mpi_port";
extern "C" MessagePort* stepsim_open_mpi_port();

}  // namespace stepsim
