"""Records the forward pass of a Keras model, with the names of TensorFlow's graph."""

import tensorflow as tf

# What these give is another shape or part of their first input, or nothing that is computed.
VIEWS = set(
    "Placeholder Const ReadVariableOp NoOp Identity Reshape Squeeze ExpandDims Shape StridedSlice Pack Range Fill Prod "
    "ConcatV2Shape StopGradient Assert LogicalAnd Split Unpack".split()
)


def viewed(tensor):
    """The tensor that another one is a view of."""
    while tensor.op.type in VIEWS and tensor.op.inputs:
        tensor = tensor.op.inputs[0]
    return tensor


def record(model, inputs):
    """The forward pass of a model; `inputs` are `tf.TensorSpec`s."""
    call = tf.function(lambda inputs: model(inputs, training=False)).get_concrete_function(inputs)
    names = {id(variable.handle): variable.name for variable in model.variables}
    captures = call.graph.captures
    names = {placeholder.name: names[id(handle)] for handle, placeholder in captures if id(handle) in names}
    numbers, ops, tensors = {}, [], []
    for op in call.graph.get_operations():
        read = [viewed(tensor) for tensor in op.inputs]
        parameters = sorted({names[tensor.name] for tensor in read if tensor.name in names})
        others = {tensor.name for tensor in read if tensor.name not in names}
        is_constant = not parameters and all(tensor.op.type == "Const" for tensor in read)
        if op.type in VIEWS or not op.outputs or is_constant:
            continue
        # What an operation has beside its first output, nothing in these models reads.
        numbers[op.outputs[0].name] = len(tensors)
        tensors.append(op.outputs[0].shape.num_elements() or 1)
        scope, _, name = op.name.rpartition("/")
        inputs = sorted({numbers.get(name, -1) for name in others})
        ops.append([scope, name, scope, parameters, inputs, [len(tensors) - 1]])
    parameters = {variable.name: int(tf.size(variable)) for variable in model.variables}
    return {"ops": ops, "tensors": tensors, "parameters": parameters, "tied": []}
