//! From `--hardware`, `--capacity`, `--reserve` and `--spill-cost` to a hardware description and a machine.

use super::{PlanSource, Task, in_file, read, unknown};
use crate::args::HardwareArgs;
use crate::error::CliError;
use crate::input::{Expect, is_stdin};
use spillbench_core::Shown;
use spillbench_core::formats::hardware_toml;
use spillbench_core::hardware::{FitError, Hardware, Machine, PRESETS, SpillCost};
use std::path::Path;

/// The hardware, with the changes that the arguments ask for.
///
/// # Errors
/// When the file cannot be read, or a name is unknown.
pub fn hardware(args: &HardwareArgs) -> Result<Hardware, CliError> {
    let mut hardware = match Hardware::preset(&args.hardware) {
        Some(preset) => preset,
        None => hardware_file(&args.hardware)?,
    };
    for (i, capacity) in args.capacity.iter().enumerate() {
        if args.capacity[..i].iter().any(|earlier| earlier.cache == capacity.cache) {
            let what = format!("--capacity is given twice for {}", Shown(&capacity.cache));
            return Err(CliError::usage(what, "give each cache one capacity"));
        }
        hardware.set_capacity(&capacity.cache, capacity.bytes)?;
        let joint = if i == 0 { " with" } else { "," };
        hardware.name.push_str(&format!("{joint} {}={}", capacity.cache, capacity.bytes));
    }
    for reservation in &args.reserve {
        hardware.reservations.push(reservation.clone());
        hardware.validate()?;
        hardware.name.push_str(&format!(" less {reservation}"));
    }
    if let Some(model) = &args.spill_cost {
        hardware.spill_cost = spill_cost(model)?;
        hardware.validate()?;
    }
    Ok(hardware)
}

/// The hardware that was asked for; where none was, that of the plan document.
///
/// # Errors
/// As [`hardware`].
pub fn hardware_of_plan(args: &HardwareArgs, source: &PlanSource) -> Result<Hardware, CliError> {
    let HardwareArgs { hardware: name, capacity, reserve, spill_cost } = args;
    let as_given = capacity.is_empty() && reserve.is_empty() && spill_cost.is_none();
    let as_by_default = *name == Hardware::default().name && as_given;
    match source.claims.as_ref().and_then(|claims| claims.settings.as_ref()) {
        Some(origin) if as_by_default => Ok(origin.hardware().clone()),
        _ => hardware(args),
    }
}

fn hardware_file(name: &str) -> Result<Hardware, CliError> {
    let path = Path::new(name);
    let looks_like_a_path = is_stdin(path) || path.exists() || path.components().count() > 1 || name.contains('.');
    if !looks_like_a_path {
        return Err(unknown("preset or file", name, PRESETS.iter().map(|p| p.name)));
    }
    hardware_toml::read(&read(path, Expect::Text)?).map_err(in_file(path))
}

fn spill_cost(model: &str) -> Result<SpillCost, CliError> {
    let (name, numbers) = model.split_once(':').unwrap_or((model, ""));
    let mut numbers = numbers.split(',').filter(|_| model.contains(':')).map(str::parse::<u64>);
    let parts = (name, numbers.next().transpose(), numbers.next().transpose(), numbers.next());
    match parts {
        ("davinci", Ok(None), Ok(None), None) => Ok(SpillCost::default()),
        ("bandwidth", Ok(None), Ok(None), None) => Ok(SpillCost::bandwidth()),
        ("affine", Ok(Some(cycles_per_byte)), Ok(overhead), None) => {
            Ok(SpillCost::Affine { cycles_per_byte, overhead_cycles: overhead.unwrap_or(0) })
        }
        ("bandwidth", Ok(Some(bytes_per_cycle)), Ok(overhead), None) => {
            Ok(SpillCost::Bandwidth { bytes_per_cycle, overhead_cycles: overhead.unwrap_or(0) })
        }
        ("davinci" | "bandwidth" | "affine", ..) => Err(CliError::usage(
            format!("{model:?} is no cost of spills"),
            "write davinci, bandwidth, affine:A,B (A cycles per byte + B) or bandwidth:A,B (A bytes per cycle + B \
             cycles), with whole numbers",
        )),
        _ => Err(unknown("cost model", name, ["davinci", "bandwidth", "affine"])),
    }
}

/// The hardware as the graph sees it.
///
/// # Errors
/// When the graph names a cache that the hardware does not have.
pub fn machine(task: &Task, hardware: &Hardware) -> Result<Machine, CliError> {
    Machine::resolve(&task.graph, hardware).map_err(|misfits| misfit(task, hardware, misfits))
}

/// The error that says what does not fit.
pub fn misfit(task: &Task, hardware: &Hardware, misfits: Vec<FitError>) -> CliError {
    CliError::Misfit { file: task.file.clone(), hardware: hardware.name.clone(), misfits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_models_take_parameters() {
        assert_eq!(spill_cost("davinci").unwrap(), SpillCost::default());
        assert_eq!(spill_cost("bandwidth").unwrap(), SpillCost::bandwidth());
        let affine = SpillCost::Affine { cycles_per_byte: 3, overhead_cycles: 0 };
        assert_eq!(spill_cost("affine:3").unwrap(), affine);
        let bandwidth = SpillCost::Bandwidth { bytes_per_cycle: 64, overhead_cycles: 10 };
        assert_eq!(spill_cost("bandwidth:64,10").unwrap(), bandwidth);
        for wrong in ["affine", "davinci:1", "bandwidth:x", "bandwidth:", "affine:,2", "bandwidth:1,2,3", "free"] {
            assert!(spill_cost(wrong).is_err(), "{wrong}");
        }
    }
}
