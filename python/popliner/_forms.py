"""What is shown of reports: texts, HTML for notebooks, tables for pandas.

All names come from files, and may be hostile: HTML has them escaped.
"""

from __future__ import annotations

import dataclasses
import os
import typing
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterator, List, Optional, Sequence, Tuple, Union
from urllib.parse import quote

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]

    from ._report import FitReport, Report, SplitReport
    from ._values import FullestTile, Parts, PlanRow, RecordedTile, SweepRow, TileParts

#: More layers than this are told by the first and the last.
_MOST_LAYERS = 8


def layers(names: Optional[Sequence[Optional[str]]], first: str = "In") -> str:
    """Layers as the command writes them; the first one may have no name."""
    if names is None:
        return "?"
    shown = [first if name is None else _plain(name) for name in names]
    if len(shown) <= _MOST_LAYERS:
        return " ".join(shown)
    return f"{shown[0]} … {shown[-1]} ({len(shown)})"


def _plain(name: str) -> str:
    """A name with what would not be seen, or turn the text around, written out."""
    return "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in name)


def ipus(number: int) -> str:
    """A number of IPUs."""
    return "1 IPU" if number == 1 else f"{number:,} IPUs"


def of_limit(tile: Union[FullestTile, RecordedTile]) -> str:
    """What a tile holds of what it may."""
    return f"tile {tile.tile} has {tile.bytes:,} of {tile.limit:,} bytes"


def parts(found: Union[Parts, TileParts]) -> str:
    """What memory holds, without what is 0."""
    values = dataclasses.asdict(found).items()
    held = ", ".join(f"{name} {bytes_:,}" for name, bytes_ in values if bytes_)
    return f"<{type(found).__name__} in bytes: {held or 0}>"


def _is_compilation(report: Report) -> bool:
    return report.json.get("fit") is not None


def _first(report: Report) -> str:
    """What is before the layers: all without a layer, in the classic memory model."""
    return "None" if report.json.get("pseudo_layers") == "none-first" else "In"


def verdict(report: Report) -> str:
    """Does the model fit? As the heading of the report in Markdown."""
    if _is_compilation(report):
        return _verdict_of_compilation(typing.cast("FitReport", report))
    split = typing.cast("SplitReport", report)
    stages = len(split.stages)
    if split.fits:
        return f"The model fits on {ipus(stages)}"
    if split.unplaced:
        room = f"The search found no room on {ipus(split.max_stages)}"
        return f"{room} for {len(split.unplaced)} of the layers"
    if stages > split.max_stages:
        return f"The split needs {ipus(stages)}, and there are {split.max_stages}"
    return f"The model does not fit on {ipus(split.max_stages)}"


def _verdict_of_compilation(report: FitReport) -> str:
    count = len(report.ipus)
    over = sum(not ipu.fits for ipu in report.ipus)
    if not over:
        return f"The compiled model fits on {ipus(count)}"
    if count == 1:
        return "The compiled model does not fit on its IPU"
    return f"The compiled model does not fit on {over} of {ipus(count)}"


def summary(report: Report) -> str:
    """The verdict, with the tile that decides it."""
    rows = _stages_or_ipus(report)
    if not rows:
        return verdict(report)
    _, _, tile = min(rows, key=lambda row: row[2].free)
    return f"{verdict(report)}; {of_limit(tile)}"


Row = Tuple[int, str, Union["FullestTile", "RecordedTile"]]


def _stages_or_ipus(report: Report) -> List[Row]:
    """The number, layers and fullest tile of each."""
    if _is_compilation(report):
        fit = typing.cast("FitReport", report)
        return [(ipu.ipu, layers(ipu.layers), ipu.fullest_tile) for ipu in fit.ipus]
    split, first = typing.cast("SplitReport", report), _first(report)
    return [(one.stage, layers(one.layers, first), one.fullest_tile) for one in split.stages]


def html(report: Report) -> str:
    """The verdict, its tables and a link to the page, for a notebook."""
    what = "IPU" if _is_compilation(report) else "Stage"
    heads = [what, "Layers", "Tile", "Peak memory", "Of the limit", "Free"]
    rows = [
        [str(number), names, str(tile.tile), f"{tile.bytes:,}", _share(tile), f"{tile.free:,}"]
        for number, names, tile in _stages_or_ipus(report)
    ]
    blocks = [f"<p><strong>{escape(verdict(report))}</strong></p>"]
    blocks += [_list(report.warnings), _table(heads, rows), *_sweep(report), *_plan(report)]
    blocks += [_said(report.messages), _link(report.page)]
    return "<div>" + "\n".join(block for block in blocks if block) + "</div>"


