//! Scripts by their digest, and calls of them.

use std::sync::OnceLock;
use std::time::Duration;

use ::redis::Cmd;

use super::keys::{HOLDERS, Keys, QUEUE, VALUE};
use super::lua;
use crate::base::fork::get_or_make;
use crate::base::{Claim, Mode};

/// A script of `lua/`.
#[derive(Debug)]
pub(super) struct Script {
    code: String,
    digest: String,
}

/// A script with its keys and arguments.
#[derive(Debug)]
pub(super) struct Call<'a> {
    script: &'a Script,
    /// How many parts there are behind the script.
    parts: usize,
    /// How many keys, the keys, and the arguments, as they are sent.
    packed: Vec<u8>,
    /// The keys of the locks that it is about, all on one slot. Empty where it is about no owner's.
    pub(super) locks: Vec<String>,
    needs: Needs<'a>,
}

/// What a script that is run for an owner needs besides its arguments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Needs<'a> {
    /// The key of the value.
    pub(super) value: bool,
    /// That key once more: those who watch the value hear on a sharded channel of that name.
    pub(super) sharded_channel: bool,
    /// No keys but those of the lease. A node that has a slot in part carries out only scripts all of whose keys it
    /// has.
    pub(super) lease_only: bool,
    /// That replicas have what it writes, where the options say so.
    pub(super) replicas: bool,
    /// That it isn't carried out twice.
    pub(super) once: bool,
    pub(super) same_connection: SameConnection<'a>,
}

/// A command that can be sent again in another form when the server asks for it.
pub(super) trait Command {
    /// As it is sent.
    fn packed(&self) -> Vec<u8>;

    /// What to send when the server doesn't know the script.
    fn in_full(&self) -> Option<Vec<u8>> {
        None
    }

    /// Whether replicas must have what it writes, where the options say so.
    fn is_for_replicas(&self) -> bool {
        false
    }

    /// Whether it mustn't be carried out twice: it isn't sent again after it may have reached a server.
    fn is_once(&self) -> bool {
        false
    }

    /// How many commands it is. The values of several come as an array.
    fn length(&self) -> usize {
        1
    }

    /// The keys of the locks that it may take.
    fn locks(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Whether it has to go out on the connection of another command of its owner.
    fn same_connection(&self) -> SameConnection<'_> {
        SameConnection::Any
    }

    /// Whose call it is, among all scripts of this process.
    fn script_number(&self) -> usize {
        0
    }
}

/// Where a command is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route<'a> {
    /// One of its keys, whose hash tag decides on the slot.
    pub(super) key: &'a str,
    /// How long ago its server may have been found out, at most; `None` where a server that was replaced since does no
    /// harm.
    pub(super) known_within: Option<Duration>,
}

impl<'a> Route<'a> {
    pub(super) fn to(key: &'a str) -> Self {
        Route {
            key,
            known_within: None,
        }
    }

    /// The same for what an operator does: its server is found out anew.
    pub(super) fn anew(key: &'a str) -> Self {
        Route {
            key,
            known_within: Some(Duration::ZERO),
        }
    }
}

/// Whether a command has to go out on the connection of an earlier one of the same owner. One that comes to a server
/// late may undo what was sent after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SameConnection<'a> {
    #[default]
    Any,
    /// It asks for this owner: carried out late, it takes what nobody gives back.
    Asks(&'a str),
    /// It takes back what this owner has asked for, so it has to come behind the question.
    TakesBack(&'a str),
}

impl<'a> SameConnection<'a> {
    /// Whose question it has to come behind.
    pub(super) fn owner(self) -> Option<&'a str> {
        match self {
            SameConnection::Any => None,
            SameConnection::Asks(owner) | SameConnection::TakesBack(owner) => Some(owner),
        }
    }
}

impl Script {
    /// All scripts of `lua/` that are sent, by their names, such as `lock/acquire`.
    pub(super) fn all() -> &'static [(&'static str, Self)] {
        static ALL: OnceLock<Vec<(&str, Script)>> = OnceLock::new();
        let all = get_or_make(&ALL, || {
            let scripts = lua::FILES.iter().map(|(name, _)| *name);
            let scripts = scripts.filter(|name| !name.starts_with("lib/"));
            scripts
                .map(|name| (name, Script::of(lua::whole(name))))
                .collect()
        });
        all.as_slice()
    }

    fn of(code: String) -> Self {
        let digest = ::redis::Script::new(&code).get_hash().to_owned();
        Script { code, digest }
    }

    pub(super) fn call(&self, keys: &[&str], arguments: &[&[u8]]) -> Call<'_> {
        const USUAL_SIZE: usize = 320;
        let mut packed = Vec::with_capacity(USUAL_SIZE);
        push_part(&mut packed, keys.len().to_string().as_bytes());
        for part in keys.iter().map(|key| key.as_bytes()) {
            push_part(&mut packed, part);
        }
        for part in arguments {
            push_part(&mut packed, part);
        }
        Call {
            script: self,
            parts: 1 + keys.len() + arguments.len(),
            packed,
            locks: Vec::new(),
            needs: Needs::default(),
        }
    }

    /// The same with the keys of a claim, all of which are on one slot. Arguments that aren't there are sent as empty
    /// ones before others, and else not at all.
    pub(super) fn call_for<'a>(
        &'a self,
        claim: &Claim,
        needs: Needs<'a>,
        arguments: &[Option<&[u8]>],
    ) -> Call<'a> {
        let keys: Vec<_> = claim.keys().iter().map(Keys::of_mode(claim.mode)).collect();
        let is_task = claim.mode == Mode::Task;
        let passed = if needs.value || is_task {
            VALUE + 1
        } else {
            VALUE
        };
        let needed = keys.iter().flat_map(|keys| {
            let mut all = keys.all();
            if needs.lease_only && !is_task {
                // In the place of a key that isn't needed stands the lock's.
                let end = if claim.is_exclusive() { VALUE } else { HOLDERS };
                all[QUEUE..end].fill(&keys.lock);
            }
            all.into_iter().take(passed)
        });
        let channel = keys.first().filter(|_| needs.sharded_channel);
        let needed = needed.chain(channel.map(|keys| keys.all()[VALUE]));
        let last = arguments.iter().rposition(Option::is_some);
        let arguments = &arguments[..last.map_or(0, |last| last + 1)];
        let arguments = arguments.iter().map(|one| one.unwrap_or_default());
        let call = self.call(&needed.collect::<Vec<_>>(), &arguments.collect::<Vec<_>>());
        Call {
            locks: keys.into_iter().map(|keys| keys.lock).collect(),
            needs,
            ..call
        }
    }
}

