// OpName says what an op of a layer is. It is made of a text, which must be in the table below,
// while the program is compiled; the text is printed, and nothing else is done with it. What the
// others ask of an op are the facts beside it:
//
//   LayerOp op{.name = "out_projection"};   // another text does not compile
//   op.name.role() == OpRole::kOut
//
// A new op is a row here.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stepsim {

// What the op does, where somebody asks. Those of kOther differ by their kernels alone.
enum class OpRole : std::uint8_t {
  kOther,
  kAttention,    // over the sequence's own keys, from queries to the sum of values
  kIndexScores,  // of sparse attention: which keys are attended to
  kScan,         // of a recurrent state
  kNorm,
  kActivation,  // of an MLP, or of the head
  kQkv,         // makes queries, keys or values, or the vectors that they are made of
  kOut,         // attention's last matmul
  kUp,          // widens: the first matmul of an MLP, an expert, an adapter
  kDown,        // narrows: the last one
  kRouter,
  kPermute,    // tokens to their experts
  kUnpermute,  // and back
  kTable,      // a row for each token, or each position
  kHead,       // logits, and what is before them
};

// The part of a block that recompute repeats as a whole, or that runs beside others.
enum class OpModule : std::uint8_t { kNone, kLatentUp, kMlp, kSharedExperts, kHyper };

// What an adapter at its matrix is called (workload/parts/adapters.h).
enum class OpSide : std::uint8_t { kIn, kOut, kMlp };

struct OpFacts {
  std::string_view text;
  OpRole role = OpRole::kOther;
  OpModule module = OpModule::kNone;
  OpSide side = OpSide::kIn;
};

class OpName {
 public:
  constexpr OpName() = default;
  consteval OpName(const char* text) : row_(row_of(text)) {}  // NOLINT: texts are names

  constexpr std::string_view text() const { return kTable[row_].text; }
  constexpr operator std::string_view() const {
    return text();
  }  // NOLINT: kernels are called so, too
  constexpr OpRole role() const { return kTable[row_].role; }
  constexpr OpModule module() const { return kTable[row_].module; }
  constexpr OpSide side() const { return kTable[row_].side; }

  friend constexpr bool operator==(OpName, OpName) = default;

