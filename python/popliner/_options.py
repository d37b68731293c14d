"""The options of the command as keywords, with the values that each takes.

A test holds them against ``popliner --help``: their names, which of them have no
value, the words that some of them take, and what goes with ``--fit``.
"""

import difflib
import inspect
from typing import (
    Any,
    Callable,
    Dict,
    FrozenSet,
    List,
    Literal,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    TypedDict,
    Union,
)

from ._report import AnyPath, SplitReport

#: What ``emit`` prints.
Form = Literal[
    "examples",
    "optimum",
    "poptorch",
    "popart",
    "keras",
    "tf-stages",
    "pipeline-splits",
    "mmcv",
]

#: Options that may be given several times: each element of a list is one of them.
REPEATED: FrozenSet[str] = frozenset(
    ["amp", "emit", "micro_batch", "pin", "together", "cut_before", "untie"]
)

#: Options without a value, of which several say more.
COUNTED: FrozenSet[str] = frozenset(["verbose"])

#: Files that are read, beside the profile and its ``debug.cbor``.
READ: FrozenSet[str] = frozenset(["compare"])

#: Files that are written.
WRITTEN: FrozenSet[str] = frozenset(
    [
        "export_html",
        "export_json",
        "export_markdown",
        "save_to_file",
    ]
)


class FitOptions(TypedDict, total=False):
    """What :func:`popliner.fit` takes; ``popliner --help`` explains all.

    Amounts of memory (``mem_per_tile``, ``reserve``) are in bytes on each tile, and
    ``reserve`` also in per cent (``"5%"``).
    """

    # Limits, all in bytes on each tile.
    mem_per_tile: Union[None, int, Sequence[int]]
    reserve: Union[None, int, str]
    # Layers.
    layer_name_regex: Optional[str]
    inputs_regex_layer_0: Optional[str]
    layer_order: Optional[Literal["natural", "steps"]]
    # Results and files.
    allow_incomplete: Optional[bool]
    compare: Union[None, AnyPath, SplitReport]
    export_json: Optional[AnyPath]
    export_markdown: Optional[AnyPath]
    export_html: Optional[AnyPath]
    # What is printed.
    format: Optional[Literal["auto", "table", "tsv", "csv", "json"]]
    units: Optional[Literal["bytes", "KiB", "MiB", "auto"]]
    quiet: Optional[bool]
    verbose: Union[None, bool, int]


class SplitOptions(FitOptions, total=False):
    """What :func:`popliner.split` takes; ``popliner --help`` explains all.

    Amounts of memory (``mem_per_tile``, ``reserve``) are in bytes on each tile, and
    ``reserve`` also in per cent (``"5%"``); ``pin`` and ``layers_per_ipu`` count IPUs
    and layers. Layers are given by name, ``"In"`` and ``"Out"`` among them.
    ``ipu_link_bandwidth`` and ``streaming_bandwidth`` are in GB (1,000,000,000 bytes) a second; ``micro_batch`` counts
    samples, or maps them to the profiles with these sizes (``{1: None, 4: "b4"}``, ``None`` for the first profile),
    and ``amp`` is an available memory proportion, or maps them to profiles in the same way;
    ``micro_batches`` and ``replicas`` count what they say.
    """

    num_ipus: Union[None, int, Literal["auto"]]
    memory_model: Optional[Literal["full", "classic"]]
    # The pipeline.
    schedule: Optional[
        Literal["auto", "none", "popart", "tf-grouped", "tf-interleaved", "sequential"]
    ]
    recompute: Optional[Literal["auto", "none", "stage", "layer"]]
    accumulator: Optional[Literal["as-weight", "float16", "float32"]]
    optimizer_state: Optional[
        Literal["auto", "on-chip", "off-chip", "sharded", "sharded-off-chip"]
    ]
    amp: Union[None, float, Mapping[float, Optional[AnyPath]]]
    # The time of a step.
    micro_batches: Optional[int]
    micro_batch: Union[None, int, Mapping[int, Optional[AnyPath]]]
    replicas: Optional[int]
    ipu_link_bandwidth: Union[None, int, float]
    streaming_bandwidth: Union[None, int, float]
    # The search.
    solver: Optional[Literal["ilp", "greedy"]]
    objective: Optional[Literal["peak", "fewest", "communication", "cycles", "time"]]
    pin: Union[None, str, Sequence[str], Mapping[str, int]]
    together: Union[None, str, Sequence[Tuple[str, str]]]
    cut_before: Union[None, str, Sequence[str]]
    splits: Union[None, str, Sequence[str]]
    layers_per_ipu: Union[None, str, Sequence[int]]
    out_on: Optional[Literal["auto", "first", "last"]]
    untie: Union[None, str, Sequence[str]]
    # Further results.
    emit: Union[None, Form, Sequence[Form]]
    module_root: Optional[str]
    sweep: Optional[bool]
    plan: Optional[bool]
    explain: Optional[bool]
    operation_breakdown: Optional[bool]
    layer_breakdown: Optional[bool]
    memory_totals: Optional[bool]
    tiles: Union[None, int, str, Sequence[Union[int, str]]]
    memory_affinity: Optional[bool]
    interlayer_communication: Optional[bool]
    diagnose: Optional[bool]
    list_layers: Optional[bool]
    # The analysed model.
    save_to_file: Optional[AnyPath]
    load_from_file: Optional[bool]


class RunOptions(SplitOptions, total=False):
    """What :func:`popliner.run` takes: every option of the command that has a profile.

    Units are those of :class:`SplitOptions`.
    """

    solve: Optional[bool]
    fit: Optional[bool]


#: Which function takes which.
KINDS: Dict[str, Any] = {"split": SplitOptions, "fit": FitOptions, "run": RunOptions}


def names(function: str) -> List[str]:
    """The keywords of the options that a function takes."""
    return list(KINDS[function].__annotations__)


def refuse_unknown(function: str, given: Mapping[str, object]) -> None:
    """Raises ``TypeError`` for a keyword that the function does not take."""
    known = names(function)
    for name in given:
        if name in known:
            continue
        others = [other for other in KINDS if name in names(other)]
        near = difflib.get_close_matches(name, known, n=1)
        if others:
            hint = f"{others[0]}() has it"
        elif near:
            hint = f"did you mean {near[0]!r}?"
        else:
            hint = "popliner --help has all"
        raise TypeError(f"{function}() has no option {name!r}: {hint}")


def shows_keywords(function: Callable[..., Any]) -> None:
    """Has help, notebooks and editors that look at a function see its options."""
    signature = inspect.signature(function)
    own = [one for one in signature.parameters.values() if one.kind != one.VAR_KEYWORD]
    kinds = KINDS[function.__name__].__annotations__
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in kinds.items()
    ]
    shown = signature.replace(parameters=[*own, *options])
    setattr(function, "__signature__", shown)
