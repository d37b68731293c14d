#!/usr/bin/env bash
# Builds popliner with several release profiles, each from nothing, and prints how long
# each build takes, and how long a whole run of the case `big` takes then.
#
#   benches/profiles.sh [PROFILE...]
#
# A PROFILE is the value of `lto` in Cargo.toml and the number of codegen units, such as thin-16. The default
# is all that were compared. benches/big.sh writes the case into target/big/48-layers-10M. RUNS is the number of
# alternating runs (default 5), of which the fastest counts.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C CARGO_INCREMENTAL=0
RUNS=${RUNS:-5}
[ $# -gt 0 ] || set -- fat-1 thin-16 thin-4 false-16 false-4 off-16
RUN=(target/big/48-layers-10M/{profile.pop,debug.cbor} --solve --num-ipus 16 --mem-per-tile 1300000)
[ -f "${RUN[0]}" ] || { echo "there is no ${RUN[0]}; run benches/big.sh first" >&2; exit 1; }

# timed COMMAND...: prints the seconds that the command takes, and its seconds of processor time. A model
# that does not fit (exit code 1) is no failure.
timed() {
    local TIMEFORMAT='%R %U %S'
    { time "$@" > /dev/null 2>&3 || [ $? -eq 1 ]; } 3>&2 2>&1 | awk '{ printf "%.2f %.2f\n", $1, $2 + $3 }'
}

build() {
    rm -rf "target/profiles/$1"
    CARGO_PROFILE_RELEASE_LTO=${1%-*} CARGO_PROFILE_RELEASE_CODEGEN_UNITS=${1#*-} \
        cargo build --release --locked --quiet --bin popliner --target-dir "target/profiles/$1"
}

declare -A builds times
for profile in "$@"; do
    echo "building $profile" >&2
    builds[$profile]=$(timed build "$profile")
done
for ((run = 0; run <= RUNS; run++)); do
    for profile in "$@"; do
        time=$(timed "target/profiles/$profile/release/popliner" "${RUN[@]}" 2> /dev/null)
        # The first round warms the caches.
        [ "$run" = 0 ] || times[$profile]+="$time"$'\n'
    done
done

# fastest PROFILE COLUMN: prints the least seconds of all runs of a profile.
fastest() { printf '%s' "${times[$1]}" | cut -d' ' -f"$2" | sort -n | head -n 1; }

echo '| `lto`, units | build, s | processor time, s | run, s | processor time, s | binary, MB |'
echo '|---|---|---|---|---|---|'
for profile in "$@"; do
    read -r wall cpu <<< "${builds[$profile]}"
    size=$(stat -c %s "target/profiles/$profile/release/popliner" 2> /dev/null ||
        stat -f %z "target/profiles/$profile/release/popliner")
    printf '| %s, %s | %.0f | %.0f | %s | %s | %.1f |\n' "${profile%-*}" "${profile#*-}" "$wall" "$cpu" \
        "$(fastest "$profile" 1)" "$(fastest "$profile" 2)" "$(awk "BEGIN { print $size / 1e6 }")"
done
