#!/usr/bin/env python3
"""Solves LP files with HiGHS and prints what comes out.

PopLiner writes the integer program that it solves with --export-lp FILE. This
script has another solver find the optimum, so that both can be compared:

    python3 -m venv highs
    highs/bin/pip install highspy
    popliner profile.pop debug.cbor --solve --num-ipus 4 --export-lp split.lp
    highs/bin/python tests/lp/check_with_highs.py split.lp

It prints one line for each file: its name, a tab, and the optimum (bytes,
stages or cycles, whatever the goal is), or "infeasible". The optimum must be
that of the split that PopLiner found; where it found none, "infeasible".

`cargo test lp_files::` runs it on random problems and on the fixtures if the
python3 on the path can import highspy, and else says that it was skipped.
"""

import sys

import highspy


def optimum(path):
    """The least objective of the program in the file, as text."""
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    # Proven optimal, not nearly so.
    solver.setOptionValue("mip_rel_gap", 0.0)
    solver.setOptionValue("mip_abs_gap", 0.0)
    # A binary that is off by a millionth would be off by bytes.
    solver.setOptionValue("mip_feasibility_tolerance", 1e-9)
    if solver.readModel(path) == highspy.HighsStatus.kError:
        raise SystemExit(f"{path}: not read")
    solver.run()
    status = solver.getModelStatus()
    if status == highspy.HighsModelStatus.kInfeasible:
        return "infeasible"
    if status != highspy.HighsModelStatus.kOptimal:
        raise SystemExit(f"{path}: {solver.modelStatusToString(status)}")
    return repr(solver.getInfo().objective_function_value)


def main(paths):
    """One line for each file."""
    if not paths:
        raise SystemExit("usage: check_with_highs.py FILE...")
    for path in paths:
        print(f"{path}\t{optimum(path)}")


if __name__ == "__main__":
    main(sys.argv[1:])
