//! Defines contradictions: data in the files that disagree or are missing, with the bytes of a tile
//! that may therefore be attributed to the wrong layer. Decides whether there can still be a
//! verdict, that is, an answer to whether the model fits.

use crate::{
    message::{DEBUG_AGAIN, FileError, FileWarnings, PROFILE_AGAIN, Warning},
    profile::Recorded,
    wording::{grouped, join, share},
};
use serde::{Deserialize, Serialize};
use std::{cmp::Reverse, fmt};

/// A check of the input files. The description of each value says what must hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Witness {
    /// A table has all rows that other tables require. The check counts the rows in the table, and
    /// the tiles or programs that need a row.
    #[default]
    Rows,
    /// The bytes of variables and code that are live at the same time on a tile add up to the
    /// recorded total of the tile.
    OneStage,
    /// The recorded total of a tile is at least the recorded bytes that are live at the same time,
    /// and at most the recorded bytes that include the unused gaps between variables. The memory
    /// regions of the tile add up to its total, unless its content exceeds the memory of the tile.
    Total,
    /// On each tile, the variables of each category (such as `vertexCode`) add up to the bytes that
    /// the profile records for the category.
    Categories,
    /// The not-always-live variables that are live at a step have, on all tiles together, the bytes
    /// that are recorded for the step.
    LiveBySteps,
    /// The code of programs, compute sets and vertex types has at most the recorded bytes of code,
    /// and accounts for nearly all of them. Only exchange and control code, which programs may
    /// share, may have more than the recorded bytes.
    Code,
    /// The records of programs agree:
    /// - The program of each liveness step is reached from a root of the program tree.
    /// - If the step has a parent step, the program is a child of the parent step's program. This
    ///   is not required if the parent step's program is a Call.
    /// - If a compute set has a debug context, so has each program that runs it.
    /// - The profile lists as many vertices for each compute set as it counts (`vertex_counts`).
    ///
    /// The check counts the bytes that are used by programs for which one of these does not hold.
    Programs,
    /// Each variable with data of tensors is used by a program, parameters have debug contexts, and
    /// variables contain the regions that exchanges move. The check counts the bytes of the
    /// variables for which one of these does not hold.
    Variables,
    /// `debug.cbor` has all debug contexts to which programs and compute sets refer, with all their
    /// ancestors, and with the names of the compute sets. The check counts the bytes of the
    /// programs for which this does not hold.
    DebugContexts,
    /// A model that updates most bytes of the parameters that it reads has a backward pass. The
    /// check counts the bytes, over all tiles, of the parameters that the model reads, and of the
    /// parameters among them that it updates.
    Passes,
}

