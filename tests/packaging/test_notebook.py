"""What a notebook shows of reports: texts, HTML, pages, tables for pandas."""

import copy
import dataclasses
import html
import html.parser
import os
import pickle
import re
import shutil
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import popliner
from popliner import _texts
from support import BERT, FIXTURES, TOO_LARGE, inside, needed


class Read(html.parser.HTMLParser):
    """What a browser would make of HTML: tags that are closed, texts and links."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.links, self.cells, self.text = [], [], [], [], ""
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.tags.append(tag)
        self.links += [value for name, value in attributes if name == "href"]
        if tag == "td":
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self.text += data
        if self.open[-1] == "td":
            self.cells[-1] += data


def shown(report):
    return Read(report._repr_html_())


class Texts(unittest.TestCase):
    def test_they_are_short(self):
        report = popliner.split(BERT, num_ipus=4, sweep=True)
        compiled = popliner.fit(FIXTURES / "training-pipelined")
        for one in (
            [report, compiled, *report.stages, *report.layers, *report.cuts]
            + [*report.sweep.rows, *compiled.ipus, report.stages[0].fullest_tile.parts]
        ):
            self.assertLess(len(repr(one)), 160, repr(one))
            self.assertNotIn("\n", repr(one))

    def test_they_have_the_figures(self):
        report = popliner.split(BERT, num_ipus=4)
        fullest = max(report.stages, key=lambda stage: stage.fullest_tile.bytes)
        tile = fullest.fullest_tile
        of_limit = f"tile {tile.tile} has {tile.bytes:,} of {tile.limit:,} bytes"
        self.assertEqual(repr(report), f"<SplitReport: The model fits on 4 IPUs; {of_limit}>")
        names = " ".join(name or "In" for name in fullest.layers)
        self.assertEqual(repr(fullest), f"<Stage {fullest.stage}: {names}; {of_limit}>")
        none = dataclasses.replace(tile.parts, variables=0)
        self.assertNotIn("variables", repr(none))

    def test_many_layers_are_runs_of_numbers_or_their_ends(self):
        names = (None, *map(str, range(20)))
        self.assertEqual(_texts.layers(names), "In 0-19")
        names = (None, *(f"{number}.mlp" for number in range(20)))
        self.assertEqual(_texts.layers(names), "In … 19.mlp (21)")

    def test_hidden_characters_are_written_out(self):
        self.assertEqual(_texts.layers(("a\n\u202eb",)), "a\\u000a\\u202eb")


class Html(unittest.TestCase):
    def both_forms(self, *arguments, **options):
        """A report in the notebook, and in Markdown."""
        function = options.pop("function", popliner.split)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "report.md")
            report = function(*arguments, export_markdown=path, **options)
            return shown(report), path.read_text(encoding="utf-8")

    def test_verdict_and_figures_are_those_of_the_command(self):
        compiled = FIXTURES / "training-pipelined"
        for arguments, options in [
            ([BERT], {"num_ipus": 4}),
            ([BERT], {"num_ipus": 1}),
            ([BERT], {"num_ipus": 3, "memory_model": "classic"}),
            ([TOO_LARGE], {"num_ipus": 2}),
            ([TOO_LARGE], {"num_ipus": 2, "solver": "greedy"}),
            ([BERT], {"num_ipus": 2, "splits": ["1", "3", "5"]}),
            ([compiled], {"function": popliner.fit}),
            ([compiled], {"function": popliner.fit, "mem_per_tile": 1000}),
            ([TOO_LARGE], {"function": popliner.fit}),
        ]:
            found, markdown = self.both_forms(*arguments, **options)
            heading = markdown.splitlines()[0][3:]
            self.assertTrue(found.text.startswith(heading), (found.text[:80], heading))
            for row in self.rows(markdown):
                for name in ("Layers", "Peak memory", "Of the limit"):
                    self.assertIn(row[name], found.cells, (options, row))

    @staticmethod
    def rows(markdown):
        """The rows of the table of stages or IPUs."""
        table = re.search(r"^\| (?:Stage|IPU) \|.*?(?=\n\n)", markdown, re.M | re.S)
        found = table.group().splitlines() if table else []
        found = [re.sub("</?code>", "", html.unescape(line)) for line in found]
        cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in found]
        return [dict(zip(cells[0], row)) for row in cells[2:]]

    def test_a_sweep_and_messages_are_in_it(self):
        report = popliner.split(BERT, num_ipus=4, sweep=True)
        found = shown(report)
        self.assertEqual(found.tags.count("table"), 2)
        best = report.sweep.rows[-1]
        self.assertIn(f"{best.fullest_tile_bytes:,}", found.cells)
        self.assertIn("SUCCESS: [ In", found.text)
        quiet = shown(popliner.split(BERT, num_ipus=4, quiet=True))
        self.assertNotIn("pre", quiet.tags)

    def test_stages_have_bars_and_times(self):
        report = popliner.split(FIXTURES / "training-pipeline", num_ipus=4)
        found = shown(report)
        for stage in report.stages:
            self.assertIn(f"{stage.micro_batch_milliseconds:.3f}", found.cells)
        self.assertEqual(report._repr_html_().count("linear-gradient"), len(report.stages))
        over = shown(popliner.split(BERT, num_ipus=1))
        self.assertEqual(over.tags.count("table"), 1)

    def test_a_plan_is_in_it(self):
        report = popliner.split(FIXTURES / "training-pipeline", num_ipus=4, plan=True)
        found = shown(report)
        self.assertEqual(found.tags.count("table"), 2)
        for row in report.plan.rows:
            self.assertLess(len(repr(row)), 160)
            self.assertIn(f"{row.step.milliseconds / row.step.micro_batches:.3f}", found.cells)

    def test_warnings_are_in_it(self):
        report = popliner.split(BERT, num_ipus=4)
        odd = dataclasses.replace(report, warnings=("this is <odd>",))
        self.assertIn("warning: this is <odd>", shown(odd).text)

    def test_names_stay_text(self):
        hostile = '</td><script>alert("x")</script>&lt;'
        report = popliner.split(BERT, num_ipus=4)
        stage = dataclasses.replace(report.stages[0], layers=(None, hostile))
        report = dataclasses.replace(report, stages=(stage,), messages=hostile)
        report._page.path = os.path.abspath(hostile.replace("/", ""))
        found = shown(report)
        self.assertNotIn("script", found.tags)
        self.assertIn(f"In {hostile}", found.cells)


class Pages(unittest.TestCase):
    def test_a_page_that_was_exported_is_linked(self):
        with tempfile.TemporaryDirectory() as folder, inside(folder):
            report = popliner.split(BERT, num_ipus=4, export_html="a page.html")
            self.assertEqual(Path(report.page).resolve(), Path("a page.html").resolve())
            self.assertEqual(shown(report).links, ["./a%20page.html"])
            os.mkdir("other")
            with inside("other"):
                self.assertEqual(shown(report).links, [Path(report.page).as_uri()])

    def test_save_html_writes_the_page_of_this_report(self):
        with tempfile.TemporaryDirectory() as folder, inside(folder):
            shutil.copytree(BERT.parent, "report")
            report = popliner.split("report", num_ipus=4, pin={"0": 0})
            self.assertIsNone(report.page)
            self.assertEqual(shown(report).links, [])
            os.mkdir("other")
            with inside("other"):
                self.assertEqual(report.save_html("page.html"), Path("page.html"))
                self.assertEqual(shown(report).links, ["./page.html"])
                page = Path("page.html").read_text(encoding="utf-8")
            self.assertIn("The model fits on 4 IPUs", page)
            self.assertIn("pin", page)
            self.assertEqual(sorted(os.listdir(".")), ["other", "report"])

    def test_save_html_of_a_compilation(self):
        predicted = popliner.split(FIXTURES / "training-pipeline", num_ipus=4)
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder, "page.html")
            report = popliner.fit(FIXTURES / "training-pipelined", compare=predicted)
            report.save_html(page)
            self.assertIn("The compiled model fits", page.read_text(encoding="utf-8"))

    def test_a_page_of_other_files_is_not_written(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            for name in ("profile.pop", "debug.cbor"):
                shutil.copy(BERT.parent / name, folder / name)
            report = popliner.split(folder, num_ipus=4)
            for name in ("profile.pop", "debug.cbor"):
                shutil.copy(TOO_LARGE / name, folder / name)
            with self.assertRaisesRegex(popliner.Error, "no longer what it was"):
                report.save_html(folder / "page.html")
            (folder / "profile.pop").unlink()
            with self.assertRaises(popliner.Error):
                report.save_html(folder / "page.html")
            shutil.rmtree(folder)
            with self.assertRaises(FileNotFoundError):
                report.save_html("page.html")
            self.assertIsNone(report.page)
            folder.mkdir()

    def test_reports_can_be_kept_and_copied(self):
        report = popliner.split(BERT, num_ipus=4, sweep=True)
        for again in (copy.deepcopy(report), pickle.loads(pickle.dumps(report))):
            self.assertEqual(again, report)
            with tempfile.TemporaryDirectory() as folder:
                self.assertTrue(again.save_html(Path(folder, "page.html")).is_file())


class Dataframes(unittest.TestCase):
    def setUp(self):
        self.pandas = needed(self, "pandas")

    def test_of_stages(self):
        report = popliner.split(BERT, num_ipus=4)
        frame = report.to_dataframe(all_columns=True)
        self.assertEqual(len(frame), len(report.stages))
        for row, stage in zip(frame.to_dict("records"), report.stages):
            tile = stage.fullest_tile
            self.assertEqual(row["layers"], _texts.layers(stage.layers))
            self.assertEqual(row["layer_from"], stage.layer_from or "In")
            self.assertEqual(row["micro_batch_milliseconds"], stage.micro_batch_milliseconds)
            self.assertEqual((row["fullest_tile"], row["fullest_tile_bytes"]), (tile.tile, tile.bytes))
            self.assertEqual(row["fullest_tile_peak_step"], tile.peak_step)
            self.assertEqual(row["parts_vertex_code"], stage.parts.vertex_code)
            self.assertEqual(row["fullest_tile_parts_gaps"], tile.parts.gaps)
        self.assertEqual(str(frame["total"].dtype), "int64")

    def test_whole_numbers_stay_whole_where_some_are_missing(self):
        report = popliner.split(BERT, num_ipus=4)
        first = report.stages[0]
        tile = dataclasses.replace(first.fullest_tile, peak_step=None)
        stage = dataclasses.replace(first, fullest_tile=tile)
        report = dataclasses.replace(report, stages=(stage, *report.stages[1:]))
        steps = report.to_dataframe()["fullest_tile_peak_step"]
        self.assertIs(steps[0], self.pandas.NA)
        self.assertEqual(steps[1], report.stages[1].fullest_tile.peak_step)
        self.assertEqual(str(steps.dtype), "Int64")

    def test_of_layers_cuts_and_sweeps(self):
        report = popliner.split(BERT, num_ipus=4, sweep=True)
        for rows, wanted in [
            ("layers", report.layers), ("cuts", report.cuts), ("sweep", report.sweep.rows)
        ]:
            frame = report.to_dataframe(rows, all_columns=True)
            names = [field.name for field in dataclasses.fields(wanted[0])]
            texts = ("parts", "stages", "step", "name", "layer_from")
            for name in (name for name in names if name not in texts):
                found = [None if self.pandas.isna(value) else value for value in frame[name]]
                self.assertEqual(found, [getattr(one, name) for one in wanted], name)
        without = popliner.split(BERT, num_ipus=4)
        with self.assertRaisesRegex(ValueError, "sweep=True"):
            without.to_dataframe("sweep")

    def test_usual_columns_can_be_looked_at(self):
        predicted = popliner.split(FIXTURES / "training-pipeline", num_ipus=4, sweep=True, plan=True)
        compiled = popliner.fit(FIXTURES / "training-pipelined", compare=predicted)
        kinds = [(predicted, kind) for kind in ("stages", "layers", "cuts", "sweep", "plan")]
        for report, kind in [*kinds, (compiled, "ipus"), (compiled, "comparison")]:
            frame = report.to_dataframe(kind)
            self.assertLessEqual(len(frame.columns), 12, kind)
            for name in ("layers", "stages", "name", "layer_from"):
                for value in frame.get(name, ()):
                    self.assertIsInstance(value, str, (kind, name))
        self.assertEqual(predicted.to_dataframe("layers")["name"][0], "In")
        self.assertTrue(predicted.to_dataframe("plan")["stages"][0].startswith("[ In 0"))
        self.assertTrue((predicted.to_dataframe()["micro_batch_milliseconds"] > 0).all())

    def test_of_a_plan(self):
        report = popliner.split(FIXTURES / "training-pipeline", num_ipus=4, plan=True)
        frame = report.to_dataframe("plan")
        for name in ("ipus", "schedule", "fullest_tile_bytes"):
            wanted = [getattr(row, name) for row in report.plan.rows]
            self.assertEqual(list(frame[name]), wanted, name)
        wanted = [row.step.milliseconds for row in report.plan.rows]
        self.assertEqual(list(frame["step_milliseconds"]), wanted)
        self.assertEqual(str(frame["step_milliseconds"].dtype), "float64")
        with self.assertRaisesRegex(ValueError, "plan=True"):
            popliner.split(BERT, num_ipus=4).to_dataframe("plan")

    def test_of_a_compilation(self):
        predicted = popliner.split(FIXTURES / "training-pipeline", num_ipus=4)
        compiled = FIXTURES / "training-pipelined"
        report = popliner.fit(compiled, compare=predicted)
        free = [ipu.fullest_tile.free for ipu in report.ipus]
        self.assertEqual(list(report.to_dataframe()["fullest_tile_free"]), free)
        difference = [stage.difference for stage in report.comparison.stages]
        self.assertEqual(list(report.to_dataframe("comparison")["difference"]), difference)
        with self.assertRaisesRegex(ValueError, "compare="):
            popliner.fit(compiled).to_dataframe("comparison")

    def test_what_is_empty_has_its_columns(self):
        report = dataclasses.replace(popliner.split(BERT, num_ipus=4), cuts=())
        frame = report.to_dataframe("cuts")
        self.assertEqual((len(frame), str(frame["bytes"].dtype)), (0, "int64"))


class WithoutPandas(unittest.TestCase):
    def test_it_is_named_and_nothing_else_needs_it(self):
        with mock.patch.dict("sys.modules", {"pandas": None}):
            report = popliner.split(BERT, num_ipus=4)
            self.assertIn("<table>", report._repr_html_())
            with self.assertRaisesRegex(ImportError, "pandas"):
                report.to_dataframe()


#: What the tabulator key finds.
COMPLETE = """
from IPython.core.completer import provisionalcompleter
typed = "popliner.split('profile.pop', num_ip"
with provisionalcompleter():
    found = [one.text for one in get_ipython().Completer.completions(typed, len(typed))]
