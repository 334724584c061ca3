//! `tasks`: shows the tasks of a delay queue, puts them back and removes them.

use std::time::SystemTime;

use clap::{Arg, ArgMatches, Command};
use crosslock::{DelayQueue, TaskId, TaskInfo, TaskState};
use serde_json::{Value, json};

use crate::args::{self, Globals};
use crate::output::visible;
use crate::status::{NO, OK, Outcome};
use crate::table::{Cell, Style, Table};
use crate::{output, time};

/// A queue whose values are any JSON.
type Queue = DelayQueue<Value>;

/// In the order of their listing.
const STATES: [(&str, TaskState); 4] = [
    ("running", TaskState::Running),
    ("ready", TaskState::Ready),
    ("delayed", TaskState::Delayed),
    ("buried", TaskState::Buried),
];

pub(crate) fn command() -> Command {
    let queue = || {
        Arg::new("queue")
            .value_name("QUEUE")
            .required(true)
            .help("Name of the queue")
    };
    let shards = || {
        let shards = args::option(
            "shards",
            "N",
            "Number of shards of the queue on a cluster [default: 16]",
        );
        shards.value_parser(clap::value_parser!(u16).range(1..=256))
    };
    let ids = || {
        let ids = Arg::new("id").value_name("ID").required(true).num_args(1..);
        ids.help("Ids of tasks")
    };
    let state = args::option(
        "state",
        "STATE",
        "List only tasks that are running, ready, delayed or buried",
    );
    let state = state.value_parser(STATES.map(|(name, _)| name));
    let limit = args::option(
        "limit",
        "N",
        "List at most N tasks of each state [default: 100]",
    );
    let limit = limit.value_parser(clap::value_parser!(u32));
    Command::new("tasks")
        .about("List, show, retry and remove the tasks of a delay queue")
        .subcommand_required(true)
        .subcommands([
            Command::new("ls")
                .about("List tasks")
                .args([queue(), shards(), state, limit]),
            Command::new("show")
                .about("Show tasks with their values")
                .args([queue(), shards(), ids()]),
            Command::new("kick")
                .about("Make buried tasks ready to run again")
                .args([queue(), shards(), ids()]),
            Command::new("rm")
                .about("Remove tasks that aren't running")
                .args([queue(), shards(), ids()]),
        ])
}

pub(crate) fn run(globals: &Globals, matches: &ArgMatches) -> Outcome {
    let (verb, matches) = matches.subcommand().unwrap_or(("", matches));
    let name = args::text(matches, "queue").unwrap_or_default();
    let mut queue: Queue = globals.locker()?.delay_queue(name)?;
    if let Some(shards) = matches.get_one("shards") {
        queue = queue.shards(*shards)?;
    }
    match verb {
        "ls" => list(globals, matches, &queue),
        "show" => show(globals, matches, &queue),
        "kick" => change(globals, matches, "kicked", |id| queue.kick(id)),
        _ => change(globals, matches, "removed", |id| queue.remove(id)),
    }
}

fn list(globals: &Globals, matches: &ArgMatches, queue: &Queue) -> Outcome {
    const FEW: u32 = 100;
    let wanted = args::text(matches, "state");
    let limit = matches.get_one("limit").copied().unwrap_or(FEW);
    let mut tasks = Vec::new();
    for (_, state) in STATES
        .iter()
        .filter(|(name, _)| wanted.is_none_or(|wanted| wanted == *name))
    {
        tasks.extend(queue.list(*state, limit.try_into().unwrap_or(usize::MAX))?);
    }
    let text = if globals.words.json {
        output::json_lines(&tasks.iter().map(as_json).collect::<Vec<_>>())?
    } else if !output::is_terminal() {
        table(&tasks).for_programs()
    } else {
        let counts = queue.counts()?;
        let head = format!(
            "{}: {} running, {} ready, {} delayed, {} buried\n",
            visible(queue.name()),
            counts.running,
            counts.ready,
            counts.delayed,
            counts.buried
        );
        let table = table(&tasks);
        let rows = if table.is_empty() {
            Vec::new()
        } else {
            table.for_people(Style::of_terminal())
        };
        head + &rows
            .iter()
            .map(|row| format!("{row}\n"))
            .collect::<String>()
    };
    output::print(&text)?;
    Ok(OK)
}

