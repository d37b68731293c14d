//! Facts about pipelines from elsewhere, or computed by hand.

mod bert;
mod command_line;
mod planted;
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
