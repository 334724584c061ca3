//! What the local queue is made of. Its model test puts other types in their place, which try out the orders in
//! which threads can run.

pub(crate) use crossbeam_channel::{Receiver, Sender, bounded};

pub(crate) use crate::base::sync::Mutex;
