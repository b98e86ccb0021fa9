//! What programs do with their arguments. A program that is not known here runs as itself: nobody can say what it does.

use super::syntax::{Part, Word};
use super::tables::{
    CHANGING, CODE, DELETING, FETCH_AND_RUN, FETCHING, HARMLESS, INSTALLERS, INSTALLING, INTERPRETERS, PATTERN_FIRST, READING, SAYING, SHELLS, WRAPPERS,
    WRITING, lists,
};
use super::walk::Walk;
use super::{ShellAct, Target, Verb, git, scripts};

/// A text in the line that a program is given as its input.
#[derive(Clone)]
pub(super) enum Given {
    /// This one.
    Known(String),
    /// One that shows only when it runs.
    Open,
}

/// A program that is called.
pub(super) struct Call<'w> {
    /// As it is written.
    pub(super) name: &'w str,
    pub(super) arguments: &'w [Word],
    /// Whether its input comes from another command or a file.
    pub(super) is_fed: bool,
    /// Its input as a text in the line itself.
    pub(super) text: Option<Given>,
    /// How many lines it stands in.
    pub(super) deep: usize,
    pub(super) is_raised: bool,
}

/// Says what a call does.
pub(super) fn call(walk: &mut Walk, call: &Call<'_>) {
    let program = call.name.rsplit('/').next().unwrap_or(call.name);
    let known = |list: &str| lists(list, program);
    if let Some((_, valued)) = WRAPPERS.iter().find(|(name, _)| *name == program) {
        return wrapped(walk, call, program, valued);
    }
    match program {
        "cd" | "pushd" | "popd" | "chdir" => return walk.go(call.arguments.iter().find(|word| !is_option(word))),
        "eval" => return evaluated(walk, call),
        "." | "source" => return unknown(walk, program, "it runs another script in its own place"),
        "test" | "[" | "printf" if call.arguments.iter().any(Word::hides_command) => {
            return unknown(walk, program, "a text in it is read as a number or a name, and that can run commands");
        }
        "let" | "su" | "runuser" | "pkexec" | "systemd-run" | "watch" | "script" | "screen" | "tmux" | "expect" | "vi" | "vim" | "nvim" | "emacs" | "gdb"
        | "strace" | "flock" | "entr" => {
            return unknown(walk, program, "it runs what its arguments say in a way of its own");
        }
        "tree" if has(call, &["-o"]) => return add(walk, Verb::FileWrite, call, program),
        "xxd" if call.arguments.iter().filter(|word| !is_option(word)).count() > 1 => return add(walk, Verb::FileWrite, call, program),
        "trap" | "alias" | "enable" | "hash" | "complete" | "bind" => return unknown(walk, program, "it changes what later commands do"),
        "export" | "declare" | "typeset" | "local" | "readonly" | "set" | "shopt" | "unset" | "setopt" => return ruling(walk, call, program),
        "printenv" => return walk.add(ShellAct { is_secret: true, ..ShellAct::new(Verb::FileRead, program) }),
        "xargs" | "parallel" => return from_input(walk, call, program),
        "find" => return find(walk, call),
        "fd" | "fdfind" if flagged(call, &['x', 'X'], "exec-batch") || has_prefix(call, &["--exec"]) => {
            return unknown(walk, program, "it runs a command for what it finds");
        }
        "sed" => return scripts::sed(walk, call),
        "awk" | "gawk" | "mawk" | "nawk" => return scripts::awk(walk, call, program),
        "git" => return git::call(walk, call),
        "ssh" | "mosh" | "rsh" => return unknown(walk, program, "it runs commands on another machine"),
        "dd" => return copy_bytes(walk, call),
        "rg" | "ag" if call.arguments.iter().any(|word| ["--pre", "--hostname-bin", "--pager"].iter().any(|option| word.shown().starts_with(option))) => {
            return unknown(walk, program, "it runs a program for each file");
        }
        "sort" if has(call, &["-o", "--output"]) || has_prefix(call, &["-o", "--output="]) => {
            return add(walk, Verb::FileWrite, call, program);
        }
        "sort" if has_prefix(call, &["--compress-program"]) => return unknown(walk, program, "it runs another program"),
        "bat" if has_prefix(call, &["--pager"]) => return unknown(walk, program, "it runs another program"),
        "uniq" if call.arguments.iter().filter(|word| !is_option(word)).count() > 1 => return add(walk, Verb::FileWrite, call, program),
        "sort" | "uniq" | "rg" | "ag" | "fd" | "fdfind" | "jq" | "bat" | "exa" | "eza" | "date"
            if !(program == "date" && has_prefix(call, &["-s", "--set"])) =>
        {
            return add(walk, Verb::FileRead, call, program);
        }
        _ => {}
    }
    if known(SHELLS) {
        shell(walk, call, program);
    } else if known(INTERPRETERS) || program.starts_with("python3.") {
        interpreter(walk, call, program);
    } else if known(FETCH_AND_RUN) {
        add(walk, Verb::PackageInstall, call, program);
    } else if known(INSTALLERS) {
        let verb = call.arguments.iter().filter(|word| !is_option(word)).filter_map(Word::literal).take(2).any(|word| lists(INSTALLING, &word));
        let is_run = program == "go" || program == "cargo";
        let installs = verb && (!is_run || has(call, &["install", "get", "add", "update"]));
        add(walk, if installs { Verb::PackageInstall } else { Verb::ProcessRun }, call, program);
    } else if known(DELETING) {
        add(walk, Verb::FileDelete, call, program);
    } else if known(CHANGING) || program.starts_with("mkfs.") {
        add(walk, Verb::SystemChange, call, program);
    } else if known(FETCHING) {
        fetch(walk, call, program);
    } else if known(WRITING) {
        add(walk, Verb::FileWrite, call, program);
    } else if known(READING) && !call.name.contains('/') {
        add(walk, Verb::FileRead, call, program);
    } else {
        add(walk, Verb::ProcessRun, call, call.name);
    }
}

