//! What `explain` says in text.

use crate::analysis::explain::{
    BufferCost, CacheTimeline, ClearingStory, DecisionStory, Event, Explanation, Held, Share, VictimStory, WhatIf,
};
use crate::analysis::gap::Excess;
use crate::analysis::run::Run;
use crate::console::Console;
use crate::error::CliError;
use crate::report::{self, Grid, bytes, count, grouped, grouped_bytes, percent};
use crate::trace;
use spillbench_bounds::attribution::When;
use spillbench_core::Shown;

/// How far a plan is from its bound, and what put it there.
pub(super) fn excess_of(excess: &Excess, when: When, console: &mut Console) -> Result<(), CliError> {
    if let Some(line) = report::gap(&excess.gap, when) {
        console.line(line)?;
    }
    let (Some(a), true) = (&excess.attribution, excess.gap.gap.is_some_and(|g| g.0 > 0)) else { return Ok(()) };
    let mut grid = Grid::new(&["<cause", "moved", "<"]);
    let capacity = match a.order {
        Some(_) => "the bound of the best order known",
        None => "the bound of this order",
    };
    let mut part = |cause: &str, bytes: i128, what: &str| {
        grid.row([cause.to_owned(), signed(bytes), what.to_owned()]);
    };
    part("capacity", a.capacity, capacity);
    if let Some(order) = a.order {
        part("order", order, "the bound of this order, beyond that");
    }
    part("victims", a.victims, "by the same policy without addresses, beyond that");
    if let Some(fragmentation) = a.fragmentation {
        part("fragmentation", fragmentation, "this plan, beyond that");
    }
    console.line(format_args!("\nWhere the movement comes from\n{grid}"))
}

/// Why a plan spills.
pub(super) fn explanation(e: &Explanation, run: &Run, console: &mut Console) -> Result<(), CliError> {
    let Some(metrics) = &run.verdict.metrics else { return Ok(()) };
    let requests = run.plan.counters.map_or(0, |c| c.requests);
    console.line(format_args!(
        "{} {} in {} of {}; {} of {} for space found no hole.",
        grouped_bytes(metrics.extra_movement),
        if metrics.extra_movement.0 == 1 { "moves" } else { "move" },
        count(metrics.spill_count as usize, "spill"),
        count(e.moved_buffers, "buffer"),
        grouped(e.failed_requests as u64),
        count(requests as usize, "request")
    ))?;
    if e.by_reservations.spills > 0 {
        let (spills, moved) = (count(e.by_reservations.spills, "spill"), grouped_bytes(e.by_reservations.moved));
        console.line(format_args!("\nForced by reservations: {spills} of {moved}, out of their way"))?;
        e.reservations.iter().try_for_each(|c| print_clearing(c, console))?;
    }
    if e.failed_requests == 0 {
        return Ok(());
    }
    console.line(format_args!("\nRequests that found no hole, by cache\n{}", cache_grid(e)))?;
    console.line(format_args!("By what the space was for\n{}", op_grid(e)))?;
    let all = grouped(e.failed_requests as u64);
    console.line(format_args!("The dearest requests ({} of {all})", grouped(e.decisions.len() as u64)))?;
    e.decisions.iter().try_for_each(|d| print_decision(d, console))?;
    if !e.buffers.is_empty() {
        console.line(format_args!("\nThe dearest buffers ({} of {})", e.buffers.len(), e.moved_buffers))?;
        e.buffers.iter().try_for_each(|b| print_buffer(b, console))?;
    }
    let pressed: Vec<_> = e.timeline.iter().filter(|t| e.by_cache.iter().any(|c| c.cache == t.cache)).collect();
    console.line(format_args!("\nAlong the schedule, by tenths\n{}", timeline_grid(&pressed)))
}

const SHARE_HEAD: [&str; 6] = ["failed", "postponed", "spills", "moved", "by capacity", "by fragmentation"];

fn share_cells(share: &Share) -> [String; 6] {
    [
        grouped(share.failed_requests as u64),
        grouped(share.postponed as u64),
        grouped(share.spills as u64),
        grouped(share.moved),
        grouped(share.by_capacity),
        grouped(share.by_fragmentation),
    ]
}

fn cache_grid(e: &Explanation) -> Grid {
    let mut grid = Grid::new(&[&["<cache"][..], &SHARE_HEAD].concat());
    for c in &e.by_cache {
        grid.row(std::iter::once(c.cache.clone()).chain(share_cells(&c.share)));
    }
    grid
}

fn op_grid(e: &Explanation) -> Grid {
    let mut grid = Grid::new(&[&["<op", "<request", "<cache"][..], &SHARE_HEAD].concat());
    for o in &e.by_op {
        let what = [o.op.clone(), o.request.to_owned(), o.cache.clone()];
        grid.row(what.into_iter().chain(share_cells(&o.share)));
    }
    grid
}

/// How many buffers one line names.
const NAMED: usize = 6;

fn list<T>(items: &[T], tell: impl Fn(&T) -> String) -> String {
    let named: Vec<_> = items.iter().take(NAMED).map(tell).collect();
    let more = items.len() - named.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    named.join(", ") + &more
}

