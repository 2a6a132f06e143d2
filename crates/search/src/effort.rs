//! Bounded work: what may take long counts its steps, so that it ends after the same amount of work
//! on every machine, or early when the search is stopped.

/// Steps between two questions whether to stop.
const PERIOD: u64 = 1 << 16;

/// Work that may still be done.
pub(crate) struct Effort<'a> {
    left: u64,
    unasked: u64,
    stop: &'a dyn Fn() -> bool,
    stopped: bool,
}

impl<'a> Effort<'a> {
    /// Work of `steps` steps, ended early by `stop`.
    pub(crate) fn new(steps: u64, stop: &'a dyn Fn() -> bool) -> Self {
        Self { left: steps, unasked: 0, stop, stopped: false }
    }

    /// Takes `steps` steps; `None` when there are not as many left or the search is stopped.
    pub(crate) fn spend(&mut self, steps: usize) -> Option<()> {
        self.unasked += steps as u64;
        if self.unasked >= PERIOD {
            self.unasked = 0;
            self.is_stopped();
        }
        self.left = self.left.checked_sub(steps as u64).filter(|_| !self.stopped)?;
        Some(())
    }

    /// Asks whether the search is stopped; once it is, it stays so.
    pub(crate) fn is_stopped(&mut self) -> bool {
        self.stopped = self.stopped || (self.stop)();
        self.stopped
    }
}
