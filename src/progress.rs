//! Shows the progress of long work on a terminal, and measures how long each task takes.

use elsa::sync::FrozenVec;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::{io::Read, sync::Arc, thread, time::Duration};

/// Time after which progress bars appear. A command that ends earlier shows no bars.
const DELAY: Duration = Duration::from_millis(500);
/// Time between two redraws of a progress bar.
const TICK: Duration = Duration::from_millis(100);

/// Template of the progress bar of a task, in ASCII, which every terminal can show.
const BAR: &str = "{prefix:27} [{wide_bar}] {percent:>3} %, {eta} left";
/// Template of the progress display of a task whose number of units is unknown.
const SPINNER: &str = "{prefix:27} {spinner}";

/// The tasks of one run of the command, such as reading a file, with their progress bars and
/// durations. A clone shares the tasks of the original.
#[derive(Debug, Clone)]
pub struct Progress {
    bars: MultiProgress,
    is_shown: bool,
    ended: Ended,
}

/// The description and duration of each ended task, in the order in which the tasks ended.
type Ended = Arc<FrozenVec<Box<(String, Duration)>>>;

/// A running task with its progress bar. Dropping the value ends the task.
#[derive(Debug)]
pub struct Task {
    bar: ProgressBar,
    ended: Ended,
}

impl Progress {
    /// Creates a `Progress` that measures the time of tasks but shows no bars.
    pub fn new() -> Self {
        Self {
            bars: MultiProgress::with_draw_target(ProgressDrawTarget::hidden()),
            is_shown: false,
            ended: Arc::default(),
        }
    }

    /// Creates a `Progress` that shows a bar for each task on standard error, if that is a
    /// terminal. Nothing else may write to standard error while a task runs, since the bars would
    /// overwrite other text.
    pub fn on_terminal() -> Self {
        let hidden = Self::new();
        let terminal = ProgressDrawTarget::stderr();
        if terminal.is_hidden() {
            return hidden;
        }
        let bars = hidden.bars.clone();
        // Bars appear after a delay, which a thread waits for. If the system refuses to start the
        // thread, no bars are shown.
        let _ = thread::Builder::new().spawn(move || {
            thread::sleep(DELAY);
            bars.set_draw_target(terminal);
        });
        Self {
            is_shown: true,
            ..hidden
        }
    }

    /// Begins a task, which ends when the returned handle is dropped. `what` describes the task,
    /// such as "reading profile.pop". `total` is the number of units of work in the task, such as
    /// bytes or rows; 0 if unknown.
    pub fn begin(&self, what: &'static str, total: u64) -> Task {
        let template = if total > 0 { BAR } else { SPINNER };
        let style = ProgressStyle::with_template(template).expect("a template without mistakes");
        let bar = self.bars.add(ProgressBar::new(total));
        bar.set_style(style.progress_chars("=> ").tick_chars("-\\|/ "));
        bar.set_prefix(what);
        if self.is_shown {
            bar.enable_steady_tick(TICK);
        }
        Task {
            bar,
            ended: Arc::clone(&self.ended),
        }
    }

    pub fn ended(&self) -> impl Iterator<Item = &(String, Duration)> {
        self.ended.iter()
    }
}

impl Task {
    /// Adds `units` to the number of finished units of the task. Each call reads the clock, so for
    /// a task of millions of units, a call should add many units at a time.
    pub fn add(&self, units: u64) {
        self.bar.inc(units);
    }

    /// Returns a reader that passes on the bytes of `reader`, and adds their number to the finished
    /// units of the task.
    pub fn reading(&self, reader: impl Read) -> impl Read {
        self.bar.wrap_read(reader)
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        self.ended
            .push(Box::new((self.bar.prefix(), self.bar.elapsed())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_count_their_units_and_are_listed_once_they_end() {
        let progress = Progress::new();
        let rows = progress.begin("rows", 10);
        let bytes = progress.begin("bytes", 0);
        rows.add(3);
        rows.add(4);
        let mut text = String::new();
        let read = bytes.reading(&b"hello"[..]).read_to_string(&mut text);
        assert_eq!(read.unwrap(), 5);
        assert_eq!((rows.bar.position(), bytes.bar.position()), (7, 5));
        drop(bytes);
        drop(rows);
        let ended: Vec<_> = progress.ended().map(|(what, _)| what).collect();
        assert_eq!(ended, ["bytes", "rows"]);
    }

    #[test]
    fn both_templates_are_valid() {
        assert!(
            [BAR, SPINNER]
                .map(ProgressStyle::with_template)
                .iter()
                .all(Result::is_ok)
        );
    }
}
