//! The programs that are known, by what they do. A program that is in none of these lists runs as itself.

use super::syntax::Word;

/// Programs that make or change files.
pub(super) const WRITING: &str = "touch mkdir tee truncate cp mv ln install split csplit patch tar zip unzip gzip gunzip bzip2 bunzip2 xz unxz zstd 7z mkfifo mknod \
    mktemp iconv";
/// Programs that delete files.
pub(super) const DELETING: &str = "rm rmdir unlink shred srm wipe";
/// Programs that change the machine.
pub(super) const CHANGING: &str = "chmod chown chgrp chattr setfacl setcap mount umount swapon swapoff systemctl service sysctl iptables nft ufw \
    useradd userdel usermod groupadd passwd chpasswd visudo shutdown reboot halt poweroff kill pkill killall mkfs fdisk parted sfdisk \
    wipefs insmod rmmod modprobe loginctl launchctl diskutil docker podman";
/// Programs that speak to other machines.
pub(super) const FETCHING: &str = "curl wget http https xh nc ncat netcat scp rsync";
/// Shells.
pub(super) const SHELLS: &str = "sh bash zsh dash ksh ash fish mksh busybox";
/// Programs that run code of their own language.
pub(super) const INTERPRETERS: &str =
    "python python2 python3 pypy pypy3 node nodejs deno bun perl ruby php lua luajit tclsh osascript pwsh powershell Rscript julia";
/// Options with which an interpreter takes code instead of a file.
pub(super) const CODE: &str = "-c -e -E -p -r -pe -ne --eval --print --execute eval -Command";
/// Programs that bring in software, with one of the words below.
pub(super) const INSTALLERS: &str =
    "npm pnpm yarn pip pip2 pip3 pipx uv poetry conda mamba gem bundle go apt apt-get dnf yum apk pacman brew snap cargo composer";
/// See `INSTALLERS`.
pub(super) const INSTALLING: &str = "install i add ci update upgrade get require exec dlx x run-script sync";
/// Programs that bring software in and run it at once.
pub(super) const FETCH_AND_RUN: &str = "npx bunx uvx pnpx nix-shell";
/// Variables that tell nothing that the caller does not know.
pub(super) const HARMLESS: &str = "PWD OLDPWD HOME USER LOGNAME PATH SHELL LANG TERM HOSTNAME ? # $ ! @ * 0 1";
/// Programs that run something else, in a way of their own: other lines, other programs, code.
pub(super) const RUNNING: &str = "let su runuser pkexec systemd-run watch script screen tmux expect vi vim nvim view ex ed emacs gdb lldb strace ltrace perf flock \
    entr at batch crontab chroot nsenter unshare rename socat ftp sftp telnet sdiff sponge compgen getopts fc repeat and or not zmodload autoload emulate \
    functions sched zcompile vared parallel";
/// Programs that change what later commands do.
pub(super) const CHANGING_LATER: &str = "trap alias unalias enable hash complete bind rehash";
/// Variables of programs that change nothing but how something is shown or said.
const SHOWN_BY: &str = "LANG LANGUAGE TZ TERM COLUMNS LINES NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE COLORTERM CI DEBUG VERBOSE RUST_LOG RUST_BACKTRACE \
    CARGO_TERM_COLOR NODE_ENV PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONIOENCODING";
/// Names that lines give to variables of their own, which mean nothing to any program or shell.
pub(super) const OWN: &str = "a b c d e f g h i j k l m n o p q r s t u v w x y z file files dir dirs folder name names line lines item items word count total sum \
    out output result rc ret code branch commit rev ref tag base head crate pkg package module pattern text msg message key value val size len idx index num \
    start end first last src dest dst tmp url host port ext root var version";

/// Whether a variable may be set to this before a command, or for all that follow.
pub(super) fn may_set(name: &str, value: &Word) -> bool {
    let shows = lists(SHOWN_BY, name) || name.starts_with("LC_");
    // Some of them are parts of paths, too.
    let is_plain = |text: String| !text.starts_with(['/', ':', '~']) && !text.contains("..");
    lists(OWN, name) || shows && value.literal().is_some_and(is_plain)
}

/// Programs that run another one, and their options.
pub(super) const WRAPPERS: &[(&str, &str)] = &[
    ("command", "-pvV"),
    ("builtin", ""),
    ("noglob", ""),
    ("nocorrect", ""),
    ("exec", "-cl"),
    ("nohup", ""),
    ("setsid", "-cfw --ctty --fork --wait"),
    ("nice", "-n: -# --adjustment:"),
    ("ionice", "-t -c: -n: --class: --classdata: --ignore"),
    ("stdbuf", "-i: -o: -e: --input: --output: --error:"),
    ("chronic", "-ev"),
    ("caffeinate", "-dimsu -t: -w:"),
    ("env", "-i0v -u: -C: --ignore-environment --null --unset: --chdir: --debug"),
    (
        "sudo",
        "-AbEeHiKknPSsVv -C: -D: -g: -h: -p: -R: -r: -T: -t: -U: -u: --askpass --background --preserve-env? --edit --set-home --login --non-interactive \
         --stdin --shell --chdir: --group: --user: --prompt: --other-user: --host: --preserve-groups",
    ),
    ("doas", "-Lns -u: -C:"),
    ("timeout", "-v -k: -s: --foreground --preserve-status --verbose --kill-after: --signal:"),
];
/// The options of `xargs`.
pub(super) const XARGS: &str = "-0rtpxo -n: -P: -L: -d: -s: -E: -I: -a< -i? -e? -l? --null --no-run-if-empty --verbose --interactive --exit --max-args: --max-procs: \
    --max-lines? --max-chars: --delimiter: --replace? --eof? --arg-file<";

/// Whether a list has a word.
pub(super) fn lists(list: &str, word: &str) -> bool {
    list.split(' ').any(|listed| listed == word)
}
