//! A PostgreSQL server that a test may stop, and a wire to it that a test may cut.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use super::support::{BINARY, Desk, Ended, up};

/// A cluster of this test's own: stopping the shared one would disturb the others.
pub(crate) struct Cluster {
    child: Child,
    pub(crate) url: String,
    control: String,
}

impl Cluster {
    /// `None` where the tests run without PostgreSQL on purpose.
    pub(crate) fn start() -> Option<Self> {
        if std::env::var("DESKMATE_TEST_PG").is_ok_and(|url| url == "skip") {
            testkit::skipped("DESKMATE_TEST_PG says skip");
            return None;
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/with-postgres");
        let say = "echo \"$DESKMATE_TEST_PG\"; echo \"$DESKMATE_TEST_PG_CTL\"; exec cat";
        let mut command = Command::new(script);
        let mut child = command.args(["sh", "-c", say]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("scripts/with-postgres runs");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
        let url = lines.next().expect("PostgreSQL starts");
        let control = lines.next().expect("PostgreSQL starts");
        Some(Self { child, url, control })
    }

    /// Runs `pg_ctl` with this cluster's directory.
    pub(crate) fn control(&self, command: &str) {
        let line = format!("cd / && {} -s -w -l /dev/null -m immediate {command}", self.control);
        let done = Command::new("sh").args(["-c", &line]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        assert!(done.is_ok_and(|status| status.success()), "{line}");
    }

    /// Starts it again after a stop, on the same port: only a restart would remember it.
    pub(crate) fn start_again(&self) {
        let port = self.port();
        self.control(&format!("start -o '-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='"));
    }

    fn port(&self) -> &str {
        self.url.rsplit(':').next().and_then(|rest| rest.split('/').next()).expect("a port")
    }

    /// A desk on this cluster.
    pub(crate) fn desk(&self, home: &Path) -> Desk {
        desk_on(home, &self.url).unwrap_or_else(|ended| panic!("the server ended with {:?}: {}", ended.code, ended.stderr))
    }

    /// A node on this cluster that offers itself for runs; `first` is the home of a server whose keys it shares. It runs under an ordinary
    /// account, because programs of agents do not run under root's.
    pub(crate) fn node(&self, home: &Path, first: &Path, name: &str, labels: &str) -> Desk {
        std::fs::create_dir_all(home).expect("a directory");
        let mut own = vec![home.parent().expect("a parent").to_owned(), home.to_owned()];
        for key in ["record.key", "secret.key"].iter().filter(|key| first.join(key).exists()) {
            std::fs::copy(first.join(key), home.join(key)).expect("a copy");
            own.push(home.join(key));
        }
        let mut command = up(home);
        if std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
            for path in &own {
                std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).expect("given away");
            }
            command = as_nobody(&command, &home.with_file_name("deskmate"));
        }
        command.env("DESKMATE_DATABASE_URL", &self.url).args(["--node", name, "--node-labels", labels]);
        Desk::launch(command, home, home).unwrap_or_else(|ended| panic!("the node ended with {:?}: {}", ended.code, ended.stderr))
    }

    /// What a query answers, line by line.
    pub(crate) fn ask(&self, sql: &str) -> Vec<String> {
        let output = Command::new("psql").args(["-X", "-A", "-t", "-c", sql]).arg(&self.url).output().expect("psql runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
    }

    /// The URL with another port.
    pub(crate) fn through(&self, port: u16) -> String {
        self.url.replace(&format!(":{}/", self.port()), &format!(":{port}/"))
    }

    fn address(&self) -> String {
        self.url.rsplit('@').next().and_then(|rest| rest.split('/').next()).expect("an address").to_owned()
    }
}

/// The ordinary account of tests that run as root.
const NOBODY: u32 = 65534;

/// The same command under an ordinary account. The build may lie where that account cannot look; then a copy of it is used.
fn as_nobody(command: &Command, copy: &Path) -> Command {
    let id = NOBODY.to_string();
    let account = ["--reuid", &id, "--regid", &id, "--clear-groups", "--"];
    let reaches = |path: &Path| Command::new("setpriv").args(account).args(["test", "-x"]).arg(path).status().is_ok_and(|done| done.success());
    let program = if reaches(Path::new(BINARY)) { Path::new(BINARY) } else { copy };
    if program == copy && !copy.exists() {
        std::fs::copy(BINARY, copy).expect("a copy");
    }
    let mut other = Command::new("setpriv");
    other.args(account).arg(program).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => other.env(name, value),
            None => other.env_remove(name),
        };
    }
    other
}

