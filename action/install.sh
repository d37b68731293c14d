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

commit_of() {
    gh api "repos/$REPOSITORY/commits/$1" --jq .sha
}

# Is this action what the release of its version was made from? Workflows name it by the
# tag of the release, by one that moves (v0), or by a commit.
is_of_release() {
    [ -n "${REPOSITORY:-}" ] && [ -n "${REF:-}" ] && command -v gh > /dev/null || return 1
    local own released
    own=$(commit_of "$REF") && released=$(commit_of "$release") || return 1
    [ "$own" = "$released" ]
}

# Every wheel must have the checksum that the release says.
check_wheels() {
    local wheel name sum
    for wheel in "$wheels"/*.whl; do
        name=$(basename "$wheel")
        sum=$("$scripts/python" -c 'import hashlib, sys
print(hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest())' "$wheel")
        sum=${sum%$'\r'}
        if ! grep -qxF -e "$sum  $name" "$wheels/SHA256SUMS"; then
            echo "::error title=popliner::$name is not what SHA256SUMS of $release says; nothing is installed"
            exit 1
        fi
    done
}

from_release() {
    rm -rf -- "$wheels"
    gh release download "$release" --repo "$REPOSITORY" --pattern 'popliner-*.whl' \
        --pattern SHA256SUMS --dir "$wheels" || return 1
    check_wheels
    install --no-index --find-links "$wheels" popliner
}

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$GITHUB_ACTION_PATH/Cargo.toml" | head -n 1)
release=v$version
if [ -n "${PACKAGE:-}" ]; then
    install "$PACKAGE"
elif ! is_of_release || ! from_release; then
    echo "There is no wheel for ${REF:-this version} here: popliner is built from its sources."
    install "$GITHUB_ACTION_PATH"
fi
"$scripts/popliner" --version
echo "$scripts" >> "$GITHUB_PATH"
