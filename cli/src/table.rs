//! Tables: for people with aligned columns and a head, for programs with tabs and without a head. Also the width of a
//! terminal.

use std::{os::fd::AsFd, time::Duration};

use rustix::termios::tcgetwinsize;

use crate::output::{self, visible};
use crate::time;

/// Stands for an unknown value.
const NOTHING: &str = "-";

/// Whether the terminal shows bold and dim text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Coloured,
}

impl Style {
    /// The style for this terminal and this user.
    pub(crate) fn of_terminal() -> Self {
        match output::is_coloured() {
            true => Style::Coloured,
            false => Style::Plain,
        }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.drawn(1, text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.drawn(2, text)
    }

    fn drawn(self, how: u8, text: &str) -> String {
        match self {
            Style::Plain => text.to_owned(),
            Style::Coloured => format!("\x1b[{how}m{text}\x1b[0m"),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Table {
    head: &'static [&'static str],
    rows: Vec<Vec<Cell>>,
}

/// A value as a text for people, and as one for programs.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    people: String,
    programs: String,
}

impl Cell {
    /// A text from an untrusted source.
    pub(crate) fn text(text: &str) -> Self {
        let shown = visible(text);
        Cell {
            people: shown.clone(),
            programs: shown,
        }
    }

    /// `12 s` for people; seconds with milliseconds, `12.345`, for programs.
    pub(crate) fn time(time: Option<Duration>) -> Self {
        time.map_or_else(Cell::nothing, |time| Cell {
            people: time::text(time),
            programs: format!("{:.3}", time.as_secs_f64()),
        })
    }

    pub(crate) fn nothing() -> Self {
        Cell::text(NOTHING)
    }

    /// The value, or `-` if there is none.
    pub(crate) fn of(value: Option<impl ToString>) -> Self {
        value.map_or_else(Cell::nothing, |value| Cell::text(&value.to_string()))
    }
}

impl Table {
    pub(crate) fn new(
        head: &'static [&'static str],
        rows: impl IntoIterator<Item = Vec<Cell>>,
    ) -> Self {
        let rows = rows.into_iter().collect();
        Table { head, rows }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// One line per row, with tabs between the columns.
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
        let mut lines = vec![style.bold(&self.line(self.head.iter().copied()))];
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
        let rows = self.rows.iter();
        let cells = rows.map(|row| row[column].people.chars().count());
        cells.fold(self.head[column].chars().count(), usize::max)
    }
}

/// The columns and rows of a terminal, or 80 and 24 if it doesn't report them.
pub(crate) fn size_of(output: impl AsFd) -> (usize, usize) {
    let size = tcgetwinsize(output).ok();
    let size = size.filter(|size| size.ws_col > 0 && size.ws_row > 0);
    size.map_or((80, 24), |size| (size.ws_col.into(), size.ws_row.into()))
}

/// Breaks a text into lines of at most `columns`. A longer word gets its own line.
pub(crate) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let length = |text: &str| text.chars().count();
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if length(line) + 1 + length(word) <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
