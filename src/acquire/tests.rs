//! What the threads of a local queue tell each other, on an engine that does as it is told.

mod leases;

use std::collections::VecDeque;
use std::fmt;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::*;
use crate::base::clock::{BootClock, Clock, Deadline};
use crate::base::error::{Error, LostReason};
use crate::base::options::Options;
use crate::base::owner::Owner;
use crate::base::sys::sync::Mutex;
use crate::base::token::Token;
use crate::engine::{
    Answer, Change, Engine, Failed, Grant, Outcome, Pace, Request, Revocations, Wait,
};
use crate::lease::Lease;
use crate::queue::local::Entered;
use crate::queue::{ContenderState, LocalQueues, Turn, Waiter};

/// More than the first questions of a call take, whose time ends in the test.
const SOON: Duration = Duration::from_secs(1);

fn sleep_until(over: &Deadline) {
    while !over.is_over() {
        thread::sleep(Duration::from_millis(1));
    }
}

type Asked = Result<Answer, Failed>;

/// What the next questions do, and how they are answered.
#[derive(Clone, Default)]
struct Scripted {
    scripts: Arc<Mutex<VecDeque<Script>>>,
    /// Whose questions they were.
    asked: Arc<Mutex<Vec<Owner>>>,
    /// How often something was released.
    released: Arc<Mutex<u32>>,
}

type Script = Box<dyn FnOnce() -> Asked + Send>;

impl Scripted {
    fn next(&self, answer: impl FnOnce() -> Asked + Send + 'static) {
        self.scripts.lock().push_back(Box::new(answer));
    }

    #[track_caller]
    fn assert_all_asked(&self) {
        let left = self.scripts.lock().len();
        assert_eq!(left, 0, "so many questions weren't asked");
    }
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripted").finish_non_exhaustive()
    }
}

impl Engine for Scripted {
    fn endpoint(&self) -> &str {
        "a script"
    }

    fn new_wait(&self) -> Box<dyn Wait> {
        Box::new(self.clone())
    }

    fn change(&self, _: Request<'_>, change: Change<'_>, _: &Deadline) -> Result<Outcome> {
        assert!(
            matches!(change, Change::Release(_)),
            "nothing is held: {change:?}"
        );
        *self.released.lock() += 1;
        Ok(Outcome::DONE)
    }
}

impl Wait for Scripted {
    fn ask(&mut self, request: Request<'_>, _: Option<&mut Pace<'_>>, _: &Deadline) -> Asked {
        self.asked.lock().push(request.owner.clone());
        let answer = self.scripts.lock().pop_front();
        answer.expect("no question was expected")()
    }
}

fn taken() -> Asked {
    Ok(Answer::Taken {
        is_queued: true,
        holder: None,
    })
}

fn unanswered() -> Asked {
    let error = Error::unavailable(Some("a"), "a script", "no answer");
    Err(Failed::sent(error))
}

fn refused() -> Asked {
    let error = Error::engine(Some("a"), "a script", "the script", "refused");
    Err(Failed::sent(error))
}

/// The threads of one process that want one name.
struct Scene {
    engine: Arc<Scripted>,
    core: Arc<Core>,
    claim: Claim,
    /// The end of the calls' time.
    over: Deadline,
    cancel: Cancel,
}

fn scene() -> Scene {
    let (engine, clock) = (Arc::new(Scripted::default()), Arc::new(BootClock));
    let core = Core::new(engine.clone(), Options::default(), clock);
    Scene {
        engine,
        core: Arc::new(core),
        claim: Claim::exclusive("test", "a"),
        over: Deadline::after(SOON),
        cancel: Cancel::default(),
    }
}

impl Scene {
    fn first(&self) -> Turn {
        match self.queues().enter(&self.claim.key) {
            Entered::First(turn) => turn,
            Entered::Offered(..) | Entered::Behind(_) => panic!("somebody has the turn"),
        }
    }

    fn behind(&self) -> Waiter {
        match self.queues().enter(&self.claim.key) {
            Entered::First(_) | Entered::Offered(..) => panic!("nobody has the turn"),
            Entered::Behind(waiter) => waiter,
        }
    }

    fn queues(&self) -> &LocalQueues {
        &self.core.queues
    }

    fn budget(&self) -> RetryBudget {
        let deadline = self.over.clone().or(&self.cancel);
        RetryBudget::new(deadline, None, &self.core.options, Instant::now())
    }

    fn contender(&self) -> Contender {
        Contender::new(&*self.engine, self.core.process, None)
    }

    fn call(&self, turn: Turn, contender: Contender) -> Result<Option<LockGuard>> {
        Acquirer::new(
            &self.core,
            &self.claim,
            &mut self.budget(),
            contender,
            Some(turn),
            None,
        )
        .acquire()
    }

    fn acquire(&self) -> Result<Option<LockGuard>> {
        acquire(&self.core, &self.claim, &mut self.budget())
    }

