//! What programs do with their arguments. A program that is not known here runs as itself: nobody can say what it does.

use super::super::place::seeks_secret;
use super::options::{self, Options};
use super::parse::Grammar;
use super::syntax::{Part, Word};
use super::tables::{
    CHANGING, CHANGING_LATER, CODE, DELETING, FETCH_AND_RUN, FETCHING, INSTALLERS, INSTALLING, INTERPRETERS, OWN, RUNNING, SHELLS, WRAPPERS, WRITING, XARGS,
    lists, may_set,
};
use super::walk::Walk;
use super::{ShellAct, Target, Verb, git, looking, scripts};

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

/// Where a system keeps its programs. A program elsewhere may have any name.
const SYSTEM: [&str; 4] = ["/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/"];

/// Says what a call does.
pub(super) fn call(walk: &mut Walk, call: &Call<'_>) {
    let (folder, program) = call.name.rfind('/').map_or(("", call.name), |at| call.name.split_at(at + 1));
    if !folder.is_empty() && !SYSTEM.contains(&folder) {
        add(walk, Verb::ProcessRun, call, call.name);
    }
    let known = |list: &str| lists(list, program);
    if let Some((_, options)) = WRAPPERS.iter().find(|(name, _)| *name == program) {
        return wrapped(walk, call, program, options);
    }
    match program {
        // Where it was before, or a place in the list of folders.
        "cd" | "pushd" | "popd" | "chdir" if call.arguments.iter().any(|word| word.shown() == "-" || word.shown().starts_with('+')) => return walk.go(None),
        "cd" | "pushd" | "popd" | "chdir" => return walk.go(call.arguments.iter().find(|word| !is_option(word))),
        "eval" => return evaluated(walk, call),
        "." | "source" => return unknown(walk, program, "it runs another script in its own place"),
        "export" | "declare" | "typeset" | "local" | "readonly" | "set" | "shopt" | "unset" | "setopt" => return ruling(walk, call, program),
        "read" => return input(walk, call),
        "printenv" => return walk.add(ShellAct { is_secret: true, ..ShellAct::new(Verb::FileRead, program) }),
        "xargs" => return from_input(walk, call),
        "find" => return find(walk, call),
        "sed" => return scripts::sed(walk, call),
        "awk" | "gawk" | "mawk" | "nawk" => return scripts::awk(walk, call, program),
        "git" => return git::call(walk, call),
        "ssh" | "mosh" | "rsh" => return unknown(walk, program, "it runs commands on another machine"),
        "man" if call.arguments.iter().any(|word| is_option(word) || word.is_loose()) => {
            return unknown(walk, program, "it can run another program to show what it has");
        }
        "dd" => return copy_bytes(walk, call),
        _ => {}
    }
    if known(RUNNING) {
        return unknown(walk, program, "it runs what its arguments say in a way of its own");
    }
    if known(CHANGING_LATER) {
        return unknown(walk, program, "it changes what later commands do");
    }
    if looking::call(walk, call, program) {
        return;
    }
    match looking::written(program, call.arguments) {
        Some(written) if written.is_empty() => {}
        Some(written) => {
            let targets = written.iter().map(|word| walk.target(word)).collect();
            walk.add(ShellAct { targets, is_raised: call.is_raised, ..ShellAct::new(Verb::FileWrite, program) });
        }
        None => unknown(walk, program, "what it does with these options is not known here"),
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
        if matches!(program, "docker" | "podman") && !call.arguments.first().is_some_and(|word| lists("ps images logs inspect version info", &word.shown())) {
            unknown(walk, program, "it runs what its arguments say in a way of its own");
        }
        add(walk, Verb::SystemChange, call, program);
    } else if known(FETCHING) {
        fetch(walk, call, program);
    } else if known(WRITING) {
        add(walk, Verb::FileWrite, call, program);
    } else if folder.is_empty() || SYSTEM.contains(&folder) {
        add(walk, Verb::ProcessRun, call, call.name);
    }
}

pub(super) fn unknown(walk: &mut Walk, program: &str, why: &'static str) {
    walk.add(ShellAct::unknown(program, why));
}

fn is_option(word: &Word) -> bool {
    word.shown().starts_with('-') && word.shown() != "-"
}

