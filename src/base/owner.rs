//! The proof that a lease is one's own: a new one for each lease that a process asks for.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use uuid::Uuid;

use crate::base::fork::Process;
use crate::base::sys;

/// The proof of ownership: `<uuid v4>/<host>/<pid>/<thread>`, and `/<label>` if the locker has one. Whoever knows it
/// can release the lock, so it is shown nowhere.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Owner {
    text: Arc<str>,
}

impl Owner {
    /// A new one of this process: the first part is random, the rest tells an operator whom to ask.
    pub(crate) fn of(process: Process, label: Option<&str>) -> Self {
        let made = MAKER.try_with(|maker| maker.borrow_mut().make(process, label));
        let text = made.unwrap_or_else(|_| {
            // A thread that is ending, in the destructor of another such local or in `atexit`, has none any more.
            let mut maker = Maker::NEW;
            maker.make(process, label)
        });
        Owner { text }
    }

    #[cfg(test)]
    pub(crate) fn new() -> Self {
        Owner::of(Process::current(), None)
    }

    /// One that another process has passed on, or that was written down.
    pub(crate) fn from_text(text: &str) -> Self {
        Owner { text: text.into() }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Whom to ask about it: `<host>/<pid>/<thread>`, and `/<label>`, which proves nothing.
    pub(crate) fn holder(&self) -> &str {
        self.as_str()
            .split_once('/')
            .map_or("", |(_, holder)| holder)
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Owner(..)")
    }
}

thread_local! {
    static MAKER: RefCell<Maker> = const { RefCell::new(Maker::NEW) };
}

/// What a thread makes its owners of, in one process.
///
/// No random numbers are among it: they come from the system for each owner. A copy of this process would use those
/// that were drawn ahead a second time, and not every copy has another process id: one that is made in a new PID
/// namespace by the first process of another is the first process there, too.
struct Maker {
    process: Option<Process>,
    suffix: String,
    /// Where the next is put together.
    text: String,
}

impl Maker {
    const NEW: Maker = Maker {
        process: None,
        suffix: String::new(),
        text: String::new(),
    };

    fn make(&mut self, process: Process, label: Option<&str>) -> Arc<str> {
        if self.process != Some(process) {
            (self.process, self.suffix) = (Some(process), suffix_of(process));
        }
        let uuid = sys::random_uuid();
        self.text.clear();
        self.text
            .push_str(uuid.hyphenated().encode_lower(&mut Uuid::encode_buffer()));
        self.text.push_str(&self.suffix);
        if let Some(label) = label {
            self.text.push('/');
            self.text.push_str(label);
        }
        self.text.as_str().into()
    }
}

fn suffix_of(process: Process) -> String {
    let host = host_of(&sys::host_name());
    format!("/{host}/{}/{}", process.id(), sys::thread_number())
}

/// A name of a host as a part of a line: it may have any byte, and a label has no control characters either.
fn host_of(nodename: &str) -> String {
    nodename.replace(|c: char| c.is_control() || c == '/', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_is_a_part_of_a_line() {
        assert_eq!(host_of("vm-1.example"), "vm-1.example");
        assert_eq!(host_of("a\nb/c\td"), "a-b-c-d");
    }
}
