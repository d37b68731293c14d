//! The command that gives a configuration of `--plan` alone.

use super::Options;
use crate::escape::shell;
use crate::memory::StatePlace;
use crate::model::{Framework, PositionName, Positions};
use crate::report::{PlanFacts, PlanRow};
use crate::search::Reserve;

/// Options of the question that a configuration has its own of.
const OWN: [&str; 6] = [
    "--schedule=",
    "--recompute=",
    "--objective=",
    "--micro-batches=",
    "--optimizer-state=",
    "--replicas=",
];

/// Adds to each configuration the command that gives it, with what else was asked.
pub(super) fn add_commands(plan: &mut PlanFacts, options: &Options, positions: &Positions) {
    let is_kept = |argument: &&String| !OWN.iter().any(|own| argument.starts_with(own));
    let kept: Vec<&String> = options.question.iter().filter(is_kept).collect();
    for row in &mut plan.rows {
        let own = arguments(row, options, positions);
        let words = kept.iter().map(|own| own.as_str());
        let words = words.chain(own.iter().map(String::as_str)).map(shell);
        let words: Vec<String> = words.map(|word| word.to_string()).collect();
        row.command = format!("popliner {}", words.join(" "));
    }
}

/// What to do with the recommended configuration, to copy.
pub(super) fn next_steps(row: &PlanRow, framework: Option<Framework>) -> Vec<String> {
    let form = match framework {
        Some(Framework::Popart) => "popart",
        Some(Framework::Tensorflow) => "keras",
        // That of PopTorch needs the names of modules.
        _ => "layers-per-ipu",
    };
    vec![
        "next:".to_string(),
        format!("  {} --emit {form}", row.command),
        format!("  {} --solve --export-html report.html", row.command),
    ]
}

fn arguments(row: &PlanRow, options: &Options, positions: &Positions) -> Vec<String> {
    let mut arguments = vec![
        format!("--num-ipus={}", row.ipus),
        format!("--schedule={}", row.schedule),
        format!("--recompute={}", row.recompute),
    ];
    if row.state != StatePlace::OnChip {
        arguments.push(format!("--optimizer-state={}", row.state));
    }
    if row.replicas > 1 {
        arguments.push(format!("--replicas={}", row.replicas));
    }
    if let Some(memory) = &options.mem_per_tile {
        let amounts = memory.0.iter().take(row.ipus as usize);
        let amounts: Vec<String> = amounts.map(u64::to_string).collect();
        arguments.push(format!("--mem-per-tile={}", amounts.join(",")));
    }
    if options.reserve != Reserve::Bytes(0) {
        arguments.push(format!("--reserve={}", options.reserve));
    }
    let micro_batches = row.micro_batches;
    arguments.extend(micro_batches.map(|own| format!("--micro-batches={own}")));
    arguments.push(format!("--check-splits={}", last_layers(row, positions)));
    arguments
}

/// The last layer of each stage but the last, as `--check-splits` takes them.
fn last_layers(row: &PlanRow, positions: &Positions) -> String {
    let inner = row.ends.split_last().map_or(&[][..], |(_, inner)| inner);
    let names = inner.iter().map(|&end| {
        let name = match positions.name(end as usize - 1) {
            PositionName::InAndOut => PositionName::In.to_string(),
            name => name.to_string(),
        };
        name.replace('\\', r"\\").replace(',', r"\,")
    });
    names.collect::<Vec<String>>().join(",")
}
