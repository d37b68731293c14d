//! The integer program as text that other solvers read: the LP format that
//! CPLEX introduced.
//!
//! Only the first objective of the goal is in it. A range of positions is a
//! binary: `x_3_7` is 1 when positions 3 to 7 are one stage, `x_3_7_on_2` when
//! that stage is on IPU 2, `x_3_7_then_1` when one stage comes after it. There is a
//! binary for each IPU when it matters which one a range is on, and in a pipeline
//! for each number of stages after it. Rows named `start` and `cut` let exactly as many stages
//! start at a boundary as end there. A bottleneck is a variable (`peak`,
//! `cycles`) with one row for each position: it is at least what the chosen
//! range over that position counts.

use std::fmt::{self, Display, Write};

use crate::escape::printable;

use super::checked_problem::CheckedProblem;
use super::constraints::Origin;
use super::error::SolveError;
use super::network::{Edge, Level, Network};
use super::objectives::{Goal, Objective};
use super::problem::Problem;

/// The maximum number of characters of a name that are shown.
const MAX_NAME: usize = 100;

/// The integer program for the main objective of `problem`, with all limits
/// and constraints. `names` says in comments what each position is. Its optimum is
/// the first number of [`solve`](super::solve)'s plan; where there is no plan
/// it is infeasible.
///
/// # Errors
/// A problem or constraints that contradict themselves, as in
/// [`solve`](super::solve).
pub fn lp(problem: &Problem<'_>, names: &[String]) -> Result<String, SolveError> {
    let checked = CheckedProblem::new(problem)?;
    let network = if checked.is_numbered() || checked.is_by_depth() {
        Network::layered(&checked)
    } else {
        Network::compact(&checked)
    };
    let program = LpFile {
        network: &network,
        names,
    };
    Ok(program.to_string())
}

struct LpFile<'a> {
    network: &'a Network<'a>,
    names: &'a [String],
}

impl Display for LpFile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.comments(f)?;
        f.write_str("Minimize\n")?;
        self.objective(f)?;
        f.write_str("Subject To\n")?;
        self.conservation(f)?;
        if !self.network.is_layered() {
            let stages = self.network.edges().map(|edge| (1, Some(edge)));
            let bound = format!("<= {}", self.network.checked.stages);
            row(f, "stages", stages.map(term), &bound)?;
        }
        if let Some(bottleneck) = self.bottleneck() {
            self.covers(f, bottleneck)?;
        }
        // Without a single range, this row is what cannot be.
        f.write_str("Bounds\n none = 0\nBinaries\n")?;
        for edge in self.network.edges() {
            writeln!(f, " {}", Name(&edge))?;
        }
        f.write_str("End\n")
    }
}

