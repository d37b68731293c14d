#!/usr/bin/env bash
# Builds the wheel, installs it into a fresh virtual environment, and runs the tests
# of the module there; then installs it once more as the GitHub action does. Run by
# hand: it is a release build, takes minutes, and needs python3 with venv, cargo, a C
# compiler and the registries of both languages. With a wheel, it only tests that one.
#
#     tests/packaging/python_module.sh [WHEEL]
set -euo pipefail
cd "$(dirname "$0")/../.."

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
unset POPLINER PYTHONPATH

wheel=${1:-}
if [ -z "$wheel" ]; then
    python3 -m pip wheel --quiet --disable-pip-version-check --wheel-dir "$place" .
    wheel=$(find "$place" -name '*.whl')
fi
case $(basename "$wheel") in
    popliner-*-py3-none-*.whl) ;;
    *) fail "$wheel is not for every Python 3" ;;
esac

python3 -m venv "$place/venv"
python=$place/venv/bin/python
"$python" -m pip install --quiet --disable-pip-version-check --no-index "$wheel"
files=$("$python" -m pip show --files popliner)
for file in popliner/__init__.py popliner/py.typed bin/popliner; do
    grep -q "$file\$" <<< "$files" || fail "the wheel has no $file"
done

# The tests find the command by themselves, with no other one on the path. What some of
# them need is no dependency of the wheel.
"$python" -m pip install --quiet --disable-pip-version-check mypy pandas nbclient ipykernel ||
    echo "SKIPPED: the tests that need these packages, since they cannot be installed"
tests=$PWD/tests/packaging
(cd "$place" && PATH=/usr/bin:/bin "$python" -W error -m unittest discover -s "$tests")

# As the first step of action.yml does.
mkdir "$place/runner"
PACKAGE=$wheel RUNNER_TEMP=$place/runner GITHUB_PATH=$place/path GITHUB_ACTION_PATH=$PWD \
    action/install.sh
[ -x "$(cat "$place/path")/popliner" ] || fail "the action did not put popliner on the path"

echo "PASSED: $(basename "$wheel"), import popliner, the action's install"
