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

from ._compiled import IpuFit, RecordedTile, StageComparison
from ._texts import layers, of_whole
from ._values import (
    BestSplit,
    Cut,
    FullestTile,
    LayerMemory,
    Layers,
    Plan,
    Stage,
    Sweep,
)

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]

#: The number, layers, fullest tile and milliseconds of a stage or of an IPU.
Row = Tuple[int, str, Union[FullestTile, RecordedTile], Optional[float]]

#: The columns of a table for pandas where all would be too many to look at.
USUAL = {
    Stage: (
        "stage layers fullest_tile fullest_tile_bytes fullest_tile_limit fullest_tile_free "
        "fullest_tile_peak_step total micro_batch_cycles micro_batch_milliseconds"
    ),
    LayerMemory: (
        "name fullest_tile fullest_tile_bytes total parts_variables parts_vertex_code "
        "parts_vertex_state parts_exchange_code parts_control_code parts_overhead cycles "
        "milliseconds"
    ),
    Cut: "stage layer_from bytes duplicated",
    BestSplit: (
        "ipus replicas schedule recompute state fits stages fullest_tile_bytes free "
        "step_milliseconds hint command"
    ),
    IpuFit: (
        "ipu layers fits fullest_tile fullest_tile_bytes fullest_tile_limit fullest_tile_free "
        "tiles_over overflowed total cycles"
    ),
    StageComparison: "stage ipu layers predicted recorded difference reserve free",
}

#: Fields with the name of a layer.
_LAYER_NAMES = ("name", "layer_from", "layer_to")


def html(blocks: Iterable[str]) -> str:
    """Blocks one after the other, without those that are empty."""
    return "<div>" + "\n".join(block for block in blocks if block) + "</div>"


def verdict(text: str) -> str:
    """Whether the model fits."""
    return f"<p><strong>{escape(text)}</strong></p>"


def tiles(what: str, rows: Sequence[Row]) -> str:
    """The table of the stages or of the IPUs."""
    heads = [what, "Layers", "Tile", "Peak memory", "Of the limit", "Free"]
    has_times = any(milliseconds is not None for *_, milliseconds in rows)
    heads += ["Micro-batch (ms)"] if has_times else []
    bars = [(4, tile.bytes / tile.limit if tile.limit else 0.0) for _, _, tile, _ in rows]
    return _table(heads, [_tile_row(row, has_times) for row in rows], bars)


def _tile_row(row: Row, has_times: bool) -> List[str]:
    number, names, tile, milliseconds = row
    cells = [str(number), names, str(tile.tile), f"{tile.bytes:,}", of_whole(tile), f"{tile.free:,}"]
    return cells + ([_milliseconds(milliseconds)] if has_times else [])


def _milliseconds(value: Optional[float]) -> str:
    return "" if value is None else f"{value:.3f}"


def sweep(found: Sweep, first: str) -> str:
    """The table of a sweep; ``first`` is what is before the layers."""
    heads = ["IPUs", "Fits", "Optimizer state", "Schedule", "Recompute", "Peak memory", "Free"]
    heads += ["Micro-batch (ms)", "Layers of each stage"]
    return _table(heads, [_sweep_row(row, first) for row in found.rows])


def _sweep_row(row: BestSplit, first: str) -> List[str]:
    fits = "yes" if row.fits else "no"
    pipeline = [row.state, row.schedule, row.recompute]
    bytes_ = [f"{row.fullest_tile_bytes:,}", f"{row.free:,}"]
    return [f"{row.ipus}", fits, *pipeline, *bytes_, _of_micro_batch(row), _stages(row, first)]


def _of_micro_batch(row: BestSplit) -> str:
    """The time of a micro-batch, in milliseconds."""
    if row.step is None or row.step.milliseconds is None:
        return ""
    return _milliseconds(row.step.milliseconds / max(row.step.micro_batches, 1))


def _stages(row: BestSplit, first: str) -> str:
    return _split(row.stages, first)


