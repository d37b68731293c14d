#!/usr/bin/env bash
# Writes the case `big` if it is not there, measures how long PopLiner takes on
# it as multiples of the floor, and holds the figures against what is promised.
#
#   benches/big.sh [--growth | --fit] [FOLDER]
#
# FOLDER (default: target/big) gets the files: 1.3 GB for `big`, which takes a
# minute to write, and 5 GB more with --growth, which also measures how time
# grows with variables and layers. The files stay there for the next time. With
# --fit only a compiled pipeline of 16 IPUs is measured (0.5 GB more).
#
# The floor (examples/floor) is one pass over the rows and columns that the
# analysis needs, through SQLite, and then one of a CBOR decoder over the debug
# file, both keeping nothing. Floor, whole and saved are run alternately, after
# one run of each that does not count; the medians are compared.
#
# RUNS is the number of runs (default 5). Peak memory is measured when GNU time
# is in /usr/bin/time. Each line ends with PASS or MISS; the exit code is 0 when
# everything ran, whatever was missed.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C

RUNS=${RUNS:-5}
GROWTH=no
ONLY_FIT=no
FOLDER=target/big
for argument in "$@"; do
    case $argument in
        --growth) GROWTH=yes ;;
        --fit) ONLY_FIT=yes ;;
        -*) echo "usage: benches/big.sh [--growth | --fit] [FOLDER]" >&2; exit 2 ;;
        *) FOLDER=$argument ;;
    esac
done

TARGET=${CARGO_TARGET_DIR:-target}/release
RESULTS=$(mktemp -d)
trap 'rm -rf "$RESULTS"' EXIT

# --- Making what is measured ---

build() {
    cargo build --release --quiet -p popliner -p synthesize --bins --example floor
}

# synthesize FOLDER OPTIONS...: both files, unless a complete pair is there.
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

# As a training pipeline on 16 IPUs `big` is over the limit of its target. With
# this one there is an answer, without the search for another pipeline that fits.
FITTING=(--mem-per-tile 1300000)

# --- Running and timing ---

measures_memory() { [ -x /usr/bin/time ]; }

# measure NAME COMMAND...: adds a line "seconds kilobytes" to NAME.runs (0
# kilobytes when they cannot be measured), and leaves the messages in NAME.log.
measure() {
    local name=$1 start end
    shift
    if measures_memory; then
        /usr/bin/time -q -f '%e %M' -o "$RESULTS/time" "$@" \
            > "$RESULTS/out" 2> "$RESULTS/$name.log" || an_answer $? || failed "$name" "$@"
        # The clock of GNU time shows hundredths only; that is enough here.
        cat "$RESULTS/time" >> "$RESULTS/$name.runs"
    else
        start=$EPOCHREALTIME
        "$@" > "$RESULTS/out" 2> "$RESULTS/$name.log" || an_answer $? || failed "$name" "$@"
        end=$EPOCHREALTIME
        echo "$(calculate "$end - $start") 0" >> "$RESULTS/$name.runs"
    fi
    cat "$RESULTS/$name.log" >> "$RESULTS/$name.logs"
}

# That a model does not fit is an answer.
an_answer() { [ "$1" -eq 1 ]; }

failed() {
    local name=$1
    shift
    echo "failed: $*" >&2
    cat "$RESULTS/$name.log" >&2
    exit 1
}

floor() { measure floor "$TARGET/examples/floor" "$1/profile.pop" "$1/debug.cbor"; }

# whole NAME FOLDER IPUS OPTIONS...: everything from the two files to the split.
whole() {
    local name=$1 folder=$2 ipus=$3
    shift 3
    measure "$name" "$TARGET/popliner" "$folder/profile.pop" "$folder/debug.cbor" \
        --solve --num-ipus "$ipus" -vv "$@"
}

saved() {
    measure saved "$TARGET/popliner" --load-from-file "$1/saved" --solve --num-ipus 16 \
        "${FITTING[@]}" -vv
}

# The same with a row for each number of IPUs, which needs every range.
swept() {
    measure swept "$TARGET/popliner" --load-from-file "$1/saved" --sweep --num-ipus 64 \
        "${FITTING[@]}" -vv
}

# The first run only brings files and programs into memory.
forget_first() {
    sed -i 1d "$RESULTS/$1.runs"
    # All runs write the same messages, so the first has its share of the lines.
    local lines
    lines=$(wc -l < "$RESULTS/$1.log")
    sed -i "1,${lines}d" "$RESULTS/$1.logs"
}

# --- Figures ---

calculate() { awk "BEGIN { printf \"%.3f\", $1 }"; }

