//! Times as the decoder keeps them: bare, or with what they wait for.

/// A time in cycles that may know the event it is the end of.
pub(super) trait Clock: Copy + Default + std::fmt::Debug + Send {
    /// The time.
    fn at(self) -> u64;
    /// The time, as the end of an event.
    fn of(at: u64, event: u32) -> Self;
    /// The same, as what holds back whoever waits for it.
    fn because(self, why: Why) -> Self;

    /// The later of two; of equal ones, `self`.
    #[inline]
    fn later(self, other: Self) -> Self {
        if other.at() > self.at() { other } else { self }
    }
}

/// What an event waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Why {
    /// For the contents of a buffer, or an edge.
    #[default]
    Data,
    /// For its pipe.
    Pipe,
    /// For its addresses to be released.
    Address,
}

impl Clock for u64 {
    #[inline]
    fn at(self) -> u64 {
        self
    }

    #[inline]
    fn of(at: u64, _event: u32) -> Self {
        at
    }

    #[inline]
    fn because(self, _why: Why) -> Self {
        self
    }
}

/// A time with its event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tagged {
    pub at: u64,
    /// The event; `u32::MAX` for the start of all.
    pub event: u32,
    pub why: Why,
}

impl Default for Tagged {
    fn default() -> Self {
        Self { at: 0, event: u32::MAX, why: Why::Data }
    }
}

impl Clock for Tagged {
    fn at(self) -> u64 {
        self.at
    }

    fn of(at: u64, event: u32) -> Self {
        Self { at, event, why: Why::Data }
    }

    fn because(self, why: Why) -> Self {
        Self { why, ..self }
    }
}
