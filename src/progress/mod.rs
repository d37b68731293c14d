//! Counts the progress of long work, independently of who displays it.
//!
//! Code that reads or computes begins a [`Task`] with a description and a total, and adds to it
//! from time to time. [`bars`] draws the running tasks; without it the numbers are counted but not
//! shown. The counters are relaxed atomics, updated once every few thousand rows, so counting costs
//! no measurable time.

pub mod bars;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The unit in which a task counts its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Rows of the tables in a profile.
    Rows,
    /// Bytes read from a file.
    Bytes,
    /// Tiles whose memory is computed.
    Tiles,
}

/// All tasks of a run: the running tasks, in the order in which they began, and the tasks that
/// ended.
#[derive(Debug, Default)]
pub struct Progress {
    tasks: Arc<Mutex<Tasks>>,
}

#[derive(Debug, Default)]
struct Tasks {
    running: Vec<Arc<TaskState>>,
    /// The description of each task that ended and how long it took, in the order in which the
    /// tasks ended.
    ended: Vec<(&'static str, Duration)>,
}

/// Handle of a running task. The task ends when the handle is dropped.
#[derive(Debug)]
pub struct Task {
    tasks: Arc<Mutex<Tasks>>,
    state: Arc<TaskState>,
}

/// The progress of a running task, for display.
#[derive(Debug)]
pub struct TaskState {
    /// Description of the task, such as "reading profile.pop".
    pub what: &'static str,
    /// The unit of the numbers below.
    pub unit: Unit,
    /// Number of units that the whole task has; 0 if unknown.
    total: u64,
    done: AtomicU64,
    began: Instant,
}

impl Progress {
    /// Creates the progress of a run, without any task.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a task, which ends when the returned handle is dropped. `what` describes it (as in
    /// "reading profile.pop"); `total` is its number of units, 0 if unknown.
    pub fn begin(&self, what: &'static str, unit: Unit, total: u64) -> Task {
        let state = Arc::new(TaskState {
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

    /// Returns the description of each task that ended and how long it took, in the order in which
    /// the tasks ended.
    pub fn ended(&self) -> Vec<(&'static str, Duration)> {
        lock(&self.tasks).ended.clone()
    }

    /// Returns the running tasks, in the order in which they began.
    pub fn tasks(&self) -> Vec<Arc<TaskState>> {
        lock(&self.tasks).running.clone()
    }
}

/// Locks the lists of tasks. A poisoned lock is taken too, since a panic cannot leave the lists
/// half changed.
fn lock(tasks: &Mutex<Tasks>) -> MutexGuard<'_, Tasks> {
    tasks.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Task {
    /// Adds `units` to the number of units that are finished.
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

impl TaskState {
    /// Returns the number of finished units, at most the total.
    pub fn done(&self) -> u64 {
        let done = self.done.load(Ordering::Relaxed);
        self.total().map_or(done, |total| done.min(total))
    }

    /// Returns the number of units that the whole task has; `None` if unknown.
    pub fn total(&self) -> Option<u64> {
        Some(self.total).filter(|&total| total > 0)
    }

    /// Returns the time for the remaining units if `done` of `total` units took `elapsed`; `None`
    /// if `done` is 0.
    pub fn time_left(&self) -> Option<Duration> {
        time_left(self.done(), self.total()?, self.began.elapsed())
    }
}

fn time_left(done: u64, total: u64, elapsed: Duration) -> Option<Duration> {
    let rest = total.saturating_sub(done) as f64;
    let seconds = elapsed.as_secs_f64() * rest / done as f64;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Counts rows for a task, and adds them to the task in lots of [`LOT`] rows and when dropped.
#[derive(Debug)]
pub struct RowCounter<'a> {
    task: &'a Task,
    pending: u64,
}

/// Number of rows that are counted before they are added to the task.
const LOT: u64 = 4096;

impl<'a> RowCounter<'a> {
    /// Creates a counter that adds its rows to `task`.
    pub fn new(task: &'a Task) -> Self {
        Self { task, pending: 0 }
    }

    /// Counts one more row.
    #[inline]
    pub fn count(&mut self) {
        self.pending += 1;
        if self.pending == LOT {
            self.task.add(LOT);
            self.pending = 0;
        }
    }
}

impl Drop for RowCounter<'_> {
    fn drop(&mut self) {
        self.task.add(self.pending);
    }
}

/// A reader that adds the number of bytes read to a task.
#[derive(Debug)]
pub struct CountingReader<'a, R> {
    reader: R,
    task: &'a Task,
}

impl<'a, R> CountingReader<'a, R> {
    /// Wraps `reader`, which should be read thousands of bytes at a time, since each read updates
    /// the task.
    pub fn new(reader: R, task: &'a Task) -> Self {
        Self { reader, task }
    }
}

impl<R: std::io::Read> std::io::Read for CountingReader<'_, R> {
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
        let whats = || -> Vec<_> { progress.tasks().iter().map(|task| task.what).collect() };
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
        let mut rows = RowCounter::new(&task);
        (1..LOT).for_each(|_| rows.count());
        assert_eq!(seen.done(), 0);
        rows.count();
        assert_eq!(seen.done(), LOT);
        (0..7).for_each(|_| rows.count());
        drop(rows);
        assert_eq!((seen.done(), seen.total()), (LOT + 7, None));
    }

    #[test]
    fn bytes_count_as_they_are_read() {
        let progress = Progress::new();
        let task = progress.begin("reading", Unit::Bytes, 11);
        let mut reader = CountingReader::new(&b"hello world"[..], &task);
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
