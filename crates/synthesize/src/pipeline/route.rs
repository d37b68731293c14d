//! Where a tensor is made, which stages it goes through, who uses it where.

use super::compilation::Stages;
use super::graph::{Graph, Pass, Tensor, Use};
use super::walk::Run;

#[derive(Debug, Clone)]
pub(super) struct Route<'a> {
    pub tensor: &'a Tensor,
    pub maker: Use,
    pub made: Run,
    /// All uses, that of the maker among them, with the run of each.
    pub uses: Vec<(Run, Use)>,
    /// The last stage that copies between IPUs bring it to; the maker's where no
    /// other IPU needs it.
    far: u32,
}

impl<'a> Route<'a> {
    pub fn new(graph: &Graph, stages: &Stages, tensor: &'a Tensor) -> Self {
        let run = |usage: &Use| (stages.of(usage.position), graph.pass(usage));
        let maker = tensor.maker();
        let made = run(&maker);
        let uses: Vec<(Run, Use)> = tensor.uses.iter().map(|used| (run(used), *used)).collect();
        let users = uses.iter().map(|((stage, _), _)| *stage);
        let remote = users.filter(|&stage| stages.ipu(stage) != stages.ipu(made.0));
        let far = match made.1 {
            Pass::Forward => remote.max().unwrap_or(0).max(made.0),
            Pass::Backward => remote.min().unwrap_or(made.0).min(made.0),
        };
        Self {
            tensor,
            maker,
            made,
            uses,
            far,
        }
    }

    /// The run of an IPU with these stages that makes or receives the tensor.
    pub fn home(&self, stages: &[u32]) -> Option<Run> {
        let stage = stages.iter().find(|&&stage| self.holds(stage));
        stage.map(|&stage| (stage, self.made.1))
    }

    fn holds(&self, stage: u32) -> bool {
        let low = self.made.0.min(self.far);
        let high = self.made.0.max(self.far);
        (low..=high).contains(&stage)
    }

    /// The run that sends the tensor to a stage; none where it is made.
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

    pub fn uses_of(&self, run: Run) -> impl Iterator<Item = &Use> {
        let uses = self.uses.iter().filter(move |(other, _)| *other == run);
        uses.map(|(_, usage)| usage)
    }
}
