"""One page to attach to a ticket: the answer, the picture by process or by category, findings, the numbers.

Self-contained: no script, nothing fetched; a Content-Security-Policy forbids the browser to try.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusnap.explain.story import frame
from gpusnap.explain.words import minute
from gpusnap.render.explain import shown
from gpusnap.render.svg import svg_picture
from gpusnap.render.svg_scale import text
from gpusnap.render.svg_style import PAGE_DARK, PAGE_LIGHT
from gpusnap.render.units import format_bytes, pick_unit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpusnap.explain.explanation import Explained
    from gpusnap.explain.series import Judged
    from gpusnap.model import Explanation, Finding, SeriesRow

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = (
    f":root{{{PAGE_LIGHT}color-scheme:light dark}}@media (prefers-color-scheme:dark){{:root{{{PAGE_DARK}}}}}"
    "body{margin:0 auto;max-width:1200px;padding:16px;font:14px/1.45 system-ui,sans-serif;color:var(--ink);"
    "background:var(--paper)}h1{font-size:19px}h2{font-size:15px;margin:22px 0 6px}"
    "table{border-collapse:collapse;font-size:13px}td,th{padding:3px 10px 3px "
    "0;text-align:left;vertical-align:top}"
    "td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}th{color:var(--faint);font-weight:500}"
    ".frame,.says{color:var(--faint)}.finding{margin:0 0 12px}.finding h3{font-size:14px;margin:0}"
    ".finding ul{margin:2px 0 0;padding-left:20px}.critical h3,.warning h3{color:var(--rest)}"
    "svg{max-width:100%;height:auto}.by-category{display:none}"
    "#category:checked~.by-category{display:block}#category:checked~.by-process{display:none}"
    "label{margin-right:14px}"
)


def html_page(explained: Explained) -> str:
    document = explained.document
    source = document["subject"]["source"]
    title = f"gpusnap: {source}" if source is not None else "gpusnap"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{text(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f'<h1 id="answer">{text(document["answer"])}</h1>\n{_frame(explained)}'
        f"{_pictures(explained)}{_findings(document['findings'])}{_series(explained)}{_figures(document)}"
        f'<p class="says">gpusnap {text(document["version"])}; '
        "what was not measured is drawn and written as such, never as 0.</p>\n</body>\n</html>\n"
    )


def _frame(explained: Explained) -> str:
    history = explained.history
    if history is None or history.timeline.count < 2:
        return ""
    return f'<p class="frame">{text(frame(history))}</p>\n'


def _pictures(explained: Explained) -> str:
    """Two pictures and a choice between them, without a script."""
    by_process = svg_picture(explained, prefix="p-", heading=False)
    by_category = svg_picture(explained, by_category=True, prefix="c-", heading=False)
    return (
        '<div id="pictures"><input type="radio" name="by" id="process" checked>'
        '<label for="process">by process</label>'
        '<input type="radio" name="by" id="category"><label for="category">by category</label>\n'
        f'<div class="by-process">{by_process}</div>\n<div class="by-category">{by_category}</div></div>\n'
    )


def _findings(findings: Sequence[Finding]) -> str:
    if not findings:
        return ""
    said = "".join(
        f'<div class="finding {finding["severity"]}" data-code="{text(finding["code"])}">'
        f"<h3>{text(finding['code'])}: {text(finding['title'])}</h3>"
        f"<ul>{_items(finding['evidence'])}</ul>"
        f"<ul>{_items('→ ' + line for line in finding['advice'])}</ul></div>\n"
        for finding in findings
    )
    return f'<h2>Findings</h2>\n<div id="findings">\n{said}</div>\n'


def _items(lines: Iterable[str]) -> str:
    return "".join(f"<li>{text(line)}</li>" for line in lines)


_NUMBERS = ("samples", "unknown", "first", "last", "least", "most", "minima an hour")
_SERIES_HEAD = ("card", "held by", *_NUMBERS, "verdict", "since")


def _series(explained: Explained) -> str:
    """A row a card and a process, every size in one unit so that a column can be compared."""
    rows = explained.document["series"]
    if not rows:
        return ""
    unit = pick_unit(size for row in rows for size in _sizes(row))
    body = "".join(_series_row(row, one, unit) for row, one in zip(rows, explained.judged, strict=True))
    cells = "".join(f"<th{_number_class(name)}>{name}</th>" for name in _SERIES_HEAD)
    return f'<h2>Series</h2>\n<table id="series"><tr>{cells}</tr>\n{body}</table>\n'


def _series_row(row: SeriesRow, one: Judged, unit: str) -> str:
    slope = row["slope_bytes_per_hour"]
    early = " or before" if one.began_before() else ""
    cells = [
        one.card_name,
        "all" if row["pid"] is None else one.what,
        f"{row['samples']:,}",
        f"{row['unknown_samples']:,}",
        *(format_bytes(size, unit) for size in _sizes(row)),
        "-" if slope is None else format_bytes(round(slope), "MiB"),
        row["verdict"],
        "" if row["since"] is None else minute(row["since"]) + early,
    ]
    shown = zip(_SERIES_HEAD, cells, strict=True)
    data = "".join(f"<td{_number_class(name)}>{text(cell)}</td>" for name, cell in shown)
    return f'<tr data-adapter="{text(row["adapter"])}">{data}</tr>\n'


def _sizes(row: SeriesRow) -> tuple[int | None, ...]:
    return row["first_bytes"], row["last_bytes"], row["min_bytes"], row["max_bytes"]


def _number_class(name: str) -> str:
    return ' class="n"' if name in _NUMBERS else ""


def _figures(document: Explanation) -> str:
    body = "".join(
        f'<tr><td>{text(figure["field"])}</td><td class="n">{text(shown(figure))}</td>'
        f'<td class="says">{text(figure["says"])}</td></tr>\n'
        for figure in document["figures"]
    )
    if not body:
        return ""
    return (
        '<h2>Where the numbers come from</h2>\n<table id="figures"><tr><th>figure</th><th class="n">value</th>'
        f"<th>source</th></tr>\n{body}</table>\n"
    )
