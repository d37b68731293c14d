"""Runs the command and reads the report that it writes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
import tempfile
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Dict,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Type,
    TypeVar,
)

from ._build import build
from ._options import COUNTED, READ, REPEATED, WRITTEN, refuse_unknown, shows_keywords
from ._report import AnyPath, FitReport, Page, Report, SplitReport

if TYPE_CHECKING:
    # Type checkers have it for every Python.
    from typing_extensions import Unpack

    from ._options import FitOptions, RunOptions, SplitOptions

#: The version of the report that this module reads.
_VERSION = 1

R = TypeVar("R", bound=Report)


class Error(Exception):
    """The command refused, with its message as text."""

    def __init__(self, message: str, exit_code: Optional[int] = None) -> None:
        super().__init__(message)
        #: 2 is wrong usage, 3 a file that could not be read, understood or written,
        #: 4 an error in popliner itself, 130 an interruption. ``None`` where the
        #: command did not run at all.
        self.exit_code = exit_code


class MissingFile(Error, FileNotFoundError):
    """A file that the command was to read is not there."""

    def __init__(self, message: str, exit_code: Optional[int], path: str) -> None:
        Error.__init__(self, message, exit_code)
        #: The path of the file.
        self.filename = path

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True)
class Completed:
    """A run of the command that ended with an answer.

    - ``exit_code``: 0, or 1 when the model does not fit
    - ``output``: standard output, the results
    - ``messages``: standard error: tables for people, warnings and explanations
    """

    exit_code: int
    output: str
    messages: str


@dataclass(frozen=True)
class _Question:
    """What a run of the command is about."""

    profile: AnyPath
    debug: Optional[AnyPath]
    options: Mapping[str, Any]
    #: Where its paths begin: programs may go elsewhere later.
    folder: str

    def files(self) -> List[str]:
        paths = (self.profile, self.debug)
        return [os.fspath(path) for path in paths if path is not None]

    def first_missing(self) -> Optional[str]:
        """The first of the files that it reads that is not there."""
        read = [value for name, value in self.options.items() if name in READ]
        paths = [value for value in read if isinstance(value, (str, os.PathLike))]
        given: List[str] = [os.fspath(path) for path in paths]
        for path in self.files() + given:
            if not os.path.exists(os.path.join(self.folder, path)):
                return path
        return None


def split(
    profile: AnyPath, debug: Optional[AnyPath] = None, **options: Unpack[SplitOptions]
) -> SplitReport:
    """Finds the best split points, as ``popliner --solve`` does.

    ``profile`` is a ``profile.pop`` or the report folder with it; ``debug`` is its
    ``debug.cbor``, which is looked for beside it by default. What most need:

    - ``num_ipus``: how many IPUs there are, or ``"auto"`` for the fewest that fit
    - ``mem_per_tile``: bytes of a tile that a stage may take, or a list by IPU
    - ``reserve``: bytes of each tile to keep free, or per cent as text (``"5%"``)
    - ``pin``, ``together``, ``cut_before``: layers by name
    - ``sweep=True``: a row for each number of IPUs, in ``report.sweep``
    - ``export_html``: the path for the page, which the report links to

    All are in :class:`SplitOptions`. Raises :class:`Error` when the command refuses,
    :class:`MissingFile`, a ``FileNotFoundError``, when a file is not there, and
    ``TypeError`` for a keyword that is none.
    """
    refuse_unknown("split", options)
    asked: Dict[str, Any] = {"solve": True, **options}
    return _report(SplitReport, "split", _Question(profile, debug, asked, os.getcwd()))


def fit(
    profile: AnyPath, debug: Optional[AnyPath] = None, **options: Unpack[FitOptions]
) -> FitReport:
    """Judges a profile as it was compiled, IPU by IPU, as ``popliner --fit`` does.

    - ``compare``: the prediction: what :func:`split` returned, or the path of a file
      that ``--export-json`` wrote
    - ``mem_per_tile``: bytes that each tile may take, or a list by IPU
    - ``reserve``: bytes of each tile to keep free, or per cent as text (``"5%"``)

    All are in :class:`FitOptions`. Raises as :func:`split` does.
    """
    refuse_unknown("fit", options)
    asked: Dict[str, Any] = {"fit": True, **options}
    return _report(FitReport, "fit", _Question(profile, debug, asked, os.getcwd()))


def run(
    profile: AnyPath, debug: Optional[AnyPath] = None, **options: Unpack[RunOptions]
) -> Completed:
    """Runs the command with these options and no others.

    For what is text rather than a report::

        popliner.run("profile.pop", emit="examples", num_ipus=4).output

    All options are in :class:`RunOptions`. Raises as :func:`split` does.
    """
    refuse_unknown("run", options)
    asked: Dict[str, Any] = {**options}
    with tempfile.TemporaryDirectory(prefix="popliner-") as folder:
        return _run(_Question(profile, debug, asked, os.getcwd()), folder)


for _function in (split, fit, run):
    shows_keywords(_function)


def _report(kind: Type[R], section: str, question: _Question) -> R:
    """A report of this kind; its verdict is in this section of the document."""
    document, completed = _document(question)
    html = question.options.get("export_html") or "-"
    path = None if html == "-" else os.path.join(question.folder, html)
    page = Page(partial(_write_page, question, section), path)
    of_run = {"json": document, "_page": page, **vars(completed)}
    try:
        return build(kind, {**document, **document[section], **_timed(document), **of_run})
    except (KeyError, TypeError) as why:
        raise _unreadable(why) from why


def _timed(document: Mapping[str, Any]) -> Dict[str, Any]:
    """Layers, and stages of a split, with their times, which the document has apart."""
    execution = document.get("execution") or {}
    split = document.get("split") or {}
    times = execution.get("layers", ())
    timed = {"layers": _with_times(document["layers"], times, ("cycles", "milliseconds"))}
    if split:
        names = ("micro_batch_cycles", "micro_batch_milliseconds")
        timed["stages"] = _with_times(split["stages"], execution.get("stages", ()), names)
    return timed


def _with_times(
    rows: Sequence[Dict[str, Any]], times: Sequence[Mapping[str, Any]], names: Tuple[str, ...]
) -> List[Dict[str, Any]]:
    """Rows with the times in the same order; as they are where the profile has no cycles."""
    if len(rows) != len(times):
        return list(rows)
    return [
        {**row, **{name: time.get(name) for name in names}} for row, time in zip(rows, times)
    ]


def _write_page(
    question: _Question, section: str, path: Path, document: Mapping[str, Any]
) -> None:
    """Runs the command once more, for the page of what it said before."""
    options = {name: one for name, one in question.options.items() if name not in WRITTEN}
    with tempfile.TemporaryDirectory(prefix="popliner-") as folder:
        page = os.path.join(folder, "page.html")
        again, _ = _document(replace(question, options={**options, "export_html": page}))
        for name in (section, "layers", "warnings"):
            if again[name] != document[name]:
                raise Error(
                    f"{path} is not written: {os.fspath(question.profile)} is no longer "
                    "what it was when this report was made; make the report again"
                )
        shutil.copyfile(page, path)


def _document(question: _Question) -> Tuple[Dict[str, Any], Completed]:
    """The report in JSON, and how the run ended."""
    with tempfile.TemporaryDirectory(prefix="popliner-") as folder:
        own = os.path.join(folder, "report.json")
        path = question.options.get("export_json") or own
        if not isinstance(path, (str, os.PathLike)) or path == "-":
            raise Error("export_json must be the path of a file; the report is in .json")
        options = {**question.options, "export_json": path}
        completed = _run(replace(question, options=options), folder)
        try:
            text = Path(question.folder, path).read_text(encoding="utf-8")
            return _of_version(json.loads(text)), completed
        except (KeyError, OSError, TypeError, ValueError) as why:
            raise _unreadable(why) from why


def _unreadable(why: Exception) -> Error:
    return Error(f"the report of {command()} cannot be read: {why}")


def _of_version(document: Dict[str, Any]) -> Dict[str, Any]:
    """The document, if it is of the version that this module reads."""
    if document["version"] != _VERSION:
        raise ValueError(
            f"its version is {document['version']}, and this module reads {_VERSION}; "
            "install module and command together"
        )
    return document


def _run(question: _Question, folder: str) -> Completed:
    """Runs the command; what has to be in files for it is put into the folder."""
    options = _arguments(question.options, folder)
    line = [command(), *options, "--", *question.files()]
    # What is read by programs has no colours.
    environment = {**os.environ, "NO_COLOR": "1"}
    environment.pop("CLICOLOR_FORCE", None)
    try:
        done = subprocess.run(
            line,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=question.folder,
            env=environment,
            encoding="utf-8",
            errors="replace",
        )
    except OSError as why:
        raise Error(f"{line[0]} cannot be run: {why}") from why
    if done.returncode in (0, 1):
        return Completed(done.returncode, done.stdout, done.stderr)
    message = _message(done.stderr, done.returncode)
    missing = question.first_missing()
    if done.returncode == 3 and missing is not None:
        raise MissingFile(message, done.returncode, missing)
    raise Error(message, done.returncode)


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
        # It is run in the folder of the question, which may be another.
        return os.path.abspath(given) if os.path.dirname(given) else given
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


def _arguments(options: Mapping[str, Any], folder: str) -> Iterator[str]:
    """Options as the command takes them; none can be mistaken for another."""
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if isinstance(value, bool) or value is None or name in COUNTED:
            yield from [option] * int(value or 0)
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
        value = [str(key) if one is None else f"{key}={_text(one)}" for key, one in value.items()]
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
