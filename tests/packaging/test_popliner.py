"""The Python module: it runs the command on the fixtures of this repository.

    POPLINER=target/debug/popliner PYTHONPATH=python \
        python3 -m unittest discover --start-directory tests/packaging
"""

import contextlib
import dataclasses
import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import popliner
from popliner import _build, _command, _compiled, _report, _values
from support import BERT, FIXTURES, ROOT, script

class Split(unittest.TestCase):
    def test_a_model_that_fits(self):
        report = popliner.split(BERT, num_ipus=4)
        self.assertIsInstance(report, popliner.SplitReport)
        self.assertTrue(report.fits)
        self.assertEqual((report.exit_code, report.max_stages), (0, 4))
        printed = json.loads(report.output)
        self.assertEqual(len(report.stages), len(printed))
        for stage, wanted in zip(report.stages, printed):
            tile = stage.fullest_tile
            self.assertEqual(list(stage.layers), wanted["layers"])
            self.assertEqual((tile.tile, tile.bytes), (wanted["max_tile"], wanted["mem"]["max_tile_mem"]))
            self.assertEqual(stage.total, wanted["mem"]["total_mem"])
            self.assertEqual((tile.bytes + tile.free, tile.limit), (report.limit, report.limit))
            self.assertEqual(sum(dataclasses.astuple(tile.parts)), tile.bytes)
        self.assertEqual([cut.stage for cut in report.cuts], [1, 2, 3])
        first = [stage.layer_from for stage in report.stages]
        self.assertEqual([cut.layer_from for cut in report.cuts], first[1:])
        self.assertIsNone(report.refusal)
        self.assertEqual(report.json["format"], "popliner-report")
        self.assertIn("SUCCESS: [ In", report.messages)

    def test_layers_and_a_sweep(self):
        report = popliner.split(BERT, num_ipus=4, sweep=True)
        of_stages = [name for stage in report.stages for name in stage.layers]
        self.assertEqual([layer.name for layer in report.layers], of_stages)
        self.assertEqual([row.ipus for row in report.sweep.rows], [1, 2, 3, 4])
        best = report.sweep.rows[-1]
        self.assertEqual(best.stages, tuple(stage.layers for stage in report.stages))
        self.assertEqual(best.fullest_tile_bytes + best.free, report.sweep.limit)
        self.assertIsNone(popliner.split(BERT, num_ipus=4).sweep)

    def test_a_plan(self):
        profile = FIXTURES / "training-pipeline"
        report = popliner.split(profile, num_ipus=4, plan=True)
        self.assertEqual(report.plan.max_ipus, 4)
        self.assertIn(len(report.plan.rows), range(2, 9))
        for row, wanted in zip(report.plan.rows, report.json["plan"]["rows"]):
            self.assertEqual(row.command, wanted["command"])
            self.assertEqual(row.step.milliseconds, wanted["step"]["milliseconds"])
            self.assertEqual(row.fullest_tile_bytes + row.free, row.limit)
        best = report.plan.rows[0]
        alone = popliner.split(
            profile, num_ipus=best.ipus, schedule=best.schedule, recompute=best.recompute,
            splits=[stage[0] for stage in best.stages[1:]],
            micro_batches=best.step.micro_batches,
        )
        fullest = max(stage.fullest_tile.bytes for stage in alone.stages)
        self.assertEqual((alone.fits, fullest), (True, best.fullest_tile_bytes))
        self.assertIsNone(alone.plan)
        self.assertEqual((alone.step.cycles, alone.step.micro_batches), (best.step.cycles, best.step.micro_batches))
        self.assertIsNone(alone.step.streamed_bytes)
        away = popliner.split(profile, num_ipus=4, optimizer_state="off-chip")
        self.assertGreater(away.step.streamed_bytes, 0)
        self.assertGreater(max(stage.fullest_tile.parts.state for stage in away.stages), 0)

    def test_a_model_that_does_not_fit_is_an_answer(self):
        report = popliner.split(FIXTURES / "impossible", num_ipus=4)
        self.assertFalse(report.fits)
        self.assertEqual(report.exit_code, 1)
        limit = report.limit
        over = [one.name for one in report.layers if one.fullest_tile_bytes > limit]
        self.assertEqual([layer.name for layer in report.too_large], over)
        self.assertEqual(report.refusal.reason, "too-large")
        self.assertGreater(report.refusal.smallest_limit, limit)
        for proof in report.refusal.ranges:
            self.assertGreater(proof.bytes, limit)
        self.assertLess(min(stage.fullest_tile.free for stage in report.stages), 0)

    def test_constraints_that_prevent_every_split(self):
        constraints = {"pin": {"0": 0}, "together": [("0", "7")]}
        report = popliner.split(BERT, num_ipus=4, **constraints)
        self.assertFalse(report.fits)
        (without,) = report.refusal.relaxations
        self.assertEqual(without.constraints, ("--together 0,7",))
        self.assertTrue(without.answer.fits)
        self.assertEqual(len(without.answer.stages), 4)
        self.assertEqual(without.answer.stages[0][0], None)

    def test_a_report_is_taken_for_a_file(self):
        before = popliner.split(BERT, num_ipus=4)
        after = popliner.split(BERT, num_ipus=2, compare=before)
        self.assertFalse(after.fits)
        self.assertIn("# compare", after.output)

    def test_the_report_can_be_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "report.json")
            report = popliner.split(BERT, num_ipus=4, export_json=path)
            self.assertEqual(json.loads(path.read_text()), report.json)
        with self.assertRaisesRegex(popliner.Error, "path of a file"):
            popliner.split(BERT, export_json="-")


