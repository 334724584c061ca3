//! Calls that are cancelled, each by a thread beside it.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use crosslock::CancelToken;

use crate::history::{Event, History, now};

/// A thread that cancels calls. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Canceller(Sender<Option<Order>>);

#[derive(Debug)]
struct Order {
    token: CancelToken,
    after: Duration,
    /// What is told of it.
    event: Event,
}

impl Canceller {
    /// Before the process may be left without threads.
    pub(super) fn start(history: History) -> Self {
        let (orders, received) = channel();
        thread::spawn(move || serve(&received, &history));
        Canceller(orders)
    }

    /// Cancels `token` after this time, unless something else is ordered before.
    pub(super) fn cancel(&self, token: CancelToken, after: Duration, event: Event) {
        self.order(Some(Order {
            token,
            after,
            event,
        }));
    }

    /// Leaves alone what isn't cancelled yet.
    pub(super) fn leave(&self) {
        self.order(None);
    }

    fn order(&self, order: Option<Order>) {
        self.0.send(order).expect("its thread lives");
    }
}

fn serve(orders: &Receiver<Option<Order>>, history: &History) {
    let mut next = orders.recv();
    while let Ok(order) = next {
        let Some(order) = order else {
            next = orders.recv();
            continue;
        };
        if let Ok(other) = orders.recv_timeout(order.after) {
            next = Ok(other);
            continue;
        }
        history.tell(&Event {
            at: now(),
            ..order.event
        });
        order.token.cancel();
        next = orders.recv();
    }
}
