//! Lists of millions of entries, made by all threads: the first touch of so much memory
//! takes longer than what is written there.

use rayon::prelude::*;

/// So many times `value`.
pub(crate) fn filled<T: Copy + Send + Sync>(value: T, count: usize) -> Vec<T> {
    rayon::iter::repeat_n(value, count).collect()
}

/// All of `parts`, one after the other. Gives the room of each back as soon as it is
/// there.
pub(crate) fn concatenated<T: Copy + Send + Sync>(parts: Vec<Vec<T>>) -> Vec<T> {
    let mut all = Vec::with_capacity(parts.iter().map(Vec::len).sum());
    for part in parts {
        all.par_extend(part.par_iter().copied());
    }
    all
}

#[cfg(test)]
mod tests {
    #[test]
    fn parts_keep_their_order() {
        let parts = vec![vec![3, 1], vec![], vec![2]];
        assert_eq!(super::concatenated(parts), [3, 1, 2]);
        assert!(super::concatenated::<u8>(vec![]).is_empty());
    }
}
