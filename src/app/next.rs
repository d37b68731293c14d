//! Suggested commands, as lines that can be copied.

use super::Options;
use super::options::{MAX_IPUS, NumIpus};
use crate::escape::shell;
use crate::memory::StatePlace;
use crate::model::{PositionName, Positions};
use crate::report::emit::Form;
use crate::report::{PlanFacts, PlanRow, Report};
use crate::search::{Reserve, Solver};

/// Options that a configuration sets itself.
const OWN: [&str; 5] = [
    "--schedule=",
    "--recompute=",
    "--objective=",
    "--optimizer-state=",
    "--replicas=",
];

/// Adds to each configuration the command that gives it, with the user's other options.
pub(super) fn add_commands(plan: &mut PlanFacts, options: &Options, positions: &Positions) {
    for row in &mut plan.rows {
        // State on the chip is not streamed.
        let idle = (row.state == StatePlace::OnChip).then_some("--streaming-bandwidth=");
        let is_kept = |argument: &&String| {
            let mut left_out = OWN.into_iter().chain(idle);
            !left_out.any(|option| argument.starts_with(option))
        };
        let kept: Vec<&String> = options.repeated.iter().filter(is_kept).collect();
        row.command = command(&kept, &arguments(row, options, positions));
    }
}

fn command(question: &[&String], more: &[String]) -> String {
    let words = question.iter().copied().chain(more).map(|word| shell(word));
    let words: Vec<String> = words.map(|word| word.to_string()).collect();
    format!("popliner {}", words.join(" "))
}

/// Suggests commands for a recommended configuration, and for more IPUs.
pub(super) fn after_plan(row: &PlanRow, report: &Report, options: &Options) -> Vec<String> {
    let question: Vec<&String> = options.repeated.iter().collect();
    let tried = match options.limits.num_ipus {
        Some(NumIpus::Exactly(tried)) => tried as u64,
        _ => 0,
    };
    let ipus = u64::from(row.ipus).max(tried).saturating_mul(2);
    let mut more = limits(options, usize::MAX);
    more.push(format!("--num-ipus={ipus}"));
    let mut lines = steps(&row.command, report);
    let has_one_limit = match &options.limits.mem_per_tile {
        Some(limits) => limits.0.len() == 1,
        None => true,
    };
    if has_one_limit && ipus <= MAX_IPUS as u64 {
        lines.push(format!("  more IPUs:      {}", command(&question, &more)));
    }
    lines
}

/// Suggests commands after a split: its configuration and its page; or, if nothing fits, commands
/// for splits that do.
pub(super) fn after_split(report: &Report, options: &Options) -> Vec<String> {
    let is_asked = options.results.solve && options.results.emit.is_empty() || options.results.plan;
    if is_asked && report.split.as_ref().is_some_and(|split| !split.fits) {
        return after_refusal(report, options);
    }
    let is_wanted = options.results.solve
        && options.results.emit.is_empty()
        && options.exports.export_html.is_none();
    let split = report
        .split
        .as_ref()
        .filter(|split| is_wanted && split.fits && report.is_in_time());
    let Some(split) = split.filter(|_| options.search.solver == Solver::Ilp) else {
        return Vec::new();
    };
    let question: Vec<&String> = options.repeated.iter().collect();
    if split.stages.len() == 1 {
        return after_one_ipu(options);
    }
    let mut more = limits(options, usize::MAX);
    more.push(format!("--num-ipus={}", split.max_stages));
    steps(&command(&question, &more), report)
}

/// Suggests commands after a refusal: changed options with which the model fits.
fn after_refusal(report: &Report, options: &Options) -> Vec<String> {
    let Some(refusal) = &report.refusal else {
        return Vec::new();
    };
    let pipeline = report.pipeline.iter();
    let others = pipeline.flat_map(|pipeline| &pipeline.alternatives);
    let others = others.map(|other| &other.split);
    let others = others.chain(&refusal.on_more_ipus);
    let enough = others.filter(|other| other.fits);
    let enough = enough.map(|other| other.options.split(' ').map(str::to_string).collect());
    let changes = refusal.advice.iter().flat_map(|advice| &advice.changes);
    let halved = changes.filter(|change| change.is_enough);
    let halved = halved.map(|_| {
        ["--micro-batch", "2", "--at-micro-batch", "1"]
            .map(str::to_string)
            .to_vec()
    });
    let enough: Vec<Vec<String>> = enough.chain(halved).collect();
    let lines = enough
        .iter()
        .map(|changed| format!("  this fits:      {}", again(changed, options)));
    let lines: Vec<String> = lines.collect();
    let head = (!lines.is_empty()).then(|| "next:".to_string());
    head.into_iter().chain(lines).collect()
}

/// Writes the command again with changed options. Each option is followed by its value.
fn again(changed: &[String], options: &Options) -> String {
    let names: Vec<&String> = changed.iter().step_by(2).collect();
    let is_kept = |argument: &&String| {
        let name = argument
            .split_once('=')
            .map_or(argument.as_str(), |(name, _)| name);
        !names.iter().any(|changed| *changed == name)
    };
    let kept: Vec<&String> = options.repeated.iter().filter(is_kept).collect();
    let mut more = limits(options, usize::MAX);
    let keeps_ipus = !names.iter().any(|name| *name == "--num-ipus");
    if let Some(NumIpus::Exactly(ipus)) = options.limits.num_ipus.filter(|_| keeps_ipus) {
        more.push(format!("--num-ipus={ipus}"));
    }
    more.extend(changed.chunks(2).map(|option| option.join("=")));
    more.extend((!options.is_bare).then(|| "--solve".to_string()));
    command(&kept, &more)
}

/// Suggests a plan for more IPUs after the model fits on one.
pub(super) fn after_one_ipu(options: &Options) -> Vec<String> {
    let question: Vec<&String> = options.repeated.iter().collect();
    let mut more = limits(options, usize::MAX);
    more.push("--num-ipus=4".to_string());
    let command = command(&question, &more);
    vec!["next:".to_string(), format!("  on more IPUs:   {command}")]
}

fn steps(command: &str, report: &Report) -> Vec<String> {
    let framework = report.pipeline.as_ref().map(|pipeline| pipeline.framework);
    let form = Form::of_framework(framework).name();
    vec![
        "next:".to_string(),
        format!("  configuration:  {command} --emit {form}"),
        format!(
            "  page:           {} --solve --export-html report.html",
            command.trim_end_matches(" --solve")
        ),
    ]
}

/// Returns the given limits as options, with amounts of at most `ipus` IPUs.
fn limits(options: &Options, ipus: usize) -> Vec<String> {
    let mut limits = Vec::new();
    if let Some(memory) = &options.limits.mem_per_tile {
        let amounts: Vec<String> = memory.0.iter().take(ipus).map(u64::to_string).collect();
        limits.push(format!("--mem-per-tile={}", amounts.join(",")));
    }
    if options.limits.reserve != Reserve::Bytes(0) {
        limits.push(format!("--reserve={}", options.limits.reserve));
    }
    limits
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
    arguments.extend(limits(options, row.ipus as usize));
    arguments.push(match row.ends.len() {
        1 => "--solve".to_string(),
        _ => format!("--check-splits={}", last_layers(row, positions)),
    });
    arguments
}

/// Lists the last layer of each stage except the last stage, as `--check-splits` reads them.
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
