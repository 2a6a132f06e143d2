//! Names as messages and tables show them: a name comes from a file, and may be anything.

use std::fmt::{self, Write as _};

/// A name of at most 60 characters on one line: the rest is cut, and what does not print (control
/// characters, marks that turn the direction of writing) is escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown<'a>(pub &'a str);

impl Shown<'_> {
    /// How many characters of a name are shown.
    pub const LONGEST: usize = 60;
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.chars();
        for c in rest.by_ref().take(Self::LONGEST) {
            match c {
                '"' | '\'' | '\\' => f.write_char(c)?,
                _ => write!(f, "{}", c.escape_debug())?,
            }
        }
        f.write_str(if rest.next().is_some() { "..." } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shown_on_one_line_and_cut() {
        let shown = |name: &str| Shown(name).to_string();
        assert_eq!(shown("CONV_ADD \"x\\y's\" größer"), "CONV_ADD \"x\\y's\" größer");
        assert_eq!(shown("a\n\u{1b}[31m\u{202e}"), "a\\n\\u{1b}[31m\\u{202e}");
        assert_eq!(shown(&"é".repeat(60)), "é".repeat(60));
        assert_eq!(shown(&"é".repeat(61)), "é".repeat(60) + "...");
    }
}
