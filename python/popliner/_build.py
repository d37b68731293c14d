"""Makes dataclasses of the report's JSON."""

from __future__ import annotations

import dataclasses
import typing
from typing import Any, Dict, Type, TypeVar

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
