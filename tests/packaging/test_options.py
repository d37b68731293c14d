"""The keywords of the Python module against the options of the command."""

import inspect
import re
import subprocess
import typing
import unittest
from pathlib import Path

import popliner
from popliner import _command, _options
from support import BERT

#: What is about the command itself, and needs no profile.
OF_COMMAND = {"help", "version", "generate"}

#: A value for each option that takes one, by what the help calls it.
VALUES = {
    "AMOUNT": "1", "B": "1", "BYTES": "1", "COUNTS": "1", "FILE": "file", "G": "1",
    "GB": "1", "LAYER": "0", "LAYER,...": "1", "LAYER,LAYER": "0,1", "LAYER=IPU": "0=0",
    "LIST": "0", "N": "1", "NAME": "name", "R": "1", "REGEX": "a(.)", "SIZE[=PROFILE]": "4",
    "VALUE[=PROFILE]": "0.6", "WEIGHT": "all",
}  # fmt: skip

#: What an option acts on, where that is not the result of the function itself.
COMPANY = {
    "split": {
        "format": ["--sweep"],
        "streaming_bandwidth": ["--plan"],
        "module_root": ["--emit=keras"],
        "tiles": ["--memory-totals"],
    },
    "fit": {},
}


def lines(**options):
    """The options as the command gets them."""
    return list(_command._arguments(options, "folder"))


class InHelp:
    """An option as `--help` has it."""

    def __init__(self, head, text):
        self.name = re.search(r"--([a-z0-9-]+)", head).group(1).replace("-", "_")
        value = re.search(r"<(.*)>", head)
        self.value = value and value.group(1)
        self.is_counted = head.endswith("...")
        self.words = set(re.findall(r"^ {10}- ([\w-]+):", text, re.M))
        self.text = " ".join(text.split())

    def line(self):
        """Given on a command line, as far as it can be said from the help."""
        option = "--" + self.name.replace("_", "-")
        if self.value is None:
            return option
        return f"{option}={min(self.words) if self.words else VALUES[self.value]}"


def in_help():
    done = subprocess.run([_command.command(), "--help"], stdout=subprocess.PIPE)
    text = done.stdout.decode().partition("\nOptions that act only on certain results")[0]
    found = re.split(r"^ {2,6}((?:-\w, )?--[a-z0-9-]+(?: <.*>)?(?:\.\.\.)?)$", text, flags=re.M)
    options = [InHelp(*pair) for pair in zip(found[1::2], found[2::2])]
    return {one.name: one for one in options if one.name not in OF_COMMAND}


def words(kind):
    """The words that a type has, wherever they are in it."""
    if typing.get_origin(kind) is typing.Literal:
        return set(typing.get_args(kind))
    return {word for part in typing.get_args(kind) for word in words(part)}


class Drift(unittest.TestCase):
    """Neither the module nor the command has an option that the other lacks."""

    @classmethod
    def setUpClass(cls):
        cls.help = in_help()

    def test_all_options_are_keywords(self):
        self.assertGreater(len(self.help), 40)
        self.assertEqual(set(_options.names("run")), set(self.help))

    def test_those_without_a_value_are_true_or_false(self):
        kinds = popliner.RunOptions.__annotations__
        flags = {name for name, kind in kinds.items() if bool in typing.get_args(kind)}
        self.assertEqual(flags, {one.name for one in self.help.values() if not one.value})
        counted = {one.name for one in self.help.values() if one.is_counted}
        self.assertEqual(_options.COUNTED, counted)

    def test_words_are_those_of_the_help(self):
        for name, kind in popliner.RunOptions.__annotations__.items():
            others = {"num_ipus": {"auto"}}
            own = words(kind) - others.get(name, set())
            self.assertEqual(own, self.help[name].words, name)
        self.assertIn("auto", self.help["num_ipus"].text)

    def test_files_are_those_of_the_help(self):
        files = {one.name for one in self.help.values() if one.value == "FILE"}
        self.assertEqual(_options.READ | _options.WRITTEN, files)
        self.assertFalse(_options.READ & _options.WRITTEN)
        for name in files:
            is_read = bool(re.search(r"^(Compare|Add)", self.help[name].text))
            self.assertEqual(name in _options.READ, is_read, name)

    def test_each_function_has_what_the_command_takes_with_it(self):
        """Without a profile, what the command takes ends with 3 and not with 2."""
        for function, result in [("split", "--solve"), ("fit", "--fit")]:
            for name in self.help.keys() - {"solve", "fit"}:
                own = COMPANY[function].get(name, [])
                line = [result, self.help[name].line(), *own, "nowhere.pop"]
                done = subprocess.run([_command.command(), *line], stderr=subprocess.DEVNULL)
                is_taken = name in _options.names(function)
                self.assertEqual(done.returncode, 3 if is_taken else 2, line)

    def test_those_that_may_be_repeated(self):
        self.assertEqual(popliner.REPEATED, self.repeated_in_help())
        for name in popliner.REPEATED:
            option = self.help[name].line().partition("=")[2]
            # Only one setting is that of the first profile.
            times = 1 if "PROFILE" in (self.help[name].value or "") else 2
            popliner.run(BERT, **{name: [option] * times}, solve=True)

    def test_settings_lead_to_their_profiles(self):
        given = lines(amp={0.6: None, 0.3: Path("amp03")}, micro_batch=4)
        self.assertEqual(given, ["--amp=0.6", "--amp=0.3=amp03", "--micro-batch=4"])

    def repeated_in_help(self):
        """Those of which the help says so, in their own text or in that of another."""
        found = set()
        for name, option in self.help.items():
            said = re.search(r"may be given several times([^.]*)", option.text, re.I)
            if said:
                others = re.findall(r"--([a-z-]+)", said.group(1))
                found.update([name, *(other.replace("-", "_") for other in others)])
        return found

    def test_of_both_kinds_the_types_are_one(self):
        for kind in (popliner.SplitOptions, popliner.FitOptions):
            for name, own in kind.__annotations__.items():
                self.assertEqual(own, popliner.RunOptions.__annotations__[name], name)


