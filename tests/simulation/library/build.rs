//! Has the source of crosslock know that it is simulated.

fn main() {
    println!("cargo::rustc-cfg=simulated");
    println!("cargo::rustc-check-cfg=cfg(fuzzing, simulated)");
    // Those of its features that aren't simulated.
    println!("cargo::rustc-check-cfg=cfg(feature, values(\"file\", \"metrics\", \"tls\"))");
    println!("cargo::rerun-if-changed=build.rs");
}
