"""Runs the command and reads the report that it writes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import (
    Any,
    Dict,
    FrozenSet,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Type,
    TypeVar,
    Union,
)

from ._report import FitReport, Report, SplitReport, build

AnyPath = Union[str, "os.PathLike[str]"]
Plain = Union[str, int, float, "os.PathLike[str]"]

#: What an option may be set to.
Option = Union[
    None,
    bool,
    Plain,
    Report,
    Sequence[Union[Plain, Sequence[Plain]]],
    Mapping[str, Plain],
]

#: Options that may be given several times: each element of a list is one of them.
REPEATED: FrozenSet[str] = frozenset(
    ["emit", "pin", "together", "cut_after", "no_cut_after", "untie"]
)

#: The version of the report that this module reads.
_VERSION = 2

R = TypeVar("R", bound=Report)


class Error(Exception):
    """The command refused, with its message as text."""

    def __init__(self, message: str, exit_code: Optional[int] = None) -> None:
        super().__init__(message)
        #: 2 is wrong usage, 3 a file that could not be read, understood or written,
        #: 4 an error in popliner itself, 130 an interruption. ``None`` where the
        #: command did not run at all.
        self.exit_code = exit_code


@dataclass(frozen=True)
class Completed:
    """A run of the command that ended with an answer."""

    #: 0, or 1 when the model does not fit.
    exit_code: int
    #: Standard output: the results.
    output: str
    #: Standard error: tables for people, warnings and explanations.
    messages: str


def split(
    profile: AnyPath,
    debug: Optional[AnyPath] = None,
    *,
    num_ipus: Union[None, int, str] = None,
    **options: Option,
) -> SplitReport:
    """Finds the best split points, as ``popliner --solve`` does.

    ``profile`` is a ``profile.pop`` or the report folder with it; ``debug`` is its
    ``debug.cbor``, which is looked for beside it by default. ``num_ipus`` is how many
    IPUs there are, or ``"auto"`` for the fewest on which the model fits. Other
    options are those of the command: see the module.

    Raises :class:`Error` when the command refuses.
    """
    options = {"solve": True, "num_ipus": num_ipus, **options}
    return _report(SplitReport, "split", profile, debug, options)


def fit(
    profile: AnyPath,
    debug: Optional[AnyPath] = None,
    *,
    against: Union[None, AnyPath, SplitReport] = None,
    **options: Option,
) -> FitReport:
    """Judges a profile as it was compiled, IPU by IPU, as ``popliner --fit`` does.

    ``against`` is the prediction: what :func:`split` returned, or a file that
    ``--export-json`` wrote. Other options are those of the command: see the module.

    Raises :class:`Error` when the command refuses.
    """
    options = {"fit": True, "against": against, **options}
    return _report(FitReport, "fit", profile, debug, options)


def run(
    profile: AnyPath, debug: Optional[AnyPath] = None, **options: Option
) -> Completed:
    """Runs the command with these options and no others.

    For what is text rather than a report::

        popliner.run("profile.pop", emit="layers-per-ipu", num_ipus=4).output

    Raises :class:`Error` when the command refuses.
    """
    with tempfile.TemporaryDirectory(prefix="popliner-") as folder:
        return _run(profile, debug, options, folder)


def _report(
    kind: Type[R],
    section: str,
    profile: AnyPath,
    debug: Optional[AnyPath],
    options: Mapping[str, Option],
) -> R:
    """A report of this kind; its verdict is in this section of the document."""
    with tempfile.TemporaryDirectory(prefix="popliner-") as folder:
        path = options.get("export_json") or os.path.join(folder, "report.json")
        if not isinstance(path, (str, os.PathLike)) or path == "-":
            raise Error("export_json must be the path of a file; the report is in .json")
        with_path = {**options, "export_json": path}
        completed = _run(profile, debug, with_path, folder)
        try:
            document = json.loads(Path(path).read_text(encoding="utf-8"))
            return _read(kind, section, document, completed)
        except (KeyError, OSError, TypeError, ValueError) as why:
            raise Error(f"the report of {command()} cannot be read: {why}") from why


def _read(
    kind: Type[R], section: str, document: Dict[str, Any], completed: Completed
) -> R:
    """The document with its verdict and with what the command printed."""
    if document["version"] != _VERSION:
        raise ValueError(
            f"its version is {document['version']}, and this module reads {_VERSION}; "
            "install module and command together"
        )
    of_run = {"json": document, **vars(completed)}
    return build(kind, {**document, **document[section], **of_run})


def _run(
    profile: AnyPath,
    debug: Optional[AnyPath],
    options: Mapping[str, Option],
    folder: str,
) -> Completed:
    """Runs the command; what has to be in files for it is put into the folder."""
    files = [os.fspath(path) for path in (profile, debug) if path is not None]
    line = [command(), *_arguments(options, folder), "--", *files]
    # What is read by programs has no colours.
    environment = {**os.environ, "NO_COLOR": "1"}
    environment.pop("CLICOLOR_FORCE", None)
    try:
        done = subprocess.run(
            line,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            encoding="utf-8",
            errors="replace",
        )
    except OSError as why:
        raise Error(f"{line[0]} cannot be run: {why}") from why
    if done.returncode not in (0, 1):
        raise Error(_message(done.stderr, done.returncode), done.returncode)
    return Completed(done.returncode, done.stdout, done.stderr)


def _message(messages: str, exit_code: int) -> str:
    """The error itself, without what was said before it and how to get help."""
    _, found, error = ("\n" + messages).rpartition("\nerror: ")
    if not found:
        return messages.strip() or f"popliner ended with exit code {exit_code}"
    for end in ("\n\nUsage:", "\n\nFor more information"):
        error = error.partition(end)[0]
    return error.strip()


def command() -> str:
    """The path of the command.

    That of the environment variable ``POPLINER``, or the one that was installed
    with this module, or the first one on the ``PATH``.
    """
    given = os.environ.get("POPLINER")
    if given:
        return given
    for folder in _script_folders():
        found = shutil.which("popliner", path=folder)
        if found:
            return found
    found = shutil.which("popliner")
    if found:
        return found
    raise Error(
        "the command popliner is neither beside the scripts of this Python nor on the "
        "PATH; install it (pip install popliner), or set POPLINER to its path"
    )


def _script_folders() -> Iterator[str]:
    """Where pip puts commands: for all users of this Python, or for one."""
    yield sysconfig.get_path("scripts")
    user = "osx_framework_user" if sysconfig.get_config_var("PYTHONFRAMEWORK") else ""
    scheme = user or f"{os.name}_user"
    if scheme in sysconfig.get_scheme_names():
        yield sysconfig.get_path("scripts", scheme)


def _arguments(options: Mapping[str, Option], folder: str) -> Iterator[str]:
    """Options as the command takes them; none can be mistaken for another."""
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if isinstance(value, bool) or value is None:
            if value:
                yield option
            continue
        if isinstance(value, Report):
            value = _in_file(value, os.path.join(folder, f"{name}.json"))
        for text in _texts(name, value):
            yield f"{option}={text}"


def _in_file(report: Report, path: str) -> str:
    """Writes a report for the command to read; the path of it."""
    Path(path).write_text(json.dumps(report.json), encoding="utf-8")
    return path


def _texts(name: str, value: Any) -> List[str]:
    """The values of one option, one for each time that it is given."""
    if isinstance(value, Mapping):
        value = [f"{key}={_text(one)}" for key, one in value.items()]
    if name in REPEATED and _is_list(value):
        return [_text(one) for one in value]
    return [_text(value)]


def _text(value: Any) -> str:
    """One value, with commas between those of a list."""
    if _is_list(value):
        return ",".join(_text(one).replace(",", "\\,") for one in value)
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))
