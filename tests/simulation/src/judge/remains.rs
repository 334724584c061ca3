//! What may stay on a server when all lockers are gone, and all leases over.

use crosslock_world::violation;

use super::plan;
use crate::plan::{Step, Topology};

/// A line of what a server shows in the end. Where nothing went wrong, only what the pages of the engines name is left.
pub fn left(line: &str) {
    let is_task = line.contains("tasks-");
    let may_be = match plan().topology {
        Topology::Memory => true,
        // The value, and the last token for a day.
        Topology::Redis | Topology::Sentinel | Topology::Cluster | Topology::Quorum => {
            line.contains(":fence ") || line.contains(":value ") || is_task
        }
        // The value, and for a day who was abandoned.
        Topology::Etcd => line.contains("/value ") || line.contains("/h/"),
        // The value, containers, which servers delete by and by, and who was abandoned, until the next releases.
        Topology::ZooKeeper => {
            let abandon = [Step::Panic, Step::PassOn, Step::Election];
            let is_held =
                line.contains("/held ") && abandon.into_iter().any(|step| plan().does(step));
            line.contains("/value ")
                || line.ends_with("container")
                || line.contains("/k")
                || is_held
        }
    };
    if !may_be && plan().is_calm() && !plan().loses() {
        violation(format!("this is left: {line}"));
    }
}