impl Call<'_> {
    /// The same, but it isn't carried out twice.
    pub(super) fn once(mut self) -> Self {
        self.needs.once = true;
        self
    }

    /// The same, but replicas must have what it writes, where the options say so.
    pub(super) fn for_replicas(mut self) -> Self {
        self.needs.replicas = true;
        self
    }

    /// The crate's `Cmd` would copy each part twice, on the way of every lock and unlock.
    fn pack(&self, verb: &str, script: &str) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(script.len() + self.packed.len() + 64);
        push_number(&mut bytes, b'*', 2 + self.parts);
        push_part(&mut bytes, verb.as_bytes());
        push_part(&mut bytes, script.as_bytes());
        bytes.extend_from_slice(&self.packed);
        bytes
    }
}

fn push_part(bytes: &mut Vec<u8>, part: &[u8]) {
    push_number(bytes, b'$', part.len());
    bytes.extend_from_slice(part);
    bytes.extend_from_slice(b"\r\n");
}

fn push_number(bytes: &mut Vec<u8>, mark: u8, number: usize) {
    const TENS: [usize; 7] = [1_000_000, 100_000, 10_000, 1_000, 100, 10, 1];
    bytes.push(mark);
    if number >= 10 * TENS[0] {
        bytes.extend_from_slice(number.to_string().as_bytes());
    } else {
        for ten in TENS.into_iter().filter(|ten| *ten <= number.max(1)) {
            bytes.push(b"0123456789"[number / ten % 10]);
        }
    }
    bytes.extend_from_slice(b"\r\n");
}

impl Command for Call<'_> {
    fn packed(&self) -> Vec<u8> {
        self.pack("EVALSHA", &self.script.digest)
    }

    fn in_full(&self) -> Option<Vec<u8>> {
        Some(self.pack("EVAL", &self.script.code))
    }

    fn is_for_replicas(&self) -> bool {
        self.needs.replicas
    }

    fn is_once(&self) -> bool {
        self.needs.once
    }

    fn locks(&self) -> Vec<&str> {
        match self.needs.same_connection {
            SameConnection::Asks(_) => self.locks.iter().map(String::as_str).collect(),
            SameConnection::Any | SameConnection::TakesBack(_) => Vec::new(),
        }
    }

    fn same_connection(&self) -> SameConnection<'_> {
        self.needs.same_connection
    }

    fn script_number(&self) -> usize {
        std::ptr::from_ref(self.script).addr()
    }
}

impl Command for Cmd {
    fn packed(&self) -> Vec<u8> {
        self.get_packed_command()
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::VALUE;
    use super::lua::{FILES, constants};
    use crate::base::token::HAND_OVERS;

    fn is_of_a_word(c: char) -> bool {
        c.is_ascii_alphanumeric() || c == '_'
    }

    #[test]
    fn no_text_in_a_script_is_the_name_of_a_constant() {
        let lines = FILES.iter().flat_map(|(_, code)| code.lines());
        for line in lines.filter(|line| !line.trim_start().starts_with("--")) {
            for text in line.split('\'').skip(1).step_by(2) {
                let mut words = text.split(|c| !is_of_a_word(c));
                let is_constant = |word: &str| constants().iter().any(|(name, _)| *name == word);
                assert!(!words.any(is_constant), "{line}");
            }
        }
    }

    #[test]
    fn constants_are_those_of_the_library() {
        let constants = constants();
        let literal = |name: &str| {
            constants
                .iter()
                .find(|(known, _)| *known == name)
                .unwrap()
                .1
        };
        assert_eq!(literal("HAND_OVERS"), HAND_OVERS.to_string());
        assert_eq!(literal("VALUE"), (VALUE + 1).to_string());
        let largest: u64 = (1 << 53) - (1 << 12);
        assert_eq!(literal("LARGEST"), largest.to_string());
    }
}
