"""Words for layers, IPUs and memory, which values and reports share.

All names come from files: what would not be seen in them is written out.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any, Optional, Protocol, Sequence

#: More layers than this are written as runs of numbers, or by the first and the last.
_MOST_LAYERS = 8

_DIGITS = tuple("0123456789")


class Tile(Protocol):
    """A tile with the bytes that it has and may have."""

    @property
    def tile(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def limit(self) -> int: ...


def layers(names: Optional[Sequence[Optional[str]]], first: str = "In") -> str:
    """Layers as the command writes them; the first one may have no name."""
    if names is None:
        return "?"
    shown = [first if name is None else _plain(name) for name in names]
    if len(shown) <= _MOST_LAYERS:
        return " ".join(shown)
    runs = _runs(shown)
    if len(runs) <= _MOST_LAYERS:
        return " ".join(runs)
    return f"{shown[0]} … {shown[-1]} ({len(shown)})"


def _runs(names: Sequence[str]) -> list[str]:
    """Three or more names with consecutive numbers behind one prefix are one: `encoder.0-11`."""
    runs: list[list[str]] = []
    for name in names:
        before = _numbered(runs[-1][-1]) if runs else None
        now = _numbered(name)
        if before and now and now == (before[0], before[1] + 1):
            runs[-1].append(name)
        else:
            runs.append([name])
    shown: list[str] = []
    for run in runs:
        last = _numbered(run[-1])
        shown += [f"{run[0]}-{last[1]}"] if last and len(run) > 2 else run
    return shown


def _numbered(name: str) -> Optional[tuple[str, int]]:
    """What stands before the number at the end of a name, and that number."""
    found = re.fullmatch(r"(.*?)(0|[1-9][0-9]*)", name, re.DOTALL)
    if not found or found[1].endswith(_DIGITS):
        return None
    return found[1], int(found[2])


def _plain(name: str) -> str:
    """A name with what would not be seen, or turn the text around, written out."""
    return "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in name)


def ipus(number: int) -> str:
    """A number of IPUs."""
    return "1 IPU" if number == 1 else f"{number:,} IPUs"


def of_limit(tile: Tile) -> str:
    """What a tile holds of what it may."""
    return f"tile {tile.tile} has {tile.bytes:,} of {tile.limit:,} bytes"


def parts(found: Any) -> str:
    """What memory holds, a dataclass of bytes, without what is 0."""
    values = dataclasses.asdict(found).items()
    held = ", ".join(f"{name} {bytes_:,}" for name, bytes_ in values if bytes_)
    return f"<{type(found).__name__} in bytes: {held or 0}>"


def of_whole(tile: Tile) -> str:
    """Tenths of a per cent, rounded up as the command does."""
    if not tile.limit:
        return ""
    tenths = -(-1000 * tile.bytes // tile.limit)
    return f"{tenths // 10}.{tenths % 10} %"
