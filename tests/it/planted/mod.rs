//! The full memory model against recorded and planted bytes: on every fixture, on generated models
//! of every framework, and on the real sample if it is available.

mod attributed;
mod compiled;
mod fewest_ipus;
mod layer_cycles;
mod modules;
mod passes;
mod passes_by_order;
mod pipelines;
mod places;
mod subject;
mod updates;
mod whole;

use crate::support::{Checking, each};
use subject::{Kind, Subject};

/// Each model is built once for all checks.
#[test]
fn models_have_what_was_recorded_and_planted() {
    let passes = each(&Subject::all(), |kind| {
        let subject = kind.subject();
        let _checking = Checking(&subject.name);
        whole::check(&subject);
        subject.is_saved_and_loaded();
        subject.programs_have_one_owner();
        if !matches!(kind, Kind::Sample(_)) {
            attributed::check(&subject);
        }
        let planted = subject.planted.as_ref();
        planted.map_or(Vec::new(), |(planted, _)| {
            passes::check(&subject, &planted.passes())
        })
    });
    passes::have_all(&passes.concat());
}
