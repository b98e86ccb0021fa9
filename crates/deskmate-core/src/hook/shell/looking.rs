//! Programs that only look, with the options with which they do. With any other option nobody here knows what they do.

use super::super::place::seeks_secret;
use super::options::{self, Options};
use super::programs::{Call, unknown};
use super::syntax::{Part, Word, evaluates};
use super::tables::{HARMLESS, lists};
use super::walk::Walk;
use super::{ShellAct, Target, Verb};

/// What those arguments are that are no options.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operands {
    Files,
    /// Texts, and with them whatever looks like an option.
    Texts,
    /// Texts, beside options.
    Words,
    /// A pattern and then files.
    Pattern,
}

/// Programs, what their operands are, and the options with which they look.
struct Looks {
    names: &'static str,
    operands: Operands,
    /// Whether there are other options, which write or run something: then an argument that may become one is not known.
    is_guarded: bool,
    options: &'static str,
}

const fn plain(names: &'static str, operands: Operands, options: &'static str) -> Looks {
    Looks { names, operands, is_guarded: false, options }
}

const fn guarded(names: &'static str, operands: Operands, options: &'static str) -> Looks {
    Looks { names, operands, is_guarded: true, options }
}

use Operands::{Files, Pattern, Texts, Words};

/// Options that every one of them has.
const COMMON: &str = "--help --version";

