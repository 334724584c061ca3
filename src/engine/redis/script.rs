//! Scripts by their digest.

use ::redis::Cmd;

/// A script of `lua/`.
#[derive(Debug)]
pub(super) struct Script {
    code: String,
    digest: String,
}

/// What scripts share, and the line that stands for it in them; behind what it includes itself.
const SHARED: [(&str, &str); 10] = [
    (
        "-- include lock_acquire.lua\n",
        include_str!("../../../lua/lock/acquire.lua"),
    ),
    (
        "-- include lock_release.lua\n",
        include_str!("../../../lua/lock/release.lua"),
    ),
    (
        "-- include lock_renew.lua\n",
        include_str!("../../../lua/lock/renew.lua"),
    ),
    (
        "-- include each.lua\n",
        include_str!("../../../lua/lib/each.lua"),
    ),
    (
        "-- include counter.lua\n",
        include_str!("../../../lua/lib/counter.lua"),
    ),
    (
        "-- include grant.lua\n",
        include_str!("../../../lua/lib/grant.lua"),
    ),
    (
        "-- include token.lua\n",
        include_str!("../../../lua/lib/token.lua"),
    ),
    (
        "-- include mode.lua\n",
        include_str!("../../../lua/lib/mode.lua"),
    ),
    (
        "-- include held.lua\n",
        include_str!("../../../lua/lib/holders.lua"),
    ),
    (
        "-- include line.lua\n",
        include_str!("../../../lua/lib/hand_off.lua"),
    ),
];

/// A script with its keys and arguments.
#[derive(Debug)]
pub(super) struct ScriptCall<'a> {
    script: &'a Script,
    keys: &'a [&'a str],
    arguments: &'a [&'a [u8]],
}

/// A command that can be sent again in another form when the server asks for it.
pub(super) trait Command {
    /// As it is sent.
    fn packed(&self) -> Vec<u8>;

    /// What to send when the server doesn't know the script.
    fn in_full(&self) -> Option<Vec<u8>> {
        None
    }
}

impl Script {
    pub(super) fn new(code: &str) -> Self {
        let include = |code: String, (line, text): &(&str, &str)| code.replace(line, text);
        let code = SHARED.iter().fold(code.to_owned(), include);
        let digest = ::redis::Script::new(&code).get_hash().to_owned();
        Script { code, digest }
    }

    pub(super) fn call<'a>(
        &'a self,
        keys: &'a [&'a str],
        arguments: &'a [&'a [u8]],
    ) -> ScriptCall<'a> {
        ScriptCall {
            script: self,
            keys,
            arguments,
        }
    }
}

impl ScriptCall<'_> {
    /// The crate's `Cmd` would copy each part twice, on the way of every lock and unlock.
    fn pack(&self, verb: &str, script: &str) -> Vec<u8> {
        const USUAL_SIZE: usize = 320;
        let mut bytes = Vec::with_capacity(USUAL_SIZE);
        push_number(&mut bytes, b'*', 3 + self.keys.len() + self.arguments.len());
        for part in [verb, script, &self.keys.len().to_string()] {
            push_part(&mut bytes, part.as_bytes());
        }
        for key in self.keys {
            push_part(&mut bytes, key.as_bytes());
        }
        for argument in self.arguments {
            push_part(&mut bytes, argument);
        }
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

impl Command for ScriptCall<'_> {
    fn packed(&self) -> Vec<u8> {
        self.pack("EVALSHA", &self.script.digest)
    }

    fn in_full(&self) -> Option<Vec<u8>> {
        Some(self.pack("EVAL", &self.script.code))
    }
}

impl Command for Cmd {
    fn packed(&self) -> Vec<u8> {
        self.get_packed_command()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::for_any;

    #[test]
    fn call_is_packed_as_the_crate_does() {
        for_any(|random| {
            let keys = random.list(0..=4, |random| random.text(0..=200));
            // Short ones, and those whose length takes a digit more.
            let arguments = random.list(0..=4, |random| {
                let least = random.one_of(&[0, 990]);
                random.text(least..=least + 20)
            });
            let script = Script::new("return 1");
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            let arguments: Vec<&[u8]> = arguments.iter().map(String::as_bytes).collect();
            let call = script.call(&keys, &arguments);
            for (packed, verb, text) in [
                (call.packed(), "EVALSHA", &script.digest),
                (call.in_full().unwrap(), "EVAL", &script.code),
            ] {
                let mut command = ::redis::cmd(verb);
                command.arg(text).arg(keys.len()).arg(&keys).arg(&arguments);
                assert_eq!(packed, command.get_packed_command());
            }
        });
    }

    #[test]
    fn shared_parts_are_in_every_script_that_names_them() {
        let script = Script::new(
            "-- include token.lua\n-- include mode.lua\n-- include held.lua\n-- include grant.lua\n-- include line.lua\n",
        );
        assert!(script.code.contains("local function next_token"));
        assert!(script.code.contains("local function fits"));
        assert!(script.code.contains("local function hand_on"));
        assert!(!script.code.contains("-- include"));
    }
}
