use super::*;
use crate::base::random::{WORD, for_any};
use std::path::Component;

fn key(namespace: &str, name: &str) -> Key {
    Key::new(&Namespace::new(namespace).unwrap(), name).unwrap()
}

#[test]
fn file_names_are_injective_short_and_inside_the_directory() {
    for_any(|random| {
        let (namespace, name) = (random.text_of(WORD, 0..=64), random.text(1..=128));
        let key = key(&namespace, &name);
        let path = file_name(&key);
        // Which can only be told when it is injective.
        assert_eq!(
            key_of(&Namespace::new(&namespace).unwrap(), &path),
            Some(key)
        );
        for part in path.components() {
            assert!(
                matches!(part, Component::Normal(p) if p.len() <= 255),
                "{:?}",
                part
            );
        }
        let text = path.to_str().unwrap();
        assert_eq!(text.to_lowercase(), text);
    });
}

#[test]
fn other_files_have_no_name() {
    let namespace = Namespace::new("x").unwrap();
    for path in [
        "",
        "a",
        "x+a",
        "x+.lock",
        "x+A.lock",
        "x+%41%.lock",
        "x+%4.lock",
        "x+%zz.lock",
        "y+a.lock",
        "x+a.value",
        "x+%ff.lock",
        "x+%61.lock",
        "x+a.lock/b",
        "x+a~/b.lock",
        ".breaking",
    ] {
        assert_eq!(key_of(&namespace, Path::new(path)), None, "{path}");
    }
    let key = key_of(&namespace, Path::new("x+%41.lock"));
    assert_eq!(key.unwrap().name(), "A");
}
