//! Turns names of operations and parameters into paths in the module tree, and finds operations by
//! the beginnings of their paths.
//!
//! A framework names an operation `scope/type`, where the scope lists the modules that are being
//! called. The scope lacks containers that are never called themselves, such as a list of blocks,
//! but the names of parameters include these containers. So the modules of a scope are located in
//! the name of a parameter that an operation with this scope uses (an alignment of the scope to the
//! parameter). Other operations with the same scope use this alignment too.

use super::evidence::hash;
use rustc_hash::FxHashMap;

/// Characters that separate the components of a module path.
const SEPARATORS: [char; 4] = ['/', '.', '_', '-'];

/// Maximum number of components of a module path; the last component holds the rest of a longer
/// path. Real paths have at most 20 components.
const COMPONENTS: usize = 48;

pub fn shared<T: PartialEq>(
    a: impl IntoIterator<Item = T>,
    b: impl IntoIterator<Item = T>,
) -> usize {
    a.into_iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Splits a path into components, each with the separators before it: `conv2_block1/a` into
/// `conv2`, `_block1` and `/a`. The components joined give the path again. In a very long path, the
/// last component holds the rest ([`COMPONENTS`]).
pub fn components(text: &str) -> impl Iterator<Item = &str> {
    // Separators at the end of a path belong to the last component.
    let ends = text
        .trim_end_matches(SEPARATORS)
        .match_indices(SEPARATORS)
        .map(|(end, _)| end)
        .filter(|&end| text[..end].ends_with(|c| !SEPARATORS.contains(&c)))
        .take(COMPONENTS - 1)
        .chain([text.len()]);
    let mut begin = 0;
    ends.filter(|&end| end > 0)
        .map(move |end| &text[std::mem::replace(&mut begin, end)..end])
}

pub fn bare(component: &str) -> &str {
    component.trim_matches(SEPARATORS)
}

/// Splits the name of an operation into its scope and its type: `a/b/MatMul_3` has the scope
/// `a/b` and the type `MatMul`.
pub fn scope_and_type(name: &str) -> (&str, &str) {
    let (scope, kind) = name.rsplit_once('/').unwrap_or(("", name));
    let kind = kind.split(':').next().unwrap_or(kind);
    let bare = kind.trim_end_matches(|c: char| c.is_ascii_digit());
    let numbered = bare.strip_suffix(['_', '.']);
    let numbered = numbered.filter(|name| !name.is_empty() && bare.len() < kind.len());
    (scope, numbered.unwrap_or(kind))
}

/// Splits a path into the names of its modules: `a.b/c` has `a`, `b` and `c`.
pub fn modules(path: &str) -> impl Iterator<Item = &str> + Clone {
    path.split(['/', '.'])
        .filter(|module| !module.is_empty())
        .take(COMPONENTS)
}

/// Where the modules of a scope (an operation name without its type) are in the name of a
/// parameter, such as those of `encoder/3` in `bert.encoder.layer.3.weight`.
#[derive(Clone)]
struct Alignment<'a> {
    parameter: &'a str,
    /// One entry per module that calls the operation (the scope): the byte index at which its name
    /// ends in `parameter`. For `encoder/3` in `bert.encoder.layer.3.weight`, the entries are 12
    /// and 20.
    ends: Vec<usize>,
}

impl<'a> Alignment<'a> {
    fn path(&self) -> &'a str {
        self.path_of(self.ends.len())
    }

    /// Returns the path of the first `count` modules of the scope (the modules that call an
    /// operation); empty if `count` is 0.
    fn path_of(&self, count: usize) -> &'a str {
        &self.parameter[..count.checked_sub(1).map_or(0, |last| self.ends[last])]
    }
}

/// Locates the modules of a scope (the modules that call an operation), in order, in the name of a
/// parameter. If the name of a module occurs several times, the last possible occurrence is taken.
/// So in a list of lists, the number of a block is found in the inner list. Returns `None` if the
/// name lacks a module, or if the scope has no modules.
fn align<'a>(scope: &str, parameter: &'a str) -> Option<Alignment<'a>> {
    let end_of =
        |module: &str| module.as_ptr() as usize - parameter.as_ptr() as usize + module.len();
    let mut left: Vec<&str> = modules(parameter).collect();
    // The last component of a parameter's name, such as `weight`, is the parameter itself, so it is
    // not searched for a module.
    left.pop()?;
    let mut ends = Vec::new();
    let wanted: Vec<&str> = modules(scope).collect();
    for module in wanted.into_iter().rev() {
        left.truncate(left.iter().rposition(|&other| other == module)? + 1);
        ends.extend(left.pop().map(end_of));
    }
    ends.reverse();
    (!ends.is_empty()).then_some(Alignment { parameter, ends })
}

