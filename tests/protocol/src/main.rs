//! Goes through all setups, and prints what was found.

use crosslock_protocol::checker::explore;
use crosslock_protocol::server::Call;
use crosslock_protocol::setup::Setup;
use crosslock_protocol::setups::QUICK;
use crosslock_protocol::world::{Action, NOON, Phase, Reply, World};

fn main() {
    let only = std::env::args().nth(1);
    println!(
        "{} bytes, {}",
        size_of::<World>(),
        size_of::<crosslock_protocol::server::Name>()
    );
    if only.as_deref() == Some("mutants") {
        for (mutant, rule, setup) in crosslock_protocol::setups::MUTANTS {
            let found = explore(
                Setup {
                    mutant: Some(*mutant),
                    ..*setup
                },
                2,
                Some(*rule),
            );
            let broken: Vec<_> = found
                .broken
                .iter()
                .map(|(r, p)| format!("{r:?}@{}", p.len()))
                .collect();
            let ok = found.broken.iter().any(|(r, _)| r == rule);
            println!(
                "{} {mutant:?} {rule:?} {broken:?} {} {:.1?}",
                if ok { "ok" } else { "MISSED" },
                found.states,
                found.took
            );
        }
        return;
    }
    for setup in QUICK {
        if only
            .as_ref()
            .is_some_and(|only| !setup.title.contains(only))
        {
            continue;
        }
        let found = explore(*setup, 2, None);
        println!(
            "{}: {} states, {} deep, {:.1?}, excuses {:?}",
            setup.title, found.states, found.depth, found.took, found.excuses
        );
        for (rule, path) in found.broken {
            println!("  BROKEN {rule:?}");
            let mut world = World::new(setup);
            for action in path {
                println!("    {}", story(setup, &world, action));
                world = world.after(setup, action);
                println!("      {}", sight(&world));
            }
        }
    }
}

/// An action, and the packet that it is about.
fn story(_: &Setup, world: &World, action: Action) -> String {
    use crosslock_protocol::world::Body;
    let short = |at: usize| {
        let p = &world.wire[at];
        let body = match p.body {
            Body::Request(Call::Acquire(a)) => {
                format!("ACQUIRE {:?} wait {:?}", a.mode, a.wait.map(|w| w.inbox))
            }
            Body::Request(Call::Renew(a)) => format!("RENEW {:?}", a.mode),
            Body::Request(Call::Release(a)) => format!(
                "RELEASE {:?} {} keep {:?}",
                a.mode,
                rel(a.counter_after),
                a.keep
            ),
            Body::Reply(Reply::Granted(t)) => format!("granted {}", rel(t)),
            Body::Reply(Reply::Taken { counter }) => format!("taken {}", rel(counter)),
            Body::Grant(t) => format!("grant {}", rel(t)),
            other => format!("{other:?}"),
        };
        format!(
            "owner {} {body}{}{}",
            p.owner,
            if p.slow { " SLOW" } else { "" },
            if p.orphan { " ORPHAN" } else { "" }
        )
    };
    match action {
        Action::Arrive(at) => short(at),
        Action::Fault(f, at)
            if format!("{f:?}").starts_with("Lose")
                || format!("{f:?}").starts_with("Slow")
                || format!("{f:?}").starts_with("Repeat") =>
        {
            format!("FAULT {f:?} {}", short(at))
        }
        _ => format!("{action:?}"),
    }
}

fn rel(t: i64) -> i64 {
    if t == 0 { 0 } else { t - NOON }
}

fn sight(world: &World) -> String {
    let names: Vec<_> = world
        .names
        .iter()
        .map(|name| {
            let w: Vec<_> = name
                .waiters
                .iter()
                .map(|w| format!("{}!{}@{:?}{:?}", w.owner, w.overdue, w.inbox, w.mode))
                .collect();
            let s: Vec<_> = name
                .shares
                .iter()
                .map(|w| {
                    format!(
                        "{}x{}~{}{}",
                        w.owner,
                        w.count,
                        w.lasts,
                        if w.kept { "k" } else { "" }
                    )
                })
                .collect();
            format!(
                "{:?} counter {:?} q{:?} r{:?} w{:?} s{:?}",
                name.lock.map(|l| (l.says, l.lasts)),
                name.counter
                    .map(|c| (rel(c.number), c.letters.queue, c.letters.readers)),
                name.queue,
                name.readers,
                w,
                s
            )
        })
        .collect();
    let clients: Vec<_> = world
        .clients
        .iter()
        .map(|client| {
            let p = match client.phase {
                Phase::Holding(l) => format!(
                    "HOLD t{} v{} due{} {:?}{}",
                    rel(l.token),
                    l.valid,
                    l.due,
                    l.renewing,
                    if l.refused { " LOST" } else { "" }
                ),
                Phase::Ending { lease, tries, .. } => format!(
                    "ENDING t{} v{} tries{}",
                    rel(lease.token),
                    lease.valid,
                    tries
                ),
                other => format!("{other:?}"),
            };
            format!(
                "{}:{}{}",
                client.owner,
                p,
                if client.stopped { " STOPPED" } else { "" }
            )
        })
        .collect();
    format!(
        "{}\n      {} | ears {:?} line {:?} unreleased {:?} {:?}",
        names.join("\n      "),
        clients.join("; "),
        world.ears,
        world
            .judge
            .records
            .iter()
            .map(|r| r.line.clone())
            .collect::<Vec<_>>(),
        world
            .judge
            .records
            .iter()
            .map(|r| (r.unreleased, r.since, r.before, rel(r.last)))
            .collect::<Vec<_>>(),
        world.judge.watches.map(|w| format!(
            "{}{}{}{}{}",
            if w.intruded { "I" } else { "" },
            if w.forgotten { "F" } else { "" },
            if w.late { "L" } else { "" },
            if w.released { "R" } else { "" },
            w.unserved
        ))
    )
}
