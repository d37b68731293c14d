//! Reads `profile.pop` with plain SQL.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use rusqlite::{Connection, OpenFlags, Row};

use super::codec::{differences, list, runs};

pub struct Program {
    pub id: i64,
    /// The name of the program's type, such as `OnTileExecute`.
    pub kind: String,
    pub name: String,
    pub children: Vec<i64>,
    pub debug_id: u64,
    /// Bytes of control code by tile, with the children's.
    pub control_code: Vec<u64>,
    /// Bytes of code by tile, for a `DoExchange`.
    pub exchange_code: Vec<u64>,
    /// The compute set of an `OnTileExecute`.
    pub compute_set: Option<i64>,
    /// The program that a `Call` calls.
    pub body: Option<i64>,
    /// How often the children run when the program runs.
    pub times: u64,
    /// The variables that the program uses, by docs/model.md, "Operations".
    pub variables: BTreeSet<i64>,
}

#[derive(Default)]
pub struct ComputeSet {
    pub name: String,
    pub variables: Vec<i64>,
    /// Vertex types, each with its number of instances by tile.
    pub vertices: Vec<(i64, Vec<u64>)>,
}

pub struct VertexType {
    pub size: u64,
    /// Bytes of code by tile.
    pub code: Vec<u64>,
}

pub struct Variable {
    pub tile: usize,
    pub bytes: u64,
    pub class: i64,
    pub category: String,
    pub name: String,
}

pub struct Step {
    pub program: i64,
    /// Index of the parent step.
    pub parent: Option<usize>,
}

/// Recorded bytes of a tile.
#[derive(Clone, Copy)]
pub struct Recorded {
    pub total: u64,
    pub always_live: u64,
    pub not_always_live: u64,
}

pub struct Profile {
    pub tiles: usize,
    pub bytes_per_tile: u64,
    pub programs: HashMap<i64, Program>,
    /// Ids of the root programs, ascending.
    pub roots: Vec<i64>,
    pub compute_sets: HashMap<i64, ComputeSet>,
    pub vertex_types: HashMap<i64, VertexType>,
    pub variables: BTreeMap<i64, Variable>,
    /// Half-open ranges of step indices by class.
    pub ranges: HashMap<i64, Vec<(usize, usize)>>,
    /// The distinct steps at which a class is live.
    pub live_steps: HashMap<i64, Vec<usize>>,
    pub steps: Vec<Step>,
    pub recorded: Vec<Recorded>,
}

/// Plain SQL on a file that no process writes to.
pub(super) struct Database(Connection);

impl Database {
    pub(super) fn open(path: &Path) -> Self {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
        Self(Connection::open_with_flags(path, flags).expect("profile.pop opens"))
    }

    pub(super) fn rows<T>(&self, sql: &str, read: impl Fn(&Row) -> T) -> Vec<T> {
        let mut statement = self.0.prepare(sql).expect(sql);
        let rows = statement.query_map([], |row| Ok(read(row))).expect(sql);
        rows.map(|row| row.expect(sql)).collect()
    }

    pub(super) fn pairs(&self, sql: &str) -> Vec<(i64, i64)> {
        self.rows(sql, |row| (number(row, 0), number(row, 1)))
    }
}

pub(super) fn number(row: &Row, column: usize) -> i64 {
    row.get_unwrap(column)
}

pub(super) fn size(row: &Row, column: usize) -> u64 {
    number(row, column).try_into().expect("not negative")
}

/// Reads text that may be NULL.
fn text(row: &Row, column: usize) -> String {
    let text: Option<String> = row.get_unwrap(column);
    text.unwrap_or_default()
}

/// Reads a blob that may be NULL.
pub(super) fn blob(row: &Row, column: usize) -> Vec<u8> {
    let blob: Option<Vec<u8>> = row.get_unwrap(column);
    blob.unwrap_or_default()
}

fn ids(values: Vec<u64>) -> Vec<i64> {
    values.into_iter().map(|value| value as i64).collect()
}

/// Returns values by tile, with 0 for tiles that the list lacks (a NULL is an empty list).
fn by_tile(mut values: Vec<u64>, tiles: usize) -> Vec<u64> {
    assert!(values.len() <= tiles);
    values.resize(tiles, 0);
    values
}

