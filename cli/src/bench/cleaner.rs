//! `__clean`: removes what a bench leaves, even if the bench is killed. Users don't call it.
//!
//! It is a second process. It waits for the end of a pipe whose other end only the bench has.

use std::io::{self, Read as _};
use std::process::{Child, ExitCode, Stdio};
use std::{env, ffi::OsString};

use super::place::Place;
use crate::run::own_program;
use crate::status::{FAILED, Failure, OK};

/// The inner verb's name on the command line.
pub(crate) const VERB: &str = "__clean";

/// The variable with the URL: other users could read an argument.
const URL: &str = "CROSSLOCK_URL";

/// The process that removes what a bench leaves.
pub(super) struct Cleaner(Child);

impl Cleaner {
    pub(super) fn start(place: &Place, url: &str) -> Result<Self, Failure> {
        let process = own_program(VERB)
            .args([place.namespace(), place.name()])
            .env(URL, url)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let failure = |e| Failure::broken("can't start the process that cleans up", &e);
        process.map(Cleaner).map_err(failure)
    }

    /// Ends the pipe, and returns when everything is removed.
    pub(super) fn finish(mut self) {
        // `wait` closes the pipe.
        if let Err(e) = self.0.wait() {
            log::debug!("can't clean up: {e}");
        }
    }
}

/// Waits for the end of the bench, and cleans up.
pub(crate) fn run(args: impl Iterator<Item = OsString>) -> ExitCode {
    let args: Vec<_> = args.map(|arg| arg.to_string_lossy().into_owned()).collect();
    let (Ok(url), [namespace, name]) = (env::var(URL), &args[..]) else {
        return FAILED.into();
    };
    // An error means the end of the bench too.
    let _ = io::stdin().read_to_end(&mut Vec::new());
    Place::named(&url, namespace, name).clean();
    OK.into()
}