/// The module path of an operation, that is, the path of the modules that call the operation.
pub struct ModulePath<'a> {
    pub text: String,
    /// One entry per module that calls the operation, the outermost first: the byte index at which
    /// the path of this module ends in the path of the operation (`text`).
    pub ends: Vec<usize>,
    /// Number of modules that call the operation, from the outermost on, whose path is known from
    /// the name of a parameter. If `encoder.layer.3.weight` shows the path of `encoder/3`, it is 2
    /// for an operation in `encoder/3/act`, whose path is then `encoder.layer.3.act`.
    pub aligned: usize,
    /// Number of outer modules that call the operation and whose paths certainly exist in the
    /// Python model. The paths of the inner modules may lack the names of lists: `encoder.3` may
    /// stand for `encoder.layer.3`.
    pub certain: usize,
    /// The path of the innermost module that calls the operation, if the name of a parameter shows
    /// that this module belongs to another part of the model than its caller: `encoder.embed`, if
    /// the decoder calls the embedding of the encoder. Otherwise `None`.
    pub elsewhere: Option<&'a str>,
}

/// Returns the path of the module that owns `parameter`, such as `shared.embed` for
/// `shared.embed.weight`. `scope` lists the modules that call an operation, such as
/// `decoder/embed`. The result is `None` if the innermost of them has another name than the owner
/// (here `embed`).
fn owner<'a>(scope: &str, parameter: &'a str) -> Option<&'a str> {
    let (owner, _) = parameter.rsplit_once('.')?;
    (modules(owner).last()? == modules(scope).last()?).then_some(owner)
}

/// Returns a map with the paths of modules whose submodules have numbers in names of operations,
/// such as `encoder` in `encoder/3`. The value is true if the number always directly follows the
/// path in names of parameters too. It is false if a list is between them, as in `encoder.layer.3`:
/// a list is never called, so names of operations lack it.
fn lists<'a>(aligned: &[Option<Alignment<'a>>]) -> FxHashMap<&'a str, bool> {
    let mut lists = FxHashMap::default();
    for Alignment { parameter, ends } in aligned.iter().flatten() {
        for pair in ends.windows(2) {
            let part = &parameter[pair[0] + 1..pair[1]];
            if modules(part).last().is_some_and(is_number) {
                *lists.entry(&parameter[..pair[0]]).or_insert(true) &= !part.contains(['/', '.']);
            }
        }
    }
    lists
}

pub fn is_number(module: &str) -> bool {
    module.starts_with(|c: char| c.is_ascii_digit())
}