const LOOKS: &[Looks] = &[
    plain("echo printf true false : test [ sleep seq expr uname arch id groups whoami tty nproc uptime cal exit return break continue shift wait", Texts, ""),
    plain(
        "ls dir vdir",
        Files,
        "-aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxXZ1@eOPWy -I< -T< -w< --all --almost-all --author --escape --block-size: --ignore-backups --color? --directory \
         --classify? --file-type --format: --full-time --group-directories-first --no-group --si --human-readable --dereference \
         --dereference-command-line --hide: --hyperlink? --indicator-style: --inode --ignore: --kibibytes --numeric-uid-gid --literal \
         --hide-control-chars --show-control-chars --quote-name --quoting-style: --reverse --recursive --size --sort: --time: --time-style: --tabsize: \
         --width: --context --zero",
    ),
    plain("cat", Files, "-AbeEnstTuv --show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs --show-nonprinting"),
    plain("tac", Files, "-br -s: --before --regex --separator:"),
    plain("rev pwd readlink", Files, "-LPefmnqsvz --canonicalize --canonicalize-existing --canonicalize-missing --no-newline --zero"),
    plain("nl", Files, "-p -b: -d: -f: -h: -i: -l: -n: -s: -v: -w: --body-numbering: --number-format: --number-separator: --number-width:"),
    plain(
        "head tail",
        Files,
        "-qvzfFr -c: -n: -s: -# --bytes: --lines: --quiet --silent --verbose --zero-terminated --follow? --pid: --retry --sleep-interval:",
    ),
    plain("wc", Files, "-clLmw --bytes --chars --lines --words --max-line-length --total:"),
    plain(
        "cut",
        Files,
        "-nsz -b: -c: -d: -f: --bytes: --characters: --delimiter: --fields: --complement --only-delimited --output-delimiter: --zero-terminated",
    ),
    plain("paste", Files, "-sz -d: --serial --delimiters: --zero-terminated"),
    plain("join", Files, "-iz -a: -e: -1: -2: -j: -o: -t: -v: --header --check-order --nocheck-order --ignore-case --zero-terminated"),
    plain("column", Files, "-txeL -s: -c< -o< -N: -R: -H: --table --separator: --output-separator: --table-columns: --table-right: --table-hide:"),
    plain("fold", Files, "-bcs -w: --bytes --spaces --width:"),
    plain("fmt", Files, "-cstu -p: -w: -g: -# --width: --goal: --split-only --uniform-spacing"),
    plain("expand unexpand", Files, "-aif -t: -# --all --initial --first-only --tabs:"),
    plain("tr", Words, "-cCdst --complement --delete --squeeze-repeats --truncate-set1"),
    plain(
        "numfmt",
        Words,
        "-z -d: --from: --to: --from-unit: --to-unit: --suffix: --padding: --field: --format: --round: --grouping --header? --invalid: --delimiter:",
    ),
    plain("basename dirname", Words, "-az -s: --multiple --suffix: --zero"),
    plain("which type", Words, "-aftpPs --all"),
    plain("whereis", Words, "-bmsu"),
    plain("comm", Files, "-123iz --total --check-order --nocheck-order --output-delimiter: --zero-terminated"),
    plain("cmp", Files, "-bls -i: -n: --print-bytes --ignore-initial: --verbose --bytes: --silent --quiet"),
    plain(
        "diff",
        Files,
        "-abBdefhHinNpPqrstTuwyEZ -C: -U: -F: -I: -L: -S: -W: -x: -X< -# --brief --unified? --context? --side-by-side --width: --recursive --new-file \
         --ignore-case --ignore-all-space --ignore-space-change --ignore-blank-lines --ignore-trailing-space --ignore-tab-expansion --color? --label: \
         --exclude: --exclude-from< --from-file< --to-file< --minimal --speed-large-files --normal --ed --rcs --strip-trailing-cr --text --tabsize: \
         --expand-tabs --initial-tab --report-identical-files --show-c-function --show-function-line: --suppress-common-lines --no-dereference",
    ),
    guarded("diff3", Files, "-AeExX3aimT -L: --show-all --ed --merge --text --label: --easy-only --show-overlap --overlap-only --strip-trailing-cr"),
    plain("stat", Files, "-LftnqrsxF -c: --format: --printf: --terse --dereference --file-system"),
    guarded(
        "file",
        Files,
        "-bhikLNnprsE0 -F: -P: -e: -m< --brief --mime --mime-type --mime-encoding --dereference --no-dereference --keep-going --raw --separator: \
         --special-files --extension --no-pad --print0 --magic-file<",
    ),
    plain(
        "du",
        Files,
        "-0abchHDkLlmPsSx -B: -d: -t: -X< --all --apparent-size --bytes --total --human-readable --si --summarize --max-depth: --separate-dirs \
         --one-file-system --exclude: --exclude-from< --time? --time-style: --threshold: --block-size: --count-links --dereference --null --inodes",
    ),
    plain(
        "df",
        Files,
        "-aHhiklPTmv -B: -t: -x: --all --block-size: --human-readable --si --inodes --local --portability --print-type --output? --total --type: --exclude-type:",
    ),
    guarded(
        "tree",
        Files,
        "-adflxNQpughDFvtcUrqCAnsiXJS -L: -P: -I: -H: -T: -o> --charset: --filelimit: --timefmt: --dirsfirst --filesfirst --prune --gitignore --noreport \
         --du --si --inodes --device --matchdirs --ignore-case --sort: --gitfile< --info --metafirst",
    ),
    plain(
        "realpath",
        Files,
        "-eEmLPqsz --relative-to< --relative-base< --canonicalize-existing --canonicalize-missing --logical --physical --quiet --no-symlinks --zero",
    ),
    plain("hostname", Words, "-AdfIisy --fqdn --long --short --domain --ip-address --all-ip-addresses"),
    plain(
        "md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum",
        Files,
        "-bctwzrs -a: -l: --algorithm: --binary --text --check --tag --untagged --raw --base64 --quiet --status --ignore-missing --strict --warn --zero --length: --sysv",
    ),
    guarded("base64 base32", Files, "-dD -w: --decode --ignore-garbage --wrap:"),
    plain("od", Files, "-abcdfhilosxv -A: -j: -N: -S: -t: --address-radix: --skip-bytes: --read-bytes: --format: --output-duplicates --endian: --width?"),
    plain("hexdump", Files, "-bcCdoxv -e: -f< -n: -s: --canonical --length: --skip: --no-squeezing"),
    guarded("strings", Files, "-afwo -n: -t: -e: -# --all --print-file-name --bytes: --radix: --encoding: --include-all-whitespace"),
    plain(
        "grep egrep fgrep zgrep",
        Pattern,
        "-EFGPivwxcLlqsbHhnTaIrRUuyZz -e: -f< -m: -A: -B: -C: -d: -D: -# --regexp: --file< --ignore-case --no-ignore-case --word-regexp --line-regexp --count \
         --color? --colour? --files-with-matches --files-without-match --max-count: --only-matching -o --quiet --silent --no-messages --byte-offset \
         --with-filename --no-filename --label: --line-number --initial-tab --null --null-data --after-context: --before-context: --context: --text \
         --binary --binary-files: --exclude: --exclude-from< --exclude-dir: --include: --recursive --dereference-recursive --line-buffered \
         --invert-match --extended-regexp --fixed-strings --basic-regexp --perl-regexp",
    ),
    guarded(
        "rg",
        Pattern,
        "-nNiSsvwxclLFPUu0aHIopqh.V -A: -B: -C: -e: -f< -g: -t: -T: -m: -M: -r: -j: -d: -E: --after-context: --before-context: --context: --regexp: --file< \
         --glob: --iglob: --type: --type-not: --type-list --max-count: --max-columns: --max-columns-preview --max-depth: --maxdepth: --max-filesize: \
         --replace: --threads: --line-number --no-line-number --ignore-case --smart-case --case-sensitive --invert-match --word-regexp --line-regexp --count \
         --count-matches --files --files-with-matches --files-without-match --fixed-strings --pcre2 --multiline --multiline-dotall --unrestricted --null \
         --text --with-filename --no-filename --heading --no-heading --only-matching --pretty --quiet --hidden --no-hidden --no-ignore --no-ignore-vcs \
         --no-ignore-parent --no-config --no-messages --follow --json --stats --sort: --sortr: --color: --colors: --column --no-column --trim --vimgrep \
         --passthru --byte-offset --encoding: --no-require-git --one-file-system --ignore-file< --context-separator: --line-buffered --include-zero --binary",
    ),
    guarded(
        "ag",
        Pattern,
        "-iSsQwvlLcHrRnfuUatz0 -G: -g: -m: --nocolor --color --nogroup --group --hidden --ignore: --ignore-dir: --literal --ignore-case --case-sensitive \
         --word-regexp --files-with-matches --count --numbers --nonumbers --column",
    ),
    guarded(
        "fd fdfind",
        Files,
        "-HIusigFaLp01qhV -t: -e: -E: -d: -S: -j: -c: -C< --hidden --no-ignore --no-ignore-vcs --no-ignore-parent --unrestricted --case-sensitive --ignore-case \
         --glob --regex --fixed-strings --absolute-path --follow --full-path --max-depth: --min-depth: --exact-depth: --exclude: --type: --extension: --size: \
         --changed-within: --changed-before: --color: --threads: --max-results: --print0 --base-directory< --search-path< --quiet --show-errors",
    ),
    guarded(
        "sort",
        Files,
        "-bdfghiMnRrVcCmsuz -k: -t: -S: -o> --key: --field-separator: --buffer-size: --output> --unique --reverse --numeric-sort --general-numeric-sort \
         --human-numeric-sort --version-sort --random-sort --month-sort --dictionary-order --ignore-case --ignore-leading-blanks --ignore-nonprinting \
         --stable --check? --merge --zero-terminated --sort: --parallel: --debug",
    ),
    guarded(
        "uniq",
        Files,
        "-cdDiuz -f: -s: -w: -# --count --repeated --all-repeated? --group? --ignore-case --unique --skip-fields: --skip-chars: --check-chars: --zero-terminated",
    ),
    guarded(
        "jq",
        Pattern,
        "-rnceaCMsSjRhV -f< -L< --arg:: --argjson:: --slurpfile:< --rawfile:< --argfile:< --args --jsonargs --tab --indent: --raw-output --null-input \
         --compact-output --exit-status --slurp --sort-keys --raw-input --ascii-output --color-output --monochrome-output --join-output --from-file< --seq --stream",
    ),
    guarded(
        "bat batcat",
        Files,
        "-pnA -r: -l: -H: -m: --plain --number --show-all --line-range: --language: --highlight-line: --style: --color: --theme: --decorations: --paging: \
         --wrap: --tabs: --terminal-width: --map-syntax: --no-paging --diff",
    ),
    plain(
        "exa eza",
        Files,
        "-1aAlGTRxFdDrBbghHimnSUuZ@ -L: -s: -I: -t: --tree --long --all --git --icons? --level: --sort: --reverse --group-directories-first --git-ignore \
         --ignore-glob: --color: --colour: --oneline --grid --across --recurse --header --group --links --inode --blocks --time: --time-style: \
         --no-permissions --no-filesize --no-user --no-time --only-dirs --only-files",
    ),
    guarded("date", Files, "-uR -I? -d: -r< --utc --universal --rfc-email --rfc-2822 --iso-8601? --rfc-3339: --date: --reference<"),
    guarded(
        "less",
        Files,
        "-NSRFXriIEeMmsqQnfG --LINE-NUMBERS --line-numbers --chop-long-lines --RAW-CONTROL-CHARS --raw-control-chars --quit-if-one-screen --no-init --ignore-case \
         --squeeze-blank-lines --quit-at-eof --QUIT-AT-EOF",
    ),
    guarded("more", Files, "-dlefpcsu -n: -#"),
    guarded("xxd", Files, "-abeEipru -c: -g: -l: -n: -o: -R: -s:"),
];

