//! Makes the help of the command. `-h` prints one screen of the most important options; `--help`
//! and the manual page have all options.

use super::{Generate, Options, effects};
use crate::report::viewer;
use clap::CommandFactory;
use clap_complete::Shell;
use std::io;

/// Example commands, which are printed at the end of `-h` and at the top of `--help`.
const EXAMPLES: &str = "\
Examples:
  popliner report                                  does it fit? what next?
  popliner report --num-ipus 4 --emit popart       the split, to paste
  popliner report --solve --export-html page.html  a page to look at
  popliner amp06 --amp 0.6 --amp 0.3=amp03         the best proportion for each stage";

const REST: &str = "popliner --help has all options, how to record a profile, and the exit codes.";

/// The beginning of `--help` and of the manual page.
const LONG_ABOUT: &str = "\
Finds the best pipeline split points for a model on Graphcore IPUs, from the files that the
Poplar SDK writes when it compiles the model for one IPU. PROFILE by itself is enough: then
popliner tells you whether the model fits on one IPU, on how many it fits, and what to type next.";

/// The end of `--help`, after the table of options that act only on certain results.
const AFTER_LONG_HELP: &str = r#"
You can request several results in one run. They are printed in this order: breakdowns, totals and
matrices, --sweep, --solve, --emit, --diagnose, exports to '-', --compare. Each begins with a line
'# name'.

Recording a profile:
  Compile the model for one IPU, without pipelining or replication, with the environment variable
    POPLAR_ENGINE_OPTIONS='{"autoReport.all":"true","autoReport.directory":"./report"}'
  If the model does not fit, add "debug.allowOutOfMemory":"true". For the time of layers, add
  "profiler.includeCycleEstimates":"true".
  Record training with gradient accumulation of 2 or more and without recomputation: then the
  profile has the accumulators, and all activations that a pipeline may have to keep. popliner tells
  you how the profile was recorded. Without accumulation, it adds accumulators to all gradients,
  which is too much. With recomputation, the profile lacks the activations that were recomputed.

Models that PopART outlines:
  PopART moves operations that occur several times into functions, even across layers, and then
  they belong to no layer. To prevent that, compile with the environment variable
    POPART_POPLINER_OUTLINER_REGEX='(?:^|\/)(?:[L|l]ayer|blocks|encoder)[\/_\.]?(\d+)'
  (the value of --layer-name-regex; if layers are modules, a run that misses layers prints the
  regex for them). PopART then outlines only what it would also outline for several IPUs.
  Set it for the compilation that records the profile, and unset it when you compile with the
  split points.

Exit codes:
  0    done; with --solve, --plan, --emit, --splits, --layers-per-ipu, --fit or no option for a
       result, the model fits
  1    it does not fit; with --compare, the model fitted and no longer does
  2    wrong usage
  3    a file could not be read, understood or written, or contradicts itself enough to change the
       verdict
  4    an error in popliner itself, such as two computations of one number that disagree
  130  interrupted by Ctrl-C, SIGTERM or a hang-up, unless one of them was ignored at the start

Results go to standard output; progress, warnings and summaries to standard error."#;

impl Options {
    /// Returns the parser of the command line, with the texts of `-h` and `--help`.
    pub(crate) fn described() -> clap::Command {
        Self::command()
            .long_about(format!("{LONG_ABOUT}\n\n{EXAMPLES}"))
            .after_help(format!("{EXAMPLES}\n\n{REST}"))
            .after_long_help(format!("{}{AFTER_LONG_HELP}", effects::help()))
            .mut_args(|option| match option.get_long_help() {
                Some(help) => {
                    let Some(default) = option.get_default_values().first() else {
                        return option;
                    };
                    // In `-h`, an option has one line without room for its default value, so only
                    // `--help` shows the default.
                    let help = format!("{help}\n\n[default: {}]", default.to_string_lossy());
                    option.long_help(help).hide_default_value(true)
                }
                None => option.hide_short_help(true),
            })
    }
}

impl Generate {
    /// Returns the contents of the file that `--generate` requests.
    ///
    /// # Errors
    /// No error occurs in practice, since the text is written to memory.
    pub fn text(self) -> io::Result<Vec<u8>> {
        let mut command = Options::described();
        let mut text = Vec::new();
        let shell = match self {
            Self::Man => {
                clap_mangen::Man::new(command).render(&mut text)?;
                return Ok(text);
            }
            Self::Viewer => return Ok(viewer().into_bytes()),
            Self::CompleteBash => Shell::Bash,
            Self::CompleteZsh => Shell::Zsh,
            Self::CompleteFish => Shell::Fish,
        };
        clap_complete::generate(shell, &mut command, "popliner", &mut text);
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of `-h` must fit on one screen of a terminal with 80 columns, and must have the
    /// most important options.
    #[test]
    fn one_screen_has_what_is_most_needed() {
        let mut command = Options::described().term_width(80);
        let screen = command.render_help().to_string();
        assert!(screen.lines().count() <= 40, "{screen}");
        assert!(
            screen.lines().all(|line| line.chars().count() <= 80),
            "{screen}"
        );
        for option in command.get_arguments() {
            let id = option.get_id();
            let begin = match option.get_long() {
                Some(long) => format!("--{long}"),
                None => id.to_string().to_uppercase(),
            };
            let has_line =
                |line: &str| line.trim_start_matches([' ', '<', '[']).starts_with(&begin);
            let is_wanted = option.get_long_help().is_some();
            assert_eq!(
                screen.lines().any(has_line),
                is_wanted,
                "{begin} in {screen}"
            );
        }
        let whole = command.render_long_help().to_string();
        let first = |part| whole.find(part).expect("a part");
        let order = [
            "Examples:",
            "--solve",
            "--num-ipus <N>",
            "--schedule <",
            "Exit codes:",
        ];
        assert!(order.map(first).is_sorted(), "{whole}");
        let default = "\n          [default: (word_embeddings";
        assert!(whole.contains(default), "{whole}");
    }
}
