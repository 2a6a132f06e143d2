//! Evaluates prices in one pass over the schedule.
//!
//! Per cache, `risen` is the sum of the prices of the steps so far. A buffer remembers `risen` as it
//! was behind its last event; at its next event the difference, times its size, is what its gap is
//! worth at these prices, and the gap adds the smaller of that and of its cost to the bound. Every
//! step takes the price of the room it leaves away again. That is the dual bound
//! `Σ c_g − Σ_t R_t·y_t − Σ_g max(0, c_g − s_g·Σ_{t∈g} y_t)`, gap by gap.

use super::reserved::Holds;
use super::{CertifyError, Misfit};
use crate::certificate::CachePrices;
use crate::model::Cover;
use spillbench_core::graph::NodeKind;
use spillbench_core::index::{BufIx, CacheIx, NodeIx, Pos};
use spillbench_core::{Bytes, Graph, Machine, Schedule};
use typed_index_collections::{TiVec, ti_vec};

/// The account of one cache, all in scaled bytes.
#[derive(Clone, Default)]
struct Account {
    prices: TiVec<NodeIx, u64>,
    risen: u128,
    /// What the gaps add and the rooms take; `None` once one of them passes 2¹²⁸.
    gained: Option<u128>,
    paid: Option<u128>,
}

/// The share of every cache, by cache index.
pub(super) fn evaluate(
    graph: &Graph,
    machine: &Machine,
    schedule: &Schedule,
    cover: Cover,
    scale: u64,
    caches: &[CachePrices],
) -> Result<Vec<Bytes>, CertifyError> {
    if scale == 0 {
        return Err(CertifyError::ZeroScale);
    }
    let pinned = cover == Cover::Schedule;
    let accounts = open_accounts(graph, pinned, caches)?;
    let priced = caches.iter().map(|c| c.prices.len()).sum();
    let holds = Holds::new(graph, machine, schedule, pinned, priced);
    let mut ledger = Ledger { graph, machine, scale, holds, accounts, since: ti_vec![None; graph.buffer_count()] };
    if pinned {
        ledger.walk_pinned(schedule);
    } else {
        ledger.walk_ops(schedule);
    }
    Ok(ledger.accounts.iter().map(|account| account.share(scale)).collect())
}

fn open_accounts(graph: &Graph, pinned: bool, caches: &[CachePrices]) -> Result<TiVec<CacheIx, Account>, CertifyError> {
    let empty = Account { gained: Some(0), paid: Some(0), ..Account::default() };
    let mut accounts: TiVec<CacheIx, Account> = ti_vec![empty; graph.cache_names().len()];
    for CachePrices { cache, prices } in caches {
        let refused = |why| CertifyError::Cache { cache: cache.clone(), why };
        let absent = || refused(Misfit::Absent { of: graph.cache_names().len() });
        let ix = graph.cache_names().position(|name| name == cache).ok_or_else(absent)?;
        if !accounts[ix].prices.is_empty() {
            return Err(refused(Misfit::Twice));
        }
        accounts[ix].prices = ti_vec![0; graph.node_count()];
        let mut priced: TiVec<NodeIx, bool> = ti_vec![false; graph.node_count()];
        for &(id, price) in prices {
            let why = match graph.node_by_id(id) {
                None => Misfit::Absent { of: graph.node_count() },
                Some(n) if !pinned && graph.kind(n) != NodeKind::Op => Misfit::Elsewhere,
                Some(n) if priced[n] => Misfit::Twice,
                Some(n) => {
                    priced[n] = true;
                    accounts[ix].prices[n] = price;
                    continue;
                }
            };
            return Err(CertifyError::Node { node: id, cache: cache.clone(), why });
        }
    }
    Ok(accounts)
}

impl Account {
    /// The least whole number of bytes that is no less than what was gained and not paid.
    fn share(&self, scale: u64) -> Bytes {
        let (Some(gained), Some(paid)) = (self.gained, self.paid) else { return Bytes(0) };
        let bytes = gained.saturating_sub(paid).div_ceil(u128::from(scale));
        Bytes(bytes.min(u128::from(u64::MAX)) as u64)
    }
}