impl Profile {
    pub fn read(path: &Path) -> Self {
        let database = Database::open(path);
        let target = "SELECT num_tiles, bytes_per_tile FROM target_info";
        let (tiles, bytes_per_tile) = database.pairs(target)[0];
        let tiles = tiles as usize;
        let roots = "SELECT id, program FROM control_programs ORDER BY id";
        let compute_sets = compute_sets(&database, tiles);
        let step_ids = "SELECT id FROM depth_first_steps ORDER BY id";
        let step_ids = database.rows(step_ids, |row| number(row, 0));
        let ranges = ranges(&database, &step_ids);
        Self {
            tiles,
            bytes_per_tile: bytes_per_tile as u64,
            programs: programs(&database, tiles, &compute_sets),
            roots: database.pairs(roots).into_iter().map(|(_, p)| p).collect(),
            compute_sets,
            vertex_types: vertex_types(&database, tiles),
            variables: variables(&database),
            live_steps: live_steps(&ranges),
            ranges,
            steps: steps(&database, &step_ids),
            recorded: recorded(&database),
        }
    }
}

fn programs(
    database: &Database,
    tiles: usize,
    compute_sets: &HashMap<i64, ComputeSet>,
) -> HashMap<i64, Program> {
    let regions = region_variables(database);
    let sql = "SELECT p.id, t.name, p.name, p.children, p.debug_id, p.control_code_bytes_by_tile,
                      d.code_bytes_by_tile_rle, e.compute_set, f.program,
                      coalesce(r.repeat_count, 1)
               FROM programs p JOIN program_types t ON t.id = p.variant
               LEFT JOIN program_type_do_exchange d
                 ON t.name = 'DoExchange' AND d.id = p.variant_index
               LEFT JOIN program_type_on_tile_execute e
                 ON t.name = 'OnTileExecute' AND e.id = p.variant_index
               LEFT JOIN program_type_call c ON t.name = 'Call' AND c.id = p.variant_index
               LEFT JOIN function_programs f ON f.id = c.function_id
               LEFT JOIN program_type_repeat r ON t.name = 'Repeat' AND r.id = p.variant_index";
    let read = |row: &Row| Program {
        id: number(row, 0),
        kind: text(row, 1),
        name: text(row, 2),
        children: ids(list(&blob(row, 3))),
        debug_id: row.get_unwrap::<_, Option<i64>>(4).unwrap_or(0) as u64,
        control_code: by_tile(runs(&blob(row, 5)), tiles),
        exchange_code: by_tile(runs(&blob(row, 6)), tiles),
        compute_set: row.get_unwrap(7),
        body: row.get_unwrap(8),
        times: size(row, 9),
        variables: BTreeSet::new(),
    };
    let programs = database.rows(sql, read).into_iter().map(|mut program| {
        let of_regions = regions.get(&program.id).into_iter().flatten();
        let set = program.compute_set.map(|set| &compute_sets[&set]);
        let of_set = set.into_iter().flat_map(|set| &set.variables);
        program.variables = of_regions.chain(of_set).copied().collect();
        (program.id, program)
    });
    programs.collect()
}

/// The tables of programs with regions: the kind of a program, its table, the column that the program
/// refers to, and the column with the regions.
const REGIONS: &str = "
    DoExchange program_type_do_exchange id source_regions_id
    DoExchange program_type_do_exchange id destination_regions_id
    GlobalExchange program_type_global_exchange id source_regions_id
    GlobalExchange program_type_global_exchange id destination_regions_id
    StreamCopyMid host_exchange_from_host stream_copy_mid_id regions_id
    StreamCopyMid host_exchange_to_host stream_copy_mid_id regions_id
    CodeCopy program_type_code_copy id destination_regions_id
";

/// Returns the variables of regions, by program (docs/model.md, "Operations").
fn region_variables(database: &Database) -> HashMap<i64, Vec<i64>> {
    let mut regions: HashMap<i64, Vec<i64>> = HashMap::new();
    for line in REGIONS.trim().lines() {
        let [kind, table, key, column] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("four words: {line}");
        };
        let variables = database.pairs(&format!(
            "SELECT p.id, r.var_id FROM programs p
             JOIN program_types t ON t.id = p.variant AND t.name = '{kind}'
             JOIN {table} x ON x.{key} = p.variant_index
             JOIN exchange_regions r ON r.id = x.{column}"
        ));
        for (program, variable) in variables {
            regions.entry(program).or_default().push(variable);
        }
    }
    regions
}

