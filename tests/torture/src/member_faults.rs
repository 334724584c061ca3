//! Faults of members that elect a leader: they are killed, stopped and cut off, one or most of them; or what they keep
//! is changed by hand.

use std::io;
use std::thread;

use fastrand::Rng;

use super::driver::Driver;
use super::history::{self, Event};
use super::looks::{self, ZooKeeperLook};
use super::servers::{MEMBERS, Members};

/// Hits members, and is over when all of them answer again.
#[allow(clippy::too_many_lines, reason = "a table")]
pub(crate) fn fire(driver: &mut Driver<'_>, fault: &str) -> bool {
    let ttl = driver.ttl;
    let mut rng = driver.rng.fork();
    let stays = ttl.mul_f64(rng.f64());
    let Some(members) = driver.servers.members() else {
        return false;
    };
    let leader = members.leader();
    let follower = (leader + rng.usize(1..MEMBERS)) % MEMBERS;
    let hit = match fault {
        "leader killed" => {
            members.kill(leader);
            members.wait_for_other_leader(leader);
            thread::sleep(stays);
            members.launch_again(leader);
            Ok(())
        }
        "leader stopped past election" => {
            members.stop(leader);
            members.wait_for_other_leader(leader);
            thread::sleep(stays);
            // It takes itself for the leader, until it is told.
            members.go_on(leader);
            Ok(())
        }
        "leader cut off" | "follower cut off" => {
            let one = if fault == "leader cut off" {
                leader
            } else {
                follower
            };
            members.cut_off(one);
            // Long enough for what it was told last to end.
            thread::sleep(ttl.mul_f64(0.3 + 1.7 * rng.f64()));
            members.join(one);
            Ok(())
        }
        "minority down" => {
            restart(members, &[follower], || thread::sleep(stays));
            Ok(())
        }
        "majority down" => {
            let most = [leader, follower];
            // For less than a ttl, or for more.
            restart(members, &most, || {
                let from = history::now();
                thread::sleep(stays.mul_f64(1.5));
                driver.history.tell(&Event {
                    at: from,
                    op: "down".to_owned(),
                    until: history::now(),
                    ..Event::default()
                });
            });
            Ok(())
        }
        "all restarted" => {
            restart(members, &[0, 1, 2], || {});
            Ok(())
        }
        fault => by_hand(members, fault, leader, &mut rng),
    };
    if let Err(error) = &hit {
        eprintln!("torture: {fault}: {error}");
    }
    driver.servers.mend();
    hit.is_ok()
}

/// Kills some, and starts them again after that.
fn restart(members: &Members, some: &[usize], meanwhile: impl FnOnce()) {
    some.iter().for_each(|index| members.kill(*index));
    meanwhile();
    some.iter().for_each(|index| members.launch_again(*index));
}

/// What an operator may do to what they keep.
fn by_hand(members: &Members, fault: &str, leader: usize, rng: &mut Rng) -> io::Result<()> {
    match (members, fault) {
        (Members::Etcd(all), _) => {
            let addr = all.member(leader).own_addr();
            if fault == "compaction" {
                return looks::compact(addr);
            }
            for key in first_in_lines(members, leader)? {
                match fault {
                    "delete lock" => looks::delete(addr, &key)?,
                    _ => looks::revoke_lease_of(addr, &key)?,
                }
            }
            Ok(())
        }
        (Members::ZooKeeper(all), "delete lock") => {
            let mut look = ZooKeeperLook::at(all.member(leader).own_addr());
            let mut paths = first_in_lines(members, leader)?.into_iter();
            paths.try_for_each(|path| look.delete(&path))
        }
        (Members::ZooKeeper(all), _) => {
            let member = all.member(rng.usize(..MEMBERS));
            let sessions = member.sessions();
            let Some(session) = rng.choice(&sessions) else {
                return Err(io::ErrorKind::NotFound.into());
            };
            member.expire(*session);
            Ok(())
        }
    }
}

/// Whoever has a lock, or would have it next.
fn first_in_lines(members: &Members, leader: usize) -> io::Result<Vec<String>> {
    let addr = members.addrs()[leader];
    let view = members.look()(addr).look();
    let view = view.ok_or(io::ErrorKind::TimedOut)?;
    let first = view.lines.into_iter().map(|line| line.places.into_iter());
    Ok(first
        .filter_map(|mut places| places.next())
        .map(|place| place.key)
        .collect())
}