pub(super) fn unknown(walk: &mut Walk, program: &str, why: &'static str) {
    walk.add(ShellAct::unknown(program, why));
}

pub(super) fn is_option(word: &Word) -> bool {
    word.shown().starts_with('-') && word.shown() != "-"
}

/// Whether one of these arguments is there, exactly.
pub(super) fn has(call: &Call<'_>, options: &[&str]) -> bool {
    call.arguments.iter().any(|word| options.contains(&word.shown().as_str()))
}

pub(super) fn has_prefix(call: &Call<'_>, options: &[&str]) -> bool {
    call.arguments.iter().any(|word| options.iter().any(|option| word.shown().starts_with(option)))
}

/// Whether one letter is among the short options, or a long one is there, also cut short.
fn flagged(call: &Call<'_>, letters: &[char], long: &str) -> bool {
    call.arguments.iter().map(Word::shown).take_while(|text| text != "--").any(|text| match text.strip_prefix("--") {
        Some(name) => name.len() > 2 && long.starts_with(name),
        None => text.strip_prefix('-').is_some_and(|short| short.contains(letters)),
    })
}

/// An act on the files among the arguments.
pub(super) fn add(walk: &mut Walk, verb: Verb, call: &Call<'_>, program: &str) {
    let targets = targets(walk, call, program);
    let is_recursive = flagged(call, &['r', 'R'], "recursive");
    let of_environment = program == "jq" && call.arguments.iter().any(|word| word.shown().to_lowercase().contains("env"));
    let tells = verb == Verb::FileRead && (of_environment || lists(SAYING, program) && tells_secrets(call.arguments));
    walk.add(ShellAct { targets, is_recursive, is_raised: call.is_raised, is_secret: tells, ..ShellAct::new(verb, program) });
}

/// Whether texts hold variables that may be secrets.
fn tells_secrets(words: &[Word]) -> bool {
    words.iter().flat_map(|word| &word.parts).any(|part| matches!(part, Part::Variable(name) if !lists(HARMLESS, name)))
}

/// The files among the arguments. An option with a path in it names one too, whatever it means.
fn targets(walk: &Walk, call: &Call<'_>, program: &str) -> Vec<Target> {
    if lists(SAYING, program) {
        return Vec::new();
    }
    let mut skip = usize::from(lists(PATTERN_FIRST, program) && !has(call, &["-e", "-f", "--regexp", "--file", "--from-file"]));
    let mut found = Vec::new();
    let mut only_files = false;
    for word in call.arguments {
        let text = word.shown();
        if text == "--" && !only_files {
            only_files = true;
        } else if text.starts_with('-') && text.len() > 1 && !only_files {
            // An option whose value is a path, in one word with it.
            if let Some(at) = text.find(['=', '/', '~']).filter(|_| text.contains(['/', '~', '='])) {
                let path = text.get(at..).unwrap_or_default().trim_start_matches('=');
                if path != "/" && path.contains(['/', '~', '.', '$']) {
                    found.push(walk.place(path.to_owned(), !word.is_named()));
                }
            }
        } else if skip > 0 {
            skip -= 1;
        } else {
            found.push(walk.target(word));
        }
    }
    found
}

