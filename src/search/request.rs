//! The request of a search, and the constraints that the model itself imposes: constraints for
//! weights that several layers share, and for layers that a micro-batch runs through several times.

use super::{profile_tables::Reach, result::Candidate};
use crate::{
    escape::shell,
    memory::{Pipeline, PipelineOptions},
    message::BadValue,
    model::{Placement, Positions, WeightTie},
    solve::{Constraint, Goal, Origin, Plan, Rule, TiedWeight},
    time::StepOptions,
};
use clap::ValueEnum;
use std::{cmp::Ordering, fmt, str::FromStr, sync::Arc};

/// Smallest value of [`Reach::stages`], the number of stages for which the bytes of ranges are
/// computed. Larger values are powers of 2, so that requests for similar numbers of IPUs share the
/// results.
const LEAST_STAGES: usize = 4;

/// Options of a search that do not depend on the model: how to search, and which results to
/// compute.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SearchOptions {
    /// Memory on each tile that the split must leave free, as a safety margin.
    pub reserve: Reserve,
    /// The algorithm that finds the split: the integer program, or the greedy search of the
    /// original tool.
    pub solver: Solver,
    /// Schedule, recomputation, place of the optimizer state and number of replicas. The search
    /// chooses the settings that the user did not give.
    pub pipeline: PipelineOptions,
    /// Numbers that the time of a step depends on besides cycles, such as the number of
    /// micro-batches.
    pub step: StepOptions,
    /// Whether to compute a split. If this is false, only the results that the other fields request
    /// are computed.
    pub split: bool,
    /// Whether to compute the best split for each number of IPUs (`--sweep`).
    pub sweep: bool,
    /// Whether to find the best configurations over all numbers of IPUs and pipelines (`--plan`).
    pub plan: bool,
    /// Whether to compute the effect of moving a layer over each cut of the shown split, and the
    /// best splits in other pipelines.
    pub moves: bool,
    /// Whether to compute the split that some frameworks make if they only get the number of blocks
    /// (numbered layers) on each IPU of the best split. It is computed only if it differs from the
    /// best split.
    pub counts: bool,
    /// Whether to compute the memory of all splits other than the shown split, and the best splits
    /// on other numbers of IPUs. In models of more than 400 layers, only splits near the shown
    /// split are computed.
    pub what_if: bool,
    /// One entry per profile: the available memory proportion that the model was compiled with.
    /// Empty if the proportions are unknown.
    pub proportions: Vec<f64>,
}

/// A request to search for a split of one model: IPUs, limits, goal and constraints. Layers are
/// stated as positions (indices into In, the layers, Out), not as names.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchRequest {
    /// Options of the search that do not depend on the model. The memory that must stay free on
    /// each tile (`reserve`) is already subtracted from the memory limits (`limits`).
    pub options: SearchOptions,
    /// Number of IPUs over all replicas: fixed, or as few as possible.
    pub ipus: IpuCount,
    /// Maximum bytes of a stage on each tile: one entry for all IPUs, or one entry per IPU of a
    /// replica. Never empty.
    pub limits: Vec<u64>,
    /// The first objective by which splits are compared, such as the peak or the time.
    pub goal: Goal,
    /// Constraints on a split besides the memory limits, with positions (In, layers, Out) in place
    /// of layer names.
    pub constraints: Vec<Constraint>,
    /// The user's split, which is to be evaluated; `None` to search for the best split.
    pub given: Option<Plan>,
}

/// A search request for a model that is divided into layers, with all data that are the same for
/// every pipeline (schedule, recomputation, place of optimizer state).
#[derive(Debug)]
pub struct Question {
    /// The user's request, with positions (In, layers, Out) in place of layer names. Except for the
    /// greedy search, its constraints include one for each weight that several positions share:
    /// these positions must be in one stage, so that only one IPU needs the weight.
    pub request: SearchRequest,
    /// The constraints for pipelines whose stages work at the same time: all constraints of
    /// `request`, and one for each series of consecutive positions that a micro-batch runs through
    /// several times. Such pipelines must keep each series in one stage.
    pub(super) side_by_side: Vec<Constraint>,
}

