# Reads a configuration as Optimum's IPUConfig does: by the keys, defaults and types of its public
# signature; and the settings of the command line as its update_from_string does.
import json
import sys

DEFAULTS = {
    "replication_factor": 1,
    "inference_replication_factor": 1,
    "gradient_accumulation_steps": 1,
    "layers_per_ipu": [-1],
    "ipus_per_replica": 1,
    "optimizer_state_offchip": False,
    "replicated_tensor_sharding": False,
    "recompute_checkpoint_every_layer": False,
    "device_iterations": 1,
}


def config(given):
    """The attributes after the constructor."""
    unknown = set(given) - set(DEFAULTS)
    assert not unknown, unknown
    found = {**DEFAULTS, **given}
    for key, value in found.items():
        assert type(value) is type(DEFAULTS[key]), key
    assert len(found["layers_per_ipu"]) == found["ipus_per_replica"]
    return found


def overridden(text):
    """Of a shell's word; commas are between keys, spaces between the elements of lists."""
    found = dict(DEFAULTS)
    assert text[0] == text[-1] == '"'
    for key, value in (word.split("=") for word in text[1:-1].split(",")):
        old = found[key]
        if isinstance(old, bool):
            found[key] = {"true": True, "false": False}[value]
        elif isinstance(old, int):
            found[key] = int(value)
        else:
            found[key] = json.loads(value.replace(" ", ","))
    return found


given = json.load(sys.stdin)
print(
    json.dumps(
        {
            "defaults": DEFAULTS,
            "config": config(json.loads(given["config"])),
            "overridden": overridden(given["overrides"]),
        }
    )
)
