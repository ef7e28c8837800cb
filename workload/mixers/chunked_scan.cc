#include "workload/mixers/chunked_scan.h"

#include <algorithm>
#include <cassert>
#include <string_view>
#include <utility>

#include "workload/parts/kernels.h"

namespace stepsim {
namespace {

// A matmul of every chunk and head, and what its kernel moves in memory: operands may stay on the
// chip between two matmuls of one kernel.
struct ScanProduct {
  std::string_view name;
  MatmulShape shape;
  Bytes read{};
  Bytes written{};
  double more_flops = 0;  // of further matmuls in the same kernel
};

class Scan {
 public:
  Scan(DataType type, const ScanShape& shape) : type_(type), s_(shape) {}

  ScanKernels mamba2() {
    const Bytes wide_states = s_.states() * size_of(DataType::kFp32);
    const Bytes scores = s_.chunks() * s_.groups * s_.chunk * s_.chunk * size_of(DataType::kFp32);
    again({"chunk_state",
           {blocks(), s_.key_dim, s_.value_dim, s_.chunk},
           keys() + values(),
           wide_states});
    again_once(pass_states(wide_states));
    again({"chunk_scores",
           {s_.chunks() * s_.groups, s_.chunk, s_.chunk, s_.key_dim},
           2 * keys(),
           scores});
    add({"chunk_result",
         {blocks(), s_.chunk, s_.value_dim, s_.chunk + s_.key_dim},
         scores + values() + states() + keys(),
         values()});
    return std::move(kernels_);
  }

  ScanKernels lightning() {
    again(passing(1, keys() + values(), states()));
    add_result();
    return std::move(kernels_);
  }

  ScanKernels delta() {
    const Bytes keys_of_heads = size(s_.all_tokens() * s_.heads * s_.key_dim);
    const Bytes square = size(s_.all_tokens() * s_.heads * s_.chunk);
    again({"chunk_keys", {blocks(), s_.chunk, s_.chunk, s_.key_dim}, keys(), 2 * square});
    again_once(invert(square));
    again({"chunk_inverse",
           {blocks(), s_.chunk, s_.key_dim + s_.value_dim, s_.chunk},
           square + keys() + values(),
           keys_of_heads + values()});
    again(passing(2, keys_of_heads + keys() + values(), states() + values()));
    add_result();
    return std::move(kernels_);
  }

 private:
  std::int64_t blocks() const { return s_.chunks() * s_.heads; }
  Bytes size(std::int64_t values) const { return values * size_of(type_); }
  Bytes keys() const { return size(s_.keys()); }
  Bytes values() const { return size(s_.values()); }
  Bytes states() const { return size(s_.states()); }

  Kernel product(const ScanProduct& of) const {
    Kernel kernel = matmul(of.name, {type_, type_}, of.shape);
    kernel.read = of.read;
    kernel.written = of.written;
    kernel.flops += Flops(of.more_flops);
    return kernel;
  }

  // The gradients of both operands: each reads the gradient of the result and the other operand.
  void add_gradients(const ScanProduct& of, bool sequential) {
    const auto [batch, m, n, k] = of.shape;
    for (const MatmulShape& shape : {MatmulShape{batch, m, k, n}, MatmulShape{batch, k, n, m}}) {
      ScanProduct gradient = of;
      if (!sequential) gradient.shape = shape;
      gradient.read = of.read / 2 + of.written;
      gradient.written = of.read / 2;
      kernels_.backward.push_back(product(gradient));
      kernels_.backward.back().sequential = sequential;
    }
  }

  void add(const ScanProduct& of) {
    kernels_.forward.push_back(product(of));
    add_gradients(of, false);
  }