/// Says what a program does that is known here; `false` if it is none of them.
pub(super) fn call(walk: &mut Walk, call: &Call<'_>, program: &str) -> bool {
    let Some(looks) = LOOKS.iter().find(|looks| lists(looks.names, program)) else { return false };
    if let Some(why) = strange(call, program) {
        unknown(walk, program, why);
        return true;
    }
    if looks.operands == Texts {
        walk.add(ShellAct { is_raised: call.is_raised, is_secret: tells_secrets(call.arguments), ..ShellAct::new(Verb::FileRead, program) });
        return true;
    }
    let loose = call.arguments.iter().any(Word::is_loose);
    match options::read(&[looks.options, COMMON], call.arguments, false) {
        Some(options) if !looks.is_guarded || !loose && !options.is_doubtful => known(walk, call, program, looks, &options),
        _ => unknown(walk, program, "what it does with these options is not known here"),
    }
    true
}

fn known(walk: &mut Walk, call: &Call<'_>, program: &str, looks: &Looks, options: &Options<'_>) {
    let act = |verb, targets: Vec<Target>| ShellAct { targets, is_raised: call.is_raised, ..ShellAct::new(verb, program) };
    let mut operands = options.operands.clone();
    match program {
        "hostname" if !operands.is_empty() => return walk.add(act(Verb::SystemChange, Vec::new())),
        "date" if operands.iter().any(|word| !word.shown().starts_with('+')) => return walk.add(act(Verb::SystemChange, Vec::new())),
        "bat" | "batcat" if operands.first().is_some_and(|word| word.shown() == "cache") => return unknown(walk, program, "it changes how it shows files"),
        // The second file is where it writes to.
        "uniq" | "xxd" if operands.iter().any(|word| word.may_be_several()) => {
            return unknown(walk, program, "an argument may become several, and the second is written to");
        }
        "uniq" | "xxd" if operands.len() > 1 => {
            let written = operands.split_off(1).into_iter().map(|word| walk.target(word)).collect();
            walk.add(act(Verb::FileWrite, written));
        }
        _ => {}
    }
    let written: Vec<Target> = options.writes.iter().map(|word| walk.target(word)).collect();
    if !written.is_empty() {
        walk.add(act(Verb::FileWrite, written));
    }
    let is_given = options.has(match program {
        "jq" => &["f", "from-file"],
        "ag" => &["g"],
        _ => &["e", "f", "regexp", "file", "files", "type-list"],
    });
    if looks.operands == Pattern && !is_given && operands.first().is_some_and(|word| word.is_named()) {
        operands.remove(0);
    }
    let says = looks.operands == Words;
    let files = operands.into_iter().filter(|word| !says || !word.is_named()).chain(&options.reads);
    let targets = files.map(|word| walk.target(word)).collect();
    let of_environment = program == "jq" && call.arguments.iter().any(|word| word.shown().to_lowercase().contains("env"));
    let is_recursive = options.has(&["r", "R", "recursive", "dereference-recursive"]);
    let wanted = options.values(&["include", "g", "glob", "iglob"]).map(Word::shown);
    let of_secret = wanted.filter(|text| !text.starts_with('!')).any(|text| seeks_secret(&text));
    let is_secret = of_environment || of_secret || says && tells_secrets(call.arguments);
    walk.add(ShellAct { is_recursive, is_secret, ..act(Verb::FileRead, targets) });
}

