//! `completions`: what makes a shell complete the arguments.

use clap::{Arg, ArgMatches, Command};
use clap_complete::{Shell, generate};

use crate::args::Globals;
use crate::results;
use crate::status::{OK, Outcome};

pub(crate) fn command() -> Command {
    let shell = Arg::new("shell")
        .value_name("SHELL")
        .required(true)
        .value_parser(clap::value_parser!(Shell))
        .help("Whose completions");
    Command::new("completions")
        .about("Print what makes a shell complete the arguments")
        .arg(shell)
}

pub(crate) fn run(_globals: &Globals, matches: &ArgMatches) -> Outcome {
    let mut text = Vec::new();
    if let Some(shell) = matches.get_one::<Shell>("shell") {
        generate(*shell, &mut crate::command(), "crosslock", &mut text);
    }
    results::print(&String::from_utf8_lossy(&text))?;
    Ok(OK)
}
