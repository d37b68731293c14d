# Runs the lines that were emitted, with the public methods of PopTorch, and prints the
# options that were set, each block with its module and IPU, and the checkpointed modules.
import ast
import enum
import json
import sys


class Module:
    """Knows only what the code calls it."""

    hooks = []

    def __init__(self, path):
        self.path = path

    def __getattr__(self, name):
        return Module(f"{self.path}.{name}")

    def __getitem__(self, index):
        return Module(f"{self.path}[{index!r}]")

    def get(self, layer):
        """Stands for the module of a layer, whose path the profile does not have."""
        return Module(layer)

    def register_forward_hook(self, hook):
        assert hook(self, (), "output") == ["output"]
        self.hooks.append(self.path)


class Settings:
    """Methods that note what they were given and may be chained."""

    def __init__(self, found, methods, prefix=""):
        self.found, self.methods, self.prefix = found, methods, prefix

    def __getattr__(self, name):
        kind = self.methods[name]

        def method(value):
            assert isinstance(value, kind) and type(value) is not bool or kind is bool
            found = value.found if isinstance(value, Settings) else value
            self.found[self.prefix + name] = found
            return self

        return method


class AutoStage(enum.IntEnum):
    SameAsIpu = 0
    AutoIncrement = 1


class PipelinedExecution:
    def __init__(self, stages=AutoStage.SameAsIpu):
        self.found = [type(self).__name__, AutoStage(stages).name]


class ShardedExecution(PipelinedExecution):
    pass


LOCATION = {"useOnChipStorage": bool, "useReplicatedTensorSharding": bool}
PLACES = {"setOptimizerLocation": Settings}
OPTIONS = {
    "deviceIterations": int,
    "replicationFactor": int,
    "autoRoundNumIPUs": bool,
}


class Popart:
    def __init__(self, found):
        self.found = found

    def set(self, key, value):
        self.found[key] = value


class Options(Settings):
    def __init__(self):
        super().__init__({}, OPTIONS)
        self.Training = Settings(self.found, {"gradientAccumulation": int})
        self.TensorLocations = Settings(self.found, PLACES)
        self._Popart = Popart(self.found)

    def setExecutionStrategy(self, strategy):
        assert isinstance(strategy, PipelinedExecution)
        self.found["strategy"] = strategy.found


class PopTorch:
    AutoStage = AutoStage
    PipelinedExecution = PipelinedExecution
    ShardedExecution = ShardedExecution
    Options = Options
    blocks = []

    def TensorLocationSettings(self):
        return Settings({}, LOCATION)

    def recomputationCheckpoint(self, *tensors):
        return list(tensors)

    def BeginBlock(self, layer_to_call, user_id=None, ipu_id=None):
        path = layer_to_call.path
        if path in [module for module, _ in self.blocks]:
            raise RuntimeError("module has already been assigned to a block")
        self.blocks.append([path, ipu_id])
        return layer_to_call


tree = ast.parse(sys.stdin.read(), mode="exec")
poptorch = PopTorch()
names = {"poptorch": poptorch, "model": Module("model")}
exec(compile(tree, "emitted", "exec"), names)
found = {"blocks": poptorch.blocks, "options": names["options"].found}
print(json.dumps({**found, "checkpoints": Module.hooks}))
