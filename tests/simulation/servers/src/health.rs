//! What has happened to a host, whatever it serves.

use crosslock_world::service::Fault;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Health {
    pub(crate) is_down: bool,
    pub(crate) is_paused: bool,
    /// It reaches no other host.
    pub(crate) is_cut: bool,
}

impl Health {
    pub(crate) fn suffer(&mut self, fault: Fault) {
        match fault {
            Fault::Kill => (self.is_down, self.is_paused) = (true, false),
            Fault::Start { .. } => self.is_down = false,
            Fault::Pause => self.is_paused = true,
            Fault::Resume => self.is_paused = false,
            Fault::Cut => self.is_cut = true,
            Fault::Heal => self.is_cut = false,
            Fault::StepClock { .. } | Fault::Own(_) => {}
        }
    }

    pub(crate) fn is_at_work(self) -> bool {
        !self.is_down && !self.is_paused
    }

    /// Whether others can send to it.
    pub(crate) fn is_linked(self) -> bool {
        !self.is_down && !self.is_cut
    }

    /// Whether it does something, and others hear of it.
    pub(crate) fn is_there(self) -> bool {
        self.is_at_work() && !self.is_cut
    }
}
