//! Faults, against the built binary: processes that die, disks that fill up, bytes that nobody expects, a database that
//! goes away. Every test prints what it takes to repeat it, talks to loopback only and stops what it started.

#[cfg(test)]
mod kill;
#[cfg(test)]
mod support;
