//! Progress bars on a terminal.

use super::{Progress, TaskState, Unit};
use indicatif::{HumanBytes, HumanCount, HumanDuration, MultiProgress, ProgressBar, ProgressStyle};
use std::io::{IsTerminal, stderr};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Time after which bars appear. Shorter work shows none.
const DELAY: Duration = Duration::from_millis(500);
/// Time between two redraws of the bars.
const TICK: Duration = Duration::from_millis(100);

/// Runs `work` and draws its progress on standard error while it runs. Draws nothing if `quiet` is
/// set, or if standard error is no terminal. The bars are removed before this returns. Nothing else
/// may write to standard error while `work` runs.
pub fn during<T>(progress: &Progress, quiet: bool, work: impl FnOnce(&Progress) -> T) -> T {
    if !wanted(quiet, stderr().is_terminal()) {
        return work(progress);
    }
    std::thread::scope(|scope| {
        // The thread ends when the sender is dropped, also by a panic.
        let (_running, finished) = channel();
        scope.spawn(|| draw(progress, finished));
        work(progress)
    })
}

/// Returns whether to draw progress bars: not if `quiet` is set, nor if standard error is no
/// `terminal`.
fn wanted(quiet: bool, terminal: bool) -> bool {
    terminal && !quiet
}

/// Waits until the work ends (`finished` is disconnected) or `wait` has passed. Returns whether the
/// work still goes on.
fn goes_on(finished: &Receiver<()>, wait: Duration) -> bool {
    finished.recv_timeout(wait) == Err(RecvTimeoutError::Timeout)
}

/// Draws one bar for each running task, until `finished` is disconnected. Draws nothing if that
/// happens within [`DELAY`].
fn draw(progress: &Progress, finished: Receiver<()>) {
    if !goes_on(&finished, DELAY) {
        return;
    }
    let screen = MultiProgress::new();
    let mut displayed: Vec<(Arc<TaskState>, ProgressBar)> = Vec::new();
    loop {
        let tasks = progress.tasks();
        displayed.retain(|(task, bar)| {
            let runs = tasks.iter().any(|running| Arc::ptr_eq(running, task));
            if !runs {
                bar.finish_and_clear();
                screen.remove(bar);
            }
            runs
        });
        for task in tasks {
            if !displayed.iter().any(|(other, _)| Arc::ptr_eq(other, &task)) {
                let bar = screen.add(bar(&task));
                displayed.push((task, bar));
            }
        }
        for (task, bar) in &displayed {
            bar.set_position(task.done());
            bar.set_message(numbers(task));
            bar.tick();
        }
        if !goes_on(&finished, TICK) {
            break;
        }
    }
    for (_, bar) in displayed {
        bar.finish_and_clear();
    }
    // Bars that cannot be removed do no harm.
    let _ = screen.clear();
}

/// Creates the bar of a task, in ASCII, which every terminal can show. A task without a total gets
/// a spinner.
fn bar(task: &TaskState) -> ProgressBar {
    let (bar, template) = match task.total() {
        Some(total) => (ProgressBar::new(total), "{prefix:32} [{bar:24}] {msg}"),
        None => (ProgressBar::new_spinner(), "{prefix:32} {spinner} {msg}"),
    };
    let style = ProgressStyle::with_template(template);
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    // The style is set first, since this draws nothing. A bar that is drawn before it is added to
    // the screen would stay there.
    bar.with_style(style.progress_chars("=> ").tick_chars("-\\|/ "))
        .with_prefix(task.what)
}

/// Writes how much of a task is done: `1,200,000 of 10,000,000 rows, 3 seconds left`. The text is
/// empty if the total is unknown.
fn numbers(task: &TaskState) -> String {
    let Some(total) = task.total() else {
        return String::new();
    };
    let done = task.done();
    let counts = match task.unit {
        Unit::Rows => format!("{} of {} rows", HumanCount(done), HumanCount(total)),
        Unit::Tiles => format!("{} of {} tiles", HumanCount(done), HumanCount(total)),
        Unit::Bytes => format!("{} of {}", HumanBytes(done), HumanBytes(total)),
    };
    match task.time_left() {
        Some(left) => format!("{counts}, {} left", HumanDuration(left)),
        None => counts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_for_terminals_and_not_for_the_quiet() {
        assert!(wanted(false, true));
        assert!(!wanted(true, true));
        assert!(!wanted(false, false));
    }

    #[test]
    fn the_result_of_the_work_comes_back() {
        let result = during(&Progress::new(), false, |progress| {
            let task = progress.begin("working", Unit::Rows, 1);
            task.add(1);
            progress.tasks()[0].done()
        });
        assert_eq!(result, 1);
    }

    #[test]
    fn numbers_name_what_is_counted() {
        let progress = Progress::new();
        let rows = progress.begin("rows", Unit::Rows, 10_000_000);
        let _bytes = progress.begin("bytes", Unit::Bytes, 2048);
        let _unknown = progress.begin("unknown", Unit::Tiles, 0);
        rows.add(1_200_000);
        let numbers: Vec<_> = progress.tasks().iter().map(|task| numbers(task)).collect();
        assert!(numbers[0].starts_with("1,200,000 of 10,000,000 rows, "));
        assert!(numbers[0].ends_with(" left"));
        assert_eq!(numbers[1..], ["0 B of 2.00 KiB", ""]);
    }
}