class Fit(unittest.TestCase):
    def test_a_compiled_pipeline_and_its_prediction(self):
        predicted = popliner.split(FIXTURES / "training-pipeline", num_ipus=4)
        report = popliner.fit(FIXTURES / "training-pipelined", compare=predicted)
        self.assertTrue(report.fits)
        for ipu in report.ipus:
            tile = ipu.fullest_tile
            self.assertEqual(sum(dataclasses.astuple(tile.parts)), tile.bytes)
            self.assertEqual(tile.tile % report.tiles_per_ipu, tile.tile_of_ipu)
        self.assertEqual(report.comparison.matched_by, "layers")
        self.assertEqual(len(report.comparison.stages), len(report.ipus))
        for stage, before in zip(report.comparison.stages, predicted.stages):
            self.assertEqual(stage.predicted, before.fullest_tile.bytes)
            self.assertEqual(stage.recorded, report.ipus[stage.ipu].fullest_tile.bytes)
            self.assertEqual(stage.difference, stage.recorded - stage.predicted)

    def test_without_a_prediction(self):
        report = popliner.fit(FIXTURES / "impossible")
        self.assertFalse(report.fits)
        self.assertIsNone(report.comparison)
        self.assertGreater(report.ipus[0].tiles_over, 0)


class Run(unittest.TestCase):
    def test_text_is_handed_back(self):
        done = popliner.run(BERT, emit="examples", num_ipus=4, quiet=True)
        self.assertEqual(done.exit_code, 0)
        self.assertRegex(done.output, r"(?m)^layers_per_ipu: \[\d+, \d+, \d+, \d+\]$")
        self.assertEqual(done.messages, "")

    def test_colours_are_not_in_messages(self):
        with mock.patch.dict(os.environ, {"CLICOLOR_FORCE": "1"}):
            self.assertNotIn("\x1b", popliner.run(BERT, solve=True).messages)


