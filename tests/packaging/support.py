"""What the tests of the Python module share."""

import contextlib
import importlib
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import popliner

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures"
BERT = FIXTURES / "popart-bert-inference" / "profile.pop"
#: A model that fits on four IPUs, and one that fits on none.
TOO_LARGE = FIXTURES / "impossible"

# Tests run in other folders, and start programs that import the module.
PACKAGES = Path(popliner.__file__).resolve().parents[1]
os.environ["PYTHONPATH"] = str(PACKAGES)
if os.environ.get("POPLINER"):
    os.environ["POPLINER"] = os.path.abspath(os.environ["POPLINER"])


def skip(test, why):
    """Skips a test, which `.ci/run` names at the end (SKIPPED_LIST)."""
    path = os.environ.get("SKIPPED_LIST")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{test.id()}: {why}\n")
    raise unittest.SkipTest(why)


def needed(test, *names):
    """Packages that need not be there: the first, or the test is skipped."""
    try:
        return [importlib.import_module(name) for name in names][0]
    except ImportError as why:
        skip(test, f"{why.name} is not installed (pip install {why.name})")


@contextlib.contextmanager
def script(body):
    """A command that does this instead."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "popliner")
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        with mock.patch.dict(os.environ, {"POPLINER": str(path)}):
            yield


@contextlib.contextmanager
def inside(folder):
    """Runs in this folder."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
