//! Changes to a profile and its contexts that keep them sound, but add features that the generator
//! does not write: shared or nested programs and functions, steps with other ids, and moved
//! contexts.

use std::path::Path;

use ciborium::Value;
use popliner::profile::encoding::push_varint;
use rusqlite::{Connection, params};

use super::contexts::{self, field, remove, set};
use super::models::Random;

/// Makes some of the changes below.
pub fn profile(path: &Path, random: &mut Random) {
    let mut connection = Connection::open(path).unwrap();
    let transaction = connection.transaction().unwrap();
    if random.once_in(2) {
        move_contexts(&transaction, random);
    }
    for _ in 0..random.below(4) {
        share_a_program(&transaction, random);
    }
    for _ in 0..random.below(4) {
        outline(&transaction, random);
    }
    if random.once_in(2) {
        split_ranges(&transaction, random);
    }
    if random.once_in(2) {
        renumber_steps(&transaction);
    }
    transaction.commit().unwrap();
}

fn numbers(connection: &Connection, sql: &str) -> Vec<i64> {
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

fn number(connection: &Connection, sql: &str) -> i64 {
    connection.query_row(sql, [], |row| row.get(0)).expect(sql)
}

/// Gives programs the contexts of others, or no context, or unknown ones.
fn move_contexts(connection: &Connection, random: &mut Random) {
    let programs = numbers(connection, "SELECT id FROM programs");
    let contexts = numbers(connection, "SELECT coalesce(debug_id, 0) FROM programs");
    for program in programs {
        let context = match random.below(40) {
            0 => None,
            1 => Some(0),
            2 => Some(1 << 40),
            3..10 => Some(random.one_of(&contexts)),
            _ => continue,
        };
        let sql = "UPDATE programs SET debug_id = ?2 WHERE id = ?1";
        connection.execute(sql, params![program, context]).unwrap();
    }
    // A compute set has no context if its program has none.
    let sql = "UPDATE compute_sets SET debug_id = 0 WHERE compute_set IN
               (SELECT e.compute_set FROM program_type_on_tile_execute e
                JOIN programs p ON p.variant_index = e.id
                JOIN program_types t ON t.id = p.variant
                WHERE t.name = 'OnTileExecute' AND coalesce(p.debug_id, 0) = 0)";
    connection.execute(sql, []).unwrap();
}

/// Returns the programs that meet an SQL condition on their type or children.
fn programs(connection: &Connection, condition: &str) -> Vec<i64> {
    let sql = format!(
        "SELECT p.id FROM programs p JOIN program_types t ON t.id = p.variant WHERE {condition}"
    );
    numbers(connection, &sql)
}

/// Appends a program to the children of another.
fn add_child(connection: &Connection, parent: i64, child: i64) {
    let sql = "SELECT children FROM programs WHERE id = ?1";
    let children = connection.query_row(sql, [parent], |row| row.get(0));
    let mut children: Vec<u8> = children.unwrap();
    push_varint(&mut children, child as u64);
    let sql = "UPDATE programs SET children = ?2 WHERE id = ?1";
    connection.execute(sql, params![parent, children]).unwrap();
}

const WITH_CHILDREN: &str = "t.name = 'Sequence' AND length(p.children) > 0 AND p.id NOT IN
    (SELECT program FROM control_programs UNION SELECT program FROM function_programs)";

/// Gives a program without children a second parent.
fn share_a_program(connection: &Connection, random: &mut Random) {
    let leaves = "t.name IN ('OnTileExecute', 'DoExchange', 'StreamCopyMid')";
    let leaf = random.one_of(&programs(connection, leaves));
    let parent = random.one_of(&programs(connection, WITH_CHILDREN));
    add_child(connection, parent, leaf);
}

/// Turns a sequence into a Call of a new function with its children, sometimes through nested
/// functions. Sometimes calls the function again, unless the sequence may have most of the model: a
/// model that trains twice has no two passes. The steps stay unchanged.
fn outline(connection: &Connection, random: &mut Random) {
    let sequences = programs(connection, WITH_CHILDREN);
    if sequences.is_empty() {
        return;
    }
    // The longest sequence has most of the model.
    let longest = format!("{WITH_CHILDREN} ORDER BY length(p.children) DESC LIMIT 1");
    let is_longest = random.once_in(2);
    let call = match is_longest {
        true => programs(connection, &longest)[0],
        false => random.one_of(&sequences),
    };
    let mut body = move_into_function(connection, call, random);
    while random.once_in(2) {
        body = move_into_function(connection, body, random);
    }
    if !is_longest && random.once_in(2) {
        call_again(connection, call, random);
    }
}

/// Turns a sequence into a Call of a new function, and returns the function's body, which takes
/// over everything else. The Call often has the context of some program.
fn move_into_function(connection: &Connection, call: i64, random: &mut Random) -> i64 {
    let body = copy_program(connection, call);
    let [function, row] = ["function_programs", "program_type_call"].map(|table| {
        let sql = format!("SELECT coalesce(max(id), 0) + 1 FROM {table}");
        number(connection, &sql)
    });
    let statements = format!(
        "INSERT INTO program_types
         SELECT max(id) + 1, 'Call', 'program_type_call' FROM program_types
         HAVING 'Call' NOT IN (SELECT name FROM program_types);
         INSERT INTO function_programs (id, program) VALUES ({function}, {body});
         INSERT INTO program_type_call (id, function_id) VALUES ({row}, {function});
         UPDATE programs SET children = x'', variant_index = {row},
             variant = (SELECT id FROM program_types WHERE name = 'Call') WHERE id = {call};"
    );
    connection.execute_batch(&statements).expect(&statements);
    if !random.once_in(3) {
        let sql = "SELECT debug_id FROM programs WHERE debug_id > 0";
        let contexts = numbers(connection, sql);
        let sql = "UPDATE programs SET debug_id = ?2 WHERE id = ?1";
        let context = random.one_of(&contexts);
        connection.execute(sql, params![call, context]).unwrap();
    }
    body
}

/// Copies a program, and returns the id of the copy.
fn copy_program(connection: &Connection, program: i64) -> i64 {
    let sql = "INSERT INTO programs (id, variant, variant_index, children, debug_id,
                                     control_code_bytes_by_tile)
               SELECT (SELECT max(id) + 1 FROM programs), variant, variant_index, children, debug_id,
                      control_code_bytes_by_tile FROM programs WHERE id = ?1";
    connection.execute(sql, [program]).unwrap();
    number(connection, "SELECT max(id) FROM programs")
}