/// A program that runs another: the other one is what counts.
fn wrapped(walk: &mut Walk, call: &Call<'_>, program: &str, valued: &str) {
    let raises = matches!(program, "sudo" | "doas");
    let (mut at, mut durations) = (0, usize::from(program == "timeout"));
    while let Some(word) = call.arguments.get(at) {
        let text = word.shown();
        let is_assignment = matches!(program, "env" | "sudo" | "doas") && text.contains('=') && !text.starts_with(['-', '=']);
        if program == "env" && (text.starts_with("-S") || text.starts_with("--split-string")) {
            return unknown(walk, program, "it splits a text into a command");
        }
        if program == "env" && (text == "-C" || text.starts_with("--chdir")) {
            walk.go(None);
        }
        if program == "command" && (text == "-v" || text == "-V") {
            return walk.add(ShellAct::new(Verb::FileRead, program));
        }
        if raises && matches!(text.as_str(), "-i" | "-s" | "--login" | "--shell" | "-e" | "--edit") {
            unknown(walk, program, "it opens a shell with more rights");
        }
        if is_assignment {
            let name = text.split('=').next().unwrap_or_default();
            if matches!(name, "PATH" | "LD_PRELOAD" | "BASH_ENV" | "ENV" | "NODE_OPTIONS" | "PYTHONPATH") || name.starts_with("LD_") || name.starts_with("GIT_")
            {
                unknown(walk, program, "it changes what the names of programs mean");
            }
        } else if lists(valued, &text) {
            at += 1;
        } else if text == "--" {
            at += 1;
            break;
        } else if text.starts_with('-') && (text.len() > 1 || program == "env") {
        } else if durations > 0 {
            durations -= 1;
        } else {
            break;
        }
        at += 1;
    }
    let rest = call.arguments.get(at..).unwrap_or_default();
    let Some((first, arguments)) = rest.split_first() else {
        // `env` alone prints the environment.
        let act = ShellAct::new(if raises { Verb::SystemChange } else { Verb::FileRead }, program);
        return walk.add(ShellAct { is_secret: program == "env", ..act });
    };
    if raises {
        walk.add(ShellAct { is_raised: true, ..ShellAct::new(Verb::SystemChange, program) });
    }
    match first.literal().filter(|_| !first.has_glob()) {
        Some(name) if !name.is_empty() && call.deep < 8 => {
            let inner = Call { name: &name, arguments, is_fed: call.is_fed, text: call.text.clone(), deep: call.deep + 1, is_raised: call.is_raised || raises };
            self::call(walk, &inner);
        }
        _ => unknown(walk, program, "which program it runs shows only when it runs"),
    }
}

/// `eval` reads its arguments as a line once more; what is plain there is looked at, and it stays unknown.
fn evaluated(walk: &mut Walk, call: &Call<'_>) {
    let texts: Option<Vec<String>> = call.arguments.iter().map(Word::literal).collect();
    if let Some(texts) = texts {
        walk.line(&texts.join(" "), call.deep + 1);
    }
    unknown(walk, "eval", "it reads a text as a command");
}

/// Setting variables or options of the shell.
fn ruling(walk: &mut Walk, call: &Call<'_>, program: &str) {
    let shows = call.arguments.iter().all(is_option);
    let rules = call.arguments.iter().map(Word::shown).any(|text| {
        let name = text.split('=').next().unwrap_or_default();
        matches!(name, "PATH" | "BASH_ENV" | "ENV" | "IFS" | "PROMPT_COMMAND" | "NODE_OPTIONS" | "PYTHONPATH")
            || name.starts_with("LD_")
            || name.starts_with("GIT_")
    });
    if rules
        || call.arguments.iter().any(Word::hides_command)
        || matches!(program, "shopt" | "setopt") && !shows
        || call.arguments.iter().any(|word| word.literal().is_none() && !word.shown().contains('='))
    {
        return unknown(walk, program, "it changes what later commands mean");
    }
    walk.add(ShellAct { is_secret: shows && program != "set" || program == "set" && call.arguments.is_empty(), ..ShellAct::new(Verb::FileRead, program) });
}

