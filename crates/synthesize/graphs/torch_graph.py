"""Records the forward pass of a PyTorch model, with the names that PopTorch gives to operations."""

import re

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# Types of PopART that are not the name of PyTorch's operator in camel case.
TYPES = {
    "MatMul": "addmm mm bmm baddbmm linear matmul",
    "Conv": "convolution",
    "LayerNormalization": "native_layer_norm",
    "GroupNormalization": "native_group_norm",
    "BatchNormalization": "native_batch_norm _native_batch_norm_legit_no_training cudnn_batch_norm",
    "Softmax": "_softmax",
    "Swish": "silu",
    "Concat": "cat stack",
    "Gather": "embedding index index_select gather",
    "Identity": "clone alias_copy",
    "ReduceMean": "mean",
    "Cast": "_to_copy",
    "MaxPool": "max_pool2d_with_indices",
    "AveragePool": "avg_pool2d",
    "Resize": "upsample_nearest2d",
}
OF_OPERATOR = {operator: name for name, operators in TYPES.items() for operator in operators.split()}


def type_of(operator):
    """PopART's type of an operator of PyTorch."""
    operator = re.sub(r"(?<=[a-z0-9])_$", "", operator)
    plain = operator.strip("_").split("_")
    return OF_OPERATOR.get(operator) or "".join(part[:1].upper() + part[1:] for part in plain)


def tensors_in(values):
    """All tensors in arguments or results, however deep."""
    if isinstance(values, torch.Tensor):
        return [values]
    if isinstance(values, dict):
        values = list(values.values())
    if isinstance(values, (list, tuple)):
        return [tensor for value in values for tensor in tensors_in(value)]
    return []


def storage_of(tensor):
    return tensor.untyped_storage()._cdata


def is_view(operator):
    """Whether an operator makes another view of what it reads, and computes nothing."""
    aliases = [value.alias_info for value in operator._schema.returns]
    if any(alias is not None and not alias.is_write for alias in aliases):
        return True
    return operator._schema.name in ("aten::_unsafe_view", "aten::detach", "aten::lift_fresh")


class Recorder(TorchDispatchMode):
    """Notes each operation with the modules that are being called."""

    def __init__(self, model):
        super().__init__()
        self.stack = []
        self.ops = []
        self.tensors = []
        self.numbers = {}
        # Storages are told apart by their addresses: none may go before the end.
        self.alive = []
        self.paths = {id(module): path for path, module in model.named_modules()}
        named = list(model.named_parameters(remove_duplicate=False))
        buffers = model.named_buffers(remove_duplicate=False)
        self.names, self.shared = {}, {}
        for name, tensor in named + list(buffers):
            self.names.setdefault(storage_of(tensor), name)
            self.shared.setdefault(storage_of(tensor), []).append(name)
        self.parameters = {name: tensor.numel() for name, tensor in model.named_parameters()}

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        result = operator(*args, **(kwargs or {}))
        read = tensors_in([args, kwargs or {}])
        made = tensors_in(result)
        self.alive.append((read, made))
        name = operator._schema.name.split("::")[1]
        is_constant = name != "rand" and (not read or name.startswith("new_") or name.endswith("_like"))
        if made and not is_constant and not is_view(operator):
            self.note(name, operator, read, made)
        return result

    def note(self, name, operator, read, made):
        storages = list(dict.fromkeys(map(storage_of, read)))
        parameters = sorted({self.names[storage] for storage in storages if storage in self.names})
        inputs = {self.numbers.get(storage, -1) for storage in storages if storage not in self.names}
        outputs = []
        # What else it returns (statistics, indices) nothing in these models reads.
        for tensor in made[:1]:
            storage = storage_of(tensor)
            if storage not in self.numbers:
                self.numbers[storage] = len(self.tensors)
                self.tensors.append(tensor.untyped_storage().nbytes() // tensor.element_size())
            outputs.append(self.numbers[storage])
        path = self.stack[-1] if self.stack else ""
        scope = "/".join(path.rpartition(".")[2] for path in self.stack if path)
        self.ops.append([scope, type_of(name), path, parameters, sorted(inputs), outputs])

    def enter(self, module, _):
        self.stack.append(self.paths.get(id(module), ""))

    def leave(self, module, *_):
        self.stack.pop()


def record(model, inputs):
    """The forward pass of a model, on tensors of the meta device."""
    model.eval()
    recorder = Recorder(model)
    hooks = [
        torch.nn.modules.module.register_module_forward_pre_hook(recorder.enter),
        torch.nn.modules.module.register_module_forward_hook(recorder.leave),
    ]
    with torch.no_grad(), recorder:
        model(**inputs) if isinstance(inputs, dict) else model(*inputs)
    for hook in hooks:
        hook.remove()
    return {
        "ops": recorder.ops,
        "tensors": recorder.tensors,
        "parameters": recorder.parameters,
        "tied": [names for names in recorder.shared.values() if len(names) > 1],
    }