impl Question {
    /// Adds to `request` the constraints that the model itself imposes: layers that share a weight,
    /// or that a micro-batch runs through several times, must be in one stage. The greedy search
    /// ignores shared weights, so for it no constraints on them are added.
    pub fn new(mut request: SearchRequest, placement: &Placement) -> Arc<Self> {
        if request.options.solver == Solver::Ilp {
            let positions = &placement.positions;
            request
                .constraints
                .extend(placement.ties.iter().filter_map(|tie| {
                    let (first, last) = tie.binds(positions)?;
                    Some(Constraint {
                        rule: Rule::Together { first, last },
                        origin: Origin::Weight(weight(tie, positions)),
                    })
                }));
        }
        let repeats = placement.repeats.iter().map(|repeat| Constraint {
            rule: Rule::Together {
                first: repeat.first,
                last: repeat.last,
            },
            origin: Origin::Repeat(repeat.runs),
        });
        Arc::new(Self {
            side_by_side: request.constraints.iter().cloned().chain(repeats).collect(),
            request,
        })
    }

    /// Returns the maximum bytes of a range of layers, and the maximum number of stages, for which
    /// ranges must be computed to find every split within the memory limits.
    pub(super) fn reach_of_limits(&self) -> Reach {
        Reach {
            bytes: self.request.highest_limit(),
            stages: self
                .request
                .ipus
                .highest()
                .next_power_of_two()
                .max(LEAST_STAGES),
        }
    }

    /// Compares two candidates that fit; returns `Less` if `one` is better. The first of these
    /// values that differs decides:
    ///
    /// - the number of IPUs, if the request is for as few IPUs as possible
    /// - for [`Goal::Time`], the samples that all replicas together process per unit of time
    /// - the scores of the splits, in the order of the goal
    pub fn compare(&self, one: &Candidate, other: &Candidate) -> Ordering {
        let by_ipus = match self.request.ipus {
            IpuCount::Exactly(_) => Ordering::Equal,
            IpuCount::UpTo(_) => one.all_ipus().cmp(&other.all_ipus()),
        };
        let goal = self.request.goal;
        let by_rate = match goal {
            Goal::Time => one.by_rate(other),
            _ => Ordering::Equal,
        };
        by_ipus
            .then(by_rate)
            .then_with(|| one.solution.score.compare(&other.solution.score, goal))
    }
}

impl SearchOptions {
    /// Returns the number of replicas in `pipeline`: if replicas share optimizer state, the number
    /// of these replicas, otherwise the number that the user requests.
    pub fn replicas_in(&self, pipeline: Pipeline) -> usize {
        if pipeline.state.is_sharded() {
            pipeline.replicas as usize
        } else {
            self.replicas() as usize
        }
    }

    /// Returns the number of replicas of the pipeline that the user requests, at least 1.
    pub fn replicas(&self) -> u64 {
        self.pipeline.replicas.max(1)
    }
}

impl SearchRequest {
    /// Returns the highest memory limit of any IPU, in bytes on each tile. No stage may take more.
    pub fn highest_limit(&self) -> u64 {
        self.limits.iter().copied().max().unwrap_or(0)
    }
}

/// The number of IPUs for a model, over all replicas: fixed, or as few as possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IpuCount {
    /// Use exactly this number of IPUs; some of them may stay empty.
    Exactly(usize),
    /// Use the smallest number of IPUs on which the model fits, at most this number; with PopTorch,
    /// only powers of 2.
    UpTo(usize),
}