/// Whether one of these arguments is there, exactly.
fn has(call: &Call<'_>, options: &[&str]) -> bool {
    call.arguments.iter().any(|word| options.contains(&word.shown().as_str()))
}

fn has_prefix(call: &Call<'_>, options: &[&str]) -> bool {
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
fn add(walk: &mut Walk, verb: Verb, call: &Call<'_>, program: &str) {
    let targets = targets(walk, call);
    let is_recursive = flagged(call, &['r', 'R'], "recursive");
    walk.add(ShellAct { targets, is_recursive, is_raised: call.is_raised, ..ShellAct::new(verb, program) });
}

/// The files among the arguments. An option with a path in it names one too, whatever it means.
fn targets(walk: &Walk, call: &Call<'_>) -> Vec<Target> {
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
        } else {
            found.push(walk.target(word));
        }
    }
    found
}

/// A program that runs another: the other one is what counts.
fn wrapped(walk: &mut Walk, call: &Call<'_>, program: &str, list: &'static str) {
    let raises = matches!(program, "sudo" | "doas");
    let Some(options) = options::read(&[list], call.arguments, true) else {
        return unknown(walk, program, "which program it runs with these options is not known here");
    };
    if are_loose(call, &options) || program == "timeout" && options.operands.first().is_some_and(|word| word.may_be_several()) {
        return unknown(walk, program, "an argument may become another one when it runs");
    }
    if program == "env" && options.has(&["C", "chdir"]) {
        walk.go(None);
    }
    if program == "command" && options.has(&["v", "V"]) {
        return walk.add(ShellAct::new(Verb::FileRead, program));
    }
    if raises && options.has(&["i", "s", "login", "shell", "e", "edit"]) {
        unknown(walk, program, "it opens a shell with more rights");
    }
    let mut rest = options.operands.as_slice();
    if program == "timeout" {
        rest = rest.get(1..).unwrap_or_default();
    }
    if program == "env" && rest.first().is_some_and(|word| word.shown() == "-") {
        rest = rest.get(1..).unwrap_or_default();
    }
    if matches!(program, "env" | "sudo" | "doas") {
        while let Some((word, after)) = rest.split_first().filter(|(word, _)| word.shown().contains('=') || word.may_be_several()) {
            if word.has_glob() || !sets_known(word) {
                unknown(walk, program, "what programs make of this variable is not known here");
            }
            rest = after;
        }
    }
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
            let arguments: Vec<Word> = arguments.iter().map(|word| (*word).clone()).collect();
            let inner = Call {
                name: &name,
                arguments: &arguments,
                is_fed: call.is_fed,
                text: call.text.clone(),
                deep: call.deep + 1,
                is_raised: call.is_raised || raises,
            };
            self::call(walk, &inner);
        }
        _ => unknown(walk, program, "which program it runs shows only when it runs"),
    }
}

/// Whether something before the program that is run may become several words, so that another one is run.
fn are_loose(call: &Call<'_>, options: &Options<'_>) -> bool {
    let before = call.arguments.len() - options.operands.len();
    options.is_doubtful || call.arguments.iter().take(before).any(Word::may_be_several)
}

/// Whether an argument `NAME=value` sets a variable that changes nothing but how something is shown.
fn sets_known(word: &Word) -> bool {
    let text = word.shown();
    let Some((name, value)) = text.split_once('=') else { return false };
    let value = if word.literal().is_some() { super::words::quoted(value.to_owned()) } else { Word { parts: vec![Part::Variable(String::new())] } };
    !word.is_loose() && may_set(name, &value)
}

/// `eval` reads its arguments as a line once more; what is plain there is looked at, and it stays unknown.
fn evaluated(walk: &mut Walk, call: &Call<'_>) {
    let texts: Option<Vec<String>> = call.arguments.iter().map(Word::literal).collect();
    if let Some(texts) = texts {
        walk.line(&texts.join(" "), call.deep + 1, Grammar::Extended);
    }
    unknown(walk, "eval", "it reads a text as a command");
}

