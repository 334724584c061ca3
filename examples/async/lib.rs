//! How an async program uses crosslock. `docs/async.md` explains it.

mod with_lock;

pub use with_lock::with_lock;

#[cfg(test)]
mod tests {
    #[test]
    fn page_shows_the_code_that_is_tested() {
        let page = include_str!("../../docs/async.md");
        assert!(page.contains(include_str!("with_lock.rs")));
        assert!(page.contains(include_str!("clippy.toml")));
    }
}
