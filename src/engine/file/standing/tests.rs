use super::*;
use crate::base::random::for_any;
use crate::engine::file::content::Record;
use crate::engine::file::moment::Moment;

fn held(holder: &str) -> Content {
    Content {
        counter: 5,
        record: Record::Held(Held {
            since: Moment::now(),
            holder: holder.to_owned(),
        }),
    }
}

fn host() -> String {
    let system = rustix::system::uname();
    system.nodename().to_string_lossy().into_owned()
}

#[test]
fn where_the_kernel_does_not_tell_a_living_process_holds() {
    let file = tempfile::tempfile().unwrap().metadata().unwrap();
    let pid = std::process::id();
    let stands = |content: &Content| standing(&file, content, None);
    let ours = held(&format!("{}/{pid}/7/label", host()));
    match stands(&ours) {
        Standing::Held(holder) => {
            assert_eq!((holder.token, holder.party.unwrap().pid), (Some(5), pid));
        }
        other => panic!("{other:?}"),
    }
    let released = Content { counter: 6, ..ours };
    assert_eq!(stands(&released), Standing::Free);
    for other in [
        format!("{}/{}/7", host(), i32::MAX),
        format!("another host/{pid}/7"),
        "nonsense".to_owned(),
    ] {
        assert_eq!(stands(&held(&other)), Standing::Free, "{other}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn lock_of_the_process_that_the_file_names_is_its_holders() {
    let file = tempfile::tempfile().unwrap();
    let found = file.metadata().unwrap();
    let pid = std::process::id();
    let stands = |content: &Content| standing(&found, content, KernelLocks::read().as_ref());
    let [ours, theirs] = [host(), "container".into()].map(|host| format!("{host}/{pid}/7"));
    let stranger = format!("{}/1/7", host());
    // Not locked: its process is between two locks, or its thread has left it so.
    for holder in [&ours, &theirs, &stranger] {
        let standing = stands(&held(holder));
        assert!(
            !matches!(standing, Standing::Held(_) | Standing::Locked),
            "{standing:?}"
        );
    }
    file.lock().unwrap();
    assert!(matches!(stands(&held(&ours)), Standing::Held(_)));
    // What a container calls its processes can't be compared.
    assert!(matches!(stands(&held(&theirs)), Standing::Held(_)));
    assert_eq!(stands(&held(&stranger)), Standing::Locked);
    assert_eq!(stands(&Content::default()), Standing::Locked);
}

#[test]
fn last_token_is_the_one_that_the_counter_tells_of() {
    for_any(|random| {
        let token = random.u64(..1 << 51) * 2 + 1;
        let last = |counter| {
            let look = Look {
                content: Content {
                    counter,
                    record: Record::None,
                },
                standing: Standing::Free,
                waiters: Vec::new(),
            };
            let namespace = Namespace::new("x").unwrap();
            look.told(&Key::new(&namespace, "y").unwrap()).last_token
        };
        assert_eq!((last(token), last(token + 1)), (Some(token), Some(token)));
        assert_eq!(last(0), None);
    });
}
