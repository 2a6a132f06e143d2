//! Placement rules: which of the holes that are large enough a buffer takes.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A placement rule. Free blocks always coalesce.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// The smallest hole; ties to the lowest address.
    #[default]
    BestFit,
    /// The lowest hole.
    FirstFit,
    /// The first place at or after the end of the last placement, wrapping around: a hole that
    /// reaches across that end is taken from there on.
    NextFit,
    /// The largest hole; ties to the lowest address.
    WorstFit,
    /// Large buffers from below, small ones from above: a buffer is large when its size is at least
    /// the mean size of the buffers of its cache.
    TwoEnded,
    /// The smallest hole, as [`Placement::BestFit`], but equals take turns: of both ends of the holes
    /// of that size, the first at or after the end of the last placement, wrapping around.
    RoundRobin,
    /// The place whose addresses were all released longest ago: the acquire then waits least for
    /// whoever had them. Addresses never held come first.
    LeastRecentlyReleased,
    /// The smallest hole with a place that does not hold the acquire up: all of it was released, by the
    /// timing model `segment`, before the pipe of the first user (of a reload: of the reload) is free.
    /// Where there is none, the place that is released soonest. Best fit where the graph has no timing.
    LeastDelay,
}

impl Placement {
    /// All rules with their names and one line each.
    pub const ALL: &[(Self, &'static str, &'static str)] = &[
        (Self::BestFit, "best-fit", "the smallest hole that is large enough; ties to the lowest address"),
        (Self::FirstFit, "first-fit", "the lowest hole that is large enough"),
        (Self::NextFit, "next-fit", "the first place at or after the end of the last placement, wrapping around"),
        (Self::WorstFit, "worst-fit", "the largest hole; ties to the lowest address"),
        (Self::TwoEnded, "two-ended", "buffers of at least the mean size from below, smaller ones from above"),
        (Self::RoundRobin, "round-robin", "the smallest hole; ends of equal holes in turn after the last placement"),
        (
            Self::LeastRecentlyReleased,
            "least-recently-released",
            "the place whose addresses were all released longest ago",
        ),
        (Self::LeastDelay, "least-delay", "the smallest hole with a place that need not be waited for, in cycles"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|p| p.0 == self).map_or("?", |p| p.1)
    }

    /// The rule of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|p| p.1 == name).map(|p| p.0)
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
