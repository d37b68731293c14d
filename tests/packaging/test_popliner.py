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
from popliner import _command, _report

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures"
BERT = FIXTURES / "popart-bert-inference" / "profile.pop"


def lines(**options):
    """The options as the command gets them."""
    return list(_command._arguments(options, "folder"))


class Split(unittest.TestCase):
    def test_a_model_that_fits(self):
        report = popliner.split(BERT, num_ipus=4)
        self.assertIsInstance(report, popliner.SplitReport)
        self.assertTrue(report.fits)
        self.assertEqual((report.exit_code, report.max_stages, report.limit), (0, 4, 638976))
        layers = [(None, "0", "1"), ("2", "3", "4"), ("5", "6"), ("7", "Out")]
        self.assertEqual([stage.layers for stage in report.stages], layers)
        fullest = [(s.fullest_tile.tile, s.fullest_tile.bytes) for s in report.stages]
        self.assertEqual(fullest, [(0, 584911), (0, 544662), (1, 443433), (0, 349544)])
        for stage in report.stages:
            tile = stage.fullest_tile
            self.assertEqual(tile.bytes + tile.free, tile.limit)
            self.assertEqual(sum(dataclasses.astuple(tile.parts)), tile.bytes)
        self.assertEqual([cut.after_stage for cut in report.cuts], [0, 1, 2])
        self.assertEqual([cut.layer_before for cut in report.cuts], ["1", "4", "6"])
        self.assertIsNone(report.refusal)
        self.assertEqual(report.json["format"], "popliner-report")
        self.assertEqual(json.loads(report.output)[0]["max_tile"], 0)
        self.assertIn("SUCCESS: [ In 0 1 | 2 3 4 | 5 6 | 7 Out ]", report.messages)

    def test_a_model_that_does_not_fit_is_an_answer(self):
        report = popliner.split(FIXTURES / "impossible", num_ipus=4)
        self.assertFalse(report.fits)
        self.assertEqual(report.exit_code, 1)
        self.assertEqual([layer.name for layer in report.too_large], [None, "0", "1", "Out"])
        self.assertEqual(report.refusal.reason, "too-large")
        self.assertEqual(report.refusal.smallest_limit, 477969)
        (proof,) = report.refusal.ranges
        self.assertEqual((proof.layers, proof.tile, proof.bytes), ((None,), 1, 477969))
        self.assertLess(report.stages[0].fullest_tile.free, 0)

    def test_constraints_that_prevent_every_split(self):
        constraints = {"pin": {"0": 0}, "together": [("0", "7")]}
        report = popliner.split(BERT, num_ipus=4, **constraints)
        self.assertFalse(report.fits)
        (without,) = report.refusal.relaxations
        self.assertEqual(without.constraints, ("--together 0,7",))
        self.assertEqual(len(without.stages), 4)
        self.assertEqual(without.stages[0][0], None)

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
        report = popliner.fit(FIXTURES / "training-pipelined", against=predicted)
        self.assertTrue(report.fits)
        self.assertEqual(report.tiles_per_ipu, 8)
        fullest = [ipu.fullest_tile.bytes for ipu in report.ipus]
        self.assertEqual(fullest, [243878, 212824, 238451, 188350])
        for ipu in report.ipus:
            tile = ipu.fullest_tile
            self.assertEqual(sum(dataclasses.astuple(tile.parts)), tile.bytes)
            self.assertEqual(tile.tile % 8, tile.tile_of_ipu)
        self.assertEqual(report.ipus[1].layers, ("1", "2"))
        self.assertEqual(report.against.matched_by, "layers")
        self.assertEqual([s.difference for s in report.against.stages], [492, 848, 1204, -72])

    def test_without_a_prediction(self):
        report = popliner.fit(FIXTURES / "impossible")
        self.assertFalse(report.fits)
        self.assertIsNone(report.against)
        self.assertGreater(report.ipus[0].tiles_over, 0)


