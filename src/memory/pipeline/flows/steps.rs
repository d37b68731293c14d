//! Ranges of steps.

/// Half-open ranges of steps, ascending and disjoint: mostly one or two.
pub(super) type Steps = Vec<(u32, u32)>;

/// A position, and the steps at which it needs a variable.
pub(super) type OfPosition = (u32, Steps);

/// Sorts and merges ranges, so that they ascend and are disjoint.
pub(super) fn joined(ranges: impl IntoIterator<Item = (u32, u32)>) -> Steps {
    let mut ranges: Steps = ranges.into_iter().filter(|(from, to)| from < to).collect();
    ranges.sort_unstable();
    let mut joined = Steps::new();
    for (from, to) in ranges {
        match joined.last_mut() {
            Some(last) if last.1 >= from => last.1 = last.1.max(to),
            _ => joined.push((from, to)),
        }
    }
    joined
}

/// `ranges` without the steps of `others`; both ascend and are disjoint.
pub(super) fn without(ranges: &[(u32, u32)], others: &[(u32, u32)]) -> Steps {
    let mut others = others.iter().filter(|range| range.0 < range.1).peekable();
    let mut left = Steps::new();
    for &(mut from, to) in ranges {
        while let Some(&&(first, end)) = others.peek()
            && first < to
        {
            if from < first {
                left.push((from, first));
            }
            from = from.max(end);
            if end > to {
                break;
            }
            others.next();
        }
        if from < to {
            left.push((from, to));
        }
    }
    left
}

/// Groups steps by the positions that need the variables together: each set of positions has the
/// steps at which exactly its positions need them.
pub(super) fn together(own: &[OfPosition]) -> Vec<(Vec<u32>, Steps)> {
    let mut changes = Vec::new();
    for (number, (_, steps)) in own.iter().enumerate() {
        for &(from, to) in steps.iter().filter(|(from, to)| from < to) {
            changes.extend([(from, number, true), (to, number, false)]);
        }
    }
    changes.sort_unstable();
    let mut found: Vec<(Vec<u32>, Steps)> = Vec::new();
    let mut active = vec![false; own.len()];
    let mut here = changes.chunk_by(|a, b| a.0 == b.0).peekable();
    while let Some(at) = here.next() {
        // At one step, ends come before begins.
        for is_begin in [false, true] {
            let changed = at.iter().filter(|change| change.2 == is_begin);
            changed.for_each(|&(_, number, _)| active[number] = is_begin);
        }
        let Some(next) = here.peek() else { break };
        let numbered = own.iter().zip(&active).filter(|(_, is_active)| **is_active);
        let positions: Vec<u32> = numbered.map(|((position, _), _)| *position).collect();
        let steps = (at[0].0, next[0].0);
        match found.iter_mut().find(|(known, _)| *known == positions) {
            _ if positions.is_empty() => {}
            Some((_, known)) => match known.last_mut() {
                Some(last) if last.1 == steps.0 => last.1 = steps.1,
                _ => known.push(steps),
            },
            None => found.push((positions, vec![steps])),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_joined_and_taken_away() {
        assert_eq!(
            joined([(4, 6), (1, 2), (2, 3), (5, 5)])[..],
            [(1, 3), (4, 6)]
        );
        assert_eq!(without(&[(0, 4), (6, 9)], &[(2, 7)])[..], [(0, 2), (7, 9)]);
        assert_eq!(without(&[(0, 4)], &[(3, 2)])[..], [(0, 4)]);
        let others = [(1, 2), (4, 6), (9, 12), (20, 30)];
        let left = [(0, 1), (2, 4), (6, 9), (12, 13), (15, 20)];
        assert_eq!(without(&[(0, 10), (11, 13), (15, 22)], &others)[..], left);
    }
}
