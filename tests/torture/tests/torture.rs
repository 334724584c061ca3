//! Real faults against locks that are held and waited for, judged by what was written down meanwhile.
//!
//! `docs/testing.md` says which variables it reads.

fn main() -> std::process::ExitCode {
    crosslock_torture::main()
}
