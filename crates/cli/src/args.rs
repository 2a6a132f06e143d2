//! What stands on the command line, before it means anything: names are strings here, and
//! [`crate::resolve`] turns them into objects.

use crate::commands::Command;
use clap::{Args, Parser};
use spillbench_core::planner::PlannerConfig;
use spillbench_core::reservation::{Reservation, ReservationSyntax};
use spillbench_core::units::Bytes;
use spillbench_heuristics::Policy;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Plans spills and addresses for software-managed memories, checks plans, and explains them.
#[derive(Debug, Parser)]
#[command(name = "spillbench", version, propagate_version = true, max_term_width = 100)]
pub struct Cli {
    /// No notices and no progress on standard error
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// The log of commands that plan.
#[derive(Clone, Copy, Debug, Args)]
pub struct LogArgs {
    /// Log each decision of the planner to standard error
    #[arg(short, long, conflicts_with = "quiet")]
    pub verbose: bool,
}

/// What a GRAPH may be.
pub const GRAPH_HELP: &str = "A JSON graph, one file of a <TASK>_Nodes.csv, <TASK>_Edges.csv pair or their common \
     prefix, or - for standard input";

/// The graph that a command works on.
#[derive(Clone, Debug, Args)]
pub struct GraphArgs {
    /// The graph.
    #[arg(value_name = "GRAPH", help = GRAPH_HELP)]
    pub graph: PathBuf,
    /// Name of the task; by default the stem of the file name of the graph
    #[arg(long, value_name = "NAME")]
    pub task: Option<String>,
}

/// The hardware that a plan is for.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Hardware")]
pub struct HardwareArgs {
    /// A hardware file (TOML) or the name of a preset
    #[arg(long, value_name = "FILE|PRESET", default_value = "davinci")]
    pub hardware: String,
    /// Another capacity for one cache; may be repeated; K, M and G stand for 1024, 1024², 1024³
    #[arg(long, value_name = "CACHE=BYTES")]
    pub capacity: Vec<Capacity>,
    /// Keep BYTES at the top of a cache from buffers, from node FROM to node TO of the schedule, both
    /// included, which must stand in that order; either may be left out, and the span altogether; may be
    /// repeated, and adds up
    #[arg(long, value_name = "CACHE:BYTES@FROM..TO", value_parser = parse_reservation)]
    pub reserve: Vec<Reservation>,
    /// Another cost of spills: davinci (2 cycles per byte + 150), bandwidth (512 bytes per cycle), or
    /// affine:A,B (A cycles per byte + B) or bandwidth:A,B (A bytes per cycle + B cycles)
    #[arg(long, value_name = "MODEL")]
    pub spill_cost: Option<String>,
}

/// The schedule that is planned.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Schedule")]
pub struct ScheduleArgs {
    /// A schedule: one node id per line or a JSON array; - for standard input; by default, nodes go
    /// by id, as far as edges allow
    #[arg(long, value_name = "FILE")]
    pub schedule: Option<PathBuf>,
    /// An order by name in place of a schedule; `spillbench list orders` has all
    #[arg(long, value_name = "NAME", default_value = "id", conflicts_with = "schedule")]
    pub order: String,
    /// How far ALLOC, FREE and loads are moved first: none, free, memory or loads
    #[arg(long, value_name = "LEVEL", default_value = "free")]
    pub normalize: String,
}

/// How a schedule is planned, but for the victim heuristic.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Planner")]
pub struct PlannerArgs {
    /// What is tried in which order when space is missing: strategies, or one named chain
    #[arg(long, value_name = "A,B,...|CHAIN", value_delimiter = ',', default_value = "default")]
    pub strategies: Vec<String>,
    /// Which hole a buffer takes
    #[arg(long, value_name = "NAME", default_value = "best-fit")]
    pub placement: String,
    /// How often one ALLOC may be postponed; 0 switches postponing off
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = PlannerConfig::DEFAULT_ATTEMPTS)]
    pub attempts: u32,
    /// How many ops earlier a reload may come where its space is free
    #[arg(long, value_name = "K", allow_negative_numbers = true, default_value_t = 0)]
    pub prefetch: u32,
    /// Give the finished plan a faster order of its steps, addresses and spills being as they are
    #[arg(long)]
    pub retime: bool,
    /// Seed of heuristics that draw
    #[arg(long, value_name = "S", allow_negative_numbers = true, default_value_t = 0)]
    pub seed: u64,
}

/// The victim heuristic.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Planner")]
pub struct HeuristicArgs {
    /// Which buffer goes out first; `spillbench list heuristics` has all
    #[arg(long, value_name = "NAME", default_value = Policy::default().heuristic.name)]
    pub heuristic: String,
}

/// All that a schedule is planned with, for commands that plan it in one way. `compare` plans with several
/// heuristics and has the other three groups.
#[derive(Clone, Debug, Args)]
pub struct PlanningArgs {
    /// The schedule.
    #[command(flatten)]
    pub schedule: ScheduleArgs,
    /// The victim heuristic.
    #[command(flatten)]
    pub heuristic: HeuristicArgs,
    /// The rest of the policy.
    #[command(flatten)]
    pub planner: PlannerArgs,
    /// The hardware.
    #[command(flatten)]
    pub hardware: HardwareArgs,
}

