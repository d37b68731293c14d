//! The command line, as one plain struct.

mod command;
mod effects;
mod search;
mod values;

pub use command::Command;
pub use effects::{EFFECTS, Effect, Idle};
use effects::{OF_SPLITS, SPLITS};
pub use search::{
    Bandwidth, LayerNames, LayersPerIpu, MemPerTile, Milliseconds, NumIpus, Pin, Together,
};
pub use values::{Generate, OrAuto, Tiles, or_auto};

use crate::memory::{Accumulator, PipelineOptions, Recompute, Schedule, StatePlace, Storage};
use crate::message::BadValue;
use crate::model::{
    DEFAULT_INPUTS_REGEX, DEFAULT_LAYER_REGEX, LayerOptions, LayerOrder, Layerless, OutOn,
    PlacementOptions, Rules, Untied,
};
use crate::report::emit::{Form, ModuleName, ModuleTemplate};
use crate::report::{Format, Units};
use crate::search::{Reserve, Solver};
use crate::solve::Goal;
use crate::time::StepOptions;
use clap::{ArgAction, CommandFactory, Parser};
use regex::Regex;
use std::path::PathBuf;

/// More micro-batches, samples or replicas are a mistake.
const MAX_BATCHES: u64 = 1 << 32;

/// What `--help` ends with.
const AFTER_HELP: &str = r#"
Several results can be asked for in one run. The breakdowns, totals and matrices come first, then
--sweep, --solve, --emit, --diagnose, exports to '-' and --compare. Then a line '# name' stands
before each.

Recording a profile:
  Compile the model for one IPU, without pipelining or replication, with the environment variable
    POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true","autoReport.directory":"./report"}'
  Add "debug.allowOutOfMemory":"true" when it does not fit, and for --objective cycles
  "profiler.includeCycleEstimates":"true".
  Record training with gradient accumulation of 2 or more and without recomputation: then the
  profile has the accumulators, and all activations that a pipeline may have to keep. The run says
  which of both it met. Without accumulation, accumulators are added beside all gradients, which
  is too much; with recomputation, only what that keeps is known to be kept.

Models that PopART outlines:
  PopART puts operations that occur several times into functions, also across layers, and then no
  layer can be told for them. Compile with the environment variable
    POPART_POPLINER_OUTLINER_REGEX='(?:^|\/)(?:[L|l]ayer|blocks|encoder)[\/_\.]?(\d+)'
  (the value of --layer-name-regex), and PopART outlines only what several IPUs would outline too.
  Set it for the compilation that records the profile, and unset it when you compile with the
  split points.

Exit codes:
  0    done; with --solve, --emit, --check-splits, --layers-per-ipu or --fit, the model fits
  1    it does not fit; with --compare, it fitted and no longer does
  2    wrong usage
  3    a file could not be read, understood or written
  4    an error in popliner itself, such as two ways to the same number that disagree
  130  interrupted

Results go to standard output; progress, warnings and summaries to standard error."#;

/// What a compilation is not judged by, beside splits and what acts on them alone.
const FIT_KNOWS_NO: &[&str] = &[
    "operation_breakdown",
    "layer_breakdown",
    "memory_totals",
    "memory_affinity",
    "interlayer_communication",
    "diagnose",
    "list_layers",
    "save_to_file",
    "load_from_file",
    "memory_model",
    "out_on",
    "layerless",
    "objective",
];

/// Finds the best pipeline split points for a model on Graphcore IPUs, from
/// the files that the Poplar SDK writes when it compiles the model for one IPU.
#[derive(Debug, Clone, Parser)]
#[command(name = "popliner", version, max_term_width = 100)]
pub struct Options {
    /// The profile that Poplar wrote (profile.pop), the report folder with it, or a
    /// model that --save-to-file wrote
    #[arg(value_name = "PROFILE")]
    pub profile: PathBuf,

    /// The debug contexts of the same compilation; without it, debug.cbor is
    /// looked for beside the profile and one folder above
    #[arg(value_name = "DEBUG")]
    pub debug: Option<PathBuf>,

    /// Take DEBUG also where it is damaged or belongs to another compilation than the
    /// profile; then messages and reports warn of that
    #[arg(long, help_heading = "Layers")]
    pub trust_debug_info: bool,

    /// Show what can be shown of a profile that contradicts itself, such as one
    /// without some of its rows. There is no verdict on it: the exit code is 3
    #[arg(long, help_heading = "Results")]
    pub allow_incomplete: bool,

