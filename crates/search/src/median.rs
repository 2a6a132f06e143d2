//! The median of some numbers.

/// The upper median; `None` without any number.
pub(crate) fn median(values: impl IntoIterator<Item = u64>) -> Option<u64> {
    let mut values: Vec<u64> = values.into_iter().collect();
    let middle = values.len() / 2;
    (!values.is_empty()).then(|| *values.select_nth_unstable(middle).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_even_number_the_upper() {
        assert_eq!([vec![3, 1, 2], vec![4, 1, 2, 3], vec![7]].map(median), [Some(2), Some(3), Some(7)]);
        assert_eq!(median([]), None);
    }
}
