//! Tables: aligned and with a head for people, with tabs and without one for programs; and how texts fit into a terminal.

use std::io::stdout;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::termios::tcgetwinsize;

use crate::output::{self, visible};
use crate::time;

/// What stands where there is nothing to tell.
const NOTHING: &str = "-";

/// How a table may be drawn on the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Coloured,
}

impl Style {
    /// What this terminal and this user want.
    pub(crate) fn of_terminal() -> Self {
        if output::is_coloured() {
            Style::Coloured
        } else {
            Style::Plain
        }
    }
}

#[derive(Debug)]
pub(crate) struct Table {
    head: &'static [&'static str],
    rows: Vec<Vec<Cell>>,
}

/// A text for people, and one for programs.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    people: String,
    programs: String,
}

impl Cell {
    /// A text that anybody may have written.
    pub(crate) fn text(text: &str) -> Self {
        let shown = visible(text);
        Cell {
            people: shown.clone(),
            programs: shown,
        }
    }

    /// `12 s` for people; seconds with milliseconds, `12.345`, for programs.
    pub(crate) fn time(time: Duration) -> Self {
        Cell {
            people: time::text(time),
            programs: format!("{:.3}", time.as_secs_f64()),
        }
    }

    pub(crate) fn nothing() -> Self {
        Cell::text(NOTHING)
    }

    /// What is there, or nothing.
    pub(crate) fn or_nothing<T>(value: Option<T>, cell: impl FnOnce(T) -> Self) -> Self {
        value.map_or_else(Cell::nothing, cell)
    }
}

impl Table {
    pub(crate) fn new(head: &'static [&'static str]) -> Self {
        Table {
            head,
            rows: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, row: Vec<Cell>) {
        self.rows.push(row);
    }

    /// A line a row, with tabs between the columns.
    pub(crate) fn for_programs(&self) -> String {
        let mut text = String::new();
        for row in &self.rows {
            let cells: Vec<_> = row.iter().map(|cell| &*cell.programs).collect();
            text += &cells.join("\t");
            text.push('\n');
        }
        text
    }

    /// The head and the rows, in columns.
    pub(crate) fn for_people(&self, style: Style) -> Vec<String> {
        let mut lines = vec![self.line(self.head.iter().copied())];
        if style == Style::Coloured {
            lines[0] = bold(&lines[0]);
        }
        let rows = self.rows.iter();
        lines.extend(rows.map(|row| self.line(row.iter().map(|cell| &*cell.people))));
        lines
    }

    fn line<'a>(&'a self, cells: impl Iterator<Item = &'a str>) -> String {
        let mut line = String::new();
        for (column, cell) in cells.enumerate() {
            let width = self.width(column);
            line += &format!("{cell:width$}  ");
        }
        line.truncate(line.trim_end().len());
        line
    }

    fn width(&self, column: usize) -> usize {
        let cells = self
            .rows
            .iter()
            .map(|row| row[column].people.chars().count());
        cells.fold(self.head[column].chars().count(), usize::max)
    }
}

pub(crate) fn bold(text: &str) -> String {
    format!("\x1b[1m{text}\x1b[0m")
}

pub(crate) fn dim(text: &str) -> String {
    format!("\x1b[2m{text}\x1b[0m")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

impl Window {
    /// That of standard output.
    pub(crate) fn now() -> Self {
        Window::of(stdout())
    }

    /// As it is now; as usual, if it doesn't say.
    pub(crate) fn of(output: impl AsFd) -> Self {
        let size = tcgetwinsize(output).ok();
        let size = size.filter(|size| size.ws_col > 0 && size.ws_row > 0);
        Window {
            columns: size.map_or(80, |size| size.ws_col.into()),
            rows: size.map_or(24, |size| size.ws_row.into()),
        }
    }
}

/// The words of a text, in lines of so many columns. A longer word has a line of its own.
pub(crate) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut filled = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if let Some(line) = lines
            .last_mut()
            .filter(|_| filled + 1 + length <= columns || filled == 0)
        {
            filled += length + usize::from(filled > 0);
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        } else {
            filled = length;
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["NAME", "SINCE"]);
        table.push(vec![
            Cell::text("a\tb"),
            Cell::time(Duration::from_millis(12_345)),
        ]);
        table.push(vec![Cell::text("déploy"), Cell::nothing()]);
        table
    }

    #[test]
    fn people_get_columns_and_a_head() {
        let lines = table().for_people(Style::Plain);
        assert_eq!(lines, ["NAME    SINCE", r"a\tb    12 s", "déploy  -"]);
        assert_eq!(
            table().for_people(Style::Coloured)[0],
            "\x1b[1mNAME    SINCE\x1b[0m"
        );
    }

    #[test]
    fn programs_get_tabs_and_seconds() {
        assert_eq!(table().for_programs(), "a\\tb\t12.345\ndéploy\t-\n");
    }

    #[test]
    fn words_are_kept_whole() {
        assert_eq!(wrapped("a bb ccc dddd", 4), ["a bb", "ccc", "dddd"]);
        assert_eq!(wrapped("longer than that", 5), ["longer", "than", "that"]);
        assert_eq!(wrapped("", 5), [""]);
    }
}
