//! Which items share which buffers: what the moves and the constructors go by.

use crate::model::{ItemIx, Model};
use spillbench_core::index::{BufIx, Lists};
use typed_index_collections::{TiVec, ti_vec};

/// The buffers that several items use.
#[derive(Debug)]
pub(crate) struct Ties {
    items: Lists<BufIx, ItemIx>,
    bufs: Lists<ItemIx, BufIx>,
    shared: Vec<BufIx>,
    generated: TiVec<BufIx, bool>,
}

impl Ties {
    pub(crate) fn of(model: &Model<'_>) -> Self {
        let graph = model.graph();
        let mut pairs: Vec<(BufIx, ItemIx)> = Vec::new();
        for item in model.items() {
            let accesses = model.steps(item).flat_map(|s| model.accesses(s));
            pairs.extend(accesses.map(|&b| (b, item)));
        }
        pairs.sort_unstable();
        pairs.dedup();
        let mut items = Lists::with_capacity(graph.buffer_count(), pairs.len());
        let mut shared = Vec::new();
        let mut by_item: TiVec<ItemIx, Vec<BufIx>> = ti_vec![Vec::new(); model.len()];
        let mut pairs = pairs.into_iter().peekable();
        for buf in graph.bufs() {
            while let Some((_, item)) = pairs.next_if(|p| p.0 == buf) {
                items.push(item);
            }
            if items.open().len() > 1 {
                shared.push(buf);
                items.open().iter().for_each(|&i| by_item[i].push(buf));
            }
            items.close();
        }
        let mut bufs = Lists::new();
        for list in by_item {
            list.into_iter().for_each(|b| bufs.push(b));
            bufs.close();
        }
        let generated = graph.bufs().map(|b| !graph.buf(b).backed).collect();
        Self { items, bufs, shared, generated }
    }

    /// The items that use a buffer.
    pub(crate) fn items(&self, buf: BufIx) -> &[ItemIx] {
        self.items.get(buf)
    }

    /// The buffers of an item that other items use too.
    pub(crate) fn bufs(&self, item: ItemIx) -> &[BufIx] {
        self.bufs.get(item)
    }

    /// All buffers that several items use.
    pub(crate) fn shared(&self) -> &[BufIx] {
        &self.shared
    }

    /// True for a buffer that no load fills.
    pub(crate) fn is_generated(&self, buf: BufIx) -> bool {
        self.generated[buf]
    }
}
