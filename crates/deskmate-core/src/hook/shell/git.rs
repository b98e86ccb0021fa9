//! What `git` does: most of its commands look, some change the history, some the files, and some speak to other machines.

use super::super::place::seeks_secret;
use super::options::{self, Options};
use super::programs::Call;
use super::syntax::Word;
use super::tables::lists;
use super::walk::Walk;
use super::{ShellAct, Target, Verb};

/// Options of what shows differences.
const DIFF: &str = "-pusztraRbwWcmv0123 -U: -M? -C? -B? -D? -S: -G: -l: --patch --no-patch --unified: --raw --stat? --numstat --shortstat --dirstat? --summary \
    --compact-summary --patch-with-stat --name-only --name-status --submodule? --color? --no-color --color-moved? --color-words? --word-diff? --word-diff-regex: \
    --no-renames --find-renames? --find-copies? --find-copies-harder --check --full-index --binary --abbrev? --pickaxe-all --pickaxe-regex --relative? --no-relative \
    --text --ignore-space-at-eol --ignore-cr-at-eol --ignore-space-change --ignore-all-space --ignore-blank-lines --inter-hunk-context: --function-context \
    --exit-code --quiet --no-ext-diff --no-textconv --ignore-submodules? --src-prefix: --dst-prefix: --no-prefix --diff-filter: --minimal --patience \
    --histogram --diff-algorithm: --cached --staged --merge-base --cc --combined-all-paths --base --ours --theirs --diff-merges: --root --no-commit-id";
/// Options of what goes through the history.
const LOG: &str = "-iEFPgq -n: -L: -# --max-count: --skip: --since: --after: --until: --before: --author: --committer: --grep: --all-match --invert-grep \
    --regexp-ignore-case --extended-regexp --fixed-strings --perl-regexp --merges --no-merges --min-parents? --max-parents? --first-parent --all --branches? \
    --tags? --remotes? --glob: --exclude: --not --oneline --graph --no-graph --decorate? --no-decorate --decorate-refs: --decorate-refs-exclude: --date: --pretty? \
    --format? --abbrev-commit --no-abbrev-commit --no-abbrev --follow --no-follow --reverse --topo-order --date-order --author-date-order --left-right \
    --cherry-pick --cherry-mark --cherry --left-only --right-only --boundary --simplify-by-decoration --full-history --simplify-merges --dense --sparse \
    --ancestry-path? --source --no-walk? --walk-reflogs --notes? --no-notes --parents --children --relative-date --encoding: --count --objects --mailmap \
    --use-mailmap --expand-tabs? --clear-decorations --ignore-missing --remove-empty --show-pulls";

/// Commands that look, with the options with which they do. With others, nobody here knows what they do.
const LOOKING: &[(&str, &[&str])] = &[
    ("diff", &[DIFF]),
    ("diff-tree diff-index diff-files", &[DIFF, "--pretty? --format? --oneline --date:"]),
    ("log show whatchanged rev-list", &[DIFF, LOG]),
    ("shortlog", &["-nse -w? --numbered --summary --email --group:", LOG]),
    (
        "status",
        &[
            "-sbvz -u? -M? --short --branch --show-stash --porcelain? --long --verbose --untracked-files? --ignore-submodules? --ignored? --column? --no-column \
           --ahead-behind --no-ahead-behind --renames --no-renames --find-renames?",
        ],
    ),
    (
        "blame annotate",
        &["-ltfnsewpcb -L: -M? -C? --root --show-stats --show-name --show-number --porcelain --line-porcelain --incremental --date: --abbrev? --color-lines \
           --color-by-age --ignore-rev: --first-parent --since: --show-email"],
    ),
    (
        "grep",
        &["-ivwhHlLncqEGFPopWazrI -e: -f< -A: -B: -C: -m: -# --cached --untracked --exclude-standard --text --ignore-case --word-regexp --invert-match \
           --full-name --extended-regexp --basic-regexp --fixed-strings --perl-regexp --line-number --column --name-only --files-with-matches \
           --files-without-match --null --only-matching --count --color? --no-color --break --heading --show-function --function-context --context: \
           --after-context: --before-context: --max-count: --max-depth: --threads: --and --or --not --all-match --quiet --recursive"],
    ),
    (
        "ls-files",
        &["-cdoisukmvfzt -x: -X< --cached --deleted --others --ignored --stage --unmerged --killed --modified --directory --no-empty-directory --eol \
           --deduplicate --exclude: --exclude-from< --exclude-standard --error-unmatch --full-name --recurse-submodules --abbrev? --format:"],
    ),
    ("ls-tree", &["-drtlz --name-only --name-status --object-only --full-name --full-tree --abbrev? --long --format:"]),
    (
        "rev-parse",
        &[
            "-q --abbrev-ref? --short? --verify --quiet --show-toplevel --git-dir --git-common-dir --absolute-git-dir --is-inside-work-tree --is-inside-git-dir \
           --is-bare-repository --is-shallow-repository --show-prefix --show-cdup --symbolic --symbolic-full-name --all --branches? --tags? --remotes? \
           --show-superproject-working-tree --git-path: --path-format: --revs-only --no-revs --flags --no-flags --not --show-object-format?",
        ],
    ),
    ("describe", &["--all --tags --contains --abbrev? --candidates: --exact-match --long --match: --exclude: --always --first-parent --dirty? --broken?"]),
    ("cat-file", &["-tsep --batch? --batch-check? --batch-all-objects --unordered --buffer"]),
    ("name-rev", &["--tags --refs: --exclude: --name-only --always --all"]),
    ("merge-base", &["-a --all --octopus --independent --is-ancestor --fork-point"]),
    ("show-ref", &["-dqs --head --heads --branches --tags --dereference --hash? --verify --abbrev? --quiet --exists"]),
    (
        "for-each-ref",
        &["-s --count: --sort: --format: --color? --points-at: --merged? --no-merged? --contains? --no-contains? --ignore-case --omit-empty --exclude:"],
    ),
    ("count-objects", &["-vH --verbose --human-readable"]),
    ("cherry", &["-v --verbose --abbrev?"]),
    ("version", &["--build-options"]),
    ("check-ignore", &["-qvzn --quiet --verbose --non-matching --no-index"]),
];

