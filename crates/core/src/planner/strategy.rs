//! The strategy chain: what is tried, in which order, when a request finds no hole.

use serde::{Deserialize, Serialize};
use std::fmt;

/// One link of the chain. The last resort is not among them: it stands behind every chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// Evict the one best victim whose eviction opens a hole.
    Single,
    /// Evict several in heuristic order, then give back the superfluous.
    Multi,
    /// Evict the buffers under the cheapest address window.
    Window,
    /// Move the `ALLOC` behind a later `FREE`.
    Postpone,
}

impl Strategy {
    /// All strategies with their names and one line each.
    pub const ALL: &[(Self, &'static str, &'static str)] = &[
        (Self::Single, "single", "evict the best victim among those whose eviction alone opens a large enough hole"),
        (
            Self::Multi,
            "multi",
            "evict in heuristic order until a hole is open, then give back every superfluous victim",
        ),
        (Self::Window, "window", "evict the buffers under one address window: least movement cost over score"),
        (Self::Postpone, "postpone", "move the ALLOC to just after the earliest later FREE that opens a hole"),
    ];

    /// The default chain: `single, multi, postpone`.
    pub const DEFAULT_CHAIN: &[Self] = &[Self::Single, Self::Multi, Self::Postpone];

    /// The chain `postpone, single, multi`.
    pub const POSTPONE_FIRST: &[Self] = &[Self::Postpone, Self::Single, Self::Multi];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|s| s.0 == self).map_or("?", |s| s.1)
    }

    /// The strategy of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|s| s.1 == name).map(|s| s.0)
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
