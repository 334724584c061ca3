//! How one thread waits until a value changes: by a watch of its key.

use std::sync::Arc;

use super::client::{self, Client, Range};
use crate::base::{Deadline, Result};
use crate::engine::Watch;

pub(super) struct ValueWatch {
    client: Arc<Client>,
    key: String,
    /// `None` before the first call, and after a failure.
    watch: Option<client::Watch>,
}

impl ValueWatch {
    pub(super) fn new(client: Arc<Client>, key: String) -> Self {
        ValueWatch {
            client,
            key,
            watch: None,
        }
    }
}

impl Watch for ValueWatch {
    fn changed(&mut self, until: &Deadline) -> Result<bool> {
        let endpoint = self.client.endpoint();
        // While it is taken, no failure leaves one that tells of nothing any more.
        let Some(mut watch) = self.watch.take() else {
            let ranges = [Range::Key(self.key.clone())];
            let by = until.within(self.client.patience());
            let begun = self.client.watch(&ranges, true, &by);
            self.watch = Some(begun.map_err(|failure| failure.into_error(None, endpoint))?);
            return Ok(false);
        };
        let events = match watch.next(until) {
            // No failure, however short an outage may last: the next call begins another.
            Err(_) if watch.is_silent() => return Ok(false),
            events => events.map_err(|failure| failure.into_error(None, endpoint))?,
        };
        self.watch = Some(watch);
        Ok(!events.is_empty())
    }
}