/// Commands that list without further words, or after one of these, and change something with others; and their options.
const LISTING: &[(&str, &str, &[&str])] = &[
    (
        "branch",
        "",
        &["-arvli --list --all --remotes --verbose --show-current --contains: --no-contains: --merged? --no-merged? --sort: --format: --points-at: --color? \
           --no-color --column? --no-column --abbrev? --no-abbrev --ignore-case --omit-empty"],
    ),
    (
        "tag",
        "",
        &["-li -n? --list --contains: --no-contains: --merged? --no-merged? --sort: --format: --points-at: --color? --column? --no-column --ignore-case \
           --omit-empty"],
    ),
    ("remote", "get-url", &["-v --verbose --push --all"]),
    ("stash", "list show", &[DIFF, LOG]),
    ("worktree", "list", &["-vz --verbose --porcelain"]),
    ("reflog", "show", &[DIFF, LOG]),
    (
        "config",
        "get list",
        &["-lz --get --get-all --get-regexp --list --show-origin --show-scope --name-only --global --local --system --worktree --type: --bool --int --path \
           --null --includes --no-includes --default: --all"],
    ),
];
/// Options after which a listing command only lists, whatever words it has.
const LISTS: &[&str] = &["l", "list", "contains", "no-contains", "merged", "no-merged", "points-at", "get", "get-all", "get-regexp", "show-current"];

/// Commands that change something and are git's own. Any other may be one that its settings make of another program.
const CHANGING: &str = "add am apply archive bisect branch bundle checkout checkout-index cherry-pick clean clone commit commit-graph commit-tree config fetch \
    format-patch gc hash-object init ls-remote merge merge-file merge-tree mktag mktree multi-pack-index mv notes pack-refs prune pull push range-diff read-tree rebase \
    reflog remote repack replace reset restore revert rerere rm sparse-checkout stage stash submodule switch symbolic-ref tag update-index update-ref worktree \
    write-tree fsck";
const FAR: &[&str] = &["clone", "fetch", "pull", "push", "ls-remote", "submodule"];
/// Long options that name a program, also cut short.
const PROGRAMS: &[&str] = &["exec", "upload-pack", "receive-pack", "config", "template", "ext-diff", "textconv", "extcmd", "filters", "open-files-in-pager"];
/// Options before the command that change nothing about what it does.
const HARMLESS: &str = "--no-pager -P --no-optional-locks --literal-pathspecs --no-replace-objects --no-lazy-fetch";