fn compute_sets(database: &Database, tiles: usize) -> HashMap<i64, ComputeSet> {
    let sql = "SELECT compute_set, name, var_ids_diff_rle FROM compute_sets";
    let read = |row: &Row| {
        let set = ComputeSet {
            name: text(row, 1),
            variables: ids(differences(&blob(row, 2))),
            vertices: Vec::new(),
        };
        (number(row, 0), set)
    };
    let mut sets: HashMap<i64, ComputeSet> = database.rows(sql, read).into_iter().collect();
    let sql = "SELECT compute_set, vertex_type, instances_by_tile FROM vertex_instances";
    let read = |row: &Row| (number(row, 0), number(row, 1), runs(&blob(row, 2)));
    for (set, vertex_type, instances) in database.rows(sql, read) {
        let set = sets.get_mut(&set).expect("a compute set");
        set.vertices.push((vertex_type, by_tile(instances, tiles)));
    }
    sets
}

fn vertex_types(database: &Database, tiles: usize) -> HashMap<i64, VertexType> {
    let sql = "SELECT t.id, t.size, m.code_bytes FROM vertex_types t
               LEFT JOIN memory_by_vertex_type m ON m.vertex_type = t.id";
    let read = |row: &Row| {
        let vertex_type = VertexType {
            size: size(row, 1),
            code: by_tile(list(&blob(row, 2)), tiles),
        };
        (number(row, 0), vertex_type)
    };
    database.rows(sql, read).into_iter().collect()
}

fn variables(database: &Database) -> BTreeMap<i64, Variable> {
    let sql = "SELECT v.var_id, v.tile, v.size_bytes, v.equivalence_class, c.name,
                      coalesce('__vertexField_' || v.name_prefix__vertex_field_, '')
                          || coalesce(s.string, '') || v.name_suffix
               FROM vars_info v
               LEFT JOIN var_categories c ON c.id = v.category
               LEFT JOIN vars_string_table s ON s.id = v.name_base_id";
    let read = |row: &Row| {
        let variable = Variable {
            tile: size(row, 1) as usize,
            bytes: size(row, 2),
            class: number(row, 3),
            category: text(row, 4),
            name: text(row, 5),
        };
        (number(row, 0), variable)
    };
    database.rows(sql, read).into_iter().collect()
}

/// Returns the ranges of each class, converted from step ids to step indices. A class without a row
/// is not in the map.
fn ranges(database: &Database, step_ids: &[i64]) -> HashMap<i64, Vec<(usize, usize)>> {
    let index = |id: i64| step_ids.iter().take_while(|&&step| step < id).count();
    let mut ranges: HashMap<i64, Vec<(usize, usize)>> = HashMap::new();
    let sql = "SELECT s.eq_class_id, s.step_id_from, s.step_id_to
               FROM eq_class_step s JOIN eq_classes c ON c.id = s.eq_class_id
               WHERE c.is_always_live = 0";
    let read = |row: &Row| [0, 1, 2].map(|column| number(row, column));
    for [class, from, to] in database.rows(sql, read) {
        let range = (index(from), index(to));
        ranges.entry(class).or_default().push(range);
    }
    for (class, _) in database.pairs("SELECT id, 0 FROM eq_classes WHERE is_always_live <> 0") {
        ranges.insert(class, vec![(0, step_ids.len())]);
    }
    ranges
}

fn live_steps(ranges: &HashMap<i64, Vec<(usize, usize)>>) -> HashMap<i64, Vec<usize>> {
    let distinct = |ranges: &Vec<(usize, usize)>| -> BTreeSet<usize> {
        ranges.iter().flat_map(|&(from, to)| from..to).collect()
    };
    let live = |ranges| distinct(ranges).into_iter().collect();
    let classes = ranges.iter();
    classes
        .map(|(&class, ranges)| (class, live(ranges)))
        .collect()
}

fn steps(database: &Database, step_ids: &[i64]) -> Vec<Step> {
    let index: HashMap<i64, usize> = step_ids.iter().copied().zip(0..).collect();
    let sql = "SELECT program_id, parent_step_id FROM depth_first_steps ORDER BY id";
    let parent = |row: &Row| index.get(&row.get_unwrap::<_, Option<i64>>(1)?).copied();
    database.rows(sql, |row| Step {
        program: number(row, 0),
        parent: parent(row),
    })
}

fn recorded(database: &Database) -> Vec<Recorded> {
    let sql = "SELECT total, always_live_bytes, not_always_live_max_bytes
               FROM memory_by_tile ORDER BY tile";
    database.rows(sql, |row| Recorded {
        total: size(row, 0),
        always_live: size(row, 1),
        not_always_live: size(row, 2),
    })
}
