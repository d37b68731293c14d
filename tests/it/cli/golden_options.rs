//! The options of each golden (a file with expected output): in each line its name and its options.

/// The fixtures that run with all of [`OPTIONS`]: inference and training.
pub const IN_FULL: [&str; 2] = ["popart-bert-inference", "poptorch-bert-training"];

/// Options for the other fixtures: one of each kind of output, and the options that depend on the
/// framework. `numbers` checks all their numbers.
pub const ON_ALL: &str = "layer-breakdown solve-4-ipus classic diagnose verbose refusal explain \
                          emit sweep export-tables";

pub const OPTIONS: &str = "
    nothing:
    layer-breakdown: --layer-breakdown
    memory-totals: --memory-totals
    tiles: --memory-totals --tiles=15,0,3-5
    memory-affinity: --memory-affinity
    interlayer-communication: --interlayer-communication
    solve: --solve
    solve-2-ipus: --solve --num-ipus=2
    solve-4-ipus: --solve --num-ipus=4
    solve-mem-per-tile: --solve --mem-per-tile=400000
    greedy: --solve --solver=greedy
    diagnose: --diagnose
    classic: --solve --num-ipus=4 --memory-model=classic
    layer-breakdown-classic: --layer-breakdown --memory-model=classic
    diagnose-classic: --diagnose --memory-model=classic
    plan: --plan --num-ipus=4
    reserve: --solve --num-ipus=5 --reserve=10%
    verbose: -v --layer-breakdown
    no-layers: --solve --layer-name-regex=nowhere
    list-layers: --list-layers --layer-name-regex=auto
    several: --solve --num-ipus=3 --memory-affinity --layer-breakdown --format=csv
        --layer-order=natural --quiet
    export-json: --solve --num-ipus=4 --export-json=- -q
    export-tables: --solve --num-ipus=3 --format=csv --export-markdown=- --quiet
    emit: --num-ipus=4 --emit=poptorch --emit=optimum --emit=examples --emit=tf-stages
        --emit=popart
    fewest: --solve --num-ipus=6 --objective=fewest
    communication: --solve --num-ipus=5 --objective=communication
    cycles: --solve --num-ipus=5 --objective=cycles
    auto: --solve --num-ipus=auto
    sweep: --sweep --num-ipus=6
    refusal: --splits=2 --num-ipus=2 --reserve=10%
    explain: --explain --num-ipus=4
    constraints: --solve --num-ipus=5 --together=1,2 --together=2,3 --pin=3=1 --quiet
        --export-json=-
    clash: --solve --num-ipus=4 --pin=2=0 --cut-before=2
    limits: --solve --mem-per-tile=638976,600000,638976,300000
    layers-per-ipu: --layers-per-ipu=2,1,1 --num-ipus=4
";

/// Goldens of single fixtures, whose output is long or shows nothing new elsewhere. A line begins
/// with the fixture and the name of the golden. `places` is for fixtures whose In and Out have
/// sizes of their own; `fit` has all forms except the page.
pub const FEW: &str = r"
    tensorflow-cnn/emit-keras: --emit=keras
    poptorch-bert-training/emit-pipeline-splits: --emit=pipeline-splits
    poptorch-bert-training/emit-modules: --num-ipus=8 --emit=poptorch --recompute=layer
    poplar-mlp/idle: --layers-per-ipu=2,0,-1 --emit=examples
    poplar-mlp/emit-names: --emit=examples --layer-name-regex=(\w*Layer\d)
    impossible/emit-greedy: --emit=popart --solver=greedy
    poplar-mlp/in-and-out-alone: --layers-per-ipu=0,2,2,1,0 --num-ipus=5 --solve
        --emit=examples --emit=poptorch --emit=popart --emit=keras --emit=pipeline-splits
    poplar-mlp/out-with-in: --out-on=first --num-ipus=3 --solve --explain --emit=examples
        --emit=poptorch --emit=popart --emit=keras --emit=pipeline-splits --layer-breakdown
        --format=csv --export-markdown=-
    large-embedding/places: --num-ipus=3 --solve --sweep --explain --emit=poptorch
    training-pipelined/fit: --fit --format=csv --export-markdown=-
    training-pipelined/does-not-fit: --fit --reserve=10% --units=auto
    poplar-mlp/fit: --fit --mem-per-tile=500000
    training-pipelined/solve: --solve
    tied-weights/places: --num-ipus=3 --solve --sweep --explain --emit=poptorch
    tied-weights/untied: --solve --num-ipus=3 --untie=all
    tied-weights/out-on-last: --solve --num-ipus=3 --out-on=last
    popart-bert-inference/operation-breakdown: --operation-breakdown
    poptorch-bert-training/operation-breakdown: --operation-breakdown
    poplar-mlp/operation-breakdown: --operation-breakdown
    poplar-mlp/operation-breakdown-csv: --operation-breakdown --format=csv
    poplar-mlp/two-groups: --layer-breakdown --layer-name-regex=([a-z]*)Layer(\d)
    poplar-mlp/wrong-regex: --layer-breakdown --layer-name-regex=(Layer
    training-pipeline/emit-state: --num-ipus=4 --optimizer-state=sharded-off-chip --replicas=4
        --emit=examples --emit=optimum --emit=pipeline-splits
    popart-bert-inference/kib: --solve --num-ipus=3 --units=KiB
    popart-bert-inference/mib: --solve --num-ipus=3 --units=MiB
    popart-bert-inference/classic-forms: --solve --num-ipus=4 --memory-model=classic --sweep --explain
        --format=tsv --export-markdown=-
    tensorflow-cnn/export-json-without-split: --export-json=- --export-markdown=-
        --mem-per-tile=500000
";
