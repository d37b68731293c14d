//! The variables of a pipelined compilation, with the names that its compiler
//! gives them.

use std::collections::HashMap;
use std::ops::Range;

use super::super::liveness::Ranges;
use super::super::overhead::category;
use super::super::places::Places;
use super::super::truth::Variable as Lowered;
use super::PipelineModel;
use super::copies::What;
use super::ipu::{Of, Variable};
use super::options::PipelineOptions;
use super::simulate::walk;

/// The class of what is always live; 0 is that of what is never allocated.
pub(super) const ALWAYS: u32 = 1;

/// All variables.
#[derive(Debug, Default)]
pub(super) struct Variables {
    /// Steps of the profile.
    pub steps: u32,
    /// Names by number.
    pub names: Vec<String>,
    /// By class: its live ranges.
    pub classes: Vec<Ranges>,
    /// By IPU.
    pub ipus: Vec<IpuVariables>,
    name_ids: HashMap<String, usize>,
    class_ids: HashMap<Ranges, u32>,
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
    let mut variables = Variables {
        classes: vec![Vec::new(), vec![(0, 0)]],
        ..Variables::default()
    };
    walk(&model.graph, cuts, options, |ipu, routes| {
        let places = ipu.stages.places(&model.graph, ipu.number);
        let mut own = IpuVariables {
            places,
            tiles: variables.fixed(model, places),
        };
        ipu.visit(routes, |variable| {
            variables.add(&mut own, &variable, options.schedule.has_fifo());
        });
        variables.ipus.push(own);
    });
    let ends = variables.classes.iter().flatten().map(|range| range.1);
    variables.steps = ends.max().unwrap_or(0).max(1);
    variables
}

impl Variables {
    /// What is live at all times on one IPU too: weights, and everything else as
    /// one variable.
    fn fixed(&mut self, model: &PipelineModel, places: Places) -> Vec<Vec<Row>> {
        let tiles = 0..model.graph.tiles as usize;
        let mut rows: Vec<Vec<Row>> = tiles.clone().map(|_| Vec::new()).collect();
        let mut left: Vec<u64> = tiles.map(|tile| model.places.fixed(tile, places)).collect();
        let weights = model.graph.weights.iter();
        for weight in weights.filter(|weight| weight.places.meets(places)) {
            let name = self.name(weight.name.clone());
            for &(tile, bytes) in &weight.on_tiles {
                let variable = always(category::VARIABLE, bytes);
                rows[tile as usize].push(Row { name, variable });
                left[tile as usize] -= bytes;
            }
        }
        let name = self.name("code_and_state".to_owned());
        for (rows, bytes) in rows.iter_mut().zip(left) {
            let variable = always(category::CONTROL_CODE, bytes);
            rows.push(Row { name, variable });
        }
        rows
    }

    fn add(&mut self, own: &mut IpuVariables, variable: &Variable, has_fifo: bool) {
        let name = self.name(name(&variable.of, has_fifo));
        let rows = &mut own.tiles[variable.tile];
        let bytes = variable.bytes;
        let lives = match variable.of {
            Of::Local(_, lives) | Of::Copy(_, _, lives) => lives,
            Of::Ring(_) | Of::Accumulator(_) => {
                let variable = always(category::VARIABLE, bytes);
                rows.push(Row { name, variable });
                return;
            }
        };
        for ranges in apart(lives) {
            let variable = Lowered {
                category: category::VARIABLE,
                class: self.class(ranges),
                bytes,
            };
            rows.push(Row { name, variable });
        }
    }

    fn name(&mut self, name: String) -> usize {
        let next = self.names.len();
        *self.name_ids.entry(name).or_insert_with_key(|name| {
            self.names.push(name.clone());
            next
        })
    }

    fn class(&mut self, ranges: Ranges) -> u32 {
        let next = self.classes.len() as u32;
        *self.class_ids.entry(ranges).or_insert_with_key(|ranges| {
            self.classes.push(ranges.clone());
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

/// What PopART calls a variable, or TensorFlow, whose stashes are FIFOs.
fn name(of: &Of, has_fifo: bool) -> String {
    match (of, has_fifo) {
        (Of::Local(class, _), _) => format!("local_{class}"),
        (Of::Copy(name, What::Made, _), _) => (*name).to_owned(),
        (Of::Copy(name, What::Received, _), false) => format!("{name}_ipucopy"),
        (Of::Copy(name, What::Received, _), true) => format!("{name}/inter-ipu-copy"),
        (Of::Copy(name, What::Restored(_), _), false) => format!("Restored___{name}"),
        (Of::Copy(name, What::Restored(_), _), true) => format!("{name}/fifo/out/0"),
        (Of::Copy(name, What::Recomputed, _), _) => format!("{name}_Recomputed"),
        (Of::Ring(name), false) => format!("Stashed___{name}"),
        (Of::Ring(name), true) => format!("{name}/fifo/buffer/0"),
        (Of::Accumulator(name), false) => format!("Accum___{name}"),
        (Of::Accumulator(name), true) => format!("{name}/Accumulator"),
    }
}

/// Steps of a variable that lives at these moments: ascending and apart. What
/// lives twice at a moment takes two variables. Step 0 is that of the sequence.
fn apart(lives: &[Range<u32>]) -> Vec<Ranges> {
    let mut sorted: Vec<(u32, u32)> = lives
        .iter()
        .map(|own| (own.start + 1, own.end + 1))
        .collect();
    sorted.sort_unstable();
    let mut variables: Vec<Ranges> = Vec::new();
    for (from, to) in sorted.into_iter().filter(|own| own.0 < own.1) {
        let ends = |own: &&mut Ranges| own.last().is_some_and(|last| last.1 <= from);
        let Some(own) = variables.iter_mut().find(ends) else {
            variables.push(vec![(from, to)]);
            continue;
        };
        match own.last_mut() {
            Some(last) if last.1 == from => last.1 = to,
            _ => own.push((from, to)),
        }
    }
    variables
}
