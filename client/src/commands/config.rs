//! `config show`.

use serde::Serialize;

use super::configuration;
use crate::error::Error;
use crate::table::{Align, Table};
use crate::terminal::{Paint, Ui};

#[derive(Serialize)]
struct Shown {
    name: &'static str,
    /// As TOML.
    value: String,
    origin: String,
}

pub(super) fn show(origin: bool, json: bool, ui: &Ui) -> Result<(), Error> {
    let shown: Vec<Shown> = configuration(ui)?
        .resolved
        .show()
        .into_iter()
        .map(|row| Shown { name: row.name, value: row.value, origin: row.origin.to_string() })
        .collect();
    if json {
        return ui.print_json(&shown);
    }
    let mut columns = vec![("setting", Align::Left), ("value", Align::Left)];
    if origin {
        columns.push(("from", Align::Left));
    }
    let mut table = Table::new(&columns, 1);
    for Shown { name, value, origin: from } in shown {
        let mut cells = vec![name.to_owned(), value];
        if origin {
            cells.push(from);
        }
        table.row(cells, Paint::Plain);
    }
    ui.print(&table.draw(ui))
}
