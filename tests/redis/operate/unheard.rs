//! A lease that is broken before its waiter has heard of its grant.

use std::thread::{self, JoinHandle};

use crosslock::Result;

use super::*;

use support::{Fault, Proxy, RedisServer, Stopwatch, wait_until};

/// A server, one who holds a lock there, and a process that hears of nothing while that is wanted.
struct Scene {
    _server: RedisServer,
    proxy: Proxy,
    holder: Locker,
    deaf: Locker,
}

fn scene() -> Scene {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    let (holder, deaf) = (patient(&server.url()), patient(&proxy.url()));
    Scene {
        _server: server,
        proxy,
        holder,
        deaf,
    }
}

impl Scene {
    /// Has a thread of the deaf process wait, and then another.
    fn waits<T: Send + 'static>(
        &self,
        call: impl Fn(&Locker) -> Result<T> + Send + 'static,
    ) -> JoinHandle<Result<T>> {
        let locker = self.deaf.clone();
        thread::spawn(move || call(&locker))
    }

    fn wait_for_waiters(&self, number: usize) {
        wait_until("so many to wait", PATIENCE, || {
            self.holder.inspect("n").expect("inspect").waiters.len() == number
        });
    }

    /// The lock of `held` is handed off to the waiter of the deaf process, and taken from it, before it hears anything.
    fn breaks_what_nobody_heard_of<T>(&self, held: T) {
        self.proxy.set(Fault::BlackHole);
        drop(held);
        let broken = self.holder.break_lock("n").expect("break");
        assert_eq!(broken.len(), 1, "it was handed off");
        // A proxy that is slow would pass the grant afterwards.
        self.proxy.await_swallowed();
        self.proxy.set(Fault::None);
    }
}

#[track_caller]
fn ends<T>(waiter: JoinHandle<Result<T>>) -> T {
    let watch = Stopwatch::start();
    let guard = waiter.join().unwrap().expect("the lock");
    // Its lease would have lasted for far longer.
    watch.assert_within(PATIENCE);
    guard
}

#[test]
fn waiter_of_a_broken_grant_has_the_free_lock_at_once() {
    let scene = scene();
    let held = held(&scene.holder, "n");
    let first = held.fencing_token();
    let waiters = [(); 2].map(|()| {
        scene.waits(|locker| {
            let guard = locker.lock("n")?;
            let token = guard.fencing_token();
            guard.unlock().map(|()| token)
        })
    });
    scene.wait_for_waiters(1);
    scene.breaks_what_nobody_heard_of(held);
    let tokens = waiters.map(ends);
    assert!(tokens.iter().all(|token| *token > first), "{tokens:?}");
    assert_ne!(tokens[0], tokens[1]);
    let left = scene.holder.inspect("n").expect("inspect");
    assert!(
        left.holders.is_empty() && left.waiters.is_empty(),
        "{left:?}"
    );
}
