//! The command line, as one plain struct.

use crate::model::{
    DEFAULT_INPUTS_REGEX, DEFAULT_LAYER_REGEX, LayerOptions, LayerOrder, Layerless,
};
use crate::report::Format;
use clap::{ArgAction, Parser, ValueEnum};
use regex::Regex;
use std::path::PathBuf;
use std::str::FromStr;

/// What `--help` ends with.
const AFTER_HELP: &str = r"
Several results can be asked for in one run. They come in the order of this help, --solve after
the tables and --diagnose last, and then a line '# name' stands before each.

Models that PopART outlines:
  PopART puts operations that occur several times into functions, also across layers, and then no
  layer can be told for them. Compile with the environment variable
    POPART_POPLINER_OUTLINER_REGEX='(?:^|\/)(?:[L|l]ayer|blocks|encoder)[\/_\.]?(\d+)'
  (the value of --layer-name-regex), and PopART outlines only what several IPUs would outline too.
  Set it for the compilation that records the profile, and unset it when you compile with the
  split points.

Exit codes:
  0  done, and with --solve the model fits
  1  the model does not fit
  2  wrong usage
  3  a file could not be read or understood

Results go to standard output; progress, warnings and summaries to standard error.";

/// Finds the best pipeline split points for a model on Graphcore IPUs, from
/// the files that the Poplar SDK writes when it compiles the model for one IPU.
#[derive(Debug, Clone, Parser)]
#[command(name = "popliner", version, after_help = AFTER_HELP, max_term_width = 100)]
pub struct Options {
    /// The profile that Poplar wrote (profile.pop)
    #[arg(value_name = "PROFILE")]
    pub profile: PathBuf,

    /// The debug contexts of the same compilation; without it, debug.cbor is
    /// looked for beside the profile and one folder above
    #[arg(value_name = "DEBUG")]
    pub debug: Option<PathBuf>,

    /// Find the best split points and print one JSON object for each stage
    #[arg(long, help_heading = "Results")]
    pub solve: bool,

