//! Fencing tokens: the counter of each name, for the engines that are no Redis. `lua/lib/token.lua`
//! does the same, and `tests/redis/scripts` compares them.

use crate::base::sys::time;

/// How many tokens one lease may use above the one that was granted, for threads that it is handed over to. Twice as
/// many are kept free for it.
pub(crate) const HAND_OVERS: u64 = 1024;

/// A token, and whether the holder before it never released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) number: u64,
    pub(crate) abandoned: bool,
}

impl Token {
    /// The first token of a new lease, given what is stored: odd while held, even after a clean release.
    ///
    /// It is odd, larger than any that was used, no smaller than the server's time in microseconds (so that it
    /// is larger even when the store has lost its memory), and its second bit says "abandoned", so that an
    /// acquire which is repeated learns that again.
    pub(crate) fn next(stored: u64, now_micros: u64) -> Self {
        let abandoned = stored % 2 == 1;
        let used = if abandoned {
            stored + 2 * HAND_OVERS
        } else {
            stored
        };
        Token::of_class((used + 1).max(now_micros), abandoned)
    }

    /// The first that is no smaller than `floor`, and says whether the holder before never released.
    pub(crate) fn of_class(floor: u64, abandoned: bool) -> Self {
        // 7 of 8 is for those that share, see `lua/README.md`.
        let (class, of) = if abandoned { (3, 8) } else { (1, 4) };
        Token::from_number(floor + (class + of - floor % of) % of)
    }

    /// The token that the number is. Its second bit says whether the holder before never released.
    pub(crate) fn from_number(number: u64) -> Self {
        Token {
            number,
            abandoned: number % 4 == 3,
        }
    }

    /// One token for both: no smaller than either, and "abandoned" if one is.
    pub(crate) fn and(self, other: Token) -> Self {
        let (number, abandoned) = (
            self.number.max(other.number),
            self.abandoned || other.abandoned,
        );
        if abandoned {
            Token::of_class(number, true)
        } else {
            Token { number, abandoned }
        }
    }

    /// The token of the next holder in this process, if the one before has asked for its own: nobody abandoned it. It
    /// may be even: no engine knows of it.
    pub(crate) fn of_next_thread(self, is_used: bool) -> Self {
        Token {
            number: self.number + u64::from(is_used),
            abandoned: false,
        }
    }

    /// What an engine is told to have been used last: odd, as what it grants.
    pub(crate) fn last_used(self) -> u64 {
        self.number | 1
    }

    /// What the counter holds after a clean release.
    pub(crate) fn released(last_used: u64) -> u64 {
        last_used + 1
    }
}

/// How a lease ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// By an owner that doesn't know whether it was granted one.
    Unknown,
    /// In order.
    Clean { last_used: u64 },
    /// By a panic: what the lock protects may be half done, so the next holder is told that it was abandoned.
    Panicked { last_used: u64 },
}

impl Ending {
    /// What the counter holds then; `None` when no token is known that it would have to be above.
    ///
    /// It is larger than all that were used, so that nothing else leaves the same number behind: by that a release
    /// which is repeated knows itself.
    pub(crate) fn counter(self) -> Option<u64> {
        match self {
            Ending::Unknown => None,
            Ending::Clean { last_used } => Some(Token::released(last_used)),
            Ending::Panicked { last_used } => {
                // Odd: abandoned. But 7 of 8 says that of one that shares, see `lua/README.md`.
                let next = last_used + 2;
                Some(if next % 8 == 7 { next + 2 } else { next })
            }
        }
    }
}

/// The time of the host, which is the server of the engines without one.
pub(crate) fn host_micros() -> u64 {
    let since = time::wall();
    since.as_micros().try_into().unwrap_or(u64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::for_any;

    const LARGEST: u64 = 1 << 52;

    #[test]
    fn token_is_odd_larger_than_all_before_and_tells_abandonment() {
        for_any(|random| {
            let [stored, now] = [(); 2].map(|()| random.u64(..LARGEST));
            let hand_overs = random.u64(..=HAND_OVERS);
            let token = Token::next(stored, now);
            assert_eq!(token.number % 2, 1);
            assert!(token.number >= now);
            assert_eq!(token.abandoned, stored % 2 == 1);
            assert_eq!(token.abandoned, token.number % 4 == 3);
            let used = if token.abandoned {
                stored + 2 * hand_overs
            } else {
                stored
            };
            assert!(token.number > used);
        });
    }

    #[test]
    fn panic_leaves_a_number_that_tells_of_it_above_all_that_were_used() {
        for_any(|random| {
            let [stored, now] = [(); 2].map(|()| random.u64(..LARGEST));
            let hand_overs = random.u64(..=HAND_OVERS);
            let last_used = Token::next(stored, now).number + 2 * hand_overs;
            let counter = Ending::Panicked { last_used }.counter().unwrap();
            assert!(counter > last_used && counter % 2 == 1 && counter % 8 != 7);
            let next = Token::next(counter, 0);
            assert!(next.abandoned && next.number > counter);
            // Nor is it mistaken for a release in order, or for a lease that ran out.
            let clean = Ending::Clean { last_used }.counter().unwrap();
            assert!(counter != clean && clean > last_used && !Token::next(clean, 0).abandoned);
        });
    }
}
