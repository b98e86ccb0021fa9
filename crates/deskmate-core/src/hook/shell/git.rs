//! What `git` does: most of its commands look, some change the history, some the files, and some speak to other machines.

use super::programs::{Call, has};
use super::syntax::Word;
use super::walk::Walk;
use super::{ShellAct, Target, Verb};

const LOOKING: &[&str] = &[
    "status",
    "log",
    "diff",
    "show",
    "blame",
    "annotate",
    "ls-files",
    "ls-tree",
    "rev-parse",
    "rev-list",
    "describe",
    "shortlog",
    "cat-file",
    "grep",
    "name-rev",
    "merge-base",
    "diff-tree",
    "diff-index",
    "show-ref",
    "for-each-ref",
    "count-objects",
    "whatchanged",
    "cherry",
    "version",
];
/// Commands that list without further words, and change something with them.
const LISTING: &[&str] = &["branch", "tag", "remote", "stash", "worktree", "reflog"];
const FAR: &[&str] = &["clone", "fetch", "pull", "push", "ls-remote", "submodule"];

pub(super) fn call(walk: &mut Walk, call: &Call<'_>) {
    let mut at = 0;
    let mut folder = None;
    while let Some(text) = call.arguments.get(at).map(Word::shown).filter(|text| text.starts_with('-')) {
        match text.as_str() {
            "-C" => {
                folder = call.arguments.get(at + 1).map(|word| walk.target(word));
                at += 1;
            }
            "-c" | "--config-env" | "--exec-path" => return walk.add(ShellAct::unknown("git", "settings in the line can make it run anything")),
            "--git-dir" | "--work-tree" | "--namespace" => {
                folder = call.arguments.get(at + 1).map(|word| walk.target(word));
                at += 1;
            }
            _ if text.starts_with("--config-env=") || text.starts_with("--exec-path=") => {
                return walk.add(ShellAct::unknown("git", "settings in the line can make it run anything"));
            }
            _ if text.starts_with("--git-dir=") || text.starts_with("--work-tree=") => {
                folder = Some(walk.place(text.split_once('=').map(|(_, path)| path.to_owned()).unwrap_or_default(), false));
            }
            "--version" | "--help" => return walk.add(ShellAct::new(Verb::VcsRead, "git")),
            _ => {}
        }
        at += 1;
    }
    let targets: Vec<Target> = vec![folder.unwrap_or_else(|| walk.here())];
    let act = |verb| ShellAct { targets: targets.clone(), is_raised: call.is_raised, ..ShellAct::new(verb, "git") };
    let Some(command) = call.arguments.get(at).map(Word::literal) else { return walk.add(act(Verb::VcsRead)) };
    let Some(command) = command else { return walk.add(ShellAct::unknown("git", "which of its commands it runs shows only when it runs")) };
    let rest = call.arguments.get(at + 1..).unwrap_or_default();
    let runs = rest.iter().map(Word::shown).any(|text| {
        text.starts_with("--ext-diff")
            || text.starts_with("--textconv")
            || text.starts_with("--open-files-in-pager")
            || (command == "grep" && text.starts_with("-O"))
    });
    if runs {
        return walk.add(ShellAct::unknown("git", "it runs a program that its settings name"));
    }
    if let Some(file) = rest.iter().map(Word::shown).find_map(|text| text.strip_prefix("--output=").map(str::to_owned)) {
        let target = walk.place(file, false);
        walk.add(ShellAct { targets: vec![target], ..ShellAct::new(Verb::FileWrite, "git") });
    }
    // A word that names a place outside is looked at as one.
    let outside: Vec<Target> =
        rest.iter().filter(|word| word.shown().starts_with(['/', '~']) || word.shown().contains("..")).map(|word| walk.target(word)).collect();
    let words = rest.iter().filter(|word| !word.shown().starts_with('-')).count();
    let listing = LISTING.contains(&command.as_str())
        && (words == 0 && command != "stash" || has_list(rest))
        && !has(call, &["-d", "-D", "-m", "-M", "-f", "--delete", "--move", "--force", "-c", "--copy", "-u", "--unset-upstream", "--edit-description"]);
    let verb = match command.as_str() {
        command if FAR.contains(&command) => {
            walk.add(ShellAct { targets: vec![Target { shown: command.to_owned(), places: None }], ..ShellAct::new(Verb::NetFetch, "git") });
            if command == "ls-remote" { Verb::VcsRead } else { Verb::VcsWrite }
        }
        "clean" => Verb::FileDelete,
        "config" if rest.iter().any(|word| word.shown().starts_with("--get") || matches!(word.shown().as_str(), "--list" | "-l" | "get" | "list")) => {
            Verb::VcsRead
        }
        // What is set there can name programs that git runs later.
        "config" | "filter-branch" | "bisect" | "rebase" | "difftool" | "mergetool" | "hook" | "daemon" | "maintenance" => Verb::VcsWrite,
        command if LOOKING.contains(&command) || listing => Verb::VcsRead,
        _ => Verb::VcsWrite,
    };
    let mut made = act(verb);
    if verb.only_reads() {
        made.targets.extend(outside.into_iter().filter(|target| !target.shown.contains("..") || target.shown.contains('/')));
    }
    made.is_recursive = verb == Verb::FileDelete;
    walk.add(made);
}

/// Words after which a listing command only lists.
fn has_list(rest: &[Word]) -> bool {
    rest.iter().any(|word| matches!(word.shown().as_str(), "list" | "--list" | "-l" | "show" | "get-url"))
        && !rest.iter().any(|word| matches!(word.shown().as_str(), "drop" | "pop" | "add" | "remove" | "set-url" | "expire" | "delete"))
}
