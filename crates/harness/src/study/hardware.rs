//! The hardware axis spelt out: every hardware with every cost model and every set of capacities.

use super::Folders;
use crate::experiment::{At, Capacity, Complaint, CostModel, Experiment, Factor, Problem, cost_text};
use crate::hash::Hash;
use spillbench_core::Bytes;
use spillbench_core::formats::hardware_toml;
use spillbench_core::hardware::{Hardware, HardwareError, PRESETS};
use std::path::Path;
use std::sync::Arc;

/// A hardware with a cost model, its capacities as its file has them.
#[derive(Debug)]
pub struct HardwareBase {
    /// Name of the preset, or stem of the file.
    pub name: String,
    /// The hardware.
    pub hardware: Hardware,
    /// The cost model, in the words of the tables.
    pub cost: String,
    /// Its reservations, in the words of the tables; `None` without any.
    pub reserved: Option<String>,
}

/// One hardware with its capacities and its cost model. There may be as many as there are cells, so each
/// keeps what is its own and nothing else.
#[derive(Clone, Debug)]
pub struct HardwareEntry {
    /// All but the capacities.
    pub base: Arc<HardwareBase>,
    /// Those of the caches of the base, in its order.
    capacities: Box<[Bytes]>,
    /// The multiple that `*` stood for; once when there was none.
    pub factor: Factor,
    /// The hash of all that is in it but its name.
    pub hash: Hash,
}

impl HardwareEntry {
    /// The hardware with the capacities of this entry.
    pub fn hardware(&self) -> Hardware {
        with(&self.base.hardware, &self.capacities)
    }

    /// The capacity of a cache.
    pub fn capacity(&self, cache: &str) -> Option<Bytes> {
        self.base.hardware.caches.get_index_of(cache).map(|place| self.capacities[place])
    }
}

fn with(base: &Hardware, capacities: &[Bytes]) -> Hardware {
    let mut hardware = base.clone();
    for (spec, &capacity) in hardware.caches.values_mut().zip(capacities) {
        spec.capacity = capacity;
    }
    hardware
}

/// The most entries of one experiment.
const MAX_ENTRIES: usize = 1_000_000;

pub(super) fn expand(
    experiment: &Experiment,
    folders: &Folders,
    complaints: &mut Vec<Complaint>,
) -> Vec<HardwareEntry> {
    let mut entries: Vec<HardwareEntry> = Vec::new();
    let mut names: Vec<(String, &At<String>)> = Vec::new();
    for named in &experiment.axes.hardware {
        let (name, hardware) = match read(&named.value, &folders.base) {
            Ok(found) => found,
            Err(problem) => {
                complaints.push(Complaint { place: named.place, problem });
                continue;
            }
        };
        if names.iter().any(|(other, _)| *other == name) {
            complaints.push(Complaint {
                place: named.place,
                problem: Problem::Repeated { axis: "hardware".to_owned(), value: name.clone() },
            });
        }
        names.push((name.clone(), named));
        for cost in &experiment.axes.cost_models {
            let mut costed = hardware.clone();
            if let CostModel::Given(cost) = cost.value {
                costed.spill_cost = cost;
            }
            costed.reservations.extend(experiment.reservations.iter().map(|r| r.value.clone()));
            let reserves = !costed.reservations.is_empty();
            if reserves && experiment.search.is_some() {
                let place = experiment.reservations.first().map_or(named.place, |r| r.place);
                let why = "a search does not keep to reservations".to_owned();
                complaints.push(Complaint { place, problem: Problem::Impossible(why) });
            }
            let variants = match with_capacities(&costed, experiment) {
                Ok(variants) if entries.len() + variants.len() <= MAX_ENTRIES => variants,
                Ok(variants) => {
                    let (cells, most) = ((entries.len() + variants.len()) as u128, MAX_ENTRIES as u64);
                    complaints.push(Complaint { place: None, problem: Problem::TooManyCells { cells, most } });
                    return entries;
                }
                Err(found) => {
                    complaints.extend(found);
                    continue;
                }
            };
            if reserves {
                // Only a reservation can fit one hardware and not another.
                let place = experiment.reservations.first().and_then(|r| r.place);
                let wrong = variants.iter().find_map(|v| with(&costed, &v.0).validate().err());
                let complaint = |why: HardwareError| Complaint { place, problem: Problem::Impossible(why.to_string()) };
                complaints.extend(wrong.map(complaint));
            }
            let base = Arc::new(base(&name, costed));
            entries.extend(variants.into_iter().map(|(capacities, factor)| entry(&base, capacities, factor)));
        }
    }
    repeated(&entries, experiment, complaints);
    entries
}

