//! A worker of the torture program.

fn main() {
    crosslock_torture::run_worker();
}
