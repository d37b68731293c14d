//! Derives the equivalence classes of liveness.

use std::collections::{BTreeMap, HashMap};

use super::groups::{Group, Role};
use super::random::topic;
use super::settings::Settings;
use super::tensors::TensorOf;
use super::tree::{Content, Tree, Type};

pub type Steps = (u32, u32);

/// Ranges of steps, ascending, with gaps between them.
pub type Ranges = Vec<Steps>;

#[derive(Debug, Clone, Copy)]
pub struct Variable {
    /// The category, as a position in [`categories`](super::overhead::categories).
    pub category: usize,
    pub class: u32,
    pub bytes: u64,
}

impl Variable {
    /// Returns a variable that is always live.
    pub fn always(category: usize, bytes: u64) -> Self {
        Self::new(category, Fixed::Code as u32, bytes)
    }

    pub fn new(category: usize, class: u32, bytes: u64) -> Self {
        Self {
            category,
            class,
            bytes,
        }
    }
}

#[derive(Debug, Default)]
pub struct Changes(pub BTreeMap<u32, i64>);

impl Changes {
    pub fn add(&mut self, lives: impl IntoIterator<Item = Steps>, bytes: u64) {
        for (from, to) in lives {
            *self.0.entry(from).or_default() += bytes as i64;
            *self.0.entry(to).or_default() -= bytes as i64;
        }
    }

    pub fn peak(&self) -> u64 {
        self.fullest().1
    }

    /// Returns the first of the steps with most bytes, and their bytes.
    pub fn fullest(&self) -> (u32, u64) {
        let (mut live, mut fullest) = (0, (0, 0));
        for (&step, change) in &self.0 {
            live += change;
            if live > fullest.1 {
                fullest = (step, live);
            }
        }
        (fullest.0, fullest.1 as u64)
    }
}

/// The class of variables that are never allocated; it has no row in the profile.
pub const UNALLOCATED: u32 = 0;

/// Classes with a fixed meaning; all other classes follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fixed {
    /// Code, vertex state and all variables of the run-time: always live.
    Code = 1,
    Weights = 2,
    Constants = 3,
    /// Control ids, live until the switch has read them.
    Control = 4,
    /// Host messages with live ranges.
    Host = 5,
}

#[derive(Debug, Default)]
pub struct Classes {
    /// Live ranges by class id; class 0 has no ranges.
    pub ranges: Vec<Ranges>,
    pub always: Vec<bool>,
    /// By group: the classes that its variables have on different tiles.
    pub of_group: Vec<Vec<u32>>,
    index: HashMap<Ranges, u32>,
}

const MAX_VARIANTS: u32 = 64;

/// Derives the equivalence classes from the uses of the groups, and splits classes by tile up to the
/// number of classes that `settings` request.
pub fn build(settings: &Settings, tree: &Tree, groups: &[Group]) -> Classes {
    let steps = tree.steps.len() as u32;
    let mut classes = fixed(tree, steps);
    let ranges: Vec<Option<Ranges>> = groups.iter().map(|g| group_ranges(tree, g)).collect();
    for (group, ranges) in groups.iter().zip(&ranges) {
        let class = match ranges {
            None if group.role == Role::Constant => Fixed::Constants as u32,
            None => Fixed::Weights as u32,
            Some(ranges) => classes.intern(ranges.clone()),
        };
        classes.of_group.push(vec![class]);
    }
    for number in 1..MAX_VARIANTS {
        for (index, ranges) in ranges.iter().enumerate() {
            if classes.ranges.len() > settings.classes {
                return classes;
            }
            if let Some(ranges) = ranges {
                let class = classes.intern(variant(settings, ranges, index, number, steps));
                classes.of_group[index].push(class);
            }
        }
    }
    classes
}

fn fixed(tree: &Tree, steps: u32) -> Classes {
    let mut classes = Classes::default();
    classes.push(Vec::new(), false);
    for _ in [Fixed::Code, Fixed::Weights, Fixed::Constants] {
        classes.push(vec![(0, steps)], true);
    }
    classes.push(vec![(0, control_end(tree))], false);
    classes.push(vec![(0, 3), (steps - 2, steps)], false);
    classes
}

