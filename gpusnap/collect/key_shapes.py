"""What a key looks like where no name announces it: the issuers' known prefixes, and chance. Pure.

Never a path part, a plain hex digest or a UUID: commits, Nix store hashes, ollama's `sha256-…` blobs, `GPU-<uuid>`
and model names are what command lines are full of.
"""

from __future__ import annotations

import re
from itertools import pairwise

# Tokens as their issuers write them: `prefix` and what must follow. No letter or digit stands before them.
_PREFIXED = r"""(?<![A-Za-z0-9])(?:
    sk-(?=[A-Za-z_-]*[0-9]|[a-z]+[A-Z])[A-Za-z0-9_-]{16,} | [srp]k_(?:live|test)_[A-Za-z0-9]{10,}
  | hf_[A-Za-z0-9]{16,} | gh[oprsu]_[A-Za-z0-9]{20,} | github_pat_[A-Za-z0-9_]{20,} | glpat-[A-Za-z0-9_-]{16,}
  | xox[abeoprs]-[A-Za-z0-9-]{10,} | xapp-[A-Za-z0-9-]{10,} | A[KS]IA[A-Z0-9]{16} | AIza[A-Za-z0-9_-]{30,}
  | ya29\.[A-Za-z0-9_-]{20,} | nvapi-[A-Za-z0-9_-]{20,} | gsk_[A-Za-z0-9]{20,} | r8_[A-Za-z0-9]{20,}
  | pplx-[A-Za-z0-9]{20,} | tgp_v1_[A-Za-z0-9_-]{20,} | dapi[a-f0-9]{32} | hv[sb]\.[A-Za-z0-9_-]{20,}
  | glsa_[A-Za-z0-9_]{20,} | dckr_pat_[A-Za-z0-9_-]{20,} | dop_v1_[a-f0-9]{20,} | npm_[A-Za-z0-9]{20,}
  | pypi-AgE[A-Za-z0-9_-]{20,} | lsv2_[a-z]{2}_[A-Za-z0-9_]{20,} | tskey-[A-Za-z0-9-]{10,}
  | SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,} | xai-[A-Za-z0-9]{30,} | AGE-SECRET-KEY-1[A-Z0-9]{20,}
  | [0-9]{8,10}:AA[A-Za-z0-9_-]{30,}
  | eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)* | eyJ[A-Za-z0-9_+/-]{40,}=*
  )"""

SHORTEST_KEY = 15
# One of these stands in every text that _PREFIXED can match: a quick test before the expression is compiled.
_MARKS = (
    "sk-", "k_live_", "k_test_", "hf_", "gho_", "ghp_", "ghr_", "ghs_", "ghu_", "github_pat_", "glpat-", "xox",
    "xapp-", "AKIA", "ASIA", "AIza", "ya29.", "nvapi-", "gsk_", "r8_", "pplx-", "tgp_v1_", "dapi", "hvs.", "hvb.",
    "glsa_", "dckr_pat_", "dop_v1_", "npm_", "pypi-AgE", "lsv2_", "tskey-", "SG.", "xai-", "AGE-SECRET-KEY-",
    ":AA", "eyJ",
)  # fmt: skip

# A run of these may be a key; `.`, `/`, `\`, `:`, `=`, `,` and the rest end it.
_RUN = r"[A-Za-z0-9_+-]{20,}={0,2}"
# The 170 pairs of letters that make up 85 % of the words in program text; a quarter of those that chance draws.
_COMMON_PAIRS = (
    "ab ac ad ag ai al am an ap ar as at au ba be bl bo bu ca ce ch ci ck cl co cr ct da de di do ea ec ed ee "
    "ef eg el em en ep er es et ev ex fa fi fo ge gr ha he hi ho ht ia ib ic id ie if ig il im in io ip ir is "
    "it iv ke la ld le li ll lo ls lt lu ly ma me mi mo mp na nc nd ne ng ni no ns nt nu oc od ol om on oo op "
    "or os ot ou ow pa pe pl po pp pr pt py qu ra rc rd re ri rm rn ro rr rs rt ru ry sa sc se sh si so sp ss "
    "st su ta tc te th ti to tr ts tt tu ty ue ui ul um un up ur us ut va ve vi wa wi xe xt yp"
)
_MIN_RUN = 20


def may_hold_known_keys(text: str) -> bool:
    for mark in _MARKS:  # noqa: SIM110 - any() over a generator costs three times as much
        if mark in text:
            return True
    return False


def mask_known_keys(text: str, mask: str) -> str:
    """Issuers' keys, but no part of a path: `/data/hf_checkpoints2025nightly` is a folder."""
    value = text.partition("=")[2] if text.startswith("-") else text
    if value.startswith(("/", "./", "../", "~/")) or value[1:3] in (":\\", ":/"):
        return text
    return re.sub(_PREFIXED, mask, text, flags=re.VERBOSE)


def mask_random_keys(word: str, mask: str) -> str:
    """Runs of chance in a word that is no path and no file name."""
    if len(word) < _MIN_RUN or "/" in word or "\\" in word:
        return word
    if word.islower() and word.replace("-", "").replace("_", "").isalpha():  # an option's name
        return word
    if _ends_like_a_file(word):
        return word
    return re.sub(_RUN, lambda found: mask if is_random(found[0]) else found[0], word)


def _ends_like_a_file(word: str) -> bool:
    stem, dot, ending = word.rpartition(".")
    return bool(dot and stem) and 1 <= len(ending) <= 11 and ending[0].isalpha() and ending.isalnum()


def is_random(run: str) -> bool:
    """Letters and digits in no order that words have; `-` and `_` only as rare as chance makes them."""
    parts = [part for part in re.split(r"[-_+=]+", run) if part and not _is_digest(part)]
    joined = "".join(parts)
    if len(parts) > 1 + len(joined) // 10:  # words joined by dashes; judge each on its own
        return any(_is_random_part(part) for part in parts)
    return _is_random_part(joined)


def _is_random_part(text: str) -> bool:
    if len(text) < _MIN_RUN or _is_digest(text):
        return False
    digits = sum(map(str.isdigit, text))
    mixed = not text.islower() and not text.isupper()
    if digits < 2 and not (mixed and (digits or len(text) >= 24)):
        return False
    changes = sum(_kind(a) != _kind(b) for a, b in pairwise(text))
    pairs = [a + b for a, b in pairwise(text.lower()) if a.isalpha() and b.isalpha()]
    common = sum(pair in _COMMON_PAIRS for pair in pairs)
    return changes >= 0.1 * len(text) and len(pairs) >= 4 and common < (0.55 if digits else 0.4) * len(pairs)


def _kind(char: str) -> int:
    return 0 if char.isdigit() else 1 if char.isupper() else 2


def _is_digest(part: str) -> bool:
    """Hex of either case (a UUID's groups too), or a plain number."""
    return not part.strip("0123456789abcdef") or not part.strip("0123456789ABCDEF")
