// The parts of a plan in the words of a table's author, whatever their case, spaces, "-" and "_":
//
//   yes, true, on, 1                                     says_yes()
//   sequence_parallel true, --sequence-parallel          divides_sequence()
//   3 (HSDP: sharded in a node), ZeRO-3, FSDP2           zero_of_words(): 3
//   ZeRO-1, distributed optimizer                        zero_of_words(): 1
//   interleaved 1F1B, one layer per chunk; VPP           schedule_of_words(): interleaved_1f1b
//   ZB-2p (auto, memory = 2x)                            schedule_of_words(): zb_auto_2p
//
//   Llama 2 70B (LoRA rank 16), LoRA r8 q,v              adapters_of_words(): 16; 8, qkv
//   TP_COMM_OVERLAP=True; overlap-grad-reduce            OverlapWords
//
// Words that are not known give nothing; the row says what is assumed then.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/pipeline/schedule_name.h"
#include "sim/chips/kernel.h"
#include "workload/adapters.h"

namespace stepsim {

bool says_yes(std::string_view text);

// Returns whether tensor ranks divide the tokens between them: yes, or the setting's name, alone or
// set to it. Sizes are those of other ways ("sequence_parallel_size 8").
bool divides_sequence(std::string_view text);

// Returns 0 if the text is blank or says that nothing is divided.
std::optional<std::int64_t> zero_of_words(std::string_view text);

// Returns whether attention is one kernel: "flash attention 2", "TE fused", SDPA, not "no flash
// attention" or "standard (not flash)". `usual`: where a text says neither.
bool fuses_attention(std::string_view text, bool usual);

// Returns the library of attention kernels that a text names: "flash_attention_2", "FA4", cuDNN.
// PyTorch's own, SDPA, is `usual`, or FlashAttention-2. nullopt: the text names none.
std::optional<AttentionLibrary> attention_library_of_words(std::string_view text,
                                                           std::optional<AttentionLibrary> usual);

// Returns 1F1B if the text is blank, or says that it is not known which.
std::optional<ScheduleName> schedule_of_words(std::string_view text);

// Returns whether a text names low-rank adapters: "LoRA", "QLoRA", "lora16", "lora_rank=16", but
// not "kv_lora_rank".
bool says_lora(std::string_view text);

struct AdapterWords {
  std::optional<std::int64_t> rank;
  std::vector<AdapterPlace> places;  // empty: the text doesn't say
};
// Reads what stands right behind "LoRA", up to a word that is none of these.
AdapterWords adapters_of_words(std::string_view text);

// OverlapWords is a list of settings, of which each stands for itself or is set to a value. Words
// are given in small letters, without spaces, "-" and "_".
class OverlapWords {
 public:
  explicit OverlapWords(std::string_view text);

  bool starts_with(std::string_view words) const { return text_.starts_with(words); }
  // True if a setting whose name ends with `word` is there, without "no" or "without" before it,
  // and not set to false, off, disabled, 0, none or "not set". The first such setting counts.
  bool says(std::string_view word) const;
  // True if it is there and set to one of them.
  bool denies(std::string_view word) const;

 private:
  enum class Answer : std::uint8_t { kSilent, kYes, kNo };
  Answer answer(std::string_view word) const;

  std::string text_;
};

}  // namespace stepsim
