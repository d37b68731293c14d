//! Programs, their types, exchanges, steps.

use crate::encoding::{encode_list, encode_rle};
use rusqlite::{Connection, params};

use super::groups::Access;
use super::plan::Plan;
use super::tree::{Content, Mark, Type, Window};

/// Writes the tables of programs.
pub fn write(plan: &Plan, connection: &Connection) -> rusqlite::Result<()> {
    program_types(plan, connection)?;
    programs(plan, connection)?;
    small_tables(plan, connection)?;
    exchange_regions(plan, connection)?;
    do_exchange(plan, connection)?;
    streams(plan, connection)?;
    steps(plan, connection)
}

fn program_types(plan: &Plan, connection: &Connection) -> rusqlite::Result<()> {
    let mut insert = connection.prepare("INSERT INTO program_types VALUES (?1, ?2, ?3)")?;
    let mut types: Vec<Type> = plan
        .tree
        .programs
        .iter()
        .map(|program| program.kind)
        .collect();
    types.sort_unstable_by_key(|&kind| plan.type_id(kind));
    types.dedup();
    for kind in types {
        let table = match kind {
            Type::OnTileExecute => Some("program_type_on_tile_execute"),
            Type::Repeat => Some("program_type_repeat"),
            Type::Call => Some("program_type_call"),
            Type::DoExchange => Some("program_type_do_exchange"),
            Type::CodeCopy => Some("program_type_code_copy"),
            // The real file names a table that is not there.
            Type::StreamCopyMid => Some("program_type_stream_copy"),
            Type::Sync => Some("program_type_sync"),
            Type::Sans => Some("program_type_sans"),
            Type::SyncAns => Some("program_type_sync_ans"),
            _ => None,
        };
        insert.execute(params![plan.type_id(kind), format!("{kind:?}"), table])?;
    }
    Ok(())
}

/// One value on the tiles of a window, 0 elsewhere.
fn on_window(plan: &Plan, value: u64, window: Window) -> Vec<u64> {
    let mut values = vec![0; plan.settings.tiles as usize];
    let first = window.first as usize;
    values[first..first + window.count as usize].fill(value);
    values
}

/// Control code by program and tile, children included. Children have higher
/// ids than their parents.
fn control_code(plan: &Plan) -> Vec<Option<Vec<u64>>> {
    let programs = &plan.tree.programs;
    let mut sums: Vec<Option<Vec<u64>>> = vec![None; programs.len()];
    for (id, program) in programs.iter().enumerate().rev() {
        if program.children.is_empty() {
            continue;
        }
        let mut sum = on_window(plan, program.code.0, program.code.1);
        for &child in &program.children {
            let (bytes, window) = programs[child as usize].code;
            match &sums[child as usize] {
                Some(more) => sum.iter_mut().zip(more).for_each(|(a, b)| *a += b),
                None => {
                    let first = window.first as usize;
                    let tiles = &mut sum[first..first + window.count as usize];
                    tiles.iter_mut().for_each(|tile| *tile += bytes);
                }
            }
        }
        sums[id] = Some(sum);
    }
    sums
}

fn programs(plan: &Plan, connection: &Connection) -> rusqlite::Result<()> {
    let mut insert = connection.prepare(
        "INSERT INTO programs (id, variant, variant_index, children, name, debug_id,
         control_code_bytes_by_tile) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    let mut sums = control_code(plan);
    for (id, program) in plan.tree.programs.iter().enumerate() {
        let children: Vec<u64> = program.children.iter().map(|&c| c.into()).collect();
        let code = sums[id]
            .take()
            .unwrap_or_else(|| on_window(plan, program.code.0, program.code.1));
        insert.execute(params![
            id,
            plan.type_id(program.kind),
            program.index,
            encode_list(&children),
            program.name,
            program.debug_id,
            encode_rle(&code),
        ])?;
    }
    Ok(())
}

/// Rows of an id, counted from 0, and a number.
fn numbered(
    connection: &Connection,
    sql: &str,
    values: impl IntoIterator<Item = u64>,
) -> rusqlite::Result<()> {
    let mut insert = connection.prepare(sql)?;
    for (id, value) in values.into_iter().enumerate() {
        insert.execute(params![id, value])?;
    }
    Ok(())
}

