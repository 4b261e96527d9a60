//! What the process is attached to, and the few words that go to stderr.

use std::env;
use std::error::Error as _;
use std::io::{self, IsTerminal, Write};

use crate::error::Error;
use crate::table::clean;

/// Columns when neither a terminal nor `COLUMNS` says.
const WIDTH: usize = 100;
/// Rows when nothing says.
const HEIGHT: usize = 50;

/// How text is set off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Paint {
    /// Not at all.
    #[default]
    Plain,
    /// Headings.
    Bold,
    /// What matters less.
    Dim,
    /// What goes.
    Red,
    /// What is cut.
    Yellow,
    /// What stays.
    Green,
}

/// What is known of stdout and stderr.
#[derive(Debug, Clone, Copy)]
pub struct Ui {
    /// Stdout is a terminal.
    pub is_live: bool,
    /// Stdout takes colour.
    pub colour: bool,
    /// Columns of stdout.
    pub width: usize,
    /// Rows of stdout.
    pub height: usize,
    stderr_colour: bool,
}

impl Ui {
    /// Looks at this process.
    #[must_use]
    pub fn of_process() -> Self {
        let set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
        let may_colour = !set("NO_COLOR") && env::var_os("TERM").is_none_or(|term| term != "dumb");
        let stdout = io::stdout();
        let is_live = stdout.is_terminal();
        let size = is_live.then(|| rustix::termios::tcgetwinsize(&stdout).ok()).flatten();
        let number = |name| env::var(name).ok()?.parse::<usize>().ok().filter(|number| *number > 0);
        let told = |seen: Option<u16>, name| match seen {
            Some(seen) if seen > 0 => Some(usize::from(seen)),
            _ => number(name),
        };
        Self {
            is_live,
            colour: may_colour && is_live,
            width: told(size.map(|size| size.ws_col), "COLUMNS").unwrap_or(WIDTH).max(40),
            height: told(size.map(|size| size.ws_row), "LINES").unwrap_or(HEIGHT).max(10),
            stderr_colour: may_colour && io::stderr().is_terminal(),
        }
    }

    /// Without a terminal, as for a file.
    #[must_use]
    pub fn plain(width: usize) -> Self {
        Self { is_live: false, colour: false, width, height: HEIGHT, stderr_colour: false }
    }

    /// Sets text off, where colour is taken.
    #[must_use]
    pub fn paint(&self, paint: Paint, text: &str) -> String {
        paint_if(self.colour, paint, text)
    }

    /// Writes to stdout.
    ///
    /// # Errors
    /// It does not take it.
    pub fn print(&self, text: &str) -> Result<(), Error> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        Ok(out.flush()?)
    }

    /// Writes one line of JSON to stdout.
    ///
    /// # Errors
    /// Stdout does not take it.
    pub fn print_json(&self, value: &impl serde::Serialize) -> Result<(), Error> {
        let mut out = io::BufWriter::new(io::stdout().lock());
        serde_json::to_writer(&mut out, value).map_err(io::Error::from)?;
        out.write_all(b"\n")?;
        Ok(out.flush()?)
    }

    /// Says why a command failed.
    pub fn complain(&self, error: &Error) {
        self.word("error", Paint::Red, &error.to_string());
        let mut cause = error.source();
        while let Some(error) = cause {
            self.word("caused by", Paint::Plain, &error.to_string());
            cause = error.source();
        }
        if let Some(hint) = error.hint() {
            self.hint(&hint);
        }
    }

    /// Says what could be done next.
    pub fn hint(&self, text: &str) {
        self.word("hint", Paint::Green, text);
    }

    /// Says something that is good to know.
    pub fn note(&self, text: &str) {
        self.word("note", Paint::Plain, text);
    }

    /// Says that something is not as it should be.
    pub fn warn(&self, text: &str) {
        self.word("warning", Paint::Yellow, text);
    }

    fn word(&self, label: &str, paint: Paint, text: &str) {
        let label = paint_if(self.stderr_colour, paint, label);
        // When stderr is gone too there is nobody left to tell.
        let _gone = writeln!(io::stderr().lock(), "{label}: {}", clean(text));
    }
}

fn paint_if(colour: bool, paint: Paint, text: &str) -> String {
    let code = match paint {
        Paint::Plain => return text.to_owned(),
        Paint::Bold => 1,
        Paint::Dim => 2,
        Paint::Red => 31,
        Paint::Yellow => 33,
        Paint::Green => 32,
    };
    if colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_only_where_it_is_taken() {
        assert_eq!(Ui::plain(80).paint(Paint::Red, "x"), "x");
        let live = Ui { colour: true, ..Ui::plain(80) };
        assert_eq!(live.paint(Paint::Red, "x"), "\u{1b}[31mx\u{1b}[0m");
        assert_eq!(live.paint(Paint::Plain, "x"), "x");
    }
}
