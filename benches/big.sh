#!/usr/bin/env bash
# Writes the case `big` if it is not there, measures how long PopLiner takes on
# it as multiples of the floor, and compares the figures with those of docs/speed.md.
#
#   benches/big.sh [--growth | --fit] [--before POPLINER] [FOLDER]
#
# FOLDER (default: target/big) gets the files: 1.3 GB for `big`, which takes a
# minute to write, and 5 GB more with --growth, which also measures how time
# grows with variables and layers. The files stay there for the next time. With
# --fit only a compiled pipeline of 16 IPUs is measured (0.5 GB more). With
# --before another binary, such as that of an earlier commit, is measured too.
#
# The floor (examples/floor) is one pass over the rows and columns that the
# analysis needs, through SQLite, and then one of a CBOR decoder over the debug
# file, both keeping nothing. All programs are run in turn, after one run of each
# that does not count. The fastest runs are compared, since other work of the
# machine can only make a run slower. The table has the medians too.
#
# The serial part of a stage follows from its times with one thread and with two
# by Amdahl's law: t(n) = serial + (t(1) - serial) / n.
#
# RUNS is the number of runs (default 5). Peak memory is measured when GNU time
# is in /usr/bin/time. Each line ends with PASS or MISS; the exit code is 0 if
# every program ran, even if figures were missed.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C

RUNS=${RUNS:-5}
GROWTH=no
ONLY_FIT=no
BEFORE=
FOLDER=target/big
while [ $# -gt 0 ]; do
    case $1 in
        --growth) GROWTH=yes ;;
        --fit) ONLY_FIT=yes ;;
        --before) shift; BEFORE=${1:?--before needs the path of a popliner} ;;
        -*) echo "usage: benches/big.sh [--growth | --fit] [--before POPLINER] [FOLDER]" >&2
            exit 2 ;;
        *) FOLDER=$1 ;;
    esac
    shift
done

TARGET=${CARGO_TARGET_DIR:-target}/release
RESULTS=$(mktemp -d)
trap 'rm -rf "$RESULTS"' EXIT

# --- Making the files ---

build() {
    cargo build --release --quiet -p popliner -p synthesize --bins --example floor
}

