//! Subjects, their rounds in turns, and one table of what came out.

use std::collections::BTreeMap;
use std::time::Duration;

use super::arguments::option;
use super::record::Record;

/// Parts of all samples, in thousandths.
pub(crate) const P50: usize = 500;
pub(crate) const P99: usize = 990;
pub(crate) const MAX: usize = 1000;

/// What came out of a round: any number of samples of each metric. A metric's name ends with its unit.
#[derive(Default)]
pub(crate) struct Round(BTreeMap<&'static str, Vec<f64>>);

impl Round {
    pub(crate) fn add(&mut self, metric: &'static str, value: f64) {
        self.0.entry(metric).or_default().push(value);
    }

    pub(crate) fn with(mut self, metric: &'static str, value: f64) -> Self {
        self.add(metric, value);
        self
    }

    pub(crate) fn micros(&mut self, metric: &'static str, time: Duration) {
        self.add(metric, time.as_secs_f64() * 1e6);
    }

    pub(crate) fn millis(&mut self, metric: &'static str, time: Duration) {
        self.add(metric, time.as_secs_f64() * 1e3);
    }

    pub(crate) fn append(&mut self, other: Round) {
        for (metric, mut samples) in other.0 {
            self.0.entry(metric).or_default().append(&mut samples);
        }
    }

    pub(crate) fn without(mut self, metric: &str) -> Self {
        self.0.remove(metric);
        self
    }

    fn sort(&mut self) {
        let all = self.0.values_mut();
        all.for_each(|samples| samples.sort_unstable_by(f64::total_cmp));
    }

    /// Of sorted samples; not a number if there are none.
    fn at(&self, metric: &str, part: usize) -> f64 {
        let samples = self.0.get(metric).map_or(&[][..], |samples| samples);
        let place = (samples.len() * part / MAX).min(samples.len().saturating_sub(1));
        samples.get(place).copied().unwrap_or(f64::NAN)
    }
}

/// A row: what is measured, and what it is compared with.
pub(crate) struct Subject<'a> {
    /// The words of its first columns.
    words: Vec<String>,
    /// The name of the row that its ratios are to.
    floor: Option<String>,
    /// The name of the row that it is shown how far it is beyond of.
    base: Option<String>,
    round: Box<dyn FnMut() -> Round + 'a>,
    samples: Round,
}

impl<'a> Subject<'a> {
    /// `name`: the words of its first columns, with `|` between.
    pub(crate) fn new(name: &str, round: impl FnMut() -> Round + 'a) -> Self {
        Subject {
            words: name.split('|').map(str::to_owned).collect(),
            floor: None,
            base: None,
            round: Box::new(round),
            samples: Round::default(),
        }
    }

    /// Its ratios are to that row.
    pub(crate) fn to(mut self, floor: &str) -> Self {
        self.floor = Some(floor.to_owned());
        self
    }

    /// It shows how far it is beyond that row.
    pub(crate) fn above(mut self, base: &str) -> Self {
        self.base = Some(base.to_owned());
        self
    }

    /// What was measured before the rounds.
    pub(crate) fn with(mut self, measured: Round) -> Self {
        self.samples.append(measured);
        self
    }

    pub(crate) fn name(&self) -> String {
        self.words.join("|")
    }
}

/// What is shown of a metric.
#[derive(Clone, Copy)]
enum Figure {
    /// Of all samples. Of a metric with one sample a round, P50 is the one in the middle, which no single burst of
    /// noise moves.
    Part(usize),
    /// The same part of this metric of the floor is 1.
    Ratio(&'static str, usize),
    /// The median beyond that of the base.
    Above,
}

/// A column of figures.
#[derive(Clone, Copy)]
pub(crate) struct Column {
    head: &'static str,
    metric: &'static str,
    figure: Figure,
    digits: usize,
}

pub(crate) const fn column(
    head: &'static str,
    metric: &'static str,
    part: usize,
    digits: usize,
) -> Column {
    let figure = Figure::Part(part);
    Column {
        head,
        metric,
        figure,
        digits,
    }
}

/// The median of a metric against another one of the floor.
pub(crate) const fn ratio_of(metric: &'static str, of: &'static str) -> Column {
    Column {
        figure: Figure::Ratio(of, P50),
        ..column("ratio", metric, P50, 2)
    }
}

pub(crate) const fn ratio(metric: &'static str) -> Column {
    ratio_of(metric, metric)
}

impl Column {
    pub(crate) const fn above(head: &'static str, metric: &'static str) -> Self {
        Column {
            figure: Figure::Above,
            ..column(head, metric, P50, 1)
        }
    }

    pub(crate) const fn digits(self, digits: usize) -> Self {
        Column { digits, ..self }
    }

