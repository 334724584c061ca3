//! Commands that tell all the time that they run, so that a test sees whether two ran at a time.

use std::collections::BTreeSet;

use support::wait_until;

use crate::PATIENCE;
use crate::tool::Place;

/// Writes the lock's token into `beats`, over and over.
pub(crate) const BEAT: &str = "while :; do echo $CROSSLOCK_TOKEN >> beats; sleep 0.01; done";

/// The same, by a child of the shell, and by a child of that one, while the shell waits.
pub(crate) const BEAT_BELOW: &str = "sh -c 'sh -c \"while :; do echo $CROSSLOCK_TOKEN >> beats; sleep 0.01; done\" & \
     while :; do echo $CROSSLOCK_TOKEN >> beats; sleep 0.01; done' & wait";

/// The same, and SIGTERM doesn't end it.
pub(crate) const BEAT_ON: &str =
    "trap : TERM; while :; do echo $CROSSLOCK_TOKEN >> beats; sleep 0.01; done";

impl Place {
    /// The tokens of those that have told that they run, in their order.
    fn beats(&self) -> Vec<u64> {
        let beats = self.read("beats");
        // The last line may be half written.
        let lines = beats
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'));
        lines.filter_map(|line| line.trim().parse().ok()).collect()
    }

    /// Waits until so many commands have run, each under another token.
    #[track_caller]
    pub(crate) fn wait_for_beats_of(&self, commands: usize) {
        wait_until("commands to run", PATIENCE, || {
            self.beats().into_iter().collect::<BTreeSet<_>>().len() >= commands
        });
    }

    /// Waits until the one that runs now has told so many times more.
    #[track_caller]
    pub(crate) fn wait_for_more_beats(&self, more: usize) {
        let before = self.beats().len();
        wait_until("a command to run on", PATIENCE, || {
            self.beats().len() >= before + more
        });
    }

    /// Says whether none has told anything for some time.
    pub(crate) fn is_silent(&self) -> bool {
        let before = self.beats().len();
        crate::tool::pause(300);
        self.beats().len() == before
    }

    /// Whoever runs later has a larger token: nobody runs on when the next one has begun.
    #[track_caller]
    pub(crate) fn assert_that_none_ran_beside_another(&self) {
        let beats = self.beats();
        assert!(
            beats.is_sorted(),
            "two ran at a time: {}",
            self.read("beats")
        );
    }
}
