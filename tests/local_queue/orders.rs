//! In which orders threads take their steps.

use shuttle::scheduler::{DfsScheduler, Schedule, Scheduler, Task, TaskId};
use shuttle::{Config, Runner};

/// Tests of the threads of one process: how often they are interrupted, to whom its guards give their leases, what each
/// thread does, and what is to be seen in some order at least.
macro_rules! in_orders {
    ($(
        $test:ident($interruptions:expr, $hands_over:expr): $($does:ident($($times:literal)?)),+ => $($seen:ident)*;
    )+) => {$(
        #[test]
        fn $test() {
            let seen = crate::in_orders_with($interruptions, &$hands_over, |process| {
                vec![$(process.$does($($times)?)),+]
            });
            for expected in [$(crate::book::Seen::$seen),*] as [crate::book::Seen; _] {
                assert!(seen.contains(&expected), "{seen:?}");
            }
        }
    )+};
}

/// Tries every order there is, or every order in which at most so many threads are interrupted that could go on.
/// There are to be fewer than this, which already takes long.
pub(crate) fn try_every_order(
    interruptions: Option<u32>,
    model: impl Fn() + Send + Sync + 'static,
) {
    const TOO_MANY: usize = 500_000;
    let scheduler = Every {
        orders: DfsScheduler::new(Some(TOO_MANY), false),
        most: interruptions.unwrap_or(u32::MAX),
        interruptions: 0,
    };
    let orders = Runner::new(scheduler, Config::new()).run(model);
    println!("{orders} orders");
    assert!(orders < TOO_MANY, "not every order was tried");
}

struct Every {
    orders: DfsScheduler,
    most: u32,
    interruptions: u32,
}

impl Scheduler for Every {
    fn new_execution(&mut self) -> Option<Schedule> {
        self.interruptions = 0;
        self.orders.new_execution()
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        is_yielding: bool,
    ) -> Option<TaskId> {
        let going = runnable.iter().find(|task| Some(task.id()) == current);
        let choices = match going {
            Some(going) if self.interruptions == self.most => std::slice::from_ref(going),
            _ => runnable,
        };
        let next = self.orders.next_task(choices, current, is_yielding);
        self.interruptions += u32::from(going.is_some() && next != current);
        next
    }

    fn next_u64(&mut self) -> u64 {
        self.orders.next_u64()
    }
}
