"""Colours and type of the pictures, light and dark. Hues are told apart by lightness too."""

from __future__ import annotations

_PALETTE = (
    ("#2563eb", "#60a5fa"),
    ("#d97706", "#fbbf24"),
    ("#059669", "#34d399"),
    ("#db2777", "#f472b6"),
    ("#7c3aed", "#a78bfa"),
    ("#0891b2", "#22d3ee"),
    ("#65a30d", "#a3e635"),
    ("#b45309", "#fdba74"),
)
_LIGHT = {
    "paper": "#ffffff",
    "ink": "#1f2937",
    "faint": "#6b7280",
    "line": "#d1d5db",
    "others": "#9ca3af",
    "shared": "#64748b",
    "rest": "#ef4444",
    "reserved": "#4b5563",
    "free": "#f3f4f6",
    "hatch": "#6b7280",
}
_DARK = {
    "paper": "#111827",
    "ink": "#f3f4f6",
    "faint": "#9ca3af",
    "line": "#374151",
    "others": "#6b7280",
    "shared": "#94a3b8",
    "rest": "#f87171",
    "reserved": "#d1d5db",
    "free": "#1f2937",
    "hatch": "#9ca3af",
}


def _variables(colours: dict[str, str], shade: int) -> str:
    named = "".join(f"--{name}:{value};" for name, value in colours.items())
    return named + "".join(f"--c{place}:{pair[shade]};" for place, pair in enumerate(_PALETTE))


STYLE = (
    f".gpusnap{{{_variables(_LIGHT, 0)}font:12px system-ui,sans-serif}}"
    f"@media (prefers-color-scheme:dark){{.gpusnap{{{_variables(_DARK, 1)}}}}}"
    ".gpusnap text{fill:var(--ink)}.gpusnap .answer{font-size:14px;font-weight:600}"
    ".gpusnap .title{font-size:13px;font-weight:600}"
    ".gpusnap .axis,.gpusnap .note,.gpusnap .legend{font-size:11px}.gpusnap .axis,.gpusnap "
    ".note{fill:var(--faint)}"
    ".gpusnap .paper{fill:var(--paper)}.gpusnap .frame{fill:var(--free);stroke:var(--line)}"
    ".gpusnap .tick{stroke:var(--line);stroke-dasharray:2 3}.gpusnap .hatch{fill:var(--hatch)}"
    ".gpusnap .others{fill:var(--others)}.gpusnap .shared{fill:var(--shared)}.gpusnap .rest{fill:var(--rest)}"
    ".gpusnap .reserved{fill:var(--reserved)}.gpusnap .free{fill:var(--free)}"
    ".gpusnap .gap,.gpusnap .unknown{fill-opacity:.55}"
    ".gpusnap .reboot{stroke:var(--ink);stroke-width:2}.gpusnap .clock{stroke:var(--faint);stroke-dasharray:4 3}"
    ".gpusnap .start,.gpusnap .exit{fill:var(--ink);stroke:var(--paper);stroke-width:.7}"
    ".gpusnap .finding{fill:var(--rest);stroke:var(--paper)}"
    ".gpusnap .hover{fill:transparent}.gpusnap .hover:hover{fill:var(--ink);fill-opacity:.12}"
    ".gpusnap .band{fill:var(--c0)}.gpusnap .under{fill:var(--c0);fill-opacity:.25}"
    + "".join(f".gpusnap .c{place}{{fill:var(--c{place})}}" for place in range(len(_PALETTE)))
)
PAGE_LIGHT = "".join(f"--{name}:{value};" for name, value in _LIGHT.items())
PAGE_DARK = "".join(f"--{name}:{value};" for name, value in _DARK.items())
