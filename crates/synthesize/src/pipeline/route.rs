//! Follows a tensor: where it is made, through which stages it goes, which operations use it in
//! each stage, and which runs of an IPU keep it.

use super::axis::Kind;
use super::compilation::{Compilation, Part, Run};
use super::graph::{Pass, Tensor, Use};

pub(super) struct Route<'a> {
    pub tensor: &'a Tensor,
    pub maker: Use,
    pub made: Run,
    /// All uses with their runs, including the use by its maker.
    uses: Vec<(Run, Use)>,
    /// The last stage to which copies between IPUs bring it; the maker's stage if no other IPU
    /// needs it.
    far: u32,
}

impl<'a> Route<'a> {
    /// Follows all tensors.
    pub fn all(compiled: &Compilation<'a>) -> Vec<Self> {
        let tensors = compiled.graph.tensors.iter();
        let routes = tensors.map(|tensor| Self::new(compiled, tensor));
        routes.collect()
    }

    fn new(compiled: &Compilation, tensor: &'a Tensor) -> Self {
        let run = |usage: &Use| {
            let mut stages = compiled.stages.iter();
            let stage = stages.position(|stage| stage.contains(&usage.position));
            let stage = stage.expect("stages have all positions") as u32;
            (stage, compiled.graph.pass(usage))
        };
        let maker = tensor.maker();
        let made = run(&maker);
        let uses: Vec<(Run, Use)> = tensor.uses.iter().map(|used| (run(used), *used)).collect();
        let users = uses.iter().map(|((stage, _), _)| *stage);
        let remote = users.filter(|&stage| compiled.ipu(stage) != compiled.ipu(made.0));
        let far = match made.1 {
            Pass::Forward => remote.chain([made.0]).max(),
            Pass::Backward => remote.chain([made.0]).min(),
        };
        Self {
            tensor,
            maker,
            made,
            uses,
            far: far.unwrap_or(made.0),
        }
    }

    pub fn holds(&self, stage: u32) -> bool {
        let (one, other) = (self.made.0, self.far);
        (one.min(other)..=one.max(other)).contains(&stage)
    }

    /// Returns the run that sends the tensor to a stage; `None` where it is made.
    pub fn sender(&self, (stage, pass): Run) -> Option<Run> {
        if (stage, pass) == self.made {
            return None;
        }
        let before = match pass {
            Pass::Forward => stage.checked_sub(1)?,
            Pass::Backward => stage + 1,
        };
        Some((before, pass))
    }

    pub fn sends(&self, stage: u32) -> bool {
        stage != self.far
    }

    fn uses_of(&self, run: Run) -> impl Iterator<Item = Use> {
        let uses = self.uses.iter().filter(move |(other, _)| *other == run);
        uses.map(|(_, usage)| *usage)
    }
}

/// A run that has a tensor, with all uses of the tensor in that run.
pub(super) type Uses = (Run, Vec<(Kind, Use)>);

/// A tensor on an IPU, which keeps it for later runs of the same micro-batch.
pub(super) struct Stay<'a> {
    pub compiled: &'a Compilation<'a>,
    pub route: &'a Route<'a>,
    /// The run that makes or receives the tensor.
    pub home: Uses,
    /// The later runs that use the kept tensor, in their order.
    pub takers: Vec<Uses>,
    /// The run that makes the tensor again.
    pub remade: Option<Uses>,
    /// Number of copies beside the one that is in use.
    pub slots: u32,
    /// Number of the tensor among the FIFOs that run together.
    pub fifo: u32,
}

impl<'a> Stay<'a> {
    /// Follows the tensor on an IPU; `None` if the IPU never has it.
    pub fn new(
        compiled: &'a Compilation,
        route: &'a Route<'a>,
        (stages, parts): (&[u32], &[Part]),
    ) -> Option<Self> {
        let first = *stages.iter().find(|&&stage| route.holds(stage))?;
        let home = (first, route.made.1);
        let at_home = route.uses_of(home);
        let mut stay = Self {
            compiled,
            route,
            home: (
                home,
                at_home.map(|used| (Kind::Pass(home.1), used)).collect(),
            ),
            takers: Vec::new(),
            remade: None,
            slots: 0,
            fifo: 0,
        };
        let mut runs = compiled.runs(stages.iter().copied());
        runs.sort_by_key(|&run| (compiled.time(run, 0), run));
        for run in runs.into_iter().filter(|&run| run != home) {
            let is_remade = stay.is_remade(run);
            let uses = (run, stay.uses(run, is_remade));
            if is_remade {
                stay.remade = Some(uses);
            } else if !uses.1.is_empty() {
                stay.takers.push(uses);
            }
        }
        if let Some((last, _)) = stay.takers.last() {
            stay.slots = compiled.slots(parts, home, *last);
        }
        Some(stay)
    }

    /// Returns the number of the part of a stage that runs a use again.
    fn part_again(&self, stage: u32, usage: &Use) -> Option<usize> {
        let mut parts = self.compiled.reruns[stage as usize].iter();
        parts.position(|part| part.contains(&usage.position))
    }

    /// Returns whether the backward run of the stage that made a tensor makes it again: it runs the
    /// maker again, and the tensor does not flow on to operations that run later in this stage,
    /// which would make it a checkpoint.
    fn is_remade(&self, (stage, pass): Run) -> bool {
        let Route {
            made, maker, uses, ..
        } = self.route;
        let made_here = *made == (stage, Pass::Forward) && !self.route.tensor.from_host;
        let part = self.part_again(stage, maker);
        let mut in_stage = uses.iter().filter(|((other, _), _)| *other == stage);
        let stays = in_stage.all(|(_, usage)| self.part_again(stage, usage) == part);
        pass == Pass::Backward && made_here && part.is_some() && stays
    }

    /// Returns the uses in a run: first those in the parts that it runs again, then its own. The
    /// maker is one of them only if it makes the tensor again.
    fn uses(&self, (stage, pass): Run, is_remade: bool) -> Vec<(Kind, Use)> {
        let is_other = |usage: &Use| *usage != self.route.maker;
        let mut uses = Vec::new();
        if pass == Pass::Backward {
            let with_maker = is_remade || self.route.tensor.from_host;
            let again = self.route.uses_of((stage, Pass::Forward));
            uses.extend(again.filter_map(|usage| {
                let part = self.part_again(stage, &usage)?;
                (with_maker || is_other(&usage)).then_some((Kind::Rerun(part), usage))
            }));
        }
        let later = self.route.uses_of((stage, pass)).filter(is_other);
        uses.extend(later.map(|usage| (Kind::Pass(pass), usage)));
        uses
    }
}
