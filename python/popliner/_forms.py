"""What notebooks and pandas show of reports: HTML, and tables.

All names come from files, and may be hostile: HTML has them escaped.
"""

from __future__ import annotations

import dataclasses
import os
import typing
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterable, Iterator, List, Optional, Sequence, Tuple, Union
from urllib.parse import quote

from ._texts import layers, of_whole
from ._values import FullestTile, Plan, PlanRow, RecordedTile, Sweep, SweepRow

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]

#: The number, layers and fullest tile of a stage or of an IPU.
Row = Tuple[int, str, Union[FullestTile, RecordedTile]]


def html(blocks: Iterable[str]) -> str:
    """Blocks one after the other, without those that are empty."""
    return "<div>" + "\n".join(block for block in blocks if block) + "</div>"


def verdict(text: str) -> str:
    """Whether the model fits."""
    return f"<p><strong>{escape(text)}</strong></p>"


def tiles(what: str, rows: Sequence[Row]) -> str:
    """The table of the stages or of the IPUs."""
    heads = [what, "Layers", "Tile", "Peak memory", "Of the limit", "Free"]
    return _table(
        heads,
        [
            [str(number), names, str(tile.tile), f"{tile.bytes:,}", of_whole(tile), f"{tile.free:,}"]
            for number, names, tile in rows
        ],
    )


def sweep(found: Sweep, first: str) -> str:
    """The table of a sweep; ``first`` is what is before the layers."""
    heads = ["IPUs", "Fits", "Schedule", "Recompute", "Peak memory", "Free"]
    heads += ["Cycles of a micro-batch", "Layers of each stage"]
    return _table(heads, [_sweep_row(row, first) for row in found.rows])


def _sweep_row(row: SweepRow, first: str) -> List[str]:
    fits = "yes" if row.fits else "no"
    pipeline = [row.schedule or "", row.recompute or ""]
    bytes_ = [f"{row.fullest_tile_bytes:,}", f"{row.free:,}"]
    cycles = ""
    if row.step_cycles and row.micro_batches:
        cycles = f"{row.step_cycles // row.micro_batches:,}"
    return [f"{row.ipus}", fits, *pipeline, *bytes_, cycles, _stages(row, first)]


def _stages(row: Union[SweepRow, PlanRow], first: str) -> str:
    return "[ " + " | ".join(layers(names, first) for names in row.stages) + " ]"


def plan(found: Plan, first: str) -> str:
    """The table of a plan; ``first`` is what is before the layers."""
    heads = ["IPUs", "Replicas", "Schedule", "Recompute", "Peak memory"]
    heads += ["Micro-batch (ms)", "Layers of each stage"]
    return _table(heads, [_plan_row(row, first) for row in found.rows])


def _plan_row(row: PlanRow, first: str) -> List[str]:
    time = ""
    if row.milliseconds is not None and row.micro_batches:
        time = f"{row.milliseconds / row.micro_batches:.3f}"
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


def warnings(sentences: Sequence[str]) -> str:
    """Warnings, which a verdict may hang on."""
    items = "".join(f"<li>warning: {escape(sentence)}</li>" for sentence in sentences)
    return items and f"<ul>{items}</ul>"


def said(messages: str) -> str:
    """What the command said, folded up."""
    if not messages.strip():
        return ""
    return f"<details><summary>Messages</summary><pre>{escape(messages)}</pre></details>"


def link(page: Optional[str]) -> str:
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
