//! The full memory model against recorded and planted bytes: on every fixture, on generated models
//! of every framework, and on the real sample if it is available.

mod attributed;
mod compiled;
mod fewest_ipus;
mod layer_cycles;
mod modules;
mod passes;
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
    let found = each(&Subject::all(), |kind| {
        let subject = kind.subject();
        let _checking = Checking(&subject.name);
        whole::check(&subject);
        subject.is_saved_and_loaded();
        subject.programs_have_one_owner();
        if !matches!(kind, Kind::Sample(_)) {
            attributed::check(&subject);
        }
        match kind {
            Kind::Fixture(_) => (Some(layer_cycles::check(&subject)), Vec::new()),
            Kind::Generated(_) => (None, passes::check(&subject)),
            Kind::Sample(_) => (None, Vec::new()),
        }
    });
    let (sources, passes): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    let mut sources: Vec<&str> = sources.into_iter().flatten().collect();
    sources.sort_unstable();
    let estimated = ["estimated"; 3];
    assert_eq!(sources, [&estimated[..], &["executed", "none"]].concat());
    passes::have_all(&passes.concat());
}
