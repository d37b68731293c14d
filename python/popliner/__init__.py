"""Pipeline split points for models on Graphcore IPUs, from Python.

This module runs the command ``popliner`` and gives what it found as plain,
typed data. It computes nothing itself::

    import popliner

    report = popliner.split("profile.pop", num_ipus=4)
    if report.fits:
        for stage in report.stages:
            print(stage.layers, stage.fullest_tile.bytes)
    else:
        print(report.refusal)

    compiled = popliner.fit("pipeline/profile.pop", compare=report)
    print(compiled.fits, [ipu.fullest_tile.free for ipu in compiled.ipus])

A model that does not fit is an answer, not an error: ``fits`` is ``False`` then.
What the command refuses (wrong usage, files that cannot be read) raises
:class:`Error` with its message; a file that is not there raises :class:`MissingFile`,
which is a ``FileNotFoundError`` too. A keyword that is none raises ``TypeError`` with
the nearest one.

All memory is in bytes, which are exact; tiles, IPUs, stages and steps of the program
are numbered from 0.

In a notebook
-------------

A report shows its verdict, its stages or IPUs, warnings, and a link to its page.
``report.save_html("report.html")`` writes that page, which has charts.
``report.to_dataframe()`` has a row for each stage or IPU, where pandas is installed;
``to_dataframe("layers")``, ``"cuts"``, ``"sweep"``, ``"plan"`` and ``"comparison"`` the
others.

Options
-------

Every option of the command is a keyword (:class:`SplitOptions`, :class:`FitOptions`,
:class:`RunOptions`), typed; ``popliner --help`` explains them all. Underscores stand
for hyphens:

=========================================  ====================================
``num_ipus=4``                             ``--num-ipus=4``
``num_ipus="auto"``                        ``--num-ipus=auto``
``explain=True``                           ``--explain``
``explain=False``, ``reserve=None``        left out
``verbose=2``                              ``--verbose --verbose``
``mem_per_tile=[600000, 638976]``          ``--mem-per-tile=600000,638976``
``splits=["3", "7", "Out"]``               ``--splits=3,7,Out``
``pin={"0": 0, "7": 3}``                   ``--pin=0=0 --pin=7=3``
``together=[("0", "1"), ("4", "5")]``      ``--together=0,1 --together=4,5``
``cut_before=["3", "7"]``                  ``--cut-before=3 --cut-before=7``
``compare=report``                         ``--compare`` with the report's JSON
=========================================  ====================================

A list is one value with commas, and a comma in a name is escaped. For the options
that may be given several times (:data:`REPEATED`), each element of a list is one
of them.

The command is found beside the scripts of this Python, where ``pip`` puts it, or
else on the ``PATH``. The environment variable ``POPLINER`` names another one.
"""

from ._command import Completed, Error, MissingFile, fit, run, split
from ._compiled import FitComparison, IpuFit, RecordedTile, StageComparison
from ._options import REPEATED, FitOptions, RunOptions, SplitOptions
from ._report import FitReport, Report, SplitReport
from ._values import (
    BestSplit,
    Bytes,
    Cut,
    FullestTile,
    LayerMemory,
    OverLimit,
    Parts,
    Plan,
    Refusal,
    Relaxation,
    Stage,
    Step,
    Sweep,
    TileParts,
)

#: That of the command which is installed with it: the version in Cargo.toml.
__version__ = "0.1.0"

__all__ = [
    "BestSplit",
    "Bytes",
    "Completed",
    "Cut",
    "Error",
    "FitComparison",
    "FitOptions",
    "FitReport",
    "FullestTile",
    "IpuFit",
    "LayerMemory",
    "MissingFile",
    "OverLimit",
    "Parts",
    "Plan",
    "REPEATED",
    "RecordedTile",
    "Refusal",
    "Relaxation",
    "Report",
    "RunOptions",
    "SplitOptions",
    "SplitReport",
    "Stage",
    "StageComparison",
    "Step",
    "Sweep",
    "TileParts",
    "__version__",
    "fit",
    "run",
    "split",
]
