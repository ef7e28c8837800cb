
N/device:GPU:0#Stream #14(Compute)è"	ˆ' œ"ampere_bf16_gemm