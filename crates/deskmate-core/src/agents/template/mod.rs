//! Templates, as data files: of policies, with gaps to be filled in and cases that show every rule firing and not firing, and of
//! agents ([`agent`]), with the steps that they do.

mod agent;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use crate::policy::Template;

pub(super) use agent::Likeness;
pub use agent::{AgentTemplate, File, Library, Parameter, ParameterKind, agent};

/// The texts of the templates of policies.
const POLICIES: [&str; 19] = [
    include_str!("policies/pii-protection.yaml"),
    include_str!("policies/rate-limiting.yaml"),
    include_str!("policies/cost-control.yaml"),
    include_str!("policies/data-deletion.yaml"),
    include_str!("policies/secrets-protection.yaml"),
    include_str!("policies/human-review.yaml"),
    include_str!("policies/gdpr-compliance.yaml"),
    include_str!("policies/soc2-security.yaml"),
    include_str!("policies/hipaa-healthcare.yaml"),
    include_str!("policies/pci-dss-payments.yaml"),
    include_str!("policies/read-only-access.yaml"),
    include_str!("policies/production-safety.yaml"),
    include_str!("policies/ccpa-privacy.yaml"),
    include_str!("policies/nist-csf.yaml"),
    include_str!("policies/iso27001-controls.yaml"),
    include_str!("policies/fedramp-moderate.yaml"),
    include_str!("policies/working-hours.yaml"),
    include_str!("policies/known-recipients.yaml"),
    include_str!("policies/untrusted-input.yaml"),
];

static BUILT_IN: LazyLock<Vec<Template>> = LazyLock::new(|| POLICIES.iter().filter_map(|text| Template::read(text).ok()).collect());

/// The templates of policies that are built in.
pub fn policies() -> &'static [Template] {
    &BUILT_IN
}

/// A template of policies that is built in, by its name.
pub fn policy(id: &str) -> Option<&'static Template> {
    BUILT_IN.iter().find(|template| template.id == id)
}

/// The templates of policies that help with a framework, such as `SOC2`.
pub fn policies_for(framework: &str) -> impl Iterator<Item = &'static Template> {
    BUILT_IN.iter().filter(move |template| template.framework.as_deref() == Some(framework))
}
