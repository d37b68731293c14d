//! Checks that the parts of a loaded model fit together: positions must exist, and ordered lists
//! must be in order, since all other code relies on that.

use crate::limits::{STEPS, STEPS_AND_TILES};
use crate::model::{
    ClusterCycles, Flow, GroupCode, MemoryPeak, Model, NO_CALL, NO_NODE, OperationCycles,
    OperationGroup, VariableUse, WorkCycles,
};
use crate::profile::{RecordedTile, TileBytes};

/// The error describes the first problem, and where it is.
type Checked = Result<(), String>;

/// Checks that the model has no more steps than any real model.
pub(super) fn steps(model: &Model) -> Checked {
    let (steps, tiles) = (u64::from(model.steps()), u64::from(model.target.num_tiles));
    let problem = format!("it has {steps} liveness steps, more than any real one");
    ensure(steps <= STEPS && steps * tiles <= STEPS_AND_TILES, &problem)
}

/// Checks that all parts of `model` fit together.
pub(super) fn all(model: &Model) -> Checked {
    let refs = Referents(model);
    target(model)?;
    classes(model)?;
    let (groups, labels) = (model.operation_groups.len(), model.labels.len());
    ensure(labels > 0, "the first label is missing")?;
    ensure(
        model.use_sets.is_sound(groups, labels),
        "a use set does not consist of a smaller one and a later group",
    )?;
    each("use", model.variables.uses(), |use_of| refs.is_use(use_of))?;
    let of_code = model.code_variables.uses();
    each("use of code", of_code, |use_of| refs.is_use(use_of))?;
    each("operation", &model.operations, |operation| {
        refs.is_group(operation.group)?;
        refs.is_window(operation.window)?;
        refs.is_call(operation.call)
    })?;
    each("group", &model.operation_groups, |group| refs.group(group))?;
    refs.flow(&model.flow)?;
    each("program", &model.programs, |program| {
        program.group.map_or(Ok(()), |group| refs.is_group(group))
    })?;
    refs.by_tile()?;
    let peak = model.memory_peak.as_ref();
    peak.map_or(Ok(()), |peak| refs.memory_peak(peak))
}

/// Checks the target, and that lists have as many entries as there are tiles or operations.
fn target(model: &Model) -> Checked {
    let tiles = model.target.num_tiles;
    ensure(tiles > 0, "there is no tile")?;
    let checked = model.target.check_single_ipu();
    checked.map_err(|error| error.to_string())?;
    steps(model)?;
    let recorded: &[RecordedTile] = &model.recorded.tiles;
    ensure(
        recorded.is_empty() || recorded.len() == tiles as usize,
        "the number of recorded tiles is wrong",
    )?;
    if let Some(step) = model.backward_start {
        is_below(step, model.steps() as usize, "step")?;
    }
    let variables = [&model.variables, &model.code_variables];
    let are_on_tiles = variables.iter().all(|list| list.tiles() == tiles);
    ensure(are_on_tiles, "the number of tiles with variables is wrong")?;
    let counts = model.cycles.as_ref();
    counts.map_or(Ok(()), |counts| cycles(counts, model))
}

fn cycles(cycles: &OperationCycles, model: &Model) -> Checked {
    let all = &cycles.by_operation;
    ensure(
        all.len() == model.operations.len(),
        "the numbers of cycles and operations differ",
    )?;
    let parts = &cycles.by_cluster;
    each("part of the cycles", parts, |part| of_cluster(part, model))?;
    ensure(
        parts.is_sorted_by_key(|part| part.operation),
        "parts of the cycles are in no order",
    )?;
    let mut all = all.iter().chain([&cycles.unexplained]);
    all.try_for_each(work_cycles)
}

fn work_cycles(cycles: &WorkCycles) -> Checked {
    ensure(
        cycles.exchange.max(cycles.later) <= cycles.all,
        "exchanges or the backward pass take more cycles than there are",
    )
}

fn of_cluster(part: &ClusterCycles, model: &Model) -> Checked {
    let operation = model.operations.get(part.operation as usize);
    let group = operation.and_then(|it| model.operation_groups.get(it.group as usize));
    let clusters = group.map_or(0, |group| group.clusters.len());
    ensure((part.cluster as usize) < clusters, "it is of no programs")?;
    work_cycles(&part.cycles)
}

fn classes(model: &Model) -> Checked {
    let is_fine = |&(from, to): &(u32, u32)| from < to && to <= model.steps();
    for class in 0..model.classes.len() as u32 {
        let checked = ensure(
            model.classes.ranges(class).iter().all(is_fine),
            "a range is empty or beyond the last step",
        );
        checked.map_err(|problem| format!("class {class}: {problem}"))?;
    }
    Ok(())
}

/// Checks every entry of a list; the error has the number of the first wrong entry.
fn each<T>(what: &str, list: &[T], check: impl Fn(&T) -> Checked) -> Checked {
    let mut list = list.iter().enumerate();
    list.try_for_each(|(number, entry)| {
        check(entry).map_err(|problem| format!("{what} {number}: {problem}"))
    })
}

