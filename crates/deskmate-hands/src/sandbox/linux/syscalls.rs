//! The system calls by what they are for. A name that is in no list is answered as unknown: so is `clone3`, whose flags no
//! filter can see and for which libraries fall back to `clone`, and `memfd_create`, whose memory nobody would count.

#[cfg_attr(not(test), expect(clippy::wildcard_imports, reason = "the list of names is the file itself"))]
use libc::*;

/// Has this number everywhere, but not yet a name in every C library.
pub(super) const FCHMODAT2: i64 = 452;

/// What ordinary programs need and what reaches nothing that was not granted.
#[rustfmt::skip]
pub(super) const ALLOWED: &[i64] = &[
    // Files: which ones, Landlock says.
    SYS_read, SYS_write, SYS_close, SYS_close_range, SYS_openat, SYS_lseek, SYS_pread64, SYS_pwrite64, SYS_readv, SYS_writev,
    SYS_preadv, SYS_pwritev, SYS_preadv2, SYS_pwritev2, SYS_fstat, SYS_newfstatat, SYS_statx, SYS_statfs, SYS_fstatfs,
    SYS_faccessat, SYS_faccessat2, SYS_getdents64, SYS_getcwd, SYS_chdir, SYS_fchdir, SYS_mkdirat, SYS_unlinkat,
    SYS_renameat2, SYS_linkat, SYS_symlinkat, SYS_readlinkat, SYS_mknodat, SYS_truncate, SYS_ftruncate, SYS_fallocate,
    SYS_fadvise64, SYS_readahead, SYS_fsync, SYS_fdatasync, SYS_flock, SYS_fcntl, SYS_ioctl, SYS_dup,
    SYS_dup3, SYS_pipe2, SYS_sendfile, SYS_copy_file_range, SYS_splice, SYS_tee, SYS_vmsplice, SYS_umask, SYS_fgetxattr,
    SYS_flistxattr,
    // Memory.
    SYS_mmap, SYS_munmap, SYS_mprotect, SYS_mremap, SYS_msync, SYS_mincore, SYS_madvise, SYS_brk, SYS_mlock, SYS_mlock2,
    SYS_munlock, SYS_mlockall, SYS_munlockall, SYS_membarrier,
    // Processes and threads of its own.
    SYS_clone, SYS_execve, SYS_exit, SYS_exit_group, SYS_wait4, SYS_waitid, SYS_getpid, SYS_getppid, SYS_gettid, SYS_getpgid,
    SYS_getsid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid, SYS_getresuid, SYS_getresgid, SYS_getgroups, SYS_capget,
    SYS_prctl, SYS_prlimit64, SYS_getrusage, SYS_getpriority, SYS_setpriority, SYS_sched_yield,
    SYS_sched_getaffinity, SYS_sched_setaffinity, SYS_sched_getparam, SYS_sched_getscheduler, SYS_sched_getattr,
    SYS_sched_get_priority_max, SYS_sched_get_priority_min, SYS_sched_rr_get_interval, SYS_set_tid_address, SYS_set_robust_list,
    SYS_futex, SYS_rseq, SYS_restart_syscall, SYS_pidfd_open, SYS_getcpu,
    // Signals: to whom, Landlock or the namespace says.
    SYS_kill, SYS_tkill, SYS_tgkill, SYS_pidfd_send_signal, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn,
    SYS_rt_sigpending, SYS_rt_sigtimedwait, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_rt_sigsuspend, SYS_sigaltstack,
    SYS_signalfd4,
    // Time and waiting.
    SYS_clock_gettime, SYS_clock_getres, SYS_clock_nanosleep, SYS_nanosleep, SYS_gettimeofday, SYS_times, SYS_getitimer,
    SYS_setitimer, SYS_timer_create, SYS_timer_settime, SYS_timer_gettime, SYS_timer_getoverrun, SYS_timer_delete,
    SYS_timerfd_create, SYS_timerfd_settime, SYS_timerfd_gettime, SYS_ppoll, SYS_pselect6, SYS_epoll_create1, SYS_epoll_ctl,
    SYS_epoll_pwait, SYS_epoll_pwait2, SYS_eventfd2,
    // The two ends of its own streams.
    SYS_sendto, SYS_recvfrom, SYS_sendmsg, SYS_recvmsg, SYS_sendmmsg, SYS_recvmmsg, SYS_shutdown, SYS_getsockname,
    SYS_getpeername, SYS_setsockopt, SYS_getsockopt,
    // About the machine, and restricting itself further.
    SYS_uname, SYS_sysinfo, SYS_getrandom, SYS_landlock_create_ruleset, SYS_landlock_add_rule, SYS_landlock_restrict_self,
    SYS_seccomp,
    // `renameat`, `sync_file_range`, `getrlimit` and `setrlimit`, which have no names everywhere.
    #[cfg(target_arch = "x86_64")] SYS_renameat, #[cfg(target_arch = "x86_64")] SYS_sync_file_range,
    #[cfg(target_arch = "x86_64")] SYS_getrlimit, #[cfg(target_arch = "x86_64")] SYS_setrlimit,
    #[cfg(target_arch = "aarch64")] 38, #[cfg(target_arch = "aarch64")] 84,
    #[cfg(target_arch = "aarch64")] 163, #[cfg(target_arch = "aarch64")] 164,
    // Older names that the 64-bit ARM does not have.
    #[cfg(target_arch = "x86_64")] SYS_open, #[cfg(target_arch = "x86_64")] SYS_creat, #[cfg(target_arch = "x86_64")] SYS_stat,
    #[cfg(target_arch = "x86_64")] SYS_lstat, #[cfg(target_arch = "x86_64")] SYS_access, #[cfg(target_arch = "x86_64")] SYS_getdents,
    #[cfg(target_arch = "x86_64")] SYS_mkdir, #[cfg(target_arch = "x86_64")] SYS_rmdir, #[cfg(target_arch = "x86_64")] SYS_unlink,
    #[cfg(target_arch = "x86_64")] SYS_rename, #[cfg(target_arch = "x86_64")] SYS_link, #[cfg(target_arch = "x86_64")] SYS_symlink,
    #[cfg(target_arch = "x86_64")] SYS_readlink, #[cfg(target_arch = "x86_64")] SYS_mknod, #[cfg(target_arch = "x86_64")] SYS_dup2,
    #[cfg(target_arch = "x86_64")] SYS_pipe, #[cfg(target_arch = "x86_64")] SYS_poll, #[cfg(target_arch = "x86_64")] SYS_select,
    #[cfg(target_arch = "x86_64")] SYS_fork, #[cfg(target_arch = "x86_64")] SYS_vfork, #[cfg(target_arch = "x86_64")] SYS_getpgrp,
    #[cfg(target_arch = "x86_64")] SYS_alarm, #[cfg(target_arch = "x86_64")] SYS_pause, #[cfg(target_arch = "x86_64")] SYS_time,
    #[cfg(target_arch = "x86_64")] SYS_epoll_create, #[cfg(target_arch = "x86_64")] SYS_epoll_wait,
    #[cfg(target_arch = "x86_64")] SYS_eventfd, #[cfg(target_arch = "x86_64")] SYS_signalfd, #[cfg(target_arch = "x86_64")] SYS_arch_prctl,
];

