//! Which names are in use.

use std::collections::BTreeSet;

use super::ops::got;
use super::shared::Commands;
use crate::base::clock::Deadline;
use crate::base::error::Result;
use crate::base::name::Namespace;
use crate::engine::etcd::client::txn::Op;
use crate::engine::etcd::keys::{name_of, of_names};
use crate::engine::{Cursor, Page};

/// A page is what is found in so many keys.
const PAGE: u32 = 1_000;

impl Commands {
    pub(in super::super) fn list(
        &self,
        namespace: &Namespace,
        prefix: &str,
        cursor: &Cursor,
        deadline: &Deadline,
    ) -> Result<Page> {
        let root = self.client.root();
        let all = of_names(root, namespace, prefix);
        // Behind all keys of a name: the character after the slash that ends it.
        let behind = |name: &String| format!("{}0", of_names(root, namespace, name));
        let list = || Op::List {
            prefix: all.clone(),
            from: cursor.after.as_ref().map(behind),
            limit: PAGE,
            keys_only: true,
        };
        let read = || self.read(vec![list()], deadline);
        let answer = self.until_read(None, deadline, read)?;
        let keys = got(answer).next().unwrap_or_default();
        let named = keys
            .iter()
            .filter_map(|entry| name_of(root, namespace, &entry.key));
        Ok(page(named.collect(), keys.len() < PAGE as usize))
    }
}

/// The page of these keys, of which each has a name, and is or isn't a place in line.
fn page(named: Vec<(String, bool)>, is_last: bool) -> Page {
    let last = named.last().map(|(name, _)| name);
    // There may be more of its last name on the next page, unless it has nothing else.
    let mut others = named.iter().rev().map(|(name, _)| name);
    let before = others.find(|name| Some(*name) != last);
    let end = if is_last { None } else { before.or(last) };
    let is_left = |name: &String| !is_last && before.is_some() && Some(name) == last;
    let in_line = named.iter().filter(|(_, in_line)| *in_line);
    let names: BTreeSet<_> = in_line.map(|(name, _)| name).collect();
    Page {
        names: names
            .into_iter()
            .filter(|name| !is_left(name))
            .cloned()
            .collect(),
        next: end.map(|after| Cursor {
            after: Some(after.clone()),
            ..Cursor::default()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(named: &[(&str, bool)], is_last: bool) -> (Vec<String>, Option<String>) {
        let named = named
            .iter()
            .map(|(name, in_line)| (name.to_string(), *in_line));
        let page = page(named.collect(), is_last);
        (page.names, page.next.and_then(|next| next.after))
    }

    #[test]
    fn name_at_the_end_of_a_page_is_on_the_next() {
        let keys = [("a", true), ("b", false), ("b", true), ("c", true)];
        let strings = |names: &[&str]| names.iter().map(|one| one.to_string()).collect::<Vec<_>>();
        assert_eq!(shown(&keys, true), (strings(&["a", "b", "c"]), None));
        assert_eq!(
            shown(&keys, false),
            (strings(&["a", "b"]), Some("b".into()))
        );
        let one = [("c", true), ("c", true)];
        assert_eq!(shown(&one, false), (strings(&["c"]), Some("c".into())));
        assert_eq!(shown(&[], true), (strings(&[]), None));
    }
}
