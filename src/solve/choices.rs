//! The edges that the solver is given to minimise a sum.

use super::formulation::Choice;
use super::network::Network;
use super::potentials::Potentials;

/// The edges with their shifted costs, without those that no path has.
/// Without any path there is nothing to shift by: all edges, at no cost.
///
/// Of more than `max_edges` only those with the best paths are taken. The
/// optimum of these is that of all: shifted costs are never negative, so that
/// no edge that is left out can lower a sum of 0.
pub(super) fn choices(network: &Network<'_>, sums: Option<&Potentials>) -> Vec<Choice> {
    let most = sums.map(|sums| most_excess(&sums.excess, network.checked.max_edges));
    let edges = network.edges().enumerate();
    let choices = edges.filter_map(|(index, edge)| {
        let cost = match (sums, most) {
            (Some(sums), Some(most)) => {
                let excess = sums.excess[index].filter(|&excess| excess <= most);
                excess.map(|_| sums.shifted[index])?
            }
            _ => 0,
        };
        Some(Choice {
            from: edge.from,
            to: edge.to,
            range: edge.stage_range.range.clone(),
            cost,
        })
    });
    choices.collect()
}

/// The excess up to which there are at most `most` edges; 0 when even those
/// without any excess are more.
fn most_excess(excess: &[Option<u128>], most: usize) -> u128 {
    let mut excess: Vec<u128> = excess.iter().flatten().copied().collect();
    if excess.len() <= most {
        return u128::MAX;
    }
    let (_, first_out, _) = excess.select_nth_unstable(most);
    first_out.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_without_excess_are_never_left_out() {
        let excess = [Some(0), None, Some(7), Some(0), Some(3), Some(3)];
        assert_eq!(most_excess(&excess, 5), u128::MAX);
        assert_eq!(most_excess(&excess, 4), 6);
        assert_eq!(most_excess(&excess, 3), 2);
        assert_eq!(most_excess(&excess, 2), 2);
        assert_eq!(most_excess(&excess, 1), 0);
    }
}