    /// How to search: the integer program, which proves its answer, or the
    /// greedy search of the original tool
    #[arg(
        long,
        value_name = "SOLVER",
        default_value = "ilp",
        help_heading = "Results"
    )]
    pub solver: Solver,

    /// Print a row for each operation: its layer, why, its name, and the
    /// bytes that it needs, summed over tiles
    #[arg(long, help_heading = "Results")]
    pub operation_breakdown: bool,

    /// Print a row for each layer with the bytes that it needs, summed over
    /// tiles; first the operations without a layer (None). MB are 1,000,000 bytes
    #[arg(long, help_heading = "Results")]
    pub layer_breakdown: bool,

    /// Print the bytes of the whole model as one stage, and what the compiler
    /// recorded for the 10 fullest tiles
    #[arg(long, help_heading = "Results")]
    pub memory_totals: bool,

    /// Tiles for --memory-totals in place of the fullest, such as 0,7,16-19
    #[arg(
        long,
        value_name = "LIST",
        requires = "memory_totals",
        help_heading = "Results"
    )]
    pub tiles: Option<Tiles>,

    /// Print a matrix, layer by layer: bytes of the variables that both use
    #[arg(long, help_heading = "Results")]
    pub memory_affinity: bool,

    /// Print a matrix: bytes of the variables made in the row's layer and
    /// used up in the column's
    #[arg(long, help_heading = "Results")]
    pub interlayer_communication: bool,

    /// Compare what the operations explain with what the compiler recorded:
    /// programs, code, and the tile and step with the most memory
    #[arg(long, help_heading = "Results")]
    pub diagnose: bool,

    /// How tables are written
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "tsv",
        help_heading = "Results"
    )]
    pub format: TableFormat,

    /// Write the whole report as JSON, for programs; its schema is
    /// schema/report-v1.schema.json. '-' is standard output
    #[arg(long, value_name = "FILE", help_heading = "Exports")]
    pub export_json: Option<PathBuf>,

    /// Write the stages, cuts and layers as tables for a spreadsheet
    #[arg(long, value_name = "FILE", help_heading = "Exports")]
    pub export_csv: Option<PathBuf>,

    /// Write a summary for a pull request or an issue
    #[arg(long, value_name = "FILE", help_heading = "Exports")]
    pub export_markdown: Option<PathBuf>,

    /// Write the report as one page for the browser, with charts; it needs no
    /// network
    #[arg(long, value_name = "FILE", help_heading = "Exports")]
    pub export_html: Option<PathBuf>,

    /// Save the analysed model: it loads in a fraction of the time, and other
    /// regexes and orders can be tried on it
    #[arg(long, value_name = "FILE", help_heading = "Saved models")]
    pub save_to_file: Option<PathBuf>,

    /// PROFILE is a file that --save-to-file wrote
    #[arg(long, help_heading = "Saved models")]
    pub load_from_file: bool,

    /// How many IPUs there are: the most stages that a split may have
    #[arg(long, value_name = "N", default_value_t = 16, help_heading = "Limits",
          value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    pub num_ipus: usize,

    /// Bytes that a stage may take on each tile; without it, what the
    /// profile's target has
    #[arg(long, value_name = "BYTES", help_heading = "Limits",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub mem_per_tile: Option<u64>,

    /// Memory of each tile to keep free, in bytes or per cent (such as 8192 or
    /// 5%). A profile of one IPU cannot show the code for exchange between IPUs
    /// or the activations that a pipeline keeps for several batches: for
    /// training, start with 10% and compare with a compilation for all IPUs
    #[arg(
        long,
        value_name = "AMOUNT",
        default_value = "0",
        help_heading = "Limits"
    )]
    pub reserve: Reserve,

    /// What counts: all that the compiler recorded (full), or what the original
    /// tool counted (classic), which is too little for most models
    #[arg(
        long,
        value_name = "MODEL",
        default_value = "full",
        help_heading = "Limits"
    )]
    pub memory_model: Accounting,

    /// Regex that finds the layer in the names and inputs of operations; its
    /// capture groups are the layer's name
    #[arg(long, value_name = "REGEX", default_value = DEFAULT_LAYER_REGEX,
          help_heading = "Layers", value_parser = parse_regex)]
    pub layer_name_regex: Regex,

    /// Regex for the inputs of operations that belong to the first layer
    #[arg(long, value_name = "REGEX", default_value = DEFAULT_INPUTS_REGEX,
          help_heading = "Layers", value_parser = parse_regex)]
    pub inputs_regex_layer_0: Regex,

    /// Order of the layers: that of their first step, or by name with numbers
    /// compared as numbers
    #[arg(
        long,
        value_name = "ORDER",
        default_value = "steps",
        help_heading = "Layers"
    )]
    pub layer_order: Order,

    /// Where operations without a layer count, in the full memory model: each
    /// with the layer it belongs to most (home), all with the first stage, or
    /// nowhere
    #[arg(
        long,
        value_name = "PLACE",
        default_value = "home",
        help_heading = "Layers"
    )]
    pub layerless: Place,

    /// Only report errors
    #[arg(short, long, conflicts_with = "verbose", help_heading = "Messages")]
    pub quiet: bool,

    /// Say more about what is read and found; twice for still more
    #[arg(short, long, action = ArgAction::Count, help_heading = "Messages")]
    pub verbose: u8,

    /// The arguments as they were given, for the report to say
    #[arg(skip)]
    pub arguments: Vec<String>,
}

/// Values of `--solver`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Solver {
    /// The integer program.
    Ilp,
    /// The search of the original tool.
    Greedy,
}

/// Values of `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TableFormat {
    /// Columns apart by tabs.
    Tsv,
    /// Columns apart by commas.
    Csv,
}

impl From<TableFormat> for Format {
    fn from(format: TableFormat) -> Self {
        match format {
            TableFormat::Tsv => Format::Tsv,
            TableFormat::Csv => Format::Csv,
        }
    }
}

/// The tiles of `--tiles`, in the order given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tiles(pub Vec<u32>);

/// No machine has more tiles, so a longer list is a mistake.
const MOST_TILES: usize = 1 << 20;

impl FromStr for Tiles {
    type Err = String;