fn print_decision(d: &DecisionStory, console: &mut Console) -> Result<(), CliError> {
    console.line(format_args!(
        "  position {}, node {} ({}): buffer {} needs {} of {}; {} ({} free, largest hole {})",
        d.position,
        d.node,
        Shown(&d.op),
        d.buf,
        bytes(d.needed),
        Shown(&d.cache),
        d.cause,
        d.free,
        d.largest_hole
    ))?;
    if d.victims.is_empty() {
        return console.line(format_args!("    {}", d.met_by));
    }
    let moved = grouped_bytes(d.moved);
    console.line(format_args!(
        "    {} moves {moved}: {}{runner_up}",
        d.met_by,
        list(&d.victims, victim),
        runner_up = runner_up(d)
    ))?;
    let held = d.held_by.iter().map(|h| h.size).sum();
    let mut holders: Vec<_> = d.held_by.iter().collect();
    holders.sort_by_key(|h| std::cmp::Reverse((h.size, h.next_use_in)));
    console.line(format_args!(
        "    held by {}, {}: {}",
        count(holders.len(), "buffer"),
        grouped_bytes(held),
        list(&holders, |h| holder(h))
    ))
}

fn print_clearing(c: &ClearingStory, console: &mut Console) -> Result<(), CliError> {
    let (node, op, cache) = (c.node, Shown(&c.op), Shown(&c.cache));
    let (usable, moved) = (grouped_bytes(c.usable), grouped_bytes(c.moved));
    console
        .line(format_args!("  position {}, node {node} ({op}): leaves {usable} of {cache}; {}", c.position, c.cause))?;
    console.line(format_args!("    moves {moved}: {}", list(&c.victims, victim)))
}

/// The best-scored buffer that stayed; under `single`, one that scores higher opens no hole.
fn runner_up(d: &DecisionStory) -> String {
    let Some(r) = &d.runner_up else { return String::new() };
    let (buf, score) = (r.buf, trace::score(r.score));
    let best = d.victims.first().and_then(|v| v.score);
    if d.met_by == "single" && best.is_some_and(|best| best < r.score) {
        format!("; buffer {buf} (score {score}) stays, for its place opens no hole large enough")
    } else {
        format!("; best-scored that stays: buffer {buf} (score {score})")
    }
}

fn victim(v: &VictimStory) -> String {
    let score = v.score.map_or_else(String::new, |s| format!(", score {}", trace::score(s)));
    format!("buffer {} ({} at {}{score}, next use in {})", v.buf, v.size, v.offset, v.next_use_in)
}

fn holder(h: &Held) -> String {
    if h.pinned {
        format!("{} ({}, operand)", h.buf, h.size)
    } else {
        format!("{} ({}, next use in {})", h.buf, h.size, h.next_use_in)
    }
}

fn print_buffer(b: &BufferCost, console: &mut Console) -> Result<(), CliError> {
    const HAPPENINGS: usize = 24;
    console.line(format_args!(
        "  buffer {} of {}: {}, {}; moves {} in {}; {}, longest gap {}",
        b.buf,
        Shown(&b.cache),
        bytes(b.size),
        if b.backed { "backed" } else { "generated" },
        grouped_bytes(b.moved),
        count(b.spills, "spill"),
        count(b.uses, "use"),
        grouped(b.longest_gap as u64)
    ))?;
    let name = |event| match event {
        Event::Alloc => "alloc",
        Event::Use => "use",
        Event::Out => "out",
        Event::Back => "back",
        Event::Free => "free",
    };
    let shown: Vec<_> =
        b.pattern.iter().take(HAPPENINGS).map(|h| format!("{} {}", name(h.event), h.position)).collect();
    let more = b.pattern.len() - shown.len();
    let more = if more > 0 { format!(", {more} more") } else { String::new() };
    console.line(format_args!("    {}{more}", shown.join(", ")))
}

fn timeline_grid(timeline: &[&CacheTimeline]) -> Grid {
    let tenths: Vec<_> = (1..=timeline.first().map_or(0, |t| t.spills.len())).map(|t| t.to_string()).collect();
    let head: Vec<_> = ["<cache", "<"].into_iter().chain(tenths.iter().map(String::as_str)).collect();
    let mut grid = Grid::new(&head);
    for t in timeline {
        let share = |values: &[f64]| values.iter().map(|v| format!("{:.0}%", v * 100.0)).collect::<Vec<_>>();
        let mut row = |what: &str, cells: Vec<String>| {
            grid.row([t.cache.clone(), what.to_owned()].into_iter().chain(cells));
        };
        row("full", share(&t.occupancy));
        row("fragmented", share(&t.fragmentation));
        row("spills", t.spills.iter().map(|&s| grouped(s as u64)).collect());
        row("moved", t.moved.iter().map(|&m| grouped(m)).collect());
    }
    grid
}

/// Which single changes would save most.
pub(super) fn changes(changes: &[WhatIf], run: &Run, top: usize, console: &mut Console) -> Result<(), CliError> {
    let Some(metrics) = &run.verdict.metrics else { return Ok(()) };
    if changes.is_empty() {
        return Ok(());
    }
    let saving = changes.iter().filter(|c| c.saved > 0).count();
    console.line(format_args!(
        "Single changes, each planned: {saving} of {} {}, the first most",
        count(changes.len(), "change"),
        if saving == 1 { "saves" } else { "save" }
    ))?;
    let mut grid = Grid::new(&["<change", "<to", "moved", "saved", "", "spills", "makespan", "cycles saved"]);
    for c in changes.iter().take(top) {
        grid.row([
            c.change.to_owned(),
            c.value.clone(),
            grouped(c.extra_movement),
            signed(c.saved),
            match c.saved {
                0.. => percent(c.saved as u64, metrics.extra_movement.into()),
                _ => String::new(),
            },
            grouped(c.spill_count),
            c.makespan.map_or_else(|| "-".to_owned(), grouped),
            c.cycles_saved.map_or_else(|| "-".to_owned(), signed),
        ]);
    }
    console.line(grid.to_string().trim_end())
}

fn signed(number: i128) -> String {
    let sign = if number < 0 { "-" } else { "" };
    sign.to_owned() + &grouped(u64::try_from(number.unsigned_abs()).unwrap_or(u64::MAX))
}
