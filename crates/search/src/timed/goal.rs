//! What a timed search makes small.

/// The cost of a plan: a weighted sum of its figures, and a fine for each byte past a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Goal {
    /// For each cycle of the makespan.
    pub per_cycle: u64,
    /// For each byte of extra data movement.
    pub per_byte: u64,
    /// Bytes of extra data movement that a plan may cause.
    pub limit: Option<u64>,
    /// For what spills cost beside bytes and cycles.
    pub per_price: u64,
    /// What every plan costs anyway.
    pub base: u64,
    /// While searching, for each byte past the limit.
    pub(crate) fine: u64,
}

/// What the decoder counts of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Cycles by the timing model `segment`.
    pub makespan: u64,
    /// Bytes of extra data movement.
    pub moved: u64,
    /// What its spills cost beside bytes and cycles.
    pub price: u64,
}

impl Figures {
    /// True when no figure of `other` is lower.
    pub fn dominates(self, other: Self) -> bool {
        self.makespan <= other.makespan && self.moved <= other.moved && self.price <= other.price
    }
}

impl Goal {
    /// Least makespan, with at most `limit` bytes moved.
    pub fn makespan(limit: Option<u64>) -> Self {
        Self { per_cycle: 1, per_byte: 0, limit, per_price: 0, base: 0, fine: FINE }
    }

    /// Least `per_byte` · movement + `per_cycle` · makespan.
    pub fn weighted(per_byte: u64, per_cycle: u64) -> Self {
        Self { per_cycle, per_byte, limit: None, per_price: 0, base: 0, fine: 0 }
    }

    /// Least energy: `base` for what every plan does, `per_cycle` of the makespan, and the prices of
    /// the spills.
    pub fn energy(base: u64, per_cycle: u64) -> Self {
        Self { per_cycle, per_byte: 0, limit: None, per_price: 1, base, fine: 0 }
    }

    /// The cost of a plan that keeps to the limit, without a fine.
    pub fn value(&self, figures: Figures) -> u64 {
        let cycles = self.per_cycle.saturating_mul(figures.makespan);
        let bytes = self.per_byte.saturating_mul(figures.moved);
        self.base.saturating_add(cycles).saturating_add(bytes).saturating_add(self.per_price * figures.price)
    }

    /// What a spill that moves so much costs by itself.
    pub(crate) fn spill(&self, moved: u64, price: u64) -> u64 {
        self.per_byte.saturating_mul(moved).saturating_add(self.per_price * price)
    }

    /// The cost while searching.
    #[inline]
    pub(crate) fn cost(&self, figures: Figures) -> u64 {
        let over = self.limit.map_or(0, |limit| figures.moved.saturating_sub(limit));
        self.value(figures).saturating_add(self.fine.saturating_mul(over))
    }

    /// True when a plan keeps to the limit.
    pub fn allows(&self, moved: u64) -> bool {
        self.limit.is_none_or(|limit| moved <= limit)
    }
}

/// Cycles that a byte past the limit counts for: well above what moving one more can save, or the
/// search settles past the limit.
const FINE: u64 = 50;