 private:
  static constexpr auto kTable = std::to_array<OpFacts>({
      {.text = ""},
      // tables and positions
      {.text = "embedding", .role = OpRole::kTable},
      {.text = "position_embedding", .role = OpRole::kTable},
      {.text = "prediction_embedding"},
      {.text = "embedding_dropout"},
      {.text = "layer_vectors"},
      {.text = "layer_vectors_add"},
      {.text = "rope", .module = OpModule::kLatentUp},
      {.text = "copy_to_streams"},
      // norms
      {.text = "norm", .role = OpRole::kNorm},
      {.text = "attention_norm", .role = OpRole::kNorm},
      {.text = "attention_post_norm", .role = OpRole::kNorm},
      {.text = "cross_norm", .role = OpRole::kNorm},
      {.text = "cross_post_norm", .role = OpRole::kNorm},
      {.text = "embedding_norm", .role = OpRole::kNorm},
      {.text = "final_norm", .role = OpRole::kNorm},
      {.text = "latent_norm", .role = OpRole::kNorm},
      {.text = "layer_post_norm", .role = OpRole::kNorm},
      {.text = "layer_vectors_norm", .role = OpRole::kNorm},
      {.text = "mixer_norm", .role = OpRole::kNorm},
      {.text = "mixer_post_norm", .role = OpRole::kNorm},
      {.text = "mlp_norm", .role = OpRole::kNorm},
      {.text = "mlp_post_norm", .role = OpRole::kNorm},
      {.text = "prediction_embedding_norm", .role = OpRole::kNorm},
      {.text = "prediction_norm", .role = OpRole::kNorm},
      {.text = "qk_norm", .role = OpRole::kNorm},
      {.text = "query_norm", .role = OpRole::kNorm},
      {.text = "query_head_norm", .role = OpRole::kNorm, .module = OpModule::kLatentUp},
      {.text = "state_norm", .role = OpRole::kNorm},
      // attention
      {.text = "qkv_projection", .role = OpRole::kQkv},
      {.text = "query_projection"},
      {.text = "latent_projection", .role = OpRole::kQkv},
      {.text = "query_up_projection", .role = OpRole::kQkv, .module = OpModule::kLatentUp},
      {.text = "key_value_up_projection", .role = OpRole::kQkv, .module = OpModule::kLatentUp},
      {.text = "attention", .role = OpRole::kAttention},
      {.text = "attention_gate"},
      {.text = "gate_projection"},
      {.text = "index_query_projection"},
      {.text = "index_key_projection"},
      {.text = "index_scores", .role = OpRole::kIndexScores},
      {.text = "compress_projection"},
      {.text = "compress"},
      {.text = "result_rope"},
      {.text = "output_group_projection", .side = OpSide::kOut},
      {.text = "out_projection", .role = OpRole::kOut, .side = OpSide::kOut},
      {.text = "attention_mapping", .module = OpModule::kHyper},
      {.text = "attention_residual"},
      {.text = "cross_query_projection"},
      {.text = "cross_key_value_projection"},
      {.text = "cross_attention"},
      {.text = "cross_out_projection", .side = OpSide::kOut},
      {.text = "cross_residual"},
      {.text = "attention_adapter_down_projection", .role = OpRole::kDown},
      {.text = "attention_adapter_up_projection", .role = OpRole::kUp},
      // states
      {.text = "state_projection"},
      {.text = "convolution"},
      {.text = "x_projection"},
      {.text = "step_projection"},
      {.text = "scan", .role = OpRole::kScan},
      {.text = "state_out_projection", .side = OpSide::kOut},
      {.text = "mixer_residual"},
      // MLPs
      {.text = "gate_up_projection",
       .role = OpRole::kUp,
       .module = OpModule::kMlp,
       .side = OpSide::kMlp},
      {.text = "up_projection",
       .role = OpRole::kUp,
       .module = OpModule::kMlp,
       .side = OpSide::kMlp},
      {.text = "mlp_activation", .role = OpRole::kActivation, .module = OpModule::kMlp},
      {.text = "down_projection",
       .role = OpRole::kDown,
       .module = OpModule::kMlp,
       .side = OpSide::kMlp},
      {.text = "mlp_mapping", .module = OpModule::kHyper},
      {.text = "mlp_residual"},
      {.text = "adapter_down_projection", .role = OpRole::kDown, .side = OpSide::kMlp},
      {.text = "adapter_up_projection", .role = OpRole::kUp, .side = OpSide::kMlp},
      {.text = "layer_gate"},
      {.text = "layer_gate_projection", .side = OpSide::kMlp},
      {.text = "layer_up_projection", .role = OpRole::kUp, .side = OpSide::kMlp},
      {.text = "layer_vectors_projection", .side = OpSide::kMlp},
      {.text = "layer_residual"},
      {.text = "shared_projection", .side = OpSide::kOut},  // of a block that layers share
      {.text = "shared_residual"},
      // experts
      {.text = "router", .role = OpRole::kRouter},
      {.text = "permute", .role = OpRole::kPermute},
      {.text = "unpermute", .role = OpRole::kUnpermute},
      {.text = "experts"},
      {.text = "expert_gate_up_projection", .role = OpRole::kUp},
      {.text = "expert_activation", .role = OpRole::kActivation},
      {.text = "expert_down_projection", .role = OpRole::kDown},
      {.text = "latent_down_projection", .role = OpRole::kDown, .side = OpSide::kMlp},
      {.text = "latent_up_projection", .role = OpRole::kUp, .side = OpSide::kMlp},
      {.text = "shared_gate_up_projection",
       .role = OpRole::kUp,
       .module = OpModule::kSharedExperts,
       .side = OpSide::kMlp},
      {.text = "shared_activation",
       .role = OpRole::kActivation,
       .module = OpModule::kSharedExperts},
      {.text = "shared_down_projection",
       .role = OpRole::kDown,
       .module = OpModule::kSharedExperts,
       .side = OpSide::kMlp},
      {.text = "shared_gate", .module = OpModule::kSharedExperts, .side = OpSide::kMlp},
      // the head
      {.text = "patch_projection"},
      {.text = "patch_positions"},
      {.text = "projector_norm", .role = OpRole::kNorm},
      {.text = "projector_up_projection", .role = OpRole::kUp},
      {.text = "projector_activation", .role = OpRole::kActivation},
      {.text = "projector_down_projection", .role = OpRole::kDown},
      {.text = "prediction_projection"},
      {.text = "prediction_stream_projection"},
      {.text = "head_mapping"},
      {.text = "head_projection", .role = OpRole::kHead},
      {.text = "head_activation", .role = OpRole::kActivation},
      {.text = "unembedding", .role = OpRole::kHead},
      {.text = "cross_entropy"},
      {.text = "sampling"},
      {.text = "input"},
  });

  static consteval std::uint8_t row_of(std::string_view text) {
    for (std::size_t row = 0; row < kTable.size(); ++row) {
      if (kTable[row].text == text) return static_cast<std::uint8_t>(row);
    }
    throw "this op is not in the table of workload/parts/op_name.h";
  }

  std::uint8_t row_ = 0;
};

}  // namespace stepsim
