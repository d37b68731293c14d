//! docs/model.md up to "Operations": the walk, the operation context of a program, and the
//! operations.

use std::collections::{BTreeSet, HashMap};

use super::contexts::Contexts;
use super::names::{Name, Namer};
use super::read::{Profile, Program};

/// One operation. Operations with one `uid` (id of the context) have the programs and variables of
/// the first of them.
pub struct Operation {
    pub uid: u64,
    pub name: String,
    pub is_tensor: bool,
    /// The inputs of its context, as the regexes read them.
    pub inputs: String,
    pub programs: BTreeSet<i64>,
    /// The programs that the operation itself runs, in the order of the walk, and how often each.
    pub visits: Vec<(i64, u64)>,
    pub variables: BTreeSet<i64>,
    /// First and last step, both inclusive.
    pub window: Option<(usize, usize)>,
}

/// An operation before it has a name: its programs in the order of the walk.
pub struct FoundOperation {
    pub call_path: Vec<i64>,
    pub uid: u64,
    pub is_anonymous: bool,
    /// The programs in the order of the walk, and how often each runs.
    pub visits: Vec<(i64, u64)>,
}

impl FoundOperation {
    /// Returns the programs in the order of the walk.
    pub fn programs(&self) -> impl Iterator<Item = i64> {
        self.visits.iter().map(|visit| visit.0)
    }
}

/// A visit of a program in the walk.
pub(super) struct Visit {
    call_path: Vec<i64>,
    pub(super) program: i64,
    /// How often the program runs, by the loops around it.
    pub(super) times: u64,
}

/// Visits all programs by docs/model.md, "The walk". Panics if the file is cyclic.
pub(super) fn walk(profile: &Profile) -> Vec<Visit> {
    let mut visits = Vec::new();
    for &root in &profile.roots {
        descend(profile, root, 1, &mut Vec::new(), &[], &mut visits);
    }
    visits
}

fn descend(
    profile: &Profile,
    program: i64,
    times: u64,
    way: &mut Vec<i64>,
    call_path: &[i64],
    visits: &mut Vec<Visit>,
) {
    assert!(!way.contains(&program), "program {program} is in a cycle");
    way.push(program);
    visits.push(Visit {
        call_path: call_path.to_vec(),
        program,
        times,
    });
    let program = &profile.programs[&program];
    if program.kind == "Call" {
        let call_path = [call_path, &[program.id]].concat();
        let body = program.body.expect("a function");
        descend(profile, body, times, way, &call_path, visits);
    } else {
        for &child in &program.children {
            let times = times * program.times;
            descend(profile, child, times, way, call_path, visits);
        }
    }
    way.pop();
}

/// Returns the layer that has the operations; `None` for plain Poplar.
pub fn operation_layer(contexts: &Contexts) -> Option<&'static str> {
    let layers = ["popart", "xla_op", "hloinstruction"];
    layers.into_iter().find(|layer| contexts.has_layer(layer))
}

/// Follows "Contexts and names": returns the operation context, and whether it is anonymous.
fn operation_context(
    contexts: &Contexts,
    layer: Option<&str>,
    program: &Program,
) -> Option<(u64, bool)> {
    let chain = contexts.chain(program.debug_id);
    let root = chain.last()?;
    let found = match layer {
        Some(layer) => chain.iter().find(|context| context.layer == layer),
        None => {
            let outermost = chain.iter().rev().find(|c| c.layer == "poplibs");
            outermost.or(chain.first())
        }
    };
    Some(match found {
        Some(context) => (context.id, false),
        None => (root.id, true),
    })
}

/// Follows "Operations": returns all operations in order, with their names.
pub fn operations(profile: &Profile, contexts: &Contexts) -> Vec<Operation> {
    let layer = operation_layer(contexts);
    let mut found: Vec<FoundOperation> = Vec::new();
    let mut known = HashMap::new();
    for visit in walk(profile) {
        let program = &profile.programs[&visit.program];
        let Some((uid, is_anonymous)) = operation_context(contexts, layer, program) else {
            continue;
        };
        let key = (visit.call_path.clone(), uid);
        let index = *known.entry(key).or_insert(found.len());
        if index == found.len() {
            found.push(FoundOperation {
                call_path: visit.call_path,
                uid,
                is_anonymous,
                visits: Vec::new(),
            });
        }
        found[index].visits.push((visit.program, visit.times));
    }
    named(profile, contexts, layer, &found)
}

fn named(
    profile: &Profile,
    contexts: &Contexts,
    layer: Option<&str>,
    found: &[FoundOperation],
) -> Vec<Operation> {
    let namer = Namer::new(profile, contexts, layer);
    let names: Vec<Name> = found.iter().map(|found| namer.name(found)).collect();
    let both = found.iter().zip(&names);
    let tensors = both.filter(|(_, name)| name.is_tensor);
    let tensors: BTreeSet<u64> = tensors.map(|(found, _)| found.uid).collect();
    let mut first: HashMap<u64, &FoundOperation> = HashMap::new();
    for found in found {
        first.entry(found.uid).or_insert(found);
    }
    let operation = |(found, name): (&FoundOperation, Name)| {
        let first = first[&found.uid];
        let context = contexts.get(found.uid).expect("a context");
        Operation {
            uid: found.uid,
            name: name.text,
            is_tensor: tensors.contains(&found.uid),
            inputs: context.texts("inputs").join("/").replace('.', "/"),
            programs: first.programs().collect(),
            visits: found.visits.clone(),
            variables: variables(profile, first),
            window: window(profile, first),
        }
    };
    found.iter().zip(names).map(operation).collect()
}

fn variables(profile: &Profile, found: &FoundOperation) -> BTreeSet<i64> {
    let programs = found.programs().map(|id| &profile.programs[&id]);
    let variables = programs.flat_map(|program| &program.variables);
    variables.copied().collect()
}

/// Returns the lowest and the highest step of the operation, of the steps whose calls agree most
/// with its call path.
fn window(profile: &Profile, found: &FoundOperation) -> Option<(usize, usize)> {
    let mut steps: Vec<(usize, usize)> = Vec::new();
    for (index, step) in profile.steps.iter().enumerate() {
        if found.programs().any(|program| program == step.program) {
            let calls = calls_above(profile, index);
            steps.push((index, common_end(&calls, &found.call_path)));
        }
    }
    let longest = steps.iter().map(|&(_, common)| common).max()?;
    let counting = || {
        let counting = steps.iter().filter(|&&(_, common)| common == longest);
        counting.map(|&(index, _)| index)
    };
    Some((counting().min()?, counting().max()?))
}

/// Returns the Call programs above a step, the outermost first.
fn calls_above(profile: &Profile, step: usize) -> Vec<i64> {
    let mut calls = Vec::new();
    let mut above = profile.steps[step].parent;
    while let Some(index) = above {
        let step = &profile.steps[index];
        if profile.programs[&step.program].kind == "Call" {
            calls.push(step.program);
        }
        above = step.parent;
    }
    calls.reverse();
    calls
}

/// Returns how many Calls two lists share at their ends.
fn common_end(a: &[i64], b: &[i64]) -> usize {
    let pairs = a.iter().rev().zip(b.iter().rev());
    pairs.take_while(|(a, b)| a == b).count()
}
