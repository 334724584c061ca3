//! `doctor`: reports which guarantees don't hold at a URL, and why.

use std::io::stdout;

use clap::{Arg, ArgMatches, Command};
use crosslock::{Finding, Verdict};

use crate::args::{self, Globals};
use crate::output::{self, visible};
use crate::status::{NO, OK, Outcome};
use crate::table::{Cell, Style, Table, size_of, wrapped};

/// The width of the column of verdicts.
const VERDICTS: usize = 7;

pub(crate) fn command() -> Command {
    let place = Arg::new("place")
        .value_name("URL")
        .help("URL to check [default: --url]");
    Command::new("doctor")
        .arg(place)
        .about("Check a server or directory for settings that weaken locks")
        .after_help("Exit status: 1 if a guarantee is weak, else 0.")
}

pub(crate) fn run(globals: &Globals, matches: &ArgMatches) -> Outcome {
    let elsewhere = args::text(matches, "place").map(|url| globals.at(url));
    let globals = elsewhere.as_ref().unwrap_or(globals);
    let findings = globals.locker()?.diagnose()?;
    if globals.is_private_directory() {
        args::tell_private(globals.words);
    }
    let text = if globals.words.json {
        output::json_lines(&findings)?
    } else if output::is_terminal() {
        for_people(&findings, Style::of_terminal(), size_of(stdout()).0)
    } else {
        for_programs(&findings)
    };
    output::print(&text)?;
    let is_weak = |finding: &Finding| matches!(finding.verdict, Verdict::Weak { .. });
    Ok(if findings.iter().any(is_weak) { NO } else { OK })
}

/// The consequence and the advice of a finding, if it has them.
fn rest(finding: &Finding) -> [Option<&str>; 2] {
    match &finding.verdict {
        Verdict::Weak {
            consequence,
            advice,
            ..
        } => [Some(consequence), Some(advice)],
        Verdict::Unknown { advice, .. } => [None, Some(advice)],
        _ => [None, None],
    }
}

fn for_programs(findings: &[Finding]) -> String {
    const HEAD: &[&str] = &["VERDICT", "CHECK", "FOUND", "CONSEQUENCE", "ADVICE"];
    let row = |finding: &Finding| {
        let [consequence, advice] = rest(finding).map(Cell::of);
        let verdict = Cell::text(&finding.verdict.to_string());
        vec![
            verdict,
            Cell::text(finding.check),
            Cell::text(&finding.found),
            consequence,
            advice,
        ]
    };
    Table::new(HEAD, findings.iter().map(row)).for_programs()
}

fn for_people(findings: &[Finding], style: Style, columns: usize) -> String {
    let width = findings.iter().map(|finding| finding.check.len()).max();
    let width = width.unwrap_or(0);
    let indent = VERDICTS + 2 + width + 2;
    let mut text = String::new();
    for finding in findings {
        let verdict = drawn(&finding.verdict, style);
        text += &format!("{verdict}  {:width$}  ", finding.check);
        let mut words = visible(&finding.found);
        let [consequence, advice] = rest(finding);
        for (word, more) in [("So", consequence), ("Try", advice)] {
            if let Some(more) = more {
                words += &format!("\n{word}: {}", visible(more));
            }
        }
        let lines = words.lines();
        let lines = lines.flat_map(|line| wrapped(line, columns.saturating_sub(indent)));
        let lines: Vec<_> = lines.collect();
        text += &lines.join(&format!("\n{:indent$}", ""));
        text.push('\n');
    }
    text
}

fn drawn(verdict: &Verdict, style: Style) -> String {
    let word = format!("{verdict:VERDICTS$}");
    match verdict {
        Verdict::Fine => word,
        Verdict::Weak { .. } => style.bold(&word),
        _ => style.dim(&word),
    }
}
