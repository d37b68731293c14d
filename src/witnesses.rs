//! Numbers that a file states twice must agree, before anything is concluded
//! from it.
//!
//! Each room that can hold one statement of a profile against another does so where it
//! knows both, and hands on a [`Contradiction`]. Here is what all of them have in common:
//! how far apart numbers may be, what is said of them, and that there is no verdict on a
//! file that contradicts itself.
//!
//! Only one real profile is known, and other versions of the SDK may round or add. So what
//! is off by at most [1 %](TOLERATED) is said and tolerated.

use crate::message::{PROFILE_AGAIN, Warning};
use crate::wording::{grouped, share};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::fmt;
use thiserror::Error;

/// Up to one part in this many of what the numbers are of, they may differ.
pub const TOLERATED: u64 = 100;

/// Two statements of a profile that must agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Witness {
    /// A table has rows where others need them. Numbers are rows.
    Rows,
    /// All layers in one stage take the total of a tile.
    OneStage,
    /// Variables that are live on every step are what a tile has of these.
    AlwaysLive,
    /// The maximum of all other variables at one step is what a tile has of these.
    NotAlwaysLive,
    /// Live bytes are part of the total of a tile.
    LiveInTotal,
    /// The regions of a tile's memory make up its total.
    Regions,
    /// The total of a tile is part of that with gaps.
    Gaps,
    /// Bytes that share no address with others are part of the total of a tile.
    Apart,
    /// The variables of a category take what was recorded of it.
    Categories,
    /// The live bytes at a step beside always-live variables, on all tiles, are those that were
    /// recorded of it.
    LiveBySteps,
    /// Some program uses each variable that holds user data.
    Used,
    /// The program of a compute set with a debug context has one too. Numbers are programs.
    Contexts,
    /// A step runs a child of what the step above it runs. Numbers are steps.
    Steps,
    /// The region that an exchange moves lies within its variable. Numbers are regions.
    WithinVariables,
    /// A variable that lives from the first to the last step has a list of contexts.
    /// Numbers are variables of tensors.
    VariableContexts,
    /// A step that no step leads to runs the root of the tree of programs, or the body of a
    /// function. Numbers are steps.
    Roots,
    /// Everything that runs has code, or state: types of vertices, compute sets with vertices, and
    /// exchanges. Numbers are of these; some may do without, so only where most lack it
    /// there is no verdict.
    Code,
    /// Programs, compute sets and vertex types have no more code than was recorded of it,
    /// and most of it.
    CodeBytes,
    /// The vertices of all tiles are those of the compute sets. Numbers are vertices.
    Vertices,
}

impl Witness {
    /// The words before the recorded and the computed number.
    fn words(self) -> [&'static str; 2] {
        match self {
            Self::Rows => ["its rows are", "those of other tables that need them"],
            Self::OneStage => ["the total is", "all layers in one stage take"],
            Self::AlwaysLive => ["always live are", "its variables of this kind have"],
            Self::NotAlwaysLive => ["live at one step beside these are", "its variables have"],
            Self::LiveInTotal => ["the total is", "what is live at once has"],
            Self::Regions => ["the total is", "its regions have"],
            Self::Gaps => ["the total with gaps is", "that without them"],
            Self::Apart => ["bytes that share no address are", "the total is"],
            Self::Categories => ["bytes are", "its variables have"],
            Self::LiveBySteps => [
                "live beside always-live variables are",
                "the variables of all tiles have",
            ],
            Self::Used => [
                "bytes of variables that no program uses are",
                "they should be",
            ],
            Self::Contexts => [
                "programs with a debug context are",
                "their compute sets with one",
            ],
            Self::Steps => [
                "steps that run a child of what the step above them runs are",
                "those below others",
            ],
            Self::WithinVariables => ["regions that lie within their variable are", "all are"],
            Self::VariableContexts => [
                "variables with contexts are",
                "those that live from the first to the last step",
            ],
            Self::Roots => [
                "steps that run a root of the program tree are",
                "those that no step leads to",
            ],
            Self::Code => ["those with bytes are", "those that run"],
            Self::CodeBytes => ["bytes are", "programs and vertices have"],
            Self::Vertices => ["the vertices are", "those of `compute_sets`"],
        }
    }

    /// The total that the difference is a part of.
    fn whole(self) -> &'static str {
        match self {
            Self::LiveInTotal | Self::Regions | Self::Gaps | Self::Apart => "the tile",
            Self::OneStage
            | Self::AlwaysLive
            | Self::NotAlwaysLive
            | Self::Categories
            | Self::CodeBytes
            | Self::Used => "the fullest tile",
            Self::LiveBySteps => "the step where most is live",
            Self::Rows
            | Self::Contexts
            | Self::Steps
            | Self::WithinVariables
            | Self::VariableContexts
            | Self::Roots
            | Self::Code
            | Self::Vertices => "all",
        }
    }
}

