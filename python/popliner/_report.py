"""Reports, and what notebooks show of them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, Literal, Optional, Tuple, Union

from . import _forms
from ._values import (
    Against,
    Bytes,
    Cut,
    Estimate,
    IpuFit,
    LayerMemory,
    Layers,
    Plan,
    PlanRow,
    Refusal,
    Stage,
    StageAgainst,
    Step,
    Sweep,
    SweepRow,
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


@dataclass(frozen=True)
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

    def _repr_html_(self) -> str:
        return _forms.html(self)


@dataclass(frozen=True)
class SplitReport(Report):
    """The best split, or the one that was given.

    - ``max_stages``: how many stages there may be, one for each IPU
    - ``stages``: the stages, in order
    - ``cuts``: what is between the stages
    - ``layers``: every layer alone, in order, In and Out among them
    - ``too_large``: the layers that are alone over the limit
    - ``unplaced``: names of layers that the search gave up on
    - ``refusal``: why nothing fits
    - ``estimate``: for which micro-batch all is estimated, with ``at_micro_batch``
    - ``step``: what a step takes with its number of micro-batches, where the profile has
      cycles
    - ``sweep``: the best split for each number of IPUs, with ``sweep=True``
    - ``plan``: the whole configurations that fit, with ``plan=True``
    """

    max_stages: int
    stages: Tuple[Stage, ...]
    cuts: Tuple[Cut, ...]
    layers: Tuple[LayerMemory, ...]
    too_large: Tuple[LayerMemory, ...]
    unplaced: Layers
    refusal: Optional[Refusal] = None
    estimate: Optional[Estimate] = None
    step: Optional[Step] = None
    sweep: Optional[Sweep] = None
    plan: Optional[Plan] = None

    def __repr__(self) -> str:
        return f"<SplitReport: {_forms.summary(self)}>"

    def to_dataframe(
        self, rows: Literal["stages", "layers", "cuts", "sweep", "plan"] = "stages"
    ) -> pandas.DataFrame:
        """A row for each stage, layer, cut, number of IPUs, or configuration of a plan.

        It needs pandas. Columns are the fields, those of fields within with both names;
        amounts of memory are in bytes. Raises ``ValueError`` for a sweep without
        ``sweep=True``, and for a plan without ``plan=True``.
        """
        found = getattr(self, rows)
        if found is None:
            raise ValueError(f"this report has no {rows}; call split() with {rows}=True")
        kinds = {"stages": Stage, "layers": LayerMemory, "cuts": Cut}
        within = {"sweep": SweepRow, "plan": PlanRow}
        if rows in within:
            return _forms.dataframe(within[rows], found.rows)
        return _forms.dataframe(kinds[rows], found)


@dataclass(frozen=True)
class FitReport(Report):
    """A compilation as it was recorded, IPU by IPU.

    - ``tiles_per_ipu``: how many tiles each IPU has
    - ``replicas``: for how many replicas the model was compiled
    - ``ipus``: every IPU that the profile lists
    - ``against``: how far it is from the prediction, when one was given
    """

    tiles_per_ipu: int
    replicas: int
    ipus: Tuple[IpuFit, ...]
    against: Optional[Against] = None

    def __repr__(self) -> str:
        return f"<FitReport: {_forms.summary(self)}>"

    def to_dataframe(self, rows: Literal["ipus", "against"] = "ipus") -> pandas.DataFrame:
        """A row for each IPU, or each stage against its prediction; it needs pandas.

        Columns are the fields, those of fields within with both names; amounts of
        memory are in bytes. Raises ``ValueError`` without a prediction.
        """
        if rows == "ipus":
            return _forms.dataframe(IpuFit, self.ipus)
        if self.against is None:
            raise ValueError("there is no prediction; call fit() with against=...")
        return _forms.dataframe(StageAgainst, self.against.stages)
