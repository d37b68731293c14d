//! The variables of a pipelined compilation, with the names that its compiler
//! gives them.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use super::ipu::{Named, When};
use super::model::{PipelineModel, StageTruth};
use super::options::PipelineOptions;
use crate::liveness::{Classes, Ranges, Variable as Lowered};
use crate::overhead;
use crate::places::Places;

/// The class of what is always live; 0 is that of what is never allocated.
pub(super) const ALWAYS: u32 = 1;

#[derive(Default)]
pub(super) struct Variables {
    /// Steps that have variables; those of all programs follow.
    pub steps: u32,
    pub names: Vec<Name>,
    /// Liveness classes. The always-live class gets its steps last, when all programs are numbered.
    pub classes: Classes,
    pub ipus: Vec<IpuVariables>,
    name_ids: HashMap<Name, usize>,
}

/// A name, and whether the model has such a variable, not only the compiled program.
pub(super) type Name = (String, bool);

pub(super) struct IpuVariables {
    pub places: Places,
    /// By tile.
    pub tiles: Vec<Vec<Row>>,
}

/// The number of the name of a variable on a tile, and the variable.
pub(super) type Row = (usize, Lowered);

impl Variables {
    pub fn new(model: &PipelineModel, cuts: &[u32], options: &PipelineOptions) -> Self {
        let mut variables = Self::default();
        variables.classes.push(Vec::new(), false);
        variables.classes.push(Vec::new(), true);
        model.ipus(cuts, options, |ipu| {
            let mut tiles = variables.fixed(model, ipu.places);
            ipu.visit(|tile, named, bytes, when| {
                let rows = variables.rows(named, bytes, when);
                tiles[tile].extend(rows);
            });
            let places = ipu.places;
            variables.ipus.push(IpuVariables { places, tiles });
        });
        let ranges = variables.classes.ranges.iter().flatten();
        variables.steps = ranges.map(|range| range.1).max().unwrap_or(0).max(1);
        variables
    }

    /// The bytes that are always live on one IPU too, each kind as one variable, by tile.
    fn fixed(&mut self, model: &PipelineModel, places: Places) -> Vec<Vec<Row>> {
        let names = model.plan.names();
        let tiles = 0..model.graph.tiles as usize;
        let rows = tiles.map(|tile| {
            let mut kinds = BTreeMap::new();
            for (kind, bytes) in model.places.kinds(tile, places) {
                *kinds.entry(kind).or_insert(0) += bytes;
            }
            let row = kinds.into_iter().map(|(kind, bytes)| {
                let is_user = kind.name < model.plan.groups.len();
                let name = self.name(&names[kind.name], is_user);
                (name, Lowered::always(kind.category, bytes))
            });
            row.collect()
        });
        rows.collect()
    }

    /// Adds code of a kind of exchange that is always live on an IPU.
    pub fn plant(&mut self, ipu: usize, (category, exchange): (usize, &str), by_tile: &[u64]) {
        let name = self.name(&format!(".text.supervisor.{exchange}_exchange_"), false);
        let tiles = self.ipus[ipu].tiles.iter_mut().zip(by_tile);
        for (rows, &bytes) in tiles.filter(|(_, bytes)| **bytes > 0) {
            rows.push((name, Lowered::always(category, bytes)));
        }
    }

    /// Returns the rows of a variable on a tile.
    fn rows(&mut self, (category, name): Named, bytes: u64, when: When) -> Vec<Row> {
        let lives = match when {
            When::At(lives) | When::Copy(lives) => lives,
            When::Any(_) => return Vec::new(),
            When::Ring | When::Accumulator => {
                return vec![(self.name(name, true), Lowered::always(category, bytes))];
            }
        };
        let name = self.name(name, true);
        let rows = without_overlap(lives).into_iter().map(|ranges| {
            let class = self.classes.intern(ranges);
            (name, Lowered::new(category, class, bytes))
        });
        rows.collect()
    }

    fn name(&mut self, name: &str, is_user: bool) -> usize {
        let next = self.names.len();
        let name = (name.to_owned(), is_user);
        *self.name_ids.entry(name).or_insert_with_key(|name| {
            self.names.push(name.clone());
            next
        })
    }

    /// Adds to the truth what is live on a tile at a step.
    pub fn count(&self, rows: &[Row], step: u32, truth: &mut StageTruth) {
        let is_live = |(_, variable): &&Row| {
            let mut ranges = self.classes.ranges[variable.class as usize].iter();
            variable.class == ALWAYS || ranges.any(|range| (range.0..range.1).contains(&step))
        };
        let (mut categories, mut accumulators) = (BTreeMap::new(), 0);
        for (name, variable) in rows.iter().filter(is_live).filter(|row| row.1.bytes > 0) {
            let category = overhead::categories()[variable.category].as_str();
            *categories.entry(category).or_insert(0) += variable.bytes;
            let name = &self.names[*name].0;
            if name.starts_with("Accum___") || name.ends_with("/Accumulator") {
                accumulators += variable.bytes;
            }
        }
        truth.categories.push(categories);
        truth.accumulators.push(accumulators);
    }
}

/// Steps of a variable that lives at these moments: ascending, without overlap. What
/// lives twice at a moment takes two variables. Step 0 is that of the sequence.
fn without_overlap(lives: &[Range<u32>]) -> Vec<Ranges> {
    let steps = lives.iter().map(|live| (live.start + 1, live.end + 1));
    let mut sorted: Ranges = steps.collect();
    sorted.sort_unstable();
    let mut variables: Vec<Ranges> = Vec::new();
    for (from, to) in sorted.into_iter().filter(|range| range.0 < range.1) {
        let ends = |ranges: &&mut Ranges| ranges.last().is_some_and(|last| last.1 <= from);
        let Some(ranges) = variables.iter_mut().find(ends) else {
            variables.push(vec![(from, to)]);
            continue;
        };
        match ranges.last_mut() {
            Some(last) if last.1 == from => last.1 = to,
            _ => ranges.push((from, to)),
        }
    }
    variables
}