/// A command that gets its arguments from its input.
fn from_input(walk: &mut Walk, call: &Call<'_>, program: &str) {
    let valued = ["-I", "-n", "-P", "-L", "-d", "-E", "-s", "-a", "--max-args", "--max-procs", "--delimiter", "--replace", "--arg-file", "-j", "--jobs"];
    let mut at = 0;
    while let Some(word) = call.arguments.get(at).filter(|word| is_option(word)) {
        at += if valued.contains(&word.shown().as_str()) { 2 } else { 1 };
    }
    let rest = call.arguments.get(at..).unwrap_or_default();
    let from_input = Word { parts: vec![Part::Variable("input".to_owned())] };
    let Some((first, arguments)) = rest.split_first().filter(|_| program == "xargs") else {
        return if program == "xargs" { walk.add(ShellAct::new(Verb::FileRead, program)) } else { unknown(walk, program, "it runs what its input says") };
    };
    let mut arguments = arguments.to_vec();
    arguments.push(from_input);
    match first.literal().filter(|_| !first.has_glob()) {
        Some(name) if call.deep < 8 => {
            let inner = Call { name: &name, arguments: &arguments, is_fed: true, text: None, deep: call.deep + 1, is_raised: call.is_raised };
            self::call(walk, &inner);
        }
        _ => unknown(walk, program, "it runs what its input says"),
    }
}

/// `find` looks, unless it is told to do something with what it finds.
fn find(walk: &mut Walk, call: &Call<'_>) {
    let starts: Vec<&Word> = call.arguments.iter().take_while(|word| !word.shown().starts_with(['-', '(', '!'])).collect();
    let mut targets: Vec<Target> = starts.iter().map(|word| walk.target(word)).collect();
    if targets.is_empty() {
        targets.push(walk.here());
    }
    let act = |verb| ShellAct { targets: targets.clone(), is_recursive: true, is_raised: call.is_raised, ..ShellAct::new(verb, "find") };
    walk.add(act(Verb::FileRead));
    let mut at = starts.len();
    while let Some(word) = call.arguments.get(at) {
        at += 1;
        match word.shown().as_str() {
            "-delete" => walk.add(act(Verb::FileDelete)),
            "-fprint" | "-fprint0" | "-fprintf" | "-fls" => {
                let file = call.arguments.get(at).map(|word| walk.target(word));
                walk.add(ShellAct { targets: file.into_iter().collect(), ..ShellAct::new(Verb::FileWrite, "find") });
            }
            "-files0-from" => unknown(walk, "find", "where it looks is in a file"),
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let rest = call.arguments.get(at..).unwrap_or_default();
                let length = rest.iter().position(|word| matches!(word.shown().as_str(), ";" | "+")).unwrap_or(rest.len());
                let (own, _) = rest.split_at(length);
                at += length;
                let Some((first, arguments)) = own.split_first() else { continue };
                // What it finds is beneath where it starts.
                let mut arguments: Vec<Word> = arguments.iter().filter(|word| !word.shown().contains("{}")).cloned().collect();
                arguments.extend(starts.iter().map(|word| (*word).clone()));
                match first.literal() {
                    Some(name) if call.deep < 8 => {
                        let inner = Call { name: &name, arguments: &arguments, is_fed: false, text: None, deep: call.deep + 1, is_raised: call.is_raised };
                        let recursive_delete = lists(DELETING, name.rsplit('/').next().unwrap_or_default());
                        self::call(walk, &inner);
                        if recursive_delete {
                            walk.add(act(Verb::FileDelete));
                        }
                    }
                    _ => unknown(walk, "find", "which program it runs shows only when it runs"),
                }
            }
            _ => {}
        }
    }
}

/// A shell: a line of its own in an argument or in the text that it is given; otherwise nobody knows.
fn shell(walk: &mut Walk, call: &Call<'_>, program: &str) {
    if program == "busybox" {
        let Some((first, arguments)) = call.arguments.split_first() else { return unknown(walk, program, "it opens a shell") };
        return match first.literal() {
            Some(name) if call.deep < 8 => {
                self::call(
                    walk,
                    &Call { name: &name, arguments, is_fed: call.is_fed, text: call.text.clone(), deep: call.deep + 1, is_raised: call.is_raised },
                );
            }
            _ => unknown(walk, program, "which program it runs shows only when it runs"),
        };
    }
    let mut at = 0;
    let mut takes_line = false;
    while let Some(text) = call.arguments.get(at).map(Word::shown).filter(|text| text.starts_with(['-', '+']) && text.len() > 1) {
        at += 1;
        if text == "--" {
            break;
        }
        if matches!(text.as_str(), "-o" | "+o" | "-O" | "+O" | "--rcfile" | "--init-file") {
            if text.starts_with("--") {
                unknown(walk, program, "it reads another script first");
            }
            at += 1;
        } else if !text.starts_with("--") && text.contains('c') {
            takes_line = true;
        }
    }
    if takes_line {
        return match call.arguments.get(at).map(Word::literal) {
            Some(Some(line)) => {
                walk.line(&line, call.deep + 1);
                if call.is_raised {
                    walk.add(ShellAct { is_raised: true, ..ShellAct::new(Verb::SystemChange, program) });
                }
            }
            _ => unknown(walk, program, "the line that it runs shows only when it runs"),
        };
    }
    match (call.arguments.get(at), &call.text) {
        (Some(script), _) if !script.is_named() => unknown(walk, program, "the script that it runs shows only when it runs"),
        (Some(script), _) if script.shown() != "-" && !has(call, &["-s"]) => {
            let target = walk.target(script);
            walk.add(ShellAct { targets: vec![target], is_raised: call.is_raised, ..ShellAct::new(Verb::ProcessRun, program) });
        }
        (_, Some(Given::Known(text))) if !call.is_fed => walk.line(text, call.deep + 1),
        (None, None) if !call.is_fed && has(call, &["--version", "--help"]) => walk.add(ShellAct::new(Verb::FileRead, program)),
        _ => unknown(walk, program, "it runs what its input says"),
    }
}