/// Returns the module path of each operation of the forward pass. Each argument has one entry per
/// operation:
/// - `scopes`: the modules that call the operation, that is, its name without its type
/// - `used`: the parameters that the operation uses
/// - `parameters`: the parameters that the operation is the first to use
///
/// The name of a parameter contains the full path of its module, and so gives the path of the first
/// operation that uses the parameter. For other operations, the first rule that applies gives the
/// path:
///
/// 1. If an operation only uses parameters that earlier operations use, as in a later run of a
///    module, it has the path of an earlier operation with the same scope and parameter.
/// 2. If all known paths of operations with the same scope are equal, the operation has this path,
///    unless the operations around it show another ([`running`]).
/// 3. Otherwise, the path begins like that of a nearby operation, as far as the same modules call
///    both operations. The other modules of the scope are appended.
pub fn full_paths<'a>(
    scopes: &[&str],
    parameters: &[Vec<&'a str>],
    used: &[Vec<&'a str>],
) -> Vec<ModulePath<'a>> {
    let aligned = alignments(scopes, parameters, used);
    let lists = lists(&aligned);
    let known: Vec<(usize, &Alignment<'_>)> = (0..)
        .zip(&aligned)
        .filter_map(|(number, own)| Some((number, own.as_ref()?)))
        .collect();
    let path = |number: usize| {
        let scope = scopes[number];
        // Two known module paths are compared: that of the nearest operation before this one (or of
        // this one itself), and that of the nearest one after it. The path with more modules in
        // common with the operation's scope is taken. If both have equally many, that of the
        // earlier operation is taken.
        let next = known.partition_point(|&(other, _)| other <= number);
        let neighbours = &known[next.saturating_sub(1)..known.len().min(next + 1)];
        let best = neighbours
            .iter()
            .map(|&(other, own)| (shared(modules(scope), modules(scopes[other])), other, own))
            .rev()
            .max_by_key(|&(depth, ..)| depth)
            .map(|(depth, other, own)| {
                Beginning::new(own, scope, depth, number.saturating_sub(other))
            });
        let mut path = aligned_path(best.unwrap_or_default(), scope, &lists);
        if aligned[number].is_none() {
            let mut owned = parameters[number].iter();
            path.elsewhere = owned.find_map(|parameter| owner(scope, parameter));
        }
        path
    };
    (0..scopes.len()).map(path).collect()
}

/// Locates the modules that call each operation (its scope) in the name of a parameter, such as
/// those of `encoder/3` in `bert.encoder.layer.3.weight`. This is a parameter that the operation is
/// the first to use. If there is none, rules 1 and 2 of [`full_paths`] choose a parameter that
/// another operation with the same scope uses. If they find none either, the entry is `None`.
fn alignments<'a>(
    scopes: &[&str],
    parameters: &[Vec<&'a str>],
    used: &[Vec<&'a str>],
) -> Vec<Option<Alignment<'a>>> {
    let mut aligned: Vec<Option<Alignment<'_>>> = scopes
        .iter()
        .zip(parameters)
        .map(|(scope, own)| {
            own.iter()
                .filter_map(|parameter| align(scope, parameter))
                .max_by_key(|alignment| alignment.ends.last().copied())
        })
        .collect();
    // Map from a scope (the modules that call an operation) to the module paths that operations
    // with this scope are known to have. Each path comes with a parameter whose name shows it.
    let mut by_scope: FxHashMap<&str, FxHashMap<&str, Alignment<'_>>> = FxHashMap::default();
    for (scope, own) in scopes.iter().zip(&aligned) {
        if let Some(own) = own {
            let known = by_scope.entry(scope).or_default();
            known.entry(own.path()).or_insert_with(|| own.clone());
        }
    }
    let known = |number: usize| {
        by_scope
            .get(scopes[number])
            .filter(|_| parameters[number].is_empty())
    };
    for number in 0..scopes.len() {
        if let Some(known) = known(number) {
            aligned[number] = (used[number].iter())
                .filter_map(|parameter| align(scopes[number], parameter))
                .find(|own| known.contains_key(own.path()));
        }
    }
    let before = running(scopes, &aligned, 0..scopes.len());
    let after = running(scopes, &aligned, (0..scopes.len()).rev());
    for number in 0..scopes.len() {
        let beside = [before[number], after[number]];
        let only = known(number).filter(|known| known.len() == 1);
        if let (Some((path, only)), None) =
            (only.and_then(|only| only.iter().next()), &aligned[number])
            && (beside == [None, None] || beside.contains(&Some(path)))
        {
            aligned[number] = Some(only.clone());
        }
    }
    aligned
}

/// Returns module paths for operations whose path is unknown: their entry in `aligned` is `None`.
/// Operations are visited in `order`. Such an operation gets the path of the last one visited whose
/// path is known, if the same modules call both and all operations visited in between. Otherwise it
/// gets `None`, since the modules may have been called again in between, as other items of a list.
fn running<'a>(
    scopes: &[&str],
    aligned: &[Option<Alignment<'a>>],
    order: impl Iterator<Item = usize>,
) -> Vec<Option<&'a str>> {
    let mut paths = vec![None; scopes.len()];
    // The operation with a known module path that was visited last: this path, the modules that
    // call the operation, and how many of these, from the outermost on, also call all operations
    // visited since then.
    let mut last: Option<(&Alignment<'_>, &str, usize)> = None;
    for number in order {
        let scope = scopes[number];
        if let Some(own) = &aligned[number] {
            last = Some((own, scope, usize::MAX));
        } else if let Some((known, other, count)) = &mut last {
            *count = (*count).min(shared(modules(other), modules(scope)));
            paths[number] = (*count == modules(scope).count()).then(|| known.path_of(*count));
        }
    }
    paths
}

/// The beginning of an operation's module path: the part that the operation has in common with the
/// known module path of a nearby operation.
#[derive(Default)]
struct Beginning<'a> {
    /// The path of the innermost module that calls both the operation and a nearby operation whose
    /// path is known. If this module calls both as items of one list, the path of the list, such as
    /// `encoder.layer`.
    path: &'a str,
    /// One entry per module that calls both the operation and the nearby operation whose path is
    /// known, the outermost first: the byte index at which the module's path ends in `path`.
    ends: &'a [usize],
    separator: &'a str,
    /// Whether the operation is called by an item of a list of modules, such as `3` in `layer.3`,
    /// and `path` is the path of the list.
    is_item: bool,
    /// Whether the module at `path` directly calls a module inside an item of a list, such as
    /// `layers.0.norm`, and not the item `layers.0`. Another module that it calls by name, such as
    /// `act`, may then be `layers.0.act` too, so its path is uncertain.
    has_parts_of_others: bool,
}