fn ensure(is_fine: bool, problem: &str) -> Checked {
    if is_fine {
        Ok(())
    } else {
        Err(problem.to_owned())
    }
}

fn is_below(position: u32, end: usize, what: &str) -> Checked {
    match (position as usize) < end {
        true => Ok(()),
        false => Err(format!("there is no {what} {position}, only {end}")),
    }
}

/// Checks the positions by which the parts of a model refer to each other.
struct Referents<'a>(&'a Model);

impl Referents<'_> {
    fn group(&self, group: &OperationGroup) -> Checked {
        self.is_window(group.window)?;
        each("host copy", &group.host_copies, |&step| {
            is_below(step, self.0.steps() as usize, "step")
        })?;
        self.code(&group.code)?;
        each("piece", &group.clusters, |cluster| {
            self.are_sets(&cluster.sets)?;
            self.code(&cluster.code)
        })
    }

    fn is_window(&self, window: Option<(u32, u32)>) -> Checked {
        let Some((first, last)) = window else {
            return Ok(());
        };
        is_below(last, self.0.steps() as usize, "step")?;
        ensure(first <= last, "it ends before it begins")
    }

    fn code(&self, code: &GroupCode) -> Checked {
        let types = &code.vertex_types;
        ensure(
            types.is_sorted_by(|a, b| a.0 < b.0),
            "vertex types are not in order",
        )?;
        if let Some(&(last, _)) = types.last() {
            is_below(last, self.0.vertex_code.len(), "vertex type")?;
        }
        let others = [
            &code.vertex_state,
            &code.vertex_memory,
            &code.exchange_code,
            &code.control_code,
        ];
        self.on_tiles(types.iter().map(|(_, tiles)| tiles).chain(others))
    }

    /// Checks the lists by tile of the whole model.
    fn by_tile(&self) -> Checked {
        let categories = self.0.recorded.categories.iter();
        let categories = categories.flat_map(|category| [&category.bytes, &category.overlapped]);
        let code = self.0.vertex_code.iter().chain(&self.0.recorded_code);
        self.on_tiles(code.chain(categories))
    }

    fn memory_peak(&self, peak: &MemoryPeak) -> Checked {
        is_below(peak.tile, self.0.target.num_tiles as usize, "tile")?;
        // In a model without steps, step 0 stands for none.
        is_below(peak.step, self.0.steps().max(1) as usize, "step")?;
        each("live variable", &peak.variables, |variable| {
            self.is_set(variable.set)
        })
    }

    fn on_tiles<'a>(&self, mut all: impl Iterator<Item = &'a TileBytes>) -> Checked {
        ensure(
            all.all(|bytes| bytes.end() <= self.0.target.num_tiles),
            "values by tile go on beyond the last tile",
        )
    }

    /// Checks that edges are in the order of their first nodes, and lead to later nodes.
    fn flow(&self, flow: &Flow) -> Checked {
        each("node", &flow.nodes, |node| {
            let mut operations = node.operations.iter();
            operations.try_for_each(|&one| self.is_operation(one))
        })?;
        let nodes = |from: u32, to: &[u32]| {
            let last = to.last().copied().unwrap_or(0);
            let first = if from == NO_NODE {
                Some(0)
            } else {
                from.checked_add(1)
            };
            let follows = to.first().copied() >= first && to.is_sorted_by(|a, b| a < b);
            ensure(follows, "an edge does not lead to later nodes")?;
            is_below(last, flow.nodes.len(), "node")
        };
        each("edge", &flow.edges, |edge| nodes(edge.from, &edge.to))?;
        let in_order = flow.edges.is_sorted_by_key(|edge| edge.from);
        ensure(in_order, "the edges are not in order")?;
        each(
            "parameter",
            &flow.parameters,
            |parameter: &(u32, Box<[u32]>)| {
                self.is_set(parameter.0)?;
                nodes(NO_NODE, &parameter.1)
            },
        )
    }

    fn is_operation(&self, operation: u32) -> Checked {
        is_below(operation, self.0.operations.len(), "operation")
    }

    fn is_group(&self, group: u32) -> Checked {
        is_below(group, self.0.operation_groups.len(), "operation group")
    }

    fn is_call(&self, call: u32) -> Checked {
        if call == NO_CALL {
            return Ok(());
        }
        is_below(call, self.0.calls.len(), "call")
    }

    fn is_use(&self, variable_use: &VariableUse) -> Checked {
        is_below(variable_use.class, self.0.classes.len(), "class")?;
        self.is_set(variable_use.set)
    }

    fn is_set(&self, set: u32) -> Checked {
        is_below(set, self.0.use_sets.len(), "use set")
    }

    /// Checks that use sets exist and ascend.
    fn are_sets(&self, sets: &[u32]) -> Checked {
        ensure(sets.is_sorted_by(|a, b| a < b), "use sets are not in order")?;
        sets.last().map_or(Ok(()), |&last| self.is_set(last))
    }
}