fn small_tables(plan: &Plan, connection: &Connection) -> rusqlite::Result<()> {
    let tree = &plan.tree;
    let roots = "INSERT INTO control_programs (id, program) VALUES (?1, ?2)";
    numbered(connection, roots, tree.roots.iter().map(|&id| id.into()))?;
    let functions = "INSERT INTO function_programs (id, program) VALUES (?1, ?2)";
    let bodies = tree.functions.iter().map(|&id| id.into());
    numbered(connection, functions, bodies)?;
    let calls = "INSERT INTO program_type_call (id, function_id) VALUES (?1, ?2)";
    numbered(connection, calls, tree.calls.iter().map(|&f| f as u64))?;
    let repeats = "INSERT INTO program_type_repeat VALUES (?1, ?2)";
    numbered(connection, repeats, tree.repeats.iter().copied())?;
    let executes = "INSERT INTO program_type_on_tile_execute VALUES (?1, ?2)";
    numbered(connection, executes, 0..tree.compute_sets.len() as u64)?;
    let copies = "INSERT INTO program_type_code_copy (id, destination_regions_id) VALUES (?1, ?2)";
    let targets = tree.code_copies.iter().map(|&target| target.into());
    numbered(connection, copies, targets)?;
    syncs(plan, connection)
}

fn syncs(plan: &Plan, connection: &Connection) -> rusqlite::Result<()> {
    let every: Vec<u64> = (0..plan.settings.tiles.into()).collect();
    let [sans, sync_ans, syncs] = plan.tree.syncs;
    for (table, count) in [("sans", sans), ("sync_ans", sync_ans)] {
        let sql = format!("INSERT INTO program_type_{table} VALUES (?1, ?2)");
        let mut insert = connection.prepare(&sql)?;
        for id in 0..count {
            insert.execute(params![id, encode_list(&every)])?;
        }
    }
    let mut insert = connection.prepare("INSERT INTO program_type_sync VALUES (?1, 'Internal')")?;
    for id in 0..syncs {
        insert.execute([id])?;
    }
    Ok(())
}

/// The regions of an `exchange_target`.
enum Regions {
    /// The control id of each tile.
    Control(Window),
    /// A group, on the tiles of a window.
    Group(usize, Window),
}

/// Regions by `exchange_target` id.
fn regions(plan: &Plan) -> Vec<Vec<Regions>> {
    let tree = &plan.tree;
    let mut targets: Vec<Vec<Regions>> = (0..tree.targets).map(|_| Vec::new()).collect();
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
            targets[target as usize].push(Regions::Group(index, window));
        }
    }
    host_regions(plan, &mut targets);
    let first = Window { first: 0, count: 1 };
    for exchange in tree
        .exchanges
        .iter()
        .filter(|exchange| exchange.op.is_none())
    {
        targets[exchange.targets.0 as usize].push(Regions::Control(first));
        targets[exchange.targets.1 as usize].push(Regions::Control(exchange.window));
    }
    targets
}

/// Host copies move the variables of their operation or the control id; code
/// copies overwrite one that is there anyway.
fn host_regions(plan: &Plan, targets: &mut [Vec<Regions>]) {
    let tree = &plan.tree;
    for stream in &tree.streams {
        let regions = &mut targets[stream.target as usize];
        match stream.content {
            Content::Control => regions.push(control_id()),
            Content::Marked(mark) => regions.extend(marked_groups(plan, |other| other == mark)),
            Content::AllTensors => {
                let is_tensor = |mark| matches!(mark, Mark::Tensor(of) if of.is_uploaded());
                regions.extend(marked_groups(plan, is_tensor));
            }
        }
    }
    for &target in &tree.code_copies {
        targets[target as usize].push(control_id());
    }
}

fn control_id() -> Regions {
    Regions::Control(Window { first: 0, count: 1 })
}