fn interpreter(walk: &mut Walk, call: &Call<'_>, program: &str) {
    let words: Vec<String> = call.arguments.iter().map(Word::shown).collect();
    let only_says = matches!(words.as_slice(), [word] if matches!(word.as_str(), "--version" | "-V" | "-v" | "--help"));
    if only_says {
        return walk.add(ShellAct::new(Verb::FileRead, program));
    }
    let script = words.iter().position(|word| !word.starts_with('-'));
    let options = words.get(..script.unwrap_or(words.len())).unwrap_or_default();
    let takes_code = |word: &String| lists(CODE, word) || (word.starts_with('-') && !word.starts_with("--") && word.len() > 1 && word.contains(['c', 'e']));
    if options.iter().any(takes_code) || words.first().is_some_and(|word| word == "eval") {
        return unknown(walk, program, "it runs code that stands in the line");
    }
    match script.and_then(|at| call.arguments.get(at)) {
        Some(script) if !script.is_named() => unknown(walk, program, "the script that it runs shows only when it runs"),
        Some(script) => {
            let target = walk.target(script);
            let is_module = options.iter().any(|option| option == "-m");
            let verb = if is_module && words.iter().any(|word| word == "pip") && words.iter().any(|word| word == "install") {
                Verb::PackageInstall
            } else {
                Verb::ProcessRun
            };
            let targets = if is_module { Vec::new() } else { vec![target] };
            walk.add(ShellAct { targets, is_raised: call.is_raised, ..ShellAct::new(verb, program) });
        }
        None => unknown(walk, program, "it runs what its input says"),
    }
}

fn fetch(walk: &mut Walk, call: &Call<'_>, program: &str) {
    let is_url = |target: &Target| target.shown.contains("://");
    let (urls, files): (Vec<Target>, Vec<Target>) = targets(walk, call, program).into_iter().partition(is_url);
    let hosts = if urls.is_empty() { files.clone() } else { urls.clone() };
    let hosts = hosts.into_iter().map(|target| Target { places: None, ..target }).collect();
    walk.add(ShellAct { targets: hosts, is_raised: call.is_raised, ..ShellAct::new(Verb::NetFetch, program) });
    if has_prefix(call, &["-K", "--config", "-x", "--proxy"])
        || (matches!(program, "nc" | "ncat" | "netcat" | "socat") && has_prefix(call, &["-e", "-c", "EXEC", "SYSTEM"]))
    {
        unknown(walk, program, "it does what a file or another program says");
    }
    let keeps = match program {
        "wget" => !has(call, &["-O-", "-qO-", "--spider"]),
        "curl" => has(call, &["-o", "-O", "--output", "--remote-name", "-OL", "-LO"]) || has_prefix(call, &["-o", "--output", "--remote-name"]),
        "scp" | "rsync" | "sftp" | "ftp" => true,
        _ => false,
    };
    if keeps {
        let targets = if files.is_empty() { vec![walk.here()] } else { files };
        walk.add(ShellAct { targets, ..ShellAct::new(Verb::FileWrite, program) });
    }
}

fn copy_bytes(walk: &mut Walk, call: &Call<'_>) {
    for word in call.arguments {
        let text = word.shown();
        let of = |prefix: &str| text.strip_prefix(prefix).map(|path| walk.place(path.to_owned(), !word.is_named()));
        let (reads, writes) = (of("if="), of("of="));
        if let Some(target) = reads {
            walk.add(ShellAct { targets: vec![target], ..ShellAct::new(Verb::FileRead, "dd") });
        }
        if let Some(target) = writes {
            walk.add(ShellAct { targets: vec![target], is_raised: call.is_raised, ..ShellAct::new(Verb::FileWrite, "dd") });
        }
    }
}