/// Appends the Call, or a second Call of the same function, to the root.
fn call_again(connection: &Connection, call: i64, random: &mut Random) {
    let again = match random.once_in(2) {
        true => copy_program(connection, call),
        false => call,
    };
    let roots = "SELECT program FROM control_programs ORDER BY id DESC LIMIT 1";
    add_child(connection, number(connection, roots), again);
}

/// Makes some classes live over two ranges, with or without a gap.
fn split_ranges(connection: &Connection, random: &mut Random) {
    let sql = "SELECT s.rowid FROM eq_class_step s JOIN eq_classes c ON c.id = s.eq_class_id
               WHERE c.is_always_live = 0 AND s.step_id_to - s.step_id_from > 3";
    for row in numbers(connection, sql) {
        if random.once_in(3) {
            let gap = 1 + random.below(2);
            let statements = format!(
                "INSERT INTO eq_class_step
                 SELECT eq_class_id, step_id_from + 1 + {gap}, step_id_to
                 FROM eq_class_step WHERE rowid = {row};
                 UPDATE eq_class_step SET step_id_to = step_id_from + 1 WHERE rowid = {row};"
            );
            connection.execute_batch(&statements).unwrap();
        }
    }
    record_again(connection);
}

/// Records again, for each tile, the maximum that is live at one step, with the same total and more
/// in gaps, and the bytes at each step on all tiles. Step ids are positions.
fn record_again(connection: &Connection) {
    let statement = "
        UPDATE memory_by_tile SET not_always_live_max_bytes = coalesce((
            SELECT max(live) FROM (
                SELECT s.id, sum(v.size_bytes) AS live
                FROM depth_first_steps s
                JOIN eq_class_step r ON r.step_id_from <= s.id AND s.id < r.step_id_to
                JOIN eq_classes c ON c.id = r.eq_class_id AND c.is_always_live = 0
                JOIN vars_info v ON v.equivalence_class = c.id
                WHERE v.tile = memory_by_tile.tile GROUP BY s.id)), 0);
        DELETE FROM memory_not_always_live_by_step_and_ipu;
        WITH ends AS (
            SELECT r.step_id_from AS step, v.size_bytes AS bytes
            FROM eq_class_step r
            JOIN eq_classes c ON c.id = r.eq_class_id AND c.is_always_live = 0
            JOIN vars_info v ON v.equivalence_class = c.id
            UNION ALL
            SELECT r.step_id_to, -v.size_bytes
            FROM eq_class_step r
            JOIN eq_classes c ON c.id = r.eq_class_id AND c.is_always_live = 0
            JOIN vars_info v ON v.equivalence_class = c.id)
        INSERT INTO memory_not_always_live_by_step_and_ipu
        SELECT NULL, step, sum(bytes) FROM ends JOIN depth_first_steps s ON s.id = step
        GROUP BY step HAVING sum(bytes) <> 0;";
    connection.execute_batch(statement).unwrap();
}

