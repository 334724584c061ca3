//! Requests and answers in the JSON of etcd's gateway: keys and values in base64, large numbers as text, and no field whose
//! value is zero, false or empty.

mod read;
mod write;

pub(super) use self::read::{
    Told, granted_for, keep_alive, lease, status, time_to_live, told, transaction,
};
pub(super) use self::write::{bounds, txn};