    /// A ratio of that part of all samples, instead of the medians.
    pub(crate) const fn of_part(self, part: usize) -> Self {
        let figure = match self.figure {
            Figure::Ratio(of, _) => Figure::Ratio(of, part),
            other => other,
        };
        Column { figure, ..self }
    }

    /// With another head.
    pub(crate) const fn headed(self, head: &'static str) -> Self {
        Column { head, ..self }
    }

    /// Its name in a record.
    pub(super) fn key(&self) -> String {
        match self.figure {
            Figure::Part(MAX) => format!("{} max", self.metric),
            Figure::Part(999) => format!("{} p99.9", self.metric),
            Figure::Part(part) => format!("{} p{}", self.metric, part / 10),
            Figure::Ratio(..) => format!("{} ratio", self.metric),
            Figure::Above => format!("{} above", self.metric),
        }
    }

    /// Nothing where a row has no such figure.
    fn of(&self, row: &Subject, all: &[Subject]) -> Option<f64> {
        let named = |name: &String| all.iter().find(|other| other.name() == *name);
        let other = |name: &Option<String>| {
            let name = name.as_ref()?;
            Some(named(name).unwrap_or_else(|| panic!("no row {name}")))
        };
        let own = |part| row.samples.at(self.metric, part);
        let value = match self.figure {
            Figure::Part(part) => own(part),
            Figure::Ratio(of, part) => own(part) / other(&row.floor)?.samples.at(of, part),
            Figure::Above => own(P50) - other(&row.base)?.samples.at(self.metric, P50),
        };
        value.is_finite().then_some(value)
    }
}

/// What is measured of all rows, and how it is shown.
pub(crate) struct Table<'a> {
    heads: &'a [&'a str],
    columns: &'a [Column],
    rounds: usize,
    /// How many rounds don't count.
    first: usize,
}

impl<'a> Table<'a> {
    /// `heads`: above the first columns. `rounds`: how many, unless `--rounds` says it.
    pub(crate) fn new(heads: &'a [&'a str], columns: &'a [Column], rounds: usize) -> Self {
        Table {
            heads,
            columns,
            rounds: option("--rounds").unwrap_or(rounds),
            first: 0,
        }
    }

    /// So many come before those that count, to load scripts and warm caches.
    pub(crate) fn after(self, first: usize) -> Self {
        Table { first, ..self }
    }

    /// Runs the rounds of all subjects in turns, so that noise meets them alike; prints the table, and records it if
    /// `--record` says where.
    pub(crate) fn run(&self, mut subjects: Vec<Subject>) {
        let mut order: Vec<usize> = (0..subjects.len()).collect();
        for round in 0..self.first + self.rounds {
            // What runs before a subject has an influence on it.
            fastrand::shuffle(&mut order);
            for &number in &order {
                let subject = &mut subjects[number];
                let measured = (subject.round)();
                if round >= self.first {
                    subject.samples.append(measured);
                }
            }
        }
        for subject in &mut subjects {
            subject.samples.sort();
        }
        let figures = |row: &Subject| -> Vec<_> {
            let columns = self.columns.iter();
            columns.map(|column| column.of(row, &subjects)).collect()
        };
        let rows: Vec<_> = subjects.iter().map(|row| (row, figures(row))).collect();
        self.print(&rows);
        let mut record = Record::from_args(self.heads[0]);
        for (row, figures) in &rows {
            let keys = self.columns.iter().map(Column::key);
            record.add(&row.name(), row.floor.as_deref(), keys.zip(figures));
        }
    }

    fn print(&self, rows: &[(&Subject, Vec<Option<f64>>)]) {
        let heads = self.heads.iter().copied();
        let heads = heads.chain(self.columns.iter().map(|column| column.head));
        let mut lines: Vec<Vec<String>> = vec![heads.map(str::to_owned).collect()];
        for (row, figures) in rows {
            let mut line = row.words.clone();
            line.resize(self.heads.len(), String::new());
            let columns = self.columns.iter().zip(figures);
            line.extend(columns.map(|(column, figure)| {
                figure.map_or(String::new(), |figure| {
                    format!("{figure:.*}", column.digits)
                })
            }));
            lines.push(line);
        }
        let widest = |place: usize| lines.iter().map(|line| line[place].chars().count()).max();
        let widths: Vec<_> = (0..lines[0].len()).map_while(widest).collect();
        for line in &lines {
            let mut text = String::new();
            for (cell, width) in line.iter().zip(&widths) {
                text += &match &*text {
                    "" => format!("{cell:<width$}"),
                    _ => format!("  {cell:>width$}"),
                };
            }
            println!("{}", text.trim_end());
        }
        println!();
    }
}

/// Counts are far below 2^52.
#[expect(clippy::cast_precision_loss)]
pub(crate) fn per(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}
