#!/usr/bin/env python3
"""Writes forward passes of public models, for `synthesize --graph`: real names, order, sizes and flow.

    python3 -m venv torch && torch/bin/pip install -r requirements.txt
    torch/bin/python write.py [NAME ...]

writes NAME.json.gz beside this file, of all models of PyTorch without a NAME. Those of TensorFlow (keras_*, tf_*)
need an environment of requirements-tensorflow.txt. No weights are loaded: PyTorch's are on the meta device,
TensorFlow's are random. ../src/graph_file.rs says what is in a file.
"""

import gzip
import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).parent


def of_transformers(name, inputs):
    """A model of transformers with the configuration of its class."""
    import transformers

    model = getattr(transformers, name)
    return model(model.config_class()), inputs


def tokens(count=128, *names):
    """So many tokens and the mask of their attention, or what has these names."""
    import torch

    names = names or ("input_ids", "attention_mask")
    return {name: torch.zeros((1, count), dtype=torch.int64) for name in names}


def image(side=224, channels=3):
    import torch

    return torch.zeros((1, channels, side, side))


def bert():
    return of_transformers("BertForPreTraining", tokens())


def albert():
    return of_transformers("AlbertForPreTraining", tokens())


def bart():
    inputs = tokens(128, "input_ids", "attention_mask", "decoder_input_ids")
    return of_transformers("BartForConditionalGeneration", inputs)


def t5():
    inputs = tokens(128, "input_ids", "decoder_input_ids")
    return of_transformers("T5ForConditionalGeneration", inputs)


def clip():
    return of_transformers("CLIPModel", tokens(77) | {"pixel_values": image()})


def resnet50():
    import torchvision

    return torchvision.models.resnet50(), [image()]


def hrnet():
    import timm

    return timm.create_model("hrnet_w18"), [image()]


def unet_sd():
    """Stable Diffusion's."""
    import diffusers
    import torch

    model = diffusers.UNet2DConditionModel(cross_attention_dim=768)
    step = torch.zeros((), dtype=torch.int64)
    return model, [image(64, 4), step, torch.zeros((1, 77, 768))]


def of_keras(name, side):
    import tensorflow as tf

    model = getattr(tf.keras.applications, name)(weights=None)
    return model, tf.TensorSpec((1, side, side, 3))


def keras_xception():
    return of_keras("Xception", 299)


def keras_resnet50():
    return of_keras("ResNet50", 224)


def keras_inceptionv3():
    return of_keras("InceptionV3", 299)


def keras_nasnet():
    return of_keras("NASNetMobile", 224)


def tf_bert():
    import tensorflow as tf
    import transformers

    model = transformers.TFBertForPreTraining(transformers.BertConfig())
    inputs = {name: tf.zeros((1, 64), tf.int32) for name in ("input_ids", "attention_mask")}
    model(inputs)
    return model, {name: tf.TensorSpec((1, 64), tf.int32) for name in inputs}


# By model: what writes it, and which part of a module's path is the block that a person would put on one IPU.
MODELS = {
    "albert": (albert, None),
    "bart": (bart, r"(encoder|decoder)\.layers\.(\d+)"),
    "bert": (bert, r"encoder\.layer\.(\d+)"),
    "clip": (clip, r"(\w+_model)\.encoder\.layers\.(\d+)"),
    "hrnet": (hrnet, r"^((?:layer|stage)\d\.\d+)"),
    "resnet50": (resnet50, r"^(layer\d\.\d+)"),
    "t5": (t5, r"(encoder|decoder)\.block\.(\d+)"),
    "unet_sd": (unet_sd, r"^((?:\w+_blocks\.\d+|mid_block)\.(?:resnets|attentions)\.\d+)"),
    "keras_inceptionv3": (keras_inceptionv3, None),
    "keras_nasnet": (keras_nasnet, None),
    "keras_resnet50": (keras_resnet50, r"/(conv\d_block\d+)"),
    "keras_xception": (keras_xception, r"/(block\d+)"),
    "tf_bert": (tf_bert, r"layer_\._(\d+)"),
}


def is_of_tensorflow(name):
    return name.startswith(("keras_", "tf_"))


def write(name):
    make, block = MODELS[name]
    if is_of_tensorflow(name):
        import tensorflow_graph

        graph = tensorflow_graph.record(*make())
    else:
        import torch

        import torch_graph

        with torch.device("meta"):
            graph = torch_graph.record(*make())
    if block is not None:
        found = (re.search(block, op[2]) for op in graph["ops"])
        graph["blocks"] = [".".join(match.groups()) if match else None for match in found]
    text = json.dumps(graph, separators=(",", ":")).encode()
    path = HERE / f"{name}.json.gz"
    path.write_bytes(gzip.compress(text, 9, mtime=0))
    print(f"{path.name}: {len(graph['ops'])} operations, {path.stat().st_size} bytes")


if __name__ == "__main__":
    for name in sys.argv[1:] or [name for name in MODELS if not is_of_tensorflow(name)]:
        write(name)