impl<'a> Beginning<'a> {
    /// Finds the beginning of the module path of an operation that the modules of `scope` call. The
    /// outer `count` of these modules also call a nearby operation, whose path `other` is known.
    /// The nearby operation runs `distance` operations earlier, or later if `distance` is 0. If
    /// exactly one more module calls each of the two operations, and the numbers of these two
    /// modules differ by `distance`, both modules are items of one list.
    fn new(other: &'a Alignment<'_>, scope: &str, count: usize, distance: usize) -> Self {
        let known = other.path_of(count);
        // The known path `other` belongs to a nearby operation. The first `count` modules in it
        // also call this operation. `sibling` is the name of the next module, such as `3` in
        // `encoder.layer.3`, and `container` is the path before it, such as `encoder.layer`. If
        // there is no next module, `sibling` is empty.
        let (container, sibling) = if count < other.ends.len() {
            let path = other.path_of(count + 1);
            path.rsplit_once(['/', '.']).unwrap_or(("", path))
        } else {
            (known, "")
        };
        let own = modules(scope).skip(count).collect::<Vec<_>>();
        // A list of modules that is called as a whole, such as convolution, norm and activation,
        // runs its items one after another, so the number of the item rises by 1 per operation.
        let number = |item: &str| item.parse::<usize>().ok();
        let is_next = number(sibling).and_then(|item| item.checked_add(distance));
        let is_item = other.ends.len() == count + 1
            && own.len() == 1
            && is_next.is_some_and(|next| number(own[0]) == Some(next));
        Self {
            path: if is_item { container } else { known },
            ends: &other.ends[..count],
            separator: &other.parameter[other.ends[0]..=other.ends[0]],
            is_item,
            has_parts_of_others: !is_number(sibling)
                && modules(&container[known.len()..]).any(is_number),
        }
    }
}

/// Returns the module path of an operation: its beginning `known`, then the other modules that call
/// the operation (`scope`). Before a number, the name of a list may be missing: `encoder.3` may
/// stand for `encoder.layer.3`. The map [`lists`] shows the modules after which no name is missing.
fn aligned_path<'a>(
    known: Beginning<'_>,
    scope: &str,
    lists: &FxHashMap<&str, bool>,
) -> ModulePath<'a> {
    let (text, separator) = match known.path {
        // If no parameter shows where the path begins, the path begins with the separators at the
        // start of the scope: `/` for `/encoder/3`.
        "" => (
            &scope[..scope.len() - scope.trim_start_matches(['/', '.']).len()],
            "/",
        ),
        path => (path, known.separator),
    };
    let mut text = text.to_string();
    let mut ends = known.ends.to_vec();
    let aligned = ends.len();
    let rest = modules(scope).skip(aligned);
    let is_item = known.is_item || lists.get(&*text) == Some(&true);
    let has_item = is_item && rest.clone().next().is_some_and(is_number);
    let mut certain = aligned + usize::from(has_item);
    if !known.has_parts_of_others {
        let others = modules(scope).skip(certain);
        certain += others.take_while(|module| !is_number(module)).count();
    }
    for module in rest {
        if !text.is_empty() && !text.ends_with(['/', '.']) {
            text.push_str(separator);
        }
        text.push_str(module);
        ends.push(text.len());
    }
    ModulePath {
        text,
        ends,
        aligned,
        certain,
        elsewhere: None,
    }
}