/// Starts a desk on a database.
pub(crate) fn desk_on(home: &Path, url: &str) -> Result<Desk, Ended> {
    let mut command = up(home);
    command.env("DESKMATE_DATABASE_URL", url);
    Desk::launch(command, home, home)
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // The end of its input ends the script, which stops the cluster.
        drop(self.child.stdin.take());
        drop(self.child.wait());
    }
}

/// What the wire does with the commit of the transaction that carries a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The server never hears of the commit.
    Before,
    /// The server commits, and the client never hears of it.
    After,
}

/// How a wire is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Open,
    /// Everything is taken, and nothing comes through or back.
    Silent,
    /// Everything is refused.
    Closed,
}

type Armed = Arc<Mutex<Option<(Cut, String)>>>;

/// A wire to the cluster.
pub(crate) struct Wire {
    pub(crate) port: u16,
    armed: Armed,
    way: Arc<Mutex<Way>>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Wire {
    pub(crate) fn new(cluster: &Cluster) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("a port").port();
        let (armed, open): (Armed, _) = (Arc::default(), Arc::new(Mutex::new(Vec::new())));
        let way = Arc::new(Mutex::new(Way::Open));
        let (target, its_cut, its_way, its_open) = (cluster.address(), Arc::clone(&armed), Arc::clone(&way), Arc::clone(&open));
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if patient(&its_way) == Way::Closed {
                    continue;
                }
                let Ok(server) = TcpStream::connect(&target) else { continue };
                its_open.lock().expect("no thread panicked").extend([&client, &server].map(|stream| stream.try_clone().expect("a stream")));
                let (back_from, back_to) = (server.try_clone().expect("a stream"), client.try_clone().expect("a stream"));
                let (back, forth, armed) = (Arc::clone(&its_way), Arc::clone(&its_way), Arc::clone(&its_cut));
                std::thread::spawn(move || copy(back_from, back_to, &back));
                std::thread::spawn(move || watch(client, server, &armed, &forth));
            }
        });
        Self { port, armed, way, open }
    }

    /// Cuts once, at the commit of the transaction in which this text is written. The text must be new: the sealer
    /// writes it again in a transaction of its own.
    pub(crate) fn arm(&self, cut: Cut, marker: &str) {
        *self.armed.lock().expect("no thread panicked") = Some((cut, marker.to_owned()));
    }

    /// Whether the cut has not happened yet.
    pub(crate) fn is_armed(&self) -> bool {
        self.armed.lock().expect("no thread panicked").is_some()
    }

    /// Changes how the wire is.
    pub(crate) fn turn(&self, way: Way) {
        *self.way.lock().expect("no thread panicked") = way;
        if way == Way::Closed {
            self.cut_all();
        }
    }

    /// Cuts everything that is open.
    pub(crate) fn cut_all(&self) {
        for stream in self.open.lock().expect("no thread panicked").drain(..) {
            drop(stream.shutdown(Shutdown::Both));
        }
    }
}

/// Waits until a wire is not silent any more.
fn patient(way: &Mutex<Way>) -> Way {
    loop {
        match *way.lock().expect("no thread panicked") {
            Way::Silent => {}
            way => return way,
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

fn copy(mut from: TcpStream, mut to: TcpStream, way: &Mutex<Way>) {
    let mut chunk = [0_u8; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut chunk) {
        patient(way);
        if to.write_all(&chunk[..count]).is_err() {
            break;
        }
    }
    drop(to.shutdown(Shutdown::Both));
}

fn watch(mut client: TcpStream, mut server: TcpStream, armed: &Armed, way: &Mutex<Way>) {
    let has = |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    let mut chunk = vec![0_u8; 64 * 1024];
    let mut marked = false;
    while let Ok(count @ 1..) = client.read(&mut chunk) {
        patient(way);
        let bytes = &chunk[..count];
        let mut wanted = armed.lock().expect("no thread panicked");
        marked |= wanted.as_ref().is_some_and(|(_, marker)| has(bytes, marker));
        let cut = if marked && has(bytes, "commit") { wanted.take() } else { None };
        drop(wanted);
        if let Some((cut, _)) = cut {
            if cut == Cut::After {
                // Nothing comes back to the client, but the commit takes place.
                drop(client.shutdown(Shutdown::Both));
                drop(server.write_all(bytes));
                std::thread::sleep(std::time::Duration::from_millis(300));
            }
            break;
        }
        if server.write_all(bytes).is_err() {
            break;
        }
    }
    drop(client.shutdown(Shutdown::Both));
    drop(server.shutdown(Shutdown::Both));
}
