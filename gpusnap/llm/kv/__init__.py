"""What llama.cpp reserves for attention keys and values and for recurrent state, from a GGUF header.

    facts.py      the header's numbers, checked
    families.py   which architecture follows which rule
    windows.py    which layers look back only so far
    latent.py     MLA and the indexers of sparse attention
    recurrent.py  state of Mamba, RWKV, delta nets, short convolutions
    plan.py       header -> what each layer stores for one token and for one sequence
    settings.py   what the engine was told: context, sequences, types
    size.py       plan and settings -> bytes of each layer

The rules are those of llama.cpp at ggml 0.25.3 (`llama_model::create_memory`, `llama_hparams`, the constructors of
`llama_kv_cache*` and `llama_memory_recurrent`). `gpusnap.llm.kv_cache` is the door.
"""
