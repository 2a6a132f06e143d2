//! Values that many cells share, made once for those that stand side by side.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The values made last. When there are too many, all are forgotten: whoever needs one again makes it
/// again, and as a value depends on its key alone, nothing but time is lost.
#[derive(Debug)]
pub(super) struct Recent<K, V> {
    most: usize,
    known: Mutex<HashMap<K, Arc<OnceLock<V>>>>,
}

impl<K: Eq + Hash, V> Recent<K, V> {
    /// Keeps so many values at most.
    pub fn new(most: usize) -> Self {
        Self { most, known: Mutex::default() }
    }

    /// The place of a value, made or yet to be made.
    pub fn get(&self, key: K) -> Arc<OnceLock<V>> {
        // What is in the map is whole at every moment, whoever panicked.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= self.most && !known.contains_key(&key) {
            known.clear();
        }
        known.entry(key).or_default().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_made_once_while_they_are_kept() {
        let recent = Recent::new(2);
        let made = std::cell::Cell::new(0);
        let ask = |key: u8| {
            let place = recent.get(key);
            *place.get_or_init(|| {
                made.set(made.get() + 1);
                key * 10
            })
        };
        assert_eq!([1, 2, 1, 2].map(ask), [10, 20, 10, 20]);
        assert_eq!(made.get(), 2);
        assert_eq!([3, 1, 3].map(ask), [30, 10, 30]);
        assert_eq!(made.get(), 4, "the third made the others be forgotten");
    }
}
