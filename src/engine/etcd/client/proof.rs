//! When a lease counts as kept alive.

/// A member, and the term that it has answered in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemberTerm {
    pub(crate) member: u64,
    pub(crate) term: u64,
}

/// What a member has answered when a lease was to be kept alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Renewal {
    /// Which, and in which term it knew itself to be; `None`: it didn't say so.
    pub(super) by: Option<MemberTerm>,
    /// Whether there is such a lease.
    pub(super) is_there: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The lease lasts from before the renewal was sent.
    Kept,
    /// There is no such lease any more.
    Gone,
    /// Nothing is certain: the lease has to be kept alive, and the keys to be read, once more.
    Unproven,
}

/// When a lease counts as kept alive.
///
/// Only the leader of a cluster keeps leases alive. A member passes the request on to whom it takes for the leader,
/// and that may be one of the past, which doesn't know it yet. A linearizable read after the request, by the same
/// member, tells of the leader that there is. Each answer has a term, in which there is one leader at most, and which
/// the member knew when it answered. So if it knew before the request of the term in which it read afterwards, it has
/// asked the leader of that term, which was the leader all the while.
///
/// What is known about a member. It never forgets a term: also when it starts again it follows no leader of an
/// earlier one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Proof {
    known: Option<MemberTerm>,
    /// Whether it has answered a read of this proof: then it knows of all leases that were granted before.
    has_read: bool,
}

impl Proof {
    /// By its last linearizable answer, if there was one.
    pub(super) fn after(seen: Option<MemberTerm>) -> Self {
        Proof {
            known: seen,
            has_read: false,
        }
    }

    /// Judges a renewal by the linearizable read that was sent after its answer had come.
    pub(super) fn judge(&mut self, renewal: Renewal, read: MemberTerm) -> Verdict {
        let known = self.known.replace(read);
        let has_read = std::mem::replace(&mut self.has_read, true);
        let by_same = renewal.by.is_none_or(|by| by.member == read.member);
        if known != Some(read) || !by_same {
            Verdict::Unproven
        } else if renewal.is_there {
            Verdict::Kept
        } else if has_read {
            Verdict::Gone
        } else {
            Verdict::Unproven
        }
    }
}

#[cfg(test)]
mod tests;
