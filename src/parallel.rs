//! Lists of millions of entries, made and gone through by all threads: the first touch of
//! so much memory takes longer than what is written there.

use rayon::prelude::*;
use rayon::{ThreadBuilder, ThreadPoolBuilder};
use std::io;
use std::ops::Range;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Starts the threads that work in parallel: as many as `RAYON_NUM_THREADS` says, but not more
/// than there are processors. Where the system refuses one of them, as under `ulimit -v`, all
/// is done by this one.
pub(crate) fn start_threads() {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let wanted = std::env::var("RAYON_NUM_THREADS").ok();
    let wanted = wanted
        .and_then(|text| text.parse().ok())
        .filter(|&threads| threads > 0);
    let count = wanted.map_or(processors, |wanted: usize| wanted.min(processors));
    // The library cannot begin again with fewer: first the threads, then their work.
    let (give, take) = channel();
    let take = Arc::new(Mutex::new(take));
    let started = (0..count).map_while(|_| started(take.clone()).ok()).count();
    let give = move |worker| give.send(worker).map_err(|_| io::ErrorKind::Other.into());
    // It fails where threads were started before, and then those do the work.
    let _ = if started == count && count > 1 {
        let pool = ThreadPoolBuilder::new().num_threads(count);
        pool.spawn_handler(give).build_global()
    } else {
        drop(give);
        let pool = ThreadPoolBuilder::new().num_threads(1);
        pool.use_current_thread().build_global()
    };
}

/// Starts a thread that does the work it is given, or ends when there will be none.
fn started(take: Arc<Mutex<Receiver<ThreadBuilder>>>) -> io::Result<thread::JoinHandle<()>> {
    thread::Builder::new().spawn(move || {
        let worker = take.lock().unwrap_or_else(PoisonError::into_inner).recv();
        if let Ok(worker) = worker {
            worker.run();
        }
    })
}

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

/// `0..count` in `parts` equal parts, or in fewer.
pub(crate) fn equal_parts(count: usize, parts: usize) -> Vec<Range<usize>> {
    let at_once = count.div_ceil(parts.max(1)).max(1);
    let starts = (0..count).step_by(at_once);
    starts
        .map(|start| start..count.min(start + at_once))
        .collect()
}

/// `list` in consecutive parts of these lengths, which it has together.
pub(crate) fn split_by<T>(list: &mut [T], lengths: impl Iterator<Item = usize>) -> Vec<&mut [T]> {
    let mut rest = list;
    let part = |length| {
        let (part, after) = std::mem::take(&mut rest).split_at_mut(length);
        rest = after;
        part
    };
    lengths.map(part).collect()
}

/// The results of `of_part` for `parts` equal parts of `0..count`, joined in their order;
/// `None` without parts.
pub(crate) fn by_parts<T: Send>(
    count: usize,
    parts: usize,
    of_part: impl Fn(Range<usize>) -> T + Send + Sync,
    join: impl Fn(T, T) -> T + Send + Sync,
) -> Option<T> {
    let parts = equal_parts(count, parts).into_par_iter();
    parts.map(of_part).reduce_with(join)
}

#[cfg(test)]
mod tests {
    #[test]
    fn parts_cover_everything_once_and_in_order() {
        for (count, parts) in [(0, 3), (1, 3), (7, 3), (9, 3), (3, 0)] {
            let found = super::by_parts(
                count,
                parts,
                |part| part.collect::<Vec<_>>(),
                |a, b| [a, b].concat(),
            );
            assert_eq!(found.unwrap_or_default(), (0..count).collect::<Vec<_>>());
            assert!(super::equal_parts(count, parts).len() <= parts.max(1));
        }
    }

    #[test]
    fn a_list_is_split_by_lengths() {
        let mut list = [1, 2, 3, 4];
        let parts = super::split_by(&mut list, [1, 0, 3].into_iter());
        assert_eq!(parts, [&[1][..], &[], &[2, 3, 4]]);
    }

    #[test]
    fn parts_keep_their_order() {
        let parts = vec![vec![3, 1], vec![], vec![2]];
        assert_eq!(super::concatenated(parts), [3, 1, 2]);
        assert!(super::concatenated::<u8>(vec![]).is_empty());
    }
}