impl Witness {
    /// Returns phrases for the message about a contradiction that this check found. The first value
    /// has the phrases before the recorded and before the computed number, such as `the total is`
    /// and `its parts make up`; it is `None` for checks whose messages have no such numbers. The
    /// second value says what the percentage in the message refers to, such as `the fullest tile`.
    fn words(self) -> (Option<[&'static str; 2]>, &'static str) {
        let (whole, recorded, computed) = match self {
            Self::Rows => ("all", "its rows are", "the rows that it needs are"),
            Self::OneStage => (TILE, "the total is", "its variables and code take"),
            Self::Total => (TILE, "the total is", "its parts make up"),
            Self::Categories => (TILE, "bytes are", "its variables have"),
            Self::LiveBySteps => (
                "the step where most is live",
                "live beside always-live variables are",
                "the variables of all tiles have",
            ),
            Self::Code => (TILE, "bytes are", "programs and vertices have"),
            Self::Passes => (
                "the parameters",
                "the bytes of the parameters that operations read are",
                "the bytes of those that are updated, as in training, are",
            ),
            Self::Programs | Self::Variables | Self::DebugContexts => return (None, TILE),
        };
        (Some([recorded, computed]), whole)
    }
}

/// What the percentage in most messages about a contradiction refers to: the recorded bytes of the
/// fullest tile.
const TILE: &str = "the fullest tile";

/// Two parts of a message about a bad file: what is wrong with it, and what the user can do.
type FileProblem = (&'static str, &'static str);

const PROFILE: FileProblem = ("the profile contradicts itself", PROFILE_AGAIN);
pub const DEBUG: FileProblem = ("the debug file cannot be trusted", DEBUG_AGAIN);

/// Two numbers in the input files that should agree but differ, or data that these files lack.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Contradiction {
    /// Which check of the input files failed.
    pub witness: Witness,
    /// The table of the profile whose data are wrong or missing, or `debug.cbor`.
    pub table: String,
    /// Which data in `table` are wrong or missing: a category such as ``category `variable` ``, a
    /// step such as `step 12`, or a description. `null` if `tile` alone identifies the row of
    /// `table`, or if `table` has no rows.
    pub row: Option<String>,
    /// The tile on which `recorded` and `computed` differ most, the first one of a tie; `null` if
    /// the numbers are sums over all tiles.
    pub tile: Option<u32>,
    /// Number of tiles on which `recorded` and `computed` differ; 0 if the numbers are sums over
    /// all tiles.
    pub tiles: u32,
    /// The bytes that `table` records on `tile`, or on all tiles if `tile` is `null`. In these
    /// cases, it is another number:
    /// - If `witness` is `rows`: 0, the number of rows in `table`.
    /// - If `witness` is `passes`: the bytes of all parameters that the model reads.
    /// - If data are missing: the bytes on `tile` that depend on them, or 0 if `tile` is `null`.
    pub recorded: u64,
    /// The value that `recorded` should have according to the rest of the profile; 0 if the
    /// contradiction is that data are missing. If `witness` is `passes`: the bytes of those
    /// parameters that the model updates.
    pub computed: u64,
    /// A percentage, rounded up, such as `98.3 %`. What it is depends on `witness`:
    /// - `rows`: always `100.0 %`
    /// - `passes`: `computed` as a percentage of `recorded`
    /// - `debug-contexts` if `bytes` is `null`: `100.0 %`
    /// - `live-by-steps`: the difference of `recorded` and `computed`, relative to the most bytes
    ///   that are live at any step
    /// - otherwise: this difference, relative to the recorded bytes of the fullest tile
    pub share: String,
    /// Upper bound on the error in the bytes of any tile due to wrong or missing data: bytes that
    /// may be attributed to the wrong layer, or be too many or too few. 0 if all of these bytes are
    /// recorded code that belongs to no program, since every stage gets such code anyway. `null` if
    /// there is no bound.
    pub bytes: Option<u64>,
    /// Whether the report cannot say that the model fits or does not fit, because of the wrong or
    /// missing data. This is so if `bytes` is `null`, or if the `bytes` of all contradictions
    /// together could change an answer of the report.
    pub refused: bool,
}

impl Contradiction {
    /// Creates the contradiction that the data of `table` fail the check `witness`, with 0 as
    /// recorded and computed number. There is no bound on the bytes that may be attributed to the
    /// wrong layer, so it cannot be said whether the model fits.
    pub(super) fn unbounded(witness: Witness, table: &str) -> Self {
        Self {
            witness,
            table: table.to_string(),
            share: share(1, 1),
            refused: true,
            ..Self::default()
        }
    }

    /// Creates the contradiction that `table` has no rows, although `rows` tiles or programs need
    /// one. Without the table, any number of bytes may be attributed to the wrong layer.
    pub(crate) fn without_rows(table: &str, rows: u64) -> Self {
        Self {
            computed: rows,
            ..Self::unbounded(Witness::Rows, table)
        }
    }

    /// Creates the contradiction that the model seems to have no backward pass, although operations
    /// update parameters as in training. `read` is the number of bytes of the parameters that
    /// operations read, and `updated` the number of these bytes that operations update.
    pub(crate) fn without_backward(read: u64, updated: u64) -> Self {
        Self {
            recorded: read,
            computed: updated,
            share: share(updated, read),
            ..Self::unbounded(Witness::Passes, "programs")
                .in_row("no backward pass by marks or by the order of modules".to_string())
        }
    }

