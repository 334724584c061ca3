//! What a request asks for, and what a member refuses before anybody else hears of it.

use serde_json::{Deserializer, Value};

use super::fields::{bytes, flag, list, not_simulated, number, one_of, string, unknown};
use super::http::{EXHAUSTED, INVALID, OUT_OF_RANGE, Refusal};
use super::txn::{Branch, Txn};

/// What a request asks for.
#[derive(Clone, Debug)]
pub(super) enum Request {
    Status,
    Leases,
    /// A name and a password.
    Login(String, String),
    Range(Range),
    Write(Command),
    KeepAlive(i64),
    /// Of that lease, and perhaps its keys.
    TimeToLive(i64, bool),
    Watch(Vec<Create>),
    /// A transaction that changes nothing.
    Read(Txn),
}

/// What changes something, once it is agreed on.
#[derive(Clone, Debug)]
pub(super) enum Command {
    Put(Put),
    Delete(Bounds),
    Txn(Txn),
    Grant {
        id: i64,
        ttl: i64,
    },
    Revoke(i64),
    Compact(i64),
    /// A login has been given that token.
    Token(String),
}

/// A key, or all keys from one to before another.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    pub(super) key: Vec<u8>,
    /// Empty: that key alone. A zero: all keys from it on.
    pub(super) end: Vec<u8>,
}

#[derive(Clone, Debug)]
pub(super) struct Put {
    pub(super) key: Vec<u8>,
    pub(super) value: Vec<u8>,
    pub(super) lease: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Key,
    Version,
    Create,
    Mod,
    Value,
    Lease,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    None,
    Ascend,
    Descend,
}

#[derive(Clone, Debug)]
pub(super) struct Range {
    pub(super) bounds: Bounds,
    /// 0: the newest.
    pub(super) revision: i64,
    /// 0: none.
    pub(super) limit: usize,
    pub(super) order: Order,
    pub(super) target: Target,
    pub(super) is_serializable: bool,
    pub(super) keys_only: bool,
    pub(super) count_only: bool,
    /// The least and the greatest revision of the last change, and of creation. 0: none.
    pub(super) modified: (i64, i64),
    pub(super) created: (i64, i64),
}

/// One watch of a stream.
#[derive(Clone, Debug)]
pub(super) struct Create {
    pub(super) bounds: Bounds,
    /// 0: from now on.
    pub(super) from: i64,
    pub(super) puts: bool,
    pub(super) deletes: bool,
}

/// Why nothing is asked for.
#[derive(Debug)]
pub(super) enum Unfit {
    NothingThere,
    /// The gateway itself doesn't understand it.
    Body(u16, String),
    Refused(Refusal),
}

impl From<Refusal> for Unfit {
    fn from(refusal: Refusal) -> Self {
        Unfit::Refused(refusal)
    }
}

pub(super) type Result<T> = std::result::Result<T, Unfit>;

/// What one transaction may have, in each of its lists.
const MOST_OPS: usize = 128;
/// What a change may have, in bytes, and what a request may have.
const LARGEST: usize = 1536 << 10;
const LARGEST_MESSAGE: usize = 2 << 20;
const LONGEST_TTL: i64 = 9_000_000_000;

impl Request {
    pub(super) fn parse(path: &str, body: &[u8]) -> Result<Self> {
        if path == "/v3/watch" {
            return creates(body).map(Request::Watch);
        }
        let of = match serde_json::from_slice::<Value>(body) {
            // The gateway takes an empty body for an empty request.
            Err(_) if body.is_empty() => Value::Object(serde_json::Map::new()),
            Err(e) => return Err(Unfit::Body(INVALID, e.to_string())),
            Ok(value) if !value.is_object() => {
                return Err(Unfit::Body(INVALID, "it isn't an object".to_owned()));
            }
            Ok(value) => value,
        };
        let request = match path {
            "/v3/maintenance/status" => Request::Status,
            "/v3/lease/leases" => Request::Leases,
            "/v3/auth/authenticate" => {
                Request::Login(string(&of, "name")?, string(&of, "password")?)
            }
            "/v3/kv/range" => Request::Range(range(&of)?),
            "/v3/kv/put" => Request::Write(Command::Put(put(&of)?)),
            "/v3/kv/deleterange" => Request::Write(Command::Delete(bounds(&of)?)),
            "/v3/kv/txn" => match txn(&of, MOST_OPS)? {
                txn if txn.only_reads() => Request::Read(txn),
                txn => Request::Write(Command::Txn(txn)),
            },
            "/v3/kv/compaction" => Request::Write(Command::Compact(number(&of, "revision")?)),
            "/v3/lease/grant" => Request::Write(Command::Grant {
                id: number(&of, "ID")?,
                ttl: number(&of, "TTL")?,
            }),
            "/v3/lease/revoke" => Request::Write(Command::Revoke(number(&of, "ID")?)),
            "/v3/lease/keepalive" => Request::KeepAlive(number(&of, "ID")?),
            "/v3/lease/timetolive" => Request::TimeToLive(number(&of, "ID")?, flag(&of, "keys")?),
            _ => return Err(Unfit::NothingThere),
        };
        request.check()?;
        Ok(request)
    }

    /// Refuses what is wrong in itself.
    fn check(&self) -> Result<()> {
        let Request::Write(command) = self else {
            return Ok(());
        };
        let size = command.size();
        if size > LARGEST_MESSAGE {
            let text =
                format!("grpc: received message larger than max ({size} vs. {LARGEST_MESSAGE})");
            let code = EXHAUSTED;
            return Err(Refusal { code, text }.into());
        }
        if size > LARGEST {
            return Err(Refusal::new(INVALID, "request is too large").into());
        }
        match command {
            Command::Txn(txn) => Ok(txn.check_keys()?),
            Command::Grant { ttl, .. } if *ttl > LONGEST_TTL => {
                Err(Refusal::new(OUT_OF_RANGE, "too large lease TTL").into())
            }
            _ => Ok(()),
        }
    }

