//! What a run leaves behind: a line of JSON for each row, at the end of the file that `--record` names.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::process::Command;

use super::arguments::option;

/// The file, and what each line of this run begins with.
pub(super) struct Record(Option<(File, String)>);

impl Record {
    pub(super) fn from_args(table: &str) -> Self {
        let Some(path) = option::<String>("--record") else {
            return Record(None);
        };
        let file = OpenOptions::new().append(true).create(true).open(&path);
        let file = file.unwrap_or_else(|e| panic!("{path}: {e}"));
        let start = format!(
            "{{\"date\":{:?},\"commit\":{:?},\"cpus\":{:?},\"bench\":{:?},\"table\":{table:?}",
            said_by("date", &["-u", "+%FT%TZ"]),
            said_by("git", &["describe", "--always", "--dirty"]),
            // Those of the machine: this process may be pinned to one.
            said_by("nproc", &["--all"]),
            env!("CARGO_CRATE_NAME"),
        );
        Record(Some((file, start)))
    }

    pub(super) fn add<'a>(
        &mut self,
        row: &str,
        floor: Option<&str>,
        figures: impl Iterator<Item = (String, &'a Option<f64>)>,
    ) {
        let Some((file, start)) = &mut self.0 else {
            return;
        };
        let row = row.replace('|', ", ");
        let mut line = format!("{start},\"row\":{row:?}");
        if let Some(floor) = floor {
            let floor = floor.replace('|', ", ");
            write!(line, ",\"floor\":{floor:?}").expect("a text");
        }
        for (key, figure) in figures {
            if let Some(figure) = figure {
                write!(line, ",{key:?}:{figure:.4}").expect("a text");
            }
        }
        writeln!(file, "{line}}}").expect("a record");
    }
}

/// What the program prints; nothing if there is no such program.
fn said_by(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.map_or_else(|_| Vec::new(), |output| output.stdout);
    String::from_utf8_lossy(&text).trim().to_owned()
}
