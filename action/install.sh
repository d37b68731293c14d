#!/usr/bin/env bash
# Installs popliner into a Python environment of its own, and puts it on the path of
# the steps that follow. A step of action.yml, which sets the variables.
set -euo pipefail

environment=$RUNNER_TEMP/popliner-environment
wheels=$RUNNER_TEMP/popliner-wheels
python=$(command -v python3 || command -v python)
"$python" -m venv "$environment"
scripts=$environment/bin
[ -d "$scripts" ] || scripts=$environment/Scripts

install() {
    "$scripts/python" -m pip install --quiet --disable-pip-version-check "$@"
}

# The wheels of the release that has this name, if there is one.
from_release() {
    [ -n "${REPOSITORY:-}" ] && [ -n "${REF:-}" ] && command -v gh > /dev/null || return 1
    gh release download "$REF" --repo "$REPOSITORY" --pattern 'popliner-*.whl' \
        --dir "$wheels" --clobber || return 1
    install --no-index --find-links "$wheels" popliner
}

if [ -n "${PACKAGE:-}" ]; then
    install "$PACKAGE"
elif ! from_release; then
    echo "There is no wheel for ${REF:-this version} here: popliner is built from its sources."
    install "$GITHUB_ACTION_PATH"
fi
"$scripts/popliner" --version
echo "$scripts" >> "$GITHUB_PATH"