    /// Find the best split points and print one JSON object for each stage; the
    /// exit code says whether the model fits
    #[arg(long, help_heading = "Results")]
    pub solve: bool,

    /// Find the best split points, as --solve does, and print them as
    /// configuration: layers_per_ipu (YAML), lines for PopTorch, PopART or Keras
    /// (Python), or pipeline_splits (YAML). May be given several times
    #[arg(long, value_name = "FORM", help_heading = "Results")]
    pub emit: Vec<Form>,

    /// What the model's code calls the module of a layer, with {} for the layer,
    /// such as 'model.bert.encoder.layer[{}]'; --emit pipeline-splits
    /// needs it, poptorch has placeholders without it, and keras can use it
    #[arg(long, value_name = "TEMPLATE", help_heading = "Results")]
    pub module: Option<ModuleTemplate>,

    /// What the model's code calls the first module that runs before the layers,
    /// such as model.bert.embeddings: where a stage begins with In, --emit begins
    /// a block there
    #[arg(long, value_name = "NAME", help_heading = "Results")]
    pub module_in: Option<ModuleName>,

    /// The same for the first module that runs after the layers, such as
    /// model.cls: where a stage begins with Out, or Out runs on the first IPU,
    /// --emit begins a block there
    #[arg(long, value_name = "NAME", help_heading = "Results")]
    pub module_out: Option<ModuleName>,

    /// Print a row for each number of IPUs up to --num-ipus: does the model fit,
    /// and what does its best split need
    #[arg(long, help_heading = "Results")]
    pub sweep: bool,

    /// Print the whole configurations that fit on up to --num-ipus IPUs: how many IPUs,
    /// which schedule, what to recompute and where to split, so that none fits with fewer
    /// IPUs, a shorter step and less memory. The recommended one comes first, each with the
    /// command that gives it alone; the exit code says whether any fits
    #[arg(long, help_heading = "Results")]
    pub plan: bool,

    /// Say on standard error for each stage what takes its memory, and for each
    /// cut what moving a layer over it would do
    #[arg(long, help_heading = "Results")]
    pub explain: bool,

    /// Print a row for each operation: its layer, why, its name, the bytes that
    /// it needs, summed over tiles, in which places it counts by which rule, and
    /// its pass (forward, backward, update, or both)
    #[arg(long, help_heading = "Results")]
    pub operation_breakdown: bool,

    /// Print a row for each layer with the bytes that it needs, summed over
    /// tiles; first In, what runs before the layers, and last Out, what runs after
    /// them (None in the classic memory model). MB are 1,000,000 bytes
    #[arg(long, help_heading = "Results")]
    pub layer_breakdown: bool,

    /// Print the bytes of the whole model as one stage, and what the compiler
    /// recorded for the 10 fullest tiles
    #[arg(long, help_heading = "Results")]
    pub memory_totals: bool,

    /// Tiles for --memory-totals in place of the fullest, such as 0,7,16-19
    #[arg(long, value_name = "LIST", help_heading = "Results")]
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

    /// Judge a profile as it was compiled, for any number of IPUs: for each IPU its
    /// fullest tile, the tiles over, and what they hold. The exit code says whether
    /// all fit. DEBUG is only used to tell which layers an IPU has
    #[arg(long, help_heading = "Compiled pipelines", conflicts_with_all = [SPLITS, OF_SPLITS, FIT_KNOWS_NO].concat())]
    pub fit: bool,

    /// Compare the compilation, stage by stage, with the report that --export-json
    /// wrote when the split was predicted
    #[arg(long, value_name = "FILE", help_heading = "Compiled pipelines")]
    pub against: Option<PathBuf>,

    /// Write what each IPU needed beyond what was predicted, for --calibration
    #[arg(long, value_name = "FILE", help_heading = "Compiled pipelines")]
    pub calibrate: Option<PathBuf>,

