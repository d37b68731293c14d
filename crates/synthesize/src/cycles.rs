//! Cycles: the compiler's estimates, and an execution.
//!
//! An execution is that of the whole tree, program by program: weights up, the
//! main program twice, weights down. A compute set or exchange takes the same
//! cycles each time, as in real profiles, which keep one duration of each.

use crate::encoding::encode_rle;
use rusqlite::Connection;

use super::execution::{Execution, Step};
use super::places::Places;
use super::plan::Plan;
use super::random::topic;
use super::schema::insert;
use super::tree::{Type, Window};

/// The branches of the control program that are run, one after the other:
/// uploads, twice the main program, downloads.
pub const RUNS: [usize; 4] = [0, 1, 1, 2];

pub fn write(plan: &Plan, connection: &Connection) -> rusqlite::Result<()> {
    estimates(plan, connection)?;
    match plan.settings.execution {
        true => execution(plan, connection),
        false => Ok(()),
    }
}

/// The tiles that work at an estimate: of compute sets first, then of
/// exchanges, then of host copies.
fn window(plan: &Plan, id: usize) -> Option<Window> {
    let sets = plan.tree.compute_sets.iter().map(|set| set.window);
    let exchanges = plan.tree.exchanges.iter().map(|exchange| exchange.window);
    sets.chain(exchanges).nth(id)
}

fn estimate(plan: &Plan, id: usize) -> Vec<u64> {
    let window = window(plan, id);
    let cycles = |tile: u32| match window {
        Some(window) if !window.holds(tile) => 0,
        _ => {
            let about = [topic::CYCLES, id as u64, u64::from(tile / 128), 0];
            60 + plan.settings.random.below(4000, about)
        }
    };
    (0..plan.settings.tiles).map(cycles).collect()
}

fn estimates(plan: &Plan, connection: &Connection) -> rusqlite::Result<()> {
    let tree = &plan.tree;
    let sets = tree.compute_sets.len();
    let has_estimates = !plan.settings.no_cycle_estimates;
    let first = if has_estimates { 0 } else { sets };
    let ids = first..sets + tree.exchanges.len() + tree.streams.len();
    let rows = ids.map(|id| (id, encode_rle(&estimate(plan, id))));
    insert(connection, "compilation_cycles_by_tile", rows)
}

fn estimate_of(plan: &Plan, program: u32) -> Option<usize> {
    let program = &plan.tree.programs[program as usize];
    let (sets, exchanges) = (plan.tree.compute_sets.len(), plan.tree.exchanges.len());
    match program.kind {
        Type::OnTileExecute => program.index,
        Type::DoExchange => program.index.map(|row| sets + row),
        Type::StreamCopyMid => program.index.map(|row| sets + exchanges + row),
        _ => None,
    }
}

/// Measured cycles by tile: around the estimate, and more for the host.
fn measured_by_tile(plan: &Plan, program: u32) -> Vec<u64> {
    let estimate = match estimate_of(plan, program) {
        Some(id) => estimate(plan, id),
        None => vec![12; plan.settings.tiles as usize],
    };
    let about = [topic::CYCLES, u64::from(program), 0, 1];
    let per_mille = 850 + plan.settings.random.below(400, about);
    let is_host = plan.tree.programs[program as usize].kind == Type::StreamCopyMid;
    let host = if is_host { 20_000 } else { 0 };
    let measured = estimate.iter();
    measured
        .map(|cycles| host + cycles * per_mille / 1000)
        .collect()
}

/// Runs the control program as [`run`] does, and calls `visit` with the cycles of each program,
/// as measured or as estimated, and with its [`owner`].
pub fn by_owner(
    plan: &Plan,
    branch: Option<usize>,
    is_measured: bool,
    visit: &mut impl FnMut(Option<(usize, Places)>, u64),
) {
    run(plan, branch, &mut |program, call| {
        let cycles = of_program(plan, program, is_measured);
        visit(owner(plan, program, call), cycles);
    });
}

/// Cycles of one execution of a compute set or an exchange, as measured or as estimated; 0 for
/// all other programs.
fn of_program(plan: &Plan, program: u32, is_measured: bool) -> u64 {
    let kind = plan.tree.programs[program as usize].kind;
    if !matches!(kind, Type::OnTileExecute | Type::DoExchange) {
        return 0;
    }
    let by_tile = match is_measured {
        true => measured_by_tile(plan, program),
        false => estimate_of(plan, program).map_or(Vec::new(), |id| estimate(plan, id)),
    };
    by_tile.into_iter().max().unwrap_or(0)
}

/// Runs the control program with one branch of its switch, or with all of them
/// one after the other, and calls `visit` with each program that is met and
/// the Call that it stands below, the outermost of several.
fn run(plan: &Plan, branch: Option<usize>, visit: &mut impl FnMut(u32, Option<u32>)) {
    descend(plan, plan.tree.root, branch, None, visit);
}

fn descend(
    plan: &Plan,
    program: u32,
    branch: Option<usize>,
    call: Option<u32>,
    visit: &mut impl FnMut(u32, Option<u32>),
) {
    visit(program, call);
    let tree = &plan.tree;
    let node = &tree.programs[program as usize];
    match (node.kind, node.index) {
        (Type::Call, Some(row)) => {
            let body = tree.functions[tree.calls[row]];
            descend(plan, body, branch, call.or(Some(program)), visit);
        }
        (Type::Repeat, Some(row)) => {
            for _ in 0..tree.repeats[row] {
                descend(plan, node.children[0], branch, call, visit);
            }
        }
        (kind, _) => {
            let taken = branch.filter(|_| kind == Type::OnEveryTileSwitch);
            for (number, &child) in node.children.iter().enumerate() {
                if taken.is_none_or(|taken| taken == number) {
                    descend(plan, child, branch, call, visit);
                }
            }
        }
    }
}

/// The operation that a program runs for, below a call that of the outermost one; and its places:
/// what an outlined body does is done for the layer of the call.
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

fn is_step(kind: Type) -> bool {
    !matches!(
        kind,
        Type::Sequence | Type::Repeat | Type::Call | Type::OnEveryTileSwitch | Type::WriteUndef
    )
}

fn execution(plan: &Plan, connection: &Connection) -> rusqlite::Result<()> {
    let programs = (0u32..).zip(&plan.tree.programs);
    let steps = programs.filter(|(_, program)| is_step(program.kind));
    let rows = steps.map(|(id, _)| (id, encode_rle(&measured_by_tile(plan, id))));
    insert(connection, "cycles_by_tile", rows)?;
    let mut execution = Execution::new(1, 1, connection);
    for (number, branch) in RUNS.into_iter().enumerate() {
        let mut steps = Vec::new();
        run(plan, Some(branch), &mut |program, _| {
            let kind = plan.tree.programs[program as usize].kind;
            if is_step(kind) {
                let by_tile = measured_by_tile(plan, program);
                let name = format!("{kind:?}");
                steps.push(Step {
                    is_sync: matches!(kind, Type::Sync | Type::Sans | Type::SyncAns),
                    ..Step::new(name, program.into(), vec![0], &by_tile)
                });
            }
        });
        let name = ["weights up", "main", "main", "weights down"][number];
        execution.run(number, name, &steps)?;
    }
    Ok(())
}
