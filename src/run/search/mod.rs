//! From range costs to a split, its proof, or why there is none.

mod facts;
mod given;
mod request;
mod weigh;

pub(super) use request::limits;

use super::subject::Subject;
use super::{InternalError, layers};
use crate::atomic;
use crate::cli::Solver;
use crate::memory::RangeCosts;
use crate::progress::Unit;
use crate::report::Split;
use crate::report::document::SearchFacts;
use crate::solve::{self, Constraint, Infeasible, Plan, Problem, Solution, SolveError};
use anyhow::{Context, Result};
use request::SearchRequest;
use std::ops::Range;
use std::time::Instant;

/// What a search found.
pub(super) struct SearchResult {
    /// The split to show: the one that was given, or the best. None when
    /// nothing asked for one.
    pub(super) split: Option<Split>,
    pub(super) facts: SearchFacts,
}

/// Range costs, and what they were computed for.
struct Weighed {
    costs: RangeCosts,
    cut_bytes: Vec<u64>,
    /// Do they hold every range?
    all: bool,
}

/// The answer of a solver, or what it says when there is none.
enum Outcome {
    Best(Box<Solution>),
    Infeasible(Box<Infeasible>),
    /// The search of the original tool proves nothing.
    Greedy(Vec<Range<usize>>),
}

