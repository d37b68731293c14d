//! Reads a split that the user gives, which is evaluated and compared with the best split.

use super::{
    Request,
    named_layers::{layer_names, position},
};
use crate::{
    escape::printable,
    message::{BadValue, usage},
    model::Positions,
    report::emit::blocks,
    search::IpuCount,
    solve::Plan,
    wording::counted,
};
use anyhow::{Context, Result};
use regex::Regex;
use std::{fs, ops::Range};

/// A split that the user gives (`--splits` or `--layers-per-ipu`), which is evaluated and compared
/// with the best split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JudgedSplit {
    /// The name of the first layer of each stage except stage 0. The name may also be `Out`, the
    /// operations after the last layer.
    FirstLayers(Vec<String>),
    /// The number of layers on each IPU, from IPU 0; `None` for an IPU that gets an equal share of
    /// the remaining layers. Until the list is compared with the model, its numbers may instead be
    /// IPU indices, one per layer, as in `0,0,1`.
    LayersPerIpu(Vec<Option<usize>>),
}

impl JudgedSplit {
    /// Reads the value of `--splits`, which has the first layer of each stage except stage 0. The
    /// value is one of: names separated by commas; a list of texts in brackets, as in a
    /// configuration file; or mmcv's list with a `layer_to_call` and an `ipu_id` for each stage, in
    /// which the entry for IPU 0 is ignored.
    ///
    /// # Errors
    /// If a name between two commas is empty, or if the values of `ipu_id` in mmcv's list do not
    /// count up from 0 or 1.
    pub fn first_layers(list: &str) -> Result<Self, BadValue> {
        if list.contains("layer_to_call") {
            return called_layers(list).map(Self::FirstLayers);
        }
        let plain = list.trim();
        let inner = plain
            .strip_prefix(['[', '('])
            .and_then(|inner| inner.strip_suffix([']', ')']));
        let names = layer_names(inner.unwrap_or(plain))?.into_iter();
        let unquoted = names.map(|name| name.trim_matches(['"', '\'']).to_owned());
        Ok(Self::FirstLayers(unquoted.collect()))
    }

    /// Reads the value of `--layers-per-ipu`: a list of the number of layers on each IPU, such as
    /// `3,7,7,7` or `[3 7 -1 -1]`, where -1 stands for an equal share of the remaining layers. The
    /// value may also be the path of a JSON file with such a list at the key `layers_per_ipu`.
    ///
    /// # Errors
    /// If the text is neither a list of numbers nor the path of such a file.
    pub fn layers_per_ipu(list: &str) -> Result<Self, BadValue> {
        let text = list.trim();
        if text.ends_with(".json") {
            let listed = listed_in(text).map_err(|error| {
                BadValue(format!(
                    "'{text}' has no layers_per_ipu ({error}); give a list of numbers"
                ))
            })?;
            return Self::layers_per_ipu(&listed);
        }
        text.trim_start_matches('[')
            .trim_end_matches(']')
            .split(|letter: char| letter == ',' || letter.is_whitespace())
            .filter(|word| !word.is_empty())
            .map(|word| match word {
                "-1" => Some(None),
                number => number.parse().ok().map(Some),
            })
            .collect::<Option<Vec<_>>>()
            .filter(|counts| !counts.is_empty())
            .map(Self::LayersPerIpu)
            .ok_or_else(|| {
                BadValue(format!(
                    "'{list}' is not a list of numbers; write it like 3,7,7,7 or [3 7 -1 -1]"
                ))
            })
    }

    pub(super) fn layers(&self) -> &[String] {
        match self {
            Self::FirstLayers(names) => names,
            Self::LayersPerIpu(_) => &[],
        }
    }

    /// Returns the value of `--layers-per-ipu` if it may be a list with the IPU index of each
    /// layer, instead of the usual list with the number of layers on each IPU.
    pub(super) fn ipus_of_layers(&self) -> Option<Vec<usize>> {
        let Self::LayersPerIpu(list) = self else {
            return None;
        };
        let ipus: Vec<usize> = list.iter().copied().collect::<Option<_>>()?;
        (ipus.len() > 1 && ipus[0] == 0 && ipus.is_sorted()).then_some(ipus)
    }