/// Two numbers of a profile that should agree and do not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Contradiction {
    /// Which two these are.
    pub witness: Witness,
    /// The table with the recorded number.
    pub table: String,
    /// The category or step that they are of, such as ``category `variable` `` or `step 12`;
    /// `null` where the table has a row for each tile or they are of all.
    pub row: Option<String>,
    /// The tile where they are furthest apart, the first of several; `null` where they are
    /// of all.
    pub tile: Option<u32>,
    /// How many tiles they differ on; 0 where they are of all.
    pub tiles: u32,
    /// The number in the table: bytes, unless the witness counts something else.
    pub recorded: u64,
    /// The number that the rest of the profile gives for it.
    pub computed: u64,
    /// The difference as a part of the fullest tile, of the tile itself, or of all, as it
    /// suits the witness: rounded up, such as `98.3 %`.
    pub share: String,
    /// Is it too much for a verdict?
    pub refused: bool,
}

impl Contradiction {
    /// Two numbers of the whole profile, of which there are `whole`; `None` where they
    /// agree.
    pub(crate) fn of_all(
        witness: Witness,
        table: &str,
        [recorded, computed]: [u64; 2],
    ) -> Option<Self> {
        Self::of_part(witness, table, [recorded, computed], recorded.max(computed))
    }

    /// Compares two numbers that are a part of `whole`.
    pub(crate) fn of_part(
        witness: Witness,
        table: &str,
        [recorded, computed]: [u64; 2],
        whole: u64,
    ) -> Option<Self> {
        let is_vague = matches!(witness, Witness::Code | Witness::Roots);
        let pair = Pair {
            tile: 0,
            recorded,
            computed,
            whole,
            is_certain: !is_vague || recorded.saturating_mul(2) < computed,
        };
        let found = worst(witness, table, [pair])?;
        Some(Self {
            tile: None,
            tiles: 0,
            ..found
        })
    }

    /// Compares them in one row of its table.
    pub(crate) fn in_row(self, row: String) -> Self {
        let row = Some(row);
        Self { row, ..self }
    }

    /// How far apart the numbers are, those first that there is no verdict on.
    pub(crate) fn difference(&self) -> (bool, u64) {
        (self.refused, self.recorded.abs_diff(self.computed))
    }
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [before_recorded, before_computed] = self.witness.words();
        let (recorded, computed) = (grouped(self.recorded), grouped(self.computed));
        write!(f, "table `{}`", self.table)?;
        if let Some(row) = &self.row {
            write!(f, ", {row}")?;
        }
        if let Some(tile) = self.tile {
            write!(f, ", tile {tile}")?;
        }
        let (share, whole) = (&self.share, self.witness.whole());
        write!(
            f,
            ": {before_recorded} {recorded}, and {before_computed} {computed} (off by {share} of {whole}"
        )?;
        match self.tiles.saturating_sub(1) {
            0 => f.write_str(")"),
            1 => f.write_str("; 1 more tile is off)"),
            more => write!(f, "; {} more tiles are off)", grouped(more.into())),
        }
    }
}

/// Two statements about one tile.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair {
    pub(crate) tile: u32,
    pub(crate) recorded: u64,
    pub(crate) computed: u64,
    /// The total that the difference is a part of.
    pub(crate) whole: u64,
    /// Must they agree, as they do in a real profile? No bytes beyond the memory of a tile
    /// were ever seen in one, so where they are counted is not known.
    pub(crate) is_certain: bool,
}

impl Pair {
    fn difference(&self) -> u64 {
        self.recorded.abs_diff(self.computed)
    }

    fn is_refused(&self) -> bool {
        let tolerated = u128::from(self.whole);
        self.is_certain && u128::from(self.difference()) * u128::from(TOLERATED) > tolerated
    }
}

/// The tile where the statements are furthest apart; `None` where they agree on all.
pub(crate) fn worst(
    witness: Witness,
    table: &str,
    pairs: impl IntoIterator<Item = Pair>,
) -> Option<Contradiction> {
    let mut tiles = 0;
    let differing = pairs.into_iter().filter(|pair| pair.difference() > 0);
    let counted = differing.inspect(|_| tiles += 1);
    let worst =
        counted.max_by_key(|pair| (pair.is_refused(), pair.difference(), Reverse(pair.tile)))?;
    Some(Contradiction {
        witness,
        table: table.to_string(),
        row: None,
        tile: Some(worst.tile),
        tiles,
        recorded: worst.recorded,
        computed: worst.computed,
        share: share(worst.difference(), worst.whole),
        refused: worst.is_refused(),
    })
}

