//! Spreads work over all threads, and creates and splits lists of millions of entries for them. One
//! thread alone would spend more time on touching the memory of such a list for the first time than
//! on computing its entries.

use rayon::ThreadPoolBuilder;
use rayon::prelude::*;
use std::{
    ops::Range,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
};

/// Runs `work` on the calling thread, as one of the threads of a pool that share the work. The
/// environment variable `RAYON_NUM_THREADS` sets the number of threads, up to the number of
/// processors; without the variable, there is one thread for each processor. If the system
/// refuses to start a thread, as under `ulimit -v`, the calling thread does all work.
pub fn on_all_threads<T>(work: impl FnOnce() -> T) -> T {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let count = std::env::var("RAYON_NUM_THREADS")
        .ok()
        .and_then(|text| text.parse::<usize>().ok())
        .filter(|&wanted| wanted > 0)
        .map_or(processors, |wanted| wanted.min(processors));
    let pool = |count| {
        ThreadPoolBuilder::new()
            .num_threads(count)
            .use_current_thread()
    };
    // `build_global` fails if a global pool of threads already exists. The error is ignored, since
    // the existing pool then does the work.
    let _ = pool(count)
        .build_global()
        .or_else(|_| pool(1).build_global());
    work()
}

/// Locks `mutex`, even if another thread panicked while it held the lock.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a list of `count` copies of `value`. The threads fill it together, since a single thread
/// would take long to touch so much new memory.
pub fn filled<T: Copy + Send + Sync>(value: T, count: usize) -> Vec<T> {
    rayon::iter::repeat_n(value, count).collect()
}

/// Splits `0..count` into at most `parts` consecutive ranges of equal length (the last one may be
/// shorter). Returns no range if `count` is 0.
pub fn equal_parts(count: usize, parts: usize) -> Vec<Range<usize>> {
    let at_once = count.div_ceil(parts.max(1)).max(1);
    (0..count)
        .step_by(at_once)
        .map(|start| start..count.min(start + at_once))
        .collect()
}

/// Splits `list` into consecutive slices with the given `lengths`, in order, so that several
/// threads can fill the slices. Panics if the lengths add up to more than the length of the list.
pub fn split_by<T>(list: &mut [T], lengths: impl Iterator<Item = usize>) -> Vec<&mut [T]> {
    let mut rest = list;
    let part = |length| {
        let (part, after) = std::mem::take(&mut rest).split_at_mut(length);
        rest = after;
        part
    };
    lengths.map(part).collect()
}

/// Returns the index in a list at which each of several consecutive parts starts. `counts` has the
/// number of entries of each part. The last entry of the result is the number of all entries.
pub fn starts(counts: &[u32]) -> Vec<usize> {
    let mut end = 0;
    let ends = counts.iter().map(|&count| {
        end += count as usize;
        end
    });
    std::iter::once(0).chain(ends).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn parts_cover_everything_once_and_in_order() {
        for (count, parts) in [(0, 3), (1, 3), (7, 3), (9, 3), (3, 0)] {
            let found = super::equal_parts(count, parts);
            assert!(found.len() <= parts.max(1));
            assert!(found.into_iter().flatten().eq(0..count));
        }
    }

    #[test]
    fn a_list_is_split_by_lengths() {
        let mut list = [1, 2, 3, 4];
        let parts = super::split_by(&mut list, [1, 0, 3].into_iter());
        assert_eq!(parts, [&[1][..], &[], &[2, 3, 4]]);
    }
}
