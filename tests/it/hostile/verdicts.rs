//! Files that lost or changed something: does the verdict change, and is there a warning?
//!
//! The limit of each case is the bytes that the fixture needs, or one byte less, so that the
//! smallest change of the memory can change the verdict. A warning that the verdict is the same
//! counts as silence. Removing or scaling half of a table or
//! more must not change it silently if the table has a witness. All other silent changes are
//! counted by kind and printed: single cells that no other part of a profile repeats, and names.
//!
//! `SEEDS=0..20000 cargo test --test it -- verdicts:: --nocapture` makes other changes, in any
//! number.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use clap::Parser;
use popliner::app::{Exit, Options, run};

use super::cases::{Case, number, tables};
use super::compiled::COMPILED;
use crate::support::models::{Random, seeds, share};
use crate::support::{ONE_IPU_FIXTURES, each, popliner, run_sql};

/// Tables that are read, and their columns with numbers that affect memory.
const TABLES: &str = "
    memory_by_tile total always_live_bytes not_always_live_max_bytes total_including_gaps
    memory_by_category non_interleaved_non_overlapped
    vars_info size_bytes tile category equivalence_class name_base_id
    eq_classes is_always_live
    eq_class_step step_id_from step_id_to
    depth_first_steps program_id
    control_programs program
    compute_sets var_ids_diff_rle debug_id vertex_counts
    exchange_regions var_id
    vertex_instances instances_by_tile
    vertex_types size
    memory_by_vertex_type code_bytes
    memory_by_compute_set vertex_data_bytes
    program_type_do_exchange code_bytes_by_tile_rle
    programs debug_id children control_code_bytes_by_tile
    unlowered_vars
    debug_ids ids
";

/// Tables with the rows and columns that another part of the profile repeats, so that a lost row or a
/// changed value is noticed.
const WITNESSED: &str = "
    memory_by_tile rows total always_live_bytes not_always_live_max_bytes
    memory_by_category non_interleaved_non_overlapped
    vars_info size_bytes equivalence_class tile category
    eq_classes rows is_always_live
    eq_class_step rows step_id_from step_id_to
    depth_first_steps rows program_id
    control_programs rows program
    vertex_instances rows
    memory_by_vertex_type rows code_bytes
    memory_by_compute_set rows vertex_data_bytes
    programs debug_id:nulled
    exchange_regions var_id
    debug_ids rows ids
";

/// A fixture without keys and constraints, with the bytes that it needs.
struct Subject {
    name: &'static str,
    needs: u64,
    /// Does the unchanged fixture fit in the bytes that it needs, and in one byte less? Finer
    /// layers may fit in less.
    fits: [Option<bool>; 2],
    /// The warnings for the unchanged fixture.
    warnings: Vec<String>,
}

impl Subject {
    fn new(name: &'static str) -> Self {
        let case = Case::loose_of(name);
        let needs = match name {
            COMPILED => number(&case.profile, "SELECT max(total) FROM memory_by_tile"),
            _ => case.run("--solve --num-ipus=4 --quiet").peak(),
        };
        let mut subject = Self {
            name,
            needs: needs as u64,
            fits: [None; 2],
            warnings: Vec::new(),
        };
        subject.fits = [subject.needs, subject.needs - 1].map(|limit| subject.fits(&case, limit));
        subject.warnings = subject.warnings(&case, subject.needs);
        subject
    }

    fn options(&self, limit: u64) -> String {
        let result = match self.name {
            COMPILED => "--fit",
            _ => "--solve --num-ipus=4",
        };
        format!("{result} --mem-per-tile={limit}")
    }

    /// Returns the verdict on both files; `None` without a verdict.
    fn fits(&self, case: &Case, limit: u64) -> Option<bool> {
        let line = format!("{} --quiet", self.options(limit));
        let arguments = [&[OsStr::new("popliner")], &case.arguments(&line)[..]].concat();
        let options = Options::try_parse_from(arguments).expect("a command line");
        match run(&options, &mut Vec::new()) {
            Ok(Exit::Done) => Some(true),
            Ok(Exit::DoesNotFit) => Some(false),
            Ok(_) | Err(_) => None,
        }
    }

