//! The findings of several servers, as one for each check.

use std::collections::BTreeSet;

use crate::base::diagnosis::{Finding, Verdict};

/// One finding for each check, in the order of the first server's. Where servers differ, each is named by its address.
pub(super) fn merged(found: Vec<(String, Vec<Finding>)>) -> Vec<Finding> {
    let Some((_, first)) = found.first() else {
        return Vec::new();
    };
    let mut checks: Vec<&'static str> = first.iter().map(|finding| finding.check).collect();
    let others = found.iter().flat_map(|(_, findings)| findings);
    for finding in others {
        if !checks.contains(&finding.check) {
            checks.push(finding.check);
        }
    }
    let merged = |check: &&'static str| one(check, &found);
    checks.iter().map(merged).collect()
}

fn one(check: &'static str, found: &[(String, Vec<Finding>)]) -> Finding {
    let mut of_check: Vec<(&str, &Finding)> = Vec::new();
    for (address, findings) in found {
        let findings = findings.iter().filter(|finding| finding.check == check);
        of_check.extend(findings.map(|finding| (&**address, finding)));
    }
    let texts: BTreeSet<&str> = of_check.iter().map(|(_, one)| &*one.found).collect();
    let what = if texts.len() == 1 {
        texts.into_iter().collect()
    } else {
        let each = of_check.iter();
        let each = each.map(|(address, one)| format!("{address}: {}", one.found));
        each.collect::<Vec<_>>().join("; ")
    };
    let verdicts = of_check.iter().map(|(_, one)| &one.verdict);
    let (mut weak, mut unknown) = (Vec::new(), Vec::new());
    for verdict in verdicts {
        match verdict {
            Verdict::Weak {
                consequence,
                advice,
            } => weak.push((&**consequence, &**advice)),
            Verdict::Unknown { advice } => unknown.push(&**advice),
            Verdict::Fine => {}
        }
    }
    if !weak.is_empty() {
        let (consequences, advice): (Vec<_>, Vec<_>) = weak.into_iter().unzip();
        Finding::weak(check, what, different(consequences), different(advice))
    } else if !unknown.is_empty() {
        Finding::unknown(check, what, different(unknown))
    } else {
        Finding::fine(check, what)
    }
}

/// Each text once, in their order.
fn different(texts: Vec<&str>) -> String {
    let mut seen: Vec<&str> = Vec::new();
    for text in texts {
        if !seen.contains(&text) {
            seen.push(text);
        }
    }
    seen.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(findings: [Finding; 2]) -> Finding {
        let addresses = ["a:1", "b:2"].map(str::to_owned).into_iter();
        let found = addresses.zip(findings.map(|finding| vec![finding]));
        let mut merged = merged(found.collect());
        assert_eq!(merged.len(), 1);
        merged.remove(0)
    }

    #[test]
    fn same_of_all_is_told_once() {
        let fine = || Finding::fine("version", "redis 7.0.15");
        assert_eq!(found([fine(), fine()]), fine());
    }

    #[test]
    fn weakest_counts_and_each_is_named() {
        let fine = Finding::fine("memory", "enough");
        let weak = |found: &str| Finding::weak("memory", found, "keys go", "more of it");
        let unknown = Finding::unknown("memory", "not shown", "allow INFO");
        let merged = found([fine.clone(), weak("little")]);
        assert_eq!(merged, weak("a:1: enough; b:2: little"));
        let merged = found([unknown.clone(), fine]);
        assert_eq!(merged.found, "a:1: not shown; b:2: enough");
        assert_eq!(merged.verdict, unknown.verdict);
        assert_eq!(
            found([weak("x"), weak("y")]).verdict,
            weak("").verdict,
            "advice isn't repeated"
        );
    }
}