/// Returns the step of the switch, the last step that reads the control ids.
fn control_end(tree: &Tree) -> u32 {
    let root = &tree.programs[tree.root as usize];
    let last = root.children.last().expect("the root has children");
    tree.listings[*last as usize][0] + 1
}

impl Classes {
    pub fn push(&mut self, ranges: Ranges, always: bool) -> u32 {
        self.ranges.push(ranges);
        self.always.push(always);
        self.ranges.len() as u32 - 1
    }

    pub fn intern(&mut self, ranges: Ranges) -> u32 {
        if let Some(&class) = self.index.get(&ranges) {
            return class;
        }
        let class = self.push(ranges.clone(), false);
        self.index.insert(ranges, class);
        class
    }

    /// Returns the class of a group's variable on a tile: neighbouring tiles mostly have the same
    /// class.
    pub fn on_tile(&self, settings: &Settings, group: usize, tile: u32) -> u32 {
        let programs = &self.of_group[group];
        let about = [topic::CLASS, group as u64, u64::from(tile / 8), 0];
        programs[settings.random.below(programs.len() as u64, about) as usize]
    }
}

/// Returns the steps at which a group is live; `None` if it is always live.
fn group_ranges(tree: &Tree, group: &Group) -> Option<Ranges> {
    match group.role {
        Role::Weight | Role::Constant => None,
        _ if group.is_carried => {
            let ranges = op_ranges(tree, group);
            let first = ranges.iter().map(|range| range.0).min()?;
            // A tensor from the host is live from its copy on.
            let copied = input_step(tree).filter(|_| group.mark == Some(TensorOf::Input));
            let first = copied.map_or(first, |copied| copied.min(first));
            let end = ranges.iter().map(|range| range.1).max()?;
            Some(vec![(first, end)])
        }
        _ => Some(op_ranges(tree, group)),
    }
}

fn input_step(tree: &Tree) -> Option<u32> {
    let input = Content::Tensor(TensorOf::Input);
    let mut streams = tree.streams.iter();
    let row = streams.position(|stream| stream.content == input);
    let wanted = (Type::StreamCopyMid, Some(row?));
    let mut programs = tree.programs.iter();
    let program = programs.position(|program| (program.kind, program.index) == wanted)?;
    tree.listings[program].first().copied()
}

/// Returns a range for each operation that uses the group and each time that its steps are listed.
/// Adjacent ranges are merged.
fn op_ranges(tree: &Tree, group: &Group) -> Ranges {
    let mut by_op: HashMap<(usize, usize), (u32, u32)> = HashMap::new();
    for &(stage, _) in &group.uses {
        let stage = &tree.stages[stage];
        let firsts = &tree.listings[stage.programs.0 as usize];
        let lasts = &tree.listings[stage.programs.1 as usize];
        for (time, (&first, &last)) in firsts.iter().zip(lasts).enumerate() {
            let range = by_op.entry((stage.op, time)).or_insert((first, last + 1));
            *range = (range.0.min(first), range.1.max(last + 1));
        }
    }
    let mut ranges: Ranges = by_op.into_values().collect();
    ranges.sort_unstable();
    ranges.dedup_by(|next, before| {
        let touches = next.0 <= before.1;
        if touches {
            before.1 = before.1.max(next.1);
        }
        touches
    });
    ranges
}

/// Returns the live ranges of a group on some tiles, where its variable stays live a little longer,
/// or is written again.
fn variant(settings: &Settings, ranges: &Ranges, group: usize, number: u32, steps: u32) -> Ranges {
    let mut ranges = ranges.clone();
    let hash = settings.random.hash([topic::CLASS, group as u64, 0, 1]);
    let Some(last) = ranges.last_mut() else {
        return ranges;
    };
    last.1 = (last.1 + number * (1 + hash as u32 % 3)).min(steps);
    let again = last.1 + 4 + (hash >> 8) as u32 % 64;
    if number % 3 == 2 && ranges.len() < 3 && again + 3 <= steps {
        ranges.push((again, again + 3));
    }
    ranges
}
