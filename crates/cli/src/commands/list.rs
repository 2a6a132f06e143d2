//! `spillbench list`: the names that options take, one line each.

use crate::console::{Console, Outcome};
use crate::error::CliError;
use crate::report::Grid;
use crate::resolve::{NO_STRATEGY, unknown};
use clap::Args;
use serde::Serialize;
use spillbench_core::hardware::PRESETS;
use spillbench_core::planner::{Placement, Strategy};
use spillbench_core::schedule::Normalize;
use spillbench_heuristics::{CHAINS, HEURISTICS};
use spillbench_search::ORDERS;
use spillbench_workloads::{FAMILIES, Family, Parameter};
use std::collections::BTreeMap;

/// Arguments of `list`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  spillbench list placements")]
pub struct ListArgs {
    /// What to list: heuristics, strategies, chains, placements, presets, normalize, orders,
    /// workloads, spill-costs; by default all of them
    #[arg(value_name = "KIND")]
    kinds: Vec<String>,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

/// A name with what it stands for.
#[derive(Debug, Serialize)]
struct Entry {
    name: String,
    about: String,
    /// What can be set of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parameters: Vec<ParameterEntry>,
}

/// A parameter of a workload.
#[derive(Debug, Serialize)]
struct ParameterEntry {
    name: &'static str,
    about: &'static str,
    default: String,
    range: String,
}

/// A kind of names.
struct Section {
    kind: &'static str,
    option: &'static str,
    entries: fn() -> Vec<Entry>,
}

const SECTIONS: &[Section] = &[
    Section {
        kind: "heuristics",
        option: "--heuristic NAME",
        entries: || HEURISTICS.iter().map(|h| entry(h.name, h.doc)).collect(),
    },
    Section {
        kind: "strategies",
        option: "--strategies A,B,...",
        entries: || Strategy::ALL.iter().map(|&(_, name, about)| entry(name, about)).collect(),
    },
    Section { kind: "chains", option: "--strategies CHAIN", entries: chains },
    Section {
        kind: "placements",
        option: "--placement NAME",
        entries: || Placement::ALL.iter().map(|&(_, name, about)| entry(name, about)).collect(),
    },
    Section {
        kind: "presets",
        option: "--hardware NAME",
        entries: || PRESETS.iter().map(|p| entry(p.name, p.doc)).collect(),
    },
    Section {
        kind: "normalize",
        option: "--normalize LEVEL",
        entries: || Normalize::ALL.iter().map(|&(_, name, about)| entry(name, about)).collect(),
    },
    Section {
        kind: "orders",
        option: "--order NAME",
        entries: || ORDERS.iter().map(|o| entry(o.name, o.doc)).collect(),
    },
    Section { kind: "workloads", option: "generate FAMILY", entries: workloads },
    Section { kind: "spill-costs", option: "--spill-cost MODEL", entries: spill_costs },
];

fn entry(name: &str, about: &str) -> Entry {
    Entry { name: name.to_owned(), about: about.to_owned(), parameters: Vec::new() }
}

fn chains() -> Vec<Entry> {
    let none = entry(NO_STRATEGY, "no strategy: only the last resort is left");
    CHAINS.iter().map(|c| entry(c.name, c.doc)).chain([none]).collect()
}

fn workloads() -> Vec<Entry> {
    let parameter = |p: &Parameter| ParameterEntry {
        name: p.name,
        about: p.doc,
        default: p.domain.format(p.domain.default_value()),
        range: p.domain.to_string(),
    };
    let family =
        |f: &&Family| Entry { parameters: f.parameters.iter().map(parameter).collect(), ..entry(f.name, f.doc) };
    FAMILIES.iter().map(family).collect()
}

fn spill_costs() -> Vec<Entry> {
    vec![
        entry("davinci", "2 cycles per byte + 150"),
        entry("affine:A,B", "A cycles per byte + B"),
        entry("bandwidth", "512 bytes per cycle"),
        entry("bandwidth:A,B", "A bytes per cycle + B cycles"),
    ]
}

impl ListArgs {
    /// Prints the lists.
    ///
    /// # Errors
    /// When a kind is unknown.
    pub fn run(self, console: &mut Console) -> Result<Outcome, CliError> {
        let section = |kind: &String| {
            let found = SECTIONS.iter().find(|s| s.kind == kind);
            found.ok_or_else(|| unknown("kind of names", kind, SECTIONS.iter().map(|s| s.kind)))
        };
        let sections: Vec<_> = match self.kinds.is_empty() {
            true => SECTIONS.iter().collect(),
            false => self.kinds.iter().map(section).collect::<Result<_, _>>()?,
        };
        if self.json {
            let lists: BTreeMap<_, _> = sections.iter().map(|s| (s.kind, (s.entries)())).collect();
            console.json(&lists)?;
            return Ok(Outcome::Done);
        }
        for (i, section) in sections.into_iter().enumerate() {
            let mut grid = Grid::plain();
            for e in (section.entries)() {
                grid.row([&e.name, &e.about]);
                // Parameters are too many for the list of everything.
                let parameters = e.parameters.iter().filter(|_| !self.kinds.is_empty());
                for p in parameters {
                    grid.row([format!("  {}={}", p.name, p.default), format!("  {} ({})", p.about, p.range)]);
                }
            }
            let gap = if i == 0 { "" } else { "\n" };
            console.line(format_args!(
                "{gap}{} ({})\n{}",
                section.kind,
                section.option,
                grid.to_string().trim_end()
            ))?;
        }
        Ok(Outcome::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_help_names_every_kind() {
        let mut cli = crate::args::Cli::command();
        let help = cli.find_subcommand_mut("list").unwrap().render_help().to_string();
        for section in SECTIONS {
            assert!(help.contains(section.kind), "{}: {help}", section.kind);
        }
    }
}