/// Setting variables or options of the shell.
fn ruling(walk: &mut Walk, call: &Call<'_>, program: &str) {
    let words: Vec<String> = call.arguments.iter().map(Word::shown).collect();
    let texts: Vec<&str> = words.iter().map(String::as_str).collect();
    let shows = matches!(texts.as_slice(), [] | ["-p"]);
    let is_known = shows
        || match program {
            // How the line ends where something fails, and what it tells of itself.
            "set" => {
                let mut values = texts.iter();
                values.all(|text| {
                    let letters = text.strip_prefix(['-', '+']).unwrap_or("?");
                    lists("errexit nounset pipefail xtrace noglob verbose", text)
                        || !letters.is_empty() && letters.chars().all(|letter| "euxvfo".contains(letter))
                })
            }
            "shopt" | "setopt" => false,
            "unset" => call.arguments.iter().all(|word| word.literal().is_some_and(|name| may_set(&name, &Word::default()))),
            _ => call.arguments.iter().all(|word| {
                let is_name = word.literal().is_some_and(|name| !name.contains('=') && may_set(&name, &Word::default()));
                !word.hides_command() && (is_name || sets_known(word))
            }),
        };
    if !is_known {
        return unknown(walk, program, "it changes what later commands mean");
    }
    walk.add(ShellAct { is_secret: shows, ..ShellAct::new(Verb::FileRead, program) });
}

/// `read` gives a variable what comes in.
fn input(walk: &mut Walk, call: &Call<'_>) {
    match options::read(&["-rs -d: -n: -t: -u:"], call.arguments, false) {
        Some(options)
            // Some shells take no value there, and what stands behind is a variable.
            if options.values(&["n", "t", "u"]).all(|value| value.is_number() && !value.shown().is_empty())
                && !call.arguments.iter().any(Word::hides_command)
                && options.reads.is_empty()
                && options.operands.iter().all(|word| word.literal().is_some_and(|name| lists(OWN, &name))) =>
        {
            walk.add(ShellAct::new(Verb::FileRead, "read"));
        }
        _ => unknown(walk, "read", "it changes what later commands mean"),
    }
}

/// A command that gets its arguments from its input.
fn from_input(walk: &mut Walk, call: &Call<'_>) {
    let Some(options) = options::read(&[XARGS], call.arguments, true) else {
        return unknown(walk, "xargs", "which program it runs with these options is not known here");
    };
    if are_loose(call, &options) {
        return unknown(walk, "xargs", "an argument may become another one when it runs");
    }
    if options.operands.is_empty() || !options.reads.is_empty() {
        let looked: Vec<Target> = options.reads.iter().map(|word| walk.target(word)).collect();
        walk.add(ShellAct { targets: looked, ..ShellAct::new(Verb::FileRead, "xargs") });
    }
    // Of several such options the last one counts, and some others end it: then what comes in stands behind the words.
    let replacing = options.times(&["I", "i", "replace"]);
    if replacing > 1 || replacing > 0 && options.has(&["n", "L", "l", "max-args", "max-lines"]) {
        return unknown(walk, "xargs", "where it puts its input depends on the order of its options");
    }
    // Where a text of its own stands for what comes in, that stands in every word that has it.
    let replaces =
        |name: &str, or: &str| options.has(&[name]).then(|| options.value(name).and_then(<[Word]>::first).map_or_else(|| or.to_owned(), Word::shown));
    let mark = replaces("I", "{}").or_else(|| replaces("i", "{}")).or_else(|| replaces("replace", "{}"));
    let from_input = || Word { parts: vec![Part::Variable("input".to_owned())] };
    let mut words: Vec<Word> = options.operands.iter().map(|word| (*word).clone()).collect();
    if words.is_empty() {
        return;
    }
    match mark {
        Some(mark) => words.iter_mut().filter(|word| word.shown().contains(&mark)).for_each(|word| *word = from_input()),
        None => words.push(from_input()),
    }
    match words.split_first().map(|(first, arguments)| (first.literal(), arguments)) {
        Some((Some(name), arguments)) if call.deep < 8 && !name.is_empty() => {
            let inner = Call { name: &name, arguments, is_fed: true, text: None, deep: call.deep + 1, is_raised: call.is_raised };
            self::call(walk, &inner);
        }
        _ => unknown(walk, "xargs", "it runs what its input says"),
    }
}

/// What `find` can be told to compare, to go by, and to print.
const FIND_ALONE: &str = "-print -print0 -ls -prune -quit -true -false -not ! -a -and -o -or , ( ) -nouser -nogroup -empty -readable -writable -executable -depth -d \
    -mount -xdev -daystart -follow -noleaf -warn -nowarn -ignore_readdir_race";
