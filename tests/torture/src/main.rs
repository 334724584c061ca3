//! A worker of the torture program, or the command that `crosslock run` runs there.

fn main() {
    match support::role() {
        Some(_) => crosslock_torture::run_worker(),
        None => crosslock_torture::run_command(),
    }
}
