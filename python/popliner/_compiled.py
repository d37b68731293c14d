"""What a report of a compiled model is made of, as far as most programs need it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

from . import _texts
from ._values import Bytes, Layers, TileParts


@dataclass(frozen=True)
class RecordedTile:
    """The fullest tile of an IPU, as it was compiled; the first of several.

    - ``tile``: its number through all IPUs, from 0
    - ``tile_of_ipu``: its number on its own IPU, from 0
    - ``bytes``: bytes in use, without gaps
    - ``limit``: bytes that it may take
    - ``free``: bytes that are free below that; below 0 where they are more
    - ``overflowed``: bytes beyond its memory, with gaps
    - ``parts``: its bytes by what they hold
    - ``peak_step``: the number of the program's step at which it holds most
    """

    tile: int
    tile_of_ipu: int
    bytes: Bytes
    limit: Bytes
    free: Bytes
    overflowed: Bytes
    parts: TileParts
    peak_step: Optional[int] = None


@dataclass(frozen=True)
class IpuFit:
    """What was recorded of one IPU.

    - ``ipu``: its number, from 0
    - ``fits``: whether every tile of it fits
    - ``total``: bytes of all its tiles
    - ``tiles_over``: how many of its tiles are over the limit, or have overflowed
    - ``overflowed``: bytes beyond the memory of its tiles, with gaps
    - ``fullest_tile``: the tile that decides whether it fits
    - ``layers``: the layers that run on it; ``None`` where no ``debug.cbor`` says which
    - ``cycles``: executed cycles, over all runs
    """

    ipu: int
    fits: bool
    total: Bytes
    tiles_over: int
    overflowed: Bytes
    fullest_tile: RecordedTile
    layers: Optional[Layers] = None
    cycles: Optional[int] = None

    def __repr__(self) -> str:
        fits = "fits" if self.fits else f"{self.tiles_over:,} tiles are over"
        return f"<IpuFit {self.ipu}: {fits}; {_texts.of_limit(self.fullest_tile)}>"


@dataclass(frozen=True)
class StageComparison:
    """A stage as it was predicted and recorded, each on its fullest tile.

    - ``stage``, ``ipu``: the number of the stage, and of the IPU that runs it, from 0
    - ``layers``: its layers, as predicted
    - ``predicted``, ``recorded``: bytes on the fullest tile
    - ``difference``: bytes that were recorded less those that were predicted
    - ``reserve``: the fewest bytes of ``reserve`` that would have covered the difference
    - ``free``: bytes that are left of the limit, as recorded
    - ``predicted_parts``, ``recorded_parts``: the bytes by what they hold
    """

    stage: int
    ipu: int
    layers: Layers
    predicted: Bytes
    recorded: Bytes
    difference: Bytes
    reserve: Bytes
    free: Bytes
    predicted_parts: TileParts
    recorded_parts: TileParts

    def __repr__(self) -> str:
        both = f"predicted {self.predicted:,} bytes, recorded {self.recorded:,}"
        return f"<StageComparison {self.stage}: {both} ({self.difference:+,})>"


@dataclass(frozen=True)
class FitComparison:
    """What was predicted of a pipeline, and what was recorded.

    - ``profile``: the profile of the prediction
    - ``predicted_fits``: whether the model was predicted to fit
    - ``predicted_stages``: the number of stages that were predicted
    - ``matched_by``: by what stages were matched to IPUs: ``layers`` or ``order``
    - ``stages``: each stage that has an IPU
    - ``reserve``: the bytes of ``reserve`` that would have covered every stage; None when
      the pipeline was cut elsewhere than predicted, or a profile contradicts itself
    """

    profile: str
    predicted_fits: bool
    predicted_stages: int
    matched_by: str
    stages: Tuple[StageComparison, ...]
    reserve: Optional[Bytes] = None