found
"""


class Kernel(unittest.TestCase):
    """A notebook that Jupyter's kernel runs."""

    def test_a_notebook(self):
        # What the next version of Jupyter does by itself; without it this one warns.
        os.environ.setdefault("JUPYTER_PLATFORM_DIRS", "1")
        nbclient = needed(self, "nbclient", "ipykernel", "nbformat")
        import nbformat

        cells = [
            "import popliner",
            f"report = popliner.split({str(BERT)!r}, num_ipus=4, sweep=True)\nreport",
            "report.stages",
            "report.save_html('page.html')\nreport",
            f"popliner.split({str(BERT)!r}, nmu_ipus=4)",
            COMPLETE,
        ]
        with tempfile.TemporaryDirectory() as folder:
            made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(one) for one in cells])
            client = nbclient.NotebookClient(
                made, timeout=600, kernel_name="python3", allow_errors=True,
                resources={"metadata": {"path": folder}},
            )  # fmt: skip
            client.execute()
            self.assertTrue(Path(folder, "page.html").is_file())
        _, report, stages, page, wrong, completed = [cell.outputs for cell in made.cells]
        found = Read(report[0].data["text/html"])
        self.assertTrue(found.text.startswith("The model fits on 4 IPUs"))
        self.assertTrue(report[0].data["text/plain"].startswith("<SplitReport: The model fits"))
        self.assertTrue(stages[0].data["text/plain"].startswith("(<Stage 0: In"))
        self.assertEqual(Read(page[0].data["text/html"]).links, ["./page.html"])
        self.assertEqual(completed[0].data["text/plain"], "['num_ipus=']")
        self.assertEqual((wrong[0].ename, "num_ipus" in wrong[0].evalue), ("TypeError", True))


if __name__ == "__main__":
    unittest.main()