/// Why nobody knows what an otherwise harmless program does with these arguments.
fn strange(call: &Call<'_>, program: &str) -> Option<&'static str> {
    let texts = || call.arguments.iter().map(Word::shown);
    match program {
        "test" | "[" if call.arguments.iter().any(|word| word.hides_command() || word.parts.contains(&Part::Split)) || evaluates(call.arguments) => {
            Some("a text in it is read as a number or a name, and that can run commands")
        }
        "test" | "[" if may_compare(call.arguments) => Some("what it compares shows only when it runs"),
        // Some systems have one that runs another program.
        "arch" if !call.arguments.is_empty() => Some("what it does with these options is not known here"),
        "printf" => {
            let mut words = call.arguments.iter().skip_while(|word| word.shown() == "--");
            let form = words.next().and_then(Word::literal);
            let sets = form.as_ref().is_none_or(|form| call.arguments.first().is_some_and(|first| first.shown() != "--") && form.starts_with('-'));
            // Some shells read what is printed as a number as arithmetic.
            let counts = form.as_deref().is_some_and(|form| prints(form, "diouxXeEfFgGaA*")) && words.any(|word| !word.is_named());
            // How much was printed so far goes into a variable.
            let stores = form.is_some_and(|form| prints(&form, "n"));
            (sets || counts || stores || call.arguments.iter().any(Word::hides_command)).then_some("it can set a variable or run commands in a text")
        }
        "exit" | "return" | "break" | "continue" | "shift" | "wait" if !call.arguments.iter().all(Word::is_number) => {
            Some("a text in it is read as a number, and that can run commands")
        }
        // What stands behind a plus is a command of theirs.
        "less" | "more"
            if texts().any(|text| text.strip_prefix('+').is_some_and(|own| !matches!(own, "G" | "F") && !own.chars().all(|char| char.is_ascii_digit()))) =>
        {
            Some("it begins with a command of its own")
        }
        "strings" if texts().any(|text| text.starts_with('@')) => Some("its options are in a file"),
        "jq" if texts().any(|text| text.contains("import") || text.contains("include")) => Some("it reads files that its filter names"),
        // It takes values from the words that follow, while others of the same word are options of its own.
        "tree" if texts().any(|text| !text.starts_with("--") && text.strip_prefix('-').is_some_and(takes_early)) => {
            Some("what it does with these options is not known here")
        }
        // It reads each option apart, and only the beginning of it.
        "xxd" if texts().any(|text| text.starts_with('-') && text.len() > 2 && text != "-ps" && !text.chars().skip(2).all(|char| char.is_ascii_digit())) => {
            Some("what it does with these options is not known here")
        }
        _ => None,
    }
}

/// Whether a word of a test whose text is not known, or a name that a pattern stands for, may be one of its operators.
fn may_compare(words: &[Word]) -> bool {
    let words = words.split_last().filter(|(last, _)| last.shown() == "]").map_or(words, |(_, before)| before);
    let text = |at: Option<usize>| at.and_then(|at| words.get(at)).and_then(Word::literal).unwrap_or_default();
    let is_operator = |text: &str| lists("= == != < > -eq -ne -lt -le -gt -ge -nt -ot -ef -a -o", text);
    let takes_one = |text: &str| text.len() == 2 && text.starts_with('-') && !lists("-a -o", text);
    words.iter().enumerate().any(|(at, word)| {
        let before = text(at.checked_sub(1));
        // What begins like a name is none of them.
        let begins = word.beginning();
        let is_name = begins.starts_with(|first: char| first.is_alphanumeric() || matches!(first, '/' | '.'));
        let lists_names = word.has_glob() && word.shown().ends_with(['*', '?', ']', '}']);
        let is_alone = words.len() < 2 || is_operator(&text(Some(at + 1))) || is_operator(&before) || takes_one(&before);
        !is_name && (lists_names || !word.is_named() && !word.is_number() && !is_alone)
    })
}

/// Whether an option of `tree` that takes a value stands before others.
fn takes_early(letters: &str) -> bool {
    letters.chars().rev().skip(1).any(|letter| "LPIHTo".contains(letter))
}

/// Whether a form of `printf` has one of these kinds, or marks of them.
fn prints(form: &str, wanted: &str) -> bool {
    let is_kind = |char: char| char.is_ascii_alphabetic() && !"hjlLtz".contains(char);
    let of = |rest: &str| rest.find(is_kind).map_or(rest.len(), |at| at + 1);
    form.split('%').skip(1).any(|rest| rest.chars().take(of(rest)).any(|char| wanted.contains(char)))
}

/// Whether texts hold variables that may be secrets.
pub(super) fn tells_secrets(words: &[Word]) -> bool {
    words.iter().flat_map(|word| &word.parts).any(|part| matches!(part, Part::Variable(name) if !lists(HARMLESS, name)))
}

/// Programs that write or fetch, and that some of their options make run others, with the options with which they do not.
const BOUNDED: &[(&str, &str)] = &[
    (
        "tar",
        "-cxtrudzjJavkmOpShl0123456789 -f> -C< -X< --create --extract --get --list --append --update --diff --compare --delete --gzip --gunzip \
         --bzip2 --xz --zstd --auto-compress --file> --directory< --verbose --exclude: --exclude-from< --exclude-vcs --strip-components: --wildcards \
         --no-wildcards --keep-old-files --skip-old-files --overwrite --no-same-owner --no-same-permissions --preserve-permissions --numeric-owner --owner: \
         --group: --mode: --mtime: --sort: --transform: --to-stdout --dereference --sparse --totals --one-file-system --null --anchored --no-recursion",
    ),
    (
        "split",
        "-dexu -a: -b: -C: -l: -n: -t: -# --bytes: --lines: --line-bytes: --number: --suffix-length: --numeric-suffixes? --hex-suffixes? --additional-suffix: --elide-empty-files --verbose --separator:",
    ),
    ("zip", "-rqjuyXvog0123456789 -x: -i: --recurse-paths --quiet --junk-paths --symlinks --exclude: --include: --verbose"),
    (
        "patch",
        "-RNsftbEuncl -p: -i< -d< -o> -F: --strip: --input< --directory< --reverse --forward --silent --quiet --force --batch --backup --unified --context --normal \
         --dry-run --verbose --remove-empty-files --fuzz: --output> --posix --binary --merge?",
    ),
    (
        "install",
        "-bcCdDpTv -m: -o: -g: -S: -t> --mode: --owner: --group: --directory --target-directory> --no-target-directory --preserve-timestamps --verbose --compare",
    ),
    ("nc ncat netcat", "-zvluUnk46NdDt -w: -p: -q: -i: -s: --listen --verbose --udp --wait: --source-port: --ssl --keep-open"),
    (
        "rsync",
        "-avzrnhPultpogDqcxHAXSRWLKkbCmidI --archive --verbose --compress --recursive --dry-run --human-readable --progress --partial --stats --delete --exclude: --include: --exclude-from< --include-from< --checksum --update --times --perms --links --itemize-changes --info: --size-only --ignore-existing --existing --quiet --inplace --relative --bwlimit: --max-size: --min-size:",
    ),
    ("scp", "-rpqCv346BO -P: -i< -l:"),
    (
        "curl",
        "-sSLfiIkvgGNJOR#46 -X: -H: -d: -A: -b: -c> -D> -e: -F: -m: -u: -w: -T< -r: -C: -o> -E: -y: -Y: -z: -# --silent --show-error --location --fail --fail-with-body --include --head \
         --insecure --verbose --globoff --get --no-buffer --ipv4 --ipv6 --remote-name --remote-name-all --remote-header-name --output> --output-dir> --create-dirs \
         --request: --header: --data: --data-raw: --data-binary: --data-urlencode: --json: --user-agent: --cookie: --cookie-jar> --dump-header> --referer: \
         --form: --form-string: --max-time: --connect-timeout: --retry: --retry-delay: --retry-all-errors --retry-connrefused --user: --write-out: --upload-file< --range: --compressed --http1.1 \
         --http2 --url: --progress-bar --max-redirs: --oauth2-bearer: --cacert< --cert< --key< --resolve: --noproxy: --unix-socket: --no-progress-meter --ssl-reqd --tlsv1.2",
    ),
    (
        "wget",
        "-qcNrkpmEHLvxSb46F -n: -O> -P> -o> -a> -T: -t: -U: -l: -A: -R: -w: -Q: --quiet --continue --spider --timeout: --tries: --no-check-certificate --header: \
         --user-agent: --output-document> --directory-prefix> --output-file> --no-verbose --verbose --timestamping --recursive --level: --no-parent --mirror \
         --page-requisites --convert-links --show-progress --progress: --method: --body-data: --post-data: --user: --password: --content-disposition --no-clobber --server-response --max-redirect: --waitretry:",
    ),
];

/// The files that the options of a program which writes or fetches name to be written; `None` where they may make it run something. A
/// program without such options names none.
pub(super) fn written(program: &str, arguments: &[Word]) -> Option<Vec<Word>> {
    let Some((_, list)) = BOUNDED.iter().find(|(names, _)| lists(names, program)) else { return Some(Vec::new()) };
    // The first word of `tar` may be its letters, without a dash.
    let mut words = arguments.to_vec();
    if let Some(first) = words.first_mut().filter(|first| program == "tar" && !first.shown().starts_with('-')) {
        first.parts.insert(0, Part::Text { text: "-".to_owned(), plain: true });
        // They take their values in order out of the words that follow, whichever those are.
        let letters = first.literal().filter(|text| text.chars().skip(1).all(|char| "cxtruzjJavfkmOpSh".contains(char)))?;
        words.remove(0);
        words.drain(..usize::from(letters.contains('f')).min(words.len()));
    }
    // With a colon the archive of `tar` lies on another machine.
    let is_far = program == "tar" && arguments.iter().any(|word| word.shown().contains(':'));
    let options = options::read(&[list, COMMON], &words, false).filter(|options| !options.is_doubtful)?;
    // What `curl` shows at the end may go into a file, and may be read from one.
    let shows = |word: &Word| word.literal().is_none_or(|text| text.starts_with('@') || text.contains("%output"));
    if is_far || words.iter().any(Word::is_loose) || program == "curl" && options.values(&["w", "write-out"]).any(shows) {
        return None;
    }
    Some(options.writes.into_iter().filter(|word| word.shown() != "-").collect())
}
