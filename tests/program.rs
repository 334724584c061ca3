//! That the program is there, and says what it is. Its tests are in `tests/cli`.

use std::process::Command;

#[test]
fn program_tells_its_version() {
    let told = Command::new(env!("CARGO_BIN_EXE_crosslock"))
        .arg("--version")
        .output();
    let told = String::from_utf8(told.expect("it runs").stdout).expect("it prints text");
    assert_eq!(told, concat!("crosslock ", env!("CARGO_PKG_VERSION"), "\n"));
}
