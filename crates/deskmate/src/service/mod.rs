//! Running the desk under the system's own service manager. Each manager's module says what to write and what to run,
//! without doing either; this one does it.

mod launchd;
mod systemd;
mod tasks;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use deskmate_core::{Code, Error, Result};
use serde::Serialize;

use crate::background;
use crate::config;
use crate::home::Home;

/// Where a desk with its own account lives.
const SYSTEM_HOME: &str = "/var/lib/deskmate";
/// The service's name, wherever it has one.
const NAME: &str = "deskmate";

/// Whose service it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Account {
    /// The user's own.
    Own,
    /// An account that only the desk has.
    Separate(String),
}

impl Account {
    /// Reads a name. It goes into commands and files, so it must be a plain account name.
    pub(crate) fn new(user: Option<&str>) -> Result<Self> {
        let Some(name) = user else { return Ok(Self::Own) };
        let plain = name.len() <= 32
            && name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-');
        if !plain || name == "root" {
            return Err(Error::invalid("user", format!("{name:?} is not a name for the desk's own account: write for example deskmate")));
        }
        Ok(Self::Separate(name.to_owned()))
    }
}

/// A service to be set up.
pub(crate) struct Service {
    pub(crate) account: Account,
    pub(crate) program: PathBuf,
    pub(crate) home: PathBuf,
    /// Folders that a desk with an account of its own works on.
    pub(crate) roots: Vec<PathBuf>,
}

/// A command to run.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Run {
    words: Vec<String>,
    /// Whether the rest goes on when it fails.
    may_fail: bool,
}

impl Run {
    fn new(words: &[&str]) -> Self {
        Self { words: words.iter().map(|word| (*word).to_owned()).collect(), may_fail: false }
    }

    fn or_not(words: &[&str]) -> Self {
        Self { may_fail: true, ..Self::new(words) }
    }

    fn output(&self) -> Option<Output> {
        let (program, arguments) = self.words.split_first()?;
        Command::new(program).args(arguments).stdin(Stdio::null()).output().ok()
    }

    fn succeeds(&self) -> bool {
        self.output().is_some_and(|output| output.status.success())
    }

    fn check(&self) -> Result<()> {
        let said = match self.output() {
            Some(output) if output.status.success() || self.may_fail => return Ok(()),
            None if self.may_fail => return Ok(()),
            Some(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            None => "it cannot be run".to_owned(),
        };
        Err(Error::new(Code::Unavailable, format!("`{}` failed: {said}", self.text())))
    }

    /// The command as somebody would type it.
    fn text(&self) -> String {
        let quoted = |word: &String| {
            let plain = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=:@%+,".contains(c));
            if plain { word.clone() } else { format!("'{}'", word.replace('\'', "'\\''")) }
        };
        self.words.iter().map(quoted).collect::<Vec<_>>().join(" ")
    }
}

/// What a manager needs.
struct Steps {
    manager: &'static str,
    file: Option<(PathBuf, String)>,
    /// Before the file is written.
    prepare: Vec<Run>,
    /// Whether the manager answers here at all.
    answers: Run,
    enable: Vec<Run>,
    /// When the file changed under a service that runs.
    restart: Vec<Run>,
    disable: Vec<Run>,
    /// After the file is gone.
    forget: Vec<Run>,
    /// A name and a command whose answer is the state.
    state: Vec<(&'static str, Run)>,
}

impl Service {
    /// The service as it would be set up from this program.
    pub(crate) fn new(account: Account, home: PathBuf) -> Result<Self> {
        let program = background::program().map_err(|error| Error::new(Code::Internal, format!("this program's own file is not known: {error}")))?;
        let home = if account == Account::Own { home } else { PathBuf::from(SYSTEM_HOME) };
        Ok(Self { account, program, home, roots: Vec::new() }.with_those_before())
    }

    /// The same service with these folders; none given leaves those that it was installed with.
    pub(crate) fn with_roots(self, given: &[PathBuf]) -> Result<Self> {
        if given.is_empty() {
            return Ok(self);
        }
        let roots = given.iter().map(|root| folder(root)).collect::<Result<_>>()?;
        Ok(Self { roots, ..self })
    }

    fn with_those_before(self) -> Self {
        let unit = self.steps().ok().and_then(|steps| steps.file).and_then(|(path, _)| std::fs::read_to_string(path).ok());
        let roots = unit.filter(|_| self.account != Account::Own).map_or_else(Vec::new, |unit| systemd::roots(&unit));
        Self { roots, ..self }
    }

