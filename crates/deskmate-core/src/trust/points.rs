//! A score as a whole number of billionths.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A score or a part of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Points(pub i64);

impl Points {
    /// No trust at all.
    pub const ZERO: Self = Self(0);
    /// Full trust.
    pub const ONE: Self = Self(1_000_000_000);
    /// From here on an agent's proposals are suggestions.
    pub const SUGGEST: Self = Self(500_000_000);
    /// From here on an agent may act alone.
    pub const ACT: Self = Self(800_000_000);
    /// Fading stops here.
    pub const FLOOR: Self = Self(100_000_000);

    /// The nearest score of a setting such as `0.02`.
    #[expect(clippy::cast_possible_truncation, reason = "settings are checked to lie between -1 and 1")]
    pub fn of(value: f64) -> Self {
        Self((value.clamp(-10.0, 10.0) * 1e9).round() as i64)
    }

    /// As a number for people and existing clients.
    #[expect(clippy::cast_precision_loss, reason = "a score has at most ten digits")]
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Within 0 and 1.
    #[must_use]
    pub fn clamped(self) -> Self {
        self.clamp(Self::ZERO, Self::ONE)
    }
}
