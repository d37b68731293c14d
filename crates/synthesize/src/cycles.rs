//! Computes cycles: the compiler's estimates, and an execution.
//!
//! An execution runs the whole tree, program by program: it uploads the weights, runs the main
//! program twice, and downloads the weights. A compute set or exchange takes the same cycles each
//! time, as in real profiles, which have one duration of each.

use std::collections::BTreeMap;

use crate::encoding::encode_rle;
use rusqlite::{Connection, Result};

use super::places::Places;
use super::plan::Plan;
use super::random::topic;
use super::recompiled;
use super::schema::insert;
use super::tree::{Program, Type};

/// The branches of the control program that are run, one after the other: uploads, the main program
/// twice, downloads.
pub const RUNS: [usize; 4] = [0, 1, 1, 2];

pub fn write(plan: &Plan, connection: &Connection) -> Result<()> {
    let sets = plan.tree.compute_sets.len();
    let has_all = !plan.settings.no_cycle_estimates;
    let programs = plan.tree.programs.iter();
    let programs = programs.filter(|program| program.kind != Type::StreamCopyMid);
    let estimates = programs.filter_map(|program| estimate(plan, program));
    let estimates = estimates.filter(|(id, _)| has_all || *id >= sets);
    let by_id: BTreeMap<usize, Vec<u64>> = estimates.collect();
    let rows = by_id.iter().map(|(id, cycles)| (id, encode_rle(cycles)));
    insert(connection, "compilation_cycles_by_tile", rows)?;
    match plan.settings.execution {
        true => execution(plan, connection),
        false => Ok(()),
    }
}

/// Returns the number of the estimate of a program, and the estimated cycles by tile; `None` if it
/// has no estimate. Estimates of compute sets come first, then those of exchanges.
fn estimate(plan: &Plan, program: &Program) -> Option<(usize, Vec<u64>)> {
    let (sets, exchanges) = (plan.tree.compute_sets.len(), plan.tree.exchanges.len());
    let first = match program.kind {
        Type::OnTileExecute => 0,
        Type::DoExchange => sets,
        Type::StreamCopyMid => sets + exchanges,
        _ => return None,
    };
    let id = first + program.index?;
    let cycles = |tile: u32| {
        let about = [topic::CYCLES, id as u64, u64::from(tile / 128), 0];
        let is_active = program.code.1.holds(tile);
        let sample = plan.settings.random.below(4000, about);
        let cycles = recompiled::cycles((&plan.settings, &plan.model), program.op, sample);
        u64::from(is_active) * (60 + cycles)
    };
    Some((id, (0..plan.settings.tiles).map(cycles).collect()))
}

/// Returns the estimated cycles of a program on its slowest tile, if it has an estimate.
fn estimated(plan: &Plan, program: u32) -> Option<u64> {
    let (_, by_tile) = estimate(plan, &plan.tree.programs[program as usize])?;
    by_tile.into_iter().max()
}

/// Returns the measured cycles of a program: around the estimate, and more for host copies.
fn measured(plan: &Plan, program: u32) -> u64 {
    let about = [topic::CYCLES, u64::from(program), 0, 1];
    let per_mille = 850 + plan.settings.random.below(400, about);
    let is_host = plan.tree.programs[program as usize].kind == Type::StreamCopyMid;
    let host = if is_host { 20_000 } else { 0 };
    host + estimated(plan, program).unwrap_or(12) * per_mille / 1000
}

/// Runs the control program with one branch of its switch, or with all of them one after the
/// other, and calls `visit` with the cycles of each compute set and exchange, as measured or as
/// estimated, and with its [`owner`].
pub fn by_owner(
    plan: &Plan,
    branch: Option<usize>,
    is_measured: bool,
    visit: &mut impl FnMut(Option<(usize, Places)>, u64),
) {
    let root = (plan.tree.root, None);
    run(plan, root, branch, &mut |program, call| {
        let kind = plan.tree.programs[program as usize].kind;
        if matches!(kind, Type::OnTileExecute | Type::DoExchange) {
            let cycles = match is_measured {
                true => measured(plan, program),
                false => estimated(plan, program).unwrap_or(0),
            };
            visit(owner(plan, program, call), cycles);
        }
    });
}

/// Runs a program below a call, the outermost one of several, and calls `visit` with each program
/// that runs, and with the call below which it is.
fn run(
    plan: &Plan,
    (program, call): (u32, Option<u32>),
    branch: Option<usize>,
    visit: &mut impl FnMut(u32, Option<u32>),
) {
    visit(program, call);
    let tree = &plan.tree;
    let node = &tree.programs[program as usize];
    match (node.kind, node.index) {
        (Type::Call, Some(row)) => {
            let body = tree.functions[tree.calls[row]];
            run(plan, (body, call.or(Some(program))), branch, visit);
        }
        (Type::Repeat, Some(row)) => {
            for _ in 0..tree.repeats[row] {
                run(plan, (node.children[0], call), branch, visit);
            }
        }
        (kind, _) => {
            let taken = branch.filter(|_| kind == Type::OnEveryTileSwitch);
            for (number, &child) in node.children.iter().enumerate() {
                if taken.is_none_or(|taken| taken == number) {
                    run(plan, (child, call), branch, visit);
                }
            }
        }
    }
}

/// Returns the operation for which a program runs, or that of the outermost call above it; and its
/// places: an outlined body works for the layer of the call.
fn owner(plan: &Plan, program: u32, call: Option<u32>) -> Option<(usize, Places)> {
    let program = &plan.tree.programs[program as usize];
    let caller = call.and_then(|call| plan.tree.programs[call as usize].op);
    let called = caller.and_then(|op| plan.model.ops[op].call);
    let places = match called {
        Some(site) => Places::layer(plan.model.calls[site].layer),
        None => program.places.unwrap_or(Places::NONE),
    };
    Some((caller.or(program.op)?, places))
}

fn execution(plan: &Plan, connection: &Connection) -> Result<()> {
    let runs = RUNS.map(|branch| {
        let mut steps: Vec<Step> = Vec::new();
        let root = (plan.tree.root, None);
        run(plan, root, Some(branch), &mut |program, _| {
            let Program { kind, children, .. } = &plan.tree.programs[program as usize];
            if children.is_empty() && !matches!(kind, Type::Call | Type::WriteUndef) {
                let is_sync = matches!(kind, Type::Sync | Type::Sans | Type::SyncAns);
                let named = (!is_sync).then_some(program);
                steps.push((named, vec![measured(plan, program)]));
            }
        });
        steps
    });
    write_runs(&runs, connection)
}

/// A step of a run: its program, and its cycles on each IPU. A sync has no program, as the schema
/// allows.
pub type Step = (Option<u32>, Vec<u64>);

/// Writes the steps of all runs. A step has a row for each IPU, with 0 cycles if the IPU does
/// nothing in it.
pub fn write_runs(runs: &[Vec<Step>], connection: &Connection) -> Result<()> {
    let runs_with_steps = runs.iter().map(Vec::len).enumerate();
    insert(connection, "runs (id, num_steps)", runs_with_steps)?;
    for (id, (program, cycles)) in runs.iter().flatten().enumerate() {
        insert(connection, "steps (id, program)", [(id, program)])?;
        let by_ipu = cycles.iter().enumerate();
        let by_ipu = by_ipu.map(|(ipu, cycles)| (id, ipu, cycles));
        insert(connection, "steps_by_ipu (step_id, ipu, cycles)", by_ipu)?;
    }
    Ok(())
}
