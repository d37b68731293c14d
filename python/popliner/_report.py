"""What is in a report, as far as most programs need it.

The fields are those of ``schema/report-v2.schema.json`` under the same names; the
rest is in ``Report.json``. Reports of later versions may have more fields, which
are passed over here.
"""

from __future__ import annotations

import dataclasses
import typing
from dataclasses import dataclass, field
from typing import Any, Dict, Optional, Tuple, Type, TypeVar

#: An amount of memory in bytes, which is exact.
Bytes = int

#: Layers by name, in order. ``None`` is In, what runs before the layers; ``"Out"``
#: is what runs after them.
Layers = Tuple[Optional[str], ...]


@dataclass(frozen=True)
class Parts:
    """The bytes of a stage or layer by what they hold."""

    variables: Bytes
    vertex_code: Bytes
    vertex_state: Bytes
    exchange_code: Bytes
    control_code: Bytes
    overhead: Bytes
    gaps: Bytes
    #: This and what follows is only in stages of a pipeline.
    stash: Bytes = 0
    accumulators: Bytes = 0
    waiting: Bytes = 0
    passing: Bytes = 0
    recomputed: Bytes = 0


@dataclass(frozen=True)
class TileParts:
    """The bytes of a tile that a prediction and a compilation both tell."""

    variables: Bytes
    stash: Bytes
    accumulators: Bytes
    vertex_code: Bytes
    vertex_state: Bytes
    exchange_code: Bytes
    control_code: Bytes
    host_exchange_code: Bytes
    global_exchange_code: Bytes
    gaps: Bytes


@dataclass(frozen=True)
class FullestTile:
    """The fullest tile of a stage; the first of several."""

    tile: int
    bytes: Bytes
    #: What is free below the limit; less than 0 where the stage does not fit.
    free: Bytes
    parts: Parts
    #: The limit of the stage's IPU.
    limit: Bytes = 0
    #: The step of the program at which the tile holds most.
    peak_step: Optional[int] = None


@dataclass(frozen=True)
class Stage:
    """A pipeline stage: what one IPU runs."""

    stage: int
    layers: Layers
    #: Bytes of all tiles, each at its own peak.
    total: Bytes
    parts: Parts
    fullest_tile: FullestTile
    #: The first layer; ``None`` is In.
    layer_from: Optional[str] = None
    #: The last layer; ``None`` is In.
    layer_to: Optional[str] = None


@dataclass(frozen=True)
class Cut:
    """The boundary between two stages."""

    after_stage: int
    #: Bytes of the variables that flow over it, in both directions.
    bytes: Bytes
    layer_before: Optional[str] = None
    layer_after: Optional[str] = None
    #: Bytes of constants and untied weights that both sides need.
    duplicated: Bytes = 0


@dataclass(frozen=True)
class LayerMemory:
    """One layer as if it stood alone."""

    total: Bytes
    parts: Parts
    fullest_tile: int
    fullest_tile_bytes: Bytes
    #: ``None`` is In.
    name: Optional[str] = None


@dataclass(frozen=True)
class OverLimit:
    """Layers that are over the limit together."""

    layers: Layers
    tile: int
    bytes: Bytes
    step: Optional[int] = None


@dataclass(frozen=True)
class Relaxation:
    """Constraints and tied weights that prevent every split."""

    constraints: Tuple[str, ...]
    weights: Tuple[str, ...]
    #: The stages of the best split without them.
    stages: Tuple[Layers, ...]


@dataclass(frozen=True)
class Refusal:
    """Why there is no split that fits, and what would help."""

    #: ``too-large``, ``too-few-ipus``, ``pins-or-limits``, ``pipeline`` or ``learnt``.
    reason: str
    limit: Bytes
    #: Ranges of layers that are each over the limit: a proof.
    ranges: Tuple[OverLimit, ...]
    relaxations: Tuple[Relaxation, ...]
    #: How many stages would be needed.
    stages_needed: Optional[int] = None
    #: The lowest limit with which the model would fit on these IPUs.
    smallest_limit: Optional[Bytes] = None
    #: The lowest memory of a tile with which it would, what is reserved included.
    smallest_tile_memory: Optional[Bytes] = None
    #: The fewest IPUs on which it would fit with this limit.
    fewest_ipus: Optional[int] = None