/// Gives steps ids that are not positions.
fn renumber_steps(connection: &Connection) {
    let statements = "
        UPDATE depth_first_steps SET id = -(3 * id + 7), parent_step_id = 3 * parent_step_id + 7;
        UPDATE depth_first_steps SET id = -id;
        UPDATE eq_class_step SET step_id_from = 3 * step_id_from + 7,
                                 step_id_to = 3 * step_id_to + 7;
        UPDATE memory_not_always_live_by_step_and_ipu SET step_id = 3 * step_id + 7;";
    connection.execute_batch(statements).unwrap();
}

/// Changes some contexts: removes fields, and adds some.
pub fn contexts(path: &Path, random: &mut Random) {
    contexts::change(path, |list, _| {
        let ids: Vec<Value> = list.iter().map(|context| field(context, "id")).collect();
        let is_of_popart = |context: &Value| field(context, "layer") == "popart".into();
        let popart = list.iter().filter(|context| is_of_popart(context));
        let popart: Vec<Value> = popart.map(|context| field(context, "id")).collect();
        let many_pairs = random.once_in(3);
        for context in list {
            if is_of_popart(context) {
                change_popart(context, &popart, random);
                if many_pairs && random.once_in(2) {
                    set_pairs(context, &popart, random);
                }
            }
            if field(context, "layer") != "onnx".into() {
                change_any(context, &ids, random);
            }
        }
    });
}

/// Changes a context of any layer. `onnx` is left out: as a root it would be an operation, and its
/// `input` is not the `inputs` of the rules.
fn change_any(context: &mut Value, ids: &[Value], random: &mut Random) {
    let fields = ["op_name", "hlo_name", "api", "name", "inputs", "parentId"];
    // The profile also has the name of a compute set, so removing it here would be damage.
    let is_of_set = format!("{context:?}").contains("computeSet");
    match random.below(20) {
        0 if !is_of_set => remove(context, random.one_of(&fields)),
        1 => set(context, "parentId", random.one_of(ids)),
        _ => {}
    }
}

/// Changes fields that only PopART contexts have.
fn change_popart(context: &mut Value, popart: &[Value], random: &mut Random) {
    match random.below(20) {
        0 => set(context, "tensorId", "weight/3"),
        1 => set(context, "instanceId", "77"),
        2 => set(context, "opid", "ai.graphcore.Call:1"),
        3 => {
            let inputs = ["layer.1.weight", "layer.2.bias", "word_embeddings", "mask"];
            let inputs = (0..random.below(3)).map(|_| random.one_of(&inputs).into());
            set(context, "inputs", Value::Array(inputs.collect()));
        }
        4 => set_pairs(context, popart, random),
        _ => {}
    }
}

/// Turns an operation into one that replaced others.
fn set_pairs(context: &mut Value, ids: &[Value], random: &mut Random) {
    let mut outlined: Vec<Value> = ids.to_vec();
    outlined.retain(|_| !random.once_in(3));
    let replaced = outlined.iter().map(|_| random.one_of(ids)).collect();
    for (key, ids) in [
        ("outlinedDebugContextIds", outlined),
        ("replacedDebugContextIds", replaced),
    ] {
        let list: Vec<String> = ids.iter().map(text).collect();
        set(context, key, format!("[{}]", list.join(",")));
    }
}

fn text(id: &Value) -> String {
    i128::from(id.as_integer().unwrap()).to_string()
}
