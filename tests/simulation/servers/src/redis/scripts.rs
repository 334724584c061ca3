//! Scripts, which the real Lua runs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use mlua::{Function, Lua, LuaOptions, MultiValue, StdLib, Table, Value};

use super::keyspace::Bytes;
use super::numbers::whole;
use super::reply::{OK, Reply, Words};
use super::state::State;

const PRELUDE: &str = include_str!("prelude.lua");
/// What an error calls a script.
const CHUNK: &str = "@user_script";

/// The state while a script runs; in between one that nobody uses.
type Lent = Box<State>;

/// Compiled scripts, by their digests.
type Compiled = BTreeMap<String, Function>;

/// The scripts of one server. Servers of a group share the Lua: only one of them runs a script at a time.
#[derive(Clone)]
pub(super) struct Scripts {
    lua: Lua,
    run: Function,
    /// What any of them was sent, so that each script is compiled once.
    compiled: Arc<Mutex<Compiled>>,
    known: Compiled,
}

impl Scripts {
    pub(super) fn new() -> Self {
        Scripts::try_new().expect("Lua starts")
    }

    fn try_new() -> mlua::Result<Self> {
        let libraries = StdLib::STRING | StdLib::TABLE | StdLib::MATH;
        let lua = Lua::new_with(libraries, LuaOptions::default())?;
        // Scripts need so little memory that it may grow tenfold between two collections.
        lua.gc_set_pause(1_000);
        lua.set_app_data(Lent::default());
        let call = lua.create_function(call)?;
        let digest = lua.create_function(|_, text: mlua::String| Ok(digest(&text.as_bytes())))?;
        let prelude = lua.load(PRELUDE).set_name("=redis");
        let run = prelude.call((call, digest))?;
        Ok(Scripts {
            lua,
            run,
            compiled: Arc::default(),
            known: BTreeMap::new(),
        })
    }

    /// Of another server of the group, which knows none yet.
    pub(super) fn of_another(&self) -> Self {
        let mut scripts = self.clone();
        scripts.forget_all();
        scripts
    }

    /// Compiles a script, unless it is known; gives its digest.
    pub(super) fn load(&mut self, code: &[u8]) -> Result<String, Reply> {
        let digest = digest(code);
        if !self.known.contains_key(&digest) {
            let function = self.compile(&digest, code)?;
            self.known.insert(digest.clone(), function);
        }
        Ok(digest)
    }

    fn compile(&self, digest: &str, code: &[u8]) -> Result<Function, Reply> {
        let compiled = self.compiled.lock();
        let mut compiled = compiled.unwrap_or_else(PoisonError::into_inner);
        if let Some(function) = compiled.get(digest) {
            return Ok(function.clone());
        }
        let chunk = self.lua.load(code).set_name(CHUNK);
        let function = chunk.set_mode(mlua::ChunkMode::Text).into_function();
        let function =
            function.map_err(|e| Reply::error(format!("ERR Error compiling script: {e}")))?;
        compiled.insert(digest.to_owned(), function.clone());
        Ok(function)
    }

    pub(super) fn forget_all(&mut self) {
        self.known.clear();
    }

    /// Runs a script that is known, and lends it the state meanwhile.
    pub(super) fn run(
        &self,
        digest: &str,
        state: &mut Box<State>,
        keys: &[Bytes],
        arguments: &[Bytes],
    ) -> Reply {
        let Some(script) = self.known.get(digest) else {
            return Reply::error("NOSCRIPT No matching script. Please use EVAL.");
        };
        self.exchange(state);
        let ran = self.run_lent(script, keys, arguments);
        self.exchange(state);
        match ran {
            Ok((true, answer)) => reply_of(&answer, 0),
            Ok((false, failure)) => failed(&failure),
            Err(e) => Reply::error(format!("ERR Error running script: {e}")),
        }
    }

    fn exchange(&self, state: &mut Lent) {
        if let Some(mut lent) = self.lua.app_data_mut::<Lent>() {
            std::mem::swap(&mut *lent, state);
        }
    }