impl LpFile<'_> {
    /// The name of the variable that is the bottleneck, if the goal is one.
    fn bottleneck(&self) -> Option<&'static str> {
        match self.network.checked.goal {
            Goal::Peak => Some("peak"),
            Goal::Cycles | Goal::Time => Some("cycles"),
            Goal::Fewest | Goal::Communication => None,
        }
    }

    fn main(&self) -> Objective {
        self.network.checked.goal.main()
    }

    fn comments(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let checked = self.network.checked;
        let (main, ipus) = (self.main(), checked.problem.ipus);
        writeln!(f, "\\ Stages of layers on at most {ipus} IPUs: {main}.")?;
        writeln!(f, "\\ x_A_B is 1 when positions A to B are one stage,")?;
        writeln!(f, "\\ x_A_B_on_N when that stage stands on IPU N,")?;
        writeln!(f, "\\ x_A_B_then_N when N stages come after it.")?;
        for (position, name) in (0..checked.layers()).zip(self.names) {
            writeln!(f, "\\ position {position}: {}", comment(name))?;
        }
        for constraint in checked.problem.constraints {
            let kind = match constraint.origin {
                Origin::Option(_) => "option",
                Origin::Weight(_) => "on one IPU",
            };
            writeln!(f, "\\ {kind}: {}", comment(&constraint.origin.to_string()))?;
        }
        Ok(())
    }

    fn objective(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut terms = Terms::new(f, "total")?;
        if let Some(bottleneck) = self.bottleneck() {
            terms.add(1, bottleneck)?;
        } else {
            for edge in self.network.edges() {
                let cost = self.network.value(self.main(), &edge);
                terms.add(signed(cost), Name(&edge))?;
            }
        }
        terms.end("")
    }

    /// One row for each node but the last.
    fn conservation(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut nodes = vec![Vec::new(); self.network.sink() + 1];
        for edge in self.network.edges() {
            nodes[edge.from].push((1, Some(edge)));
            nodes[edge.to].push((-1, Some(edge)));
        }
        nodes.pop();
        let layers = self.network.checked.layers().max(1);
        let levels: Vec<Level> = self.network.levels().collect();
        for (node, ends) in nodes.into_iter().enumerate() {
            let boundary = node % layers;
            if node == 0 {
                let none = std::iter::once((1, None));
                row(f, "start", ends.into_iter().chain(none).map(term), "= 1")?;
            } else if !ends.is_empty() {
                let level = levels.get(node / layers).copied().unwrap_or_default();
                let name = format!("cut_{boundary}{}", Suffix(level));
                row(f, &name, ends.into_iter().map(term), "= 0")?;
            }
        }
        Ok(())
    }

    /// One row for each position: the bottleneck is at least what the chosen
    /// range over it counts.
    fn covers(&self, f: &mut fmt::Formatter<'_>, bottleneck: &str) -> fmt::Result {
        for position in 0..self.network.checked.layers() {
            let mut terms = Terms::new(f, &format!("{bottleneck}_of_{position}"))?;
            terms.add(1, bottleneck)?;
            for edge in self.network.edges() {
                if edge.stage_range.range.contains(&position) {
                    let cost = self.network.value(self.main(), &edge);
                    terms.add(-signed(cost), Name(&edge))?;
                }
            }
            terms.end(">= 0")?;
        }
        Ok(())
    }
}

/// A name for a comment.
fn comment(name: &str) -> String {
    printable(name).chars().take(MAX_NAME).collect()
}

/// Costs are far below the highest signed number: sums of their squares fit.
fn signed(cost: u128) -> i128 {
    i128::try_from(cost).unwrap_or(i128::MAX)
}

/// A term of a row; without an edge that of the variable that is always 0.
fn term((factor, edge): (i128, Option<Edge<'_>>)) -> (i128, String) {
    let name = edge.map_or_else(|| "none".to_owned(), |edge| Name(&edge).to_string());
    (factor, name)
}

fn row(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    terms: impl Iterator<Item = (i128, String)>,
    bound: &str,
) -> fmt::Result {
    let mut row = Terms::new(f, name)?;
    for (factor, variable) in terms {
        row.add(factor, variable)?;
    }
    row.end(bound)
}

/// The name of a range's variable.
struct Name<'a>(&'a Edge<'a>);

impl Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = &self.0.stage_range.range;
        let suffix = Suffix(self.0.level);
        write!(f, "x_{}_{}{suffix}", range.start, range.end - 1)
    }
}

/// The end of a name, which says the level.
struct Suffix(Level);

impl Display for Suffix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(ipu) = self.0.ipu {
            write!(f, "_on_{ipu}")?;
        }
        match self.0.after {
            Some(after) => write!(f, "_then_{after}"),
            None => Ok(()),
        }
    }
}

/// Lines are broken when they get longer: readers have limits.
const LINE: usize = 200;

/// A sum that is being written, in lines that are not too long.
struct Terms<'a, 'f> {
    out: &'a mut fmt::Formatter<'f>,
    line: String,
    is_first: bool,
}

