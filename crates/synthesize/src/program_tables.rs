//! Writes programs, their types, exchanges and steps.

use std::collections::BTreeMap;

use crate::encoding::{encode_list, encode_rle};
use rusqlite::{Connection, Result};

use super::code::control_code;
use super::groups::Access;
use super::plan::Plan;
use super::schema::insert;
use super::tensors::TensorOf;
use super::tree::{Content, Exchange, Tree, Type, Window};

pub fn write(plan: &Plan, connection: &Connection) -> Result<()> {
    tree(plan, &plan.tree, plan.settings.tiles, connection)?;
    exchange_regions(plan, connection)?;
    do_exchange(plan, connection)?;
    streams(plan, connection)
}

/// Writes the programs of a tree on this number of tiles, and its steps.
pub fn tree(plan: &Plan, tree: &Tree, tiles: u32, connection: &Connection) -> Result<()> {
    let kinds = tree.programs.iter().map(|program| program.kind);
    let kinds: BTreeMap<u32, Type> = kinds.map(|kind| (plan.type_id(kind), kind)).collect();
    let kinds = kinds.iter().map(|(id, kind)| (id, format!("{kind:?}")));
    insert(connection, "program_types (id, name)", kinds)?;
    let programs = tree.programs.iter().enumerate();
    let sums = control_code(&tree.programs, tiles);
    let rows = programs.zip(sums).map(|((id, program), sum)| {
        let children: Vec<u64> = program.children.iter().map(|&c| c.into()).collect();
        let (bytes, window) = program.code;
        let code = sum.unwrap_or_else(|| window.with(bytes, tiles));
        (
            id,
            plan.type_id(program.kind),
            program.index,
            encode_list(&children),
            &program.name,
            program.debug_id,
            encode_rle(&code),
        )
    });
    let table = "programs (id, variant, variant_index, children, name, debug_id,
                 control_code_bytes_by_tile)";
    insert(connection, table, rows)?;
    of_types(tree, connection)?;
    let steps = tree.steps.iter().enumerate();
    let steps = steps.map(|(id, (program, parent))| (id, program, parent));
    insert(connection, "depth_first_steps", steps)
}

/// Writes the rows to which programs refer, except for exchanges within an IPU and host copies.
fn of_types(tree: &Tree, connection: &Connection) -> Result<()> {
    let root = [(0, tree.root)];
    insert(connection, "control_programs (id, program)", root)?;
    let functions = tree.functions.iter().enumerate();
    insert(connection, "function_programs (id, program)", functions)?;
    let calls = tree.calls.iter().enumerate();
    insert(connection, "program_type_call (id, function_id)", calls)?;
    let repeats = tree.repeats.iter().enumerate();
    insert(connection, "program_type_repeat", repeats)?;
    let executes = (0..tree.compute_sets.len()).enumerate();
    insert(connection, "program_type_on_tile_execute", executes)?;
    let programs = tree.programs.iter();
    let exchanges = programs.filter(|program| program.kind == Type::GlobalExchange);
    let exchanges = exchanges.map(|program| [program.index]);
    insert(connection, "program_type_global_exchange (id)", exchanges)?;
    let copies = "program_type_code_copy (id, destination_regions_id)";
    insert(connection, copies, tree.code_copies.iter().enumerate())
}

/// A part of the data that an exchange moves: a group, or the control ids, on the tiles of a
/// window.
type Region = (Option<usize>, Window);

const CONTROL_ID: Region = (None, Window::all(1));

fn regions(plan: &Plan) -> Vec<Vec<Region>> {
    let tree = &plan.tree;
    let mut targets: Vec<Vec<Region>> = vec![Vec::new(); tree.targets as usize];
    for (index, group) in plan.groups.iter().enumerate() {
        for &(stage, access) in &group.uses {
            let Some(exchange) = tree.stages[stage].exchange.map(|e| &tree.exchanges[e]) else {
                continue;
            };
            let target = match access {
                Access::Compute => continue,
                Access::Source => exchange.targets.0,
                Access::Destination => exchange.targets.1,
            };
            let window = exchange.window.intersect(group.window);
            targets[target as usize].push((Some(index), window));
        }
    }
    host_regions(plan, &mut targets);
    let exchanges = tree.exchanges.iter();
    for exchange in exchanges.filter(|exchange| exchange.op.is_none()) {
        targets[exchange.targets.0 as usize].push(CONTROL_ID);
        targets[exchange.targets.1 as usize].push((None, exchange.window));
    }
    targets
}

/// Adds the data of host copies, which move the variables of their operation or the control id, and
/// of code copies, which overwrite the control id.
fn host_regions(plan: &Plan, targets: &mut [Vec<Region>]) {
    let tree = &plan.tree;
    for stream in &tree.streams {
        let regions = &mut targets[stream.target as usize];
        match stream.content {
            Content::Control => regions.push(CONTROL_ID),
            Content::Tensor(of) => regions.extend(marked_groups(plan, |other| other == of)),
            Content::AllTensors => regions.extend(marked_groups(plan, TensorOf::is_uploaded)),
        }
    }
    for &target in &tree.code_copies {
        targets[target as usize].push(CONTROL_ID);
    }
}

fn marked_groups(plan: &Plan, wanted: impl Fn(TensorOf) -> bool) -> impl Iterator<Item = Region> {
    let groups = plan.groups.iter().enumerate();
    let marked = groups.filter(move |(_, group)| group.mark.is_some_and(&wanted));
    marked.map(|(index, group)| (Some(index), group.window))
}

fn exchange_regions(plan: &Plan, connection: &Connection) -> Result<()> {
    for (id, regions) in regions(plan).into_iter().enumerate() {
        let rows = regions.into_iter().flat_map(|(group, window)| {
            window.tiles().map(move |tile| match group {
                None => {
                    let control = plan.first_extra[tile as usize];
                    (id, control.into(), "[0,4)".to_owned())
                }
                Some(group) => {
                    let text = format!("[0,{})", plan.bytes(group, tile));
                    (id, plan.var_id(group, tile), text)
                }
            })
        });
        insert(connection, "exchange_regions", rows)?;
    }
    Ok(())
}

fn do_exchange(plan: &Plan, connection: &Connection) -> Result<()> {
    let row = |(id, exchange): (usize, &Exchange)| {
        let code = (0..plan.settings.tiles).map(|tile| plan.code.exchange_bytes(id, tile));
        let code = encode_rle(&code.collect::<Vec<u64>>());
        let cycles = encode_list(&[(plan.tree.compute_sets.len() + id) as u64]);
        (id, code, cycles, exchange.targets.0, exchange.targets.1)
    };
    let table = "program_type_do_exchange (id, code_bytes_by_tile_rle, cycles_by_tile_ids,
                 source_regions_id, destination_regions_id)";
    let exchanges = plan.tree.exchanges.iter().enumerate();
    insert(connection, table, exchanges.map(row))
}

fn streams(plan: &Plan, connection: &Connection) -> Result<()> {
    for (id, stream) in plan.tree.streams.iter().enumerate() {
        insert(connection, "program_type_stream_copy_mid (id)", [[id]])?;
        let direction = match stream.content {
            Content::AllTensors | Content::Tensor(TensorOf::Loss) => "to",
            _ => "from",
        };
        let table = format!("host_exchange_{direction}_host (stream_copy_mid_id, regions_id)");
        insert(connection, &table, [(id, stream.target)])?;
    }
    Ok(())
}