    fn steps(&self) -> Result<Steps> {
        if cfg!(target_os = "linux") {
            return systemd::steps(self);
        }
        if self.account != Account::Own {
            return Err(Error::invalid("user", "a separate account is set up on Linux with systemd only"));
        }
        if cfg!(target_os = "macos") {
            return launchd::steps(self);
        }
        if cfg!(windows) {
            return Ok(tasks::steps(self));
        }
        Err(Error::new(Code::Unavailable, "no service manager is known for this system").hint("run `deskmate up` from whatever starts programs here"))
    }

    /// The arguments of the server.
    fn arguments(&self) -> Vec<String> {
        let mut words = ["up", "--background", "--linger", "off", "--home"].map(str::to_owned).to_vec();
        words.push(self.home.display().to_string());
        if self.account != Account::Own {
            words.push("--separate-user".to_owned());
        }
        words
    }
}

/// What was done, or would be.
#[derive(Serialize)]
pub(crate) struct Done {
    pub(crate) manager: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<String>,
    /// Whether anything was changed.
    pub(crate) changed: bool,
    pub(crate) commands: Vec<String>,
    pub(crate) notes: Vec<String>,
}

/// Installs and starts the service; again, it only brings it up to date.
pub(crate) fn install(service: &Service, dry_run: bool) -> Result<Done> {
    let steps = service.steps()?;
    let all = steps.prepare.iter().chain(&steps.enable).map(Run::text).collect();
    let (file, content) = steps.file.clone().unzip();
    let mut done = Done { manager: steps.manager, file, content, changed: false, commands: all, notes: Vec::new() };
    if dry_run {
        done.notes = next_steps(service);
        return Ok(done);
    }
    if let Account::Separate(name) = &service.account {
        refuse_without_root(name, rustix::process::geteuid().is_root())?;
        refuse_open_program(&service.program)?;
    }
    for run in &steps.prepare {
        run.check()?;
    }
    let before = steps.file.as_ref().and_then(|(path, _)| std::fs::read_to_string(path).ok());
    if let Some((path, content)) = steps.file.as_ref().filter(|(_, content)| before.as_ref() != Some(content)) {
        write(path, content)?;
        done.changed = true;
    }
    make_way(service, &mut done.notes)?;
    if !steps.answers.succeeds() {
        done.notes.push(format!("{} does not answer here, so nothing was started; where it runs, type:", steps.manager));
        done.notes.extend(steps.enable.iter().map(|run| format!("  {}", run.text())));
        done.notes.extend(next_steps(service));
        return Ok(done);
    }
    let older = background::older(&Home::new(service.home.clone()));
    let restart = if (before.is_some() && done.changed) || older.is_some() { steps.restart.as_slice() } else { &[] };
    for run in steps.enable.iter().chain(restart) {
        run.check()?;
    }
    if let Some(version) = older {
        done.changed = true;
        done.notes.push(format!("the server of version {version} was replaced by this one, {}", background::VERSION));
    }
    if steps.manager == "systemd" && service.account == Account::Own {
        done.notes.push("it runs while you are signed in; `loginctl enable-linger` lets it run always".to_owned());
    }
    done.notes.extend(next_steps(service));
    Ok(done)
}

/// How people and clients get to a desk with an account of its own: its socket is closed to them.
fn next_steps(service: &Service) -> Vec<String> {
    let Account::Separate(name) = &service.account else { return Vec::new() };
    let run = |words: &[&str]| {
        let program = service.program.display().to_string();
        let home = service.home.display().to_string();
        Run::new(&[&["sudo", "-u", name, &program], words, &["--home", &home]].concat()).text()
    };
    vec![
        "only its own account and root reach its files and sockets; claim it at once, register each agent, and connect clients by its address:".to_owned(),
        format!("  {}", run(&["claim"])),
        format!("  {}", run(&["agent", "add", "code"])),
        "  DESKMATE_TOKEN=dma_… deskmate connect claude-code --url http://127.0.0.1:7373".to_owned(),
        format!(
            "it writes to {}; give --root for a folder that agents work on, or that checkpoints.copy_to names, or add one later, and let the account {name} write to it:",
            [&service.home].into_iter().chain(&service.roots).map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
        ),
        format!("  sudo systemctl edit {NAME}    # [Service], and ReadWritePaths=DIR; beneath /home also ProtectHome=tmpfs and BindPaths=DIR"),
        format!("  sudo systemctl restart {NAME}"),
    ]
}

/// A folder to work on: whole, there, and not everything.
fn folder(root: &Path) -> Result<PathBuf> {
    let wrong = |why: &dyn std::fmt::Display| Error::invalid("root", format!("{}: {why}", root.display()));
    let found = root.canonicalize().map_err(|error| wrong(&error))?;
    let plain = found.to_str().is_some_and(|text| !text.chars().any(char::is_control));
    match found.parent() {
        _ if !found.is_dir() => Err(wrong(&"it is not a folder")),
        None => Err(wrong(&"it is everything; name the folders that agents work on")),
        Some(_) if !plain => Err(wrong(&"its name cannot stand in a unit")),
        Some(_) => Ok(found),
    }
}

/// A server in the background would keep the service from starting; it is ours to stop. Any other is not.
fn make_way(service: &Service, notes: &mut Vec<String>) -> Result<()> {
    let home = Home::new(service.home.clone());
    match home.running() {
        Some(holder) if holder.background => background::stop(&home, &holder),
        Some(holder) if !holder.background => {
            notes.push(format!(
                "a desk runs in {} already (process {}); if it is not this service, stop it with `deskmate stop`",
                home.path().display(),
                holder.pid
            ));
            Ok(())
        }
        _ => Ok(()),
    }
}

fn refuse_without_root(name: &str, is_root: bool) -> Result<()> {
    if is_root {
        return Ok(());
    }
    Err(Error::forbidden("a service with its own account is set up by root").hint(format!("run: sudo deskmate service install --user {name}")))
}

/// The account is separate only if nobody else can change the program that it runs.
fn refuse_open_program(program: &Path) -> Result<()> {
    use std::os::unix::fs::MetadataExt;
    let open = program.ancestors().find(|path| !std::fs::metadata(path).is_ok_and(|found| found.uid() == 0 && found.mode() & 0o022 == 0));
    let Some(open) = open else { return Ok(()) };
    let message = format!("{} can be changed by others than root, so whoever does would act as the desk's account", open.display());
    let hint = format!("run: sudo install -m 755 {} /usr/local/bin/deskmate, and then /usr/local/bin/deskmate service install …", program.display());
    Err(Error::forbidden(message).hint(hint))
}

fn write(path: &Path, content: &str) -> Result<()> {
    let failed = |error: std::io::Error| Error::new(Code::Unavailable, format!("{}: {error}", path.display()));
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).map_err(failed)?;
    }
    std::fs::write(path, content).map_err(failed)
}

