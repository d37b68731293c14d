//! Copies of a tensor that an IPU keeps for later runs over the same
//! micro-batch.

use std::ops::Range;

use super::compilation::Stages;
use super::graph::{Graph, Pass, Use};
use super::options::PipelineOptions;
use super::route::Route;
use super::walk::{Part, Pipeline, Run};

/// How a use of a later run is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Forward,
    /// A part that runs again before its backward pass, by number.
    Rerun(usize),
    Backward,
    Fifo,
}

impl Kind {
    pub fn of(pass: Pass) -> Self {
        match pass {
            Pass::Forward => Self::Forward,
            Pass::Backward => Self::Backward,
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Reruns(Vec<Vec<Range<u32>>>);

impl Reruns {
    pub fn new(graph: &Graph, stages: &Stages, options: &PipelineOptions) -> Self {
        let reruns = |stage| stages.reruns(graph, options, stage);
        Self((0..stages.count()).map(reruns).collect())
    }

    /// The parts that a stage runs again, in the order of the forward pass.
    pub fn of(&self, stage: u32) -> &[Range<u32>] {
        &self.0[stage as usize]
    }

    fn part(&self, stage: u32, position: u32) -> Option<usize> {
        let mut parts = self.of(stage).iter();
        parts.position(|part| part.contains(&position))
    }
}

#[derive(Debug, Clone)]
pub(super) struct Kept {
    pub home: Run,
    /// Later runs of this IPU that take what was kept, and how each use of it is
    /// reached there; in the order of the runs.
    pub takers: Vec<(Run, Vec<(Kind, Use)>)>,
    /// Copies beside the one that is worked on.
    pub slots: u32,
    pub remade: Vec<(Run, Vec<(Kind, Use)>)>,
}

impl Kept {
    pub fn last(&self) -> Option<Run> {
        self.takers.last().map(|(run, _)| *run)
    }
}

/// The copies of a tensor that an IPU with these stages keeps; none if it never
/// has it.
pub(super) fn kept(
    route: &Route,
    (stages, parts): (&[u32], &[Part]),
    reruns: &Reruns,
    pipeline: &Pipeline,
) -> Option<Kept> {
    let home = route.home(stages)?;
    let mut kept = Kept {
        home,
        takers: Vec::new(),
        slots: 0,
        remade: Vec::new(),
    };
    let mut runs: Vec<Run> = parts.iter().map(|part| part.run).collect();
    runs.sort_by_key(|&run| (pipeline.time(run, 0), run));
    runs.dedup();
    for run in runs.into_iter().filter(|&run| run != home) {
        let is_remade = is_remade(route, run, reruns);
        let uses = uses(route, run, reruns, is_remade);
        if is_remade {
            kept.remade.push((run, uses));
        } else if !uses.is_empty() {
            kept.takers.push((run, uses));
        }
    }
    if let Some(last) = kept.last() {
        kept.slots = pipeline.slots(parts, home, last);
    }
    Some(kept)
}

/// Whether the backward run of the stage that made a tensor makes it again: it
/// runs the maker again, and the tensor does not flow on to what runs later in
/// this stage, which would make it a checkpoint.
fn is_remade(route: &Route, (stage, pass): Run, reruns: &Reruns) -> bool {
    let made_here = route.made == (stage, Pass::Forward) && !route.tensor.from_host;
    if pass != Pass::Backward || !made_here {
        return false;
    }
    let Some(part) = reruns.part(stage, route.maker.position) else {
        return false;
    };
    let positions_again = &reruns.of(stage)[part];
    let in_stage = route.uses.iter().filter(|((other, _), _)| *other == stage);
    let mut positions = in_stage.map(|(_, position)| position.position);
    positions.all(|position| positions_again.contains(&position))
}

/// The uses of a run: those of what it runs again, then its own. The maker is
/// one of them only where it makes the tensor again.
fn uses(route: &Route, run: Run, reruns: &Reruns, is_remade: bool) -> Vec<(Kind, Use)> {
    let (stage, pass) = run;
    let mut uses = Vec::new();
    if pass == Pass::Backward {
        let with_maker = is_remade || route.tensor.from_host;
        let again = route.uses_of((stage, Pass::Forward));
        let again = again.filter(|usage| with_maker || **usage != route.maker);
        uses.extend(again.filter_map(|usage| {
            let part = reruns.part(stage, usage.position)?;
            Some((Kind::Rerun(part), *usage))
        }));
    }
    let later = route.uses_of(run).filter(|usage| **usage != route.maker);
    uses.extend(later.map(|usage| (Kind::of(pass), *usage)));
    uses
}
