//! Summaries: the values of one column compared with a baseline, case by case, as CSV, Markdown and
//! LaTeX (booktabs).
//!
//! A case is a combination of all other axes; repetitions of a case count as one, with their mean.
//! Less is better. Where both sides are 0 their ratio is 1; where one of them is, the pair has no
//! ratio: it counts as a win or a loss and is listed under `zeros`, but is left out of the mean. A
//! side without a plan loses against one that has it.

use crate::columns;
use crate::experiment::TableSpec;
use crate::hash::Hash;
use crate::stats::{self, Interval};
use crate::table::{Row, Table, distinct, is_partial};
use std::collections::HashMap;
use std::fmt::Write;

/// A summary.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Its caption.
    pub caption: String,
    /// The columns that split it into blocks.
    pub by: Vec<String>,
    /// The compared column.
    pub compare: String,
    /// The value that all are compared with.
    pub baseline: String,
    /// The lines, block after block.
    pub lines: Vec<Line>,
}

/// One compared value in one block.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The block: a text for each splitting column.
    pub block: Vec<String>,
    /// The compared value.
    pub value: String,
    /// Cases in which it or the baseline has a result.
    pub cases: usize,
    /// Cases in which it has none.
    pub without: usize,
    /// Pairs of which exactly one side is 0.
    pub zeros: usize,
    /// The geometric mean of its ratio to the baseline.
    pub ratio: Option<Interval>,
    /// Cases in which it is better than the baseline, equal, worse.
    pub outcome: [usize; 3],
    /// Its mean rank among all compared values.
    pub rank: f64,
}

/// The value of each compared text in one case, and of how many rows it is the mean.
type Case = Vec<Option<f64>>;

/// Compares the rows that pass the filter of `spec`. Empty when no row does.
pub fn summarize(table: &Table, spec: &TableSpec) -> Summary {
    let rows = table.filtered(&spec.filter);
    let compare = spec.compare.value.as_str();
    let values = distinct(&rows, compare);
    let by: Vec<String> = spec.by.iter().map(|b| b.value.clone()).collect();
    let mut lines = Vec::new();
    for block in blocks(&rows, &by) {
        let chosen: Vec<_> = rows.iter().copied().filter(|row| block_of(row, &by) == block).collect();
        let cases = cases(table, &chosen, compare, &spec.value.value, &values);
        let baseline = values.iter().position(|v| *v == spec.baseline.value);
        for (place, value) in values.iter().enumerate() {
            lines.push(line(&cases, place, baseline, (*value).to_owned(), block.clone()));
        }
    }
    let (compare, baseline) = (compare.to_owned(), spec.baseline.value.clone());
    Summary { caption: caption(spec), by, compare, baseline, lines }
}