impl Subject<'_> {
    /// Finds the best split, judges the one that was given, and says what else
    /// was asked for.
    ///
    /// # Errors
    /// Options that do not go with each other or with the model, and files
    /// that cannot be written.
    pub(super) fn search(&self) -> Result<SearchResult> {
        if self.layering.is_empty() {
            return Err(layers::none(self.model(), self.options));
        }
        let request = SearchRequest::new(self.options, self.model(), self.placement)?;
        let given = given::given(self.options, &self.placement.positions)?;
        let start = Instant::now();
        let options = self.options;
        let all = options.sweep || options.explain || given.is_some() || request.is_auto;
        let mut weighed = self.weigh((!all).then(|| request.limits().highest()))?;
        self.detail("range costs", start);
        let ipus = self.ipus(&request, &weighed)?;
        let answer = self.answer(&request, &mut weighed, ipus)?;
        self.detail("solved", start);
        let problem = request.problem(&weighed.costs, &weighed.cut_bytes, ipus);
        self.export_lp(&problem)?;
        let found = self.found(&request, &problem, &answer, given, weighed.all)?;
        self.detail("stages weighed", start);
        Ok(found)
    }

    fn detail(&self, what: &str, start: Instant) {
        let elapsed = start.elapsed();
        self.messages
            .detail(format_args!("{what} after {elapsed:.2?}"));
    }

    /// Weighs all ranges of layers, or those within `limit`.
    fn weigh(&self, limit: Option<u64>) -> Result<Weighed> {
        let limited = limit.unwrap_or(u64::MAX);
        let weigh = |progress: &_| self.memory.range_costs_with(limited, progress);
        let costs = self.messages.while_showing(weigh);
        let file = || super::input::Shown(&self.options.profile).to_string();
        Ok(Weighed {
            costs: costs.with_context(file)?,
            cut_bytes: self.memory.cut_bytes(),
            all: limit.is_none(),
        })
    }

    /// How many IPUs to split over: with auto, as many as the model needs.
    fn ipus(&self, request: &SearchRequest, weighed: &Weighed) -> Result<usize> {
        if !request.is_auto {
            return Ok(request.ipus);
        }
        let problem = request.problem(&weighed.costs, &weighed.cut_bytes, request.ipus);
        let fewest = solve::fewest_stages(&problem).map_err(explained)?;
        Ok(fewest.map_or(request.ipus, |fewest| fewest.min(request.ipus)))
    }

    fn answer(
        &self,
        request: &SearchRequest,
        weighed: &mut Weighed,
        ipus: usize,
    ) -> Result<Outcome> {
        if self.options.solver == Solver::Greedy {
            let stages = self.greedy_stages(&weighed.costs, ipus, request.limits().highest());
            return Ok(Outcome::Greedy(stages));
        }
        let problem = request.problem(&weighed.costs, &weighed.cut_bytes, ipus);
        if let Some(solution) = self.solving(|| solve::solve(&problem))? {
            return Ok(Outcome::Best(Box::new(solution)));
        }
        if !weighed.all {
            *weighed = self.weigh(None)?;
        }
        let problem = request.problem(&weighed.costs, &weighed.cut_bytes, ipus);
        let infeasible = self.solving(|| solve::explain(&problem))?;
        match infeasible {
            Some(infeasible) => Ok(Outcome::Infeasible(Box::new(infeasible))),
            // The two see the same costs, up to the limit.
            None => Err(InternalError("a split turned up that was not found at first").into()),
        }
    }

    fn solving<T>(&self, solve: impl FnOnce() -> Result<T, SolveError>) -> Result<T> {
        self.messages.while_showing(|progress| {
            let _task = progress.begin("solving", Unit::Rows, 0);
            solve().map_err(explained)
        })
    }

    fn export_lp(&self, problem: &Problem<'_>) -> Result<()> {
        let Some(path) = &self.options.export_lp else {
            return Ok(());
        };
        let positions = &self.placement.positions;
        let names = (0..positions.len()).map(|place| positions.name(place).to_string());
        let text = solve::lp(problem, &names.collect::<Vec<_>>()).map_err(explained)?;
        let shown = super::input::Shown(path).to_string();
        atomic::write(path, text.as_bytes()).with_context(|| shown.clone())?;
        self.messages
            .info(format_args!("the integer program is in {shown}"));
        Ok(())
    }

    fn found(
        &self,
        request: &SearchRequest,
        problem: &Problem<'_>,
        answer: &Outcome,
        given: Option<Plan>,
        all: bool,
    ) -> Result<SearchResult> {
        let best = match answer {
            Outcome::Best(solution) => Some(&**solution),
            Outcome::Infeasible(infeasible) => infeasible.lowest_peak.as_ref(),
            Outcome::Greedy(_) => None,
        };
        let broken = match &given {
            Some(plan) => solve::evaluate(problem, plan).map_err(explained)?.broken,
            None => Vec::new(),
        };
        let said = |broken: &Constraint| match broken.weight() {
            Some(weight) => format!("the tie of {weight}"),
            None => broken.origin.to_string(),
        };
        let broken: Vec<String> = broken.iter().map(said).collect();
        let fits = matches!(answer, Outcome::Best(_));
        let facts = SearchFacts {
            proof: facts::proof(self.options, answer, given.is_some()),
            refusal: match answer {
                Outcome::Infeasible(infeasible) => Some(self.refusal(request, infeasible)),
                _ => None,
            },
            judged: match (&given, best) {
                (Some(_), Some(best)) => Some(self.beside(best, fits, broken.clone())),
                _ => None,
            },
            sweep: match self.options.sweep {
                true => Some(self.sweep(request, problem)?),
                false => None,
            },
            orders: request
                .constraints
                .iter()
                .filter(|constraint| constraint.weight().is_none())
                .map(|order| order.origin.to_string())
                .collect(),
            ..SearchFacts::default()
        };
        let mut found = SearchResult { split: None, facts };
        if self.options.wants_split() {
            let stages = shown_stages(&given, answer, best);
            found.split = Some(self.judged(
                request,
                &stages,
                (problem.costs, problem.ipus),
                given.is_some(),
                &broken,
            ));
        }
        if self.options.wants_report() {
            let ties = self.memory.ties();
            found.facts.ties = self.named_ties(&ties);
            let split = found.split.iter();
            found.facts.cuts = split
                .flat_map(|split| self.cuts(&ties, split, problem, all))
                .collect();
        }
        Ok(found)
    }
}

/// The stages of the split that was given, or else of the best one.
fn shown_stages(
    given: &Option<Plan>,
    answer: &Outcome,
    best: Option<&Solution>,
) -> Vec<Range<usize>> {
    match (given, answer, best) {
        (Some(plan), ..) => plan.stages().to_vec(),
        (None, Outcome::Greedy(stages), _) => stages.clone(),
        (None, _, Some(best)) => best.plan.stages().to_vec(),
        (None, _, None) => Vec::new(),
    }
}

/// Orders that contradict each other, or weights, are wrong usage; all else is
/// not.
fn explained(error: SolveError) -> anyhow::Error {
    match error {
        SolveError::Contradiction(_) | SolveError::NoSuchPosition { .. } => {
            super::usage(crate::report::printable(&error.to_string()))
        }
        error => error.into(),
    }
}