fn base(name: &str, hardware: Hardware) -> HardwareBase {
    let reserved: Vec<_> = hardware.reservations.iter().map(ToString::to_string).collect();
    let reserved = (!reserved.is_empty()).then(|| reserved.join(" "));
    HardwareBase { name: name.to_owned(), cost: cost_text(hardware.spill_cost), hardware, reserved }
}

fn entry(base: &Arc<HardwareBase>, capacities: Capacities, factor: Factor) -> HardwareEntry {
    let mut unnamed = with(&base.hardware, &capacities);
    unnamed.name = String::new();
    let hash = Hash::of(hardware_toml::write(&unnamed).as_bytes());
    HardwareEntry { base: Arc::clone(base), capacities, factor, hash }
}

fn read(name: &str, base: &Path) -> Result<(String, Hardware), Problem> {
    if let Some(preset) = Hardware::preset(name) {
        return Ok((name.to_owned(), preset));
    }
    let path = base.join(name);
    if !name.contains(['.', '/']) {
        let known = PRESETS.iter().map(|p| p.name).collect::<Vec<_>>().join(", ");
        return Err(Problem::Unknown { what: "hardware preset or file", name: name.to_owned(), known });
    }
    let file = |message: String| Problem::File { path: name.to_owned(), message };
    let bytes = std::fs::read(&path).map_err(|e| file(e.to_string()))?;
    let hardware = hardware_toml::read(&bytes).map_err(|e| file(e.to_string()))?;
    let stem = path.file_stem().map_or_else(|| name.to_owned(), |s| s.to_string_lossy().into_owned());
    Ok((stem, hardware))
}

type Capacities = Box<[Bytes]>;

/// The product of all capacities, in the order of the file, the first cache slowest.
fn with_capacities(hardware: &Hardware, experiment: &Experiment) -> Result<Vec<(Capacities, Factor)>, Vec<Complaint>> {
    let mut complaints = Vec::new();
    let given: Capacities = hardware.caches.values().map(|spec| spec.capacity).collect();
    let mut variants = vec![(given, Factor::ONE)];
    for (cache, values) in &experiment.capacities {
        if cache.value != "*" && !hardware.caches.contains_key(&cache.value) {
            let (name, known) =
                (cache.value.clone(), hardware.caches.keys().map(String::as_str).collect::<Vec<_>>().join(", "));
            let what = "cache in this hardware";
            complaints.push(Complaint { place: cache.place, problem: Problem::Unknown { what, name, known } });
            continue;
        }
        if variants.len().saturating_mul(values.len()) > MAX_ENTRIES {
            let cells = variants.len() as u128 * values.len() as u128;
            complaints.push(Complaint {
                place: cache.place,
                problem: Problem::TooManyCells { cells, most: MAX_ENTRIES as u64 },
            });
            break;
        }
        let with = |(base, factor): &(Capacities, Factor), value: Capacity| {
            let mut changed = (base.clone(), *factor);
            if let (true, Capacity::Factor(factor)) = (cache.value == "*", value) {
                changed.1 = factor;
            }
            let named = |name: &str| experiment.capacities.iter().any(|(other, _)| other.value == name);
            for (name, capacity) in hardware.caches.keys().zip(&mut changed.0) {
                if *name == cache.value || (cache.value == "*" && !named(name)) {
                    *capacity = value.on(*capacity);
                }
            }
            changed
        };
        variants = variants.iter().flat_map(|base| values.iter().map(move |v| with(base, v.value))).collect();
    }
    if complaints.is_empty() { Ok(variants) } else { Err(complaints) }
}

/// Two sets of capacities that come to the same, such as `4096` and `"1x"`, would be run twice.
fn repeated(entries: &[HardwareEntry], experiment: &Experiment, complaints: &mut Vec<Complaint>) {
    let mut seen = std::collections::HashMap::new();
    for entry in entries {
        if let Some(first) = seen.insert((&entry.base.name, entry.hash), entry) {
            let place = experiment.capacities.first().and_then(|c| c.0.place);
            let place = if first.factor == entry.factor && experiment.capacities.is_empty() {
                experiment.axes.cost_models.last().and_then(|c| c.place)
            } else {
                place
            };
            let caches = entry.base.hardware.caches.keys().zip(&entry.capacities);
            let sizes: Vec<_> = caches.map(|(name, capacity)| format!("{name} {capacity}")).collect();
            let HardwareBase { name, cost, .. } = &*entry.base;
            let value = format!("hardware {name} with {} and cost {cost}", sizes.join(", "));
            complaints.push(Complaint {
                place,
                problem: Problem::Repeated { axis: "hardware and capacities".to_owned(), value },
            });
            return;
        }
    }
}
