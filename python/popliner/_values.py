"""What a report is made of, as far as most programs need it.

The fields are those of ``schema/report-v1.schema.json`` under the same names; the
rest is in ``Report.json``. Reports of later versions may have more fields, which
are passed over here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

from . import _texts

#: An amount of memory in bytes, which is exact.
Bytes = int

#: Layers by name, in order. ``None`` is In, what runs before the layers (in the classic
#: memory model, all that has no layer); ``"Out"`` is what runs after them.
Layers = Tuple[Optional[str], ...]


@dataclass(frozen=True)
class Parts:
    """The bytes of a stage or layer by what they hold; all are bytes.

    - ``variables``: live variables at the step where they are most
    - ``vertex_code``, ``vertex_state``: code of vertex types, state of vertices
    - ``exchange_code``, ``control_code``: code of internal exchanges and of control
    - ``overhead``: what every stage needs, whatever its layers
    - ``gaps``: what lies unused between variables

    Only in stages of a pipeline, else 0 bytes:

    - ``stash``: copies for the micro-batches that are under way
    - ``accumulators``: sums of gradients
    - ``waiting``: transfer buffers, tensors for another stage or from it
    - ``passing``: tensors on their way to another stage
    - ``state``: state of the optimizer that is elsewhere between two updates
    """

    variables: Bytes
    vertex_code: Bytes
    vertex_state: Bytes
    exchange_code: Bytes
    control_code: Bytes
    overhead: Bytes
    gaps: Bytes
    stash: Bytes = 0
    accumulators: Bytes = 0
    waiting: Bytes = 0
    passing: Bytes = 0
    state: Bytes = 0

    def __repr__(self) -> str:
        return _texts.parts(self)


@dataclass(frozen=True)
class TileParts:
    """The bytes of a tile that a prediction and a compilation both tell.

    - ``variables``: bytes of variables that are live at the peak
    - ``stash``, ``accumulators``: bytes of copies for the micro-batches under way, and
      of sums of gradients
    - ``vertex_code``, ``vertex_state``: bytes of code and state of vertices
    - ``exchange_code``, ``control_code``, ``host_exchange_code``,
      ``global_exchange_code``: bytes of code for exchanges on the IPU, control,
      exchanges with the host, and exchanges between IPUs
    - ``gaps``: bytes that lie unused between variables
    """

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

    def __repr__(self) -> str:
        return _texts.parts(self)


@dataclass(frozen=True)
class FullestTile:
    """The fullest tile of a stage; the first of several.

    - ``tile``: its number, from 0
    - ``bytes``: bytes there, at the step where they are most
    - ``free``: bytes that are free below the limit; below 0 where it does not fit
    - ``parts``: the same bytes by what they hold
    - ``limit``: bytes that the stage may take on each tile
    - ``peak_step``: the number of the program's step at which the tile holds most
    """

    tile: int
    bytes: Bytes
    free: Bytes
    parts: Parts
    limit: Bytes = 0
    peak_step: Optional[int] = None


@dataclass(frozen=True)
class Stage:
    """A pipeline stage: what one IPU runs.

    - ``stage``: its number, which is that of its IPU, from 0
    - ``layers``: its layers by name, in order; ``None`` is In
    - ``total``: bytes of all tiles, each at its own peak
    - ``parts``: the same bytes by what they hold
    - ``fullest_tile``: the tile that decides whether it fits
    - ``layer_from``, ``layer_to``: the first and the last layer; ``None`` is In
    - ``micro_batch_cycles``, ``micro_batch_milliseconds``: the time of one micro-batch with
      what is recomputed, where the profile has cycles and the clock
    """

    stage: int
    layers: Layers
    total: Bytes
    parts: Parts
    fullest_tile: FullestTile
    layer_from: Optional[str] = None
    layer_to: Optional[str] = None
    micro_batch_cycles: Optional[int] = None
    micro_batch_milliseconds: Optional[float] = None

    def __repr__(self) -> str:
        tile = self.fullest_tile
        layers = _texts.layers(self.layers)
        return f"<Stage {self.stage}: {layers}; {_texts.of_limit(tile)}>"


@dataclass(frozen=True)
class Cut:
    """The boundary between two stages.

    - ``stage``: the number of the stage that begins after it
    - ``bytes``: bytes of the variables that flow over it, in both directions
    - ``layer_from``: the first layer of that stage
    - ``duplicated``: bytes of constants and untied weights that both sides need
    """

    stage: int
    bytes: Bytes
    layer_from: Optional[str] = None
    duplicated: Bytes = 0


@dataclass(frozen=True)
class LayerMemory:
    """One layer by itself.

    - ``total``: bytes of all tiles, each at its own peak
    - ``parts``: the same bytes by what they hold
    - ``fullest_tile``: the number of its fullest tile, from 0
    - ``fullest_tile_bytes``: bytes there
    - ``name``: its name; ``None`` is In
    - ``cycles``, ``milliseconds``: the time of one micro-batch without recomputation, where
      the profile has cycles and the clock
    """

    total: Bytes
    parts: Parts
    fullest_tile: int
    fullest_tile_bytes: Bytes
    name: Optional[str] = None
    cycles: Optional[int] = None
    milliseconds: Optional[float] = None

    def __repr__(self) -> str:
        most = f"tile {self.fullest_tile} has {self.fullest_tile_bytes:,} bytes"
        return f"<LayerMemory {_texts.layers((self.name,))}: {most}>"


@dataclass(frozen=True)
class Step:
    """One step: all micro-batches through all stages, and the update of the weights.

    - ``micro_batches``: how many micro-batches the step has
    - ``cycles``: all its cycles
    - ``steady_cycles``: cycles that one more micro-batch takes while every stage has work
    - ``ramp_cycles``: cycles of filling and draining the pipeline beyond that
    - ``update_cycles``: cycles of the update
    - ``efficiency``: the part of the step that a pipeline which is always full would
      take, from 0 to 1
    - ``slowest_stage``: the number of the stage with the most cycles, from 0
    - ``copy_cycles``: cycles of copies between IPUs, where the clock is known
    - ``milliseconds``: the time of the step in milliseconds, where the clock is known
    - ``samples_per_second``: samples of all replicas in a second, with ``micro_batch``
    - ``streamed_bytes``: bytes that are loaded from elsewhere and stored there
    - ``streaming_is_counted``: whether the time for these is among ``cycles``
    """

    micro_batches: int
    cycles: int
    steady_cycles: int
    ramp_cycles: int
    update_cycles: int
    efficiency: float
    slowest_stage: int
    copy_cycles: Optional[int] = None
    milliseconds: Optional[float] = None
    samples_per_second: Optional[float] = None
    streamed_bytes: Optional[Bytes] = None
    streaming_is_counted: Optional[bool] = None


@dataclass(frozen=True)
class BestSplit:
    """The answer to a changed request: a row of a sweep or a plan, or a way out.

    - ``ipus``: the IPUs of all replicas
    - ``replicas``: the number of replicas of the pipeline, at least 1
    - ``schedule``, ``recompute``, ``state``: the pipeline, and the place of the optimizer state, in
      the words of ``schedule``, ``recompute`` and ``optimizer_state``
    - ``fits``: whether the split fits; if none fits, the row has the one with the lowest peak
    - ``limit``: bytes that the stage with the fewest free bytes may take on each tile
    - ``fullest_tile_bytes``: bytes on the fullest tile of any stage
    - ``free``: the fewest free bytes of any stage; below 0 if the split does not fit
    - ``cut_bytes``: bytes over all cuts
    - ``lacks_time``: whether the step lacks time that is unknown, for state that is loaded
      or gathered
    - ``stages``: the layers of each stage
    - ``command``: the command that gives this answer
    - ``slowest_stage_cycles``: cycles of the slowest stage, if the profile has cycles
    - ``step``: the time of a step and its number of micro-batches, if the profile has cycles
    - ``hint``: why this number of IPUs is practical, such as ``one machine``
    """

    ipus: int
    replicas: int
    schedule: str
    recompute: str
    state: str
    fits: bool
    limit: Bytes
    fullest_tile_bytes: Bytes
    free: Bytes
    cut_bytes: Bytes
    lacks_time: bool
    stages: Tuple[Layers, ...]
    command: str
    slowest_stage_cycles: Optional[int] = None
    step: Optional[Step] = None
    hint: Optional[str] = None

    def __repr__(self) -> str:
        fits = "fits" if self.fits else "does not fit"
        pipeline = f"{_texts.ipus(self.ipus)}, {self.schedule}, recompute {self.recompute}"
        return f"<BestSplit {pipeline}: {fits}, fullest tile {self.fullest_tile_bytes:,} bytes>"


@dataclass(frozen=True)
class Sweep:
    """The best split for each number of IPUs.

    - ``limit``: bytes that a stage may take on each tile
    - ``rows``: one for each number of IPUs, ascending
    """

    limit: Bytes
    rows: Tuple[BestSplit, ...]


@dataclass(frozen=True)
class Plan:
    """The whole configurations that fit.

    - ``max_ipus``: how many IPUs there are
    - ``ipus_tried``: the numbers of IPUs that were tried
    - ``rows``: at most eight configurations, of which none is better than another in all of
      IPUs, time and memory: the recommended one first; none where nothing fits
    """

    max_ipus: int
    ipus_tried: Tuple[int, ...]
    rows: Tuple[BestSplit, ...]


@dataclass(frozen=True)
class OverLimit:
    """Layers that are over the limit together.

    - ``layers``: their names, in order
    - ``tile``: the number of their fullest tile as one stage, from 0
    - ``bytes``: bytes there
    - ``limit``: bytes that the stage may take on each tile
    - ``step``: the number of the program's step at which they are most
    """

    layers: Layers
    tile: int
    bytes: Bytes
    limit: Bytes
    step: Optional[int] = None


@dataclass(frozen=True)
class Relaxation:
    """Constraints and tied weights without which the model fits.

    - ``constraints``: as they were given
    - ``weights``: the names of the weights
    - ``answer``: the answer without them
    """

    constraints: Tuple[str, ...]
    weights: Tuple[str, ...]
    answer: BestSplit


@dataclass(frozen=True)
class Refusal:
    """Why there is no split that fits, and what would help.

    - ``reason``: ``too-large``, ``too-few-ipus``, ``pins-or-limits`` or ``pipeline``
    - ``limit``: bytes that a stage may take on each tile
    - ``ranges``: ranges of layers that are each over the limit: a proof
    - ``relaxations``: what fits without some constraints or tied weights
    - ``stages_needed``: a lower bound on the number of stages
    - ``smallest_limit``: the fewest bytes for a stage on each tile with which the model
      fits on these IPUs
    - ``smallest_tile_memory``: the memory of a tile in bytes for that, with what is reserved
    - ``with_memory``: the answer with that memory
    - ``fewest_ipus``: the fewest IPUs of all replicas on which the model fits with this limit
    - ``on_more_ipus``: the answer on these IPUs
    - ``most_over``: the stage of the shown split that is most over its limit
    """

    reason: str
    limit: Bytes
    ranges: Tuple[OverLimit, ...]
    relaxations: Tuple[Relaxation, ...]
    stages_needed: Optional[int] = None
    smallest_limit: Optional[Bytes] = None
    smallest_tile_memory: Optional[Bytes] = None
    with_memory: Optional[BestSplit] = None
    fewest_ipus: Optional[int] = None
    on_more_ipus: Optional[BestSplit] = None
    most_over: Optional[OverLimit] = None