    fn run_lent(
        &self,
        script: &Function,
        keys: &[Bytes],
        arguments: &[Bytes],
    ) -> mlua::Result<(bool, Value)> {
        let texts = |all: &[Bytes]| {
            let all: mlua::Result<Vec<_>> = all
                .iter()
                .map(|text| self.lua.create_string(text))
                .collect();
            self.lua.create_sequence_from(all?)
        };
        self.run.call((script, texts(keys)?, texts(arguments)?))
    }
}

fn digest(text: &[u8]) -> String {
    sha1_smol::Sha1::from(text).digest().to_string()
}

/// `redis.call`: the answer, and whether it is an error.
fn call(lua: &Lua, words: MultiValue) -> mlua::Result<(Value, bool)> {
    let reply = {
        let state = lua.app_data_mut::<Lent>();
        let mut state = state.expect("it was set when Lua started");
        match words_of(&words) {
            Ok(words) => state.run(&words),
            Err(refusal) => refusal,
        }
    };
    let has_failed = matches!(reply, Reply::Error(_));
    Ok((value_of(lua, reply)?, has_failed))
}

fn words_of(values: &MultiValue) -> Result<Words, Reply> {
    if values.is_empty() {
        let error = "ERR Please specify at least one argument for this redis lib call";
        return Err(Reply::error(error));
    }
    let words = values.iter().map(|value| match value {
        Value::String(text) => Some(text.as_bytes().to_vec()),
        Value::Integer(number) => Some(number.to_string().into_bytes()),
        Value::Number(number) => Some(number.to_string().into_bytes()),
        _ => None,
    });
    let error = "ERR Lua redis lib command arguments must be strings or integers";
    let words: Option<Words> = words.collect();
    words.ok_or_else(|| Reply::error(error))
}

fn value_of(lua: &Lua, reply: Reply) -> mlua::Result<Value> {
    let named = |name: &str, text: &str| {
        let table = lua.create_table()?;
        table.raw_set(name, text)?;
        Ok(Value::Table(table))
    };
    match reply {
        Reply::Int(number) => Ok(Value::Integer(number)),
        Reply::Text(text) => Ok(Value::String(lua.create_string(text)?)),
        Reply::Nil => Ok(Value::Boolean(false)),
        Reply::Status(text) => named("ok", text),
        Reply::Error(text) => named("err", &text),
        Reply::List(parts) | Reply::Several(parts) => {
            let parts = parts.into_iter().map(|part| value_of(lua, part));
            let parts: Vec<_> = parts.collect::<mlua::Result<_>>()?;
            Ok(Value::Table(lua.create_sequence_from(parts)?))
        }
        Reply::Made(_) => Err(mlua::Error::runtime("no script asks for that")),
    }
}

/// What a script gives, as it is answered.
fn reply_of(value: &Value, depth: usize) -> Reply {
    const DEEPEST: usize = 100;
    match value {
        Value::String(text) => Reply::text(text.as_bytes().to_vec()),
        Value::Integer(number) => Reply::Int(*number),
        Value::Number(number) => Reply::Int(whole(*number)),
        Value::Boolean(true) => Reply::Int(1),
        Value::Table(_) if depth > DEEPEST => Reply::error("ERR reached lua stack limit"),
        Value::Table(table) => of_table(table, depth),
        _ => Reply::Nil,
    }
}

fn of_table(table: &Table, depth: usize) -> Reply {
    if let Some(text) = text_in(table, "err") {
        return Reply::error(text);
    }
    if text_in(table, "ok").is_some() {
        return OK;
    }
    let parts = (1..).map_while(|at| match table.raw_get::<Value>(at) {
        Ok(Value::Nil) | Err(_) => None,
        Ok(part) => Some(reply_of(&part, depth + 1)),
    });
    Reply::List(parts.collect())
}

fn text_in(table: &Table, name: &str) -> Option<String> {
    match table.raw_get::<Value>(name) {
        Ok(Value::String(text)) => Some(text.to_string_lossy()),
        _ => None,
    }
}

/// An error that nothing in the script caught.
fn failed(failure: &Value) -> Reply {
    match failure {
        Value::Table(table) => Reply::error(text_in(table, "err").unwrap_or_default()),
        _ => Reply::error(format!("ERR Error running script: {failure:?}")),
    }
}
