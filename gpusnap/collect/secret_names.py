"""Which names announce a secret: flags (`--hf-token`), variables (`OPENAI_API_KEY`), headers, query keys. Pure."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# A name that holds none of these is harmless; a quick test before the name is taken apart.
HINTS = ("key", "token", "pass", "pwd", "secret", "auth", "credential", "cookie", "jwt", "bearer", "hft", "ngrok")

# Anywhere in the name, separators left out.
_STRONG = (
    "password",
    "passwd",
    "passphrase",
    "secret",
    "apikey",
    "accesskey",
    "privatekey",
    "masterkey",
    "bearer",
    "authorization",
    "credential",
)
# The value is the secret only where nothing of this kind follows: `--password-file`, `--password-store=basic`.
_DESCRIBES = _words(
    "algo algorithm backend class count dir directory enabled endpoint env expiry file filename files format "
    "header headers id ids len length manager max method min mode module name names path paths policy prefix "
    "provider required rotation scheme size store timeout ttl type uri url usage var variable"
)
_DESCRIBES_END = ("file", "path", "dir", "_var")

# `--hf-token` is a secret, `--stop-token` and `add_bos_token` are words of a model's vocabulary.
_VOCABULARY = _words(
    "add audio batch begin boi bos by cls completion context ctx draft each end eoi eos fim first ignore image "
    "img last mask max mid min multi n new next num one pad per pre print prompt sampled sep show single skip "
    "special start startup stop suf target text think tool unk video vision"
)
# A flag that ends in `key` is one of many things; these make it a secret. A variable in capitals always is.
_KEY_OF = _words(
    "access account admin anthropic api app auth aws azure bot civitai client cohere comet decryption deploy "
    "encryption gemini google groq hf huggingface langsmith licence license litellm master mistral neptune ngc "
    "nvidia openai openrouter pre private replicate rpc runpod s3 secret serper service session shared signing "
    "storage stream stripe subscription tavily together user vast wandb webhook"
)
_SWITCHES = _words("allow disable enable ignore no require skip without")


def is_secret_name(name: str) -> bool:
    """`name` as written, with its dashes: `--api-key`, `HF_TOKEN`, `NotebookApp.token`, `accessToken`."""
    if name.startswith("-e") and name[2:].isupper():  # docker run -eHF_TOKEN=X
        name = name[2:]
    lower = name.lower()
    if not any(hint in lower for hint in HINTS):
        return False
    parts = split_name(name)
    if not parts or parts[0] in _SWITCHES:
        return False
    last = parts[-1]
    if last in _DESCRIBES or last.endswith(_DESCRIBES_END):
        return False
    joined = "".join(parts)
    if any(word in joined for word in _STRONG):
        return True
    if last.endswith("token"):
        return not (_VOCABULARY.intersection(parts[:-1]) or last.removesuffix("token") in _VOCABULARY)
    if last == "key":
        return len(parts) == 1 or parts[-2] in _KEY_OF or name.isupper()
    if last == "pwd":
        return parts not in (["pwd"], ["old", "pwd"], ["oldpwd"])
    if last == "pass":
        return name.startswith("--") or name.isupper()
    return last in ("auth", "authkey", "jwt", "cookie", "cookies", "hft", "ngrok")


def split_name(name: str) -> list[str]:
    """`--NotebookApp.authToken` -> notebook, app, auth, token."""
    parts: list[str] = []
    for piece in name.strip("-+_\"'\\ ").replace("-", "_").replace(".", "_").split("_"):
        start = 0
        for index in range(1, len(piece)):
            if piece[index].isupper() and piece[index - 1].islower():
                parts.append(piece[start:index].lower())
                start = index
        if piece[start:]:
            parts.append(piece[start:].lower())
    return parts


def may_be_path(name: str) -> bool:
    """Names whose value is a file as often as a secret: `Xorg -auth /run/user/1000/xauth`."""
    parts = split_name(name)
    return parts in (["auth"], ["key"]) or parts[-1:] in (["credential"], ["credentials"], ["cookie"], ["cookies"])
