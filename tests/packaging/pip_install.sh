#!/usr/bin/env bash
# Installs the command with pip into a fresh virtual environment and uses it.
# Run by hand: it is a release build, takes minutes, and needs python3 with venv,
# cargo, a C compiler and the registries of both languages.
#
#     tests/packaging/pip_install.sh
set -euo pipefail
cd "$(dirname "$0")/../.."

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet --disable-pip-version-check .

command="$place/venv/bin/popliner"
[ -x "$command" ] || fail "there is no command at $command"

wanted=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
[ "$("$command" --version)" = "popliner $wanted" ] || fail "its version is not $wanted"
known=$("$place/venv/bin/pip" show popliner | sed -n 's/^Version: //p')
[ "$known" = "$wanted" ] || fail "pip knows version '$known' and not $wanted"

# Found by name when the environment is active, and from anywhere.
profile=$PWD/fixtures/popart-bert-inference/profile.pop
emitted=$(cd "$place" && . venv/bin/activate &&
    popliner "$profile" --emit examples --num-ipus 4 2>/dev/null | grep -v '^#')
[ "$emitted" = "layers_per_ipu: [2, 3, 2, 1]" ] || fail "it printed '$emitted'"

code=0
"$command" "$PWD/fixtures/impossible/profile.pop" --solve >/dev/null 2>&1 || code=$?
[ "$code" = 1 ] || fail "a model that does not fit ended with $code"

"$place/venv/bin/pip" uninstall --quiet --yes popliner
[ ! -e "$command" ] || fail "the command is still there after it was uninstalled"
echo "PASSED: pip install, popliner $wanted, pip uninstall"
