"""Reports, and what notebooks show of them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Literal, Optional, Tuple, Union

from . import _forms
from ._compiled import FitComparison, IpuFit, StageComparison
from ._texts import layers, of_limit
from ._values import (
    BestSplit,
    Bytes,
    Cut,
    LayerMemory,
    Layers,
    Plan,
    Refusal,
    Stage,
    Step,
    Sweep,
)

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]

AnyPath = Union[str, "os.PathLike[str]"]

#: Writes the page of a report; it gets the path, and the document to be held against.
PageWriter = Callable[[Path, Dict[str, Any]], None]


class Page:
    """Where the page of a report is, and how it is written."""

    def __init__(self, write: PageWriter, path: Optional[str]) -> None:
        self._write = write
        self.path = path

    def save(self, path: AnyPath, document: Dict[str, Any]) -> Path:
        """Writes it; the document is that of the report."""
        written = Path(os.path.abspath(os.fspath(path)))
        self._write(written, document)
        self.path = str(written)
        return Path(path)


@dataclass(frozen=True, repr=False)
class Report:
    """What every report has.

    - ``fits``: does the model fit?
    - ``limit``: bytes that may be in use on each tile: the highest where IPUs differ
    - ``warnings``: what was unusual about the files, as sentences
    - ``json``: the whole report, as ``--export-json`` writes it
    - ``output``: what the command printed to standard output
    - ``messages``: what it said on standard error: tables for people, explanations
    - ``exit_code``: 0, or 1 when it does not fit or ``compare`` found that it no longer
      does
    """

    fits: bool
    limit: Bytes
    warnings: Tuple[str, ...]
    json: Dict[str, Any] = field(repr=False, compare=False)
    output: str = field(repr=False, compare=False)
    messages: str = field(repr=False, compare=False)
    exit_code: int = field(compare=False)
    _page: Page = field(repr=False, compare=False)

    @property
    def page(self) -> Optional[str]:
        """The path of its page, when ``export_html`` or :meth:`save_html` wrote one."""
        return self._page.path

    def save_html(self, path: AnyPath) -> Path:
        """Writes the report as one page for the browser, with charts; its path.

        The command runs once more for it, on the same files with the same options.
        Raises :class:`Error` where these say something else by now, and
        :class:`MissingFile` where they are gone.
        """
        return self._page.save(path, self.json)

    def _verdict(self) -> str:
        """Does the model fit? As the heading of the report in Markdown."""
        return str(self.json["heading"])

    def _rows(self) -> List[_forms.Row]:
        """The number, layers, fullest tile and milliseconds of each stage or IPU."""
        raise NotImplementedError

    def _tables(self) -> List[str]:
        """The tables of a notebook."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._summary()}>"

    def _summary(self) -> str:
        """The verdict, with the tile that decides it."""
        tiles = [tile for _, _, tile, _ in self._rows()]
        if not tiles:
            return self._verdict()
        return f"{self._verdict()}; {of_limit(min(tiles, key=lambda tile: tile.free))}"

    def _repr_html_(self) -> str:
        blocks = [_forms.verdict(self._verdict()), _forms.warnings(self.warnings)]
        blocks += [*self._tables(), _forms.said(self.messages), _forms.link(self.page)]
        return _forms.html(blocks)


@dataclass(frozen=True, repr=False)
class SplitReport(Report):
    """The best split, or the one that was given.

    - ``max_stages``: how many stages there may be, one for each IPU of a replica
    - ``replicas``: how many replicas of the pipeline run side by side
    - ``stages``: the stages, in order
    - ``cuts``: what is between the stages
    - ``layers``: every layer by itself, in order, In and Out among them
    - ``too_large``: the layers that are over the limit by themselves
    - ``unplaced``: names of layers that the search gave up on
    - ``refusal``: why nothing fits
    - ``step``: what a step takes with its number of micro-batches, where the profile has
      cycles
    - ``sweep``: the best split for each number of IPUs, with ``sweep=True``
    - ``plan``: the whole configurations that fit, with ``plan=True``
    """

    max_stages: int
    replicas: int
    stages: Tuple[Stage, ...]
    cuts: Tuple[Cut, ...]
    layers: Tuple[LayerMemory, ...]
    too_large: Tuple[LayerMemory, ...]
    unplaced: Layers
    refusal: Optional[Refusal] = None
    step: Optional[Step] = None
    sweep: Optional[Sweep] = None
    plan: Optional[Plan] = None

    def _first(self) -> str:
        """What is before the layers: all without a layer, in the classic memory model."""
        return "None" if self.json.get("pseudo_layers") == "none-first" else "In"

    def _rows(self) -> List[_forms.Row]:
        first = self._first()
        return [
            (one.stage, layers(one.layers, first), one.fullest_tile, one.micro_batch_milliseconds)
            for one in self.stages
        ]

    def _tables(self) -> List[str]:
        tables = [_forms.tiles("Stage", self._rows())]
        if self.sweep is not None:
            tables.append(_forms.sweep(self.sweep, self._first()))
        if self.plan is not None:
            tables.append(_forms.plan(self.plan, self._first()))
        return tables

    def to_dataframe(
        self,
        rows: Literal["stages", "layers", "cuts", "sweep", "plan"] = "stages",
        all_columns: bool = False,
    ) -> pandas.DataFrame:
        """A row for each stage, layer, cut, number of IPUs, or configuration of a plan.

        It needs pandas. Columns are fields, those of fields within with both names: at most
        twelve, or with ``all_columns=True`` all of them. Layers are text; amounts of memory
        are in bytes. Raises ``ValueError`` for a sweep without ``sweep=True``, and for a plan
        without ``plan=True``.
        """
        found = getattr(self, rows)
        if found is None:
            raise ValueError(f"this report has no {rows}; call split() with {rows}=True")
        kinds = {"stages": Stage, "layers": LayerMemory, "cuts": Cut}
        if rows in ("sweep", "plan"):
            return _forms.dataframe(BestSplit, found.rows, self._first(), all_columns)
        return _forms.dataframe(kinds[rows], found, self._first(), all_columns)


@dataclass(frozen=True, repr=False)
class FitReport(Report):
    """A compilation as it was recorded, IPU by IPU.

    - ``tiles_per_ipu``: how many tiles each IPU has
    - ``replicas``: for how many replicas the model was compiled
    - ``ipus``: every IPU that the profile lists
    - ``comparison``: how far it is from the prediction, when one was given
    """

    tiles_per_ipu: int
    replicas: int
    ipus: Tuple[IpuFit, ...]
    comparison: Optional[FitComparison] = None

    def _rows(self) -> List[_forms.Row]:
        return [(ipu.ipu, layers(ipu.layers), ipu.fullest_tile, None) for ipu in self.ipus]

    def _tables(self) -> List[str]:
        return [_forms.tiles("IPU", self._rows())]

    def to_dataframe(
        self, rows: Literal["ipus", "comparison"] = "ipus", all_columns: bool = False
    ) -> pandas.DataFrame:
        """A row for each IPU, or each stage beside its prediction; it needs pandas.

        Columns are fields, those of fields within with both names: at most twelve, or with
        ``all_columns=True`` all of them. Layers are text; amounts of memory are in bytes.
        Raises ``ValueError`` without a prediction.
        """
        if rows == "ipus":
            return _forms.dataframe(IpuFit, self.ipus, all_columns=all_columns)
        if self.comparison is None:
            raise ValueError("there is no prediction; call fit() with compare=...")
        return _forms.dataframe(StageComparison, self.comparison.stages, all_columns=all_columns)
