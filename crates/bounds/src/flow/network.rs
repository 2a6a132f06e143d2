//! Minimum-cost flow over a line: which intervals to keep, and what room at each step is worth.
//!
//! The problem: intervals of a line, each with a size and a saving per unit of it; at every step
//! the kept units fit the room there; keep the most valuable units. Differences of consecutive
//! capacity rows make it a flow: a node between any two steps, a slack arc over each step, an arc
//! over the steps of each interval (Berger, Beckmann, Harchol-Balter, "Practical Bounds on Optimal
//! Caching with Variable Object Sizes", 2018, who call it FOO).
//!
//! The solver is a primal-dual method of our own that uses how small the savings are. It starts
//! with every interval kept, which leaves units over at the ends of intervals and missing at their
//! starts. A round finds the distance of every node to the nearest lack by Dial's buckets, raises
//! the potentials by it, and sends all units over along arcs of reduced cost 0 in one sweep, from
//! the farthest node to the nearest (a push in the manner of Goldberg and Tarjan under exact
//! labels).
//!
//! All units over near one lack go there, however little it takes, so that where few nodes have units
//! over for many lacks, a round fills few of them. Then the same is done the other way round: nodes
//! are labelled by their distance from the nearest surplus, and the lacks are passed on towards it.
//!
//! Each round fills some lack. After [`MIXED_ROUNDS`] rounds all go towards the lacks: distances then
//! never fall, and a node that keeps units over has moved away, so the number of rounds is bounded by
//! the number of labels, whatever the sizes.

/// An interval of steps with the units that may be kept over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    /// The first step.
    pub first: u32,
    /// The step after the last.
    pub end: u32,
    /// How many units there are.
    pub size: i64,
    /// What keeping a unit saves, at most [`HIGHEST_RATE`].
    pub rate: i64,
}

/// What solving told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Solution {
    /// The price of a unit of room at each step, never negative.
    pub prices: Vec<i64>,
    /// How many rounds it took.
    pub rounds: u64,
}

/// Finds optimal prices. `rooms` holds the room at each step; all sizes together stay below 2⁶².
pub(super) fn solve(rooms: &[i64], intervals: &[Interval]) -> Solution {
    let mut network = Network::new(rooms, intervals);
    let mut rounds = 0;
    while network.over > 0 {
        let towards = if rounds < MIXED_ROUNDS { network.fewer() } else { Side::Lack };
        // Some way leads from every surplus to a lack, since giving up every interval is a solution.
        if !network.label(towards) {
            break;
        }
        network.sweep(towards);
        rounds += 1;
    }
    let prices = network.height.windows(2).map(|h| h[1] - h[0]).collect();
    Solution { prices, rounds }
}

/// The highest rate that an interval may have: distances are bucket numbers.
pub(super) const HIGHEST_RATE: u64 = 1 << 10;

/// Rounds that may go either way.
const MIXED_ROUNDS: u64 = 1 << 12;

const FAR: i64 = i64::MAX;

/// Where the distances of a round lead.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// To nodes where units are missing.
    Lack,
    /// From nodes where units are over.
    Surplus,
}

impl Side {
    fn holds(self, excess: i64) -> bool {
        match self {
            Self::Lack => excess < 0,
            Self::Surplus => excess > 0,
        }
    }

    fn other(self) -> Self {
        match self {
            Self::Lack => Self::Surplus,
            Self::Surplus => Self::Lack,
        }
    }
}

struct Network<'a> {
    intervals: &'a [Interval],
    /// Units kept of each interval.
    kept: Vec<i64>,
    /// Room left at each step; negative nowhere.
    slack: Vec<i64>,
    /// Interval numbers by first node and by end node.
    starting: Adjacency,
    ending: Adjacency,
    /// Potentials: the price of a step is what they rise over it.
    height: Vec<i64>,
    /// Units over (positive) or missing (negative) at each node.
    excess: Vec<i64>,
    /// The number of units over.
    over: i64,
    distance: Vec<i64>,
    /// Place in `order`, `u32::MAX` for nodes that were not reached.
    place: Vec<u32>,
    order: Vec<u32>,
    buckets: Vec<Vec<u32>>,
}

