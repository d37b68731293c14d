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

# The tests find the command by themselves, with no other one on the path.
tests=$PWD/tests/packaging
(cd "$place" && PATH=/usr/bin:/bin "$python" -W error -m unittest discover -s "$tests")

# A program that uses it is checked against its types.
cat > "$place/program.py" <<'PROGRAM'
import popliner

report = popliner.split("profile.pop", num_ipus=4, pin={"0": 0}, together=[("1", "2")])
peak: int = max(stage.fullest_tile.bytes for stage in report.stages)
over: int = popliner.fit("profile.pop", against=report).ipus[0].tiles_over
PROGRAM
if "$python" -m pip install --quiet --disable-pip-version-check mypy; then
    "$python" -m mypy --strict "$place/program.py"
    sed 's/num_ipus=4/num_ipus=4.5/; s/tiles_over/tiles_over_/' "$place/program.py" \
        > "$place/wrong.py"
    wrong=$("$python" -m mypy --strict "$place/wrong.py" || true)
    grep -q 'Found 2 errors' <<< "$wrong" || fail "types are not checked: $wrong"
else
    echo "SKIPPED: mypy, since it cannot be installed"
fi

# As the first step of action.yml does.
mkdir "$place/runner"
PACKAGE=$wheel RUNNER_TEMP=$place/runner GITHUB_PATH=$place/path GITHUB_ACTION_PATH=$PWD \
    action/install.sh
[ -x "$(cat "$place/path")/popliner" ] || fail "the action did not put popliner on the path"

echo "PASSED: $(basename "$wheel"), import popliner, the action's install"
