//! The programs that are known, by what they do. A program that is in none of these lists runs as itself.

/// Programs that look at files, or at nothing, whatever their arguments are.
pub(super) const READING: &str = "ls dir vdir cat tac head tail more less wc nl rev cut paste join column fold fmt expand unexpand tr comm cmp diff diff3 stat file \
    du df tree realpath readlink basename dirname pwd echo printf true false : test [ cal uname arch whoami id groups hostname which \
    whereis type sleep seq expr md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum base64 base32 xxd od hexdump \
    strings nproc uptime tty grep egrep fgrep zgrep numfmt";
/// Programs whose first argument is a pattern and not a file.
pub(super) const PATTERN_FIRST: &str = "grep egrep fgrep zgrep rg ag jq";
/// Programs whose arguments are texts and not files.
pub(super) const SAYING: &str = "echo printf true false : test [ sleep seq expr basename dirname tr numfmt which type cal";
/// Programs that make or change files.
pub(super) const WRITING: &str = "touch mkdir tee truncate cp mv ln install split csplit patch tar zip unzip gzip gunzip bzip2 bunzip2 xz unxz zstd 7z mkfifo mknod \
    mktemp rename ed ex iconv";
/// Programs that delete files.
pub(super) const DELETING: &str = "rm rmdir unlink shred srm wipe";
/// Programs that change the machine.
pub(super) const CHANGING: &str = "chmod chown chgrp chattr setfacl setcap mount umount swapon swapoff systemctl service sysctl iptables nft ufw crontab at batch \
    useradd userdel usermod groupadd passwd chpasswd visudo shutdown reboot halt poweroff kill pkill killall mkfs fdisk parted sfdisk \
    wipefs insmod rmmod modprobe loginctl launchctl diskutil chroot nsenter unshare docker podman";
/// Programs that speak to other machines.
pub(super) const FETCHING: &str = "curl wget http https xh ftp sftp telnet nc ncat netcat socat scp rsync";
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
/// Programs that run another one, and their options that take a value.
pub(super) const WRAPPERS: &[(&str, &str)] = &[
    ("command", ""),
    ("builtin", ""),
    ("exec", "-a"),
    ("nohup", ""),
    ("setsid", ""),
    ("nice", "-n --adjustment"),
    ("ionice", "-c -n -p"),
    ("stdbuf", "-i -o -e"),
    ("chronic", ""),
    ("caffeinate", "-t -w"),
    ("env", "-u --unset -C --chdir -S --split-string"),
    ("sudo", "-u -g -h -p -C -D -R -T -U --user --group --chdir"),
    ("doas", "-u -C"),
    ("timeout", "-k -s --kill-after --signal"),
];

/// Whether a list has a word.
pub(super) fn lists(list: &str, word: &str) -> bool {
    list.split(' ').any(|listed| listed == word)
}