def _share(tile: Union[FullestTile, RecordedTile]) -> str:
    """Tenths of a per cent, rounded up as the command does."""
    if not tile.limit:
        return ""
    tenths = -(-1000 * tile.bytes // tile.limit)
    return f"{tenths // 10}.{tenths % 10} %"


def _sweep(report: Report) -> Iterator[str]:
    """The table of a sweep, where there is one."""
    sweep = getattr(report, "sweep", None)
    if sweep is None:
        return
    heads = ["IPUs", "Fits", "Bytes on the fullest tile", "Bytes free", "Layers of each stage"]
    yield _table(heads, [_sweep_row(row, _first(report)) for row in sweep.rows])


def _sweep_row(row: SweepRow, first: str) -> List[str]:
    fits = "yes" if row.fits else "no"
    bytes_ = [f"{row.fullest_tile_bytes:,}", f"{row.free:,}"]
    return [f"{row.ipus}", fits, *bytes_, _stages(row, first)]


def _stages(row: Union[SweepRow, PlanRow], first: str) -> str:
    return " | ".join(layers(names, first) for names in row.stages)


def _plan(report: Report) -> Iterator[str]:
    """The table of a plan, where there is one."""
    plan = getattr(report, "plan", None)
    if plan is None:
        return
    heads = ["IPUs", "Replicas", "Schedule", "Recompute", "Bytes on the fullest tile"]
    heads += ["Step (ms)", "Layers of each stage"]
    yield _table(heads, [_plan_row(row, _first(report)) for row in plan.rows])


def _plan_row(row: PlanRow, first: str) -> List[str]:
    time = "" if row.milliseconds is None else f"{row.milliseconds:.3f}"
    pipeline = [f"{row.ipus}", f"{row.replicas}", row.schedule, row.recompute]
    return [*pipeline, f"{row.fullest_tile_bytes:,}", time, _stages(row, first)]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _list(sentences: Sequence[str]) -> str:
    """Warnings, which a verdict may hang on."""
    items = "".join(f"<li>warning: {escape(sentence)}</li>" for sentence in sentences)
    return items and f"<ul>{items}</ul>"


def _said(messages: str) -> str:
    """What the command said, folded up."""
    if not messages.strip():
        return ""
    return f"<details><summary>Messages</summary><pre>{escape(messages)}</pre></details>"


def _link(page: Optional[str]) -> str:
    """A link to the page, or how to have one."""
    if page is None:
        return "<p>For charts: <code>save_html(\"report.html\")</code></p>"
    text = escape(os.path.basename(page))
    return f'<p><a href="{escape(_address(page))}" target="_blank">{text}</a></p>'


def _address(page: str) -> str:
    """A path as a link: notebooks only follow those below their folder."""
    try:
        below = Path(page).relative_to(os.getcwd())
    except (OSError, ValueError):
        return Path(page).as_uri()
    return "./" + quote(below.as_posix())


def dataframe(kind: Any, rows: Sequence[Any]) -> pandas.DataFrame:
    """A row for each, and a column for each field of the dataclass."""
    import pandas

    series = {}
    for name, path, hint in _columns(kind, (), ""):
        values = [_at(row, path) for row in rows]
        series[name] = pandas.Series(values, dtype=_dtype(hint))
    return pandas.DataFrame(series)


def _columns(kind: Any, path: Tuple[str, ...], before: str) -> Iterator[Tuple[str, Any, Any]]:
    """The names of columns, the fields that lead there, and their types."""
    hints = typing.get_type_hints(kind)
    for part in dataclasses.fields(kind):
        hint = hints[part.name]
        # The number of the fullest tile is called that, and not fullest_tile_tile.
        is_said = before.endswith(f"{part.name}_")
        name = before[:-1] if is_said else before + part.name
        if dataclasses.is_dataclass(hint):
            yield from _columns(hint, (*path, part.name), f"{name}_")
        else:
            yield name, (*path, part.name), hint


def _at(row: Any, path: Sequence[str]) -> Any:
    for name in path:
        row = getattr(row, name)
    return row


def _dtype(hint: Any) -> str:
    """Whole numbers stay whole, also where some are missing."""
    if hint == Optional[int]:
        return "Int64"
    if hint == Optional[float]:
        return "float64"
    return {int: "int64", bool: "bool"}.get(hint, "object")
