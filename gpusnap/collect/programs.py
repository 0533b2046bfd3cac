"""What known programs do with a GPU: data that anyone can extend. No code, so that importing it costs nothing.

To add a program: its name to a line of PROGRAMS (the file name of its executable, which is what `comm` shows too,
cut to 15 characters), or to SCRIPTS if an interpreter runs it; then one case and one near miss to
`tests/unit/collect/role_cases.py`. A trailing `*` takes every name that begins so.
"""

from __future__ import annotations

# category -> role -> names, parted by commas.
PROGRAMS = {
    "desktop": {
        "desktop compositor": (
            "kwin_wayland, kwin_x11, gnome-shell, mutter, sway, Hyprland, hyprland, weston, labwc, wayfire, "
            "river, "
            "niri, cosmic-comp, cinnamon, muffin, marco, xfwm4, picom, compton, compiz, budgie-wm, gala, "
            "enlightenment, "
            "phoc, gamescope, gamescope-wl, miriway-shell, dwm.exe, WindowServer"
        ),
        "display server": "Xorg, Xorg.bin, X, Xwayland, Xvnc, Xtigervnc, Xephyr, Xvfb, Xnest, csrss.exe",
        "desktop shell": (
            "plasmashell, xfce4-panel, xfdesktop, mate-panel, lxqt-panel, waybar, quickshell, ags, eww, "
            "polybar, conky, "
            "krunner, ksmserver, rofi, wofi, fuzzel, swaybg, hyprpaper, nautilus, nautilus-desktop, dolphin, "
            "thunar, "
            "nemo, caja, pcmanfm-qt, cosmic-panel, xdg-desktop-portal*, ibus-ui-gtk3, fcitx5, explorer.exe, "
            "sihost.exe, "
            "ShellExperienceHost.exe, ShellHost.exe, StartMenuExperienceHost.exe, SearchHost.exe, "
            "TextInputHost.exe, "
            "ApplicationFrameHost.exe, LockApp.exe, Finder, Dock, ControlCenter, NotificationCenter, Spotlight, "
            "SystemUIServer, WindowManager"
        ),
        "login screen": (
            "sddm-greeter, sddm-greeter-qt6, lightdm-gtk-greeter, slick-greeter, gdm-x-session, "
            "gdm-wayland-session, "
            "regreet, kscreenlocker_greet, swaylock, hyprlock, xscreensaver, LogonUI.exe, loginwindow"
        ),
    },
    "browser": {
        "pages, video, WebGL": (
            "firefox, firefox-bin, firefox-esr, firefox.real, librewolf, waterfox, floorp, zen, zen-bin, chrome, "
            "google-chrome, chromium, chromium-browser, brave, brave-browser, vivaldi-bin, opera, msedge, "
            "thorium, "
            "epiphany, falkon, qutebrowser, ladybird, WebContent, Safari, Google Chrome*, Microsoft Edge*, "
            "Brave Browser*, "
            "Arc, com.apple.WebKit.*"
        ),
    },
    "llm": {
        "LLM server (llama.cpp)": "llama-server, llama-swap, llamafile, rpc-server, llama-box",
        "LLM (llama.cpp)": (
            "llama-cli, llama-run, llama-simple, llama-mtmd-cli, llama-perplexity, llama-embedding, "
            "llama-speculative, "
            "llama-batched, llama-parallel"
        ),
        "LLM benchmark (llama.cpp)": "llama-bench, llama-batched-bench",
        "model quantisation (llama.cpp)": "llama-quantize, llama-imatrix",
        "LLM server (Ollama)": "ollama, ollama-linux-amd64",
        "LLM runner (Ollama)": "ollama_llama_server, ollama-runner",
        "LLM server (vLLM)": "vllm, VLLM::*, vllm::*",
        "LLM server (SGLang)": "sglang::*",
        "LLM server (KoboldCpp)": "koboldcpp*",
        "LLM server (LM Studio)": "LM Studio*, lm-studio, lmstudio, lms, llmster",
        "LLM server (TGI)": "text-generation-launcher, text-generation-server, text-generation-router",
        "embedding server": "text-embeddings-router, infinity_emb",
        "LLM server (TensorRT-LLM)": "trtllm-serve, trtllm-llmapi-launch",
        "LLM server (LocalAI)": "local-ai",
        "LLM server (Tabby)": "tabby",
        "LLM server (mistral.rs)": "mistralrs-server, mistralrs",
        "LLM server (MindIE)": "mindieservice_daemon, mindie_llm_*",
        "LLM chat": "gpt4all, Jan, jan, msty, Msty, GPT4All",
    },
    "ai": {
        "PyTorch": "pt_main_thread",
        "Ray worker": "ray::*",
        "inference server (Triton)": "tritonserver, triton_python_backend_stub",
        "inference server (TensorFlow Serving)": "tensorflow_model_server",
        "speech recognition": "whisper-server, whisper-cli, whisper-stream, faster-whisper, whisper-ctranslate2",
        "speech synthesis": "piper",
        "image generation (stable-diffusion.cpp)": "sd-server, sd-cli",
        "camera object detection (Frigate)": "frigate, frigate.*",
        "photo recognition": "mediaanalysisd, photoanalysisd",
    },
    "app": {
        "code editor": (
            "code, code-insiders, codium, vscodium, cursor, windsurf, zed, zed-editor, sublime_text, "
            "devenv.exe, Code Helper*"
        ),
        "chat, calls": (
            "slack, Slack, Discord, discord, DiscordCanary, vesktop, teams, teams-for-linux, ms-teams.exe, "
            "zoom, ZoomWebviewHost, "
            "signal-desktop, Telegram, telegram-desktop, element-desktop, skypeforlinux, WhatsApp.exe"
        ),
        "terminal": (
            "gnome-terminal-server, konsole, kitty, alacritty, wezterm-gui, ghostty, foot, rio, ptyxis, "
            "ptyxis-agent, "
            "kgx, WindowsTerminal.exe, Terminal, iTerm2"
        ),
        "notes": "obsidian, Obsidian, logseq, Logseq, notion-app",
        "mail, calendar": "thunderbird, thunderbird-bin, betterbird, evolution, olk.exe",
        "software centre": "gnome-software, plasma-discover, pop-cosmic-store, mintinstall",
        "music": "spotify, Spotify.exe",
        "video player": "mpv, vlc, totem, celluloid, smplayer, kodi.bin, kodi-x11, kodi-wayland, showtime, haruna",
        "video encoding, decoding": (
            "ffmpeg, ffmpeg_g, ffprobe, gst-launch-1.0, HandBrakeCLI, ghb, Plex Transcoder, mencoder"
        ),
        "media server": "jellyfin, Plex Media Server, emby-server, EmbyServer",
        "recording, streaming": (
            "obs, obs64.exe, obs-ffmpeg-mux, gpu-screen-recorder, sunshine, moonlight, parsecd, wf-recorder, "
            "simplescreenrecorder"
        ),
        "video editing": "kdenlive, resolve, shotcut, olive-editor, openshot-qt, lightworks, Resolve.exe",
        "3D rendering": (
            "blender, Blender, houdini, hython, maya.bin, kick, redshiftCmdLine, octane, OctaneServer, "
            "luxcoreui, vray, usdview"
        ),
        "image editing": (
            "krita, gimp, gimp-2.10, gimp-3.0, inkscape, darktable, rawtherapee, digikam, Photoshop.exe"
        ),
        "CAD": "FreeCAD, freecad, openscad, kicad, OrcaSlicer, orca-slicer, prusa-slicer, bambu-studio, acad.exe",
        "game engine editor": "UnrealEditor*, Unity, Unity.exe, godot, Godot*",
        "game launcher": (
            "steam, steamwebhelper, steam-runtime-*, pressure-vessel*, pv-adverb, srt-bwrap, lutris, "
            "lutris-wrapper, heroic, "
            "bottles, prismlauncher, EpicGamesLauncher.exe"
        ),
        "virtual reality": "vrserver, vrcompositor, vrmonitor, monado-service, wivrn-server, alvr_dashboard",
        "virtual machine": "qemu-system-*, qemu-kvm, VirtualBoxVM, vmware-vmx, crosvm, looking-glass-client",
        "molecular simulation": "gmx, gmx_mpi, namd2, namd3, lmp, pmemd.cuda, pmemd.cuda.MPI, openmm",
        "scientific visualisation": (
            "paraview, pvserver, chimerax, ChimeraX, vmd, rviz2, rviz, gzserver, gzclient, visit"
        ),
        "numerical computing": "MATLAB, julia, octave-gui, Mathematica, WolframKernel, ansys, fluent",
        "distributed computing": "FahCore*, FAHClient, fah-client, boinc, boinc_client",
        "coin mining": (
            "xmrig, t-rex, lolMiner, nbminer, ethminer, PhoenixMiner, gminer, miner, teamredminer, "
            "nanominer, rigel, bzminer"
        ),
        "password cracking": "hashcat, hashcat.bin, john",
        "desktop program with web pages": (
            "QtWebEngineProcess, WebKitWebProcess, WebKitGPUProcess, electron, nwjs, msedgewebview2.exe"
        ),
        "remote desktop": "rustdesk, anydesk, xrdp, gnome-remote-desktop-daemon, krdpserver, TeamViewer",
        "office": "soffice.bin, evince, okular, onlyoffice-desktopeditors, DesktopEditors",
        "GPU test": (
            "glxgears, vkcube, glmark2*, vkmark, furmark, gpu-burn, gpu_burn, nvbandwidth, "
            "bandwidthTest, p2pBandwidthLatencyTest"
        ),
    },
    "system": {
        "keeps the driver loaded": "nvidia-persistenced",
        "shares the GPU between CUDA programs (MPS)": "nvidia-cuda-mps-server, nvidia-cuda-mps-control",
        "GPU monitoring": (
            "nv-hostengine, dcgm-exporter, dcgmi, nvidia-smi, nvtop, nvitop, gpustat, nvidia_gpu_exporter, "
            "rocm-smi, "
            "amd-smi, amdgpu_top, radeontop, intel_gpu_top, xpumd, all-smi, gpusnap, btop, mangohud, "
            "corectrl, lact, npu-smi, "
            "NVIDIA Overlay.exe"
        ),
        "GPU driver service": (
            "nvidia-powerd, nv-fabricmanager, nvidia-imex, nvidia-modprobe, nvidia-settings, "
            "nvidia-sleep.sh, supergfxd, "
            "switcheroo-control, gpu-manager, NVDisplay.Container.exe, nvcontainer.exe, atieclxx.exe, igfxEM.exe"
        ),
        "GPU device plugin": (
            "nvidia-device-plugin, gpu-feature-discovery, k8s-device-plugin, nvidia-container-runtime"
        ),
        "boot screen": "plymouthd",
        "session management": "systemd-logind, systemd, seatd, elogind-daemon",
        "video decoding service": "VTDecoderXPCService, VTEncoderXPCService, audiodg.exe",
    },
    "kernel": {
        "kernel": "System, kernel_task",
    },
}  # fmt: skip

