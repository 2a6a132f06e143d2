//! What is decided before anything is emitted: which tensors are views of others, which operators
//! run tile by tile behind each other, and how fine the tiles are.

use super::infer::{Program, Task};
use super::kernel::{Kernel, same};
use super::network::TensorIx;
use super::region::{Region, apply, reshape};
use super::tensor::Shape;
use super::tiling::Tiling;

/// Size of a tile and the scale of all sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scale {
    /// Units of a tile, at most.
    pub tile: u64,
    /// Bytes that one unit of size stands for.
    pub bytes_per_unit: u64,
}

impl Scale {
    /// The most elements of a tile of elements of `width` bytes.
    pub fn elements(self, width: u64) -> u64 {
        (self.tile.saturating_mul(self.bytes_per_unit) / width).max(1)
    }

    /// The units of so many elements.
    pub fn units(self, elements: u64, width: u64) -> u64 {
        elements.saturating_mul(width).div_ceil(self.bytes_per_unit).max(1)
    }
}

/// How a tensor is stored: as itself, or as another one that it is a view of.
#[derive(Clone, Debug)]
struct Storage {
    base: TensorIx,
    /// The reshapes to the base, the last made first: (shape of the view, shape below it).
    views: Vec<(Shape, Shape)>,
}

/// A program with its tensors resolved to storage and its tasks put into groups.
pub(super) struct Plan<'a> {
    pub program: &'a Program,
    storage: Vec<Storage>,
    /// By tensor: true when no task computes it, so that it stands in main memory at the start.
    pub in_memory: Vec<bool>,
    /// By base tensor: true when it is an output of the network.
    pub is_output: Vec<bool>,
    /// By base tensor: the tasks that read it, views left out.
    readers: Vec<Vec<usize>>,
}

impl<'a> Plan<'a> {
    pub fn new(program: &'a Program) -> Self {
        let count = program.tensors.len();
        let own = |t| Storage { base: TensorIx(t), views: Vec::new() };
        let mut storage: Vec<_> = (0..count).map(own).collect();
        let mut in_memory = vec![true; count];
        let mut readers = vec![Vec::new(); count];
        for (i, task) in program.tasks.iter().enumerate() {
            if let (Kernel::View, Some(Some(input))) = (&task.kernel, task.inputs.first()) {
                let shape = |t: TensorIx| program.tensors[t.0].shape.clone();
                let below = storage[input.0].clone();
                let mut views = vec![(shape(task.output), shape(*input))];
                views.extend(below.views);
                in_memory[task.output.0] = in_memory[below.base.0];
                storage[task.output.0] = Storage { base: below.base, views };
            } else {
                in_memory[task.output.0] = false;
                for place in inputs_of(task) {
                    if let Some(Some(t)) = task.inputs.get(place) {
                        readers[storage[t.0].base.0].push(i);
                    }
                }
            }
        }
        let mut is_output = vec![false; count];
        program.outputs.iter().for_each(|t| is_output[storage[t.0].base.0] = true);
        Self { program, storage, in_memory, is_output, readers }
    }

    /// The tensor that stores another one.
    pub fn base(&self, tensor: TensorIx) -> TensorIx {
        self.storage[tensor.0].base
    }

    /// Where a box of a tensor is stored: the base tensor and the box of it.
    pub fn stored(&self, tensor: TensorIx, mut region: Region) -> (TensorIx, Region) {
        let storage = &self.storage[tensor.0];
        for (view, below) in &storage.views {
            region = reshape(&region, view, below);
        }
        (storage.base, region)
    }

