use super::*;
use crate::base::random::{Random, for_any, for_cases};
use std::os::unix::fs::FileExt;

const BOOT: BootId = BootId(*b"01234567");
const NEXT_BOOT: BootId = BootId(*b"89abcdef");

fn temp_file() -> File {
    tempfile::tempfile().unwrap()
}

fn file_with(content: &[u8]) -> File {
    let file = temp_file();
    file.write_all_at(content, 0).unwrap();
    file
}

fn content_of(file: &File) -> Vec<u8> {
    let mut content = vec![0; length_of(file)];
    file.read_exact_at(&mut content, 0).unwrap();
    content
}

fn length_of(file: &File) -> usize {
    file.metadata().unwrap().len().try_into().unwrap()
}

fn found(content: &[u8], boot: &BootId) -> Option<Found> {
    read(&file_with(content), boot)
        .unwrap()
        .map(|(found, _)| found)
}

fn text(text: &str) -> Option<Found> {
    text_of(text, Boots::Same)
}

fn text_of(text: &str, boots: Boots) -> Option<Found> {
    Some(Found::Text {
        text: text.to_owned(),
        boots,
        seen: None,
    })
}

/// Replaces what is there.
fn replace(file: &File, text: &str) -> Extent {
    let (_, now) = read(file, &BOOT).unwrap().expect("it is ours");
    write(file, &BOOT, text, &now).unwrap()
}

fn any_text(random: &mut Random) -> String {
    let length = random.one_of(&[0, 1, 300, LONGEST_SHORT, PAGE, 9_000, 40_000]);
    let mut text = random.text(0..=20).repeat(length / 10 + 1);
    while !text.is_char_boundary(length.min(text.len())) {
        text.pop();
    }
    text.truncate(length);
    text
}

/// Nobody has written to it, or was killed as it made room for its first text. The owner of a lease may note that it
/// has seen it while somebody empties the file.
#[test]
fn file_without_a_byte_is_fresh_and_can_be_written() {
    let noted = temp_file();
    note_seen(&noted, 7).unwrap();
    assert_eq!(found(&content_of(&noted), &BOOT), Some(Found::Fresh));
    for length in [0, 1, HEAD, PAGE, PAGE + 1, 8 * PAGE] {
        let content = vec![0; length];
        assert_eq!(found(&content, &BOOT), Some(Found::Fresh));
        let file = file_with(&content);
        replace(&file, "a text");
        assert_eq!(found(&content_of(&file), &BOOT), text("a text"));
    }
}

#[test]
fn file_of_something_else_is_refused() {
    let other = "crosslock 2 01234567 at=64 len=0 sum=00000000";
    let padded = format!("{other:63}\n");
    for content in [
        "x",
        "#!/bin/sh",
        "00000000000000000007\n",
        "crosslock 2 ",
        other,
        &padded,
        &"x".repeat(PAGE + 1),
    ] {
        assert_eq!(found(content.as_bytes(), &BOOT), None, "{content:?}");
    }
    for_any(|random| {
        let mut content = random.list(1..=200, |random| random.u8(..));
        content[0] = content[0].max(1);
        assert_eq!(found(&content, &BOOT), None);
    });
}

#[test]
fn text_is_read_as_written_over_any_other() {
    let file = temp_file();
    for_any(|random| {
        let written = any_text(random);
        let extent = replace(&file, &written);
        let (read_text, read_extent) = read(&file, &BOOT).unwrap().unwrap();
        assert_eq!(Some(read_text), text(&written));
        assert_eq!(
            (read_extent.at, read_extent.length),
            (extent.at, extent.length)
        );
        assert!(length_of(&file) >= PAGE && is_extent(extent.at, extent.length));
        // Without reading it again.
        let written = any_text(random);
        write(&file, &BOOT, &written, &extent).unwrap();
        let (read_text, _) = read(&file, &NEXT_BOOT).unwrap().unwrap();
        assert_eq!(Some(read_text), text_of(&written, Boots::Differ));
    });
}