    /// Returns the number of layers on each IPU if `ipus`, a value of `--layers-per-ipu`, has the
    /// IPU index of each layer; counts blocks (numbered layers) if it has the IPU index of each
    /// block. Returns `None` if the length of the list is neither the number of layers nor of
    /// blocks. Returns `None` and `true` if the numbers add up to one of these, since the list may
    /// then have the number of layers on each IPU instead; in all other cases, the second result is
    /// `false`.
    pub(super) fn counted(ipus: &[usize], positions: &Positions) -> (Option<Self>, bool) {
        let names = positions.layers();
        let sizes = [names.len(), blocks(names).len()];
        if !sizes.contains(&ipus.len()) {
            return (None, false);
        }
        if sizes.contains(&sum(ipus)) {
            return (None, true);
        }
        let last = ipus[ipus.len() - 1].min(ipus.len());
        let counts = (0..=last)
            .map(|ipu| Some(ipus.iter().filter(|&&other| other == ipu).count()))
            .collect();
        (Some(Self::LayersPerIpu(counts)), false)
    }

    /// Returns the number of IPUs of the user's split. An IPU counts even if it runs nothing, since
    /// `--layers-per-ipu` may give it 0 layers.
    pub(super) fn ipus(&self) -> usize {
        match self {
            Self::FirstLayers(names) => names.len() + 1,
            Self::LayersPerIpu(counts) => counts.len(),
        }
    }

    /// Returns the stages of the split as ranges of positions (In, layers and Out, in order). An
    /// error if the split does not match the layers of the model, or leaves an IPU idle although
    /// `request` does not allow this.
    pub(super) fn plan(&self, positions: &Positions, request: &Request) -> Result<Plan> {
        let mut stages = self.positions_by_ipu(positions)?;
        let out = stages
            .iter()
            .skip(1)
            .zip(self.layers())
            .find(|(stage, name)| stage.start == 0 && *name != "In");
        if let Some((_, name)) = out.filter(|_| positions.out_is_first()) {
            return Err(usage(format!(
                "--splits: no stage can begin at {}, since Out runs on the first IPU, with In; leave it \
                 out, or set --out-on last",
                printable(name)
            )));
        }
        if let Self::LayersPerIpu(_) = self {
            check_idle(request, &stages)?;
            stages.retain(|stage| !stage.is_empty());
        }
        Plan::new(stages, positions.len()).ok_or_else(|| {
            usage(
                "--splits: a stage would have no layers; name the first layer of each stage but \
                 stage 0, each once and in the order of the model",
            )
        })
    }

    /// Returns one entry per IPU: the range of positions (In, layers and Out, in order) that it
    /// runs, which is empty for an idle IPU.
    fn positions_by_ipu(&self, positions: &Positions) -> Result<Vec<Range<usize>>> {
        let starts: Vec<usize> = match self {
            Self::FirstLayers(names) => names
                .iter()
                .map(|name| position(positions, name, "--splits"))
                .collect::<Result<_>>()?,
            Self::LayersPerIpu(counts) => starts_of_counts(counts, positions)?,
        };
        Ok([&[0], &*starts, &[positions.len()]]
            .concat()
            .windows(2)
            .map(|ends| ends[0]..ends[1])
            .collect())
    }

    /// Returns the indices of the IPUs that run nothing in this split; none if the split is
    /// invalid.
    pub(crate) fn idle_ipus(&self, positions: &Positions) -> Vec<usize> {
        let stages = self.positions_by_ipu(positions).unwrap_or_default();
        (0..stages.len())
            .filter(|&ipu| stages[ipu].is_empty())
            .collect()
    }
}