fn show(globals: &Globals, matches: &ArgMatches, queue: &Queue) -> Outcome {
    let (mut found, mut status) = (Vec::new(), OK);
    for id in ids(matches) {
        match queue.get(&id)? {
            Some(task) => found.push(task),
            None => {
                globals.words.say(
                    "missing",
                    &[("id", id.as_str().into())],
                    &format!("task {} doesn't exist", visible(id.as_str())),
                );
                status = NO;
            }
        }
    }
    let text = if globals.words.json {
        output::json_lines(&found.iter().map(as_json).collect::<Vec<_>>())?
    } else {
        found
            .iter()
            .map(|task| format!("{}\n", in_full(task)))
            .collect()
    };
    output::print(&text)?;
    Ok(status)
}

/// Ends with 1 if one of them isn't in that state.
fn change(
    globals: &Globals,
    matches: &ArgMatches,
    done: &str,
    change: impl Fn(&TaskId) -> crosslock::Result<bool>,
) -> Outcome {
    let mut status = OK;
    for id in ids(matches) {
        let is_changed = change(&id)?;
        let text = if globals.words.json {
            output::json_lines(&[json!({"id": id.as_str(), done: is_changed})])?
        } else if is_changed {
            format!("{done} {}\n", visible(id.as_str()))
        } else {
            format!("not {done}: {}\n", visible(id.as_str()))
        };
        output::print(&text)?;
        if !is_changed {
            status = NO;
        }
    }
    Ok(status)
}

fn ids(matches: &ArgMatches) -> Vec<TaskId> {
    let ids = matches.get_many::<String>("id").unwrap_or_default();
    ids.map(|id| TaskId::from(id.as_str())).collect()
}

fn table(tasks: &[TaskInfo<Value>]) -> Table {
    const HEAD: &[&str] = &["ID", "STATE", "DUE IN", "LATE", "TRY", "ERROR"];
    let now = SystemTime::now();
    let row = |task: &TaskInfo<Value>| {
        let waits = matches!(task.state, TaskState::Delayed);
        let is_late = matches!(task.state, TaskState::Ready);
        vec![
            Cell::text(task.id.as_str()),
            Cell::text(name_of(task.state)),
            Cell::time(task.due.duration_since(now).ok().filter(|_| waits)),
            Cell::time(now.duration_since(task.due).ok().filter(|_| is_late)),
            Cell::of(Some(task.attempt)),
            task.last_error
                .as_deref()
                .map_or_else(Cell::nothing, Cell::text),
        ]
    };
    Table::new(HEAD, tasks.iter().map(row))
}

fn in_full(task: &TaskInfo<Value>) -> String {
    let mut text = format!(
        "{}: {}, due {}, try {}",
        visible(task.id.as_str()),
        name_of(task.state),
        time::moment(task.due),
        task.attempt
    );
    if let Some(error) = &task.last_error {
        text += &format!(", last error: {}", visible(error));
    }
    text + "\n  " + &visible(&task.value.to_string())
}

fn name_of(state: TaskState) -> &'static str {
    STATES
        .iter()
        .find(|(_, known)| *known == state)
        .map_or("other", |(name, _)| name)
}

fn as_json(task: &TaskInfo<Value>) -> Value {
    json!({
        "id": task.id.as_str(),
        "state": name_of(task.state),
        "due": time::moment(task.due),
        "attempt": task.attempt,
        "last_error": task.last_error,
        "value": task.value,
    })
}
