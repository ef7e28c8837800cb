#include <string>

#include "import/megatron/core_experiment.h"
#include "sim/base/small_letters.h"

namespace stepsim {
namespace {

// How keys begin that change no step's time.
constexpr std::string_view kHarmlessBeginnings =
    "export_ use_checkpoint no_use_tokenizer max_tokens temperature output_path num_tokens_to "
    "top_k top_p return_log prompt incoming_ check_weight no_ckpt te_rng flash_decode "
    "enable_chunked use_legacy perform_rl model_provider verify_ use_fused_weighted no_record "
    "trust_ disable_gloo override_opt refit_ use_rope cross_entropy_fusion_impl termination "
    "output_every use_coordinator apply_wd is_hybrid no_weight_decay ddp_average "
    "use_flashinfer reuse_grad_buf num_distributed_optimizer mamba_inference moe_enable_routing "
    "moe_pad_experts moe_router_padding no_use_layer no_align align_ "
    "lr min_lr max_lr decoupled_ adam weight_decay start_weight end_weight train_ eval valid "
    "test_ save load log tensorboard wandb mlflow comet data_path data_args data_cache "
    "dataset dataloader split seed init exit tokenizer vocab_ merge_ num_workers distributed_ "
    "profile nvtx mock ckpt dist_ckpt async_ no_load no_save finetune retro bert ict vision "
    "dino swin rl_ grpo langrl inference one_logger logging rotary rope yarn mscale moe_aux "
    "moe_z_loss moe_router_score moe_router_load moe_router_bias moe_router_enable "
    "moe_router_pre moe_router_topk_scaling norm_ layernorm_ fim_ sgd lion muon ft_ inprocess "
    "result_rejected error_inj rerun straggler timing tiktoken num_dataset num_query_groups "
    "per_split encoder_ decoder_ ";
constexpr std::string_view kHarmlessKeys =
    "max_position_embeddings longest_sequence rank local_rank node_rank master_addr master_port "
    "rdzv_id rdzv_backend rdzv_endpoint "
    "max_restarts tee redirects log_dir config_dir mpi use_mcore_models transformer_impl "
    "is_old_megatron spec apply_layernorm_1p make_vocab_size_divisible_by manual_gc "
    "manual_gc_interval empty_unused_memory_level calculate_per_token_loss loss_scale "
    "initial_loss_scale min_loss_scale loss_scale_window hysteresis attention_softmax_in_fp32 "
    "fp16_lm_cross_entropy no_masked_softmax_fusion masked_softmax_fusion no_bias_gelu_fusion "
    "bias_gelu_fusion no_bias_swiglu_fusion bias_swiglu_fusion no_bias_dropout_fusion "
    "bias_dropout_fusion no_rope_fusion apply_rope_fusion no_persist_layer_norm "
    "persist_layer_norm apply_query_key_layer_scaling "
    "apply_residual_connection_post_layernorm squared_relu swiglu openai_gelu onnx_safe "
    "glu_linear_offset activation_func_clamp_value enable_gpt_oss "
    "check_for_nan_in_loss_and_grad no_check_for_nan_in_loss_and_grad check_for_large_grads "
    "num_token gradient_accumulation_fusion params_dtype pipeline_dtype fp8_margin "
    "fp8_interval fp8_amax_history_len fp8_amax_compute_algo fp8_wgrad nccl_ub use_nccl_ub "
    "nccl_communicator_config_path use_ring_exchange_p2p add_position_embedding "
    "reset_position_ids reset_attention_mask eod_mask_loss "
    "create_attention_mask_in_dataloader no_create_attention_mask_in_dataloader "
    "no_mmap_bin_files mmap_bin_files deterministic_mode use_cpu_initialization lazy_mpu_init "
    "standalone_embedding_stage moe_grouped_gemm moe_permute_fusion moe_router_fusion "
    "moe_router_dtype moe_router_num_groups moe_router_padding_for_fp8 "
    "moe_router_force_load_balancing moe_token_drop_policy moe_pad_expert_input_to_capacity "
    "moe_per_layer_logging mtp_loss_scaling_factor scatter_gather_tensors_in_pipeline "
    "enable_experimental auto_detect_ckpt_format use_persistent_ckpt_worker ";

}  // namespace

bool core_changes_no_time(const Setting& setting) {
  const std::string value = in_small_letters(setting.shown());
  const bool is_off = value == "false" || value == "none" || value == "0" || value == "0.0" ||
                      value == "[]" || value == "" || value == "null";
  if (is_off) return true;
  const std::string& key = setting.key;
  return key.starts_with("script_") || begins_with_one_of(key, kHarmlessBeginnings) ||
         is_one_of(key, kHarmlessKeys);
}

}  // namespace stepsim