    /// Creates the contradiction that `table` lacks the data that `row` describes. `by_tile` has
    /// for each tile the bytes that depend on the missing data. The contradiction names the tile
    /// with the most such bytes. The bytes of a tile count at most up to the total of the fullest
    /// tile.
    pub(super) fn lacking(
        witness: Witness,
        table: &str,
        row: String,
        by_tile: Vec<u64>,
        recorded: &Recorded,
    ) -> Self {
        let fullest = recorded.fullest().unwrap_or(0);
        // An entry of `by_tile` may add up variables that are live at different steps, and so
        // exceed the bytes that any tile holds at one step. Limit each entry to the total of the
        // fullest tile.
        let numbers = by_tile.into_iter().map(|bytes| [bytes.min(fullest), 0]);
        worst(witness, table, fullest, numbers, u64::abs_diff)
            .unwrap_or_else(|| Self {
                share: share(0, 1),
                bytes: Some(0),
                refused: false,
                ..Self::unbounded(witness, table)
            })
            .in_row(row)
    }

    pub(super) fn in_row(self, row: String) -> Self {
        Self {
            row: Some(row),
            ..self
        }
    }

    fn is_of_debug(&self) -> bool {
        self.witness == Witness::DebugContexts
    }

    /// Returns the warning about this contradiction. `has_verdict` is whether the report states, in
    /// spite of it, that the model fits or does not fit. If `true`, the warning says that the
    /// contradiction does not change this verdict.
    fn warning(&self, has_verdict: bool) -> Warning {
        let same = if has_verdict {
            ", but the verdict is the same"
        } else {
            ""
        };
        let ((what, again), parts, cure) = if self.is_of_debug() {
            (DEBUG, "layers", DEBUG_AGAIN)
        } else {
            (PROFILE, "figures", "record it again if that matters")
        };
        Warning::new(if self.refused {
            format!("{what}: {self}, so there is no verdict; {again}")
        } else {
            format!("{what}: {self}, so {parts} may be off by that much{same}; {cure}")
        })
    }
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The message about a debug file begins with the path of the file. So it leaves out
        // `table`, which would only name `debug.cbor` again.
        let table = (!self.is_of_debug()).then(|| format!("table `{}`", self.table));
        let tile = self.tile.map(|tile| format!("tile {tile}"));
        let place = [table, self.row.clone(), tile];
        f.write_str(&join(place.iter().flatten(), ", "))?;
        let (words, whole) = self.witness.words();
        if let Some([before_recorded, before_computed]) = words {
            let [recorded, computed] = [self.recorded, self.computed].map(grouped);
            write!(
                f,
                ": {before_recorded} {recorded}, and {before_computed} {computed}"
            )?;
        }
        match self.bytes {
            Some(bytes) if bytes > 0 || words.is_none() => {
                write!(f, ", which could move up to {} bytes", grouped(bytes))?;
            }
            None if words.is_none() => return f.write_str(", which could move all bytes"),
            _ => {}
        }
        write!(f, " ({} of {whole}", self.share)?;
        match self.tiles.saturating_sub(1) {
            0 => f.write_str(")"),
            1 => f.write_str("; 1 more tile is off)"),
            more => write!(f, "; {} more tiles are off)", grouped(more.into())),
        }
    }
}