# synthesize FOLDER OPTIONS...: writes both files, unless a complete pair is there.
synthesize() {
    local folder=$1
    shift
    [ -f "$folder/profile.pop" ] && [ -f "$folder/debug.cbor" ] && return
    echo "writing $folder" >&2
    rm -rf "$folder.part"
    "$TARGET/synthesize" --out "$folder.part" "$@"
    mkdir -p "$folder"
    mv "$folder.part"/* "$folder"
    rmdir "$folder.part"
}

# big FOLDER LAYERS MILLIONS: writes a model of the scale of the largest public BERT profiles, where it
# has 48 layers and 10 million variables.
big() {
    synthesize "$1" --layers "$2" --variables "${3}000000" --mode training --outlined once \
        --bytes-per-layer-tile 82000 --classes 100000 --steps 20000 --contexts 1000000
}

# As a training pipeline on 16 IPUs, `big` exceeds the memory of its target. With
# this limit a split fits, and no other pipeline is searched for.
FITTING=(--mem-per-tile 1300000)

# Options for one pipeline. Without them, all pipelines of the framework are searched for
# the fastest split that fits.
PIPELINE=(--schedule popart --recompute stage --objective peak)

# --- Running and timing ---

measures_memory() { [ -x /usr/bin/time ]; }

# measure NAME COMMAND...: adds a line "seconds kilobytes" to NAME.runs (0
# kilobytes if they cannot be measured), and leaves the messages in NAME.log.
measure() {
    local name=$1 start end
    shift
    local run=("$@")
    echo 0 > "$RESULTS/memory"
    if measures_memory; then run=(/usr/bin/time -q -f %M -o "$RESULTS/memory" "$@"); fi
    start=$EPOCHREALTIME
    "${run[@]}" > "$RESULTS/out" 2> "$RESULTS/$name.log" || an_answer $? || failed "$name" "$@"
    end=$EPOCHREALTIME
    echo "$(calculate "$end - $start") $(cat "$RESULTS/memory")" >> "$RESULTS/$name.runs"
}

# Exit code 1, with which a model does not fit, is no failure.
an_answer() { [ "$1" -eq 1 ]; }

failed() {
    local name=$1
    shift
    echo "failed: $*" >&2
    cat "$RESULTS/$name.log" >&2
    exit 1
}

floor() { measure floor "$TARGET/examples/floor" "$1/profile.pop" "$1/debug.cbor"; }

# whole NAME FOLDER IPUS OPTIONS...: measures a run from the two files to the split.
whole() {
    local name=$1 folder=$2 ipus=$3
    shift 3
    measure "$name" "${POPLINER:-$TARGET/popliner}" "$folder/profile.pop" "$folder/debug.cbor" \
        --solve --num-ipus "$ipus" -vv "$@"
}

# planned NAME FOLDER: measures a plan for up to 16 IPUs.
planned() {
    measure "$1" "${POPLINER:-$TARGET/popliner}" "$2/profile.pop" "$2/debug.cbor" \
        --plan --num-ipus 16 "${FITTING[@]}" -vv
}

# saved NAME FILE: measures a run from a saved file to the split.
saved() {
    measure "$1" "${POPLINER:-$TARGET/popliner}" --load-from-file "$2" --solve --num-ipus 16 \
        "${FITTING[@]}" "${PIPELINE[@]}" -vv
}

# save POPLINER FOLDER FILE: measures a run that saves the model.
save() { measure save "$1" "$2/profile.pop" "$2/debug.cbor" --save-to-file "$3"; }

# swept FOLDER: measures a sweep from a saved file, which needs every range of layers.
swept() {
    measure swept "$TARGET/popliner" --load-from-file "$1/saved" --sweep --num-ipus 64 \
        "${FITTING[@]}" "${PIPELINE[@]}" -vv
}

# forget_first NAME: drops the first run, which only brings files and programs into memory.
forget_first() {
    sed -i 1d "$RESULTS/$1.runs"
}

. benches/figures.sh

# --- The parts of the report ---

machine() {
    local model memory
    model=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo 2> /dev/null | head -n 1)
    memory=$(awk '/^MemTotal/ { printf "%.0f GB", $2 * 1024 / 1e9 }' /proc/meminfo 2> /dev/null)
    echo "$(uname -sm), $(nproc) cores (${model:-unknown}), ${memory:-unknown memory}," \
        "load $(cut -d' ' -f1 /proc/loadavg 2> /dev/null || echo unknown) at the start"
    echo "the fastest of $RUNS runs"
    echo
}

# The runs on `big` besides the floor, in the order of the table.
KINDS=(whole chosen exported unpipelined refused planned saved swept)

# kind KIND FOLDER FILE NAME: measures one run; FILE is the saved model.
kind() {
    case $1 in
        whole) whole "$4" "$2" 16 "${FITTING[@]}" "${PIPELINE[@]}" ;;
        chosen) whole "$4" "$2" 16 "${FITTING[@]}" ;;
        exported) whole "$4" "$2" 16 "${FITTING[@]}" "${PIPELINE[@]}" --export-html "$RESULTS/page.html" ;;
        unpipelined) whole "$4" "$2" 16 "${FITTING[@]}" --schedule none --objective peak ;;
        refused) whole "$4" "$2" 16 "${PIPELINE[@]}" ;;
        planned) planned "$4" "$2" ;;
        saved) saved "$4" "$3" ;;
        swept) swept "$2" ;;
    esac
}

# threads COUNT FOLDER: measures a whole run with this number of threads.
threads() { RAYON_NUM_THREADS=$1 whole "threads-$1" "$2" 16 "${FITTING[@]}" "${PIPELINE[@]}"; }

measure_big() {
    local folder=$FOLDER/48-layers-10M kind count
    big "$folder" 48 10
    save "$TARGET/popliner" "$folder" "$folder/saved"
    if [ -n "$BEFORE" ]; then save "$BEFORE" "$folder" "$RESULTS/saved"; fi
    for _ in $(seq 0 "$RUNS"); do
        floor "$folder"
        for kind in "${KINDS[@]}"; do
            kind "$kind" "$folder" "$folder/saved" "$kind"
            if [ -n "$BEFORE" ] && [ "$kind" != swept ]; then
                POPLINER=$BEFORE kind "$kind" "$folder" "$RESULTS/saved" "$kind-before"
            fi
        done
        for count in 1 2 4 8; do threads "$count" "$folder"; done
    done
    for kind in "$RESULTS"/*.runs; do
        kind=$(basename "$kind" .runs)
        if [ "$kind" != save ]; then forget_first "$kind"; fi
    done
}

# row NAME FLOOR: a line of the table.
row() {
    printf '%-18s %8.2f %8.2f %10.2f %10s\n' "$1" "$(seconds "$1")" "$(median_of "$1")" \
        "$(calculate "$(seconds "$1") / $2")" "$(peak "$1")"
}

report_big() {
    local floor whole saved name
    floor=$(seconds floor) whole=$(seconds whole) saved=$(seconds saved)
    printf '%-18s %8s %8s %10s %10s\n' run seconds median "x floor" "peak GB"
    row floor "$floor"
    for name in "${KINDS[@]}"; do
        row "$name" "$floor"
        if [ -f "$RESULTS/$name-before.runs" ]; then row "$name-before" "$floor"; fi
    done
    for name in 1 2 4 8; do row "threads-$name" "$floor"; done
    echo
    line "whole / floor" "$(calculate "$whole / $floor")" 1.2 x
    line "whole with the pipeline chosen / given" \
        "$(calculate "$(seconds chosen) / $whole")" 1.5 x
    line "whole / without a schedule" "$(calculate "$whole / $(seconds unpipelined)")" 1.25 x
    line "whole with --export-html / without" "$(calculate "$(seconds exported) / $whole")" 1.15 x
    line "refused / floor" "$(calculate "$(seconds refused) / $floor")" 1.5 x
    line "--plan / --solve" "$(calculate "$(seconds planned) / $whole")" 3 x
    line "from a saved file / floor" "$(calculate "$saved / $floor")" 0.15 x
    memory_line "peak memory, whole" whole 0.45
    memory_line "peak memory, from a saved file" saved 0.15
    line "a sweep of 64 IPUs, from a saved file, beyond one split" \
        "$(calculate "$(seconds swept) - $saved")" 1 s
    line "range costs and solving (reading is the limit)" \
        "$(calculate "$(duration whole 'computing ranges of layers took') + $(duration whole 'choosing the pipeline took')")" \
        "$(duration whole 'reading profile.pop took')" s
    report_serial
}

# serial STAGE ONE TWO WHOLE: of a stage that takes so long with one thread and
# with two, the serial part against the whole with one thread.
serial() {
    line "$1: $2 s by one thread, $3 s by two; serial" \
        "$(calculate "s = (2 * $3 - $2) / $4; (s > 0 ? s : 0)")" 0.1 x
}

# The two files are read side by side where there are threads for both.
report_serial() {
    local one two stage
    one=$(seconds threads-1)
    stages_of() { duration "threads-$1" "$2 took"; }
    serial "reading" \
        "$(calculate "$(stages_of 1 'reading profile.pop') + $(stages_of 1 'reading debug.cbor')")" \
        "$(calculate "a = $(stages_of 2 'reading profile.pop'); b = $(stages_of 2 'reading debug.cbor'); (a > b ? a : b)")" "$one"
    for stage in 'joining programs and variables' 'computing ranges of layers' 'computing stages'; do
        serial "$stage" "$(calculate "$(stages_of 1 "$stage")")" \
            "$(calculate "$(stages_of 2 "$stage")")" "$one"
    done
}

# A compiled pipeline of 16 IPUs with 12 million variables, judged by --fit.
measure_fit() {
    local folder=$FOLDER/16-ipus-12M floor
    synthesize "$folder" --framework popart --mode training --layers 46 \
        --optimiser adam-each --names variable --accumulation --tiles 1472 \
        --vars-per-layer-tile 10 --bytes-per-layer-tile 30000 --seed 21 \
        --pipelined 3,6,9,12,15,18,21,24,27,30,33,36,39,42,45 --execution
    for _ in $(seq 0 "$RUNS"); do
        measure fit-floor "$TARGET/examples/floor" --fit "$folder/profile.pop" "$folder/debug.cbor"
        measure fit "$TARGET/popliner" "$folder/profile.pop" "$folder/debug.cbor" --fit -vv
    done
    for name in fit-floor fit; do forget_first "$name"; done
    floor=$(seconds fit-floor)
    printf '%-11s %8.2f s\n%-11s %8.2f s\n' "fit: floor" "$floor" "fit" "$(seconds fit)"
    line "--fit of 16 IPUs / its floor" "$(calculate "$(seconds fit) / $floor")" 0.9 x
    memory_line "peak memory, --fit of 16 IPUs" fit 0.5
}

# Solving alone: few tiles, many layers.
measure_layers() {
    synthesize "$FOLDER/400-layers" --layers 400 --tiles 16 --variables 150000
    for _ in $(seq 0 "$RUNS"); do whole layers "$FOLDER/400-layers" 64; done
    forget_first layers
    line "solving 400 layers on 64 IPUs" \
        "$(duration layers 'choosing the pipeline took')" 2 s
}

# processor_seconds FOLDER OPTIONS...: the least of all runs, of all threads together.
processor_seconds() {
    local folder=$1 run
    shift
    for run in $(seq "$RUNS"); do
        TIMEFORMAT='%U %S'
        {
            time "$TARGET/popliner" "$folder/profile.pop" "$folder/debug.cbor" "$@" \
                > /dev/null 2> "$RESULTS/small.log" || an_answer $? || failed small popliner "$@"
        } 2>&1
    done | awk '{ print $1 + $2 }' | fastest
}

# A small file that asks for much, since no split fits: all are computed for each
# pipeline that is tried.
measure_thousand() {
    local tiles=$1 limit=$2 folder=$FOLDER/1000-layers-$1-tiles
    synthesize "$folder" --layers 1000 --tiles "$tiles" --variables $((15000 * tiles))
    line "processor time of 1,000 layers on $tiles tiles" \
        "$(processor_seconds "$folder" --solve)" "$limit" s
}

# Many IPUs for small models: the choice of a pipeline and the plan against one search.
measure_many_ipus() {
    local layers ipus folder one
    for layers in 8 60 300; do
        folder=$FOLDER/$layers-layers-4-tiles
        synthesize "$folder" --layers "$layers" --tiles 4 --mode training --framework popart \
            --execution
        for ipus in 4 64; do
            one=$(processor_seconds "$folder" --solve --num-ipus "$ipus" "${PIPELINE[@]}")
            line "$layers layers, $ipus IPUs: pipeline chosen / given" "$(calculate \
                "$(processor_seconds "$folder" --solve --num-ipus "$ipus") / $one")" 3 x
            line "$layers layers, $ipus IPUs: --plan / --solve" "$(calculate \
                "$(processor_seconds "$folder" --plan --num-ipus "$ipus") / $one")" 3 x
        done
    done
}

# A real BERT of 12 layers on all tiles of a Mk2 IPU, which is searched in all pipelines, places of
# optimizer state and numbers of IPUs.
measure_bert() {
    local folder=$FOLDER/bert memory=(--mem-per-tile 624000) ipus=(--num-ipus 8) one
    synthesize "$folder" --graph crates/synthesize/graphs/tf_bert.json.gz --framework tensorflow \
        --mode training --overflow --optimiser adam-each --accumulation --bytes-per-tile 262144
    one=$(processor_seconds "$folder" --solve "${ipus[@]}" "${memory[@]}" --schedule tf-grouped \
        --recompute layer --optimizer-state on-chip)
    line "processor time of BERT, one pipeline" "$one" 2 s
    line "BERT: bare / one pipeline" "$(calculate \
        "$(processor_seconds "$folder" "${ipus[@]}" "${memory[@]}") / $one")" 3 x
    line "BERT: --plan / one pipeline" "$(calculate \
        "$(processor_seconds "$folder" --plan "${ipus[@]}" "${memory[@]}") / $one")" 3 x
    line "BERT, which does not fit on 4 IPUs: bare / one pipeline" "$(calculate \
        "$(processor_seconds "$folder" --num-ipus 4) / $one")" 3 x
}

# Three compilations of a smaller BERT with other available memory proportions, in one search, against
# the sum of a run on each.
measure_proportions() {
    local own folder sum_of_times=0 sum_of_memory=0 others=() pipeline=(--num-ipus 8 --schedule tf-grouped
        --recompute layer --optimizer-state on-chip)
    for own in 0.6 0.3 0.1; do
        folder=$FOLDER/bert-$own
        synthesize "$folder" --graph crates/synthesize/graphs/tf_bert.json.gz --framework tensorflow \
            --mode training --overflow --optimiser adam-each --accumulation --tiles 368 \
            --bytes-per-tile 262144 --temporaries 8 --proportion "$own"
        others+=("--amp=$own=$folder")
    done
    for _ in $(seq 0 "$RUNS"); do
        for own in 0.6 0.3 0.1; do
            measure "amp-$own" "$TARGET/popliner" "$FOLDER/bert-$own" --solve "${pipeline[@]}"
        done
        measure amps "$TARGET/popliner" "$FOLDER/bert-0.6" --amp=0.6 "${others[@]:1}" --solve "${pipeline[@]}"
    done
    for own in 0.6 0.3 0.1; do
        forget_first "amp-$own"
        sum_of_times=$(calculate "$sum_of_times + $(seconds "amp-$own")")
        sum_of_memory=$(calculate "$sum_of_memory + $(gigabytes "amp-$own")")
    done
    forget_first amps
    line "three proportions in one search / the sum of single runs" \
        "$(calculate "$(seconds amps) / $sum_of_times")" 1.5 x
    memory_line "peak memory, three proportions" amps "$sum_of_memory"
}

variables() { sed -n 's/^read \([0-9]*\) variables.*/\1/p' "$RESULTS/$1.log"; }

# more_variables SMALL LARGE: time may grow as much as the number of variables
# that there are, which is near the number asked for.
more_variables() {
    local small large
    small=$(variables "variables-$1") large=$(variables "variables-$2")
    line "time, $small to $large variables" \
        "$(calculate "$(seconds "variables-$2") / $(seconds "variables-$1")")" \
        "$(calculate "$large / $small")" x
}

# The same case with more and more variables, and with more and more layers,
# alternately, so that all of them have the same share of whatever else runs.
measure_growth() {
    local count
    for count in 2 5 10 20; do
        big "$FOLDER/48-layers-${count}M" 48 "$count"
    done
    for count in 24 96; do
        big "$FOLDER/$count-layers-10M" "$count" 10
    done
    for _ in $(seq 0 "$RUNS"); do
        for count in 2 5 10 20; do
            whole "variables-$count" "$FOLDER/48-layers-${count}M" 16 "${FITTING[@]}"
        done
        for count in 24 96; do
            whole "layers-$count" "$FOLDER/$count-layers-10M" 64 "${FITTING[@]}"
        done
    done
    for count in 2 5 10 20; do forget_first "variables-$count"; done
    for count in 24 96; do forget_first "layers-$count"; done
    more_variables 2 5
    more_variables 5 10
    more_variables 10 20
    line "time of the range costs, 24 to 96 layers" \
        "$(calculate "$(duration layers-96 'computing ranges of layers took') / $(duration layers-24 'computing ranges of layers took')")" \
        4 x
}

build
machine
if [ "$ONLY_FIT" = no ]; then
    measure_big
    report_big
    measure_layers
    measure_thousand 4 3
    measure_thousand 64 5
    measure_many_ipus
    measure_bert
    measure_proportions
fi
measure_fit
if [ "$GROWTH" = yes ]; then measure_growth; fi