/// The same with a text behind it.
const FIND_TEXT: &str = "-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -type -xtype -size -mtime -mmin -atime -amin -ctime -cmin \
    -perm -user -group -uid -gid -links -inum -fstype -maxdepth -mindepth -regextype -printf -newermt -newerat -newerct -used";
/// The same with a file behind it.
const FIND_FILE: &str = "-newer -anewer -cnewer -samefile";

/// `find` looks, unless it is told to do something with what it finds.
fn find(walk: &mut Walk, call: &Call<'_>) {
    let before = call.arguments.iter().take_while(|word| matches!(word.shown().as_str(), "-H" | "-L" | "-P")).count();
    let arguments = call.arguments.get(before..).unwrap_or_default();
    let starts: Vec<&Word> = arguments.iter().take_while(|word| !word.shown().starts_with(['-', '(', '!'])).collect();
    let behind = arguments.get(starts.len()..).unwrap_or_default();
    if starts.iter().any(|word| word.is_loose()) || behind.iter().any(Word::may_be_several) {
        unknown(walk, "find", "an argument may become another one when it runs");
    }
    let mut targets: Vec<Target> = starts.iter().map(|word| walk.target(word)).collect();
    if targets.is_empty() {
        targets.push(walk.here());
    }
    let act = |verb| ShellAct { targets: targets.clone(), is_recursive: true, is_raised: call.is_raised, ..ShellAct::new(verb, "find") };
    walk.add(act(Verb::FileRead));
    let mut at = starts.len();
    while let Some(word) = arguments.get(at) {
        at += 1;
        match word.shown().as_str() {
            "-delete" => walk.add(act(Verb::FileDelete)),
            "-fprint" | "-fprint0" | "-fprintf" | "-fls" => {
                let file = arguments.get(at).map(|word| walk.target(word));
                at += 1 + usize::from(word.shown() == "-fprintf");
                walk.add(ShellAct { targets: file.into_iter().collect(), ..ShellAct::new(Verb::FileWrite, "find") });
            }
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let rest = arguments.get(at..).unwrap_or_default();
                let is_end = |at: usize, word: &Word| match word.shown().as_str() {
                    ";" => true,
                    "+" => at.checked_sub(1).and_then(|at| rest.get(at)).is_some_and(|word| word.shown() == "{}"),
                    _ => false,
                };
                let length = rest.iter().enumerate().position(|(at, word)| is_end(at, word)).unwrap_or(rest.len());
                at += length + 1;
                executed(walk, call, &starts, rest.get(..length).unwrap_or_default(), act(Verb::FileDelete));
            }
            text if lists(FIND_ALONE, text) => {}
            text if lists(FIND_TEXT, text) => {
                let is_name = text.ends_with("name") || text.ends_with("path");
                if is_name && arguments.get(at).is_some_and(|word| seeks_secret(&word.shown())) {
                    walk.add(ShellAct { is_secret: true, ..ShellAct::new(Verb::FileRead, "find") });
                }
                at += 1;
            }
            text if lists(FIND_FILE, text) => {
                let looked: Vec<Target> = arguments.get(at).map(|word| walk.target(word)).into_iter().collect();
                walk.add(ShellAct { targets: looked, ..ShellAct::new(Verb::FileRead, "find") });
                at += 1;
            }
            _ => unknown(walk, "find", "what it does with these options is not known here"),
        }
    }
}

