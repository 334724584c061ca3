//! The program `crosslock`.
fn main() {}
