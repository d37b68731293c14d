//! The request of a search, and the constraints that it does not name: weights that several layers
//! share.

use crate::escape::shell;
use crate::memory::{MicroBatchScale, PipelineOptions};
use crate::message::BadValue;
use crate::model::{CyclesByLayer, Placement, Positions, WeightTie};
use crate::solve::{Constraint, Goal, Limits, Plan, TiedWeight};
use crate::time::StepOptions;
use clap::ValueEnum;
use std::fmt;
use std::str::FromStr;

/// How to search in any model, and which results are requested.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchOptions {
    /// Memory of each tile to keep free.
    pub reserve: Reserve,
    /// The search algorithm.
    pub solver: Solver,
    /// Schedule, recomputation, place of the optimizer state and replicas, as far as they are given;
    /// the search chooses the others.
    pub pipeline: PipelineOptions,
    /// Numbers that a step depends on, besides cycles.
    pub step: StepOptions,
    /// Samples of a micro-batch for which the answer is estimated. `step` then has the samples of
    /// the profile.
    pub at_micro_batch: Option<u64>,
    /// Is a split requested? Otherwise only the results of other fields are.
    pub split: bool,
    /// Is the best split for each number of IPUs requested?
    pub sweep: bool,
    /// Are the best configurations over all numbers of IPUs and pipelines requested?
    pub plan: bool,
    /// Is the effect of moving a layer over a cut requested?
    pub moves: bool,
    /// Are the memory of every other split and the best splits for other numbers of IPUs requested?
    /// Models of more than 400 layers have only splits near the one that is shown.
    pub what_if: bool,
}

/// Request of a search in one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchRequest {
    /// Options of the search that do not depend on the model. The bytes of their `reserve` are
    /// already subtracted from `limits`.
    pub options: SearchOptions,
    /// Number of IPUs.
    pub ipus: IpuCount,
    /// Maximum bytes of a stage on each tile: one number for all IPUs, or one for each. Never
    /// empty.
    pub limits: Vec<u64>,
    /// The number by which splits are compared.
    pub goal: Goal,
    /// Constraints of a split besides fitting. Their positions are those of the layer order.
    pub constraints: Vec<Constraint>,
    /// Cycles by position; `None` if the profile has none.
    pub cycles: Option<CyclesByLayer>,
    /// A split to evaluate besides the best one.
    pub given: Option<Plan>,
}

impl SearchRequest {
    /// Maximum bytes of a stage on any IPU.
    pub fn highest_limit(&self) -> u64 {
        Limits::new(&self.limits).highest()
    }

    /// Ratio of the requested micro-batch to the one of the profile, if both are known.
    pub fn scale(&self) -> Option<MicroBatchScale> {
        let options = &self.options;
        let (recorded, wanted) = options.step.micro_batch.zip(options.at_micro_batch)?;
        Some(MicroBatchScale { recorded, wanted })
    }

    /// The request with the cycles and samples of another micro-batch.
    pub(super) fn at(mut self, scale: MicroBatchScale) -> Self {
        self.cycles = self.cycles.map(|cycles| scale.cycles(cycles));
        self.options.step.micro_batch = Some(scale.wanted);
        self
    }
}

/// Number of IPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IpuCount {
    /// A fixed number of IPUs.
    Exactly(usize),
    /// The smallest number of IPUs on which the model fits, up to this bound; with PopTorch, only
    /// powers of 2.
    UpTo(usize),
}

impl IpuCount {
    /// The smallest number that is enough, up to 64 IPUs.
    pub const AUTO: Self = Self::UpTo(64);
    /// Upper bound on IPUs, far above the largest pod that one program spans; a larger number is a
    /// mistake.
    pub const MAX: usize = 4096;

    /// Maximum number of stages of a split.
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
            _ => Err(BadValue::new(format!(
                "it is neither auto nor a number from 1 to {}; give one of these",
                Self::MAX
            ))),
        }
    }
}

/// How to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Solver {
    /// The integer program.
    #[default]
    Ilp,
    /// The search of the original tool, without objectives, constraints and tied weights.
    Greedy,
}

/// Memory of each tile that is kept free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reserve {
    /// A number of bytes.
    Bytes(u64),
    /// Thousandths of a per cent.
    PerCent(u64),
}

impl Default for Reserve {
    fn default() -> Self {
        Self::Bytes(0)
    }
}

impl Reserve {
    /// Bytes to keep free of `memory`, rounded up.
    pub fn of(self, memory: u64) -> u64 {
        match self {
            Reserve::Bytes(bytes) => bytes,
            Reserve::PerCent(thousandths) => {
                let bytes = u128::from(memory) * u128::from(thousandths);
                // This is less than `memory`, so it fits.
                u64::try_from(bytes.div_ceil(100_000)).unwrap_or(memory)
            }
        }
    }

    /// Smallest memory that leaves `bytes` after the reserve.
    pub fn beside(self, bytes: u64) -> u64 {
        match self {
            Reserve::Bytes(reserve) => bytes.saturating_add(reserve),
            Reserve::PerCent(thousandths) => {
                let rest = u128::from(100_000 - thousandths.min(99_999));
                let memory = (u128::from(bytes) * 100_000).div_ceil(rest);
                let memory = u64::try_from(memory).unwrap_or(u64::MAX);
                // Rounding up the reserve can take one byte more.
                let is_enough = memory - self.of(memory).min(memory) >= bytes;
                memory.saturating_add(u64::from(!is_enough))
            }
        }
    }
}

impl fmt::Display for Reserve {
    /// In the form that the option accepts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reserve::Bytes(bytes) => write!(f, "{bytes}"),
            Reserve::PerCent(thousandths) => {
                let number = format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
                let number = number.trim_end_matches('0').trim_end_matches('.');
                write!(f, "{number}%")
            }
        }
    }
}

impl FromStr for Reserve {
    type Err = BadValue;

    fn from_str(amount: &str) -> Result<Self, BadValue> {
        let wrong = || {
            BadValue::new(format!(
                "'{amount}' is neither bytes nor per cent; write 8192 or 5%"
            ))
        };
        let Some(percent) = amount.strip_suffix('%') else {
            return amount.parse().map(Reserve::Bytes).map_err(|_| wrong());
        };
        let percent: f64 = percent.trim().parse().map_err(|_| wrong())?;
        if !(0.0..100.0).contains(&percent) {
            return Err(BadValue::new(format!(
                "'{amount}' is not between 0% and 100%; keep less of each tile free"
            )));
        }
        Ok(Reserve::PerCent((percent * 1000.0).round() as u64))
    }
}

/// Constraints that keep the positions with a common weight on one IPU.
pub(super) fn of_ties(placement: &Placement) -> impl Iterator<Item = Constraint> + '_ {
    let positions = &placement.positions;
    placement.ties.iter().filter_map(|tie| {
        let (first, last) = tie.binds(positions)?;
        Some(Constraint::tie(first, last, weight(tie, positions)))
    })
}

fn weight(tie: &WeightTie, positions: &Positions) -> TiedWeight {
    let users = tie.places.iter();
    let untie = format!("--untie {}", shell(&tie.weight));
    let binds_in_and_out = tie.places.first() == Some(&0)
        && positions
            .out()
            .is_some_and(|out| tie.places.last() == Some(&(out as u32)));
    TiedWeight {
        name: tie.weight.clone(),
        bytes: tie.bytes,
        users: users
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
            is_untied: false,
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