    /// Add to predictions what --calibrate found, in place of --reserve: the split
    /// that was compiled is then predicted as it was recorded. For other splits it is
    /// an estimate, by whether an IPU is the first, the last or between
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "reserve",
        help_heading = "Compiled pipelines"
    )]
    pub calibration: Option<PathBuf>,

    /// How results are written
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "auto",
        help_heading = "Results"
    )]
    pub format: Format,

    /// Write the whole report as JSON, for programs; its schema is
    /// schema/report-v2.schema.json. '-' is standard output
    #[arg(long, value_name = "FILE", help_heading = "Exports")]
    pub export_json: Option<PathBuf>,

    /// Write a table of the stages, with the bytes over each cut, and one of the
    /// layers, for a spreadsheet
    #[arg(long, value_name = "FILE", help_heading = "Exports")]
    pub export_csv: Option<PathBuf>,

    /// Write a summary in Markdown, for a pull request or an issue
    #[arg(long, value_name = "FILE", help_heading = "Exports")]
    pub export_markdown: Option<PathBuf>,

    /// Write the report as one page for the browser, with charts; it needs no
    /// network
    #[arg(long, value_name = "FILE", help_heading = "Exports")]
    pub export_html: Option<PathBuf>,

    /// Compare with an earlier report, which --export-json wrote with --solve:
    /// print the verdicts, stages, and layers that changed, and exit with 1 if
    /// the model fitted and no longer does
    #[arg(long, value_name = "FILE", help_heading = "Exports")]
    pub compare: Option<PathBuf>,

    /// Save the analysed model: it loads in a fraction of the time, and other
    /// layers, limits and constraints can be tried on it
    #[arg(long, value_name = "FILE", help_heading = "Saved models")]
    pub save_to_file: Option<PathBuf>,

    /// Check that PROFILE is a model that --save-to-file wrote, which is loaded
    /// without this, too
    #[arg(long, help_heading = "Saved models")]
    pub load_from_file: bool,

    /// How many IPUs there are: the maximum number of stages in a split; or auto for the
    /// fewest on which the model fits, up to 64 (PopTorch takes powers of 2 only). Without it
    /// auto, or as many as a given split has; 16 with --solver greedy and --memory-model classic
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub num_ipus: Option<NumIpus>,

    /// Bytes that a stage may take on each tile; without it, what the
    /// profile's target has. A list, such as 600000,638976,500000, has one
    /// amount for each IPU, and as many as there are IPUs
    #[arg(long, value_name = "BYTES", help_heading = "Limits")]
    pub mem_per_tile: Option<MemPerTile>,

    /// Memory of each tile to keep free, in bytes or per cent (such as 8192 or
    /// 5%). A profile of one IPU cannot show the code for exchange between IPUs
    /// and for host exchange at the ends of a pipeline: start with 5% and compare
    /// with a compilation for all IPUs
    #[arg(
        long,
        value_name = "AMOUNT",
        default_value = "0",
        help_heading = "Limits"
    )]
    pub reserve: Reserve,

    /// The pipeline that the model will be compiled for, in which stages keep
    /// copies for the micro-batches under way: that of PopART and PopTorch
    /// (popart), of TensorFlow (tf-grouped, tf-interleaved), one stage after the
    /// other (sequential), or none, which weighs stages as parts of the one-IPU
    /// compilation. auto takes that of the framework for training, and none for
    /// inference, plain Poplar and PopXL
    #[arg(long, value_name = "SCHEDULE", default_value = "auto",
          help_heading = "Pipeline", value_parser = or_auto::<Schedule>())]
    pub schedule: OrAuto<Schedule>,

    /// What the pipeline computes again in the backward pass instead of keeping
    /// it: nothing (none), whole stages (stage) or each layer (layer). auto is
    /// layer where the model marks checkpoints, else stage
    #[arg(long, value_name = "WHAT", default_value = "auto",
          help_heading = "Pipeline", value_parser = or_auto::<Recompute>())]
    pub recompute: OrAuto<Recompute>,

    /// The elements of gradient accumulators, which are added where the profile
    /// was recorded without them. Training is best recorded with gradient
    /// accumulation of 2 or more and without recomputation: then the profile has
    /// all accumulators and activations itself
    #[arg(
        long,
        value_name = "ELEMENTS",
        default_value = "as-weight",
        help_heading = "Pipeline"
    )]
    pub accumulator: Accumulator,

    /// Where the state of the optimizer is between two updates: on the chip, off-chip in the
    /// host's memory, shared out among replicas (sharded), or both; auto takes the first that
    /// fits of on-chip, sharded, off-chip and sharded-off-chip [default: on-chip, and --plan
    /// tries all]
    #[arg(long, value_name = "STATE", help_heading = "Pipeline", value_parser = or_auto::<StatePlace>())]
    pub optimizer_state: Option<OrAuto<StatePlace>>,

    /// Where accumulators of gradients are between two micro-batches
    #[arg(
        long,
        value_name = "WHERE",
        default_value = "on-chip",
        help_heading = "Pipeline"
    )]
    pub accumulators: Storage,

    /// Where copies for the micro-batches under way are; off-chip only in TensorFlow's
    /// schedules
    #[arg(
        long,
        value_name = "WHERE",
        default_value = "on-chip",
        help_heading = "Pipeline"
    )]
    pub stash: Storage,

    /// The micro-batches of a step: gradient accumulation in training. By default the
    /// fewest that the schedule allows, since a profile does not tell its own
    #[arg(long, value_name = "G", help_heading = "Time", value_parser = clap::value_parser!(u64).range(1..=MAX_BATCHES))]
    pub micro_batches: Option<u64>,

    /// The samples of a micro-batch, for samples a second
    #[arg(long, value_name = "B", help_heading = "Time", value_parser = clap::value_parser!(u64).range(1..=MAX_BATCHES))]
    pub micro_batch: Option<u64>,

    /// How many replicas of the model run side by side, for samples a second
    #[arg(long, value_name = "R", default_value = "1", help_heading = "Time", value_parser = clap::value_parser!(u64).range(1..=MAX_BATCHES))]
    pub replicas: u64,

    /// What an IPU sends to another in a second, and receives from it, in GB
    /// (1,000,000,000 bytes)
    #[arg(long, value_name = "GB", default_value = "29", help_heading = "Time")]
    pub ipu_link_bandwidth: Bandwidth,

    /// What an IPU loads in a second from memory outside the IPUs, and stores there, in GB.
    /// There is no usual number: without it, the bytes are shown, and no time for them
    #[arg(long, value_name = "GB", help_heading = "Time")]
    pub streaming_bandwidth: Option<Bandwidth>,

    /// What a step may take, in milliseconds; the exit code is 1 where the split takes
    /// longer
    #[arg(long, value_name = "MS", help_heading = "Time")]
    pub max_step_ms: Option<Milliseconds>,

    /// What counts: all that the compiler recorded (full), or what the original
    /// tool counted (classic), which is too little for most models
    #[arg(
        long,
        value_name = "MODEL",
        default_value = "full",
        help_heading = "Limits"
    )]
    pub memory_model: Rules,

    /// How to search: the integer program, which proves its answer, or the
    /// greedy search of the original tool, which knows neither objectives nor
    /// constraints
    #[arg(
        long,
        value_name = "SOLVER",
        default_value = "ilp",
        help_heading = "Search"
    )]
    pub solver: Solver,

    /// What makes a split that fits the best one
    #[arg(
        long,
        value_name = "OBJECTIVE",
        default_value = "peak",
        help_heading = "Search"
    )]
    pub objective: Goal,

    /// Keep this layer on this IPU; IPUs are counted from 0, and each has one
    /// stage. In means what runs before the layers, Out what runs after them
    /// (None for both in the classic memory model), here and wherever layers are
    /// named. May be given several times, like --together, --cut-after and
    /// --no-cut-after
    #[arg(long, value_name = "LAYER=IPU", help_heading = "Search")]
    pub pin: Vec<Pin>,

    /// Keep these two layers, and so all between them, on one IPU
    #[arg(long, value_name = "LAYER,LAYER", help_heading = "Search")]
    pub together: Vec<Together>,

    /// End a stage with this layer
    #[arg(long, value_name = "LAYER", help_heading = "Search")]
    pub cut_after: Vec<String>,

    /// End no stage with this layer
    #[arg(long, value_name = "LAYER", help_heading = "Search")]
    pub no_cut_after: Vec<String>,

    /// Judge this split beside the best one: the last layer of each stage but
    /// the final one, such as In,9,16. A comma in a name is written '\,'
    #[arg(long, value_name = "LAYERS", help_heading = "Search")]
    pub check_splits: Option<LayerNames>,

    /// Judge the split with these numbers of layers on the IPUs, such as
    /// 3,7,7,7, beside the best one. 0 first is an IPU with In alone, 0 last
    /// one with Out alone
    #[arg(
        long,
        value_name = "COUNTS",
        conflicts_with = "check_splits",
        help_heading = "Search"
    )]
    pub layers_per_ipu: Option<LayersPerIpu>,

    /// On which IPU Out runs, what comes after the layers (head and loss): by
    /// default (auto) the last, but the first where it shares a weight with In,
    /// what comes before them
    #[arg(
        long,
        value_name = "IPU",
        default_value = "auto",
        help_heading = "Search"
    )]
    pub out_on: OutOn,

    /// Let the layers that share this weight be on several IPUs, each with a
    /// weight of its own; all for every weight. Shows what untying it in the
    /// model would bring: as it is, no framework runs such a split. May be given
    /// several times
    #[arg(long, value_name = "WEIGHT", help_heading = "Search")]
    pub untie: Vec<String>,

    /// Write the integer program of the objective in the LP format of CPLEX,
    /// for another solver; what it finds should be the same number. '-' is
    /// standard output
    #[arg(long, value_name = "FILE", help_heading = "Search")]
    pub export_lp: Option<PathBuf>,

    /// Print a row for each layer: its operations, bytes, first and last step and
    /// names; then the largest operations without a layer. Where none is found, see
    /// what --layer-name-regex could be
    #[arg(long, help_heading = "Layers")]
    pub list_layers: bool,

    /// Regex that finds the layer in the names and inputs of operations; its
    /// capture groups are the layer's name. auto finds a regex itself, by numbers in
    /// the names that look like those of layers
    #[arg(long, value_name = "REGEX", default_value = DEFAULT_LAYER_REGEX,
          help_heading = "Layers", value_parser = regex_or_auto)]
    pub layer_name_regex: OrAuto<Regex>,

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
    pub layer_order: LayerOrder,

    /// Where operations without a layer count, in the full memory model: each in
    /// In, in Out or in the layers that it belongs to, all in one place before the
    /// layers (None), or nowhere
    #[arg(
        long,
        value_name = "PLACE",
        default_value = "assign",
        help_heading = "Layers"
    )]
    pub layerless: Layerless,

    /// Print a manual page, or completions for a shell; needs no PROFILE, and
    /// nothing else goes with it
    #[arg(
        long,
        value_name = "WHAT",
        exclusive = true,
        help_heading = "Installation"
    )]
    pub generate: Option<Generate>,

    /// In what units standard error gives amounts, rounded up to tenths; auto
    /// takes the largest that goes with them. Results on standard output are in
    /// bytes
    #[arg(
        long,
        value_name = "UNITS",
        default_value = "bytes",
        help_heading = "Messages"
    )]
    pub units: Units,

    /// Say only errors and warnings: a verdict may hang on any of these
    #[arg(short, long, conflicts_with = "verbose", help_heading = "Messages")]
    pub quiet: bool,

    /// Say more about what is read and found; twice for still more
    #[arg(short, long, action = ArgAction::Count, help_heading = "Messages")]
    pub verbose: u8,

    /// The arguments as they were given, for the report to say
    #[arg(skip)]
    pub arguments: Vec<String>,

    /// Those of them that say what is split and what a split must keep
    #[arg(skip)]
    pub question: Vec<String>,

    /// The first option that acts on nothing that is requested
    #[arg(skip)]
    pub idle: Option<Idle>,

    /// Is no result requested? Then the answer is whether the model fits, and how
    #[arg(skip)]
    pub asks_nothing: bool,
}

