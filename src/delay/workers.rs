//! Threads that take tasks and call a function with each of them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{any::Any, fmt, sync::Arc, time::Duration};

use serde::{Serialize, de::DeserializeOwned};

use super::{queue::DelayQueue, task::Task};
use crate::base::{
    CancelToken, Deadline, Error, ErrorChain, Process, Result, TaskEnd, backoff::shortened, sys,
};

/// The threads that [`DelayQueue::work`] started. Dropping it waits until they have finished their tasks.
///
/// # Examples
///
/// See [`DelayQueue::work`].
#[must_use = "its drop ends the threads: bind it, `let _workers = ...`"]
pub struct Workers {
    /// What ends their waits.
    end: CancelToken,
    threads: Vec<sys::Joined>,
    process: Process,
}

/// How long a thread waits after the engine failed.
const PAUSE: Duration = Duration::from_secs(1);

impl<T: Serialize + DeserializeOwned + Send + 'static> DelayQueue<T> {
    /// Starts `threads` threads that take tasks and call `handler` with each of them.
    ///
    /// If the handler returns `Ok`, the task is done. If it returns an error or panics, the task is tried again after
    /// its backoff, or buried after its last try, and keeps the error's text. If the engine can't be reached, the
    /// threads log that and try again.
    ///
    /// When you drop [`Workers`], idle threads end, and the others finish their task. The drop returns after that.
    ///
    /// # Errors
    ///
    /// [`Error::Engine`] when the threads can't be started.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// use crosslock::Task;
    ///
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let mail = locker.delay_queue::<String>("work-example")?;
    /// let workers = mail.work(2, |task: &Task<String>| {
    ///     println!("sending {}", **task);
    ///     Ok::<(), std::io::Error>(())
    /// })?;
    /// mail.insert(&"to: ada".to_owned(), Duration::ZERO)?;
    /// # while mail.counts()? != Default::default() { std::thread::sleep(Duration::from_millis(1)) }
    /// drop(workers);
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn work<E: fmt::Display>(
        &self,
        threads: usize,
        handler: impl Fn(&Task<T>) -> Result<(), E> + Send + Sync + 'static,
    ) -> Result<Workers> {
        Workers::start(self, threads, Arc::new(handler))
    }
}

impl Workers {
    pub(super) fn start<T, E>(
        queue: &DelayQueue<T>,
        threads: usize,
        handler: Arc<impl Fn(&Task<T>) -> Result<(), E> + Send + Sync + 'static>,
    ) -> Result<Self>
    where
        T: Serialize + DeserializeOwned + Send + 'static,
        E: fmt::Display,
    {
        let (name, end) = (queue.name(), CancelToken::new());
        let mut workers = Workers {
            end: end.clone(),
            threads: Vec::new(),
            process: Process::current(),
        };
        for _ in 0..threads {
            let queue = queue.with_cancel(&end);
            let (handler, end) = (handler.clone(), end.clone());
            let work = move || work(&queue, &*handler, &end);
            let thread = sys::spawn_joined("crosslock-work", work).map_err(|e| {
                let (what, limits) = ("starting a worker thread", "the limits of this process");
                Error::engine(Some(name), what, limits, e)
            })?;
            workers.threads.push(thread);
        }
        Ok(workers)
    }
}

/// One thread.
fn work<T: Serialize + DeserializeOwned, E: fmt::Display>(
    queue: &DelayQueue<T>,
    handler: &impl Fn(&Task<T>) -> Result<(), E>,
    end: &CancelToken,
) {
    let mut taken = None;
    loop {
        let next = taken.take().map_or_else(|| queue.take(), Ok);
        match next {
            Ok(task) => taken = handle(queue, task, handler, end),
            Err(Error::Cancelled { .. }) => return,
            Err(e) => {
                tell(&e);
                // One that can't be read is buried.
                if !matches!(e, Error::Corrupt { .. }) {
                    let pause = shortened(PAUSE, 0.5);
                    Deadline::after(pause).or(end.cancellation()).sleep(pause);
                }
            }
        }
    }
}

fn tell(error: &Error) {
    match error {
        Error::Cancelled { .. } => {}
        Error::Corrupt { .. } => log::error!("{}", ErrorChain(error)),
        _ => log::warn!("can't take a task, retrying: {}", ErrorChain(error)),
    }
}

/// Gives the task that is next, if one is ready.
fn handle<T: Serialize + DeserializeOwned, E: fmt::Display>(
    queue: &DelayQueue<T>,
    mut task: Task<T>,
    handler: &impl Fn(&Task<T>) -> Result<(), E>,
    end: &CancelToken,
) -> Option<Task<T>> {
    // The task goes to another try; what the handler has half done is its own concern, as with any error.
    let outcome = catch_unwind(AssertUnwindSafe(|| handler(&task)));
    let id = Task::id(&task).clone();
    let error = match outcome {
        Ok(Ok(())) => None,
        Ok(Err(e)) => Some(e.to_string()),
        Err(panic) => Some(format!("the handler panicked: {}", text_of(&*panic))),
    };
    let how = error.as_deref().map_or(TaskEnd::Done, TaskEnd::Retry);
    let (ended, next) = match end.is_cancelled() {
        false => queue.exchange(task, how),
        true => (task.end(how), Ok(None)),
    };
    if let Err(e) = ended {
        let (id, e) = (id.as_str(), ErrorChain(&e));
        log::warn!("can't store the outcome of task {id:?}: {e}");
    }
    next.unwrap_or_else(|e| {
        tell(&e);
        None
    })
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message")
}

impl Drop for Workers {
    fn drop(&mut self) {
        if !self.process.is_current() {
            // The threads stayed in the parent.
            std::mem::forget(std::mem::take(&mut self.threads));
            return;
        }
        self.end.cancel();
        for thread in self.threads.drain(..) {
            // What a handler panics with is caught.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers")
            .field("threads", &self.threads.len())
            .finish_non_exhaustive()
    }
}