/// What `find` runs for what it finds, which lies beneath where it starts.
fn executed(walk: &mut Walk, call: &Call<'_>, starts: &[&Word], own: &[Word], deletes: ShellAct) {
    let here = [super::words::quoted(".".to_owned())];
    let starts: Vec<&Word> = if starts.is_empty() { here.iter().collect() } else { starts.to_vec() };
    let beneath = |part: &Part| if let Part::Text { text, .. } = part { Part::Beneath(text.clone()) } else { part.clone() };
    let mut words: Vec<Word> = Vec::new();
    for word in own {
        match word.shown().as_str() {
            "{}" => words.extend(starts.iter().map(|start| Word { parts: start.parts.iter().map(beneath).collect() })),
            text if text.contains("{}") => words.push(Word { parts: vec![Part::Variable("found".to_owned())] }),
            _ => words.push(word.clone()),
        }
    }
    match words.split_first().map(|(first, arguments)| (first.literal(), arguments)) {
        Some((Some(name), arguments)) if call.deep < 8 => {
            let inner = Call { name: &name, arguments, is_fed: call.is_fed || call.text.is_some(), text: None, deep: call.deep + 1, is_raised: call.is_raised };
            self::call(walk, &inner);
            if lists(DELETING, name.rsplit('/').next().unwrap_or_default()) {
                walk.add(deletes);
            }
        }
        _ => unknown(walk, "find", "which program it runs shows only when it runs"),
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
    let grammar = if matches!(program, "bash" | "zsh") { Grammar::Extended } else { Grammar::Posix };
    let mut at = 0;
    let mut takes_line = false;
    if program == "fish" {
        unknown(walk, program, "its grammar is another one");
    }
    while let Some(text) = call.arguments.get(at).map(Word::shown).filter(|text| text.starts_with(['-', '+']) && text.len() > 1) {
        at += 1;
        if text == "--" {
            break;
        }
        if text.starts_with("--") {
            if !lists("--login --norc --noprofile --help --version", &text) {
                unknown(walk, program, "what it does with these options is not known here");
            }
            continue;
        }
        let letters = text.get(1..).unwrap_or_default();
        if !letters.chars().all(|letter| "ceuxvlisfno".contains(letter)) {
            unknown(walk, program, "what it does with these options is not known here");
        }
        if letters.contains('o') {
            if !call.arguments.get(at).is_some_and(|word| lists("errexit nounset pipefail xtrace noglob verbose", &word.shown())) {
                unknown(walk, program, "what it does with these options is not known here");
            }
            at += 1;
        }
        takes_line |= letters.contains('c');
    }
    if takes_line {
        return match call.arguments.get(at).map(Word::literal) {
            Some(Some(line)) => {
                walk.line(&line, call.deep + 1, grammar);
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
        (_, Some(Given::Known(text))) if !call.is_fed => walk.line(text, call.deep + 1, grammar),
        (None, None) if !call.is_fed && has(call, &["--version", "--help"]) => walk.add(ShellAct::new(Verb::FileRead, program)),
        _ => unknown(walk, program, "it runs what its input says"),
    }
}

fn interpreter(walk: &mut Walk, call: &Call<'_>, program: &str) {
    let words: Vec<String> = call.arguments.iter().map(Word::shown).collect();
    let is_python = program.starts_with("python") || program.starts_with("pypy");
    let says = |word: &str| lists("--version -V --help", word) || word == "-v" && !is_python;
    let only_says = matches!(words.as_slice(), [word] if says(word));
    // Some say it and go on with their input.
    if only_says && !call.is_fed && call.text.is_none() {
        return walk.add(ShellAct::new(Verb::FileRead, program));
    }
    let script = words.iter().position(|word| !word.starts_with('-'));
    let options = words.get(..script.unwrap_or(words.len())).unwrap_or_default();
    let takes_code = |word: &String| {
        lists(CODE, word.split('=').next().unwrap_or_default())
            || (word.starts_with('-') && !word.starts_with("--") && word.len() > 1 && word.contains(['c', 'e']))
    };
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
    let (urls, files): (Vec<Target>, Vec<Target>) = targets(walk, call).into_iter().partition(is_url);
    let hosts = if urls.is_empty() { files.clone() } else { urls.clone() };
    let hosts = hosts.into_iter().map(|target| Target { places: None, ..target }).collect();
    walk.add(ShellAct { targets: hosts, is_raised: call.is_raised, ..ShellAct::new(Verb::NetFetch, program) });
    let keeps = match program {
        "wget" => !has(call, &["-O-", "-qO-", "--spider"]),
        "curl" => flagged(call, &['o', 'O', 'c', 'D'], "output") || has_prefix(call, &["--output", "--remote-name", "--cookie-jar", "--dump-header"]),
        "scp" | "rsync" => true,
        _ => false,
    };
    if program == "rsync" && has(call, &["--delete"]) {
        walk.add(ShellAct { targets: files.clone(), is_recursive: true, is_raised: call.is_raised, ..ShellAct::new(Verb::FileDelete, program) });
    }
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