impl IpuCount {
    /// Use the smallest number of IPUs on which the model fits, at most 64.
    pub const AUTO: Self = Self::UpTo(64);
    /// Maximum number of IPUs that users may give. It is far above the number in the largest pod
    /// that one program can use, so a larger number is a mistake.
    pub const MAX: usize = 4096;

    /// Returns the number of IPUs if it is fixed, or the maximum if the search chooses the number.
    pub fn highest(self) -> usize {
        match self {
            IpuCount::Exactly(ipus) | IpuCount::UpTo(ipus) => ipus,
        }
    }
}

impl FromStr for IpuCount {
    type Err = BadValue;

    fn from_str(number: &str) -> Result<Self, BadValue> {
        match number.parse() {
            _ if number == "auto" => Ok(Self::AUTO),
            Ok(ipus) if (1..=Self::MAX).contains(&ipus) => Ok(Self::Exactly(ipus)),
            _ => Err(BadValue(format!(
                "it is neither auto nor a number from 1 to {}; give one of these",
                Self::MAX
            ))),
        }
    }
}

/// The algorithm that finds the best split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Solver {
    /// Use the integer program, which proves that the split is the best.
    #[default]
    Ilp,
    /// Use the search of the original tool, which ignores goals, constraints and shared weights.
    Greedy,
}

/// An amount of memory on each tile that a split must leave free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reserve {
    /// Leave this number of bytes free on each tile.
    Bytes(u64),
    /// Leave this share of the tile's memory free, in thousandths of a per cent.
    PerCent(u64),
}

impl Default for Reserve {
    fn default() -> Self {
        Self::Bytes(0)
    }
}

impl Reserve {
    /// Returns the number of bytes that the reserve keeps free on a tile with `memory` bytes. A
    /// share of the memory is rounded up to whole bytes.
    pub fn of(self, memory: u64) -> u64 {
        match self {
            Reserve::Bytes(bytes) => bytes,
            Reserve::PerCent(thousandths) => {
                let bytes = u128::from(memory) * u128::from(thousandths);
                // A share is at most 100 %, so the reserve is at most `memory`, which fits in 64
                // bits.
                u64::try_from(bytes.div_ceil(100_000)).unwrap_or(memory)
            }
        }
    }

    /// Returns the smallest memory of a tile, in bytes, that has room for `bytes` bytes beside the
    /// reserve (the part of the memory that stays free).
    pub fn beside(self, bytes: u64) -> u64 {
        match self {
            Reserve::Bytes(reserve) => bytes.saturating_add(reserve),
            Reserve::PerCent(thousandths) => {
                let rest = u128::from(100_000 - thousandths.min(99_999));
                let memory = (u128::from(bytes) * 100_000).div_ceil(rest);
                let memory = u64::try_from(memory).unwrap_or(u64::MAX);
                // [`Reserve::of`] rounds the reserve (the part of `memory` that stays free) up to a
                // whole byte. If this leaves less than `bytes` bytes of `memory`, one more byte of
                // memory is needed.
                let is_enough = memory - self.of(memory).min(memory) >= bytes;
                memory.saturating_add(u64::from(!is_enough))
            }
        }
    }
}

impl fmt::Display for Reserve {
    /// Writes the reserve as the user would type it, such as `8192` or `5%`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reserve::Bytes(bytes) => write!(f, "{bytes}"),
            Reserve::PerCent(thousandths) => write!(f, "{}%", *thousandths as f64 / 1000.0),
        }
    }
}

impl FromStr for Reserve {
    type Err = BadValue;

    fn from_str(amount: &str) -> Result<Self, BadValue> {
        let wrong = || {
            BadValue(format!(
                "'{amount}' is neither bytes nor per cent; write 8192 or 5%"
            ))
        };
        let Some(percent) = amount.strip_suffix('%') else {
            return amount.parse().map(Reserve::Bytes).map_err(|_| wrong());
        };
        let percent: f64 = percent.trim().parse().map_err(|_| wrong())?;
        if !(0.0..100.0).contains(&percent) {
            return Err(BadValue(format!(
                "'{amount}' is not between 0% and 100%; keep less of each tile free"
            )));
        }
        Ok(Reserve::PerCent((percent * 1000.0).round() as u64))
    }
}

