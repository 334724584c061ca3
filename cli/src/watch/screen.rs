//! Shows the locks on the alternate screen of the terminal, and redraws them after each look.

use std::collections::VecDeque;
use std::io::{Write as _, stdout};
use std::time::{Duration, Instant, SystemTime};

use super::{View, Watch, events::hand_offs};
use crate::output::{self, visible};
use crate::table::{Style, size_of};
use crate::{ls, show, status::Outcome, time};

/// The alternate screen, without a cursor. Dropping it restores the main screen.
struct Screen;

impl Screen {
    fn enter() -> Self {
        // If this fails, the first drawing fails too, and is reported.
        let _ = output::print("\x1b[?1049h\x1b[?25l");
        Screen
    }

    /// Returns the text that draws these lines.
    fn draw(&self, lines: &[Line]) -> String {
        let (columns, rows) = size_of(stdout());
        let mut text = "\x1b[H".to_owned();
        for (row, line) in fit(lines, rows).iter().enumerate() {
            let end = if row > 0 { "\r\n" } else { "" };
            text += &format!("{end}{}\x1b[K", line.drawn(columns));
        }
        text + "\x1b[J"
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let mut out = stdout().lock();
        // If the terminal is gone, there is nothing to restore.
        let _ = out
            .write_all(b"\x1b[?25h\x1b[?1049l")
            .and_then(|()| out.flush());
    }
}

/// A line without control characters, and its look.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    text: String,
    look: Look,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    Plain,
    Bold,
    Dim,
}

impl Line {
    fn new(text: impl Into<String>, look: Look) -> Self {
        let text = text.into();
        Line { text, look }
    }

    fn drawn(&self, columns: usize) -> String {
        let text = cut(&self.text, columns);
        match self.look {
            Look::Plain => text,
            Look::Bold => Style::of_terminal().bold(&text),
            Look::Dim => Style::of_terminal().dim(&text),
        }
    }
}

/// The text as far as it fits into the columns. If some of it doesn't fit, it ends with `…`.
fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    let fitting = text.chars().take(columns.saturating_sub(1));
    fitting.chain(['…']).take(columns).collect()
}

pub(super) fn run(watch: &Watch) -> Outcome {
    let mut rate = Rate::new(Instant::now());
    let (mut screen, mut view) = (None, View::new());
    watch.each_look(|began, seen| {
        let outage = match seen {
            Ok(now) => {
                rate.add(began, hand_offs(&view, &now));
                view = now;
                None
            }
            Err(outage) => Some(outage),
        };
        let lines = lines(watch, &view, &rate.text(began), outage.as_deref());
        // Entered after the first look, so that a failure of that look appears on the main screen.
        screen.get_or_insert_with(Screen::enter).draw(&lines)
    })
}

fn lines(watch: &Watch, view: &View, rate: &str, outage: Option<&str>) -> Vec<Line> {
    let mut lines = head(watch, view, rate);
    if let Some(outage) = outage {
        let text = format!("{}; showing the last known state", visible(outage));
        lines.push(Line::new(text, Look::Bold));
    }
    lines.push(Line::new("", Look::Plain));
    match &watch.name {
        Some(name) => lines.extend(one(view, name)),
        None => lines.extend(all(view)),
    }
    lines
}

fn head(watch: &Watch, view: &View, rate: &str) -> Vec<Line> {
    let taken = view.values().filter(|seen| !seen.holders.is_empty());
    let taken = taken.count();
    let waiting: usize = view.values().map(|seen| seen.waiters.len()).sum();
    let title = format!(
        "crosslock watch, namespace {}, every {}, {}",
        watch.namespace,
        time::text(watch.interval),
        time::moment(SystemTime::now()),
    );
    let counts = format!("{taken} taken, {waiting} waiting, {rate} hand-offs");
    vec![Line::new(title, Look::Dim), Line::new(counts, Look::Bold)]
}

fn one(view: &View, name: &str) -> Vec<Line> {
    let Some(seen) = view.get(name) else {
        return vec![Line::new(format!("{}: free", visible(name)), Look::Plain)];
    };
    let lines = show::for_people(seen, Style::Plain).into_iter();
    lines.map(|line| Line::new(line, Look::Plain)).collect()
}