impl<'a> Network<'a> {
    fn new(rooms: &[i64], intervals: &'a [Interval]) -> Self {
        let nodes = rooms.len() + 1;
        let mut excess = vec![0; nodes];
        for i in intervals {
            excess[i.end as usize] += i.size;
            excess[i.first as usize] -= i.size;
        }
        Self {
            intervals,
            kept: intervals.iter().map(|i| i.size).collect(),
            slack: rooms.to_vec(),
            starting: Adjacency::new(nodes, intervals.iter().map(|i| i.first)),
            ending: Adjacency::new(nodes, intervals.iter().map(|i| i.end)),
            height: vec![0; nodes],
            over: excess.iter().filter(|&&e| e > 0).sum(),
            excess,
            distance: vec![FAR; nodes],
            place: vec![u32::MAX; nodes],
            order: Vec::with_capacity(nodes),
            buckets: Vec::new(),
        }
    }

    /// The reduced cost of taking up a unit of an interval; giving one up has the opposite one.
    fn cost(&self, i: &Interval) -> i64 {
        self.height[i.end as usize] - self.height[i.first as usize] - i.rate
    }

    /// The side to go towards: that of fewer nodes, with some preference for lacks.
    fn fewer(&self) -> Side {
        let count = |side: Side| self.excess.iter().filter(|&&e| side.holds(e)).count();
        if 2 * count(Side::Surplus) < count(Side::Lack) { Side::Surplus } else { Side::Lack }
    }

    /// Finds the distance of every node to the nearest lack, or from the nearest surplus, and moves the
    /// potentials by it. False when some node of the other side was not reached.
    fn label(&mut self, towards: Side) -> bool {
        self.distance.fill(FAR);
        self.place.fill(u32::MAX);
        self.order.clear();
        for node in 0..self.excess.len() {
            if towards.holds(self.excess[node]) {
                self.reach(node, 0);
            }
        }
        let from = towards.other();
        let mut waiting = self.excess.iter().filter(|&&e| from.holds(e)).count();
        let mut at = 0;
        while at < self.buckets.len() && waiting > 0 {
            let mut next = 0;
            while next < self.buckets[at].len() {
                let node = self.buckets[at][next] as usize;
                next += 1;
                if self.distance[node] == at as i64 && self.place[node] == u32::MAX {
                    self.place[node] = self.order.len() as u32;
                    self.order.push(node as u32);
                    waiting -= usize::from(from.holds(self.excess[node]));
                    match towards {
                        Side::Lack => self.relax_into(node),
                        Side::Surplus => self.relax_out_of(node),
                    }
                }
            }
            at += 1;
        }
        self.buckets.iter_mut().for_each(Vec::clear);
        // Whoever was not reached is at least as far as the last one reached.
        let farthest = self.order.last().map_or(0, |&n| self.distance[n as usize]);
        for (height, (&distance, &place)) in self.height.iter_mut().zip(self.distance.iter().zip(&self.place)) {
            let distance = if place == u32::MAX { farthest } else { distance };
            *height += if towards == Side::Lack { distance } else { -distance };
        }
        waiting == 0
    }

    fn reach(&mut self, node: usize, distance: i64) {
        if distance < self.distance[node] {
            self.distance[node] = distance;
            let bucket = distance as usize;
            if bucket >= self.buckets.len() {
                self.buckets.resize_with(bucket + 1, Vec::new);
            }
            self.buckets[bucket].push(node as u32);
        }
    }

    /// Offers the distance of `node` to all nodes from which a residual arc leads to it.
    fn relax_into(&mut self, node: usize) {
        let distance = self.distance[node];
        if node > 0 {
            self.reach(node - 1, distance + self.height[node] - self.height[node - 1]);
        }
        if node < self.slack.len() && self.slack[node] > 0 {
            self.reach(node + 1, distance);
        }
        for k in self.ending.range(node) {
            let g = self.ending.items[k] as usize;
            let i = &self.intervals[g];
            if self.kept[g] < i.size {
                self.reach(i.first as usize, distance + self.cost(i));
            }
        }
        for k in self.starting.range(node) {
            let g = self.starting.items[k] as usize;
            let i = &self.intervals[g];
            if self.kept[g] > 0 {
                self.reach(i.end as usize, distance - self.cost(i));
            }
        }
    }

    /// Offers the distance of `node` to all nodes to which a residual arc leads from it.
    fn relax_out_of(&mut self, node: usize) {
        let distance = self.distance[node];
        if node < self.slack.len() {
            self.reach(node + 1, distance + self.height[node + 1] - self.height[node]);
        }
        if node > 0 && self.slack[node - 1] > 0 {
            self.reach(node - 1, distance);
        }
        for k in self.starting.range(node) {
            let g = self.starting.items[k] as usize;
            let i = &self.intervals[g];
            if self.kept[g] < i.size {
                self.reach(i.end as usize, distance + self.cost(i));
            }
        }
        for k in self.ending.range(node) {
            let g = self.ending.items[k] as usize;
            let i = &self.intervals[g];
            if self.kept[g] > 0 {
                self.reach(i.first as usize, distance - self.cost(i));
            }
        }
    }

