//! How far long work is, told without knowing who looks.
//!
//! Code that reads or computes begins a [`Task`] with what is done and how much
//! there is, and adds to it now and then. [`bars`] draws what runs at the
//! moment; without it the numbers are counted but not shown. They are relaxed
//! atomics that are touched once every few thousand rows, so counting costs
//! nothing that could be measured.

pub mod bars;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The unit of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Rows of tables.
    Rows,
    /// Bytes of a file.
    Bytes,
    /// Tiles of the machine.
    Tiles,
}

/// The tasks that run at the moment, in the order in which they began.
#[derive(Debug, Default)]
pub struct Progress {
    tasks: Arc<Mutex<Tasks>>,
}

#[derive(Debug, Default)]
struct Tasks {
    running: Vec<Arc<State>>,
    /// Tasks that ended, in that order, with their durations.
    ended: Vec<(&'static str, Duration)>,
}

/// Something that is being done, until this is dropped.
#[derive(Debug)]
pub struct Task {
    tasks: Arc<Mutex<Tasks>>,
    state: Arc<State>,
}

/// One task, as those see it who look.
#[derive(Debug)]
pub struct State {
    what: &'static str,
    unit: Unit,
    /// 0 when it is not known.
    total: u64,
    done: AtomicU64,
    began: Instant,
}

impl Progress {
    /// Nothing is being done yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a task: `what` is done (as in "reading profile.pop"), in `total`
    /// units; 0 when that is not known.
    pub fn begin(&self, what: &'static str, unit: Unit, total: u64) -> Task {
        let state = Arc::new(State {
            what,
            unit,
            total,
            done: AtomicU64::new(0),
            began: Instant::now(),
        });
        lock(&self.tasks).running.push(Arc::clone(&state));
        Task {
            tasks: Arc::clone(&self.tasks),
            state,
        }
    }

    /// Tasks that ended, in that order, with their durations.
    pub fn ended(&self) -> Vec<(&'static str, Duration)> {
        lock(&self.tasks).ended.clone()
    }

    /// Tasks that are under way.
    pub fn tasks(&self) -> Vec<Arc<State>> {
        lock(&self.tasks).running.clone()
    }
}

/// A list stays whole whatever happened to the thread that held the lock.
fn lock(tasks: &Mutex<Tasks>) -> MutexGuard<'_, Tasks> {
    tasks.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Task {
    /// This number of units more is done.
    #[inline]
    pub fn add(&self, units: u64) {
        self.state.done.fetch_add(units, Ordering::Relaxed);
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        let ended = &self.state;
        let mut tasks = lock(&self.tasks);
        tasks.running.retain(|task| !Arc::ptr_eq(task, ended));
        tasks.ended.push((ended.what, ended.began.elapsed()));
    }
}

impl State {
    /// Its work, such as "reading profile.pop".
    pub fn what(&self) -> &'static str {
        self.what
    }

    /// Its unit.
    pub fn unit(&self) -> Unit {
        self.unit
    }

    /// Units done, never more than there are.
    pub fn done(&self) -> u64 {
        let done = self.done.load(Ordering::Relaxed);
        self.total().map_or(done, |total| done.min(total))
    }

    /// Units in all, if that is known.
    pub fn total(&self) -> Option<u64> {
        Some(self.total).filter(|&total| total > 0)
    }

    /// The time that the rest will take if it goes on as it did; `None` while
    /// nothing is done or when the total is not known.
    pub fn time_left(&self) -> Option<Duration> {
        time_left(self.done(), self.total()?, self.began.elapsed())
    }
}

fn time_left(done: u64, total: u64, elapsed: Duration) -> Option<Duration> {
    let rest = total.saturating_sub(done) as f64;
    let seconds = elapsed.as_secs_f64() * rest / done as f64;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Counts rows for a task, which hears of them in lots.
#[derive(Debug)]
pub struct Rows<'a> {
    task: &'a Task,
    pending: u64,
}

/// How many rows make a lot.
const LOT: u64 = 4096;

impl<'a> Rows<'a> {
    /// Counts for `task`.
    pub fn new(task: &'a Task) -> Self {
        Self { task, pending: 0 }
    }

    /// One more row.
    #[inline]
    pub fn next(&mut self) {
        self.pending += 1;
        if self.pending == LOT {
            self.task.add(LOT);
            self.pending = 0;
        }
    }
}

impl Drop for Rows<'_> {
    fn drop(&mut self) {
        self.task.add(self.pending);
    }
}

/// A reader whose bytes count for a task.
#[derive(Debug)]
pub struct Counted<'a, R> {
    reader: R,
    task: &'a Task,
}

impl<'a, R> Counted<'a, R> {
    /// Reads from `reader`, which should be read thousands of bytes at a time.
    pub fn new(reader: R, task: &'a Task) -> Self {
        Self { reader, task }
    }
}

impl<R: std::io::Read> std::io::Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.task.add(read as u64);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn tasks_are_there_while_they_run() {
        let progress = Progress::new();
        let whats = || -> Vec<_> { progress.tasks().iter().map(|task| task.what()).collect() };
        let first = progress.begin("first", Unit::Rows, 10);
        let second = progress.begin("second", Unit::Bytes, 0);
        assert_eq!(whats(), ["first", "second"]);
        drop(first);
        assert_eq!(whats(), ["second"]);
        drop(second);
        assert!(whats().is_empty());
    }

    #[test]
    fn units_add_up_over_threads_and_stop_at_the_total() {
        let progress = Progress::new();
        let task = progress.begin("counting", Unit::Tiles, 1000);
        let seen = &progress.tasks()[0];
        assert_eq!((seen.done(), seen.total()), (0, Some(1000)));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..100).for_each(|_| task.add(2)));
            }
        });
        assert_eq!(seen.done(), 600);
        task.add(5000);
        assert_eq!(seen.done(), 1000);
    }

    #[test]
    fn rows_are_counted_in_lots_and_none_is_lost() {
        let progress = Progress::new();
        let task = progress.begin("counting", Unit::Rows, 0);
        let seen = &progress.tasks()[0];
        let mut rows = Rows::new(&task);
        (1..LOT).for_each(|_| rows.next());
        assert_eq!(seen.done(), 0);
        rows.next();
        assert_eq!(seen.done(), LOT);
        (0..7).for_each(|_| rows.next());
        drop(rows);
        assert_eq!((seen.done(), seen.total()), (LOT + 7, None));
    }

    #[test]
    fn bytes_count_as_they_are_read() {
        let progress = Progress::new();
        let task = progress.begin("reading", Unit::Bytes, 11);
        let mut reader = Counted::new(&b"hello world"[..], &task);
        let mut bytes = [0; 5];
        reader.read_exact(&mut bytes).unwrap();
        assert_eq!((&bytes, progress.tasks()[0].done()), (b"hello", 5));
    }

    #[test]
    fn time_left_follows_from_what_is_done() {
        let second = Duration::from_secs(1);
        assert_eq!(time_left(25, 100, second), Some(3 * second));
        assert_eq!(time_left(100, 100, second), Some(Duration::ZERO));
        assert_eq!(time_left(0, 100, second), None);
        assert_eq!(time_left(0, 0, second), None);
    }
}