/// One line for each lock, and one for its waiters.
fn all(view: &View) -> Vec<Line> {
    const NAMED: usize = 5;
    let mut rows = ls::table(view.values())
        .for_people(Style::Plain)
        .into_iter();
    let head = rows.next().map(|head| Line::new(head, Look::Bold));
    let mut lines: Vec<_> = head.into_iter().collect();
    for (row, seen) in rows.zip(view.values()) {
        lines.push(Line::new(row, Look::Plain));
        if seen.waiters.is_empty() {
            continue;
        }
        let mut waiters: Vec<_> = seen.waiters.iter().take(NAMED).map(show::waiter).collect();
        if seen.waiters.len() > NAMED {
            waiters.push(format!("{} more", seen.waiters.len() - NAMED));
        }
        let waiters = format!("  waiting: {}", waiters.join(", "));
        lines.push(Line::new(waiters, Look::Dim));
    }
    lines
}

/// The lines that fit into the rows. If some don't fit, the last line counts them.
fn fit(lines: &[Line], rows: usize) -> Vec<Line> {
    if lines.len() <= rows {
        return lines.to_vec();
    }
    let mut fitting = lines[..rows.saturating_sub(1)].to_vec();
    let missing = lines.len() - fitting.len();
    fitting.push(Line::new(format!("and {missing} more lines"), Look::Dim));
    fitting
}

/// Only looks of this period count.
const WINDOW: Duration = Duration::from_secs(10);

/// The rate at which locks pass from holder to holder, as far as the looks show it.
#[derive(Debug)]
struct Rate {
    began: Instant,
    /// The time of each look, and the hand-offs that it showed.
    looks: VecDeque<(Instant, usize)>,
}

impl Rate {
    pub(super) fn new(began: Instant) -> Self {
        Rate {
            began,
            looks: VecDeque::new(),
        }
    }

    pub(super) fn add(&mut self, at: Instant, hand_offs: usize) {
        self.looks.push_back((at, hand_offs));
        self.looks
            .retain(|(look, _)| at.duration_since(*look) <= WINDOW);
    }

    /// `0.4/s`, or `>= 4.0/s` if so many looks show a hand-off that the looks probably miss others.
    pub(super) fn text(&self, now: Instant) -> String {
        let seen: usize = self.looks.iter().map(|(_, count)| count).sum();
        let busy = self.looks.iter().filter(|(_, count)| *count > 0).count();
        let over = now.duration_since(self.began).min(WINDOW);
        let over = over.max(Duration::from_secs(1)).as_secs_f64();
        let is_least = busy * 4 > self.looks.len();
        let sign = if is_least { ">= " } else { "" };
        // Counts of a few seconds are far below 2^52.
        let rate = seen as f64 / over;
        format!("{sign}{rate:.1}/s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_counted() {
        let lines: Vec<_> = ["a", "b", "c"]
            .map(|text| Line::new(text, Look::Plain))
            .into();
        assert_eq!(fit(&lines, 3), lines);
        let fitting = fit(&lines, 2);
        assert_eq!(fitting.len(), 2);
        assert_eq!(fitting[1].text, "and 2 more lines");
    }

    #[test]
    fn cut_line_shows_that_it_is_cut() {
        assert_eq!(cut("waiting", 7), "waiting");
        assert_eq!(cut("waiting", 6), "waiti…");
        assert_eq!(cut("waiting", 1), "…");
        assert_eq!(cut("waiting", 0), "");
    }

    #[test]
    fn rate_is_exact_while_most_looks_show_none() {
        let began = Instant::now();
        let at = |tenths: u32| began + Duration::from_millis(100) * tenths;
        let mut rate = Rate::new(began);
        assert_eq!(rate.text(began), "0.0/s");
        (1..=100).for_each(|look| rate.add(at(look), usize::from(look % 10 == 0)));
        assert_eq!(rate.text(at(100)), "1.0/s");
        (101..=200).for_each(|look| rate.add(at(look), 1));
        assert!(
            rate.text(at(200)).starts_with(">= 10."),
            "{}",
            rate.text(at(200))
        );
        (201..=400).for_each(|look| rate.add(at(look), 0));
        assert_eq!(rate.text(at(400)), "0.0/s");
    }
}