impl<'a, 'f> Terms<'a, 'f> {
    fn new(out: &'a mut fmt::Formatter<'f>, name: &str) -> Result<Self, fmt::Error> {
        let line = format!(" {name}:");
        Ok(Self {
            out,
            line,
            is_first: true,
        })
    }

    fn add(&mut self, factor: i128, variable: impl Display) -> fmt::Result {
        if self.line.len() > LINE {
            writeln!(self.out, "{}", self.line)?;
            self.line.clear();
            self.line.push(' ');
        }
        let sign = match (factor < 0, self.is_first) {
            (true, _) => " -",
            (false, true) => "",
            (false, false) => " +",
        };
        self.is_first = false;
        self.line.push_str(sign);
        match factor.unsigned_abs() {
            1 => write!(self.line, " {variable}"),
            factor => write!(self.line, " {factor} {variable}"),
        }
    }

    fn end(mut self, bound: &str) -> fmt::Result {
        if self.is_first {
            self.add(1, "none")?;
        }
        writeln!(self.out, "{}", format!("{} {bound}", self.line).trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::testing::additive;
    use crate::solve::{Constraint, Limits, Rule};

    #[test]
    fn the_peak_is_at_least_that_of_the_range_over_each_position() {
        let costs = additive(&[3, 1, 4], u64::MAX);
        let problem = Problem::new(&costs, &[7, 9], 2, 5);
        let names = ["a", "b\n", "c"].map(String::from);
        let expected = "\
\\ Stages of layers on at most 2 IPUs: lowest memory on the fullest tile.
\\ x_A_B is 1 when positions A to B are one stage,
\\ x_A_B_on_N when that stage stands on IPU N,
\\ x_A_B_then_N when N stages come after it.
\\ position 0: a
\\ position 1: b\\n
\\ position 2: c
Minimize
 total: peak
Subject To
 start: x_0_0 + x_0_1 + none = 1
 cut_1: - x_0_0 + x_1_1 + x_1_2 = 0
 cut_2: - x_0_1 - x_1_1 + x_2_2 = 0
 stages: x_0_0 + x_0_1 + x_1_1 + x_1_2 + x_2_2 <= 2
 peak_of_0: peak - 3 x_0_0 - 4 x_0_1 >= 0
 peak_of_1: peak - 4 x_0_1 - x_1_1 - 5 x_1_2 >= 0
 peak_of_2: peak - 5 x_1_2 - 4 x_2_2 >= 0
Bounds
 none = 0
Binaries
 x_0_0
 x_0_1
 x_1_1
 x_1_2
 x_2_2
End
";
        assert_eq!(lp(&problem, &names).unwrap(), expected);
    }

    #[test]
    fn where_the_ipu_matters_it_is_in_the_names() {
        let costs = additive(&[3, 1, 4], u64::MAX);
        let constraints = [Constraint::option(
            Rule::NoCutAfter { position: 0 },
            "--no-cut-after a",
        )];
        let problem = Problem {
            limits: Limits::ByIpu(&[4, 5]),
            goal: Goal::Communication,
            constraints: &constraints,
            ..Problem::new(&costs, &[7, 9], 2, 0)
        };
        let text = lp(&problem, &[]).unwrap();
        let program = text.split_once("Minimize").unwrap().1;
        let expected = "
 total: 9 x_0_1_on_0 + 0 x_2_2_on_1
Subject To
 start: x_0_1_on_0 + none = 1
 cut_2_on_1: - x_0_1_on_0 + x_2_2_on_1 = 0
Bounds
 none = 0
Binaries
 x_0_1_on_0
 x_2_2_on_1
End
";
        assert_eq!(program, expected);
        assert!(text.contains("\\ option: --no-cut-after a\n"));
    }

    #[test]
    fn lines_are_broken_before_they_get_too_long() {
        let costs = additive(&[1; 60], u64::MAX);
        let text = lp(&Problem::new(&costs, &[0; 59], 9, 30), &[]).unwrap();
        assert!(text.lines().all(|line| line.len() < 255));
    }
}