/// A module path is found in a longer name, such as that of a gradient, only if it begins within
/// this many first components of the name (parts between separators). Components before the path
/// are a prefix, such as `gradient_tape`.
const COMPONENTS_BEFORE: usize = 8;

/// Finds operations by the beginning of their module path. The map goes from the hash of a
/// beginning to the first and the last operation whose path begins with it.
#[derive(Debug, Default)]
pub struct Lookup {
    operations: FxHashMap<u64, (usize, usize)>,
}

impl Lookup {
    /// Adds `operation` to this map under each beginning of `path`: its first component, its first
    /// two components, and so on. `path` is the module path or the scope of the operation (the
    /// modules that call it). Operations must be added in program order.
    pub fn add(&mut self, path: &str, operation: usize) {
        let mut beginning = 0;
        for component in components(path) {
            beginning = longer(beginning, component);
            self.operations
                .entry(beginning)
                .or_insert((operation, operation))
                .1 = operation;
        }
    }

    /// Finds the longest beginning of a known module path in `text`, possibly after a prefix such
    /// as `gradient_tape/`. Returns the first and the last operation whose path has this beginning;
    /// `None` if `text` contains no such beginning.
    pub fn find(&self, text: &str) -> Option<(usize, usize)> {
        let components: Vec<&str> = components(text).collect();
        let longest = |start: usize| {
            let beginnings = components[start..].iter().scan(0, |beginning, component| {
                *beginning = longer(*beginning, component);
                self.operations.get(beginning)
            });
            beginnings.enumerate().last()
        };
        // The order is reversed because `max_by_key` returns the last of equally long paths, but
        // the first one in `text` is wanted.
        (0..components.len().min(COMPONENTS_BEFORE))
            .rev()
            .filter_map(longest)
            .max_by_key(|&(count, _)| count)
            .map(|(_, &operations)| operations)
    }
}