class Errors(unittest.TestCase):
    def error(self, *arguments, **options):
        with self.assertRaises(popliner.Error) as caught:
            popliner.split(*arguments, **options)
        return str(caught.exception), caught.exception.exit_code

    def test_wrong_usage(self):
        message, code = self.error(BERT, pin={"99": 0})
        self.assertEqual(code, 2)
        self.assertTrue(message.startswith("--pin 99=0: there is no layer 99"), message)
        message, code = self.error(BERT, objective="peek")
        self.assertEqual(code, 2)
        self.assertIn("peek", message)
        self.assertNotIn("Usage", message)

    def test_a_file_that_is_not_there(self):
        for options in [{}, {"compare": "nowhere.pop"}]:
            profile = BERT if options else "nowhere.pop"
            with self.assertRaises(FileNotFoundError) as caught:
                popliner.split(profile, **options)
            error = caught.exception
            self.assertIsInstance(error, popliner.MissingFile)
            self.assertIsInstance(error, popliner.Error)
            self.assertEqual((error.exit_code, error.filename), (3, "nowhere.pop"))
            self.assertIn("nowhere.pop: it cannot be read", str(error))

    def test_what_is_there_and_cannot_be_read_is_not_missing(self):
        with self.assertRaises(popliner.Error) as caught:
            popliner.split(ROOT / "README.md")
        self.assertNotIsInstance(caught.exception, FileNotFoundError)
        self.assertEqual(caught.exception.exit_code, 3)

    def test_a_path_is_never_an_option(self):
        message, code = self.error("--help", "--version")
        self.assertEqual(code, 3)
        self.assertIn("--help", message)

    def test_a_command_that_is_not_there(self):
        with mock.patch.dict(os.environ, {"POPLINER": "/nowhere/popliner"}):
            message, code = self.error(BERT)
        self.assertIsNone(code)
        self.assertIn("/nowhere/popliner", message)

    @unittest.skipIf(os.name == "nt", "scripts are not programs there")
    def test_a_report_of_another_version(self):
        with script('echo \'{"version": 2}\' > "${2#--export-json=}"'):
            message, code = self.error(BERT)
        self.assertIsNone(code)
        self.assertIn("its version is 2", message)

    @unittest.skipIf(os.name == "nt", "scripts are not programs there")
    def test_a_report_of_another_shape_or_none(self):
        for body in ["true", "echo '{' > \"${2#--export-json=}\"",
                     "echo '{\"version\": 2, \"split\": {}}' > \"${2#--export-json=}\""]:
            with script(body):
                message, _ = self.error(BERT)
            self.assertIn("cannot be read", message)

    @unittest.skipIf(os.name == "nt", "scripts are not programs there")
    def test_the_last_error_is_the_message(self):
        said = "WARNING: odd\\nerror: a\\n  b\\n\\nUsage: popliner\\n"
        with script(f"printf '{said}' >&2; exit 4"):
            self.assertEqual(self.error(BERT), ("a\n  b", 4))
        with script("exit 3"):
            self.assertEqual(self.error(BERT), ("popliner ended with exit code 3", 3))


class Found(unittest.TestCase):
    """Where the command is looked for."""

    def test_the_variable_comes_first(self):
        with mock.patch.dict(os.environ, {"POPLINER": "here"}):
            self.assertEqual(_command.command(), "here")

    @unittest.skipIf(os.name == "nt", "scripts are not programs there")
    def test_beside_the_scripts_and_then_on_the_path(self):
        with tempfile.TemporaryDirectory() as folder, without_variable():
            names = [Path(folder, name, "popliner") for name in ("scripts", "path")]
            for name in names:
                name.parent.mkdir()
                name.write_text("#!/bin/sh\n")
                name.chmod(0o755)
            scripts, path = names
            with mock.patch.dict(os.environ, {"PATH": str(path.parent)}):
                with mock.patch.object(sysconfig, "get_path", lambda *_: str(scripts.parent)):
                    self.assertEqual(_command.command(), str(scripts))
                    scripts.unlink()
                    self.assertEqual(_command.command(), str(path))
                    path.unlink()
                    with self.assertRaisesRegex(popliner.Error, "neither beside"):
                        _command.command()


@contextlib.contextmanager
def without_variable():
    with mock.patch.dict(os.environ):
        os.environ.pop("POPLINER", None)
        yield


