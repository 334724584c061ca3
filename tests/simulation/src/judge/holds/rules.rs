//! The rules of who holds what: exclusion, tokens, what was abandoned, and who learns that its lease is gone.

use std::time::Duration;

use crosslock_world::{as_process, lasting, true_now, violation};

use super::{Hold, Kind, Name, with};
use crate::judge::{Call, plan, waits};
use crate::plan::{Step, Topology};

pub(super) fn judge_exclusion(name: &str, hold: &Hold) {
    let others: Vec<Hold> = with(name, |name| name.holds.clone());
    let mut out = 0;
    for other in others {
        let Hold {
            id, kind, broken, ..
        } = other;
        let is_held = other.is_held();
        judge_overlap(name, &other, is_held);
        let is_there = with(name, |name| {
            name.breaking == 0 && name.holds.iter().any(|hold| hold.id == id)
        });
        // The last clone of a guard that is ending is dropped by its own thread, which waits for this one to go.
        drop(other);
        let is_broken = broken.is_some() || hold.broken.is_some();
        let both = is_held && is_there && hold.is_held();
        let excludes = hold.kind == Kind::Exclusive || kind == Kind::Exclusive;
        if both && excludes && !plan().is_safe() {
            with(name, |name| name.overlapped(id, hold.id));
        }
        if !both || is_broken || !plan().is_safe() {
            continue;
        }
        if let Kind::Permits { count, .. } = kind {
            out += count;
        }
        if excludes {
            let own = hold.kind;
            violation(format!(
                "{name} has two holders: {own:?} while {kind:?} holds it"
            ));
        }
    }
    if let Kind::Permits { count, of } = hold.kind
        && out + count > of
    {
        violation(format!("{} permits of {of} are out of {name}", out + count));
    }
}

/// Whatever went wrong: whose lease is gone learns of it by its next renewal. Of two that have the same either may.
fn judge_overlap(name: &str, hold: &Hold, is_held: bool) {
    let most = match plan().topology {
        Topology::Redis => plan().ttl.mul_f64(1.05) + Duration::from_millis(100),
        // Who asks which server has the name may be told of one that had it.
        Topology::Sentinel => plan().ttl.mul_f64(1.5) + Duration::from_millis(1_500),
        _ => plan().ttl * 2 + Duration::from_secs(2),
    };
    let is_over = |gone: Duration| is_held && gone + most < true_now();
    // No replica confirms a break, so a failover may undo it.
    let broken = hold.broken_since().filter(|_| !plan().replaces_servers());
    if let Some(gone) = broken.filter(|gone| is_over(*gone)) {
        violation(format!("{name} was broken at {gone:?}, and is held"));
    }
    let Some((since, by)) = hold.overlapped.filter(|(since, _)| is_over(*since)) else {
        return;
    };
    let find = |name: &mut Name| name.holds.iter().find(|hold| hold.id == by).cloned();
    let other = with(name, find);
    if other.is_some_and(|other| other.is_held()) {
        violation(format!(
            "two have {name} since {since:?}, and neither is told"
        ));
    }
}

/// No guard counts on its lease for longer than the servers keep it, which they know who lead the others.
pub(super) fn judge_claim(name: &str, hold: &Hold) {
    if !matches!(plan().topology, Topology::Etcd | Topology::ZooKeeper) || !hold.is_held() {
        return;
    }
    let claim = as_process(hold.process, || hold.guard.lease().remaining());
    let kept = lasting(0).into_iter();
    let kept = kept
        .filter(|(key, _)| key.contains(name))
        .map(|(_, left)| left);
    if let Some(kept) = kept.max().filter(|kept| *kept < claim) {
        violation(format!(
            "{name} is said to be held for {claim:?}, and its lease ends in {kept:?}"
        ));
    }
}

pub(super) fn judge_token(name: &str, hold: &Hold, call: Option<Call>) {
    let (is_held, token) = (hold.is_held(), hold.token);
    let last = with(name, |name| {
        let last = name.token;
        // As docs/guarantees.md says.
        let may_be_smaller = !plan().is_safe() && name.passes_over(token);
        if token > last.0 {
            name.token = (token, true_now());
        }
        // One that is being broken may come to be told behind the next one.
        let is_known = name.breaking == 0 && hold.broken.is_none();
        (is_known && !may_be_smaller).then_some(last)
    });
    // Where a server has lost the lease, the next one may be told first.
    let may_be_late =
        |since| !plan().is_safe() && call.is_none_or(|call: Call| call.began <= since);
    // And two servers may count in the same microsecond.
    let may_be_same = |since| !plan().is_safe() && true_now() < since + Duration::from_millis(1);
    if let Some((last, since)) = last
        && hold.kind == Kind::Exclusive
        && is_held
        && (token == last && !may_be_same(since) || token < last && !may_be_late(since))
    {
        violation(format!("{name} has token {token} behind {last}"));
    }
}

