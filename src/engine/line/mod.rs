//! Locks whose owners stand in one line, in the order in which they came: etcd and ZooKeeper.
//!
//! It uses `base` and the seam.

mod order;

pub(super) use self::order::{
    HAND_OVERS, Standing, holders, passed_on, revision_of, standing, token_of, used,
};