/// What changes the mode, owner, times or attributes of files, by path or by an open file, or reads attributes by path.
#[rustfmt::skip]
pub(super) const METADATA: &[i64] = &[
    SYS_fchmod, SYS_fchmodat, FCHMODAT2, SYS_fchown, SYS_fchownat, SYS_utimensat, SYS_setxattr, SYS_lsetxattr,
    SYS_fsetxattr, SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr, SYS_getxattr, SYS_lgetxattr, SYS_listxattr,
    SYS_llistxattr,
    #[cfg(target_arch = "x86_64")] SYS_chmod, #[cfg(target_arch = "x86_64")] SYS_chown, #[cfg(target_arch = "x86_64")] SYS_lchown,
    #[cfg(target_arch = "x86_64")] SYS_utime, #[cfg(target_arch = "x86_64")] SYS_utimes, #[cfg(target_arch = "x86_64")] SYS_futimesat,
];

/// What leaves the group of processes.
pub(super) const SESSIONS: &[i64] = &[SYS_setsid, SYS_setpgid];

/// What sockets need to reach others, besides `socket` itself.
pub(super) const NETWORKING: &[i64] = &[SYS_connect, SYS_bind, SYS_listen, SYS_accept, SYS_accept4];

/// What reaches other processes, the kernel or the machine, and is told so.
#[rustfmt::skip]
pub(super) const FORBIDDEN: &[i64] = &[
    // Other processes.
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_pidfd_getfd, SYS_kcmp, SYS_process_madvise,
    // Another view of the machine.
    SYS_unshare, SYS_setns, SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_move_mount, SYS_open_tree, SYS_fsopen,
    SYS_fsconfig, SYS_fsmount, SYS_fspick, SYS_mount_setattr, SYS_open_by_handle_at, SYS_name_to_handle_at, SYS_quotactl,
    // Keys.
    SYS_keyctl, SYS_add_key, SYS_request_key,
    // Parts of the kernel that are wide open or do work past the filters.
    SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register,
    // Watching what others do with files.
    SYS_fanotify_init, SYS_fanotify_mark, SYS_inotify_init1, SYS_inotify_add_watch,
    // The machine itself.
    SYS_kexec_load, SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_reboot, SYS_swapon, SYS_swapoff, SYS_syslog,
    SYS_acct, SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime, SYS_adjtimex, SYS_sethostname, SYS_setdomainname,
    SYS_vhangup, SYS_personality,
    #[cfg(target_arch = "x86_64")] SYS_kexec_file_load, #[cfg(target_arch = "x86_64")] SYS_iopl,
    #[cfg(target_arch = "x86_64")] SYS_ioperm, #[cfg(target_arch = "x86_64")] SYS_modify_ldt,
    #[cfg(target_arch = "x86_64")] SYS_inotify_init,
];
