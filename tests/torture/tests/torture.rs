//! Faults of every kind against locks that are held and waited for, judged by what was written down meanwhile.
//!
//! `TORTURE_SECONDS` says for how long (60), `TORTURE_CLASS` which faults (`safe` or `unsafe`; else both, three
//! quarters of the time for the safe ones), `TORTURE_FAULTS` names the only ones to fire, separated by commas, and
//! `TORTURE_SEED` repeats the choices of another run: its times differ all the same. `TORTURE_TOPOLOGY` says against
//! which servers (`single`, `replicas`, `sentinel`, `cluster`, `etcd`, `zookeeper`, or `file` for a directory), and
//! `TORTURE_TTL` gives the ttl in milliseconds. `TORTURE_JUDGE` only judges a directory that a run has kept.

fn main() -> std::process::ExitCode {
    crosslock_torture::main()
}