# Programs that an interpreter runs: (category, role, evidence). Any of the evidence, parted by commas, is enough:
# a module (`python -m vllm.entrypoints…` is `vllm`), a script's file name, or with slashes a part of the path of
# the script or of the interpreter.
SCRIPTS = (
    ("llm", "LLM server (vLLM)", "vllm, /site-packages/vllm/"),
    ("llm", "LLM server (SGLang)", "sglang"),
    ("llm", "LLM server (KoboldCpp)", "koboldcpp.py, /koboldcpp/"),
    ("llm", "LLM server (TabbyAPI)", "/tabbyAPI/, /TabbyAPI/, /tabbyapi/"),
    ("llm", "LLM server (text-generation-webui)", "/text-generation-webui/, /oobabooga/, one_click.py"),
    ("llm", "LLM server (TGI)", "text_generation_server, text-generation-server"),
    ("llm", "LLM server (TensorRT-LLM)", "tensorrt_llm, trtllm-serve"),
    ("llm", "LLM server (LMDeploy)", "lmdeploy"),
    ("llm", "LLM server (llama-cpp-python)", "llama_cpp"),
    ("llm", "LLM server (MLX)", "mlx_lm, mlx_vlm"),
    ("llm", "LLM server (MLC)", "mlc_llm"),
    ("llm", "LLM server (Aphrodite)", "aphrodite"),
    ("llm", "LLM server (ktransformers)", "ktransformers"),
    ("llm", "LLM server (Xinference)", "xinference, xinference-local, xinference-worker"),
    ("llm", "LLM server (LM Studio)", "llmworker.js, /.lmstudio/"),
    ("llm", "LLM server (ExLlama)", "/exllamav2/, /exllamav3/"),
    ("llm", "embedding server", "infinity_emb"),
    ("ai", "image generation (ComfyUI)", "comfy, /ComfyUI/, /comfyui/, /ComfyUI_windows_portable/"),
    ("ai", "image generation (Stable Diffusion web UI)",
     "webui.py, /stable-diffusion-webui/, /stable-diffusion-webui-forge/, /sdnext/"),
    ("ai", "image generation (Fooocus)", "entry_with_update.py, /Fooocus/"),
    ("ai", "image generation (InvokeAI)", "invokeai, invokeai-web"),
    ("ai", "image generation training", "/sd-scripts/, /kohya_ss/, /ai-toolkit/, /OneTrainer/"),
    ("ai", "Jupyter kernel", "ipykernel, ipykernel_launcher, colab_kernel_launcher, /ipykernel/"),
    ("ai", "speech recognition",
     "whisper, whisperx, faster_whisper, faster-whisper, faster_whisper_server, wyoming_faster_whisper, "
     "whisper_online_server.py, speaches"),
    ("ai", "speech synthesis", "wyoming_piper, piper, TTS, kokoro, coqui"),
    ("ai", "photo recognition (Immich)", "immich_ml, immich-machine-learning, /immich-machine-learning/"),
    ("ai", "camera object detection (Frigate)", "frigate"),
    ("ai", "chat interface (Open WebUI)", "open_webui, open-webui"),
    ("ai", "Ray worker", "default_worker.py, setup_worker.py"),
    ("ai", "distributed training (launcher)",
     "torchrun, torch.distributed, accelerate, deepspeed, paddle.distributed, horovodrun"),
    ("ai", "training",
     "axolotl, llamafactory, llamafactory-cli, unsloth, ultralytics, yolo, nemo, megatron, torchtune, tune"),
    ("ai", "TensorBoard", "tensorboard"),
    ("ai", "inference server (Triton)", "triton_python_backend_stub"),
    ("app", "molecular simulation", "gpaw, openmm"),
    ("app", "game (Minecraft)", "net.minecraft, net.fabricmc, cpw.mods"),
    ("app", "game launcher", "lutris, lutris-wrapper, bottles, /bottles/"),
    ("browser", "pages, video, WebGL", "qutebrowser"),
    ("system", "GPU monitoring", "gpusnap, nvitop, gpustat"),
)  # fmt: skip