  // A kernel whose result nobody keeps: the backward begins with it.
  void again_once(const Kernel& kernel) {
    kernels_.forward.push_back(kernel);
    kernels_.backward.insert(kernels_.backward.begin() + again_, kernel);
    ++again_;
  }
  void again(const ScanProduct& of) {
    again_once(product(of));
    add_gradients(of, false);
  }
  void again(const Kernel& recurrence) {
    again_once(recurrence);
    const ScanProduct of{recurrence.name,
                         {recurrence.batch, recurrence.m, recurrence.n, recurrence.k},
                         recurrence.read,
                         recurrence.written};
    add_gradients(of, true);
  }

  // `products` matmuls of each chunk with the state, one chunk after the other: a unit has a block
  // of 64 features of a head's values.
  Kernel passing(std::int64_t products, Bytes read, Bytes written) const {
    constexpr std::int64_t kBlock = 64;
    const std::int64_t width = std::min(s_.value_dim, kBlock);
    const std::int64_t columns = (s_.value_dim + width - 1) / width;
    const std::int64_t steps = s_.chunks() / s_.sequences;
    Kernel kernel = matmul("pass_states", {type_, type_},
                           {.batch = s_.sequences * s_.heads * columns,
                            .m = s_.chunk,
                            .n = width,
                            .k = steps * products * s_.key_dim});
    kernel.read = read;
    kernel.written = written;
    kernel.sequential = true;
    return kernel;
  }

  // Decayed states are added up, chunk after chunk; memory bounds it.
  Kernel pass_states(Bytes wide_states) const {
    Kernel kernel = elementwise("pass_states", DataType::kFp32,
                                {.elements = s_.states(), .reads = 0, .writes = 0, .flops = 2});
    kernel.read = wide_states;
    kernel.written = states();
    return kernel;
  }

  // Inverts I + tril(k k^T) of each chunk and head: C^3 / 3 FLOPs by forward substitution.
  Kernel invert(Bytes square) const {
    Kernel kernel = elementwise("invert_chunk", type_, {.elements = 0});
    const auto c = static_cast<double>(s_.chunk);
    kernel.flops = Flops(static_cast<double>(blocks()) * c * c * c / 3);
    kernel.read = 2 * square;  // fp32
    kernel.written = square;
    return kernel;
  }

  // Scores of the queries, their product with the values, and the queries' with the state.
  void add_result() {
    const double scores =
        2 * static_cast<double>(blocks() * s_.chunk * s_.chunk) * static_cast<double>(s_.key_dim);
    add({"chunk_result",
         {blocks(), s_.chunk, s_.value_dim, s_.chunk + s_.key_dim},
         2 * keys() + values() + states(),
         values(),
         scores});
  }

  DataType type_;
  const ScanShape& s_;
  ScanKernels kernels_;
  std::ptrdiff_t again_ = 0;  // kernels at the start of the backward that repeat the forward
};

}  // namespace

ScanKernels chunked_scan(DataType type, const ScanShape& shape) {
  assert(shape.kind != StateKind::kMamba && shape.kind != StateKind::kShort);
  Scan scan(type, shape);
  switch (shape.kind) {
    case StateKind::kMamba2:
      return scan.mamba2();
    case StateKind::kLightning:
      return scan.lightning();
    case StateKind::kGatedDelta:
    case StateKind::kKimiDelta:
    case StateKind::kMamba:
    case StateKind::kShort:
      break;
  }
  return scan.delta();
}

double recurrence_flops(const StateSpec& state, std::int64_t tokens) {
  const auto flops_of_a_value = [&state] {
    switch (state.kind) {
      case StateKind::kMamba2:
      case StateKind::kMamba:
        return 7.0;
      case StateKind::kGatedDelta:
      case StateKind::kKimiDelta:
        return 8.0;
      case StateKind::kLightning:
        return 4.0;
      case StateKind::kShort:
        break;
    }
    return 0.0;
  };
  return flops_of_a_value() * static_cast<double>(tokens) *
         static_cast<double>(state.heads * state.key_dim) * static_cast<double>(state.value_dim);
}

}  // namespace stepsim