/// Returns the first layer of each stage but stage 0 from mmcv's list of splits, which has items
/// such as `dict(layer_to_call='backbone.conv1', ipu_id=0)`, in the order of the IPUs.
fn called_layers(list: &str) -> Result<Vec<String>, BadValue> {
    let value = |item: &str, key: &str| {
        let pattern = format!(r#"{key}["' :=]*([^"',)}} ]*)"#);
        let found = Regex::new(&pattern).expect("a regex").captures(item)?;
        Some(found[1].to_owned())
    };
    if Regex::new(r#"layer_to_call["']?\s*[=:]\s*\d"#)
        .expect("a regex")
        .is_match(list)
    {
        return Err(BadValue(
            "a number as layer_to_call counts all modules of the model's code, which no profile has; \
             give their names"
                .to_owned(),
        ));
    }
    let mut names = Vec::new();
    for item in list
        .split(['{', '('])
        .filter(|item| item.contains("layer_to_call"))
    {
        let name = value(item, "layer_to_call").filter(|name| !name.is_empty());
        let ipu = value(item, "ipu_id").and_then(|ipu| ipu.parse::<usize>().ok());
        match (name, ipu) {
            (Some(_), Some(0)) if names.is_empty() => {}
            (Some(name), Some(ipu)) if ipu == names.len() + 1 => names.push(name),
            _ => {
                return Err(BadValue(format!(
                    "'{item}' is not the first layer of IPU {}; give a layer_to_call and an ipu_id for \
                     each IPU in order",
                    names.len() + 1
                )));
            }
        }
    }
    Ok(names)
}

fn listed_in(path: &str) -> Result<String> {
    let file: serde_json::Value = serde_json::from_str(&fs::read_to_string(path)?)?;
    Ok(file
        .get("layers_per_ipu")
        .context("the key is missing")?
        .to_string())
}

/// Returns the first position (In is 0, then the layers) of each IPU except IPU 0. `counts` has the
/// number of layers on each IPU, `None` for an equal share of the rest. If the numbers do not add
/// up to the number of layers, they count blocks (numbered layers, such as encoder layers), as
/// configuration files of frameworks do. An error if they add up to neither.
fn starts_of_counts(counts: &[Option<usize>], positions: &Positions) -> Result<Vec<usize>> {
    let names = positions.layers();
    let blocks = blocks(names);
    let fixed: Option<Vec<usize>> = counts.iter().copied().collect();
    let starts: Vec<usize> = match fixed {
        Some(fixed) if sum(&fixed) == names.len() => (0..names.len()).collect(),
        _ => blocks.iter().map(|block| block.start).collect(),
    };
    let counts = with_shares(counts, starts.len());
    let sum = sum(&counts);
    if sum != starts.len() {
        return Err(usage(format!(
            "--layers-per-ipu: the counts add up to {sum}, but the model has {} ({}); give counts that \
             add up to either",
            counted(names.len(), "layer"),
            counted(blocks.len(), "block")
        )));
    }
    let last = blocks.last().map_or(names.len(), |block| block.end);
    let mut before = 0;
    Ok(counts[..counts.len().saturating_sub(1)]
        .iter()
        .map(|count| {
            before += count;
            1 + starts.get(before).copied().unwrap_or(last)
        })
        .collect())
}

fn sum(counts: &[usize]) -> usize {
    counts.iter().copied().fold(0, usize::saturating_add)
}

/// Returns the number of blocks (numbered layers, such as encoder layers) on each IPU in the split
/// `plan`, for users' code that takes only these numbers and places all other layers itself.
/// Returns `None` if this code would make `plan` again: each stage except stage 0 begins with a
/// block or directly after the last block.
pub fn other_counts(plan: &Plan, positions: &Positions) -> Option<Vec<usize>> {
    let blocks = blocks(positions.layers());
    let mut starts: Vec<usize> = blocks.iter().map(|block| block.start + 1).collect();
    let counts = plan
        .stages()
        .iter()
        .map(|stage| starts.iter().filter(|at| stage.contains(at)).count())
        .collect();
    starts.push(1 + blocks.last().map_or(0, |block| block.end));
    plan.cuts()
        .any(|cut| !starts.contains(&cut))
        .then_some(counts)
}

/// Returns the number of layers on each IPU of a model with `layers` layers. IPUs with `None` in
/// `counts` get equal shares of the layers that the other IPUs leave; if these do not divide
/// evenly, the first of the IPUs get one layer more.
fn with_shares(counts: &[Option<usize>], layers: usize) -> Vec<usize> {
    let left = counts
        .iter()
        .flatten()
        .copied()
        .fold(layers, usize::saturating_sub);
    let open = counts.iter().filter(|count| count.is_none()).count();
    let mut shares = (0..open).map(|place| left / open + usize::from(place < left % open));
    counts
        .iter()
        .map(|count| count.or_else(|| shares.next()).unwrap_or(0))
        .collect()
}

/// Returns an error if a split leaves an IPU idle and `request` does not allow idle IPUs. `stages`
/// has the range of positions (In, layers, Out) that each IPU of the split runs. A request allows
/// idle IPUs if all IPUs have the same memory, and if it has no fewer IPUs than the split.
fn check_idle(request: &Request, stages: &[Range<usize>]) -> Result<()> {
    let Some(ipu) = stages.iter().position(Range::is_empty) else {
        return Ok(());
    };
    if request.memory_per_tile.len() > 1 {
        return Err(usage(format!(
            "--layers-per-ipu: IPU {ipu} would run nothing, which is only possible with one \
             --mem-per-tile for all IPUs; give one amount, or leave the 0 out"
        )));
    }
    match request.ipus {
        Some(IpuCount::Exactly(ipus)) if ipus < stages.len() => Err(usage(format!(
            "--layers-per-ipu: there are counts for {}, but --num-ipus is {ipus}: IPU {ipu} runs \
             nothing, but still counts as an IPU; set --num-ipus to the number of counts",
            counted(stages.len(), "IPU")
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::tests::orders;
    use crate::model::{Layering, PseudoLayers};

    /// Returns the names of the layers on each IPU, separated by `|`, if the user gives `counts` as
    /// the value of `--layers-per-ipu`. If this value is wrong for the model, returns the text of
    /// the error.
    fn ipus(counts: &str, positions: &Positions) -> String {
        let split = JudgedSplit::layers_per_ipu(counts).expect("counts");
        let stages = match split.positions_by_ipu(positions) {
            Ok(stages) => stages,
            Err(error) => return error.to_string(),
        };
        let ipu = |range: Range<usize>| {
            let names = range.map(|place| positions.name(place).to_string());
            names.collect::<Vec<_>>().join(" ")
        };
        stages.into_iter().map(ipu).collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn counts_become_ipus() {
        let [apart, together, classic] = orders();
        let cases = [
            (
                "2,2",
                ["In 0 1 | 2 3 Out", "In Out 0 1 | 2 3", "None 0 1 | 2 3"],
            ),
            (
                "[0 4]",
                ["In | 0 1 2 3 Out", "In Out | 0 1 2 3", "None | 0 1 2 3"],
            ),
            ("4", ["In 0 1 2 3 Out", "In Out 0 1 2 3", "None 0 1 2 3"]),
            (
                "1 -1 0",
                [
                    "In 0 | 1 2 3 | Out",
                    "In Out 0 | 1 2 3 | ",
                    "None 0 | 1 2 3 | ",
                ],
            ),
            (
                "0 0 -1",
                [
                    "In |  | 0 1 2 3 Out",
                    "In Out |  | 0 1 2 3",
                    "None |  | 0 1 2 3",
                ],
            ),
        ];
        for (counts, expected) in cases {
            for (positions, expected) in [&apart, &together, &classic].into_iter().zip(expected) {
                assert_eq!(ipus(counts, positions), expected, "{counts:?}");
            }
        }
        assert_eq!(ipus("2,0,2", &apart), "In 0 1 |  | 2 3 Out");
        assert_eq!(ipus("2,2,0,0", &apart), "In 0 1 | 2 3 |  | Out");
        let split = JudgedSplit::layers_per_ipu("2,2,0,0").expect("counts");
        assert_eq!(split.idle_ipus(&apart), [2]);
    }

    /// A list of `--layers-per-ipu` may count layers or only blocks (numbered layers). If it counts
    /// blocks, layers before the first block run on the first IPU, and layers after the last block
    /// on the last IPU.
    #[test]
    fn counts_are_of_layers_or_of_blocks() {
        let names = ["", "embeddings", "0.attention", "0.output", "1", "pooler"];
        let layering = Layering::of(names.map(String::from).to_vec(), Vec::new());
        let positions = Positions::new(&layering, PseudoLayers::InAndOut);
        let whole = "In embeddings 0.attention 0.output | 1 pooler Out";
        assert_eq!(ipus("1,1", &positions), whole);
        assert_eq!(ipus("-1,-1", &positions), whole);
        let layers = "In embeddings 0.attention | 0.output 1 pooler Out";
        assert_eq!(ipus("2,3", &positions), layers);
        let part = "add up to 3, but the model has 5 layers (2 blocks)";
        assert!(ipus("1,2", &positions).contains(part));
    }

    #[test]
    fn counts_that_are_too_few_or_too_many() {
        let [apart, ..] = orders();
        for (counts, part) in [
            ("2,1", "add up to 3, but the model has 4 layers"),
            ("18446744073709551615,2", "but the model has 4"),
        ] {
            let error = ipus(counts, &apart);
            assert!(error.contains(part), "{counts:?}: {error}");
        }
    }

    #[test]
    fn first_layers_are_read_as_configurations_have_them() {
        let names = |list: &str| match JudgedSplit::first_layers(list) {
            Ok(JudgedSplit::FirstLayers(names)) => names,
            other => panic!("{list}: {other:?}"),
        };
        assert_eq!(names("3, 10"), ["3", "10"]);
        assert_eq!(names(r#"["b1/2/relu", "b2/1"]"#), ["b1/2/relu", "b2/1"]);
        assert_eq!(
            names("model.layer[3],model.layer[7]"),
            ["model.layer[3]", "model.layer[7]"]
        );
        let mmcv = "[dict(layer_to_call='backbone.conv1', ipu_id=0), dict(layer_to_call='neck', \
                    ipu_id=1), {\"layer_to_call\": \"head.fc\", \"ipu_id\": 2}]";
        assert_eq!(names(mmcv), ["neck", "head.fc"]);
        let skipped = "[dict(layer_to_call='neck', ipu_id=2)]";
        assert!(JudgedSplit::first_layers(skipped).is_err());
        let by_number = "[dict(layer_to_call=3, ipu_id=1)]";
        let error = JudgedSplit::first_layers(by_number)
            .unwrap_err()
            .to_string();
        assert!(error.contains("counts all modules"), "{error}");
    }

    #[test]
    fn lists_of_ipus_become_counts() {
        let [apart, ..] = orders();
        let counted = |list: &str| {
            let split = JudgedSplit::layers_per_ipu(list).expect("numbers");
            let ipus = split.ipus_of_layers().unwrap_or_default();
            match JudgedSplit::counted(&ipus, &apart) {
                (Some(JudgedSplit::LayersPerIpu(counts)), _) => (Some(counts), false),
                (_, is_both) => (None, is_both),
            }
        };
        assert_eq!(counted("[0,0,0,1]"), (Some(vec![Some(3), Some(1)]), false));
        assert_eq!(counted("0,0,2,2"), (None, true));
        assert_eq!(
            counted("0,2,2,2"),
            (Some(vec![Some(1), Some(0), Some(3)]), false)
        );
        for other in ["1,1,1,2", "0,1,0,1", "2,2", "0,0,1"] {
            assert_eq!(counted(other), (None, false), "{other}");
        }
    }

    #[test]
    fn shares_are_as_even_as_possible() {
        let counts = |list: &str| match JudgedSplit::layers_per_ipu(list) {
            Ok(JudgedSplit::LayersPerIpu(counts)) => Some(with_shares(&counts, 12)),
            _ => None,
        };
        assert_eq!(counts("[3, 7, 0]"), Some(vec![3, 7, 0]));
        assert_eq!(counts("[0 4 -1 -1]"), Some(vec![0, 4, 4, 4]));
        assert_eq!(counts("-1,-1,-1,-1,-1"), Some(vec![3, 3, 2, 2, 2]));
        assert_eq!(counts("13 -1"), Some(vec![13, 0]));
        assert_eq!((counts("3,x"), counts("")), (None, None));
    }
}
