//! Dense index newtypes, one per entity, and the compressed adjacency they index.
//!
//! External ids are read once and kept for output; inside, everything is one of these. Mixing two
//! of them does not compile.

use typed_index_collections::TiSlice;

macro_rules! index_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);

        impl $name {
            /// The index of the `i`-th entity.
            #[inline]
            pub fn new(i: usize) -> Self {
                debug_assert!(i < u32::MAX as usize, "index space exhausted");
                Self(i as u32)
            }

            /// The place of this entity in dense storage.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl From<usize> for $name {
            #[inline]
            fn from(i: usize) -> Self {
                Self::new(i)
            }
        }

        impl From<$name> for usize {
            #[inline]
            fn from(i: $name) -> usize {
                i.index()
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
    };
}

index_type!(
    /// A node of a graph.
    NodeIx
);
index_type!(
    /// A buffer of a graph.
    BufIx
);
index_type!(
    /// A cache named by a graph.
    CacheIx
);
index_type!(
    /// A pipe named by a graph or by the spill pipes of its hardware.
    PipeIx
);
index_type!(
    /// An operation name.
    OpIx
);
index_type!(
    /// A place in a schedule, counted from 0.
    Pos
);
index_type!(
    /// A step of a plan, wherever it stands: the nodes of the graph under their own indices, then
    /// `SPILL_OUT` and `SPILL_IN` of each spill, in the order of the plan's list.
    StepIx
);
index_type!(
    /// A residency segment of a plan: those that the `ALLOC`s begin by buffer, then those that the
    /// spills begin in the order of the plan's list.
    SegIx
);

impl StepIx {
    /// Stands for no step.
    pub(crate) const NONE: Self = Self(u32::MAX);
}

/// Lists of `V`, one per `K`, in one arena.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lists<K, V> {
    starts: Vec<u32>,
    items: Vec<V>,
    key: std::marker::PhantomData<K>,
}

impl<K: Copy, V> Lists<K, V>
where
    usize: From<K>,
{
    /// An empty arena with no lists.
    pub fn new() -> Self {
        Self::with_capacity(0, 0)
    }

    /// An empty arena with room for `lists` lists of `items` items in all.
    pub fn with_capacity(lists: usize, items: usize) -> Self {
        let mut starts = Vec::with_capacity(lists + 1);
        starts.push(0);
        Self { starts, items: Vec::with_capacity(items), key: std::marker::PhantomData }
    }

    /// Appends an item to the list that is being filled; [`Lists::close`] ends it.
    #[inline]
    pub fn push(&mut self, item: V) {
        self.items.push(item);
    }

    /// The items pushed since the last [`Lists::close`].
    #[inline]
    pub fn open(&self) -> &[V] {
        &self.items[self.starts[self.starts.len() - 1] as usize..]
    }

    /// Ends the list that is being filled and begins the next.
    #[inline]
    pub fn close(&mut self) {
        self.starts.push(self.items.len() as u32);
    }

    /// The list of `key`.
    #[inline]
    pub fn get(&self, key: K) -> &[V] {
        let k = usize::from(key);
        &self.items[self.starts[k] as usize..self.starts[k + 1] as usize]
    }

    /// Where the list of `key` begins in [`Lists::items`].
    #[inline]
    pub fn start(&self, key: K) -> usize {
        self.starts[usize::from(key)] as usize
    }

    /// All items, list after list.
    pub fn items(&self) -> &[V] {
        &self.items
    }

    /// The number of closed lists.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// True when no list was closed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<K: Copy, V> Default for Lists<K, V>
where
    usize: From<K>,
{
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Copy, V: Copy + Into<usize>> Lists<K, V>
where
    usize: From<K>,
{
    /// Groups `pairs` by key, each list in the order of `pairs`; a repeated pair counts once.
    pub(crate) fn grouped(keys: usize, values: usize, pairs: &[(K, V)]) -> Self {
        let mut starts = vec![0u32; keys + 1];
        for &(k, _) in pairs {
            starts[usize::from(k) + 1] += 1;
        }
        for k in 0..keys {
            starts[k + 1] += starts[k];
        }
        let Some(&(_, filler)) = pairs.first() else {
            return Self { starts, items: Vec::new(), key: std::marker::PhantomData };
        };
        let mut next = starts.clone();
        let mut items = vec![filler; pairs.len()];
        for &(k, v) in pairs {
            let slot = &mut next[usize::from(k)];
            items[*slot as usize] = v;
            *slot += 1;
        }
        let mut lists = Self { starts, items, key: std::marker::PhantomData };
        lists.drop_repeats(values);
        lists
    }

    fn drop_repeats(&mut self, values: usize) {
        let mut seen_in = vec![u32::MAX; values];
        let (mut write, mut read) = (0, 0);
        for k in 0..self.starts.len() - 1 {
            let end = self.starts[k + 1] as usize;
            self.starts[k] = write as u32;
            while read < end {
                let item = self.items[read];
                let mark = &mut seen_in[item.into()];
                if *mark != k as u32 {
                    *mark = k as u32;
                    self.items[write] = item;
                    write += 1;
                }
                read += 1;
            }
        }
        if let Some(last) = self.starts.last_mut() {
            *last = write as u32;
        }
        self.items.truncate(write);
    }
}

/// The indices of a typed slice, in order.
pub fn indices<K: From<usize>, V>(
    slice: &TiSlice<K, V>,
) -> impl DoubleEndedIterator<Item = K> + ExactSizeIterator + use<K, V> {
    (0..slice.len()).map(K::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grouping_keeps_order_and_drops_repeats() {
        let n = NodeIx::new;
        let pairs = [(n(2), n(0)), (n(0), n(2)), (n(2), n(1)), (n(2), n(0)), (n(0), n(1))];
        let lists = Lists::grouped(4, 3, &pairs);
        assert_eq!(lists.get(n(0)), [n(2), n(1)]);
        assert_eq!(lists.get(n(1)), []);
        assert_eq!(lists.get(n(2)), [n(0), n(1)]);
        assert_eq!(lists.get(n(3)), []);
        assert_eq!(lists.len(), 4);
    }

    #[test]
    fn grouping_nothing_gives_empty_lists() {
        let lists = Lists::<NodeIx, NodeIx>::grouped(2, 2, &[]);
        assert_eq!(lists.get(NodeIx::new(1)), []);
    }
}