/// Who holds it next finds it abandoned by who died or panicked, and by nobody else.
pub(super) fn judge_abandoned(name: &str, hold: &Hold, is_alone: bool) {
    // One that was broken before its call had returned isn't behind the last one.
    if hold.kind != Kind::Exclusive || hold.broken.is_some() {
        return;
    }
    let known = with(name, |name| {
        name.last = hold.id;
        name.is_abandoned.take().filter(|_| name.breaking == 0)
    });
    let found = hold.guard.lease().was_abandoned();
    let is_sure = match known {
        // Of several names any may have been abandoned.
        _ if !is_alone => false,
        // ZooKeeper's servers are told who holds it a round trip later, and those that give up may be told as well.
        _ if plan().topology == Topology::ZooKeeper => false,
        // A server of a quorum that has missed one release after a panic tells of it later, with one that has missed
        // the next. An operator may have broken less than a majority.
        Some(false) if plan().topology == Topology::Quorum => {
            plan().is_calm() && !plan().does(Step::Panic) && !plan().does(Step::Break)
        }
        Some(true) => plan().only_kills() && !plan().does(Step::Break),
        Some(false) => plan().is_calm(),
        None => false,
    };
    if is_sure && known != Some(found) {
        let (not, was) = if found { ("not ", "") } else { ("", "not ") };
        violation(format!(
            "{name} was {not}abandoned, and is {was}said to be so"
        ));
    }
}

/// In a calm world somebody has the lock at once when it is free.
pub(super) fn judge_idle(name: &str, call: Call) {
    let not_before = with(name, |name| std::mem::take(&mut name.not_before));
    if true_now() < not_before && plan().is_calm() {
        violation(format!("{name} was to be free at {not_before:?}"));
    }
    let (is_free, free_since) = with(name, |name| (name.holds.is_empty(), name.free_since));
    // In memory nothing keeps one that waits from being told, though another comes first.
    let first = waits::first_began(name).filter(|_| plan().topology == Topology::Memory);
    let began = first.map_or(call.began, |first| first.min(call.began));
    let idle = true_now().saturating_sub(free_since.max(began));
    let waits_for_others = plan().does(Step::All) && name.starts_with("lock");
    // One that is closed while it waits isn't known to wait. If the first waiter of a kept lock dies, the next one
    // looks after a while.
    let is_unsure = ["closed", "least"].iter().any(|it| name.starts_with(it)) && !plan().is_calm();
    // A few round trips, of threads that others go before. Replicas that were given all data confirm nothing for a
    // second.
    let most = Duration::from_millis(match plan().topology {
        _ if plan().min_replicas > 0 => 1_200,
        Topology::Quorum | Topology::Etcd | Topology::ZooKeeper => 250,
        _ => 180,
    });
    let may_judge = plan().tells_deaths() || plan().busy.is_some();
    if is_free && idle > most && may_judge && !waits_for_others && !is_unsure {
        violation(format!(
            "{name}: nobody had it for {idle:?} while somebody waited"
        ));
    }
}

/// A lease that was broken is soon known to be lost, and no other is lost in a calm world.
pub(super) fn judge_held(name: &str, hold: &Hold) {
    let is_held = hold.is_held();
    judge_overlap(name, hold, is_held);
    if !plan().keeps_leases() {
        return;
    }
    // By its next renewal, if there is one.
    let told = if plan().renews && plan().max_hold.is_none() {
        plan().ttl.mul_f64(0.4) + Duration::from_millis(200)
    } else {
        plan().ttl
    };
    match hold.broken_since() {
        // A break of a quorum tells also of owners that only some servers had let in, while they came to a majority.
        Some(_) if plan().topology == Topology::Quorum => {}
        Some(at) if is_held && true_now() > at + told && plan().is_calm() => {
            violation(format!("{name} was broken at {at:?}, and is held"));
        }
        None if !is_held && hold.broken.is_none() && !plan().loses() => {
            violation(format!("{name} was lost without a cause"));
        }
        _ => {}
    }
}
