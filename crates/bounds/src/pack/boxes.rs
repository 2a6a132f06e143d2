//! What stands still during a search: items with a fixed place, and what they leave to the others.

use super::model::{Item, Model, shared};

/// Bytes that a fixed item occupies in a section.
#[derive(Clone, Copy, Debug)]
struct Box {
    low: u64,
    high: u64,
    /// Bytes of this one and of all above it.
    upward: u64,
}

/// The places of all fixed items.
#[derive(Clone, Debug)]
pub(super) struct Boxes {
    /// Per item, the offsets that it may not have, `[from, to)`, rising and apart.
    taken: Vec<Vec<(u64, u64)>>,
    /// Per section, from the lowest.
    sections: Vec<Vec<Box>>,
    capacity: u64,
    /// True when the fixed items themselves are a packing.
    pub hold: bool,
}

/// Offsets of `item` that meet `other` at offset `at`: all in `[from, to)`.
pub(super) fn taken_by<'a>(item: &'a Item, other: &'a Item, at: u64) -> impl Iterator<Item = (u64, u64)> + 'a {
    let apart = other.from >= item.to || item.from >= other.to;
    let pairs = (!apart).then(|| shared(item, other)).into_iter().flatten();
    let range = move |p: &super::model::Piece, q: &super::model::Piece| {
        let to = (at + q.high).saturating_sub(p.low);
        (to > 0).then(|| ((at + q.low + 1).saturating_sub(p.high), to))
    };
    pairs.filter_map(move |(p, q)| range(p, q))
}

impl Boxes {
    pub fn new(model: &Model) -> Self {
        let fixed: Vec<(&Item, u64)> = model.items.iter().filter_map(|i| Some((i, i.fixed?))).collect();
        let mut sections = vec![Vec::new(); model.totals.len()];
        for (item, at) in &fixed {
            for p in &item.pieces {
                for s in &mut sections[p.from as usize..p.to as usize] {
                    s.push(Box { low: at + p.low, high: at + p.high, upward: 0 });
                }
            }
        }
        for s in &mut sections {
            s.sort_unstable_by_key(|b| b.low);
            let mut upward = 0;
            for b in s.iter_mut().rev() {
                upward += b.high - b.low;
                b.upward = upward;
            }
        }
        let apart = sections.iter().all(|s| s.windows(2).all(|w| w[0].high <= w[1].low));
        let placed = |&(i, at): &(&Item, u64)| at % i.alignment == 0 && at + i.size <= model.capacity;
        let taken = model.items.iter().map(|i| if i.fixed.is_some() { Vec::new() } else { taken(i, &fixed) }).collect();
        Self { taken, sections, capacity: model.capacity, hold: apart && fixed.iter().all(placed) }
    }

    /// The first place of item `i` at or above `floor` that its alignment and the fixed items allow.
    #[inline]
    pub fn place_from(&self, model: &Model, i: usize, floor: u64) -> u64 {
        let alignment = model.items[i].alignment;
        let align = |place: u64| if alignment == 1 { place } else { place.next_multiple_of(alignment) };
        let mut place = align(floor);
        let taken = &self.taken[i];
        if taken.is_empty() {
            return place;
        }
        for &(from, to) in &taken[taken.partition_point(|t| t.1 <= place)..] {
            if place < from {
                break;
            }
            place = place.max(align(to));
        }
        place
    }

    /// Bytes of section `q` at and above `from` that no fixed item occupies.
    #[inline]
    pub fn room(&self, q: usize, from: u64) -> u64 {
        let room = self.capacity.saturating_sub(from);
        let boxes = &self.sections[q];
        if boxes.is_empty() {
            return room;
        }
        let above = boxes.partition_point(|b| b.low < from);
        let upward = boxes.get(above).map_or(0, |b| b.upward);
        let astride = above.checked_sub(1).map_or(0, |k| boxes[k].high.saturating_sub(from));
        room.saturating_sub(upward + astride)
    }
}

fn taken(item: &Item, fixed: &[(&Item, u64)]) -> Vec<(u64, u64)> {
    let mut all: Vec<(u64, u64)> = fixed.iter().flat_map(|&(other, at)| taken_by(item, other, at)).collect();
    all.sort_unstable();
    all.dedup_by(|next, last| {
        let meet = next.0 <= last.1;
        if meet {
            last.1 = last.1.max(next.1);
        }
        meet
    });
    all
}
