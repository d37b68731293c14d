#!/usr/bin/env bash
# Runs popliner, posts its report to the summary of the run, and ends as popliner
# does. A step of action.yml, which sets the variables.
set -euo pipefail

arguments=()
# One option on each line: as --name, --name=value, or --name value.
while IFS= read -r line; do
    line=${line%$'\r'}
    line=${line#"${line%%[![:space:]]*}"}
    line=${line%"${line##*[![:space:]]}"}
    [ -n "$line" ] || continue
    if [[ $line =~ ^(--[a-z0-9-]+)[[:space:]]+(.*)$ ]]; then
        line=${BASH_REMATCH[1]}=${BASH_REMATCH[2]}
    fi
    arguments+=("$line")
done <<< "$OPTIONS"

# An option with its value, where the input has one.
add() {
    [ -z "$2" ] || arguments+=("$1=$2")
}

# The file for a form of --emit.
emitted() {
    case $1 in
        examples | pipeline-splits) echo "$REPORT.$1.yml" ;;
        optimum | tf-stages) echo "$REPORT.$1.json" ;;
        *) echo "$REPORT.$1.py" ;;
    esac
}

printf '%s\n' "${arguments[@]+"${arguments[@]}"}" | grep -qx -e --fit || arguments+=(--solve)
add --num-ipus "$NUM_IPUS"
add --layer-name-regex "$LAYER_NAME_REGEX"
add --reserve "$RESERVE"
add --compare "$COMPARE"
read -r -d '' -a forms <<< "$EMIT" || true
for form in "${forms[@]+"${forms[@]}"}"; do
    arguments+=("--emit=$form")
done
if [ "$PLAN" = true ]; then
    arguments+=(--plan)
fi
files=("$PROFILE")
if [ -n "$DEBUG_INFO" ]; then
    files+=("$DEBUG_INFO")
fi

# Results of an earlier run would be taken for results of this one, unless this one reads them.
for old in "$REPORT".{json,md,html,txt} "$REPORT".{examples,pipeline-splits}.yml \
    "$REPORT".{optimum,tf-stages}.json "$REPORT".{poptorch,popart,keras,mmcv}.py; do
    for input in "$PROFILE" "$DEBUG_INFO" "$COMPARE"; do
        if [ -n "$input" ] && [ "$old" -ef "$input" ]; then
            echo "::error title=popliner::report $REPORT would replace $input, which is read; give another report"
            exit 2
        fi
    done
    rm -f -- "$old"
done
mkdir -p -- "$(dirname -- "$REPORT")"
# Names in the files may look like commands to GitHub: until a line that nobody can know
# beforehand, it takes none.
token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
echo "::stop-commands::$token"
code=0
popliner "${arguments[@]}" "--export-json=$REPORT.json" "--export-markdown=$REPORT.md" \
    "--export-html=$REPORT.html" -- "${files[@]}" > "$REPORT.txt" || code=$?
echo "::$token::"

if [ -f "$REPORT.md" ]; then
    cat -- "$REPORT.md" >> "$GITHUB_STEP_SUMMARY"
fi
# Without a report, such as with --help, nothing was answered.
if [ "$code" -le 1 ] && [ ! -f "$REPORT.json" ]; then code=2; fi
case $code in
    0) fits=true ;;
    1) fits=false ;;
    *)
        fits=
        text="popliner ended with exit code $code and without a verdict; the log of this step says why"
        echo "::error title=popliner::$text"
        echo "$text" >> "$GITHUB_STEP_SUMMARY"
        ;;
esac

# Each result begins with its name, since the split as JSON is printed too.
paths=
if [ -n "$fits" ]; then
    for form in "${forms[@]+"${forms[@]}"}"; do
        path=$(emitted "$form")
        awk -v wanted="# emit-$form" '
            /^# [a-z-]+$/ { is_wanted = $0 == wanted; next }
            is_wanted
        ' < "$REPORT.txt" > "$path"
        paths+=${paths:+$'\n'}$path
    done
fi
page=
if [ -f "$REPORT.html" ]; then
    page=$REPORT.html
fi

# Paths may have any characters, line ends among them.
output() {
    printf '%s<<%s\n%s\n%s\n' "$1" "$token" "$2" "$token" >> "$GITHUB_OUTPUT"
}
output fits "$fits"
output exit-code "$code"
output report "$REPORT"
output page "$page"
output split "$paths"
exit "$code"
