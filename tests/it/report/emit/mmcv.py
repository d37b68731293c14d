# Runs a configuration of mmcv, and reads it by the keys of its public model_sharding and
# cfg2options: prints each layer with its IPU, and the options of training.
import json
import sys

STRATEGIES = ["SameAsIpu", "ShardedExecution"]
OPTIONS = {"executionStrategy": str, "replicationFactor": int, "Training": dict}

names = {}
exec(compile(sys.stdin.read(), "emitted", "exec"), names)
(edges,) = names.get("ipu_model_cfg", {}).values() or [[]]
assert all(set(edge) == {"layer_to_call", "ipu_id"} for edge in edges), edges
options = names.get("options_cfg", {"train_cfg": {}})["train_cfg"]
assert all(type(value) is OPTIONS[key] for key, value in options.items()), options
assert options.get("executionStrategy", "SameAsIpu") in STRATEGIES
found = [[edge["layer_to_call"], edge["ipu_id"]] for edge in edges]
print(json.dumps({"edges": found, "options": options}))
