//! Links the binary so that less of it is in memory, and so that it keeps less.

use std::path::Path;
use std::process::Command;

/// Names of functions that run when a desk starts and when it answers the usual calls. Made by scripts/order-functions.
const FIRST: &str = "functions.txt";
/// What the allocator is told before the program begins.
const MEMORY: &str = "memory.c";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={FIRST}");
    println!("cargo:rerun-if-changed={MEMORY}");
    #[expect(clippy::disallowed_methods, reason = "this is how cargo tells a build script what it builds for")]
    let told = |name: &str| std::env::var(name).unwrap_or_default();
    if told("CARGO_CFG_TARGET_FAMILY") == "unix" {
        // Linked as it is: nothing refers to it, so from an archive it would be left out.
        for object in cc::Build::new().file(MEMORY).include(told("DEP_MIMALLOC_INCLUDE_DIR")).compile_intermediates() {
            println!("cargo:rustc-link-arg-bins={}", object.display());
        }
    }
    if told("CARGO_CFG_TARGET_ENV") == "gnu" && told("HOST") == told("TARGET") && knows_packed_relocations() {
        // A megabyte of relocations, which every start reads and keeps in memory, becomes a few kilobytes.
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    if told("TARGET") == "x86_64-unknown-linux-gnu" && told("PROFILE") == "release" {
        // Functions that are the same become one. Here the toolchain links with its own lld, which knows how.
        println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
        // The system brings a program into memory in pieces of 64 kB: what runs first stands side by side.
        let script = Path::new(&told("OUT_DIR")).join("functions.ld");
        if let Err(error) = std::fs::read_to_string(FIRST).and_then(|names| std::fs::write(&script, linker_script(&names))) {
            println!("cargo:warning=functions are linked in any order, and the program takes more memory: {FIRST}: {error}");
            return;
        }
        println!("cargo:rustc-link-arg-bins=-Wl,-T,{}", script.display());
    }
}

/// Puts these functions before all others, in this order.
fn linker_script(names: &str) -> String {
    let section = |name: &str| format!("*(.text.{name})\n*(.text.unlikely.{name})\n");
    format!("SECTIONS\n{{\n.text.first :\n{{\n{}}}\n}} INSERT BEFORE .text;\n", names.lines().map(section).collect::<String>())
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