# A script is training if its name holds one of these words; `python -c` is what it imports.
TRAINING_WORDS = (
    "train, training, trainer, pretrain, pretraining, finetune, finetuning, finetuner, "
    "sft, dpo, grpo, rlhf, lora, qlora"
)
FRAMEWORKS = {
    "torch": "PyTorch",
    "transformers": "PyTorch",
    "tensorflow": "TensorFlow",
    "jax": "JAX",
    "cupy": "CuPy",
}

# `main.py` is many things; these options are one program's alone.
OWN_OPTIONS = (
    ("ai", "image generation (ComfyUI)",
     "--preview-method, --highvram, --normalvram, --lowvram, --novram, --disable-smart-memory, "
     "--extra-model-paths-config, "
     "--use-sage-attention, --cuda-malloc, --front-end-version, --use-pytorch-cross-attention"),
    ("ai", "image generation (Stable Diffusion web UI)",
     "--ckpt-dir, --opt-sdp-attention, --opt-split-attention, --no-half-vae, --skip-torch-cuda-test, "
     "--ui-settings-file"),
    ("llm", "LLM server (text-generation-webui)", "--exllamav2, --loader, --extensions, --chat-buttons"),
)  # fmt: skip

# Program and first words -> what this run of it does.
SUBCOMMANDS = {
    ("ollama", "runner"): "LLM runner (Ollama)",
    ("ollama", "run"): "LLM chat (Ollama)",
    ("vllm", "bench"): "LLM benchmark (vLLM)",
}

# `--type=` of Chromium and everything built on it; the last word of Firefox's `-contentproc`.
HELPER_TYPES = {
    "gpu-process": "GPU process",
    "renderer": "page",
    "utility": "helper",
    "zygote": "helper",
    "broker": "helper",
    "gpu": "GPU process",
    "rdd": "video decoding",
    "tab": "page",
    "socket": "network",
    "forkserver": "helper",
}

# comm of kernel threads -> role.
KERNEL_THREADS = {
    "nvidia-modeset": "display output of the NVIDIA driver",
    "nv_": "NVIDIA driver",
    "nvidia": "NVIDIA driver",
    "UVM ": "unified memory of the NVIDIA driver",
    "irq/": "interrupts",
    "amdgpu": "AMD driver",
    "kfd": "AMD compute driver",
    "i915": "Intel driver",
    "xe-": "Intel driver",
    "card": "GPU scheduler",
    "gfx": "GPU scheduler",
    "sdma": "GPU scheduler",
    "kworker": "kernel worker",
}