    /// A lease whose end nobody has seen yet.
    fn expired(&self) -> Lease {
        let (claim, token) = (self.claim.clone(), Token::next(0, 0));
        Lease::new(claim, Owner::new(), token)
    }

    /// A call whose last question fails, and then one whose time is over when it gets the turn, while a third thread
    /// waits: what they return.
    fn two_calls(&self) -> [Result<Option<LockGuard>>; 2] {
        let (turn, second, _third) = (self.first(), self.behind(), self.behind());
        let first = self.call(turn, self.contender());
        sleep_until(&self.over);
        let Left::Given(turn, TurnState::Resume(contender, _)) = second.leave() else {
            panic!("the turn comes with the contender")
        };
        [first, self.call(turn, *contender)]
    }
}

#[test]
fn question_that_the_end_of_a_call_cut_short_is_asked_again_by_the_next_thread() {
    let scene = scene();
    let over = scene.over.clone();
    scene.engine.next(taken);
    scene.engine.next(move || {
        sleep_until(&over);
        unanswered()
    });
    scene.engine.next(unanswered);
    let [first, second] = scene.two_calls();
    assert!(matches!(first, Ok(None)), "{first:?}");
    assert!(
        matches!(second, Err(Error::Unavailable { .. })),
        "{second:?}"
    );
    scene.engine.assert_all_asked();
}

#[test]
fn question_that_was_refused_is_asked_again_by_the_next_thread() {
    let scene = scene();
    scene.engine.next(taken);
    scene.engine.next(refused);
    scene.engine.next(refused);
    for outcome in scene.two_calls() {
        assert!(matches!(outcome, Err(Error::Engine { .. })), "{outcome:?}");
    }
    scene.engine.assert_all_asked();
}

#[test]
fn handed_over_lease_that_is_over_says_nothing_about_the_lock() {
    let scene = scene();
    let key = scene.claim.key.clone();
    let turn = scene.first();
    // Its holder has the lock, and hands it over.
    turn.set_taken(true);
    let (core, over) = (scene.core.clone(), scene.over.clone());
    let (tell, told) = mpsc::channel();
    scene.engine.next(move || {
        // Another thread comes, and doesn't wait for the answer.
        if let Entered::Behind(other) = core.queues.enter(&key) {
            tell.send(other.leave()).expect("the test waits for it");
        }
        sleep_until(&over);
        taken()
    });
    let next = thread::scope(|scope| {
        let next = scope.spawn(|| acquire(&scene.core, &scene.claim, &mut scene.budget()));
        while !turn.has_successor() {
            thread::yield_now();
        }
        let word = TurnState::Lease(Box::new(scene.expired()), None);
        assert!(turn.pass(word).is_ok());
        next.join().expect("no panic")
    });
    assert!(matches!(next, Ok(None)), "{next:?}");
    let left = told.recv().expect("it left");
    assert!(matches!(left, Left::Gone { taken: false }));
}

fn granted() -> Asked {
    Ok(Answer::Granted(Grant {
        token: Token::next(0, 0),
        value: None,
        since: BootClock.now(),
    }))
}

#[track_caller]
fn assert_cancelled<T: fmt::Debug>(outcome: &Result<T>) {
    assert!(
        matches!(outcome, Err(Error::Cancelled { name, .. }) if name == "a"),
        "{outcome:?}"
    );
}

#[test]
fn what_is_known_when_a_call_is_cancelled_goes_on_to_the_next_thread() {
    for (answer, state) in [
        (taken as fn() -> Asked, ContenderState::Queued),
        (unanswered, ContenderState::Unclear),
    ] {
        let scene = scene();
        let (turn, second, _third) = (scene.first(), scene.behind(), scene.behind());
        let cancel = scene.cancel.clone();
        scene.engine.next(move || {
            cancel.set();
            answer()
        });
        let first = scene.call(turn, scene.contender());
        assert_cancelled(&first);
        let Left::Given(_turn, TurnState::Resume(contender, _)) = second.leave() else {
            panic!("the turn comes with the contender")
        };
        assert_eq!(contender.state, state);
    }
}

#[test]
fn grant_that_meets_a_cancel_is_the_callers() {
    let scene = scene();
    let cancel = scene.cancel.clone();
    scene.engine.next(move || {
        cancel.set();
        granted()
    });
    let guard = scene.acquire().unwrap().expect("it has the lock");
    assert!(guard.is_held());
    guard.unlock().unwrap();
}

#[test]
fn grant_that_meets_a_close_is_released() {
    let scene = scene();
    let core = scene.core.clone();
    scene.engine.next(move || {
        core.close();
        granted()
    });
    assert_cancelled(&scene.acquire());
    assert_eq!(*scene.engine.released.lock(), 1);
    assert_eq!(scene.queues().len(), 0);
    assert!(scene.core.guards.monitors().is_empty());
}