@dataclass(frozen=True)
class RecordedTile:
    """The fullest tile of an IPU, as it was compiled; the first of several."""

    #: Numbered through all IPUs.
    tile: int
    #: Numbered on its own IPU.
    tile_of_ipu: int
    bytes: Bytes
    limit: Bytes
    free: Bytes
    overflowed: Bytes
    parts: TileParts
    peak_step: Optional[int] = None


@dataclass(frozen=True)
class IpuFit:
    """What was recorded of one IPU."""

    ipu: int
    fits: bool
    #: Bytes of all tiles.
    total: Bytes
    #: How many tiles are over the limit.
    tiles_over: int
    overflowed: Bytes
    fullest_tile: RecordedTile
    #: ``None`` where no ``debug.cbor`` says what runs here.
    layers: Optional[Layers] = None
    cycles: Optional[int] = None


@dataclass(frozen=True)
class StageAgainst:
    """A stage as it was predicted and recorded, each on its fullest tile."""

    stage: int
    ipu: int
    layers: Layers
    predicted: Bytes
    recorded: Bytes
    #: What was recorded less what was predicted.
    difference: Bytes
    free: Bytes
    predicted_parts: TileParts
    recorded_parts: TileParts


@dataclass(frozen=True)
class Against:
    """What was predicted of a pipeline, and what was recorded."""

    #: The profile of the prediction.
    profile: str
    predicted_fits: bool
    predicted_stages: int
    #: By what stages were matched to IPUs: ``layers`` or ``order``.
    matched_by: str
    #: Empty when the pipeline was cut elsewhere than predicted.
    stages: Tuple[StageAgainst, ...]


@dataclass(frozen=True)
class Report:
    """What every report has."""

    #: Does the model fit?
    fits: bool
    #: The bytes that may be in use on a tile: the lowest where they differ by IPU.
    limit: Bytes
    #: What was unusual about the files, as sentences.
    warnings: Tuple[str, ...]
    #: The whole report, as ``--export-json`` writes it.
    json: Dict[str, Any] = field(repr=False, compare=False)
    #: What the command printed to standard output.
    output: str = field(repr=False, compare=False)
    #: What the command said on standard error: tables for people and explanations.
    messages: str = field(repr=False, compare=False)
    #: 0, or 1 when it does not fit or ``compare`` found that it no longer does.
    exit_code: int = field(compare=False)


@dataclass(frozen=True)
class SplitReport(Report):
    """The best split, or the one that was given."""

    #: How many stages there may be.
    max_stages: int
    stages: Tuple[Stage, ...]
    #: Between the stages.
    cuts: Tuple[Cut, ...]
    #: Layers that are alone over the limit.
    too_large: Tuple[LayerMemory, ...]
    #: Why nothing fits.
    refusal: Optional[Refusal] = None


@dataclass(frozen=True)
class FitReport(Report):
    """A compilation as it was recorded, IPU by IPU."""

    tiles_per_ipu: int
    replicas: int
    ipus: Tuple[IpuFit, ...]
    #: How far it is from the prediction, when one was given.
    against: Optional[Against] = None


T = TypeVar("T")


def build(kind: Type[T], found: Dict[str, Any]) -> T:
    """A dataclass of this kind from an object of JSON.

    Raises ``KeyError`` or ``TypeError`` where the object is of another shape.
    """
    hints = typing.get_type_hints(kind)
    values = {}
    for part in dataclasses.fields(typing.cast(Any, kind)):
        if part.name in found:
            values[part.name] = _value(hints[part.name], found[part.name])
        elif part.default is dataclasses.MISSING:
            raise KeyError(f"{kind.__name__} has no {part.name}")
    return kind(**values)


def _value(hint: Any, found: Any) -> Any:
    """What a field of this type is made of."""
    if dataclasses.is_dataclass(hint):
        return build(typing.cast(Any, hint), found)
    arguments = typing.get_args(hint)
    origin = typing.get_origin(hint)
    if origin is tuple:
        return tuple(_value(arguments[0], element) for element in found)
    if origin is typing.Union:
        return None if found is None else _value(arguments[0], found)
    return found