def _split(stages: Sequence[Layers], first: str) -> str:
    """A split in the notation of the command."""
    return "[ " + " | ".join(layers(names, first) for names in stages) + " ]"


def plan(found: Plan, first: str) -> str:
    """The table of a plan; ``first`` is what is before the layers."""
    heads = ["IPUs", "Replicas", "Optimizer state", "Schedule", "Recompute", "Peak memory"]
    heads += ["Micro-batch (ms)", "Layers of each stage"]
    return _table(heads, [_plan_row(row, first) for row in found.rows])


def _plan_row(row: BestSplit, first: str) -> List[str]:
    pipeline = [f"{row.ipus}", f"{row.replicas}", row.state, row.schedule, row.recompute]
    return [*pipeline, f"{row.fullest_tile_bytes:,}", _of_micro_batch(row), _stages(row, first)]


def _table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    bars: Sequence[Tuple[int, float]] = (),
) -> str:
    """A table; ``bars`` has for each row a column and the part of its cell that a bar fills."""
    if not rows:
        return ""
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = ""
    for number, row in enumerate(rows):
        styles = [""] * len(row)
        if bars:
            column, part = bars[number]
            styles[column] = _bar(part)
        cells = zip(styles, row)
        body += "<tr>" + "".join(f"<td{style}>{escape(text)}</td>" for style, text in cells) + "</tr>"
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _bar(part: float) -> str:
    """The style of a cell with a bar behind its text; over the limit it is red."""
    colour = "#e8a0a0" if part > 1 else "#a8c8e8"
    end = f"{100 * min(part, 1.0):.0f}%"
    return f' style="background:linear-gradient(to right,{colour} {end},transparent {end})"'


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


def dataframe(
    kind: Any, rows: Sequence[Any], first: str = "In", all_columns: bool = False
) -> pandas.DataFrame:
    """A row for each, and a column for each field of the dataclass, or the usual ones.

    ``first`` is the name of what is before the layers.
    """
    import pandas

    usual = USUAL[kind].split()
    series = {}
    for name, path, hint in _columns(kind, (), ""):
        if all_columns or name in usual:
            values = [_named(name, hint, _at(row, path), first) for row in rows]
            series[name] = pandas.Series(values, dtype=_dtype(hint))
    return pandas.DataFrame(series)[list(series) if all_columns else usual]


def _named(name: str, hint: Any, value: Any, first: str) -> Any:
    """A value; layers are text, as in the tables of the command."""
    if name in _LAYER_NAMES:
        return first if value is None else value
    if hint in (Layers, Optional[Layers]):
        return layers(value, first)
    if hint == Tuple[Layers, ...]:
        return _split(value, first)
    return value


def _columns(kind: Any, path: Tuple[str, ...], before: str) -> Iterator[Tuple[str, Any, Any]]:
    """The names of columns, the fields that lead there, and their types."""
    hints = typing.get_type_hints(kind)
    for part in dataclasses.fields(kind):
        hint = hints[part.name]
        # The number of the fullest tile is called that, and not fullest_tile_tile.
        is_said = before.endswith(f"{part.name}_")
        name = before[:-1] if is_said else before + part.name
        inner = next(filter(dataclasses.is_dataclass, (hint, *typing.get_args(hint))), None)
        if inner is not None and typing.get_origin(hint) is not tuple:
            for column, way, one in _columns(inner, (*path, part.name), f"{name}_"):
                yield column, way, one if inner is hint else Optional[one]
        else:
            yield name, (*path, part.name), hint


def _at(row: Any, path: Sequence[str]) -> Any:
    for name in path:
        row = None if row is None else getattr(row, name)
    return row


def _dtype(hint: Any) -> str:
    """Whole numbers stay whole, also where some are missing."""
    if hint == Optional[int]:
        return "Int64"
    if hint == Optional[float]:
        return "float64"
    return {int: "int64", bool: "bool"}.get(hint, "object")