/// Whether plans are compared with lower bounds.
#[derive(Clone, Debug, Args)]
pub struct GapArgs {
    /// Compare with a lower bound: always, never, or auto, up to 200,000 gaps between uses
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub bound: String,
}

/// The files of a plan.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Plan")]
pub struct PlanFilesArgs {
    /// A plan document (JSON), or a directory with the files of the task's plan
    #[arg(long, value_name = "DIR|FILE", conflicts_with_all = ["schedule", "memory", "spill"])]
    pub plan: Option<PathBuf>,
    /// The schedule of the plan, spill nodes included
    #[arg(long, value_name = "FILE")]
    pub schedule: Option<PathBuf>,
    /// The first offset of every buffer: BufId:Offset
    #[arg(long, value_name = "FILE")]
    pub memory: Option<PathBuf>,
    /// The spills: BufId:NewOffset
    #[arg(long, value_name = "FILE")]
    pub spill: Option<PathBuf>,
}

/// `CACHE=BYTES`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Name of the cache.
    pub cache: String,
    /// Its capacity.
    pub bytes: Bytes,
}

impl FromStr for Capacity {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (cache, bytes) = text.split_once('=').ok_or("expected CACHE=BYTES, such as L1=3072 or UB=4K")?;
        if cache.is_empty() {
            return Err("the name of the cache is missing: expected CACHE=BYTES, such as L1=3072".to_owned());
        }
        Ok(Self { cache: cache.to_owned(), bytes: parse_bytes(bytes)? })
    }
}

/// A whole number of bytes, with an optional binary suffix.
///
/// # Errors
/// What would have been right.
pub fn parse_bytes(text: &str) -> Result<Bytes, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 20),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number = digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse::<u64>().ok()).flatten();
    number
        .and_then(|n| n.checked_mul(1 << shift))
        .map(Bytes)
        .ok_or_else(|| format!("{text:?} is not a whole number of bytes below 2^64, such as 3072 or 4K"))
}

/// A reservation, its bytes with an optional binary suffix.
fn parse_reservation(text: &str) -> Result<Reservation, String> {
    let span = text.rfind('@').filter(|&at| text[at..].contains("..")).unwrap_or(text.len());
    let (what, span) = text.split_at(span);
    let plain = match what.rsplit_once(':') {
        Some((cache, bytes)) => format!("{cache}:{}{span}", parse_bytes(bytes)?),
        None => text.to_owned(),
    };
    plain.parse().map_err(|e: ReservationSyntax| e.to_string())
}

/// A time such as `500ms`, `60s`, `1.5m` or `2h`; seconds where no unit is given.
///
/// # Errors
/// What would have been right.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        other => return Err(format!("there is no unit of time {other:?}: ms, s, m and h are known")),
    };
    let number: f64 = number.parse().map_err(|_| "expected a time, such as 60s or 1.5m".to_owned())?;
    Duration::try_from_secs_f64(number * unit).map_err(|_| "a time that long is out of range".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn reservations_take_binary_suffixes() {
        let shown = |text: &str| parse_reservation(text).map(|r| r.to_string());
        assert_eq!(shown("L1:1K@3..9").as_deref(), Ok("L1:1024@3..9"));
        assert_eq!(shown("L1:512").as_deref(), Ok("L1:512"));
        for wrong in ["L1", "L1:", "L1:x@1..2", ":5", "L1:5@1..x", "L1:5@7"] {
            assert!(shown(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn capacities_take_binary_suffixes() {
        let bytes = |text: &str| text.parse::<Capacity>().map(|c| c.bytes.0);
        assert_eq!(bytes("L1=3072"), Ok(3072));
        assert_eq!(bytes("L1=4K"), Ok(4096));
        assert_eq!(bytes("L1=2g"), Ok(2 << 30));
        for wrong in
            ["L1", "=3", "L1=", "L1=K", "L1=-1", "L1=1.5", "L1=+2", "L1=99999999999999999999", "L1=99999999999999G"]
        {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_have_units() {
        assert_eq!(parse_time("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_time("60"), Ok(Duration::from_secs(60)));
        assert_eq!(parse_time("1.5m"), Ok(Duration::from_secs(90)));
        for wrong in ["", "s", "1d", "-1s", "1.2.3s", "1e9h", "99999999999999999999999999h"] {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_command_shows_an_example() {
        for command in Cli::command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let call = format!("spillbench {}", command.get_name());
            assert!(help.contains("Example") && help.contains(&call), "{}", command.get_name());
        }
    }

    #[test]
    fn every_command_that_can_say_no_states_its_exit_statuses() {
        let all = Cli::command();
        let answers = [
            "plan", "check", "compare", "optimize", "bound", "certify", "pack", "retime", "timing", "explain", "sweep",
            "diff",
        ];
        for name in answers {
            let help = all.find_subcommand(name).and_then(|c| c.get_after_help()).map(ToString::to_string);
            let help = help.unwrap_or_default();
            let told = ["Exit status: 0 when", "1 when", "2 when"].iter().all(|part| help.contains(part));
            assert!(told, "{name}: {help}");
        }
    }
}
