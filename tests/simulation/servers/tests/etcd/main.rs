//! The simulated etcd answers as the real one does: the same bytes are sent to both. And it does with faults what its
//! documentation says.

mod answers;
mod errors;
mod faults;
mod logins;
mod peers;
mod random;
mod same;