# The median of the numbers on standard input.
median() {
    sort -g | awk '{ v[NR] = $1 } END {
        if (NR % 2) print v[(NR + 1) / 2]; else print (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

seconds() { cut -d' ' -f1 "$RESULTS/$1.runs" | median; }
gigabytes() { calculate "$(cut -d' ' -f2 "$RESULTS/$1.runs" | sort -g | tail -n 1) * 1024 / 1e9"; }

# duration NAME MESSAGE: the median of what the messages of -vv say, in
# seconds; a line is MESSAGE and then a time such as 519.36ms or 2.23s.
duration() {
    sed -n "s/^$2 \([0-9.]*\)\(s\|ms\|µs\)\$/\1 \2/p" "$RESULTS/$1.logs" |
        awk '{ print $1 * ($2 == "s" ? 1 : $2 == "ms" ? 1e-3 : 1e-6) }' | median
}

# line TEXT VALUE LIMIT UNIT: PASS when the value is at most the limit.
line() {
    local verdict
    verdict=$(awk "BEGIN { print ($2 <= $3) ? \"PASS\" : \"MISS\" }")
    printf '%-58s %8.3f %-3s at most %6.3f  %s\n' "$1" "$2" "$4" "$3" "$verdict"
}

# For the table: gigabytes, or a dash.
peak() { if measures_memory; then gigabytes "$1"; else echo -; fi; }

memory_line() {
    if measures_memory; then
        line "$1" "$(gigabytes "$2")" "$3" GB
    else
        printf '%-58s not measured: there is no /usr/bin/time\n' "$1"
    fi
}

# --- The parts of the report ---

machine() {
    local model memory
    model=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo 2> /dev/null | head -n 1)
    memory=$(awk '/^MemTotal/ { printf "%.0f GB", $2 * 1024 / 1e9 }' /proc/meminfo 2> /dev/null)
    echo "$(uname -sm), $(nproc) cores (${model:-unknown}), ${memory:-unknown memory}," \
        "load $(cut -d' ' -f1 /proc/loadavg 2> /dev/null || echo unknown) at the start"
    echo "medians of $RUNS runs"
    echo
}

measure_big() {
    local folder=$FOLDER/48-layers-10M
    synthesize "$folder" --preset big
    measure save "$TARGET/popliner" "$folder/profile.pop" "$folder/debug.cbor" \
        --save-to-file "$folder/saved"
    for _ in $(seq 0 "$RUNS"); do
        floor "$folder"
        whole whole "$folder" 16 "${FITTING[@]}"
        whole unpipelined "$folder" 16 "${FITTING[@]}" --schedule none
        whole refused "$folder" 16
        saved "$folder"
        swept "$folder"
    done
    for name in floor whole unpipelined refused saved swept; do forget_first "$name"; done
}

report_big() {
    local floor whole saved
    floor=$(seconds floor) whole=$(seconds whole) saved=$(seconds saved)
    printf '%-11s %8s %10s %10s\n' run seconds "x floor" "peak GB"
    for name in floor whole unpipelined refused saved swept; do
        printf '%-11s %8.2f %10.2f %10s\n' "$name" "$(seconds $name)" \
            "$(calculate "$(seconds $name) / $floor")" "$(peak $name)"
    done
    echo
    line "whole / floor" "$(calculate "$whole / $floor")" 2 x
    line "whole / without a schedule" "$(calculate "$whole / $(seconds unpipelined)")" 1.25 x
    line "from a saved file / floor" "$(calculate "$saved / $floor")" 0.2 x
    memory_line "peak memory, whole" whole 1.2
    memory_line "peak memory, from a saved file" saved 0.5
    line "a sweep of 64 IPUs, from a saved file, beyond one split" \
        "$(calculate "$(seconds swept) - $saved")" 1 s
    line "range costs and solving (reading is the limit)" \
        "$(calculate "$(duration whole 'weighing ranges of layers took') + $(duration whole 'solving took')")" \
        "$(duration whole 'reading profile.pop took')" s
}

# A compiled pipeline of 16 IPUs with 12 million variables, judged by --fit.
measure_fit() {
    local folder=$FOLDER/16-ipus-12M floor
    synthesize "$folder" --places --framework popart --mode training --layers 46 \
        --optimiser adam-each --names variable --accumulation --tiles 1472 \
        --vars-per-layer-tile 10 --bytes-per-layer-tile 30000 --seed 21 \
        --pipelined 3,6,9,12,15,18,21,24,27,30,33,36,39,42,45 \
        --recompute stage --planted-codes --execution
    for _ in $(seq 0 "$RUNS"); do
        measure fit-floor "$TARGET/examples/floor" --fit "$folder/profile.pop" "$folder/debug.cbor"
        measure fit "$TARGET/popliner" "$folder/profile.pop" "$folder/debug.cbor" --fit -vv
    done
    for name in fit-floor fit; do forget_first "$name"; done
    floor=$(seconds fit-floor)
    printf '%-11s %8.2f s\n%-11s %8.2f s\n' "fit: floor" "$floor" "fit" "$(seconds fit)"
    line "--fit of 16 IPUs / its floor" "$(calculate "$(seconds fit) / $floor")" 1.2 x
    memory_line "peak memory, --fit of 16 IPUs" fit 1
}

# Solving alone: few tiles, many layers.
measure_layers() {
    synthesize "$FOLDER/400-layers" --layers 400 --tiles 16 --vars-per-layer-tile 6
    for _ in $(seq 0 "$RUNS"); do whole layers "$FOLDER/400-layers" 64; done
    forget_first layers
    line "solving 400 layers on 64 IPUs" \
        "$(duration layers 'solving took')" 2 s
}

# A small file that asks for much: the slowest of the tests of hostile files.
measure_thousand() {
    local folder=$FOLDER/1000-layers times
    synthesize "$folder" --layers 1000 --tiles 4 --vars-per-layer-tile 1
    times=$(
        TIMEFORMAT='%U %S'
        {
            time "$TARGET/popliner" "$folder/profile.pop" "$folder/debug.cbor" --solve \
                > /dev/null 2> "$RESULTS/thousand.log" || an_answer $? || failed thousand popliner
        } 2>&1
    )
    line "processor time of 1,000 layers on 4 tiles" "$(calculate "${times/ / + }")" 10 s
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
        synthesize "$FOLDER/48-layers-${count}M" --preset big --variables "${count}000000"
    done
    for count in 24 96; do
        synthesize "$FOLDER/$count-layers-10M" --preset big --layers "$count"
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
        "$(calculate "$(duration layers-96 'weighing ranges of layers took') / $(duration layers-24 'weighing ranges of layers took')")" \
        4 x
}

build
machine
if [ "$ONLY_FIT" = no ]; then
    measure_big
    report_big
    measure_layers
    measure_thousand
fi
measure_fit
if [ "$GROWTH" = yes ]; then measure_growth; fi
