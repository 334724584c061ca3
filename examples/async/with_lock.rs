use std::panic;

use crosslock::{CancelToken, LockGuard, Locker, Result};
use tokio::task;

/// Takes the lock and does the work on a thread that may block.
///
/// If this future is dropped, a call that still waits for the lock ends with `Error::Cancelled`.
pub async fn with_lock<T: Send + 'static>(
    locker: &Locker,
    name: &str,
    work: impl FnOnce(&LockGuard) -> T + Send + 'static,
) -> Result<T> {
    let request = CancelOnDrop(CancelToken::new());
    let (locker, name) = (locker.with_cancel(&request.0), name.to_owned());
    let done = task::spawn_blocking(move || {
        let guard = locker.lock(&name)?;
        let result = work(&guard);
        guard.unlock()?;
        Ok(result)
    });
    done.await
        .unwrap_or_else(|e| panic::resume_unwind(e.into_panic()))
}

struct CancelOnDrop(CancelToken);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