/// The groups with a mark.
fn marked_groups(plan: &Plan, wanted: impl Fn(Mark) -> bool) -> impl Iterator<Item = Regions> {
    let groups = plan.groups.iter().enumerate();
    let marked = groups.filter(move |(_, group)| group.mark.is_some_and(&wanted));
    marked.map(|(index, group)| Regions::Group(index, group.window))
}

fn exchange_regions(plan: &Plan, connection: &Connection) -> rusqlite::Result<()> {
    let mut target = connection.prepare("INSERT INTO exchange_target VALUES (?1)")?;
    let mut insert = connection.prepare("INSERT INTO exchange_regions VALUES (?1, ?2, ?3)")?;
    for (id, regions) in regions(plan).iter().enumerate() {
        target.execute([id])?;
        for region in regions {
            match *region {
                Regions::Control(window) => {
                    for tile in window.first..window.first + window.count {
                        let var = plan.first_extra[tile as usize];
                        insert.execute(params![id, var, "[0,4)"])?;
                    }
                }
                Regions::Group(group, window) => {
                    for tile in window.first..window.first + window.count {
                        let text = format!("[0,{})", plan.bytes(group, tile));
                        insert.execute(params![id, plan.var_id(group, tile), text])?;
                    }
                }
            }
        }
    }
    Ok(())
}

fn do_exchange(plan: &Plan, connection: &Connection) -> rusqlite::Result<()> {
    let mut insert = connection.prepare(
        "INSERT INTO program_type_do_exchange (id, bytes_received_by_tile_rle,
         bytes_sent_by_tile_rle, code_bytes_by_tile_rle, bytes_received_by_ipu_rle,
         bytes_sent_by_ipu_rle, max_data_sent_and_received_by_ipu_rle, cycles_by_tile_ids,
         source_regions_id, destination_regions_id)
         VALUES (?1, ?2, ?2, ?3, ?4, ?4, ?5, ?6, ?7, ?8)",
    )?;
    for (id, exchange) in plan.tree.exchanges.iter().enumerate() {
        let code: Vec<u64> = (0..plan.settings.tiles)
            .map(|tile| plan.code.exchange_bytes(id, tile))
            .collect();
        let moved = 64;
        let total = moved * u64::from(exchange.window.count);
        let (source, destination) = exchange.targets;
        insert.execute(params![
            id,
            encode_rle(&on_window(plan, moved, exchange.window)),
            encode_rle(&code),
            encode_rle(&[total]),
            encode_rle(&[2 * total]),
            encode_list(&[(plan.tree.compute_sets.len() + id) as u64]),
            source,
            destination,
        ])?;
    }
    Ok(())
}

fn streams(plan: &Plan, connection: &Connection) -> rusqlite::Result<()> {
    let mut middle = connection.prepare(
        "INSERT INTO program_type_stream_copy_mid VALUES (?1, ?2, ?2, NULL, ?3, ?3, ?4, ?5)",
    )?;
    let first = plan.tree.compute_sets.len() + plan.tree.exchanges.len();
    for (id, stream) in plan.tree.streams.iter().enumerate() {
        let everywhere = Window {
            first: 0,
            count: plan.settings.tiles.min(64),
        };
        let moved = on_window(plan, 128, everywhere);
        let total = 128 * u64::from(everywhere.count);
        middle.execute(params![
            id,
            encode_rle(&moved),
            encode_rle(&[total]),
            encode_rle(&[2 * total]),
            encode_list(&[(first + id) as u64]),
        ])?;
        let table = match stream.from_host {
            true => "host_exchange_from_host",
            false => "host_exchange_to_host",
        };
        connection.execute(
            &format!("INSERT INTO {table} VALUES (?1, ?2, ?2, 0, ?3)"),
            params![id, stream.name, stream.target],
        )?;
    }
    Ok(())
}

fn steps(plan: &Plan, connection: &Connection) -> rusqlite::Result<()> {
    let mut insert = connection.prepare("INSERT INTO depth_first_steps VALUES (?1, ?2, ?3)")?;
    for (id, (program, parent)) in plan.tree.steps.iter().enumerate() {
        insert.execute(params![id, program, parent])?;
    }
    Ok(())
}
