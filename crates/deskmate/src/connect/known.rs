//! Knowing commands of this program in the files of clients: by its name, or, where somebody gave it another one, by its words.

/// The flags that such commands have, and whether each has a value.
const FLAGS: &[(&str, bool)] = &[
    ("--agent", true),
    ("--client", true),
    ("--hold", true),
    ("--home", true),
    ("--idle-exit", true),
    ("--project-server", false),
    ("--read-only", false),
    ("--server", true),
    ("--token-file", true),
    ("--toolset", true),
];
/// Those of them that hardly another program has; the others tell it only together.
const TELLING: &[&str] = &["--project-server", "--token-file", "--toolset"];
const TOGETHER: usize = 2;

/// Whether a command starts this program to do what a verb says: it is called so, or is this very file, or its words are ours and
/// something among them, or in what goes with them, is needed by a desk alone.
pub(super) fn is_ours(verb: &str, program: &str, words: &[String], takes_our_token: bool) -> bool {
    let Some((first, flags)) = words.split_first() else { return false };
    first == verb && (is_our_program(program) || are_our_flags(flags, takes_our_token))
}

fn are_our_flags(words: &[String], takes_our_token: bool) -> bool {
    let mut words = words.iter().map(String::as_str);
    let (mut is_told, mut count) = (takes_our_token, 0);
    while let Some(word) = words.next() {
        let (flag, attached) = word.split_once('=').map_or((word, None), |(flag, value)| (flag, Some(value)));
        let Some((_, has_value)) = FLAGS.iter().find(|(known, _)| *known == flag) else { return false };
        let is_whole = if *has_value { attached.or_else(|| words.next()).is_some_and(|value| !value.starts_with("--")) } else { attached.is_none() };
        if !is_whole {
            return false;
        }
        is_told |= TELLING.contains(&flag);
        count += 1;
    }
    is_told || count >= TOGETHER
}

/// Whether a command names this program, wherever it lies.
fn is_our_program(command: &str) -> bool {
    let name = command.rsplit(['/', '\\']).next().unwrap_or_default();
    let is_this = || std::env::current_exe().is_ok_and(|own| own.as_os_str() == command);
    name == "deskmate" || name.eq_ignore_ascii_case("deskmate.exe") || is_this()
}
