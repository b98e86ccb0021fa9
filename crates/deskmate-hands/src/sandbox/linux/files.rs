//! Files by Landlock: the kernel refuses whatever lies outside of the granted paths, by what a path leads to.

use super::{Done, told};
use crate::sandbox::Network;
use crate::sandbox::report::LANDLOCK_ALONE;
use crate::sandbox::wire::Job;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, NetPort, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetStatus, Scope,
};
use std::path::Path;

/// The devices that every program has: none of them holds anything.
pub(super) const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Where a program sees its own processes.
pub(super) const OWN_PROC: &str = "/proc";

/// The version of this kernel's Landlock as far as it is known here, 0 for none; this process is restricted afterwards.
pub(super) fn version() -> u32 {
    let rules = Ruleset::default().handle_access(AccessFs::from_all(ABI::V1)).and_then(Ruleset::create);
    match rules.and_then(RulesetCreated::restrict_self).map(|status| status.landlock) {
        Ok(LandlockStatus::Available { effective_abi, .. }) => effective_abi as u32,
        _ => 0,
    }
}

/// The rules for a job, ready to be entered.
pub(super) fn rules(job: &Job) -> Done<RulesetCreated> {
    let failed = || told("preparing Landlock");
    // Alone it must keep everything; inside a view its first version is enough, and newer ones add what they can.
    let least = if job.view.is_some() { ABI::V1 } else { ABI::V6 };
    debug_assert!(job.view.is_some() || least as u32 == LANDLOCK_ALONE);
    let mut rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement).handle_access(AccessFs::from_all(least)).map_err(failed())?;
    if job.view.is_none() {
        rules = rules.scope(Scope::from_all(least)).map_err(failed())?;
    }
    rules = rules.set_compatibility(CompatLevel::BestEffort).handle_access(AccessFs::from_all(ABI::V6)).map_err(failed())?;
    rules = rules.scope(Scope::from_all(ABI::V6)).map_err(failed())?;
    match job.spec.network {
        Network::None => rules = rules.handle_access(AccessNet::from_all(ABI::V6)).map_err(failed())?,
        Network::Port(_) => {
            rules = rules.set_compatibility(CompatLevel::HardRequirement).handle_access(AccessNet::from_all(ABI::V4)).map_err(failed())?;
            rules = rules.set_compatibility(CompatLevel::BestEffort);
        }
        Network::Allowed => {}
    }
    let mut rules = rules.create().map_err(failed())?;
    if let Network::Port(port) = job.spec.network {
        rules = rules.add_rule(NetPort::new(port, AccessNet::ConnectTcp)).map_err(failed())?;
    }
    let read = AccessFs::Execute | AccessFs::ReadFile | AccessFs::ReadDir;
    // No devices, no sockets, and nothing to execute that it wrote itself, unless that is what it is for.
    let none = if job.spec.execute { BitFlags::empty() } else { AccessFs::Execute.into() };
    let write = AccessFs::from_all(ABI::V6) & !(none | AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::MakeSock | AccessFs::IoctlDev);
    for path in &job.spec.read_only {
        rules = grant(job, rules, path, read)?;
    }
    let own_proc = Path::new(OWN_PROC);
    if job.spec.own_proc && job.view.is_some() {
        rules = grant(job, rules, own_proc, AccessFs::ReadFile | AccessFs::ReadDir)?;
    }
    for path in job.spec.read_write.iter().chain([&job.private]) {
        rules = grant(job, rules, path, write)?;
    }
    for path in DEVICES.iter().map(Path::new).filter(|path| path.exists()) {
        rules = grant(job, rules, path, AccessFs::ReadFile | AccessFs::WriteFile)?;
    }
    Ok(rules)
}

fn grant(job: &Job, rules: RulesetCreated, path: &Path, access: BitFlags<AccessFs>) -> Done<RulesetCreated> {
    let failed = |error: &dyn std::fmt::Display| format!("granting {}: {error}", path.display());
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(ABI::V6) };
    let file = PathFd::new(path).map_err(|error| failed(&error))?;
    job.spec.is_meant(path, &file)?;
    rules.add_rule(PathBeneath::new(file, access)).map_err(|error| failed(&error))
}

/// Enters the rules, for good.
pub(super) fn enter(rules: RulesetCreated) -> Done {
    let status = rules.restrict_self().map_err(told("entering Landlock"))?;
    if status.ruleset == RulesetStatus::NotEnforced { Err("entering Landlock: the kernel did not enforce it".into()) } else { Ok(()) }
}
