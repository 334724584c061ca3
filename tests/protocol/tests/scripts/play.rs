//! Owners that ask a model and a server, next to losses of every kind.

use crosslock_protocol::corpus::{After, Plays};
use crosslock_protocol::players::Players;
use crosslock_protocol::server::{Answer, Messages};
use crosslock_protocol::steps::{At, Claim, Step};

use super::replayer::Replayer;

pub(crate) struct Play<'a> {
    replayer: &'a mut Replayer,
    players: Players,
    /// What the last call was answered, and what was published.
    last: (Option<Answer>, Messages),
}

impl<'a> Play<'a> {
    pub(crate) fn new(claims: &[Claim], replayer: &'a mut Replayer) -> Self {
        replayer.start_anew();
        Play {
            players: Players::new(claims),
            replayer,
            last: (None, Messages::new()),
        }
    }
}

impl Plays for Play<'_> {
    fn play(&mut self, at: At, step: Step) -> Result<bool, String> {
        if !step.is_call() {
            return self.replayer.suffer(at, step).map(|()| true);
        }
        let Some((names, call)) = self.players.call(self.replayer.names(), at, step) else {
            return Ok(false);
        };
        let (answer, messages) = self.replayer.call(names, call)?;
        self.players.learn((names, call), answer, &messages);
        self.last = (Some(answer), messages);
        Ok(true)
    }

    fn after(&self) -> After<'_> {
        After {
            answer: self.last.0,
            messages: &self.last.1,
            names: self.replayer.names(),
        }
    }
}
