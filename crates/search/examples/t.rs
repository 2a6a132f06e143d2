//! Scratch.
use spillbench_core::*;
use spillbench_search::*;
struct Quiet;
impl Monitor for Quiet {
    fn improved(&mut self, _: &Plan, p: Progress) {
        eprintln!("  {p:?} {:.1}", cpu());
    }
}
fn cpu() -> f64 {
    let s = std::fs::read_to_string("/proc/self/stat").unwrap();
    let f: Vec<&str> = s.rsplit(')').next().unwrap().split_whitespace().collect();
    f[11].parse::<f64>().unwrap() / 100.0
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let bytes = std::fs::read(&a[1]).unwrap();
    let graph = formats::graph_json::read(&bytes).unwrap().0;
    let machine = Machine::resolve(&graph, &Hardware::default()).unwrap();
    let secs: f64 = a[3].parse().unwrap();
    let seed = a.get(4).map_or(0, |s| s.parse().unwrap());
    let file = a.get(5);
    let stop = || cpu() > secs;
    let mut start = Schedule::default_for(&graph);
    let config = SearchConfig { seed, islands: 1, ..Default::default() };
    if a[2] == "m" {
        let found = search(&graph, &machine, &start, &LeastMovement, &config, &stop, &mut Quiet).unwrap();
        let ids: Vec<String> =
            found.plan.schedule.iter().filter(|&&id| graph.node_by_id(id).is_some()).map(|i| i.0.to_string()).collect();
        std::fs::write(file.unwrap(), ids.join("\n")).unwrap();
        println!("{}", found.value);
        return;
    }
    if let Some(f) = file {
        let s = std::fs::read_to_string(f).unwrap();
        let ids: Vec<_> = s.lines().map(|l| graph.node_by_id(Id(l.parse().unwrap())).unwrap()).collect();
        start = Schedule::from_nodes(&graph, ids).unwrap();
    }
    let limit = a[2].parse::<u64>().map_or(Limit::None, Limit::Bytes);
    let settle = || file.is_some() || cpu() > secs * 0.15;
    let until = Until { settle: &settle, stop: &stop };
    let found = search_time(&graph, &machine, &start, Aim::Makespan(limit), &config, &until, &mut Quiet);
    println!("{} {:?} {:.1}", a[1], found.map(|f| (f.figures, f.progress)).map_err(|e| format!("{e:?}")), cpu());
}
