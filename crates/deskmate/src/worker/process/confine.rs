//! What a program of a run is given of the machine: the system's programs and libraries to read, its own folder to change, and the
//! bounds of its budget.

use std::path::{Path, PathBuf};

use deskmate_core::agents::{Budget, Given, Reach};
use deskmate_hands::sandbox::{Argument, Network, Spec};

use super::place::Place;

/// Where programs of the system are.
const PLACES: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// What programs of the system read: themselves, their libraries, and the settings that say nothing of anybody.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/timezone",
    "/sys/devices/system/cpu",
];

/// How long a program has to end by itself, once it was asked to.
const GRACE_MS: u64 = 2_000;
/// Files that it may have made.
const FILES: u64 = 100_000;
/// Far more than any machine has: memory is watched by what is held, and some programs reserve much more than they use.
const ADDRESSES: u64 = 1 << 46;

/// A program, and how far it reaches.
pub(super) struct Confined {
    pub(super) spec: Spec,
    pub(super) reach: Reach,
    /// What it reads from its standard input.
    pub(super) input: Vec<u8>,
    /// Whether it is a client of a model, which is larger than most programs.
    pub(super) client: bool,
}

impl Confined {
    /// Sets the bounds of its budget.
    pub(super) fn bound(&mut self, budget: &Budget, url: &str) -> Result<(), String> {
        self.spec.network = match self.reach {
            Reach::None => Network::None,
            Reach::Desk => Network::Port(port(url).ok_or("nobody knows on which port this server listens")?),
            Reach::All => Network::Allowed,
        };
        let (memory, processes, files) = if self.client { (4 << 30, 512, 4_096) } else { (1 << 30, 64, 1_024) };
        let limits = &mut self.spec.limits;
        limits.wall_ms = u64::from(budget.seconds) * 1_000;
        limits.cpu_seconds = u64::from(budget.seconds);
        limits.memory = budget.memory_bytes.unwrap_or(memory);
        limits.address_space = ADDRESSES;
        limits.processes = budget.processes.map_or(processes, u64::from);
        limits.open_files = files;
        limits.disk = budget.disk_bytes.unwrap_or(256 << 20);
        limits.file_size = limits.disk;
        limits.files = FILES;
        // A little more than the log takes, so that it is seen that something was left out.
        limits.output = u64::from(budget.log_bytes).saturating_add(64 << 10);
        limits.grace_ms = GRACE_MS;
        Ok(())
    }
}

fn port(url: &str) -> Option<u16> {
    url::Url::parse(url).ok()?.port_or_known_default()
}

/// A command, in the folder of its run.
pub(super) fn command(place: &Place, words: &[String], given: &Given, own: &[PathBuf]) -> Result<Spec, String> {
    let (named, args) = words.split_first().ok_or("no program is named")?;
    let read = readable(given, own)?;
    let program = find(place, named, &read)?;
    let mut spec = base(place, &program, read);
    spec.args = args.iter().map(Argument::from).collect();
    spec.environment.insert("HOME".to_owned(), place.work.to_string_lossy().into_owned());
    Ok(spec)
}

/// A program with what every program of a run has.
pub(super) fn base(place: &Place, program: &Path, mut read: Vec<PathBuf>) -> Spec {
    let mut spec = Spec::new(program);
    let mut paths: Vec<String> = PLACES.map(str::to_owned).into();
    paths.extend(read.iter().filter(|path| path.is_dir()).map(|path| path.to_string_lossy().into_owned()));
    paths.extend(read.iter().map(|path| path.join("bin")).filter(|path| path.is_dir()).map(|path| path.to_string_lossy().into_owned()));
    spec.read_only = SYSTEM.iter().map(PathBuf::from).filter(|path| path.exists()).collect();
    let within = |paths: &[PathBuf]| std::fs::canonicalize(program).is_ok_and(|real| paths.iter().any(|path| real.starts_with(path)));
    let writable = [place.work.clone(), place.scratch.clone(), place.home.clone()];
    if !within(&spec.read_only) && !within(&read) && !within(&writable) {
        read.push(program.to_path_buf());
    }
    spec.read_only.extend(read);
    spec.read_only.push(place.desk.clone());
    spec.read_write = writable.into();
    spec.execute = true;
    spec.own_proc = true;
    spec.directory = Some(place.work.clone());
    let scratch = place.scratch.to_string_lossy();
    for (name, value) in
        [("PATH", paths.join(":").as_str()), ("TMPDIR", &scratch), ("XDG_CACHE_HOME", &format!("{scratch}/cache")), ("LANG", "C.UTF-8"), ("TZ", "UTC")]
    {
        spec.environment.insert(name.to_owned(), value.to_owned());
    }
    spec
}

/// What it may read besides, as it lies on the disk. Nothing of the desk's own, and nothing that holds that.
pub(super) fn readable(given: &Given, own: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let own: Vec<PathBuf> = own
        .iter()
        .filter(|path| path.exists())
        .map(std::fs::canonicalize)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("the desk's own data: {error}"))?;
    let find = |path: &String| -> Result<PathBuf, String> {
        let real = std::fs::canonicalize(path).map_err(|error| format!("{path} cannot be given: {error}"))?;
        if real.parent().is_none() || own.iter().any(|own| own.starts_with(&real) || real.starts_with(own)) {
            return Err(format!("{path} cannot be given: it holds the desk's own data"));
        }
        Ok(real)
    };
    given.read.iter().map(find).collect()
}

/// Where a program is: by its path, in the folder of the run, among the system's, or in what it was given to read.
fn find(place: &Place, named: &str, read: &[PathBuf]) -> Result<PathBuf, String> {
    let missing = || format!("{named} is not on the desk's machine, or not where its programs are: install it, or name its folder under `read`");
    if named.starts_with('/') {
        return Some(PathBuf::from(named)).filter(|path| path.is_file()).ok_or_else(missing);
    }
    if named.contains('/') {
        let path = place.work.join(named.trim_start_matches("./"));
        return Some(path).filter(|path| path.is_file()).ok_or_else(|| format!("{named} is not among its files"));
    }
    let system = PLACES.iter().map(PathBuf::from);
    let given = read.iter().flat_map(|path| [path.clone(), path.join("bin")]);
    system.chain(given).map(|folder| folder.join(named)).find(|path| path.is_file()).ok_or_else(missing)
}
