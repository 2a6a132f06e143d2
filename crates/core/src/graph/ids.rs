//! The table from external ids to dense indices: direct where ids are dense, sorted otherwise.

/// Finds the dense index of an external id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IdTable {
    /// `slots[id]` is the index, `u32::MAX` where there is none.
    Direct { slots: Vec<u32>, max: Option<u64> },
    /// Ids with their index, sorted by id.
    Sorted(Vec<(u64, u32)>),
}

impl IdTable {
    /// Builds the table; the second value lists the places of ids that an earlier place has, as
    /// (earlier, later).
    pub(crate) fn build(ids: impl ExactSizeIterator<Item = u64> + Clone) -> (Self, Vec<(u32, u32)>) {
        let max = ids.clone().max();
        let room = 4 * ids.len() as u64 + 64;
        match max {
            Some(max) if max >= room => Self::sorted(ids),
            _ => Self::direct(ids, max),
        }
    }

    fn direct(ids: impl ExactSizeIterator<Item = u64>, max: Option<u64>) -> (Self, Vec<(u32, u32)>) {
        let mut slots = vec![u32::MAX; max.map_or(0, |m| m as usize + 1)];
        let mut repeats = Vec::new();
        for (place, id) in ids.enumerate() {
            let slot = &mut slots[id as usize];
            if *slot == u32::MAX {
                *slot = place as u32;
            } else {
                repeats.push((*slot, place as u32));
            }
        }
        (Self::Direct { slots, max }, repeats)
    }

    fn sorted(ids: impl ExactSizeIterator<Item = u64>) -> (Self, Vec<(u32, u32)>) {
        let mut pairs: Vec<_> = ids.enumerate().map(|(place, id)| (id, place as u32)).collect();
        pairs.sort_unstable();
        let mut repeats = Vec::new();
        let mut first = 0;
        for i in 1..pairs.len() {
            if pairs[i].0 == pairs[first].0 {
                repeats.push((pairs[first].1, pairs[i].1));
            } else {
                first = i;
            }
        }
        pairs.dedup_by_key(|p| p.0);
        (Self::Sorted(pairs), repeats)
    }

    #[inline]
    pub(crate) fn get(&self, id: u64) -> Option<usize> {
        match self {
            Self::Direct { slots, .. } => {
                let slot = *slots.get(usize::try_from(id).ok()?)?;
                (slot != u32::MAX).then_some(slot as usize)
            }
            Self::Sorted(pairs) => pairs.binary_search_by_key(&id, |p| p.0).ok().map(|place| pairs[place].1 as usize),
        }
    }

    pub(crate) fn max(&self) -> Option<u64> {
        match self {
            Self::Direct { max, .. } => *max,
            Self::Sorted(pairs) => pairs.last().map(|p| p.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_find_ids_and_report_repeats() {
        for scale in [1, 1 << 40] {
            let ids = [7, 3, 7, 0, 3].map(|id: u64| id * scale);
            let (table, mut repeats) = IdTable::build(ids.into_iter());
            repeats.sort_unstable();
            assert_eq!(matches!(table, IdTable::Sorted(_)), scale > 1);
            assert_eq!(repeats, [(0, 2), (1, 4)]);
            assert_eq!(table.get(7 * scale), Some(0));
            assert_eq!(table.get(0), Some(3));
            assert_eq!(table.get(5 * scale + 1), None);
            assert_eq!(table.max(), Some(7 * scale));
        }
    }
}
