//! What threads of a world do.

use fastrand::Rng;

use crate::plan::Topology;

/// What a thread may do in a round. A world has some of these, so that those meet often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Lock,
    TryLock,
    Timed,
    Cancelled,
    LeastTime,
    Panic,
    OtherNamespace,
    Close,
    Shared,
    Permits,
    All,
    PassOn,
    Break,
    Inspect,
    Counter,
    SharedValue,
    Condition,
    Remove,
    Once,
    Latch,
    Barrier,
    Election,
    Tasks,
}

impl Step {
    pub const ALL: [Step; 23] = [
        Step::Lock,
        Step::TryLock,
        Step::Timed,
        Step::Cancelled,
        Step::LeastTime,
        Step::Panic,
        Step::OtherNamespace,
        Step::Close,
        Step::Shared,
        Step::Permits,
        Step::All,
        Step::PassOn,
        Step::Break,
        Step::Inspect,
        Step::Counter,
        Step::SharedValue,
        Step::Condition,
        Step::Remove,
        Step::Once,
        Step::Latch,
        Step::Barrier,
        Step::Election,
        Step::Tasks,
    ];

    /// What a quorum has.
    const OF_QUORUM: [Step; 12] = [
        Step::Lock,
        Step::TryLock,
        Step::Timed,
        Step::Cancelled,
        Step::LeastTime,
        Step::Panic,
        Step::OtherNamespace,
        Step::Close,
        Step::All,
        Step::PassOn,
        Step::Break,
        Step::Inspect,
    ];

    fn is_had_by(self, topology: Topology) -> bool {
        match topology {
            Topology::Quorum => Step::OF_QUORUM.contains(&self),
            Topology::Etcd | Topology::ZooKeeper => self != Step::Tasks,
            _ => true,
        }
    }

    pub fn some(topology: Topology, random: &mut Rng) -> Vec<Step> {
        let all = Step::ALL.into_iter();
        let mut some: Vec<Step> = all
            .filter(|step| random.u32(..4) == 0 && step.is_had_by(topology))
            .collect();
        if some.len() < 2 {
            let other = match topology {
                Topology::Quorum => Step::Timed,
                _ => Step::Counter,
            };
            some.extend([Step::Lock, other]);
        }
        some
    }
}