/// Stops and removes the service. The desk's data stays.
pub(crate) fn uninstall(service: &Service, dry_run: bool) -> Result<Done> {
    let steps = service.steps()?;
    let commands = steps.disable.iter().chain(&steps.forget).map(Run::text).collect();
    let file = steps.file.map(|(path, _)| path);
    let mut done = Done { manager: steps.manager, file: file.clone(), content: None, changed: false, commands, notes: Vec::new() };
    if dry_run {
        return Ok(done);
    }
    if let Account::Separate(_) = &service.account
        && !rustix::process::geteuid().is_root()
    {
        return Err(Error::forbidden("this service belongs to root").hint("run it with sudo"));
    }
    let answers = steps.answers.succeeds();
    if answers {
        steps.disable.iter().try_for_each(Run::check)?;
    } else {
        done.notes.push(format!("{} does not answer here: a service that runs elsewhere goes on until it is stopped", steps.manager));
    }
    if let Some(path) = file.filter(|path| path.exists()) {
        std::fs::remove_file(&path).map_err(|error| Error::new(Code::Unavailable, format!("{}: {error}", path.display())))?;
        done.changed = true;
    }
    if answers {
        steps.forget.iter().try_for_each(Run::check)?;
    }
    done.notes.push(format!("the desk's data stays in {}", service.home.display()));
    Ok(done)
}

/// How the service stands.
pub(crate) fn status(service: &Service) -> Result<serde_json::Value> {
    let steps = service.steps()?;
    let running = Home::new(service.home.clone()).running();
    let mut answer = serde_json::json!({
        "manager": steps.manager,
        "file": steps.file.as_ref().map(|(path, _)| path),
        "installed": steps.file.as_ref().map_or_else(|| steps.state.iter().all(|(_, run)| run.succeeds()), |(path, _)| path.is_file()),
        "up_to_date": steps.file.as_ref().map(|(path, content)| std::fs::read_to_string(path).is_ok_and(|found| found == *content)),
        "home": service.home,
        "process": running.as_ref().map(|holder| holder.pid),
        "running_version": running.as_ref().map(|holder| holder.version.as_str()),
        "version": background::VERSION,
        "manager_answers": steps.answers.succeeds(),
    });
    for (name, run) in &steps.state {
        let said = run.output().map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).filter(|said| !said.is_empty());
        if let (Some(fields), Some(said)) = (answer.as_object_mut(), said) {
            fields.insert((*name).to_owned(), said.into());
        }
    }
    Ok(answer)
}

/// The user's directory for settings.
fn user_settings() -> Result<PathBuf> {
    let found = config::env("XDG_CONFIG_HOME").map(PathBuf::from).or_else(|| config::user_home().map(|home| home.join(".config")));
    found.ok_or_else(homeless)
}