impl Options {
    /// The command line with its whole help.
    pub(crate) fn described() -> clap::Command {
        let command = Options::command();
        command.after_help(format!("{}{AFTER_HELP}", effects::help()))
    }

    /// The forms in which the split is to be printed, each once.
    pub fn forms(&self) -> Vec<Form> {
        let mut forms = Form::ALL.to_vec();
        forms.retain(|form| self.emit.contains(form));
        forms
    }

    /// Is a split to be found?
    pub fn wants_split(&self) -> bool {
        self.wants_verdict() || self.plan || self.explain || self.compare.is_some()
    }

    /// Does the exit code say whether the model fits? With `--compare` alone
    /// it says whether it still does.
    pub fn wants_verdict(&self) -> bool {
        self.solve || !self.emit.is_empty() || self.is_given()
    }

    /// Is a split given, to be judged?
    pub fn is_given(&self) -> bool {
        self.check_splits.is_some() || self.layers_per_ipu.is_some()
    }

    /// Must the ranges of layers be weighed?
    pub fn wants_search(&self) -> bool {
        self.wants_split() || self.sweep || self.export_lp.is_some()
    }

    /// Is anything requested that standard output does not show?
    pub fn wants_anything_else(&self) -> bool {
        self.wants_report() || self.wants_search() || self.save_to_file.is_some()
    }

