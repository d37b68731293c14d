//! Thins curves without changing how they look.

/// Returns the indices of at most about `max_points` of the points (step, bytes), ascending: the
/// first, the lowest, the highest and the last point of each of several equal ranges of points. The
/// first and the last point of the curve stay, and no peak is lost.
pub(crate) fn thin(points: &[(u32, u64)], max_points: usize) -> Vec<usize> {
    if points.len() <= max_points {
        return (0..points.len()).collect();
    }
    let chunk = points.len().div_ceil((max_points / 4).max(1)).max(4);
    let mut kept = Vec::with_capacity(max_points);
    for (number, points) in points.chunks(chunk).enumerate() {
        kept.extend(corners(points).map(|place| number * chunk + place));
    }
    kept
}

/// Returns the indices of the first, the lowest, the highest and the last point, without
/// duplicates, ascending. Of equal points the first one is taken.
fn corners(points: &[(u32, u64)]) -> impl Iterator<Item = usize> {
    let bytes = |&place: &usize| points[place].1;
    let lowest = (0..points.len()).min_by_key(bytes).unwrap_or(0);
    let highest = (0..points.len()).rev().max_by_key(bytes).unwrap_or(0);
    let mut places = vec![0, lowest, highest, points.len().saturating_sub(1)];
    places.sort_unstable();
    places.dedup();
    places.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_points_stay_as_they_are() {
        let points = [(0, 5), (3, 1)];
        assert_eq!(thin(&points, 2), [0, 1]);
        assert!(thin(&[], 2).is_empty());
    }

    #[test]
    fn of_many_points_no_peak_is_lost() {
        let hashed = |step: u32| u64::from(step.wrapping_mul(2_654_435_761) >> 12);
        let points: Vec<_> = (0..20_001).map(|step| (step, hashed(step))).collect();
        for max in [1, 4, 100, 1000] {
            let kept = thin(&points, max);
            let kept: Vec<_> = kept.into_iter().map(|place| points[place]).collect();
            assert!(kept.len() <= max.max(4), "{max}: {}", kept.len());
            assert!(kept.is_sorted_by(|a, b| a.0 < b.0));
            assert_eq!(kept.first(), points.first());
            assert_eq!(kept.last(), points.last());
            let bytes = |point: &&(u32, u64)| point.1;
            let highest = points.iter().rev().max_by_key(bytes);
            assert!(kept.contains(highest.unwrap()));
            assert!(kept.contains(points.iter().min_by_key(bytes).unwrap()));
        }
    }
}