class Run(unittest.TestCase):
    def test_text_is_handed_back(self):
        done = popliner.run(BERT, emit="layers-per-ipu", num_ipus=4, quiet=True)
        self.assertEqual(done.exit_code, 0)
        self.assertIn("layers_per_ipu: [2, 3, 2, 1]\n", done.output)
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
        message, code = self.error(BERT, nmu_ipus=4)
        self.assertEqual(code, 2)
        self.assertIn("'--nmu-ipus'", message)
        self.assertIn("'--num-ipus'", message)
        self.assertNotIn("Usage", message)
        message, code = self.error(BERT, pin={"99": 0})
        self.assertEqual(code, 2)
        self.assertTrue(message.startswith("--pin 99=0: there is no layer 99"), message)

    def test_a_file_that_is_not_there(self):
        message, code = self.error("nowhere.pop", "nowhere.cbor")
        self.assertEqual(code, 3)
        self.assertIn("nowhere.pop", message)

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
                     "echo '{\"version\": 1, \"split\": {}}' > \"${2#--export-json=}\""]:
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


@contextlib.contextmanager
def script(body):
    """A command that does this instead."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "popliner")
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        with mock.patch.dict(os.environ, {"POPLINER": str(path)}):
            yield


class Options(unittest.TestCase):
    def test_names_and_values(self):
        self.assertEqual(lines(num_ipus=4, reserve="5%"), ["--num-ipus=4", "--reserve=5%"])
        self.assertEqual(lines(explain=True, sweep=False, pin=None), ["--explain"])
        self.assertEqual(lines(calibration=Path("a", "b")), [f"--calibration={Path('a', 'b')}"])
        self.assertEqual(lines(module="--help"), ["--module=--help"])

    def test_lists(self):
        self.assertEqual(lines(mem_per_tile=[1, 2]), ["--mem-per-tile=1,2"])
        self.assertEqual(lines(check_splits=["In", "a,b"]), ["--check-splits=In,a\\,b"])
        self.assertEqual(lines(cut_after=("3", "7")), ["--cut-after=3", "--cut-after=7"])
        self.assertEqual(lines(pin={"0": 0, "7": 3}), ["--pin=0=0", "--pin=7=3"])
        two = ["--together=0,1", "--together=4,5"]
        self.assertEqual(lines(together=[("0", "1"), ("4", "5")]), two)
        self.assertEqual(lines(together="0,1"), ["--together=0,1"])
        self.assertEqual(lines(untie=[]), [])

    def test_those_that_may_be_repeated(self):
        values = {"emit": "layers-per-ipu", "pin": "0=0", "together": "0,1", "untie": "all"}
        for name in popliner.REPEATED:
            value = values.get(name, "3")
            popliner.run(BERT, **{name: [value, value]}, solve=True)
        self.assertEqual(popliner.REPEATED, self.repeated_in_help())

    @staticmethod
    def repeated_in_help():
        """Those of which the help says so, in their own text or in that of another."""
        done = subprocess.run([_command.command(), "--help"], stdout=subprocess.PIPE)
        found = set()
        for own in re.split(r"\n {6}(?=--[a-z])", done.stdout.decode()):
            said = re.search(r"may be given several times([^.]*)", " ".join(own.split()), re.I)
            if said:
                found.update(re.findall(r"--[a-z-]+", own.split()[0] + said.group(1)))
        return {name[2:].replace("-", "_") for name in found}

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

    OTHER_NAMES = {"RecordedTile": "RecordedTileFacts", "Relaxation": "RelaxationFacts"}
    #: Made of several parts of the document.
    OF_DOCUMENT = {"Report", "SplitReport", "FitReport"}
    OF_RUN = {"json", "output", "messages", "exit_code"}

    def setUp(self):
        path = ROOT / "schema" / "report-v1.schema.json"
        self.schema = json.loads(path.read_text(encoding="utf-8"))

    def kinds(self):
        found = vars(_report).values()
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
            self.held_against(kind, [definitions[name]])
        self.held_against(_report.SplitReport, [self.schema, definitions["Split"]])
        self.held_against(_report.FitReport, [self.schema, definitions["Fit"]])

    def test_all_of_them_can_be_imported(self):
        for kind in self.kinds():
            self.assertIs(getattr(popliner, kind.__name__), kind)
        self.assertEqual(sorted(popliner.__all__), popliner.__all__)

    def test_unknown_fields_are_passed_over(self):
        found = {"after_stage": 0, "bytes": 5, "later": {"more": 1}, "layer_after": None}
        self.assertEqual(_report.build(popliner.Cut, found), popliner.Cut(0, 5))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