/// A profile contradicts itself, and there is no verdict on it.
#[derive(Debug, Error)]
#[error(
    "the profile contradicts itself: {0}; {PROFILE_AGAIN}, or see with --allow-incomplete what can \
     be shown of it, without a verdict"
)]
pub struct Incomplete(String);

/// Is there a verdict on a file with these?
pub fn are_refused(all: &[Contradiction]) -> bool {
    all.iter().any(|contradiction| contradiction.refused)
}

/// Warnings about a file with these, unless there is no verdict on it.
///
/// # Errors
/// When there is none, and that is not allowed.
pub fn judge(all: &[Contradiction], is_allowed: bool) -> Result<Vec<Warning>, Incomplete> {
    if are_refused(all) && !is_allowed {
        let refused = all.iter().filter(|contradiction| contradiction.refused);
        let texts: Vec<String> = refused.map(ToString::to_string).collect();
        return Err(Incomplete(texts.join("; ")));
    }
    Ok(all.iter().map(warning).collect())
}

fn warning(contradiction: &Contradiction) -> Warning {
    if contradiction.refused {
        return Warning::new(format!(
            "the profile contradicts itself: {contradiction}, so there is no verdict; {PROFILE_AGAIN}"
        ));
    }
    Warning::new(format!(
        "the profile does not quite agree with itself: {contradiction}, so figures may be off by as much; \
         record it again if that matters"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(tile: u32, recorded: u64, computed: u64) -> Pair {
        Pair {
            tile,
            recorded,
            computed,
            whole: 1000,
            is_certain: true,
        }
    }

    fn found(pairs: &[Pair]) -> Option<Contradiction> {
        worst(Witness::OneStage, "memory_by_tile", pairs.iter().copied())
    }

    #[test]
    fn one_per_cent_is_tolerated_and_no_byte_more() {
        assert_eq!(found(&[pair(0, 7, 7)]), None);
        for (computed, refused) in [(990, false), (1010, false), (989, true), (1011, true)] {
            let contradiction = found(&[pair(0, 1000, computed)]).unwrap();
            assert_eq!(contradiction.refused, refused, "{contradiction}");
            assert_eq!(
                judge(std::slice::from_ref(&contradiction), false).is_err(),
                refused
            );
            assert_eq!(judge(&[contradiction], true).unwrap().len(), 1);
        }
        let nothing = Pair {
            whole: 0,
            ..pair(0, 0, 1)
        };
        assert!(found(&[nothing]).unwrap().refused);
    }

    #[test]
    fn the_worst_tile_is_named_and_the_others_are_counted() {
        let contradiction = found(&[
            pair(3, 1000, 1000),
            pair(5, 1000, 1001),
            pair(7, 1000, 400),
            pair(9, 0, 600),
        ]);
        let contradiction = contradiction.unwrap();
        assert_eq!((contradiction.tile, contradiction.tiles), (Some(7), 3));
        assert_eq!(
            contradiction.to_string(),
            "table `memory_by_tile`, tile 7: the total is 1,000, and all layers in one stage take \
             400 (off by 60.0 % of the fullest tile; 2 more tiles are off)"
        );
    }

    #[test]
    fn what_no_real_profile_has_is_told_and_not_refused() {
        let exact = Pair {
            is_certain: false,
            ..pair(0, 900, 0)
        };
        assert!(!found(&[exact]).unwrap().refused);
        // A tile where it is sure comes first.
        let found = found(&[exact, pair(1, 1000, 600)]).unwrap();
        assert_eq!((found.tile, found.refused), (Some(1), true));
    }

    #[test]
    fn some_that_run_may_do_without_code() {
        let with_code = |recorded| {
            Contradiction::of_all(Witness::Code, "memory_by_vertex_type", [recorded, 10])
        };
        assert_eq!(with_code(10), None);
        assert!(!with_code(5).unwrap().refused);
        assert!(with_code(4).unwrap().refused);
    }

    #[test]
    fn a_table_without_rows_is_refused() {
        let contradiction = Contradiction::of_all(Witness::Rows, "eq_class_step", [0, 41]).unwrap();
        assert!(contradiction.refused);
        assert_eq!(contradiction.tile, None);
        assert_eq!(
            contradiction.to_string(),
            "table `eq_class_step`: its rows are 0, and those of other tables that need them 41 \
             (off by 100.0 % of all)"
        );
        assert_eq!(Contradiction::of_all(Witness::Rows, "a", [3, 3]), None);
    }
}
