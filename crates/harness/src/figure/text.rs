//! The font of the figures: measuring and shortening texts.
//!
//! Figures ask for the family `sans-serif`. In PNG it is the font built into the program; in SVG a
//! viewer takes its own, which may run wider, so texts are measured with some slack.

use plotters::style::{FontDesc, FontFamily, FontStyle, register_font};
use std::sync::Once;

/// The family that figures name.
pub const FAMILY: &str = "sans-serif";

/// Room for viewers whose font runs wider than the built-in one.
const SLACK: f64 = 1.08;

/// What the plotting library divides a font size by to get the size of an em.
pub const EM: f64 = 1.24;

/// Registers the built-in font; costs nothing after the first time.
pub fn register() {
    static DONE: Once = Once::new();
    DONE.call_once(|| {
        // The bytes are compiled in and parse; were they broken, texts would be left out.
        let _ = register_font(FAMILY, FontStyle::Normal, epaint_default_fonts::UBUNTU_LIGHT);
    });
}

/// The width of a text in points.
pub fn width(text: &str, size: f64) -> f64 {
    /// Large, because the library measures in whole pixels.
    const PIXELS: f64 = 1000.0;
    register();
    let font = FontDesc::new(FontFamily::Name(FAMILY), PIXELS * EM, FontStyle::Normal);
    let pixels = font.box_size(text).map_or(text.chars().count() as f64 * PIXELS * 0.55, |(w, _)| f64::from(w));
    pixels / PIXELS * size * SLACK
}

/// The text, or as much of its start and end as fits, with an ellipsis between.
pub fn shortened(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let chars: Vec<char> = text.chars().collect();
    for kept in (1..chars.len()).rev() {
        let (head, tail) = (kept.div_ceil(2), kept / 2);
        let short: String = chars[..head].iter().chain(['…'].iter()).chain(&chars[chars.len() - tail..]).collect();
        if width(&short, size) <= room {
            return short;
        }
    }
    "…".to_owned()
}

/// The text in lines that fit, broken behind blanks, commas, hyphens and brackets; `None` when some
/// piece does not fit or there would be more than `most` lines.
pub fn wrapped(text: &str, size: f64, room: f64, most: usize) -> Option<Vec<String>> {
    let mut lines = vec![String::new()];
    for piece in text.split_inclusive([' ', ',', '-', '(', '_']) {
        let last = lines.last_mut()?;
        let joined = format!("{last}{piece}");
        if width(joined.trim_end(), size) <= room {
            *last = joined;
        } else if width(piece.trim_end(), size) <= room {
            lines.push(piece.to_owned());
        } else {
            return None;
        }
    }
    lines.retain(|line| !line.trim().is_empty());
    let lines: Vec<_> = lines.into_iter().map(|line| line.trim_end().to_owned()).collect();
    (lines.len() <= most).then_some(lines)
}

/// The narrowest width, in steps, that wraps the text into at most `most` lines.
pub fn balanced(text: &str, size: f64, room: f64, most: usize) -> Option<Vec<String>> {
    (1..=8).find_map(|eighths| wrapped(text, size, room * f64::from(eighths) / 8.0, most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_grow_with_text_and_size() {
        let one = width("capacity", 7.0);
        assert!((20.0..40.0).contains(&one), "{one}");
        assert!((width("capacity", 14.0) / one - 2.0).abs() < 0.01);
        assert!(width("capacity of L1", 7.0) > one);
        assert_eq!(width("", 7.0), 0.0);
    }

    #[test]
    fn shortening_keeps_both_ends_and_fits() {
        let text = "flash-attention(seq=128,heads=4,seed=7)";
        let short = shortened(text, 7.0, 60.0);
        assert!(width(&short, 7.0) <= 60.0 && short.starts_with("flash") && short.ends_with("7)"), "{short}");
        assert_eq!(shortened("lru", 7.0, 60.0), "lru");
        assert_eq!(shortened("lru", 7.0, 0.0), "…");
    }

    #[test]
    fn wrapping_breaks_behind_separators() {
        let lines = wrapped("matmul(m=8,n=8,k=8)", 7.0, 40.0, 3).unwrap();
        assert!(lines.len() > 1 && lines.concat() == "matmul(m=8,n=8,k=8)", "{lines:?}");
        assert!(lines.iter().all(|l| width(l, 7.0) <= 40.0));
        assert_eq!(wrapped("unbreakable", 7.0, 10.0, 9), None);
        assert_eq!(wrapped("a b c d", 7.0, 4.0, 2), None);
    }
}
