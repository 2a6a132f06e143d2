//! `cargo bench`: reading, planning per heuristic, checking, measuring, timing and retiming, on a lowered matmul of
//! 16×16×16 tiles (30,976 nodes, the size of the public Matmul_Case1), and planning from 10⁴ to 10⁶
//! nodes. `SPILLBENCH_BENCH_GRAPH=FILE.json` takes another graph for the first part.

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use spillbench_core::formats::graph_json;
use spillbench_core::index::Pos;
use spillbench_core::metrics::timing::TimedPlan;
use spillbench_core::{
    Graph, Hardware, Machine, Plan, Schedule, Workspace, checker, metrics, planner, schedule::Normalize,
};
use spillbench_heuristics::{HEURISTICS, Policy, heuristic};
use spillbench_workloads::{WorkloadSpec, generate};
use std::sync::LazyLock;

/// The graph of the first part, with its text and what planning it needs.
struct Subject {
    text: Vec<u8>,
    graph: Graph,
    machine: Machine,
    schedule: Schedule,
}

impl Subject {
    fn new(graph: Graph, text: Vec<u8>) -> Self {
        let machine = Machine::resolve(&graph, &Hardware::default()).expect("the caches of davinci");
        let schedule = Schedule::default_for(&graph).normalized(&graph, Normalize::default());
        Self { text, graph, machine, schedule }
    }

    fn generated(spec: &str) -> Self {
        let spec: WorkloadSpec = spec.parse().expect("a workload");
        let graph = generate(&spec).expect("a graph");
        let mut text = Vec::new();
        graph_json::write(&graph, &mut text).expect("writing to memory");
        Self::new(graph, text)
    }

    fn plan(&self, name: &str, workspace: &mut Workspace) -> Plan {
        let policy = Policy { heuristic: heuristic(name).expect("a heuristic"), ..Policy::default() };
        policy.plan(&self.graph, &self.machine, &self.schedule, workspace).expect("a plan")
    }

    fn nodes(&self) -> ItemsCount {
        ItemsCount::new(self.graph.node_count())
    }
}

static SUBJECT: LazyLock<Subject> = LazyLock::new(|| match std::env::var_os("SPILLBENCH_BENCH_GRAPH") {
    Some(path) => {
        let text = std::fs::read(path).expect("the graph of SPILLBENCH_BENCH_GRAPH");
        Subject::new(graph_json::read(&text).expect("a graph").0, text)
    }
    None => Subject::generated("matmul(m=16,n=16,k=16)"),
});

fn main() {
    divan::main();
}

#[divan::bench(sample_count = 30)]
fn read(bencher: Bencher<'_, '_>) {
    let text = &SUBJECT.text;
    bencher.counter(BytesCount::of_slice(text)).bench(|| graph_json::read(black_box(text)));
}

#[divan::bench(sample_count = 30)]
fn normalize(bencher: Bencher<'_, '_>) {
    let subject = &*SUBJECT;
    bencher
        .counter(subject.nodes())
        .bench(|| Schedule::default_for(&subject.graph).normalized(&subject.graph, Normalize::default()));
}

#[divan::bench(args = HEURISTICS.iter().map(|h| h.name), sample_count = 30)]
fn plan(bencher: Bencher<'_, '_>, name: &str) {
    let subject = &*SUBJECT;
    let mut workspace = Workspace::default();
    bencher.counter(subject.nodes()).bench_local(|| subject.plan(name, &mut workspace));
}

#[divan::bench(sample_count = 30)]
fn check(bencher: Bencher<'_, '_>) {
    let subject = &*SUBJECT;
    let plan = subject.plan("belady", &mut Workspace::default());
    bencher.counter(subject.nodes()).bench(|| checker::check(&subject.graph, &subject.machine, black_box(&plan)));
}

#[divan::bench(sample_count = 30)]
fn measure(bencher: Bencher<'_, '_>) {
    let subject = &*SUBJECT;
    let plan = subject.plan("belady", &mut Workspace::default());
    bencher.counter(subject.nodes()).bench(|| metrics::measure(&subject.graph, &subject.machine, black_box(&plan)));
}

/// The time of every step, from the ids of the plan on.
#[divan::bench(sample_count = 30)]
fn time(bencher: Bencher<'_, '_>) {
    let subject = &*SUBJECT;
    let plan = subject.plan("belady", &mut Workspace::default());
    bencher
        .counter(subject.nodes())
        .bench(|| metrics::timing::segment(&subject.graph, &subject.machine, black_box(&plan)));
}

/// The same with all that each step waits for.
#[divan::bench(sample_count = 30)]
fn time_network(bencher: Bencher<'_, '_>) {
    let subject = &*SUBJECT;
    let plan = subject.plan("belady", &mut Workspace::default());
    bencher.counter(subject.nodes()).bench(|| TimedPlan::new(&subject.graph, &subject.machine, black_box(&plan)));
}

/// The plan with two neighbours of a pipe swapped in its middle, and swapped back.
#[divan::bench(sample_count = 30)]
fn time_swapped(bencher: Bencher<'_, '_>) {
    let subject = &*SUBJECT;
    let plan = subject.plan("belady", &mut Workspace::default());
    let mut timed = TimedPlan::new(&subject.graph, &subject.machine, &plan).expect("a plan").expect("timing");
    let middle = timed.order().len() / 2;
    let swap = (middle..timed.order().len() - 1).find_map(|at| {
        let at = Pos::new(at);
        let (first, second) = (timed.order()[at], timed.order()[Pos::new(at.index() + 1)]);
        timed.reorder(at, &[second, first]).ok().map(|_| (at, first, second))
    });
    let (at, first, second) = swap.expect("neighbours that may be swapped");
    bencher.bench_local(|| {
        let back = timed.reorder(at, black_box(&[first, second]));
        back.and_then(|_| timed.reorder(at, black_box(&[second, first])))
    });
}

#[divan::bench(sample_count = 5)]
fn retime(bencher: Bencher<'_, '_>) {
    let subject = &*SUBJECT;
    let plan = subject.plan("belady", &mut Workspace::default());
    bencher
        .counter(subject.nodes())
        .bench(|| planner::retime::retime(&subject.graph, &subject.machine, black_box(&plan)));
}

/// Planning alone, `belady`, at a constant pressure: cost per node should not grow.
#[divan::bench(args = [10_000, 31_623, 100_000, 316_228, 1_000_000], sample_count = 5)]
fn plan_by_size(bencher: Bencher<'_, '_>, nodes: usize) {
    let subject = Subject::generated(&format!("layered-dag(nodes={nodes})"));
    let mut workspace = Workspace::default();
    bencher.counter(subject.nodes()).bench_local(|| subject.plan("belady", &mut workspace));
}