/// Returns the name, the bytes and the users of a weight that several positions (In, layers, Out)
/// share, and the options that let these positions be on different IPUs.
fn weight(tie: &WeightTie, positions: &Positions) -> TiedWeight {
    let untie = format!("--untie {}", shell(&tie.weight));
    let binds_in_and_out = tie.places.first() == Some(&0)
        && positions
            .out()
            .is_some_and(|out| tie.places.last() == Some(&(out as u32)));
    TiedWeight {
        name: tie.weight.clone(),
        bytes: tie.bytes,
        users: tie
            .places
            .iter()
            .map(|&place| positions.name_of_place(place).to_string())
            .collect(),
        ways_out: if binds_in_and_out {
            vec!["--out-on first".to_string(), untie]
        } else {
            vec![untie]
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Layering, PseudoLayers};

    #[test]
    fn numbers_of_ipus() {
        assert_eq!("auto".parse(), Ok(IpuCount::AUTO));
        assert_eq!("4".parse(), Ok(IpuCount::Exactly(4)));
        for wrong in ["0", "-1", "Auto", "", "4097"] {
            assert!(wrong.parse::<IpuCount>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn reserves_are_bytes_or_per_cent() {
        let bytes = |amount: &str| amount.parse::<Reserve>().map(|reserve| reserve.of(638_976));
        for amount in ["0", "8192", "5%", "12.5%", "99.999%"] {
            let reserve: Reserve = amount.parse().unwrap();
            assert_eq!(reserve.to_string().parse(), Ok(reserve));
            for bytes in [1, 7, 638_976, 1 << 40] {
                let memory = reserve.beside(bytes);
                assert!(memory - reserve.of(memory) >= bytes, "{amount} {bytes}");
                let less = memory - 1;
                let left = less.checked_sub(reserve.of(less));
                assert!(left.is_none_or(|left| left < bytes), "{amount} {bytes}");
            }
        }
        assert_eq!(bytes("0"), Ok(0));
        assert_eq!(bytes("8192"), Ok(8192));
        assert_eq!(bytes("5%"), Ok(31_949));
        assert_eq!(bytes("12.5 %"), Ok(79_872));
        for wrong in ["", "%", "-1", "-1%", "100%", "5 percent", "NaN%"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    fn positions(out_is_first: bool) -> Positions {
        let names = ["", "a", "b", "c"].map(String::from);
        let layering = Layering::of(names.to_vec(), Vec::new());
        Positions::new(&layering, PseudoLayers::full(out_is_first))
    }

    fn tie(places: &[u32]) -> WeightTie {
        WeightTie {
            weight: "wte".into(),
            bytes: 8,
            places: places.to_vec(),
            ..WeightTie::default()
        }
    }

    #[test]
    fn a_tie_of_in_and_out_has_two_ways_out() {
        let [apart, together] = [positions(false), positions(true)];
        let both = tie(&[0, 4]);
        assert_eq!(both.binds(&apart), Some((0, 4)));
        assert_eq!(
            weight(&both, &apart).ways_out,
            ["--out-on first", "--untie wte"]
        );
        assert_eq!(both.binds(&together), None);
        assert_eq!(weight(&both, &together).users, ["In", "Out"]);
        let head = tie(&[2, 4]);
        assert_eq!(head.binds(&apart), Some((2, 4)));
        assert_eq!(head.binds(&together), Some((0, 2)));
        assert_eq!(weight(&head, &together).users, ["b", "Out"]);
        assert_eq!(weight(&head, &together).ways_out, ["--untie wte"]);
        let untied = WeightTie {
            is_untied: true,
            ..head
        };
        assert_eq!(untied.binds(&apart), None);
    }
}
