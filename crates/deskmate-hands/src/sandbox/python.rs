//! Python, as a program that is given its own library and the code, and nothing else.

use super::{Argument, Error, GivenFile, Spec};
use std::fs;
use std::path::{Path, PathBuf};

/// Where a system keeps its Python. The search path of whoever asks is never used: it could lead to anything.
const PLACES: [&str; 2] = ["/usr/bin/python3", "/usr/local/bin/python3"];

/// What the interpreter reads: shared libraries, its own library, time zones. No packages that somebody installed.
const LIBRARY: [&str; 9] =
    ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/share/zoneinfo", "/etc/ld.so.cache", "/etc/localtime", "/etc/timezone"];

/// The name of the code's file, which tracebacks show.
const CODE: &str = "main.py";

/// Runs this code with the system's Python 3: isolated from the environment, from the account's own packages and from
/// installed packages. The caller may add paths and change the limits.
pub fn python_spec(code: &str) -> Result<Spec, Error> {
    let program = interpreter()?;
    let mut spec = Spec::new(&program);
    spec.args = ["-I", "-S", "-B", "-u", "-X", "utf8"].map(Argument::from).into();
    spec.args.push(Argument::Given(CODE.into()));
    spec.read_only = LIBRARY.iter().map(PathBuf::from).filter(|path| path.exists()).collect();
    spec.read_only.push(program);
    spec.environment.insert("LANG".into(), "C.UTF-8".into());
    spec.files = vec![GivenFile { name: CODE.into(), content: code.as_bytes().to_vec() }];
    Ok(spec)
}

fn interpreter() -> Result<PathBuf, Error> {
    let found = PLACES.iter().find(|place| Path::new(place).exists());
    let Some(place) = found else {
        return Err(Error::Refused { missing: vec![format!("Python 3 at {}; install the package python3", PLACES.join(" or "))] });
    };
    // The name is a link to the version; the library is found from the real place.
    Ok(fs::canonicalize(place)?)
}
