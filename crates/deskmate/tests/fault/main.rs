//! Faults, against the built binary: processes that die, disks that fill up, bytes that nobody expects, a database that
//! goes away. Every test prints what it takes to repeat it, talks to loopback only and stops what it started.

#![expect(clippy::disallowed_methods, reason = "tests read the environment and the clock themselves")]

#[cfg(test)]
mod behind;
#[cfg(test)]
mod cluster;
#[cfg(test)]
mod disk;
#[cfg(test)]
mod doors;
#[cfg(test)]
mod input;
#[cfg(test)]
mod kill;
#[cfg(test)]
mod nodes;
#[cfg(test)]
mod outcome;
#[cfg(test)]
mod plans;
#[cfg(test)]
mod postgres;
#[cfg(test)]
mod schedule;
#[cfg(test)]
mod slow;
#[cfg(test)]
mod stream;
#[cfg(test)]
mod support;
#[cfg(test)]
mod sync;
