//! `compactctl`: reads its arguments, runs one command, and ends with the status that says how it went.

use std::process::ExitCode;

use clap::Parser as _;
use compactctl::cli::Arguments;
use compactctl::commands;
use compactctl::terminal::Ui;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let ui = Ui::of_process();
    match commands::run(&arguments, &ui) {
        Ok(done) => ExitCode::from(done.status()),
        Err(error) if error.is_closed_output() => ExitCode::SUCCESS,
        Err(error) => {
            ui.complain(&error);
            ExitCode::FAILURE
        }
    }
}
