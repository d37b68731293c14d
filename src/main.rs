//! The entry point of the command `popliner`.

use std::process::ExitCode;

fn main() -> ExitCode {
    popliner::app::main(std::env::args_os())
}
