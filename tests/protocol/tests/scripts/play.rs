//! Owners that ask a model and a server, next to losses of every kind.

use crosslock_protocol::corpus::{After, Plays};
use crosslock_protocol::players::Players;
use crosslock_protocol::server::Ear;
use crosslock_protocol::steps::{At, Claim, Step};

use super::replayer::{Outcome, Replayer};
use super::rules::{Done, Rules};

pub(crate) struct Play<'a> {
    replayer: &'a mut Replayer,
    players: Players,
    rules: Rules,
    /// What became of the last call.
    last: Option<Outcome>,
}

impl<'a> Play<'a> {
    pub(crate) fn new(claims: &[Claim], replayer: &'a mut Replayer) -> Self {
        replayer.start_anew();
        for (inbox, ear) in [(2, Ear::Gone), (3, Ear::Forbidden)] {
            let told = replayer.suffer(0, Step::Ear(inbox, ear));
            told.expect("it changes no key");
        }
        Play {
            players: Players::new(claims),
            rules: Rules::new(replayer.names().len()),
            replayer,
            last: None,
        }
    }
}

impl Plays for Play<'_> {
    fn play(&mut self, at: At, step: Step) -> Result<bool, String> {
        if !step.is_call() {
            self.rules.suffer(step, self.replayer);
            return self.replayer.suffer(at, step).map(|()| true);
        }
        let before = self.replayer.names().to_vec();
        let Some((names, call)) = self.players.call(&before, at, step) else {
            return Ok(false);
        };
        let outcome = self.replayer.call(names, call)?;
        let checked = self.rules.check(Done {
            names,
            call,
            before: &before,
            outcome: &outcome,
            ears: self.replayer.ears(),
        });
        checked.map_err(|rule| self.replayer.breaks(&rule, &before))?;
        let (answer, messages) = (outcome.answer, &outcome.messages);
        self.players.learn((names, call), answer, messages);
        self.last = Some(outcome);
        Ok(true)
    }

    fn after(&self) -> After<'_> {
        let last = self.last.as_ref();
        After {
            answer: last.map(|outcome| outcome.answer),
            messages: last.map_or(&[], |outcome| &outcome.messages),
            names: self.replayer.names(),
        }
    }
}