    /// Returns the warnings of the command.
    fn warnings(&self, case: &Case, limit: u64) -> Vec<String> {
        let run = popliner(case.arguments(&self.options(limit)));
        let lines = run.err.lines().filter(|line| line.starts_with("warning: "));
        let text = |line: &str| line.replace(&case.folder.path().display().to_string(), "");
        lines.map(text).collect()
    }
}

/// A change of a profile, and whether it is large.
struct Change {
    /// The changed table or column, and how it was changed.
    kind: String,
    is_large: bool,
}

impl Change {
    /// Does another part of a profile witness the change?
    fn is_witnessed(&self) -> bool {
        let (table, change) = self.kind.split_once(' ').expect("a table");
        let is_it = |own: &&str| {
            let rest = change.strip_prefix(own);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
        };
        let mut witnessed = tables(WITNESSED).into_iter();
        self.is_large && witnessed.any(|(of, parts)| of == table && parts.iter().any(is_it))
    }
}

/// Makes one random change.
fn change(case: &Case, random: &mut Random) -> Change {
    let (table, columns) = random.one_of(&tables(TABLES));
    let (rows, is_large) = random.one_of(&[
        ("1", true),
        ("rowid % 2 = 0", true),
        ("rowid % 2 = 1", true),
        ("rowid = (SELECT max(rowid) FROM t)", false),
        ("rowid % 50 = 7", false),
    ]);
    let rows = rows.replace("FROM t", &format!("FROM {table}"));
    let (sql, kind) = if columns.is_empty() || random.once_in(3) {
        let sql = format!("DELETE FROM {table} WHERE {rows}");
        (sql, format!("{table} rows:deleted"))
    } else {
        let column = random.one_of(&columns);
        let values = [
            ("NULL", "nulled"),
            ("c * 2", "scaled"),
            ("c / 2", "scaled"),
            ("c + 8", "moved"),
            ("0", "zeroed"),
        ];
        let (value, what) = random.one_of(&values);
        let value = value.replace('c', column);
        let sql = format!("UPDATE {table} SET {column} = {value} WHERE {rows}");
        (sql, format!("{table} {column}:{what}"))
    };
    run_sql(&case.profile, &sql);
    Change { kind, is_large }
}

#[test]
fn no_verdict_turns_in_silence_where_there_is_a_witness() {
    let names: Vec<_> = ONE_IPU_FIXTURES.into_iter().chain([COMPILED]).collect();
    // By default some of the fixtures, since each is solved several times.
    let names: Vec<_> = names.into_iter().rev().step_by(share(3)).collect();
    let subjects = each(&names, |name| Subject::new(name));
    let all: Vec<u64> = seeds(40).collect();
    let outcomes = each(&all, |&seed| {
        let subject = &subjects[seed as usize % subjects.len()];
        let mut random = Random(seed);
        let less = random.once_in(2);
        let limit = subject.needs - u64::from(less);
        let expected = subject.fits[usize::from(less)].expect("a verdict");
        let case = Case::loose_of(subject.name);
        let change = change(&case, &mut random);
        let is_said = || {
            let warnings = subject.warnings(&case, limit);
            let is_new = |text: &&String| !subject.warnings.contains(text);
            let mut new = warnings.iter().filter(is_new);
            new.any(|text| !text.contains("but the verdict is the same"))
        };
        let outcome = match subject.fits(&case, limit) {
            None => "refused",
            Some(fits) if fits == expected => "kept",
            Some(_) if is_said() => "warned",
            Some(_) => "silent",
        };
        (outcome, change, format!("{}, seed {seed}", subject.name))
    });
    let with = |outcome| outcomes.iter().filter(move |(found, ..)| *found == outcome);
    let counts = ["refused", "kept", "warned", "silent"].map(|outcome| with(outcome).count());
    println!("{counts:?} refused, with the same verdict, with a warning of another, silent");
    let mut silent: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (_, change, place) in with("silent") {
        silent.entry(&change.kind).or_default().push(place);
    }
    for (kind, places) in &silent {
        println!("silent: {kind}: {} (such as {})", places.len(), places[0]);
    }
    let mut broken = with("silent").filter(|(_, change, _)| change.is_witnessed());
    if let Some((_, change, place)) = broken.next() {
        panic!("{}: {place}", change.kind);
    }
    assert!(counts[0] > all.len() / 5 && counts[1] > all.len() / 5);
}