fn homeless() -> Error {
    Error::new(Code::Unavailable, "there is no home directory for a service of your own").hint("set HOME")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(account: Account) -> Service {
        Service { account, program: "/opt/my desk/deskmate".into(), home: "/home/me/100%/.deskmate".into(), roots: Vec::new() }
    }

    #[test]
    fn a_unit_of_the_users_own() {
        let unit = systemd::unit(&service(Account::Own));
        assert!(unit.contains("ExecStart=\"/opt/my desk/deskmate\" up --background --linger off --home \"/home/me/100%%/.deskmate\"\n"), "{unit}");
        for line in ["Restart=on-failure", "NoNewPrivileges=yes", "UMask=0077", "WantedBy=default.target"] {
            assert!(unit.lines().any(|found| found == line), "{line} is missing in {unit}");
        }
        assert!(!unit.contains("User="));
    }

    #[test]
    fn a_unit_with_an_account_of_its_own() {
        let unit = systemd::unit(&separate(&[]));
        for line in ["User=deskmate", "ProtectSystem=strict", "ReadWritePaths=/var/lib/deskmate", "ProtectHome=yes", "UMask=0077", "WantedBy=multi-user.target"]
        {
            assert!(unit.lines().any(|found| found == line), "{line} is missing in {unit}");
        }
        assert!(unit.contains("--separate-user"));
    }

    fn separate(roots: &[&str]) -> Service {
        let roots = roots.iter().map(PathBuf::from).collect();
        Service { account: Account::Separate("deskmate".into()), program: "/usr/local/bin/deskmate".into(), home: SYSTEM_HOME.into(), roots }
    }

    #[test]
    fn an_account_of_its_own_gets_the_roots_that_it_was_given() {
        let elsewhere = separate(&["/srv/100% \\ours\"", "/homework"]);
        let unit = systemd::unit(&elsewhere);
        for line in ["ReadWritePaths=/var/lib/deskmate", r#"ReadWritePaths=-"/srv/100%% \\ours\"""#, "ReadWritePaths=-\"/homework\"", "ProtectHome=yes"] {
            assert!(unit.lines().any(|found| found == line), "{line} is missing in {unit}");
        }
        assert!(!unit.contains("BindPaths"), "{unit}");
        assert_eq!(systemd::roots(&unit), elsewhere.roots, "the next install finds them again");
        let unit = systemd::unit(&separate(&["/srv/files", "/home/me/work"]));
        for line in ["ReadWritePaths=-\"/srv/files\"", "ReadWritePaths=-\"/home/me/work\"", "BindPaths=-\"/home/me/work\"", "ProtectHome=tmpfs"] {
            assert!(unit.lines().any(|found| found == line), "{line} is missing in {unit}");
        }
        let next = next_steps(&separate(&["/srv/files"])).join("\n");
        for part in ["/var/lib/deskmate, /srv/files;", "checkpoints.copy_to", "systemctl edit deskmate", "ReadWritePaths=DIR"] {
            assert!(next.contains(part), "{part}: {next}");
        }
    }

    #[test]
    fn a_root_is_a_folder_that_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "").unwrap();
        for wrong in [Path::new("/"), &file, &directory.path().join("nothing")] {
            assert!(folder(wrong).is_err(), "{}", wrong.display());
        }
        assert_eq!(folder(&directory.path().join(".")).unwrap(), directory.path().canonicalize().unwrap());
    }

    #[test]
    fn the_other_managers_get_the_same_command() {
        let plist = launchd::plist(&service(Account::Own));
        assert!(plist.contains("<string>/opt/my desk/deskmate</string>\n    <string>up</string>"), "{plist}");
        let task = tasks::steps(&service(Account::Own));
        let create = task.enable.first().unwrap().words.join(" ");
        assert!(create.contains("\"/opt/my desk/deskmate\" up --background"), "{create}");
    }

    #[test]
    fn only_root_and_only_plain_names() {
        assert!(refuse_without_root("deskmate", false).unwrap_err().to_string().contains("sudo deskmate service install --user deskmate"));
        for bad in ["root", "", "a b", "-x", "A", "x;y", "%n"] {
            assert!(Account::new(Some(bad)).is_err(), "{bad}");
        }
        assert_eq!(Account::new(Some("desk-mate_1")).unwrap(), Account::Separate("desk-mate_1".into()));
    }

    #[test]
    fn a_program_that_others_can_change_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("deskmate");
        std::fs::write(&program, "").unwrap();
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        assert!(refuse_open_program(&program).unwrap_err().to_string().contains("/usr/local/bin"));
    }
}