    /// Whether it is answered by a stream.
    pub(super) fn is_stream(path: &str) -> bool {
        matches!(path, "/v3/watch" | "/v3/lease/keepalive")
    }

    /// Whether users without rights may ask for it.
    pub(super) fn names_no_key(&self) -> bool {
        match self {
            Request::Read(txn) => txn.is_empty(),
            Request::Write(command) => {
                matches!(command, Command::Grant { .. } | Command::Revoke(_))
            }
            _ => false,
        }
    }

    /// Whether a member may answer it from the past.
    pub(super) fn is_serializable(&self) -> bool {
        match self {
            Request::Range(range) => range.is_serializable,
            Request::Read(txn) => txn.is_serializable(),
            _ => false,
        }
    }
}

impl Bounds {
    pub(super) fn contains(&self, key: &[u8]) -> bool {
        if self.end.is_empty() {
            return self.key == key;
        }
        *self.key <= *key && (self.end == [0] || *key < *self.end)
    }

    /// Whether no key can be in it.
    pub(super) fn is_empty(&self) -> bool {
        !self.end.is_empty() && self.end != [0] && self.end <= self.key
    }
}

impl Command {
    /// About as many bytes as it has where etcd measures it.
    fn size(&self) -> usize {
        match self {
            Command::Put(put) => put.size(),
            Command::Txn(txn) => txn.size(),
            _ => 0,
        }
    }
}

impl Put {
    pub(super) fn size(&self) -> usize {
        self.key.len() + self.value.len() + 16
    }
}

pub(super) fn bounds(of: &Value) -> Result<Bounds> {
    unknown(of, &["prev_kv"])?;
    let key = bytes(of, "key")?;
    if key.is_empty() {
        return Err(Refusal::new(INVALID, "key is not provided").into());
    }
    let end = bytes(of, "range_end")?;
    Ok(Bounds { key, end })
}

pub(super) fn put(of: &Value) -> Result<Put> {
    unknown(of, &["ignore_value", "ignore_lease"])?;
    Ok(Put {
        key: bounds(of)?.key,
        value: bytes(of, "value")?,
        lease: number(of, "lease")?,
    })
}

pub(super) fn range(of: &Value) -> Result<Range> {
    const ORDERS: [(&str, Order); 3] = [
        ("NONE", Order::None),
        ("ASCEND", Order::Ascend),
        ("DESCEND", Order::Descend),
    ];
    const TARGETS: [(&str, Target); 5] = [
        ("KEY", Target::Key),
        ("VERSION", Target::Version),
        ("CREATE", Target::Create),
        ("MOD", Target::Mod),
        ("VALUE", Target::Value),
    ];
    let target = one_of(of, "sort_target", &TARGETS)?;
    let (modified, created) = ("mod_revision", "create_revision");
    let span = |what: &str| {
        Ok::<_, Unfit>((
            number(of, &format!("min_{what}"))?,
            number(of, &format!("max_{what}"))?,
        ))
    };
    Ok(Range {
        bounds: bounds(of)?,
        revision: number(of, "revision")?,
        limit: usize::try_from(number(of, "limit")?).unwrap_or(0),
        order: one_of(of, "sort_order", &ORDERS)?,
        target,
        is_serializable: flag(of, "serializable")?,
        keys_only: flag(of, "keys_only")?,
        count_only: flag(of, "count_only")?,
        modified: span(modified)?,
        created: span(created)?,
    })
}

/// A transaction whose lists have at most so many entries, together with those around it.
pub(super) fn txn(of: &Value, most: usize) -> Result<Txn> {
    let lists = ["compare", "success", "failure"].map(|field| list(of, field));
    let [compares, then, otherwise] = lists;
    let (compares, then, otherwise) = (compares?, then?, otherwise?);
    let longest = compares.len().max(then.len()).max(otherwise.len());
    let Some(left) = most.checked_sub(longest) else {
        return Err(Refusal::new(INVALID, "too many operations in txn request").into());
    };
    let branch = |ops: &[Value]| {
        ops.iter()
            .map(|op| super::txn::op(op, left))
            .collect::<Result<Branch>>()
    };
    Ok(Txn {
        compares: compares
            .iter()
            .map(super::txn::compare)
            .collect::<Result<_>>()?,
        then: branch(then)?,
        otherwise: branch(otherwise)?,
    })
}

/// The watches that a stream asks for at its beginning.
fn creates(body: &[u8]) -> Result<Vec<Create>> {
    let lines = Deserializer::from_slice(body).into_iter::<Value>();
    let mut creates = Vec::new();
    for line in lines {
        let line = line.map_err(|e| Unfit::Body(super::http::UNKNOWN, e.to_string()))?;
        let Some(of) = line.get("create_request") else {
            return Err(not_simulated(
                "a stream of watches with anything else than create_request",
            ));
        };
        unknown(of, &["prev_kv", "progress_notify", "fragment", "watch_id"])?;
        let filters = list(of, "filters")?;
        let filters: Vec<_> = filters.iter().filter_map(Value::as_str).collect();
        let mut bounds = Bounds {
            key: bytes(of, "key")?,
            end: bytes(of, "range_end")?,
        };
        if bounds.key.is_empty() {
            bounds.key = vec![0];
        }
        creates.push(Create {
            bounds,
            from: number(of, "start_revision")?,
            puts: !filters.contains(&"NOPUT"),
            deletes: !filters.contains(&"NODELETE"),
        });
    }
    Ok(creates)
}
