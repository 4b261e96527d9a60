//! `completions`.

use clap::CommandFactory as _;
use clap_complete::{Shell, generate};

use crate::cli::Arguments;
use crate::error::Error;
use crate::terminal::Ui;

pub(super) fn run(shell: Shell, ui: &Ui) -> Result<(), Error> {
    let mut script = Vec::new();
    generate(shell, &mut Arguments::command(), "compactctl", &mut script);
    ui.print(&String::from_utf8_lossy(&script))
}
