//! The list of all operations, by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::op::{Op, Toolset};
use crate::record::Kind;

/// All operations of a desk.
#[derive(Clone)]
pub struct Registry {
    by_name: BTreeMap<String, Arc<Op>>,
}

impl Registry {
    /// Every operation that this version has.
    pub fn new() -> Self {
        let capabilities = [
            crate::agents::operations,
            crate::bridge::operations,
            crate::compliance::operations,
            crate::cowork::operations,
            crate::desk_operations,
            crate::edit::operations,
            crate::gateway::operations,
            crate::hook::operations,
            crate::import::operations,
            crate::meter::operations,
            crate::notify::operations,
            crate::policy::operations,
            crate::program::operations,
            crate::protection::operations,
            crate::request::operations,
            crate::secret::operations,
            crate::trust::operations,
            crate::workspace::operations,
        ];
        Self::of(capabilities.into_iter().flat_map(|operations| operations()))
    }

    /// A registry of chosen operations: for fixtures of tests.
    pub fn of(ops: impl IntoIterator<Item = Op>) -> Self {
        Self { by_name: ops.into_iter().map(|op| (op.full_name(), Arc::new(op))).collect() }
    }

    /// Adds operations.
    #[must_use]
    pub fn with(mut self, ops: impl IntoIterator<Item = Op>) -> Self {
        self.by_name.extend(ops.into_iter().map(|op| (op.full_name(), Arc::new(op))));
        self
    }

    /// All operations in the order of their full names.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Op>> {
        self.by_name.values()
    }

    /// An operation by its full name.
    pub fn get(&self, full_name: &str) -> Option<&Arc<Op>> {
        self.by_name.get(full_name)
    }

    /// An operation by its full name, or by its plain name where only one has it.
    pub fn find(&self, name: &str) -> Option<&Arc<Op>> {
        self.get(name).or_else(|| {
            let mut named = self.all().filter(|op| op.name == name);
            named.next().filter(|_| named.next().is_none())
        })
    }

    /// The operations of some toolsets, in a stable order.
    pub fn of_toolsets<'r>(&'r self, toolsets: &'r [Toolset]) -> impl Iterator<Item = &'r Arc<Op>> {
        self.all().filter(move |op| toolsets.contains(&op.toolset))
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

/// Every kind of event, in the order of their names.
pub fn event_catalogue() -> Vec<Kind> {
    let mut kinds: Vec<Kind> = [
        crate::agents::EVENTS,
        crate::bridge::EVENTS,
        crate::cowork::EVENTS,
        crate::edit::EVENTS,
        crate::gateway::EVENTS,
        crate::hook::EVENTS,
        crate::identity::EVENTS,
        crate::import::EVENTS,
        crate::job::EVENTS,
        crate::meter::EVENTS,
        crate::notify::EVENTS,
        crate::policy::EVENTS,
        crate::protection::EVENTS,
        crate::request::EVENTS,
        crate::secret::EVENTS,
        crate::trust::EVENTS,
        crate::workspace::EVENTS,
        crate::DESK_EVENTS,
    ]
    .concat();
    kinds.sort_by_key(|kind| kind.name);
    kinds
}
