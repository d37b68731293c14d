# Runs what was emitted with a builder that knows where it is, and prints the
# session options and, for each part of the model, its virtual graph and
# pipeline stage.
import ast
import contextlib
import json
import sys
import types


class Builder:
    def __init__(self):
        self.scopes = {}

    def scope(self, kind, number):
        @contextlib.contextmanager
        def inside():
            assert kind not in self.scopes, "scopes cannot be nested"
            self.scopes[kind] = number
            yield
            del self.scopes[kind]

        return inside()

    def virtualGraph(self, number):
        return self.scope("virtualGraph", number)

    def pipelineStage(self, number):
        return self.scope("pipelineStage", number)


source = sys.stdin.read()
lines = source.splitlines()
tree = ast.parse(source)
parts = []
builder = Builder()
for node in tree.body:
    if isinstance(node, ast.With):
        # In place of the dots: a note of the part and of where it is built.
        name = lines[node.body[0].lineno - 1].split("# ", 1)[1]
        node.body = ast.parse(f"note({name!r})").body
ast.fix_missing_locations(tree)


def note(name):
    scopes = builder.scopes
    parts.append([name, scopes["virtualGraph"], scopes["pipelineStage"]])


class Slots:
    """Has only the attributes that the framework has, and those that were set."""

    def __setattr__(self, name, value):
        assert name in self.NAMES, name
        self.__dict__[name] = value


class Location(Slots):
    NAMES = ["storage", "replicatedTensorSharding"]


class SessionOptions(Slots):
    NAMES = [
        "virtualGraphMode",
        "enablePipelining",
        "enableGradientAccumulation",
        "accumulationFactor",
        "autoRecomputation",
        "enableReplicatedGraphs",
        "replicatedGraphCount",
        "optimizerStateTensorLocationSettings",
    ]

    def __init__(self):
        self.optimizerStateTensorLocationSettings = types.SimpleNamespace(location=Location())

    def found(self):
        """Without the place of state where nothing was set."""
        found = dict(vars(self))
        location = vars(found.pop("optimizerStateTensorLocationSettings").location)
        return {**found, "optimizerStateTensorLocationSettings": location} if location else found


popart = types.SimpleNamespace(
    SessionOptions=SessionOptions,
    VirtualGraphMode=types.SimpleNamespace(Manual="manual"),
    TensorStorage=types.SimpleNamespace(OffChip="off-chip"),
    ReplicatedTensorSharding=types.SimpleNamespace(On="on"),
    RecomputationType=types.SimpleNamespace(
        NoRecompute="none", RecomputeAll="all", Pipeline="pipeline"
    ),
)
names = {"builder": builder, "popart": popart, "note": note}
exec(compile(tree, "emitted", "exec"), names)
print(json.dumps({"options": names["session_options"].found(), "parts": parts}))
