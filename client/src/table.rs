//! Tables for people: columns as wide as their content, one of which gives way.

use std::borrow::Cow;

use crate::terminal::{Paint, Ui};

const GAP: usize = 2;
const INDENT: usize = 2;
/// A column that gives way keeps at least so many columns.
const LEAST: usize = 12;

/// On which side text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A table.
#[derive(Debug)]
pub struct Table {
    columns: Vec<(&'static str, Align)>,
    /// The column that is shortened when a row does not fit.
    gives_way: usize,
    rows: Vec<(Vec<String>, Paint)>,
}

impl Table {
    /// A table with titles; the column with index `gives_way` is shortened where a row does not fit.
    #[must_use]
    pub fn new(columns: &[(&'static str, Align)], gives_way: usize) -> Self {
        Self { columns: columns.to_vec(), gives_way, rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>, paint: Paint) {
        let cells = cells.into_iter().map(|cell| clean(&cell).into_owned()).collect();
        self.rows.push((cells, paint));
    }

    /// The table as lines.
    #[must_use]
    pub fn draw(&self, ui: &Ui) -> String {
        let mut widths: Vec<usize> = self.columns.iter().map(|(title, _)| width(title)).collect();
        for (cells, _) in &self.rows {
            for (wide, cell) in widths.iter_mut().zip(cells) {
                *wide = (*wide).max(width(cell));
            }
        }
        let whole = INDENT + widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        if let Some(wide) = widths.get_mut(self.gives_way) {
            *wide = wide.saturating_sub(whole.saturating_sub(ui.width)).max(LEAST.min(*wide));
        }
        let titles = self.columns.iter().map(|(title, _)| *title);
        let mut text = ui.paint(Paint::Dim, &self.line(titles, &widths));
        text.push('\n');
        for (cells, paint) in &self.rows {
            let line = self.line(cells.iter().map(String::as_str), &widths);
            text.push_str(&ui.paint(*paint, &line));
            text.push('\n');
        }
        text
    }

    fn line<'a>(&self, cells: impl Iterator<Item = &'a str>, widths: &[usize]) -> String {
        let mut line = " ".repeat(INDENT);
        for (at, ((cell, wide), (_, align))) in cells.zip(widths).zip(&self.columns).enumerate() {
            if at > 0 {
                line.push_str(&" ".repeat(GAP));
            }
            let cell = shorten(cell, *wide);
            let room = " ".repeat(wide.saturating_sub(width(&cell)));
            match align {
                Align::Left => line.extend([&*cell, &room]),
                Align::Right => line.extend([&*room, &cell]),
            }
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// Text that cannot steer a terminal: what would is replaced.
#[must_use]
pub fn clean(text: &str) -> Cow<'_, str> {
    let steers = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if text.contains(steers) {
        Cow::Owned(text.chars().map(|c| if steers(c) { '\u{fffd}' } else { c }).collect())
    } else {
        Cow::Borrowed(text)
    }
}

/// The beginning of a text that is too wide, with a mark.
#[must_use]
pub fn shorten(text: &str, wide: usize) -> Cow<'_, str> {
    if width(text) <= wide {
        return Cow::Borrowed(text);
    }
    let mut short = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += char_width(c);
        if used > wide {
            break;
        }
        short.push(c);
    }
    short.push('…');
    Cow::Owned(short)
}

/// Columns that a text takes.
#[must_use]
pub fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

fn char_width(c: char) -> usize {
    match u32::from(c) {
        0x300..=0x36f | 0x200b..=0x200d | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f
        | 0x2e80..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1faff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table =
            Table::new(&[("id", Align::Left), ("chars", Align::Right), ("why", Align::Left)], 2);
        table.row(vec!["a".into(), "1,000".into(), "short".into()], Paint::Plain);
        table.row(
            vec!["日本".into(), "7".into(), "long enough to be cut somewhere".into()],
            Paint::Red,
        );
        table
    }

    #[test]
    fn columns_are_as_wide_as_their_content() {
        let expected = "  id    chars  why\n  a     1,000  short\n  日本      7  long enough to be cut somewhere\n";
        assert_eq!(table().draw(&Ui::plain(80)), expected);
    }

    #[test]
    fn one_column_gives_way() {
        let drawn = table().draw(&Ui::plain(30));
        assert!(drawn.lines().all(|line| width(line) <= 30), "{drawn}");
        assert!(drawn.contains("long enough to…") || drawn.contains("long enough t…"), "{drawn}");
    }

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(clean("a\u{1b}[2Jb\u{202e}"), "a\u{fffd}[2Jb\u{fffd}");
        assert!(matches!(clean("plain é"), Cow::Borrowed(_)));
    }

    #[test]
    fn shortening_counts_columns() {
        assert_eq!(shorten("日本語", 5), "日本…");
        assert_eq!(shorten("abc", 3), "abc");
        assert_eq!(shorten("abcd", 3), "ab…");
    }
}