struct Ledger<'a> {
    graph: &'a Graph,
    machine: &'a Machine,
    scale: u64,
    holds: Holds,
    accounts: TiVec<CacheIx, Account>,
    /// What the prices had risen to behind the last event of each buffer that lives.
    since: TiVec<BufIx, Option<u128>>,
}

impl Ledger<'_> {
    /// Every node is a step and an event of its buffers.
    fn walk_pinned(&mut self, schedule: &Schedule) {
        for &node in schedule.order() {
            self.step(node);
            if let NodeKind::Free(b) = self.graph.kind(node) {
                self.since[b] = None;
            }
        }
    }

    /// Only ops are steps. A buffer begins to live before the first op that its `ALLOC` precedes,
    /// and ends behind the last op that precedes its `FREE`.
    fn walk_ops(&mut self, schedule: &Schedule) {
        let starts = starts(self.graph, schedule);
        let mut starts = starts.iter().peekable();
        // The number of positions up to the last op before each node, 0 when there is none.
        let mut past: TiVec<NodeIx, usize> = ti_vec![0; schedule.len()];
        let mut ends: Vec<Vec<BufIx>> = vec![Vec::new(); schedule.len()];
        for (pos, &node) in schedule.order().iter_enumerated() {
            let mut latest = 0;
            self.graph.for_each_predecessor(node, |p| latest = latest.max(past[p]));
            past[node] = if self.graph.kind(node) == NodeKind::Op { pos.index() + 1 } else { latest };
            if let (NodeKind::Free(b), Some(last)) = (self.graph.kind(node), latest.checked_sub(1)) {
                ends[last].push(b);
            }
        }
        for (pos, &node) in schedule.order().iter_enumerated() {
            while let Some(&(_, b)) = starts.next_if(|s| s.0 == pos) {
                self.since[b] = Some(self.accounts[self.graph.buf(b).cache].risen);
            }
            if self.graph.kind(node) == NodeKind::Op {
                self.step(node);
            }
            for &b in &ends[pos.index()] {
                self.close_gap(b);
            }
        }
    }

    fn step(&mut self, node: NodeIx) {
        let graph = self.graph;
        graph.operands(node).iter().for_each(|&b| self.close_gap(b));
        for (cache, account) in self.accounts.iter_mut_enumerated() {
            let price = account.prices.get(node).copied().unwrap_or(0);
            if price > 0 {
                let room = self.holds.room(graph, self.machine, node, cache);
                let worth = u128::from(price).checked_mul(u128::from(room.0));
                account.paid = account.paid.zip(worth).and_then(|(sum, worth)| sum.checked_add(worth));
                account.risen += u128::from(price);
            }
        }
        for &b in graph.operands(node) {
            self.since[b] = Some(self.accounts[graph.buf(b).cache].risen);
        }
    }

    /// Adds the gap from the last event of `b` to now, if it lives.
    fn close_gap(&mut self, b: BufIx) {
        let buf = self.graph.buf(b);
        let account = &mut self.accounts[buf.cache];
        let Some(since) = self.since[b] else { return };
        let worth = u128::from(buf.size.0).saturating_mul(account.risen.saturating_sub(since));
        let cost = u128::from(buf.movement().0) * u128::from(self.scale);
        account.gained = account.gained.and_then(|sum| sum.checked_add(worth.min(cost)));
        self.since[b] = Some(account.risen);
    }
}

/// Every buffer with the position of the first op that its `ALLOC` precedes, over chains of cache
/// nodes too, by position.
fn starts(graph: &Graph, schedule: &Schedule) -> Vec<(Pos, BufIx)> {
    let end = Pos::new(schedule.len());
    let mut first_op: TiVec<NodeIx, Pos> = ti_vec![end; schedule.len()];
    let mut starts = Vec::with_capacity(graph.buffer_count());
    for (pos, &node) in schedule.order().iter_enumerated().rev() {
        let mut first = end;
        graph.for_each_successor(node, |s| first = first.min(first_op[s]));
        first_op[node] = if graph.kind(node) == NodeKind::Op { pos } else { first };
        if let NodeKind::Alloc(b) = graph.kind(node) {
            starts.push((first, b));
        }
    }
    starts.sort_unstable();
    starts
}
