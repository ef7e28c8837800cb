// The port of MPI (MPI-3.1): MPI_Isend, and MPI_Improbe with MPI_Mrecv. Errors end the job, as is
// MPI's default.

#include <mpi.h>

#include <algorithm>
#include <list>
#include <utility>

#include "cli/processes/message_port.h"

namespace stepsim {
namespace {

class MpiPort final : public MessagePort {
 public:
  MpiPort() {
    int given = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &process_);
    MPI_Comm_size(MPI_COMM_WORLD, &processes_);
  }
  ~MpiPort() override {
    for (Sending& sending : sending_) MPI_Wait(&sending.request, MPI_STATUS_IGNORE);
    MPI_Finalize();
  }

  std::size_t process() const override { return static_cast<std::size_t>(process_); }
  std::size_t processes() const override { return static_cast<std::size_t>(processes_); }

  void send(std::size_t process, int lane, std::string text) override {
    Sending& sending = sending_.emplace_back(std::move(text));
    MPI_Isend(sending.text.data(), static_cast<int>(sending.text.size()), MPI_CHAR,
              static_cast<int>(process), lane, MPI_COMM_WORLD, &sending.request);
  }

  std::optional<PortMessage> receive() override {
    sending_.remove_if([](Sending& sending) {
      int is_done = 0;
      MPI_Test(&sending.request, &is_done, MPI_STATUS_IGNORE);
      return is_done != 0;
    });
    int is_there = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &is_there, &message, &status);
    if (is_there == 0) return std::nullopt;
    int size = 0;
    MPI_Get_count(&status, MPI_CHAR, &size);
    PortMessage received{.process = static_cast<std::size_t>(status.MPI_SOURCE),
                         .lane = status.MPI_TAG,
                         .text = std::string(static_cast<std::size_t>(size), '\0')};
    MPI_Mrecv(received.text.data(), size, MPI_CHAR, &message, MPI_STATUS_IGNORE);
    return received;
  }

 private:
  struct Sending {
    explicit Sending(std::string sent) : text(std::move(sent)) {}
    std::string text;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  int process_ = 0;
  int processes_ = 1;
  std::list<Sending> sending_;  // MPI has pointers to their texts
};

}  // namespace

extern "C" MessagePort* stepsim_open_mpi_port() {
  return new MpiPort();
}

}  // namespace stepsim