fn caption(spec: &TableSpec) -> String {
    let what = columns::describe(&spec.value.value).map_or(spec.value.value.as_str(), |(_, doc)| doc);
    let what = what.split([';', '(']).next().unwrap_or(what).trim_end();
    let (what, compare, baseline) = (capital(what), &spec.compare.value, &spec.baseline.value);
    let heading =
        spec.title.as_ref().map_or_else(|| format!("{what} by {compare}"), |t| format!("{t}. {what} by {compare}"));
    format!("{heading}: ratio to {baseline} (geometric mean, 95 % bootstrap interval); less is better.")
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

fn block_of(row: &Row<'_>, by: &[String]) -> Vec<String> {
    by.iter().map(|column| row.text(column).to_owned()).collect()
}

fn blocks(rows: &[Row<'_>], by: &[String]) -> Vec<Vec<String>> {
    let mut blocks = Vec::new();
    for row in rows {
        let block = block_of(row, by);
        if !blocks.contains(&block) {
            blocks.push(block);
        }
    }
    blocks
}

/// The cases of some rows, in order of first mention: for each compared value the mean over its
/// repetitions, or nothing when one of them has no result.
pub(crate) fn cases(table: &Table, rows: &[Row<'_>], compare: &str, measure: &str, values: &[&str]) -> Vec<Case> {
    let axes: Vec<_> = table.case_axes(&[compare]).into_iter().filter(|&i| !is_partial(rows, i)).collect();
    let places: HashMap<_, _> = values.iter().enumerate().map(|(i, v)| (*v, i)).collect();
    let (mut numbers, mut sums) = (HashMap::new(), Vec::<Vec<(f64, u32, bool)>>::new());
    for row in rows {
        let case = *numbers.entry(row.key(&axes)).or_insert_with(|| {
            sums.push(vec![(0.0, 0, false); values.len()]);
            sums.len() - 1
        });
        let Some(&place) = places.get(row.text(compare)) else { continue };
        let (sum, count, lacking) = &mut sums[case][place];
        match row.number(measure) {
            Some(x) => (*sum, *count) = (*sum + x, *count + 1),
            None => *lacking = true,
        }
    }
    let mean = |(sum, count, lacking): (f64, u32, bool)| (count > 0 && !lacking).then(|| sum / f64::from(count));
    sums.into_iter().map(|case| case.into_iter().map(mean).collect()).collect()
}

fn line(cases: &[Case], place: usize, baseline: Option<usize>, value: String, block: Vec<String>) -> Line {
    let mut line = Line { block, value, cases: 0, without: 0, zeros: 0, ratio: None, outcome: [0; 3], rank: 0.0 };
    let (mut ratios, mut ranks) = (Vec::new(), Vec::new());
    for case in cases {
        let (own, base) = (case[place], baseline.and_then(|b| case[b]));
        if case.iter().any(Option::is_some) {
            ranks.push(stats::ranks(case)[place]);
        }
        if own.is_none() && base.is_none() {
            continue;
        }
        line.cases += 1;
        line.without += usize::from(own.is_none());
        let outcome = match (own, base) {
            (Some(own), Some(base)) => {
                match (own == 0.0, base == 0.0) {
                    (true, true) => ratios.push(1.0),
                    (false, false) => ratios.push(own / base),
                    _ => line.zeros += 1,
                }
                own.total_cmp(&base)
            }
            (Some(_), None) => std::cmp::Ordering::Less,
            _ => std::cmp::Ordering::Greater,
        };
        line.outcome[(outcome as i8 + 1) as usize] += 1;
    }
    // Each line draws its own resamples, whatever else the table holds.
    let seed = Hash::of(format!("{:?} {}", line.block, line.value).as_bytes()).0 as u64;
    line.ratio = stats::geometric_mean(&ratios, seed);
    line.rank = ranks.iter().sum::<f64>() / ranks.len().max(1) as f64;
    line
}

/// A line as the texts of its cells, without the block.
struct Cells {
    ratio: String,
    interval: String,
    others: [String; 7],
}

const HEADINGS: [&str; 7] = ["wins", "ties", "losses", "mean rank", "cases", "no plan", "zeros"];

impl Line {
    fn cells(&self, dash: &str) -> Cells {
        let ends = self.ratio.and_then(|r| r.ends);
        let [wins, ties, losses] = self.outcome;
        let [cases, without, zeros] = [self.cases, self.without, self.zeros].map(|n| n.to_string());
        Cells {
            ratio: self.ratio.map_or("–".to_owned(), |r| format!("{:.3}", r.mean)),
            interval: ends.map_or("–".to_owned(), |(low, high)| format!("{low:.3}{dash}{high:.3}")),
            others: [
                wins.to_string(),
                ties.to_string(),
                losses.to_string(),
                format!("{:.2}", self.rank),
                cases,
                without,
                zeros,
            ],
        }
    }
}

impl Summary {
    /// The summary as a table of full precision.
    pub fn table(&self) -> Table {
        let fixed =
            ["ratio", "ratio_low", "ratio_high", "wins", "ties", "losses", "mean_rank", "cases", "no_plan", "zeros"];
        let mut table = Table::new(self.by.iter().map(String::as_str).chain([self.compare.as_str()]).chain(fixed));
        for line in &self.lines {
            let number = |x: Option<f64>| x.map(|x| x.to_string()).unwrap_or_default();
            let ends = line.ratio.and_then(|r| r.ends);
            let mut row: Vec<String> = line.block.clone();
            row.push(line.value.clone());
            row.extend([line.ratio.map(|r| r.mean), ends.map(|e| e.0), ends.map(|e| e.1)].map(number));
            row.extend(line.outcome.map(|n| n.to_string()));
            row.push(line.rank.to_string());
            row.extend([line.cases, line.without, line.zeros].map(|n| n.to_string()));
            table.push(row);
        }
        table
    }

    fn headings(&self) -> Vec<String> {
        let first = self.by.iter().chain([&self.compare]).map(|c| c.replace('_', " "));
        let fixed = ["ratio", "95 % interval"].into_iter().chain(HEADINGS).map(str::to_owned);
        first.chain(fixed).collect()
    }

    /// The summary in Markdown.
    pub fn markdown(&self) -> String {
        let mut out = format!("{}\n\n", markdown_text(&self.caption));
        let headings = self.headings();
        let texts = self.by.len() + 1;
        // Writing into a String does not fail.
        let _ = writeln!(out, "| {} |", headings.iter().map(|h| markdown_text(h)).collect::<Vec<_>>().join(" | "));
        let rule = (0..headings.len()).map(|i| if i < texts { ":--" } else { "--:" });
        let _ = writeln!(out, "|{}|", rule.collect::<Vec<_>>().join("|"));
        for line in &self.lines {
            let Cells { ratio, interval, others } = line.cells("–");
            let texts = line.block.iter().chain([&line.value]).map(|t| markdown_text(t));
            let cells: Vec<String> = texts.chain([ratio, interval]).chain(others).collect();
            let _ = writeln!(out, "| {} |", cells.join(" | "));
        }
        out
    }

    /// The summary in LaTeX; needs the package `booktabs`.
    pub fn latex(&self) -> String {
        let headings: Vec<_> = self.headings().iter().map(|h| latex_text(h)).collect();
        let texts = self.by.len() + 1;
        let shape = format!("{}{}", "l".repeat(texts), "r".repeat(headings.len() - texts));
        let mut out = format!("% {}\n\\begin{{tabular}}{{{shape}}}\n\\toprule\n", latex_text(&self.caption));
        let _ = writeln!(out, "{} \\\\\n\\midrule", headings.join(" & "));
        let mut last: Option<&Vec<String>> = None;
        for line in &self.lines {
            if last.is_some_and(|block| *block != line.block) {
                out.push_str("\\addlinespace\n");
            }
            let Cells { ratio, interval, others } = line.cells("--");
            // A block says its name once.
            let repeated = last == Some(&line.block);
            let block = line.block.iter().map(|t| if repeated { String::new() } else { latex_text(t) });
            let plain = |t: String| t.replace('–', "--");
            let cells: Vec<_> =
                block.chain([latex_text(&line.value), plain(ratio), plain(interval)]).chain(others).collect();
            let _ = writeln!(out, "{} \\\\", cells.join(" & "));
            last = Some(&line.block);
        }
        out.push_str("\\bottomrule\n\\end{tabular}\n");
        out
    }
}

fn latex_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => out.extend(['\\', c]),
            '~' => out.push_str("\\textasciitilde{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            '\\' => out.push_str("\\textbackslash{}"),
            '\n' | '\r' => out.push(' '),
            _ => out.push(c),
        }
    }
    out
}

fn markdown_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '\\' | '*' | '`' | '<' | '[' | ']' => out.extend(['\\', c]),
            '\n' | '\r' => out.push(' '),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{At, Filter};

    fn spec(by: &[&str]) -> TableSpec {
        let at = |text: &str| At::nowhere(text.to_owned());
        TableSpec {
            name: at("t"),
            title: Some("50 % & more_or_less".to_owned()),
            compare: at("heuristic"),
            baseline: at("lru"),
            value: at("extra_movement"),
            by: by.iter().map(|b| at(b)).collect(),
            filter: Filter::default(),
        }
    }

    fn sample() -> Table {
        let mut table = Table::new(["graph", "heuristic", "repetition", "extra_movement"]);
        let rows = [
            ("a", "lru", "0", "100"),
            ("a", "belady", "0", "50"),
            ("a", "random", "0", "150"),
            ("a", "random", "1", "250"),
            ("b", "lru", "0", "0"),
            ("b", "belady", "0", "0"),
            ("b", "random", "0", "10"),
            ("b", "random", "1", "30"),
            ("c", "lru", "0", ""),
            ("c", "belady", "0", "70"),
            ("c", "random", "0", "70"),
            ("c", "random", "1", ""),
        ];
        rows.iter().for_each(|r| table.push([r.0, r.1, r.2, r.3]));
        table
    }

    #[test]
    fn cases_pair_over_all_other_axes() {
        let summary = summarize(&sample(), &spec(&[]));
        let line = |value: &str| summary.lines.iter().find(|l| l.value == value).unwrap();
        let belady = line("belady");
        assert_eq!((belady.cases, belady.without, belady.zeros, belady.outcome), (3, 0, 0, [2, 1, 0]));
        assert!((belady.ratio.unwrap().mean - 0.5f64.sqrt()).abs() < 1e-12, "0.5 and 0/0");
        let random = line("random");
        assert_eq!((random.cases, random.without, random.zeros, random.outcome), (2, 0, 1, [0, 0, 2]));
        assert!((random.ratio.unwrap().mean - 2.0).abs() < 1e-12, "the mean of its repetitions over 100");
        let lru = line("lru");
        assert_eq!((lru.cases, lru.outcome), (2, [0, 2, 0]));
        assert_eq!(
            [lru, belady, random].map(|l| l.rank),
            [(2.0 + 1.5 + 2.5) / 3.0, (1.0 + 1.5 + 1.0) / 3.0, (3.0 + 3.0 + 2.5) / 3.0]
        );
    }

    #[test]
    fn blocks_and_forms() {
        let summary = summarize(&sample(), &spec(&["graph"]));
        assert_eq!(summary.lines.len(), 9);
        insta::assert_snapshot!("markdown", summary.markdown());
        insta::assert_snapshot!("latex", summary.latex());
        assert_eq!(summary.table().len(), 9);
    }

    #[test]
    fn nothing_to_compare_is_an_empty_table() {
        let summary = summarize(&Table::new(["heuristic", "extra_movement"]), &spec(&[]));
        assert!(summary.lines.is_empty());
        assert!(summary.latex().contains("\\bottomrule"));
    }
}