pub(super) fn call(walk: &mut Walk, call: &Call<'_>) {
    let unknown = |walk: &mut Walk, why| walk.add(ShellAct::unknown("git", why));
    let mut at = 0;
    let mut folder = None;
    while let Some(text) = call.arguments.get(at).map(Word::shown).filter(|text| text.starts_with('-')) {
        match text.as_str() {
            "-C" if call.arguments.get(at + 1).is_none_or(Word::may_be_several) => {
                return unknown(walk, "an argument may become another one when it runs");
            }
            "-C" => {
                folder = call.arguments.get(at + 1).map(|word| walk.target(word));
                at += 1;
            }
            "--version" | "--help" if call.arguments.len() == 1 => return walk.add(ShellAct::new(Verb::VcsRead, "git")),
            text if lists(HARMLESS, text) => {}
            _ => return unknown(walk, "settings in the line can make it run anything"),
        }
        at += 1;
    }
    let targets: Vec<Target> = vec![folder.unwrap_or_else(|| walk.here())];
    let act = |verb| ShellAct { targets: targets.clone(), is_raised: call.is_raised, ..ShellAct::new(verb, "git") };
    let Some(command) = call.arguments.get(at).map(Word::literal) else { return walk.add(act(Verb::VcsRead)) };
    let Some(command) = command else { return unknown(walk, "which of its commands it runs shows only when it runs") };
    let rest = call.arguments.get(at + 1..).unwrap_or_default();
    if rest.iter().any(|word| names_program(&command, &word.shown())) {
        return unknown(walk, "it runs a program that the line or its settings name");
    }
    let (mut looked, mut of_secret) = (Vec::new(), false);
    let verb = match looks(&command, rest) {
        Some(Ok(options)) => {
            looked.extend(options.reads.iter().map(|word| walk.target(word)));
            // The first word of a search is what is looked for.
            let is_sought = command == "grep" && !options.has(&["e", "f"]);
            let named = options.operands.iter().skip(usize::from(is_sought)).map(|word| word.shown());
            // A path stands also behind the name of a commit, and behind what says how it is meant.
            of_secret = named.into_iter().any(|text| text.split([':', ')']).any(seeks_secret));
            let written: Vec<Target> = options.writes.iter().map(|word| walk.target(word)).collect();
            if !written.is_empty() {
                walk.add(ShellAct { targets: written, ..ShellAct::new(Verb::FileWrite, "git") });
            }
            Verb::VcsRead
        }
        Some(Err(why)) => return unknown(walk, why),
        None if FAR.contains(&command.as_str()) => {
            walk.add(ShellAct { targets: vec![Target { shown: command.clone(), places: None }], ..ShellAct::new(Verb::NetFetch, "git") });
            if command == "ls-remote" { Verb::VcsRead } else { Verb::VcsWrite }
        }
        None if command == "remote" && rest.iter().any(|word| matches!(word.shown().as_str(), "show" | "update" | "prune")) => {
            walk.add(ShellAct { targets: vec![Target { shown: command.clone(), places: None }], ..ShellAct::new(Verb::NetFetch, "git") });
            Verb::VcsWrite
        }
        None if command == "clean" => Verb::FileDelete,
        None if lists(CHANGING, &command) => Verb::VcsWrite,
        None => return unknown(walk, "its settings may make another program of this command"),
    };
    let mut made = act(verb);
    // A word that names a place outside is looked at as one; `a..b` is a range.
    let outside = rest.iter().map(|word| (word, word.shown())).filter(|(_, text)| {
        text.starts_with(['/', '~']) || text == ".." || text.contains("..") && text.contains('/') || text.contains("=/") || text.contains("=~")
    });
    made.targets.extend(outside.map(|(word, text)| match text.split_once('=') {
        Some((_, path)) if text.starts_with('-') => walk.place(path.to_owned(), !word.is_named()),
        _ => walk.target(word),
    }));
    made.targets.extend(looked);
    made.is_secret = of_secret;
    made.is_recursive = verb == Verb::FileDelete;
    walk.add(made);
}

/// Whether a command looks, and with which options; `None` if it changes something.
fn looks<'w>(command: &str, rest: &'w [Word]) -> Option<Result<Options<'w>, &'static str>> {
    let loose = rest.iter().any(Word::is_loose);
    if let Some((_, options)) = LOOKING.iter().find(|(names, _)| lists(names, command)) {
        let own = ["--output> -h --help"];
        let read = options::read(&[options, own.as_slice()].concat(), rest, false).filter(|options| !loose && !options.is_doubtful);
        return Some(read.ok_or("what it does with these options is not known here"));
    }
    let (_, words, options) = LISTING.iter().find(|(name, _, _)| *name == command)?;
    let read = options::read(options, rest, false).filter(|options| !loose && !options.is_doubtful)?;
    let first = read.operands.first().map(|word| word.shown());
    let only_lists = match first {
        None => !matches!(command, "stash" | "config") || read.has(LISTS),
        Some(first) => lists(words, &first) || read.has(LISTS),
    };
    only_lists.then_some(Ok(read))
}

/// Whether an argument makes a command run another program.
fn names_program(command: &str, text: &str) -> bool {
    if let Some(long) = text.strip_prefix("--") {
        let name = long.split('=').next().unwrap_or_default();
        return name.len() > 1 && command != "config" && PROGRAMS.iter().any(|program| program.starts_with(name));
    }
    let short = |letters: &[char]| text.strip_prefix('-').is_some_and(|own| own.contains(letters));
    match command {
        "clone" => short(&['u', 'c']) || text.starts_with("ext::"),
        "rebase" => short(&['x']),
        "bisect" => text == "run",
        "submodule" => text == "foreach",
        _ => text.starts_with("ext::"),
    }
}