/// A process that is killed has made some of the room, or written some of the steps, the last of them wholly or not at
/// all.
#[test]
fn write_that_was_cut_short_leaves_the_text_before_it() {
    for_cases(64, |random| {
        let file = temp_file();
        let before = any_text(random);
        let now = replace(&file, &before);
        let mut torn = content_of(&file);
        let after = any_text(random);
        let place = write(&file, &BOOT, &after, &now).unwrap();
        for _ in 0..4 {
            let room = random.usize(torn.len()..=length_of(&file).max(torn.len()));
            torn.resize(room, 0);
            assert_eq!(found(&torn, &BOOT), text(&before));
        }
        torn.resize(length_of(&file).max(torn.len()), 0);
        let mut steps = steps(&BOOT, place.at, &after);
        let (_, last) = steps.pop().unwrap();
        assert!(last.len() <= PAGE);
        for (at, bytes) in steps {
            let mut written = 0;
            while written < bytes.len() {
                let next = random.usize(written + 1..=bytes.len());
                torn[at + written..at + next].copy_from_slice(&bytes[written..next]);
                assert_eq!(found(&torn, &BOOT), text(&before));
                written = next;
            }
        }
        torn[..last.len()].copy_from_slice(&last);
        assert_eq!(found(&torn, &BOOT), text(&after));
    });
}

#[test]
fn what_a_power_cut_has_left_is_cut_and_any_other_damage_refused() {
    for_any(|random| {
        let file = temp_file();
        let written = format!("{}x", any_text(random));
        let extent = replace(&file, &written);
        let mut content = content_of(&file);
        let hit = extent.at + random.usize(0..written.len());
        content[hit] ^= 1 << random.u8(0..8);
        assert_eq!(found(&content, &BOOT), None);
        assert_eq!(found(&content, &NEXT_BOOT), Some(Found::Cut));
        content.truncate(random.usize(HEAD..extent.at + written.len()));
        assert_eq!(found(&content, &NEXT_BOOT), Some(Found::Cut));
    });
}

#[test]
fn process_that_knows_no_boot_cant_tell_it_from_that_of_others() {
    let file = temp_file();
    let none = BootId::UNKNOWN;
    for (writer, reader) in [(BOOT, none), (none, BOOT), (none, none)] {
        let (_, now) = read(&file, &writer).unwrap().unwrap();
        write(&file, &writer, "a text", &now).unwrap();
        let mut content = content_of(&file);
        assert_eq!(found(&content, &reader), text_of("a text", Boots::Unclear));
        // Damage may be that of a power cut.
        content[HEAD] = b'x';
        assert_eq!(found(&content, &reader), Some(Found::Cut));
    }
}

#[test]
fn note_of_a_seen_lease_stays_whatever_is_written() {
    let file = temp_file();
    replace(&file, "a text\n");
    let seen = || match read(&file, &BOOT) {
        Ok(Some((Found::Text { seen, .. }, _))) => seen,
        other => panic!("{other:?}"),
    };
    assert_eq!(seen(), None);
    for_any(|random| {
        let token = random.u64(..) >> random.u32(..64);
        note_seen(&file, token).unwrap();
        let written = any_text(random);
        replace(&file, &written);
        assert_eq!(seen(), Some(token));
    });
}

#[test]
fn glimpse_shows_each_short_text_once() {
    let (file, mut peek) = (temp_file(), Peek::new());
    assert_eq!(peek.changed(&file).unwrap(), None);
    for text in ["one", "two", "", "three"] {
        replace(&file, text);
        assert_eq!(peek.changed(&file).unwrap(), Some(text.to_owned()));
        note_seen(&file, 1).unwrap();
        assert_eq!(peek.changed(&file).unwrap(), None);
    }
    replace(&file, &"long".repeat(PAGE));
    assert_eq!(peek.changed(&file).unwrap(), None);
    replace(&file, "short");
    assert_eq!(peek.changed(&file).unwrap(), Some("short".to_owned()));
    // Nothing that is half written or no text.
    file.write_all_at(b"x", HEAD as u64).unwrap();
    assert_eq!(Peek::new().changed(&file).unwrap(), None);
    let long = format!("crosslock 2 01234567 at=64 len={} sum=00000000", u64::MAX);
    let head = format!("{long:63}\n");
    file.write_all_at(head.as_bytes(), 0).unwrap();
    assert_eq!(Peek::new().changed(&file).unwrap(), None);
}
