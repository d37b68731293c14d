# Runs what was emitted on a model whose Keras layers are named as the entries
# are, and prints the entries, the stage of each of its layers and the mapping of devices.
import ast
import json
import sys
import types


#: Arguments of the pipeline that Keras makes.
PIPELINING = {
    "pipeline_schedule",
    "offload_weight_update_variables",
    "replicated_optimizer_state_sharding",
}


class Model:
    """Has the layers of a line '#layers' above the text, or a first one and one for each entry."""

    def __init__(self, entries, source):
        self.names = ["first", *entries]
        if source.startswith("#layers "):
            self.names = json.loads(source.splitlines()[0].removeprefix("#layers "))
        self.mapping = None

    def get_pipeline_stage_assignment(self):
        layers = [types.SimpleNamespace(name=name) for name in self.names]
        return [
            types.SimpleNamespace(layer=layer, node_index=0, pipeline_stage=None)
            for layer in layers
        ]

    def set_pipeline_stage_assignment(self, assignments):
        self.stages = [[a.layer.name, a.pipeline_stage] for a in assignments]

    def set_pipelining_options(
        self,
        gradient_accumulation_steps_per_replica=None,
        device_mapping=None,
        **pipelining,
    ):
        assert set(pipelining) <= PIPELINING, pipelining
        self.mapping = device_mapping
        self.options = {"steps": gradient_accumulation_steps_per_replica, **pipelining}


source = sys.stdin.read()
tree = ast.parse(source)
stages = ast.literal_eval(tree.body[0].value)
names_of = ["Grouped", "Interleaved", "Sequential"]
schedules = types.SimpleNamespace(**{name: name for name in names_of})
ops = types.SimpleNamespace(
    pipelining_ops=types.SimpleNamespace(PipelineSchedule=schedules)
)
config = types.SimpleNamespace()
ipu = types.SimpleNamespace(ops=ops)
names = {"model": Model(stages, source), "config": config, "ipu": ipu}
exec(compile(tree, "emitted", "exec"), names)
assert names["pipeline_stages"] == {}
model = names["model"]
assert model.mapping in (None, names["device_mapping"])
found = {"entries": list(stages.items()), "mapping": names["device_mapping"]}
found["model"] = getattr(model, "stages", None)
found["options"] = {**model.options, **vars(config)}
print(json.dumps(found))
