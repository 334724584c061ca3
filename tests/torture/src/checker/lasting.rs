//! Leases that have no end of their own: where they end.

use super::Facts;
use super::facts::Holding;

impl Facts<'_> {
    /// Leases that have no end themselves end with their process. Who passes one on gives it an end: a ttl later.
    pub(super) fn end_with_processes(&mut self) {
        let ends: Vec<_> = self.holdings.iter().map(|one| self.end_of(one)).collect();
        for (holding, end) in self.holdings.iter_mut().zip(ends) {
            holding.until = holding.until.min(end);
        }
    }

    fn end_of(&self, holding: &Holding<'_>) -> u64 {
        let (pid, from) = (holding.answer.pid, holding.from());
        if let (Some(passed), Some(_)) = (holding.passed(), holding.released) {
            return passed.at.saturating_add(self.ttl());
        }
        // What was had when the child was forked off, until that ended.
        let mut kept = self.kept.iter();
        let kept = kept.find(|kept| kept.pid == pid && from < kept.until);
        let death = self.death(pid, from).map(|span| span.from);
        match kept {
            Some(kept) if holding.release.is_none() => kept.at,
            _ => death.unwrap_or(u64::MAX),
        }
    }

    fn ttl(&self) -> u64 {
        let mut reversed = self.events.iter().rev();
        let run = reversed.find(|event| event.op == "run");
        run.map_or(0, |run| run.until)
    }
}
