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
use crate::liveness::Variable as Lowered;
use crate::liveness::{Classes, Ranges};
use crate::overhead::{CATEGORIES, category};
use crate::place_truth::Kind;
use crate::places::Places;

/// The class of what is always live; 0 is that of what is never allocated.
pub(super) const ALWAYS: u32 = 1;

/// All variables.
#[derive(Debug, Default)]
pub(super) struct Variables {
    /// Steps of the profile.
    pub steps: u32,
    /// Names by number.
    pub names: Vec<Name>,
    /// Liveness classes. The always-live class gets its steps last, when all programs are numbered.
    pub classes: Classes,
    /// By IPU.
    pub ipus: Vec<IpuVariables>,
    name_ids: HashMap<Name, usize>,
}

/// The name of a variable.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Name {
    pub text: String,
    /// Whether the model has it as a variable, not only the compiled program.
    pub is_user: bool,
}

/// The variables of an IPU.
#[derive(Debug, Default)]
pub(super) struct IpuVariables {
    pub places: Places,
    /// By tile.
    pub tiles: Vec<Vec<Row>>,
}

/// A variable on a tile.
#[derive(Debug)]
pub(super) struct Row {
    /// The number of its name.
    pub name: usize,
    pub variable: Lowered,
}

/// The variables of a pipelined compilation.
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
        let mut ipu_variables = IpuVariables {
            places,
            tiles: variables.fixed(model, places),
        };
        ipu.visit(|variable| {
            variables.add(&mut ipu_variables, &variable, options.schedule.has_fifo());
        });
        variables.ipus.push(ipu_variables);
    }
    let ends = variables
        .classes
        .ranges
        .iter()
        .flatten()
        .map(|range| range.1);
    variables.steps = ends.max().unwrap_or(0).max(1);
    variables
}

impl Variables {
    /// Adds the bytes that are always live on one IPU too, each kind as one
    /// variable.
    fn fixed(&mut self, model: &PipelineModel, places: Places) -> Vec<Vec<Row>> {
        let mut tiles = Vec::new();
        let names = model.plan.names();
        for tile in 0..model.graph.tiles as usize {
            let kinds = model.places.kinds(tile, places);
            let row = |(kind, bytes): (Kind, u64)| {
                let text = names[kind.name].clone();
                let is_user = kind.name < model.plan.groups.len();
                let name = self.name(Name { text, is_user });
                let variable = always(kind.category, bytes);
                Row { name, variable }
            };
            tiles.push(kinds.into_iter().map(row).collect());
        }
        tiles
    }

    /// Adds what was planted on an IPU.
    pub fn plant(&mut self, ipu: usize, planted: &PlantedTruth) {
        let code = [
            (
                category::GLOBAL_EXCHANGE_CODE,
                "global",
                &planted.global_exchange,
            ),
            (category::HOST_EXCHANGE_CODE, "host", &planted.host_exchange),
            (
                category::INTERNAL_EXCHANGE_CODE,
                "internal",
                &planted.restore,
            ),
        ];
        for (category, kind, by_tile) in code {
            let text = format!(".text.supervisor.{kind}_exchange_");
            let is_user = false;
            let name = self.name(Name { text, is_user });
            let tiles = self.ipus[ipu].tiles.iter_mut().zip(by_tile);
            for (rows, &bytes) in tiles.filter(|(_, bytes)| **bytes > 0) {
                let variable = always(category, bytes);
                rows.push(Row { name, variable });
            }
        }
    }

    fn add(&mut self, ipu_variables: &mut IpuVariables, variable: &Variable, has_fifo: bool) {
        let text = name(&variable.of, has_fifo);
        let is_user = true;
        let name = self.name(Name { text, is_user });
        let rows = &mut ipu_variables.tiles[variable.tile];
        let bytes = variable.bytes;
        let (category, lives) = match variable.of {
            Of::Local(local, lives) => (local.category, lives),
            Of::Copy(_, _, lives) | Of::State(lives) => (category::VARIABLE, lives),
            Of::Ring(_) | Of::Accumulator(_) => {
                let variable = always(category::VARIABLE, bytes);
                rows.push(Row { name, variable });
                return;
            }
        };
        for ranges in without_overlap(lives) {
            let variable = Lowered {
                category,
                class: self.classes.intern(ranges),
                bytes,
            };
            rows.push(Row { name, variable });
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
    let mut sorted: Vec<(u32, u32)> = lives
        .iter()
        .map(|live| (live.start + 1, live.end + 1))
        .collect();
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
    /// The content of these variables at a step.
    pub(super) fn new(variables: &Variables, rows: &[Row], step: u32, gap: u64) -> Self {
        let mut content = Self {
            gap,
            ..Self::default()
        };
        let is_live = |row: &&Row| {
            let class = row.variable.class;
            let mut ranges = variables.classes.ranges[class as usize].iter();
            class == ALWAYS || ranges.any(|range| (range.0..range.1).contains(&step))
        };
        for row in rows.iter().filter(is_live) {
            let bytes = row.variable.bytes;
            let category = CATEGORIES[row.variable.category];
            *content.categories.entry(category).or_default() += bytes;
            let name = variables.names[row.name].text.as_str();
            let is_called = |start: &str, end: &str| name.starts_with(start) || name.ends_with(end);
            if is_called("Stashed___", "/fifo/buffer/0") {
                content.stash += bytes;
            } else if is_called("Accum___", "/Accumulator") {
                content.accumulators += bytes;
            }
        }
        content.categories.retain(|_, bytes| *bytes > 0);
        content
    }
}
