//! `man` and `completions`: made from the definition of the arguments.

use std::io;

use clap::{Arg, ArgMatches, Command};
use clap_complete::{Shell, generate};
use clap_mangen::Man;

use crate::status::{Failure, OK, Outcome};
use crate::{args::Globals, output};

/// The sections that can't be made from the arguments.
const END: &str = include_str!("man_end.roff");

pub(crate) fn man_command() -> Command {
    Command::new("man").about("Print the manual page: crosslock man | man -l -")
}

pub(crate) fn man(_globals: &Globals, _matches: &ArgMatches) -> Outcome {
    let page = page(crate::command());
    let page = page.map_err(|e| Failure::broken("can't make the manual page", &e))?;
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
    Ok(page + END)
}

/// The part of the page that describes one verb.
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

/// Turns a section into a paragraph.
fn without_head(section: &str) -> String {
    const HEADS: [&str; 3] = [".SH", ".ie", ".el"];
    let is_head = |line: &str| HEADS.iter().any(|head| line.starts_with(head));
    let lines: Vec<_> = section.lines().filter(|line| !is_head(line)).collect();
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
        .help("Shell to complete for");
    Command::new("completions")
        .about("Print completions for a shell")
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
