echo "Running"
export EXECUTABLE="train"
for ARGUMENT in "$@"; do
    IFS='=' read -r KEY VALUE <<< "$ARGUMENT"
    export "$KEY"="$VALUE"
done
python3 -m maxtext.trainers.pre_train.$EXECUTABLE "${CONFIGS:-$PWD/configs}"/base.yml\
    model_name=llama3.1-70b steps=15 per_device_batch_size=2 \
    remat_policy=custom context=device mlpwo=offload \
    ici_fsdp_parallelism=-1 ici_tensor_parallelism=4 dcn_data_parallelism=2\
    max_target_length=8192 compile_topology=v5p-256 compile_topology_num_slices=2 quantization=""