    fn from_str(list: &str) -> Result<Self, String> {
        let number = |text: &str| {
            let text = text.trim();
            text.parse::<u32>()
                .map_err(|_| format!("'{text}' is no tile"))
        };
        let mut tiles = Vec::new();
        for part in list.split(',') {
            let (from, to) = match part.split_once('-') {
                Some((from, to)) => (number(from)?, number(to)?),
                None => (number(part)?, number(part)?),
            };
            if from > to || tiles.len() + (to - from) as usize >= MOST_TILES {
                return Err(format!("'{part}' is no range of tiles"));
            }
            tiles.extend(from..=to);
        }
        Ok(Self(tiles))
    }
}

/// Values of `--memory-model`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Accounting {
    /// All that the compiler recorded.
    Full,
    /// What the original tool counted.
    Classic,
}

/// Values of `--layerless`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Place {
    /// With the layer that it belongs to most.
    Home,
    /// With the first stage.
    First,
    /// Nowhere.
    Ignore,
}

impl From<Place> for Layerless {
    fn from(place: Place) -> Self {
        match place {
            Place::Home => Layerless::Home,
            Place::First => Layerless::First,
            Place::Ignore => Layerless::Ignore,
        }
    }
}

/// The amount of `--reserve`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reserve {
    /// So many bytes.
    Bytes(u64),
    /// So many thousandths of a per cent.
    PerCent(u64),
}

impl Reserve {
    /// The bytes to keep free of `memory`, rounded up.
    pub fn of(self, memory: u64) -> u64 {
        match self {
            Reserve::Bytes(bytes) => bytes,
            Reserve::PerCent(thousandths) => {
                let bytes = u128::from(memory) * u128::from(thousandths);
                bytes.div_ceil(100_000) as u64
            }
        }
    }
}

impl FromStr for Reserve {
    type Err = String;

    fn from_str(amount: &str) -> Result<Self, String> {
        let wrong = || format!("'{amount}' is neither bytes nor per cent: write 8192 or 5%");
        let Some(percent) = amount.strip_suffix('%') else {
            return amount.parse().map(Reserve::Bytes).map_err(|_| wrong());
        };
        let percent: f64 = percent.trim().parse().map_err(|_| wrong())?;
        if !(0.0..100.0).contains(&percent) {
            return Err(format!("'{amount}' leaves nothing of a tile"));
        }
        Ok(Reserve::PerCent((percent * 1000.0).round() as u64))
    }
}

/// Values of `--layer-order`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// By name, with numbers compared as numbers.
    Natural,
    /// That of the first appearance in the program.
    Steps,
}

impl Options {
    /// How layers are to be found.
    pub fn layers(&self) -> LayerOptions {
        LayerOptions {
            layer_regex: self.layer_name_regex.clone(),
            inputs_regex: self.inputs_regex_layer_0.clone(),
            order: match self.layer_order {
                Order::Natural => LayerOrder::Natural,
                Order::Steps => LayerOrder::Steps,
            },
        }
    }
}

/// A regex, or the error that shows where it went wrong.
fn parse_regex(pattern: &str) -> Result<Regex, String> {
    Regex::new(pattern).map_err(|error| {
        format!(
            "{error}\n(the dialect is https://docs.rs/regex: no look-around, no backreferences)"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Options::command().debug_assert();
    }

    #[test]
    fn reserves_are_bytes_or_per_cent() {
        let bytes = |amount: &str| amount.parse::<Reserve>().map(|reserve| reserve.of(638_976));
        assert_eq!(bytes("0"), Ok(0));
        assert_eq!(bytes("8192"), Ok(8192));
        assert_eq!(bytes("5%"), Ok(31_949));
        assert_eq!(bytes("12.5 %"), Ok(79_872));
        for wrong in ["", "%", "-1", "-1%", "100%", "5 percent", "NaN%"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn lists_of_tiles() {
        let tiles = |list: &str| list.parse::<Tiles>().map(|tiles| tiles.0);
        assert_eq!(tiles("3,0, 7-9"), Ok(vec![3, 0, 7, 8, 9]));
        for wrong in ["", "a", "-1", "3-1", "1,,2", "0-4294967295"] {
            assert!(tiles(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn regexes_of_another_dialect_are_refused_by_name() {
        let error = |pattern| parse_regex(pattern).unwrap_err();
        assert!(
            error(r"layer(?=\d)").contains("look-around"),
            "{}",
            error(r"a(?=b)")
        );
        assert!(error(r"(a)\1").contains("backreferences are not supported"));
        assert!(error("layer(").contains("unclosed group"));
    }
}
