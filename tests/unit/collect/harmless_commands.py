# ruff: noqa: E501 - command lines are kept whole
"""Command lines of programs that hold GPUs, with no secret in them: redaction must leave each to the letter.

Collected from the programs' own documentation, service files and process listings; one a line, words parted by
blanks (a word with a blank in it is in quotes, as a shell would take it).
"""

from __future__ import annotations

import shlex

_LINES = r"""
/usr/local/bin/llama-server -m /models/Qwen3-14B-Q4_K_M.gguf -ngl 99 -c 32768 --host 0.0.0.0 --port 8080 -fa on
llama-server -hf ggml-org/gpt-oss-20b-GGUF --ctx-size 0 --jinja -ub 2048 -b 2048 --api-key-file /etc/llama/keys.txt
llama-server -hfr unsloth/Qwen3-30B-A3B-GGUF:Q4_K_XL -ctk q8_0 -ctv q8_0 -ot ".ffn_.*_exps.=CPU" --n-cpu-moe 12
llama-server --override-kv tokenizer.ggml.add_bos_token=bool:false --ssl-key-file key.pem --ssl-cert-file cert.pem
llama-cli -m gemma-3-270m-it-Q8_0.gguf -p "Write a haiku about tokens" -n 128 --temp 0.7 --seed 42 --no-mmap
llama-bench -m model.gguf -p 512 -n 128 -ngl 99 -t 16 -r 5 -o json
llama-server --slot-save-path /var/cache/llama --reverse-prompt "<|im_end|>" --logit-bias 15043-1 --pooling mean
/usr/bin/ollama serve
/usr/local/bin/ollama runner --ollama-engine --model /root/.ollama/models/blobs/sha256-6a0746a1ec1aef3e7ec53868f220ff6e389f6f8ef87a01d77c96807de94ca2aa --port 40321
/tmp/ollama2384756/runners/cuda_v12/ollama_llama_server --model sha256-8934d96d3f08982e95922b2b7a2c626a1fe873d7c3b06e8e56d7bc0a1fef9246 --ctx-size 8192 --batch-size 512 --n-gpu-layers 33 --threads 8 --parallel 4 --port 44431
/app/.venv/bin/python3 /usr/local/bin/vllm serve Qwen/Qwen2.5-Coder-32B-Instruct-AWQ --tensor-parallel-size 2 --gpu-memory-utilization 0.92 --max-model-len 32768
vllm serve deepseek-ai/DeepSeek-R1-Distill-Qwen-32B --max-num-batched-tokens 8192 --kv-cache-dtype fp8_e4m3 --tokenizer-mode auto --enable-auto-tool-choice --tool-call-parser hermes
vllm serve meta-llama/Llama-3.1-405B-Instruct-FP8 --speculative-config '{"model":"eagle","num_speculative_tokens":5}' --served-model-name llama
vllm serve mistralai/Mistral-Small-3.1-24B-Instruct-2503 --tokenizer_mode mistral --config_format mistral --limit-mm-per-prompt image=4 --ssl-keyfile /etc/ssl/private/host.key
VLLM::EngineCore
VLLM::Worker_TP0
/usr/bin/python3 -c "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=37, pipe_handle=73)" --multiprocessing-fork
/usr/bin/python3 -c "from multiprocessing.resource_tracker import main;main(36)"
python3 -m sglang.launch_server --model-path Qwen/Qwen3-235B-A22B-Instruct-2507-FP8 --tp 8 --mem-fraction-static 0.88 --chunked-prefill-size 4096 --skip-tokenizer-init
sglang::scheduler_TP0
sglang::detokenizer
text-generation-launcher --model-id tiiuae/falcon-7b-instruct --num-shard 2 --max-input-tokens 2048 --max-total-tokens 4096 --max-batch-prefill-tokens 4096
text-generation-router --max-concurrent-requests 128 --tokenizer-name /data/tokenizer --master-shard-uds-path /tmp/text-generation-server-0
python3 koboldcpp.py --model /models/Mixtral-8x7B-Instruct-v0.1.Q5_K_M.gguf --usecublas normal 0 mmq --gpulayers 33 --contextsize 16384 --quiet
python main.py --listen 0.0.0.0 --port 8188 --preview-method auto --highvram --use-sage-attention --extra-model-paths-config extra_model_paths.yaml
python launch.py --xformers --opt-sdp-attention --ckpt /sd/models/Stable-diffusion/sd_xl_base_1.0.safetensors --enable-insecure-extension-access
python server.py --model TheBloke_Wizard-Vicuna-13B-Uncensored-GPTQ --loader exllamav2_hf --api --gradio-auth-path users.txt
python main.py --config config.yml --model-name turboderp_Llama-3.1-70B-Instruct-exl2_4.0bpw --cache-mode Q6 --disable-auth true
/home/a/.lmstudio/extensions/backends/llama.cpp-linux-x86_64-nvidia-cuda12-avx2-2.3.0/llama-server --port 41343
/usr/bin/python3 /usr/bin/torchrun --nproc_per_node=8 --nnodes=1 --rdzv_backend=c10d --rdzv_endpoint=localhost:29500 --rdzv-id=4711 train.py --lr 3e-4
python -m torch.distributed.run --standalone --nproc-per-node gpu finetune.py --model_name_or_path meta-llama/Meta-Llama-3-8B --max_new_tokens 256 --pad_token_id 128001
accelerate launch --config_file fsdp.yaml --num_processes 8 train_dreambooth_lora_sdxl.py --instance_prompt "a photo of sks dog" --resolution=1024 --caption_column text
deepspeed --include localhost:0,1,2,3 --master_port 29501 train.py --deepspeed ds_config_zero3.json --gradient_accumulation_steps 4 --logging_dir runs/2026-11-30_10-00-00
python -u train.py trainer.max_steps=100000 model=unet_attention optimizer.lr=1e-4 hydra.run.dir=/tmp/outputs/2026-11-30/10-00-00 data.num_workers=8
python train.py --eos_token "</s>" --bos-token-id 1 --max_tokens=4096 --tokens-per-batch 8192 --add_special_tokens --first-token-loss --run_name resnet50-imagenet-b256
python /opt/kohya_ss/sd-scripts/sdxl_train_network.py --max_token_length=225 --keep_tokens=1 --caption_extension=.txt --network_dim=32 --output_name=style_v3
python -m ipykernel_launcher -f /home/alice/.local/share/jupyter/runtime/kernel-f768a1b2-6a31-4c55-9d7e-0f3c0a1b2c3d.json
/usr/bin/python3 -m ipykernel_launcher -f /run/user/1000/jupyter/kernel-v31e4b2c0a.json --HistoryManager.hist_file=:memory:
jupyter-lab --no-browser --ip=127.0.0.1 --port=8888 --ServerApp.root_dir=/home/alice
tensorboard --logdir runs --port 6006 --reload_interval 30
tensorflow_model_server --rest_api_port=8501 --model_name=resnet --model_base_path=/models/resnet
tritonserver --model-repository=/models --strict-model-config=false --log-verbose=0
whisper-server -m models/ggml-large-v3-turbo-q5_0.bin --host 0.0.0.0 -l auto -t 8
faster-whisper audio.mp3 --model large-v3 --compute_type int8_float16 --output_format srt
piper --model en_US-lessac-medium.onnx --output-raw
/usr/lib/xorg/Xorg vt2 -displayfd 3 -auth /run/user/1000/gdm/Xauthority -nolisten tcp -background none -noreset -keeptty -novtswitch -verbose 3
/usr/lib/Xorg -nolisten tcp -background none -seat seat0 vt2 -auth /run/sddm/xauth_KzQpWx -noreset -displayfd 17
/usr/bin/Xwayland :0 -rootless -noreset -accessx -core -auth /run/user/1000/.mutter-Xwaylandauth.7BC3Y2 -listenfd 4 -listenfd 5 -displayfd 6 -initfd 7 -byteswappedclients
/usr/bin/gnome-shell --mode=user
/usr/bin/kwin_wayland --wayland-fd 7 --socket wayland-0 --xwayland-fd 8 --xwayland-fd 9 --xwayland-display :1 --xwayland-xauthority /run/user/1000/xauth_QnZrTy --xwayland
/usr/bin/plasmashell --no-respawn
sway --unsupported-gpu
Hyprland --config /home/a/.config/hypr/hyprland.conf
/usr/bin/ksmserver
/usr/lib/polkit-kde-authentication-agent-1
/usr/bin/gnome-keyring-daemon --foreground --components=pkcs11,secrets --control-directory=/run/user/1000/keyring
/usr/lib/firefox/firefox -contentproc -parentBuildID 20241107175306 -prefsLen 37456 -prefMapSize 271234 -appDir /usr/lib/firefox/browser {f2a7a5a0-95a4-4a3b-9f4e-0d5d6c1b2a3f} 4242 true tab
/usr/lib/firefox/firefox -contentproc -childID 12 -isForBrowser -prefsHandle 0:38216 -initialChannelId {0e8400a1-e29b-41d4-a716-446655440000} -sandboxReporter 3 -chrootClient 4
/opt/google/chrome/chrome --type=gpu-process --crashpad-handler-pid=4242 --enable-crash-reporter=f2a7a5a0-95a4-4a3b-9f4e-0d5d6c1b2a3f, --gpu-preferences=WAAAAAAAAAAgAAAEAAAAAAAAAAAAAAAAAABgAAEAAAA4AAAAAAAAAAAAAAAAAAAAAAAAAAAA --shared-files
/opt/google/chrome/chrome --type=renderer --field-trial-handle=3,i,17465487651234567890,5234123412341234123,262144 --enable-features=NetworkServiceInProcess2,VaapiVideoDecodeLinuxGL,UseOzonePlatform --variations-seed-version=20261111-130046.123000 --password-store=basic
chromium --ozone-platform-hint=auto --enable-features=WebRTCPipeWireCapturer,TouchpadOverscrollHistoryNavigation --disable-features=AcceptCHFrame,MediaSessionService --password-store=gnome-libsecret
/opt/brave.com/brave/brave --type=utility --utility-sub-type=network.mojom.NetworkService --lang=en-US --service-sandbox-type=none --metrics-shmem-handle=4,i,6743893745,39485793845
/usr/share/code/code --type=renderer --user-data-dir=/home/a/.config/Code --standard-schemes=vscode-webview,vscode-file --secure-schemes=vscode-webview,vscode-file --vscode-window-config=vscode:f2a7a5a0-95a4-4a3b-9f4e-0d5d6c1b2a3f
/usr/lib/slack/slack --type=gpu-process --enable-logging --gpu-preferences=UAAAAAAAAAAgAAAAAAAAAAAAAAAAAAAAAABgAAAAAAAwAAAAAAAAAAAAAAAAAAAA
/home/a/.steam/debian-installation/ubuntu12_32/steam -srt-logger-opened -silent
/home/a/.local/share/Steam/steamapps/common/SteamLinuxRuntime_sniper/pressure-vessel/bin/pressure-vessel-adverb --exit-with-parent --shell=none --overrides-path=/usr/lib/pressure-vessel/overrides
"Z:\home\a\.local\share\Steam\steamapps\common\Cyberpunk 2077\bin\x64\Cyberpunk2077.exe" --launcher-skip -skipStartScreen
C:\windows\system32\explorer.exe /desktop
wine64-preloader /usr/bin/wine "C:\Program Files\Game\game.exe"
blender -b scene.blend -E CYCLES -o //render_ -F PNG -f 1 -- --cycles-device CUDA
ffmpeg -hwaccel cuda -hwaccel_output_format cuda -i input.mp4 -c:v hevc_nvenc -preset p5 -pass 1 -passlogfile log -b:v 6M -f null /dev/null
ffmpeg -i rtsp://127.0.0.1:8554/front_door -c:v h264_nvenc -f flv rtmp://127.0.0.1/live/front_door
obs --startstreaming --profile "YouTube 1080p60" --collection Main
python3 -m frigate
/usr/lib/plexmediaserver/Plex Transcoder -codec:0 h264 -hwaccel nvdec -i /media/movies/file.mkv -segment_format mpegts
immich-machine-learning --workers 1
gunicorn immich_ml.main:app -k immich_ml.config.CustomUvicornWorker -c gunicorn_conf.py -b :3003 -w 1 -t 300
nvidia-persistenced --user nvidia-persistenced --persistence-mode --verbose
nvidia-cuda-mps-control -d
nvidia-cuda-mps-server
nv-hostengine -n --service-account nvidia-dcgm
/usr/bin/dcgm-exporter -f /etc/dcgm-exporter/dcp-metrics-included.csv --kubernetes --kubernetes-gpu-id-type uid
ray::RayWorkerWrapper.execute_method
/usr/bin/python3 -u /usr/lib/ray/_private/workers/default_worker.py --node-ip-address=10.0.0.7 --node-manager-port=41234 --object-store-name=/tmp/ray/session_2026-11-30_10-00-00_123456_7/sockets/plasma_store --startup-token=3 --worker-launch-time-ms=1796040000000 --node-id=6d3f0c8a9b1e2d4f5a6b7c8d9e0f1a2b3c4d5e6f7a8b9c0d1e2f3a4b
julia --project=. -t auto train.jl
java -Xmx8G -XX:+UseG1GC -Djava.library.path=/home/a/.minecraft/natives -cp lwjgl-3.3.3.jar:client-1.21.4.jar net.minecraft.client.main.Main --username Steve --version 1.21.4 --assetIndex 19 --uuid 069a79f444e94726a5befca90e38aaf5
gamescope -W 2560 -H 1440 -r 144 -f --force-grab-cursor -- mangohud game.sh
docker run --rm --gpus all -v /srv/auth:/auth -p 8000:8000 -e CUDA_VISIBLE_DEVICES=0,1 ghcr.io/huggingface/text-generation-inference:2.4.0 --model-id x
apptainer exec --nv --bind /scratch pytorch_24.10-py3.sif python train.py
env CUDA_VISIBLE_DEVICES=GPU-8f6d4c2a-1b3e-4d5f-9a7b-0c1d2e3f4a5b HF_HOME=/data/hf TOKENIZERS_PARALLELISM=false PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python run.py
bash -c "source /opt/venv/bin/activate && exec python -m vllm.entrypoints.openai.api_server --model facebook/opt-125m --port 8000"
/nix/store/9krlzvny65gdc8s7kpb6lkx8cd02c25b-python3-3.11.9/bin/python3.11 serve.py --commit 3f786850e387550fdab836ed7e6dc881de23001b
python train.py --resume /ckpt/epoch_12-step_340000-val_loss_0.1234.ckpt --git-sha da39a3ee5e6b4b0d3255bfef95601890afd80709 --wandb-project vae-sweeps --wandb-mode offline
python eval.py --image ghcr.io/org/app@sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae --url http://localhost:8000/v1/models/llama@main
python bench.py --author alice --sort-key time --primary-key id --hotkey F5 --keyboard us --monkey-patch --bypass-cache --passes 3 --tokens 128 --compass north
curl http://127.0.0.1:8080/v1/chat/completions -d '{"model":"qwen3","max_tokens":64,"stop_token_ids":[151643]}'
sleep 600
"""


def commands() -> list[list[str]]:
    return [
        shlex.split(line.replace("\\", "\\\\") if '"' not in line else line) for line in _LINES.split("\n") if line
    ]