class Schema(unittest.TestCase):
    """The dataclasses against the schema of the report."""

    #: What the module calls otherwise.
    OTHER_NAMES = {"RecordedTile": "RecordedTileFacts", "Relaxation": "RelaxationFacts",
                   "Plan": "PlanFacts",
                   "Step": "StepFacts"}
    #: Made of several parts of the document.
    OF_DOCUMENT = {"Report", "SplitReport", "FitReport"}
    #: Fields that the document has in another object.
    APART = {"Stage": "StageCycles", "LayerMemory": "LayerCycles"}
    OF_RUN = {"json", "output", "messages", "exit_code", "_page"}

    def setUp(self):
        path = ROOT / "schema" / "report-v1.schema.json"
        self.schema = json.loads(path.read_text(encoding="utf-8"))

    def kinds(self):
        found = {**vars(_report), **vars(_values), **vars(_compiled)}.values()
        return [kind for kind in found if dataclasses.is_dataclass(kind)]

    def held_against(self, kind, schemas):
        known = {name for one in schemas for name in one["properties"]}
        always = {name for one in schemas for name in one["required"]}
        for field in dataclasses.fields(kind):
            where = f"{kind.__name__}.{field.name}"
            if field.name in self.OF_RUN and kind.__name__ in self.OF_DOCUMENT:
                continue
            self.assertIn(field.name, known, where)
            if field.default is dataclasses.MISSING:
                self.assertIn(field.name, always, f"{where} needs a default")

    def test_every_field_is_in_it(self):
        definitions = self.schema["$defs"]
        kinds = [kind for kind in self.kinds() if kind.__name__ not in self.OF_DOCUMENT]
        self.assertGreater(len(kinds), 10)
        for kind in kinds:
            name = self.OTHER_NAMES.get(kind.__name__, kind.__name__)
            apart = [self.APART[name]] if name in self.APART else []
            self.held_against(kind, [definitions[one] for one in [name, *apart]])
        self.held_against(_report.SplitReport, [self.schema, definitions["Split"]])
        self.held_against(_report.FitReport, [self.schema, definitions["Fit"]])

    def test_all_of_them_can_be_imported(self):
        for kind in self.kinds():
            self.assertIs(getattr(popliner, kind.__name__), kind)
        self.assertEqual(sorted(popliner.__all__), popliner.__all__)

    def test_unknown_fields_are_passed_over(self):
        found = {"stage": 1, "bytes": 5, "later": {"more": 1}, "layer_from": None}
        self.assertEqual(_build.build(popliner.Cut, found), popliner.Cut(1, 5))

    def test_every_field_is_explained_with_its_unit(self):
        for kind in [*self.kinds(), popliner.Completed]:
            said = re.sub(r"\s+", " ", kind.__doc__)
            own = kind.__dict__.get("__annotations__", {})
            for field in dataclasses.fields(kind):
                if field.name not in own or field.name.startswith("_"):
                    continue
                where = f"{kind.__name__}.{field.name}"
                name = re.search(rf"``{field.name}``(.*?)(?=$| - ``)", said)
                self.assertTrue(name, where)
                if "Bytes" in field.type:
                    self.assertRegex(name.group(1) + said.split(" - ")[0], "bytes", where)
                elif field.name in ("tile", "peak_step", "step", "stage", "ipu"):
                    self.assertRegex(name.group(1), "number", where)
                elif "cycles" in field.name:
                    self.assertRegex(name.group(1), "cycles", where)


class Version(unittest.TestCase):
    def test_it_is_that_of_the_command_and_of_cargo(self):
        text = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
        cargo = re.search(r'^version = "(.*)"$', text, re.M).group(1)
        self.assertEqual(popliner.__version__, cargo)
        done = subprocess.run([_command.command(), "--version"], stdout=subprocess.PIPE)
        self.assertEqual(done.stdout.decode().split(), ["popliner", cargo])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