    /// Does the command line name no result at all?
    pub fn is_without_result(&self) -> bool {
        let shows_model = [
            self.fit,
            self.operation_breakdown,
            self.layer_breakdown,
            self.memory_totals,
            self.memory_affinity,
            self.interlayer_communication,
            self.diagnose,
            self.list_layers,
        ];
        !shows_model.contains(&true) && !self.wants_anything_else()
    }

    /// Is there any constraint that a split must keep?
    pub fn has_constraints(&self) -> bool {
        !(self.pin.is_empty()
            && self.together.is_empty()
            && self.cut_after.is_empty()
            && self.no_cut_after.is_empty())
    }

    /// Does anything need the report?
    pub fn wants_report(&self) -> bool {
        let exports = [
            &self.export_json,
            &self.export_csv,
            &self.export_markdown,
            &self.export_html,
        ];
        exports.iter().any(|file| file.is_some()) || self.compare.is_some() || self.explain
    }

    /// Is a report written with which other splits can be tried? The greedy search judges
    /// no split but its own.
    pub fn tries_splits(&self) -> bool {
        let has_tools = self.export_html.is_some() || self.export_json.is_some();
        has_tools && self.wants_split() && self.solver == Solver::Ilp
    }

    /// Is the layer regex to be found?
    pub fn finds_layers_itself(&self) -> bool {
        matches!(self.layer_name_regex, OrAuto::Auto)
    }

