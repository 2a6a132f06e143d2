//! How plans are made, as far as it takes to make them again.

use crate::hardware::Hardware;
use crate::schedule::Normalize;
use serde::{Deserialize, Deserializer, Serialize};

/// How the planner made a plan: enough to make it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Settings {
    /// Name of the victim heuristic.
    pub heuristic: String,
    /// Names of the strategies, in order.
    pub strategies: Vec<String>,
    /// Name of the placement rule.
    pub placement: String,
    /// How often one `ALLOC` may be postponed.
    pub attempts: u32,
    /// The prefetch window, in op nodes.
    pub prefetch: u32,
    /// Whether the plan was retimed; absent in a document where it was not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub retime: bool,
    /// How the schedule was normalised.
    pub normalize: Normalize,
    /// Seed of heuristics that draw.
    pub seed: u64,
    /// The hardware.
    pub hardware: Hardware,
}

/// How a search found a plan: enough to find it again, where the budget is one of evaluations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SearchSettings {
    /// Name of the objective.
    pub objective: String,
    /// Seed of all random choices.
    pub seed: u64,
    /// Searches that went on at once.
    pub islands: usize,
    /// How many orders were to be evaluated; `None` where time was the budget.
    pub evaluations: Option<u64>,
    /// The value that would have ended the search.
    pub target: Option<u64>,
    /// What a byte and a cycle count for, as `A:B`; absent in a document where the objective has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights: Option<String>,
    /// The most that plans may move, in bytes or as `+P%` above the least; absent where there was no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_movement: Option<String>,
    /// Whether the plan was retimed; absent in a document where it was not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub retime: bool,
    /// What it started from: the name of an order or of a file.
    pub start: String,
    /// The hardware.
    pub hardware: Hardware,
}

/// How an exact search found a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExactSettings {
    /// Search nodes at most; `None` where time was the limit.
    pub exact_nodes: Option<u64>,
    /// The heuristic whose plan was no worse than what the search found, if one was.
    pub heuristic: Option<String>,
    /// Whether the plan was retimed; absent in a document where it was not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub retime: bool,
    /// How the schedule was normalised.
    pub normalize: Normalize,
    /// The hardware.
    pub hardware: Hardware,
}

/// What made a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, try_from = "Keys")]
pub enum Origin {
    /// The planner, from a given schedule.
    Planner(Settings),
    /// A search, which chose the schedule.
    Search(SearchSettings),
    /// An exact search of a given schedule.
    Exact(ExactSettings),
}

impl Origin {
    /// The hardware that the plan was made for.
    pub fn hardware(&self) -> &Hardware {
        match self {
            Self::Planner(settings) => &settings.hardware,
            Self::Search(settings) => &settings.hardware,
            Self::Exact(settings) => &settings.hardware,
        }
    }

    /// Says that the plan was retimed on `hardware`.
    pub fn retimed(mut self, hardware: Hardware) -> Self {
        let (retime, on) = match &mut self {
            Self::Planner(settings) => (&mut settings.retime, &mut settings.hardware),
            Self::Search(settings) => (&mut settings.retime, &mut settings.hardware),
            Self::Exact(settings) => (&mut settings.retime, &mut settings.hardware),
        };
        (*retime, *on) = (true, hardware);
        self
    }
}

impl From<Settings> for Origin {
    fn from(settings: Settings) -> Self {
        Self::Planner(settings)
    }
}

impl From<SearchSettings> for Origin {
    fn from(settings: SearchSettings) -> Self {
        Self::Search(settings)
    }
}

impl From<ExactSettings> for Origin {
    fn from(settings: ExactSettings) -> Self {
        Self::Exact(settings)
    }
}

/// The keys of all kinds, so that a wrong one is refused by its name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    heuristic: Option<String>,
    strategies: Option<Vec<String>>,
    placement: Option<String>,
    attempts: Option<u32>,
    prefetch: Option<u32>,
    retime: Option<bool>,
    normalize: Option<Normalize>,
    seed: Option<u64>,
    hardware: Option<Hardware>,
    objective: Option<String>,
    islands: Option<usize>,
    evaluations: Option<u64>,
    target: Option<u64>,
    weights: Option<String>,
    max_movement: Option<String>,
    start: Option<String>,
    /// Present at all, if only as null, for an exact search.
    #[serde(default, deserialize_with = "present")]
    exact_nodes: Option<Option<u64>>,
}

fn present<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Option<u64>>, D::Error> {
    Option::deserialize(value).map(Some)
}

fn need<T>(value: Option<T>, key: &str) -> Result<T, String> {
    value.ok_or_else(|| format!("missing field `{key}`"))
}

impl TryFrom<Keys> for Origin {
    type Error = String;

    fn try_from(keys: Keys) -> Result<Self, String> {
        let hardware = need(keys.hardware, "hardware")?;
        if let Some(exact_nodes) = keys.exact_nodes {
            return Ok(Self::Exact(ExactSettings {
                exact_nodes,
                heuristic: keys.heuristic,
                retime: keys.retime.unwrap_or(false),
                normalize: need(keys.normalize, "normalize")?,
                hardware,
            }));
        }
        let seed = need(keys.seed, "seed")?;
        if let Some(objective) = keys.objective {
            return Ok(Self::Search(SearchSettings {
                objective,
                seed,
                islands: need(keys.islands, "islands")?,
                evaluations: keys.evaluations,
                target: keys.target,
                weights: keys.weights,
                max_movement: keys.max_movement,
                retime: keys.retime.unwrap_or(false),
                start: need(keys.start, "start")?,
                hardware,
            }));
        }
        Ok(Self::Planner(Settings {
            heuristic: need(keys.heuristic, "heuristic")?,
            strategies: need(keys.strategies, "strategies")?,
            placement: need(keys.placement, "placement")?,
            attempts: need(keys.attempts, "attempts")?,
            prefetch: need(keys.prefetch, "prefetch")?,
            retime: keys.retime.unwrap_or(false),
            normalize: need(keys.normalize, "normalize")?,
            seed,
            hardware,
        }))
    }
}
