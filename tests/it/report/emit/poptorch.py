# Runs the lines that were emitted and prints each block: its module and IPU.
import ast
import json
import sys


class Module:
    """Knows only what the code calls it."""

    def __init__(self, path):
        self.path = path

    def __getattr__(self, name):
        return Module(f"{self.path}.{name}")

    def __getitem__(self, index):
        return Module(f"{self.path}[{index!r}]")


class PopTorch:
    blocks = []

    def BeginBlock(self, layer_to_call, user_id=None, ipu_id=None):
        path = layer_to_call.path
        if path in [module for module, _ in self.blocks]:
            raise RuntimeError("module has already been assigned to a block")
        self.blocks.append([path, ipu_id])
        return layer_to_call


tree = ast.parse(sys.stdin.read(), mode="exec")
poptorch = PopTorch()
exec(compile(tree, "emitted", "exec"), {"poptorch": poptorch, "model": Module("model")})
print(json.dumps(poptorch.blocks))
