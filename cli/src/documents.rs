//! `man` and `completions`: what the program says of itself, made of its arguments.

use std::io;

use clap::{Arg, ArgMatches, Command};
use clap_complete::{Shell, generate};
use clap_mangen::Man;

use crate::args::Globals;
use crate::output;
use crate::status::{FAILED, Failure, OK, Outcome};

/// What the arguments don't tell.
const MORE: &str = r#".SH "EXIT STATUS"
.TP
0
Done. Of \fBtest\fR: the lock is free.
.TP
1
Of \fBtest\fR: the lock isn't free. Of \fBdoctor\fR: something that is promised doesn't hold here.
.TP
64
The arguments are wrong, or the place of the locks can't do what they ask for.
.TP
69
The place of the locks can't be reached.
.TP
70
Something else went wrong.
.TP
75
Somebody else has the lock.
.TP
76
The lock was lost, and the command therefore stopped.
.TP
77
This user is refused.
.TP
124
The command ran for longer than \fB\-\-max\-run\fR.
.TP
126, 127
The command can't be executed, or isn't found.
.PP
Otherwise \fBrun\fR exits with the status of its command, which is 128 + N after signal N.
.SH ENVIRONMENT
.TP
CROSSLOCK_URL
Where locks live, without \fB\-\-url\fR.
.TP
NO_COLOR
When it isn't empty, nothing is bold or dim.
.PP
The command of \fBrun\fR sees CROSSLOCK_NAME and CROSSLOCK_TOKEN.
.SH FILES
.TP
/tmp/crosslock\-<uid>
The locks of \fBfile:\fR, which are those of one user.
"#;

pub(crate) fn man_command() -> Command {
    Command::new("man").about("Print the manual page: crosslock man | man -l -")
}

pub(crate) fn man(_globals: &Globals, _matches: &ArgMatches) -> Outcome {
    let page = page(crate::command());
    let page = page.map_err(|e| Failure::new(FAILED, format!("the page can't be made: {e}")))?;
    output::print(&page)?;
    Ok(OK)
}

fn page(command: Command) -> io::Result<String> {
    let verbs: Vec<_> = command.get_subcommands().cloned().collect();
    let mut page = Vec::new();
    let man = Man::new(command);
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_options_section(&mut page)?;
    let mut page = String::from_utf8_lossy(&page).into_owned();
    page += ".SH VERBS\n";
    for verb in verbs {
        page += &part_of(verb)?;
    }
    Ok(page + MORE)
}

/// What would be the page of a verb, as a part of the whole.
fn part_of(verb: Command) -> io::Result<String> {
    let name = verb.get_name().to_owned();
    let verb = verb.bin_name(format!("crosslock {name}"));
    let man = Man::new(verb.disable_help_flag(true));
    let mut part = format!(".SS {name}\n");
    for render in [
        Man::render_synopsis_section,
        Man::render_description_section,
        Man::render_options_section,
        Man::render_extra_section,
    ] {
        let mut section = Vec::new();
        render(&man, &mut section)?;
        part += &without_head(&String::from_utf8_lossy(&section));
    }
    Ok(part)
}

/// A paragraph, of what was a section of its own.
fn without_head(section: &str) -> String {
    let is_head = |line: &&str| {
        [".SH", ".ie", ".el"]
            .iter()
            .any(|head| line.starts_with(head))
    };
    let lines = section.lines().filter(|line| !is_head(line));
    let lines: Vec<_> = lines.collect();
    match lines.is_empty() {
        true => String::new(),
        false => format!(".PP\n{}\n", lines.join("\n")),
    }
}

pub(crate) fn completions_command() -> Command {
    let shell = Arg::new("shell")
        .value_name("SHELL")
        .required(true)
        .value_parser(clap::value_parser!(Shell))
        .help("Whose completions");
    Command::new("completions")
        .about("Print what makes a shell complete the arguments")
        .arg(shell)
}

pub(crate) fn completions(_globals: &Globals, matches: &ArgMatches) -> Outcome {
    let mut text = Vec::new();
    if let Some(shell) = matches.get_one::<Shell>("shell") {
        generate(*shell, &mut crate::command(), "crosslock", &mut text);
    }
    output::print(&String::from_utf8_lossy(&text))?;
    Ok(OK)
}