    /// Sends units over towards the lacks, or lacks towards units over, from the farthest node to the
    /// nearest.
    fn sweep(&mut self, towards: Side) {
        for at in (0..self.order.len()).rev() {
            let node = self.order[at] as usize;
            match towards {
                Side::Lack if self.excess[node] > 0 => self.push(node),
                Side::Surplus if self.excess[node] < 0 => self.pull(node),
                _ => {}
            }
        }
    }

    /// Pushes what `node` has over along arcs of reduced cost 0 to nodes nearer to a lack.
    fn push(&mut self, node: usize) {
        let place = self.place[node];
        if node > 0 && self.slack[node - 1] > 0 && self.place[node - 1] < place {
            let units = self.excess[node].min(self.slack[node - 1]);
            self.slack[node - 1] -= units;
            self.shift(node, node - 1, units);
        }
        for k in self.ending.range(node) {
            let g = self.ending.items[k] as usize;
            let first = self.intervals[g].first as usize;
            let units = self.excess[node].min(self.kept[g]);
            if units > 0 && self.place[first] < place && self.cost(&self.intervals[g]) == 0 {
                self.kept[g] -= units;
                self.shift(node, first, units);
            }
        }
        for k in self.starting.range(node) {
            let g = self.starting.items[k] as usize;
            let end = self.intervals[g].end as usize;
            let units = self.excess[node].min(self.intervals[g].size - self.kept[g]);
            if units > 0 && self.place[end] < place && self.cost(&self.intervals[g]) == 0 {
                self.kept[g] += units;
                self.shift(node, end, units);
            }
        }
        let units = self.excess[node];
        if node < self.slack.len()
            && units > 0
            && self.place[node + 1] < place
            && self.height[node + 1] == self.height[node]
        {
            self.slack[node] += units;
            self.shift(node, node + 1, units);
        }
    }

    /// Pulls what `node` lacks along arcs of reduced cost 0 from nodes nearer to a surplus.
    fn pull(&mut self, node: usize) {
        let place = self.place[node];
        if node < self.slack.len() && self.slack[node] > 0 && self.place[node + 1] < place {
            let units = (-self.excess[node]).min(self.slack[node]);
            self.slack[node] -= units;
            self.shift(node + 1, node, units);
        }
        for k in self.starting.range(node) {
            let g = self.starting.items[k] as usize;
            let end = self.intervals[g].end as usize;
            let units = (-self.excess[node]).min(self.kept[g]);
            if units > 0 && self.place[end] < place && self.cost(&self.intervals[g]) == 0 {
                self.kept[g] -= units;
                self.shift(end, node, units);
            }
        }
        for k in self.ending.range(node) {
            let g = self.ending.items[k] as usize;
            let first = self.intervals[g].first as usize;
            let units = (-self.excess[node]).min(self.intervals[g].size - self.kept[g]);
            if units > 0 && self.place[first] < place && self.cost(&self.intervals[g]) == 0 {
                self.kept[g] += units;
                self.shift(first, node, units);
            }
        }
        let units = -self.excess[node];
        if node > 0 && units > 0 && self.place[node - 1] < place && self.height[node - 1] == self.height[node] {
            self.slack[node - 1] += units;
            self.shift(node - 1, node, units);
        }
    }

    fn shift(&mut self, from: usize, to: usize, units: i64) {
        let over = |e: i64| e.max(0);
        let before = over(self.excess[from]) + over(self.excess[to]);
        self.excess[from] -= units;
        self.excess[to] += units;
        self.over -= before - over(self.excess[from]) - over(self.excess[to]);
    }
}

/// Interval numbers grouped by node.
struct Adjacency {
    starts: Vec<u32>,
    items: Vec<u32>,
}

impl Adjacency {
    fn new(nodes: usize, of: impl Iterator<Item = u32> + Clone) -> Self {
        let mut starts = vec![0u32; nodes + 1];
        of.clone().for_each(|n| starts[n as usize + 1] += 1);
        for n in 0..nodes {
            starts[n + 1] += starts[n];
        }
        let mut next = starts.clone();
        let mut items = vec![0; starts[nodes] as usize];
        for (g, n) in of.enumerate() {
            items[next[n as usize] as usize] = g as u32;
            next[n as usize] += 1;
        }
        Self { starts, items }
    }

    fn range(&self, node: usize) -> std::ops::Range<usize> {
        self.starts[node] as usize..self.starts[node + 1] as usize
    }
}