    /// The shape of a tensor.
    pub fn shape(&self, tensor: TensorIx) -> &'a Shape {
        &self.program.tensors[tensor.0].shape
    }

    /// The bytes of an element of a tensor.
    pub fn width(&self, tensor: TensorIx) -> u64 {
        self.program.tensors[tensor.0].data_type.width()
    }

    /// The tiles of every tensor.
    pub fn tilings(&self, scale: Scale) -> Vec<Tiling> {
        let tensors = self.program.tensors.iter();
        tensors.map(|t| Tiling::new(&t.shape, scale.elements(t.data_type.width()))).collect()
    }

    /// True when some task outside `group` reads the tensor.
    pub fn is_read_outside(&self, tensor: TensorIx, group: &[usize]) -> bool {
        self.readers[tensor.0].iter().any(|r| !group.contains(r))
    }

    /// The tasks in groups. The tiles of a group are computed one by one through all its tasks: a
    /// first task, then elementwise ones, each on the tile that the one before has left in UB.
    pub fn groups(&self, tilings: &[Tiling]) -> Vec<Vec<usize>> {
        let tasks = &self.program.tasks;
        let mut taken = vec![false; tasks.len()];
        let mut done = self.in_memory.clone();
        let mut groups = Vec::new();
        for head in 0..tasks.len() {
            if taken[head] || tasks[head].kernel == Kernel::View {
                continue;
            }
            let mut group = vec![head];
            taken[head] = true;
            while let Some(next) = self.fusable(&group, &taken, &done, tilings) {
                taken[next] = true;
                group.push(next);
            }
            group.iter().for_each(|&t| done[tasks[t].output.0] = true);
            groups.push(group);
        }
        groups
    }

    /// The first task that can go on with the tile that the last task of `group` leaves.
    fn fusable(&self, group: &[usize], taken: &[bool], done: &[bool], tilings: &[Tiling]) -> Option<usize> {
        let tasks = &self.program.tasks;
        let tail = tasks[*group.last()?].output;
        let fits = |&&next: &&usize| {
            let Kernel::Vector(vector) = &tasks[next].kernel else { return false };
            let tiles = &tilings[tasks[next].output.0];
            let elementwise = same(self.shape(tasks[next].output).rank());
            let on_tile = |t: TensorIx, map: &[_]| tilings[t.0] == *tiles && *map == elementwise;
            let mut on_tail = false;
            let ready = vector.reads.iter().all(|(place, map)| {
                let Some(Some(t)) = tasks[next].inputs.get(*place).copied() else { return false };
                on_tail |= t == tail;
                let in_group = group.iter().any(|&g| tasks[g].output == t);
                if in_group { on_tile(t, map) } else { done[self.base(t).0] }
            });
            ready && on_tail && vector.stats.is_none() && !taken[next]
        };
        // A long list of readers would be walked again and again.
        self.readers[tail.0].iter().take(64).find(fits).copied()
    }

    /// About how many nodes the program will have: exact for tiles in the middle of regular
    /// tensors, without the seams and the ends.
    pub fn estimate(&self, tilings: &[Tiling]) -> u64 {
        let tasks = self.program.tasks.iter().filter(|t| t.kernel != Kernel::View);
        tasks.map(|t| self.estimate_task(t, tilings)).fold(0, u64::saturating_add)
    }

    fn estimate_task(&self, task: &Task, tilings: &[Tiling]) -> u64 {
        let tiles = tilings[task.output.0].count();
        if tiles == 0 {
            return 0;
        }
        let stored = |place: usize| task.inputs.get(place).copied().flatten().map(|t| self.base(t));
        let fetched = inputs_of(task).into_iter().filter_map(stored).map(|t| 3 * tilings[t.0].count());
        let fetched = fetched.fold(0, u64::saturating_add);
        let out = tilings[task.output.0].region(tiles / 2);
        let per_tile = match &task.kernel {
            Kernel::Cube(cube) => {
                let right = task.inputs.get(cube.right).copied().flatten();
                let region = right.and_then(|t| Some(self.stored(t, apply(&cube.right_map, &out, self.shape(t))?)));
                let steps = region.map_or(1, |(base, region)| tilings[base.0].touching(&region));
                let each = if cube.through_l0a { 7 } else { 4 };
                steps.saturating_mul(each).saturating_add(8)
            }
            _ => 6,
        };
        tiles.saturating_mul(per_tile).saturating_add(fetched)
    }
}

/// The inputs that a task reads, by their place in the node.
fn inputs_of(task: &Task) -> Vec<usize> {
    match &task.kernel {
        Kernel::View | Kernel::Constant => Vec::new(),
        Kernel::Vector(v) => v.reads.iter().map(|r| r.0).collect(),
        Kernel::Cube(c) => [c.left, c.right].into_iter().chain(c.bias.as_ref().map(|b| b.0)).collect(),
        Kernel::Gather(g) => vec![g.data.0, g.indices.0],
    }
}
