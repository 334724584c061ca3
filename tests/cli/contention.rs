//! Many tools at once.

use crate::tool::{Place, Running};

/// Adds one to a number, in a way that loses it when another does the same meanwhile.
const ADD: &str = "n=$(cat number); sleep 0.005; echo $((n + 1)) > number";

fn count(place: &Place, options: &str) {
    const TOOLS: usize = 8;
    const ROUNDS: usize = 3;
    std::fs::write(place.path("number"), "0\n").expect("write a file");
    for _ in 0..ROUNDS {
        let tools: Vec<Running> = (0..TOOLS)
            .map(|_| place.run(options, ADD).start())
            .collect();
        for tool in tools {
            tool.ends(0);
        }
    }
    let number: usize = place.read("number").trim().parse().expect("a number");
    assert_eq!(number, TOOLS * ROUNDS);
}

#[test]
fn no_addition_is_lost_with_files() {
    count(&Place::with_files(), "a");
    count(&Place::with_files(), "a b");
}

#[test]
fn no_addition_is_lost_with_a_server() {
    let (_server, place) = Place::with_server();
    count(&place, "a");
    count(&place, "a b");
}