/// Extends `beginning`, the hash of the first components of a path, by the next component.
/// Separators do not change the hash, because frameworks write them in different ways.
fn longer(beginning: u64, component: &str) -> u64 {
    hash((beginning, bare(component)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_join_to_the_text() {
        let parts = |text| components(text).collect::<Vec<_>>();
        assert_eq!(
            parts("conv2_block1_1_conv"),
            ["conv2", "_block1", "_1", "_conv"]
        );
        assert_eq!(parts("layer_._3/q"), ["layer", "_._3", "/q"]);
        assert_eq!(parts("/a._"), ["/a._"]);
        assert_eq!(parts("__"), ["__"]);
        assert_eq!(parts(""), [""; 0]);
        let deep = "a/".repeat(100_000);
        assert_eq!(components(&deep).count(), COMPONENTS);
        assert_eq!(components(&deep).collect::<String>(), deep);
    }

    #[test]
    fn types_have_no_numbers() {
        assert_eq!(scope_and_type("a/b/MatMul_3"), ("a/b", "MatMul"));
        assert_eq!(scope_and_type("a/Conv:0/1"), ("a/Conv:0", "1"));
        assert_eq!(scope_and_type("a/Conv2D"), ("a", "Conv2D"));
        assert_eq!(scope_and_type("_3"), ("", "_3"));
    }

    #[test]
    fn scopes_are_aligned_to_parameters() {
        let scopes = ["0/0/norm", "0/0", "0/1/norm", "0/1/act", "head"];
        let parameters = [
            vec!["down.0.resnets.0.norm.weight"],
            vec![],
            vec!["down.0.attentions.1.norm.bias", "shared.weight"],
            vec![],
            vec!["embedding.weight"],
        ];
        let expected = [
            "down.0.resnets.0.norm",
            "down.0.resnets.0",
            "down.0.attentions.1.norm",
            "down.0.attentions.1.act",
            "head",
        ];
        let paths = full_paths(&scopes, &parameters, &parameters);
        let texts: Vec<&str> = paths.iter().map(|path| &*path.text).collect();
        assert_eq!(texts, expected);
        assert_eq!(paths[2].ends, [6, 19, 24]);
        // In the parameter `a.0.weight`, the number directly follows `a`. So the scope `a/1`
        // certainly stands for the module `a.1`. In `b.list.0.weight`, the name of a list is in
        // between. So the scope `b/3` may stand for an item of this or of another list.
        let scopes = ["a/0", "a/1", "b/0", "b/3"];
        let parameters = [vec!["a.0.weight"], vec![], vec!["b.list.0.weight"], vec![]];
        let certain = full_paths(&scopes, &parameters, &parameters).into_iter();
        assert_eq!(
            certain.map(|path| path.certain).collect::<Vec<_>>(),
            [2, 2, 2, 1]
        );
    }

    /// Returns the module path of each operation, cut after the last module that certainly exists
    /// in the Python model.
    fn certain_paths(scopes: &[&str], parameters: &[&[&'static str]]) -> Vec<String> {
        let parameters: Vec<Vec<&str>> = parameters.iter().map(|used| used.to_vec()).collect();
        let paths = full_paths(scopes, &parameters, &parameters).into_iter();
        let certain = |path: ModulePath<'_>| match path.certain {
            0 => String::new(),
            count => path.text[..path.ends[count - 1]].to_owned(),
        };
        paths.map(certain).collect()
    }

    /// In HRNet, blocks of several lists, such as `transition` and `stage`, have equal scopes (the
    /// modules that call an operation). An operation without parameters then has the module path of
    /// the neighbouring operations.
    #[test]
    fn a_scope_of_several_modules_is_that_of_the_operation_beside_it() {
        let scopes = ["0/0", "1", "0/0/conv", "0/0", "0/0/act"];
        let parameters: [&[&str]; 5] = [
            &["transition.0.0.weight"],
            &[],
            &["stage.0.0.conv.weight"],
            &[],
            &[],
        ];
        let paths = certain_paths(&scopes, &parameters);
        assert_eq!(paths[3..], ["stage.0.0", "stage.0.0.act"]);
    }

    /// PoolFormer calls the blocks of a list of lists, so one scope (the modules that call an
    /// operation) stands for several blocks, and only parameters tell them apart.
    #[test]
    fn a_later_run_is_of_the_module_whose_parameters_it_uses() {
        let scopes = ["0/conv", "0/conv", "0/act", "0/conv", "0/act"];
        let (first, second) = ("block.0.0.conv.weight", "block.1.0.conv.weight");
        let parameters = [vec![first], vec![second], vec![], vec![], vec![]];
        let used = [vec![first], vec![second], vec![], vec![first], vec![]];
        let paths = full_paths(&scopes, &parameters, &used).into_iter();
        let paths: Vec<String> = paths.map(|path| path.text).collect();
        assert_eq!(
            paths[2..],
            ["block.1.0.act", "block.0.0.conv", "block.0.0.act"]
        );
    }

    #[test]
    fn items_of_a_list_that_is_called_follow_each_other() {
        let parameters: [&[&str]; 3] = [&["down.0.0.weight"], &["down.0.1.weight"], &[]];
        let paths = |scopes: [&str; 3]| certain_paths(&scopes, &parameters);
        assert_eq!(paths(["0", "1", "2"]), ["down.0.0", "down.0.1", "down.0.2"]);
        assert_eq!(paths(["0", "1", "3"])[2], "");
    }

    /// DeepGCN calls the module `layers.0.norm` directly, without calling `layers.0`. The module
    /// `act`, which has no parameters, is called just like `norm`. So its path may be
    /// `layers.0.act` or `act`, and no path is certain.
    #[test]
    fn a_module_beside_a_part_of_another_module_may_be_such_a_part() {
        let parameters: [&[&str]; 2] = [&["layers.0.norm.weight"], &[]];
        assert_eq!(
            certain_paths(&["norm", "act"], &parameters),
            ["layers.0.norm", ""]
        );
        let parameters: [&[&str]; 2] = [&["lists.0.1.weight"], &[]];
        assert_eq!(
            certain_paths(&["1", "act"], &parameters),
            ["lists.0.1", "act"]
        );
    }

    #[test]
    fn the_longest_path_decides() {
        let mut lookup = Lookup::default();
        lookup.add("bert/encoder/0/attention", 1);
        lookup.add("bert/encoder/1/attention", 2);
        lookup.add("bert.encoder.layer.1.attention", 2);
        assert_eq!(lookup.find("bert/encoder/1/attention/MatMul"), Some((2, 2)));
        assert_eq!(lookup.find("gradient_tape/bert/encoder/0/x"), Some((1, 1)));
        let state = "Accl1___bert.encoder.layer.1.attention.weight";
        assert_eq!(lookup.find(state), Some((2, 2)));
        assert_eq!(lookup.find("bert/encoder"), Some((1, 2)));
        assert_eq!(lookup.find("loss"), None);
    }
}
