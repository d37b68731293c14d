"""Programs that use the module, as `mypy --strict` sees them."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from support import PACKAGES, needed

RIGHT = """
import popliner

report = popliner.split(
    "profile.pop", num_ipus=4, pin={"0": 0}, together=[("1", "2")], reserve="5%",
    objective="peak", emit=["keras", "poptorch"], cut_before="3", sweep=True, verbose=2,
)
auto = popliner.split("report", num_ipus="auto", compare=report)
peak: int = max(stage.fullest_tile.bytes for stage in report.stages)
alone: int = report.layers[0].fullest_tile_bytes
ipus = [row.ipus for row in report.sweep.rows] if report.sweep else []
times = [row.step.milliseconds for row in report.plan.rows if row.step] if report.plan else []
over: int = popliner.fit("profile.pop", compare=report).ipus[0].tiles_over
path: str = str(report.save_html("page.html"))
text: str = popliner.run("profile.pop", emit="examples", num_ipus=4).output
columns = report.to_dataframe("layers").columns
version: str = popliner.__version__
"""

#: Each line has one thing that is wrong.
WRONG = """
popliner.split("profile.pop", nmu_ipus=4)
popliner.split("profile.pop", num_ipus=4.5)
popliner.split("profile.pop", num_ipus="aut0")
popliner.split("profile.pop", objective="peek")
popliner.split("profile.pop", emit=["kears"])
popliner.split("profile.pop", explain="yes")
popliner.split("profile.pop").stages[0].fullest
popliner.split("profile.pop").sweep.rows
popliner.split("profile.pop").to_dataframe("stage")
popliner.fit("profile.pop", num_ipus=4)
popliner.fit("profile.pop", compare=popliner.fit("profile.pop"))
popliner.run("profile.pop", nmu_ipus=4)
popliner.run("profile.pop").stages
""".strip()


class Types(unittest.TestCase):
    def test_what_is_wrong_is_said_and_nothing_else(self):
        needed(self, "mypy")
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "right.py").write_text(RIGHT)
            Path(folder, "wrong.py").write_text("import popliner\n" + WRONG + "\n")
            is_installed = PACKAGES.name.endswith("-packages")
            search = {} if is_installed else {"MYPYPATH": str(PACKAGES)}
            line = [sys.executable, "-m", "mypy", "--strict", "right.py", "wrong.py"]
            done = subprocess.run(
                line, cwd=folder, env={**os.environ, **search}, stdout=subprocess.PIPE
            )
        said = done.stdout.decode()
        self.assertEqual(re.findall(r"^(?!wrong\.py).*: error: .*", said, re.M), [])
        lines = {int(number) for number in re.findall(r"^wrong\.py:(\d+): error", said, re.M)}
        self.assertEqual(lines, set(range(2, 2 + len(WRONG.splitlines()))), said)


if __name__ == "__main__":
    unittest.main()