/// Returns the contradiction about the worst of the tiles whose recorded and computed bytes differ;
/// `None` if they agree on all tiles. `witness` is the check that compares them. `numbers` has one
/// entry per tile, from tile 0 on: the recorded and the computed bytes. `table` is the table of the
/// profile with the recorded bytes, and `fullest` has the bytes of the fullest tile.
///
/// `misplaced` gets the recorded and the computed bytes of a tile. It returns how many bytes may be
/// attributed to the wrong layer, or 0 if the difference is harmless. The worst tile has the most
/// such bytes; ties are broken by the largest difference, then by the lowest tile index.
pub fn worst(
    witness: Witness,
    table: &str,
    fullest: u64,
    numbers: impl IntoIterator<Item = [u64; 2]>,
    misplaced: impl Fn(u64, u64) -> u64,
) -> Option<Contradiction> {
    let mut tiles = 0;
    let (tile, [recorded, computed]) = (0u32..)
        .zip(numbers)
        .filter(|(_, [recorded, computed])| recorded != computed)
        .inspect(|_| tiles += 1)
        .max_by_key(|&(tile, [recorded, computed])| {
            (
                misplaced(recorded, computed),
                recorded.abs_diff(computed),
                Reverse(tile),
            )
        })?;
    Some(Contradiction {
        tile: Some(tile),
        tiles,
        recorded,
        computed,
        share: share(recorded.abs_diff(computed), fullest),
        bytes: Some(misplaced(recorded, computed)),
        refused: false,
        ..Contradiction::unbounded(witness, table)
    })
}

/// Returns the error that an input file is bad, so that it cannot be said whether the model fits.
/// `text` has the details of what is wrong with the file.
pub fn incomplete((what, again): FileProblem, text: &str) -> FileError {
    FileError::new(format!(
        "{what}: {text}; {again}, or run with --allow-incomplete to see what can be shown without \
         a verdict"
    ))
}

/// Returns whether any contradiction in the files is so grave that it is unknown whether the model
/// fits.
pub fn are_refused(all: &[Contradiction]) -> bool {
    all.iter().any(|contradiction| contradiction.refused)
}

/// Returns the warnings about `all` contradictions, each with the path of the file that it is
/// about. `files` are the paths of the profile and of the debug file as messages show them, and
/// `has_verdict` is whether the report states that the model fits or does not fit.
pub fn doubts(all: &[Contradiction], files: [String; 2], has_verdict: bool) -> FileWarnings {
    let file = |found: &Contradiction| files[usize::from(found.is_of_debug())].clone();
    all.iter()
        .map(|found| (file(found), found.warning(has_verdict)))
        .collect()
}

/// Marks contradictions as `refused` (the report has no verdict whether the model fits) if the
/// bytes of all of them together could change a verdict. Contradictions of 0 bytes are never
/// marked. `free` has one entry per verdict of the report: the bytes that are left under the memory
/// limit, or minus the bytes by which the limit is exceeded.
pub fn refuse_close(all: &mut [Contradiction], free: impl IntoIterator<Item = i64>) {
    let bytes = all
        .iter()
        .filter_map(|found| found.bytes)
        .fold(0, u64::saturating_add);
    let is_close = free.into_iter().any(|free| match u64::try_from(free) {
        Ok(free) => bytes > free,
        Err(_) => bytes >= free.unsigned_abs(),
    });
    if bytes > 0 && is_close {
        all.iter_mut()
            .for_each(|found| found.refused |= found.bytes > Some(0));
    }
}

/// Returns an error if a contradiction is `refused`, so that it cannot be said whether the model
/// fits, unless `is_allowed` is set (by `--allow-incomplete`). `profile` and `debug` are the paths
/// of the files as messages show them. The error begins with the path of the file that it is about.
pub fn check(
    all: &[Contradiction],
    [profile, debug]: [String; 2],
    is_allowed: bool,
) -> anyhow::Result<()> {
    if is_allowed {
        return Ok(());
    }
    for (file, problem, is_of_debug) in [(profile, PROFILE, false), (debug, DEBUG, true)] {
        let refused = all
            .iter()
            .filter(|found| found.refused && found.is_of_debug() == is_of_debug);
        let text = join(refused, "; ");
        if !text.is_empty() {
            let error = incomplete(problem, &text);
            return Err(anyhow::Error::from(error).context(file));
        }
    }
    Ok(())
}
