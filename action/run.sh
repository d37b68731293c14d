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

is_fit() {
    local argument
    for argument in "$@"; do
        [ "$argument" != --fit ] || return 0
    done
    return 1
}

if [ -n "$AGAINST" ]; then
    is_fit "${arguments[@]+"${arguments[@]}"}" || arguments+=(--fit)
    arguments+=("--against=$AGAINST")
elif ! is_fit "${arguments[@]+"${arguments[@]}"}"; then
    arguments+=(--solve)
fi
if [ -n "$NUM_IPUS" ]; then
    arguments+=("--num-ipus=$NUM_IPUS")
fi
files=("$PROFILE")
if [ -n "$DEBUG_INFO" ]; then
    files+=("$DEBUG_INFO")
fi

# Those of an earlier run would be taken for those of this one.
rm -f -- "$REPORT.json" "$REPORT.md" "$REPORT.txt"
mkdir -p -- "$(dirname -- "$REPORT")"
# Names in the files may look like commands to GitHub: until a line that nobody can know
# beforehand, it takes none.
token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
echo "::stop-commands::$token"
code=0
popliner "${arguments[@]}" "--export-json=$REPORT.json" "--export-markdown=$REPORT.md" \
    -- "${files[@]}" > "$REPORT.txt" || code=$?
echo "::$token::"

if [ -f "$REPORT.md" ]; then
    cat -- "$REPORT.md" >> "$GITHUB_STEP_SUMMARY"
fi
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
printf 'fits=%s\nexit-code=%s\n' "$fits" "$code" >> "$GITHUB_OUTPUT"
exit "$code"
