//! The variables of a pipelined compilation, with the names that its compiler
//! gives them.

use std::collections::HashMap;
use std::ops::Range;

use super::compilation::Compilation;
use super::copies::What;
use super::form::PlantedTruth;
use super::ipu::{Ipu, Of, Variable};
use super::model::{PipelineModel, TileContent};
use super::options::PipelineOptions;
use crate::liveness::{Classes, Ranges, Variable as Lowered};
use crate::overhead::{CATEGORIES, category};
use crate::places::Places;

/// The class of what is always live; 0 is that of what is never allocated.
pub(super) const ALWAYS: u32 = 1;

#[derive(Debug, Default)]
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

#[derive(Debug, Default)]
pub(super) struct IpuVariables {
    pub places: Places,
    /// By tile.
    pub tiles: Vec<Vec<Row>>,
}

/// The number of the name of a variable on a tile, and the variable.
pub(super) type Row = (usize, Lowered);

pub(super) fn of(model: &PipelineModel, cuts: &[u32], options: &PipelineOptions) -> Variables {
    let mut variables = Variables::default();
    variables.classes.push(Vec::new(), false);
    variables.classes.push(Vec::new(), true);
    let compiled = Compilation::new(&model.graph, cuts, options);
    for number in 0..compiled.stages.ipus() {
        let ipu = Ipu {
            compiled: &compiled,
            number,
        };
        let places = ipu.places();
        let mut tiles = variables.fixed(model, places);
        ipu.visit(|variable| {
            let rows = &mut tiles[variable.tile];
            variables.add(rows, &variable, options.schedule.has_fifo());
        });
        variables.ipus.push(IpuVariables { places, tiles });
    }
    let ranges = variables.classes.ranges.iter().flatten();
    variables.steps = ranges.map(|range| range.1).max().unwrap_or(0).max(1);
    variables
}

impl Variables {
    /// The bytes that are always live on one IPU too, each kind as one variable, by tile.
    fn fixed(&mut self, model: &PipelineModel, places: Places) -> Vec<Vec<Row>> {
        let names = model.plan.names();
        let tiles = 0..model.graph.tiles as usize;
        let rows = tiles.map(|tile| {
            let kinds = model.places.kinds(tile, places).into_iter();
            let row = kinds.map(|(kind, bytes)| {
                let is_user = kind.name < model.plan.groups.len();
                let name = self.name((names[kind.name].clone(), is_user));
                (name, always(kind.category, bytes))
            });
            row.collect()
        });
        rows.collect()
    }

    pub fn plant(&mut self, ipu: usize, planted: &PlantedTruth) {
        use category::{GLOBAL_EXCHANGE_CODE, HOST_EXCHANGE_CODE, INTERNAL_EXCHANGE_CODE};
        for (category, kind, by_tile) in [
            (GLOBAL_EXCHANGE_CODE, "global", &planted.global_exchange),
            (HOST_EXCHANGE_CODE, "host", &planted.host_exchange),
            (INTERNAL_EXCHANGE_CODE, "internal", &planted.restore),
        ] {
            let name = format!(".text.supervisor.{kind}_exchange_");
            let name = self.name((name, false));
            let tiles = self.ipus[ipu].tiles.iter_mut().zip(by_tile);
            for (rows, &bytes) in tiles.filter(|(_, bytes)| **bytes > 0) {
                rows.push((name, always(category, bytes)));
            }
        }
    }

    fn add(&mut self, rows: &mut Vec<Row>, variable: &Variable, has_fifo: bool) {
        let name = self.name((name(&variable.of, has_fifo), true));
        let bytes = variable.bytes;
        let (category, lives) = match variable.of {
            Of::Local(local, lives) => (local.category, lives),
            Of::Copy(_, _, lives) | Of::State(lives) => (category::VARIABLE, lives),
            Of::Ring(_) | Of::Accumulator(_) => {
                rows.push((name, always(category::VARIABLE, bytes)));
                return;
            }
        };
        for ranges in without_overlap(lives) {
            let class = self.classes.intern(ranges);
            let variable = Lowered {
                category,
                class,
                bytes,
            };
            rows.push((name, variable));
        }
    }

    fn name(&mut self, name: Name) -> usize {
        let next = self.names.len();
        *self.name_ids.entry(name).or_insert_with_key(|name| {
            self.names.push(name.clone());
            next
        })
    }
}

fn always(category: usize, bytes: u64) -> Lowered {
    Lowered {
        category,
        class: ALWAYS,
        bytes,
    }
}

/// The name of a variable in PopART, or in TensorFlow, whose stashes are FIFOs.
fn name(of: &Of, has_fifo: bool) -> String {
    match (of, has_fifo) {
        (Of::Local(local, _), _) => format!("local_{}", local.class),
        (Of::Copy(name, What::Made, _), _) => (*name).to_owned(),
        (Of::Copy(name, What::Received, _), false) => format!("{name}_ipucopy"),
        (Of::Copy(name, What::Received, _), true) => format!("{name}/inter-ipu-copy"),
        (Of::Copy(name, What::Restored(_), _), false) => format!("Restored___{name}"),
        (Of::Copy(name, What::Restored(_), _), true) => format!("{name}/fifo/out/0"),
        (Of::Copy(name, What::Recomputed, _), _) => format!("{name}_Recomputed"),
        (Of::Ring(name), false) => format!("Stashed___{name}"),
        (Of::Ring(name), true) => format!("{name}/fifo/buffer/0"),
        (Of::Accumulator(name), false) => format!("Accum___{name}"),
        (Of::State(_), _) => "state".to_owned(),
        (Of::Accumulator(name), true) => format!("{name}/Accumulator"),
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

impl TileContent {
    pub(super) fn new(variables: &Variables, rows: &[Row], step: u32, gap: u64) -> Self {
        let mut content = Self {
            gap,
            ..Self::default()
        };
        let is_live = |(_, variable): &&Row| {
            let mut ranges = variables.classes.ranges[variable.class as usize].iter();
            variable.class == ALWAYS || ranges.any(|range| (range.0..range.1).contains(&step))
        };
        for &(
            name,
            Lowered {
                category, bytes, ..
            },
        ) in rows.iter().filter(is_live)
        {
            if bytes > 0 {
                *content.categories.entry(CATEGORIES[category]).or_default() += bytes;
            }
            let name = variables.names[name].0.as_str();
            let is_called = |start: &str, end: &str| name.starts_with(start) || name.ends_with(end);
            if is_called("Stashed___", "/fifo/buffer/0") {
                content.stash += bytes;
            } else if is_called("Accum___", "/Accumulator") {
                content.accumulators += bytes;
            }
        }
        content
    }
}
