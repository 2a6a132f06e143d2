//! Names that may be misspelt.

use crate::error::CliError;

/// The error for a name that nothing has, with the nearest name where one is near.
pub fn unknown<'a>(kind: &'static str, name: &str, known: impl IntoIterator<Item = &'a str>) -> CliError {
    const NEAR: f64 = 0.75;
    let known: Vec<_> = known.into_iter().map(str::to_owned).collect();
    let wanted = name.to_ascii_lowercase();
    let likeness = |k: &String| strsim::jaro_winkler(&wanted, &k.to_ascii_lowercase());
    let meant = known.iter().map(|k| (likeness(k), k)).filter(|l| l.0 >= NEAR).max_by(|a, b| a.0.total_cmp(&b.0));
    CliError::UnknownName { kind, name: name.to_owned(), meant: meant.map(|m| m.1.clone()), known }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(name: &str) -> Option<String> {
        match unknown("placement", name, ["best-fit", "first-fit", "two-ended"]) {
            CliError::UnknownName { meant, .. } => meant,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn near_names_are_suggested_and_far_ones_are_not() {
        assert_eq!(meant("bestfit").as_deref(), Some("best-fit"));
        assert_eq!(meant("Fist-Fit").as_deref(), Some("first-fit"));
        assert_eq!(meant("zzz"), None);
    }
}
