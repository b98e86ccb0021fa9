//! Links the binary so that less of it is in memory.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[expect(clippy::disallowed_methods, reason = "this is how cargo tells a build script what it builds for")]
    let told = |name: &str| std::env::var(name).unwrap_or_default();
    if told("CARGO_CFG_TARGET_ENV") == "gnu" && told("HOST") == told("TARGET") && knows_packed_relocations() {
        // A megabyte of relocations, which every start reads and keeps in memory, becomes a few kilobytes.
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    if told("TARGET") == "x86_64-unknown-linux-gnu" && told("PROFILE") == "release" {
        // Functions that are the same become one. Here the toolchain links with its own lld, which knows how.
        println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
    }
}

/// The loader has read them since glibc 2.36, and a linker that comes with such a system writes them.
fn knows_packed_relocations() -> bool {
    let said = Command::new("getconf").arg("GNU_LIBC_VERSION").output().map(|said| String::from_utf8_lossy(&said.stdout).into_owned());
    let version = said.ok().and_then(|said| {
        let (major, minor) = said.trim().strip_prefix("glibc ")?.split_once('.')?;
        Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
    });
    version >= Some((2, 36))
}