    /// What was requested of the pipeline.
    pub fn pipeline(&self) -> PipelineOptions {
        PipelineOptions {
            schedule: self.schedule.given(),
            recompute: self.recompute.given(),
            accumulator: self.accumulator,
            state: self.optimizer_state.and_then(OrAuto::given),
            tries_states: self.optimizer_state == Some(OrAuto::Auto),
            accumulators: self.accumulators,
            stash: self.stash,
            replicas: self.replicas,
        }
    }

    /// What a step depends on beside the cycles of the layers.
    pub fn step(&self) -> StepOptions {
        StepOptions {
            micro_batches: self.micro_batches,
            link_bandwidth: self.ipu_link_bandwidth.0,
            micro_batch: self.micro_batch,
            replicas: self.replicas,
            streaming_bandwidth: self.streaming_bandwidth.map(|own| own.0),
            max_nanoseconds: self.max_step_ms.map(|most| most.nanoseconds()),
        }
    }

    /// Does any option mean nothing without cycles? Its name.
    pub fn needing_cycles(&self) -> Option<String> {
        let objective = format!("--objective {}", self.objective.key());
        let asked = [
            (self.objective.needs_cycles(), &*objective),
            (self.micro_batches.is_some(), "--micro-batches"),
            (self.micro_batch.is_some(), "--micro-batch"),
            (self.streaming_bandwidth.is_some(), "--streaming-bandwidth"),
            (self.max_step_ms.is_some(), "--max-step-ms"),
        ];
        let first = asked.into_iter().find(|(is_asked, _)| *is_asked);
        first.map(|(_, option)| option.to_string())
    }

    /// Where operations without a layer count.
    pub fn placement(&self) -> PlacementOptions {
        PlacementOptions {
            layerless: self.layerless,
            out_on: self.out_on,
            untie: match self.untie.as_slice() {
                [] => Untied::Nothing,
                names if names.iter().any(|name| name == "all") => Untied::All,
                names => Untied::Weights(names.to_vec()),
            },
        }
    }

    /// How layers are to be found, with the regex that was given or the default in
    /// place of `auto`.
    pub fn layers(&self) -> LayerOptions {
        let given = self.layer_name_regex.clone().given();
        LayerOptions {
            layer_regex: given.unwrap_or_else(|| LayerOptions::default().layer_regex),
            inputs_regex: self.inputs_regex_layer_0.clone(),
            order: self.layer_order,
        }
    }
}

/// `auto` or a regex.
fn regex_or_auto(value: &str) -> Result<OrAuto<Regex>, BadValue> {
    if value == "auto" {
        return Ok(OrAuto::Auto);
    }
    parse_regex(value).map(OrAuto::Given)
}

/// A regex, or the error that shows where it went wrong.
fn parse_regex(pattern: &str) -> Result<Regex, BadValue> {
    Regex::new(pattern).map_err(|error| {
        // Only the message itself is to begin like an error.
        let error = error.to_string().replace("\nerror: ", "\n");
        BadValue::new(format!(
            "popliner cannot read it; write it in the dialect of https://docs.rs/regex, without \
             look-around and backreferences:\n{error}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Options::command().debug_assert();
    }

    #[test]
    fn regexes_of_another_dialect_are_refused_by_name() {
        let error = |pattern| parse_regex(pattern).unwrap_err().to_string();
        assert!(
            error(r"layer(?=\d)").contains("look-around"),
            "{}",
            error(r"a(?=b)")
        );
        assert!(error(r"(a)\1").contains("backreferences are not supported"));
        assert!(error("layer(").contains("unclosed group"));
    }
}
