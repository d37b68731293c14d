//! Facts about pipelines from elsewhere, or computed by hand.

mod bert;
mod categories;
mod command_line;
mod forms;
mod operations;
mod planted;
mod profile;
mod small;
mod table;
mod tiny;

use super::options::Schedule;

/// All schedules.
const SCHEDULES: [Schedule; 4] = [
    Schedule::Popart,
    Schedule::TfGrouped,
    Schedule::TfInterleaved,
    Schedule::Sequential,
];