class Unknown(unittest.TestCase):
    def error(self, function, **options):
        with self.assertRaises(TypeError) as caught:
            function(BERT, **options)
        return str(caught.exception)

    def test_the_nearest_is_named(self):
        message = "split() has no option 'nmu_ipus': did you mean 'num_ipus'?"
        self.assertEqual(self.error(popliner.split, nmu_ipus=4), message)
        said = self.error(popliner.run, **{"num-ipus": 4})
        self.assertEqual(said, "run() has no option 'num-ipus': did you mean 'num_ipus'?")
        self.assertIn("popliner --help", self.error(popliner.fit, zzz=1))

    def test_the_function_that_has_it_is_named(self):
        self.assertIn("split() has it", self.error(popliner.fit, num_ipus=4))
        self.assertIn("run() has it", self.error(popliner.split, solve=False))

    def test_nothing_runs(self):
        with self.assertRaises(TypeError):
            popliner.split("nowhere.pop", nmu_ipus=4)

    def test_functions_show_their_keywords(self):
        for function in (popliner.split, popliner.fit, popliner.run):
            shown = list(inspect.signature(function).parameters)
            wanted = ["profile", "debug", *_options.names(function.__name__)]
            self.assertEqual(shown, wanted)


class Arguments(unittest.TestCase):
    def test_names_and_values(self):
        self.assertEqual(lines(num_ipus=4, reserve="5%"), ["--num-ipus=4", "--reserve=5%"])
        self.assertEqual(lines(explain=True, sweep=False, pin=None), ["--explain"])
        self.assertEqual(lines(compare=Path("a", "b")), [f"--compare={Path('a', 'b')}"])
        self.assertEqual(lines(module_root="--help"), ["--module-root=--help"])

    def test_several_say_more(self):
        self.assertEqual(lines(verbose=2), ["--verbose", "--verbose"])
        self.assertEqual(lines(verbose=True), ["--verbose"])
        self.assertEqual(lines(verbose=None) + lines(verbose=0), [])
        self.assertGreater(
            len(popliner.run(BERT, solve=True, verbose=2).messages),
            len(popliner.run(BERT, solve=True).messages),
        )

    def test_lists(self):
        self.assertEqual(lines(mem_per_tile=[1, 2]), ["--mem-per-tile=1,2"])
        self.assertEqual(lines(splits=["3", "a,b"]), ["--splits=3,a\\,b"])
        self.assertEqual(lines(cut_before=("3", "7")), ["--cut-before=3", "--cut-before=7"])
        self.assertEqual(lines(pin={"0": 0, "7": 3}), ["--pin=0=0", "--pin=7=3"])
        two = ["--together=0,1", "--together=4,5"]
        self.assertEqual(lines(together=[("0", "1"), ("4", "5")]), two)
        self.assertEqual(lines(together="0,1"), ["--together=0,1"])
        self.assertEqual(lines(untie=[]), [])


if __name__ == "__main__":
    unittest.main()
