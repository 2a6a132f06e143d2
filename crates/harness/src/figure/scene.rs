//! A figure as a list of shapes, laid out once and drawn as SVG and as PNG.
//!
//! Lengths are points (1/72 inch) on paper, y downwards. Because the layout is data, a test can ask
//! whether two labels overlap or one leaves the page.

use super::text;

/// A colour, opaque unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Color {
    /// Red, green, blue.
    pub rgb: [u8; 3],
    /// Opacity, 0 to 1.
    pub alpha: f64,
}

impl Color {
    /// An opaque colour.
    pub const fn rgb(r: u8, g: u8, b: u8) -> Self {
        Self { rgb: [r, g, b], alpha: 1.0 }
    }

    /// The same colour, partly transparent.
    pub const fn faded(self, alpha: f64) -> Self {
        Self { rgb: self.rgb, alpha }
    }

    /// True when dark text on it would be hard to read.
    pub fn is_dark(self) -> bool {
        let [r, g, b] = self.rgb.map(f64::from);
        0.299 * r + 0.587 * g + 0.114 * b < 140.0
    }
}

/// A line's look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stroke {
    /// Its colour.
    pub color: Color,
    /// Its width in points.
    pub width: f64,
    /// Lengths of dash and gap in points; `None` for a solid line.
    pub dash: Option<(f64, f64)>,
}

impl Stroke {
    /// A solid line.
    pub const fn solid(color: Color, width: f64) -> Self {
        Self { color, width, dash: None }
    }
}

/// A rectangle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rect {
    /// Left edge.
    pub x: f64,
    /// Top edge.
    pub y: f64,
    /// Width.
    pub w: f64,
    /// Height.
    pub h: f64,
}

impl Rect {
    /// The right edge.
    pub fn right(self) -> f64 {
        self.x + self.w
    }

    /// The bottom edge.
    pub fn bottom(self) -> f64 {
        self.y + self.h
    }

    /// The rectangle with each edge moved inwards.
    pub fn inset(self, left: f64, top: f64, right: f64, bottom: f64) -> Self {
        let (w, h) = ((self.w - left - right).max(1.0), (self.h - top - bottom).max(1.0));
        Self { x: self.x + left, y: self.y + top, w, h }
    }

    /// True when the two share more than `slack` in both directions.
    pub fn overlaps(self, other: Self, slack: f64) -> bool {
        let x = self.right().min(other.right()) - self.x.max(other.x);
        let y = self.bottom().min(other.bottom()) - self.y.max(other.y);
        x > slack && y > slack
    }
}

/// Where a text lies horizontally from its anchor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// To the right of it.
    Left,
    /// Around it.
    Center,
    /// To the left of it.
    Right,
}

/// A text, centred vertically on its anchor; turned texts run upwards.
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    /// The anchor.
    pub at: (f64, f64),
    /// The text, one line.
    pub text: String,
    /// The size of its font in points.
    pub size: f64,
    /// Its colour.
    pub color: Color,
    /// Where it lies along its direction.
    pub align: Align,
    /// True when it runs upwards.
    pub turned: bool,
}

impl Label {
    /// The space that it takes.
    pub fn bounds(&self) -> Rect {
        let (length, height) = (text::width(&self.text, self.size), self.size);
        let before = match self.align {
            Align::Left => 0.0,
            Align::Center => length / 2.0,
            Align::Right => length,
        };
        let (x, y) = self.at;
        if self.turned {
            Rect { x: x - height / 2.0, y: y + before - length, w: height, h: length }
        } else {
            Rect { x: x - before, y: y - height / 2.0, w: length, h: height }
        }
    }
}

/// A mark on a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A disc.
    Disc,
    /// A square.
    Square,
    /// A triangle on its base.
    Up,
    /// A square on its corner.
    Diamond,
    /// A triangle on its tip.
    Down,
    /// A diagonal cross.
    Cross,
}

impl Mark {
    /// All marks, in the order in which series take them.
    pub const ALL: [Self; 6] = [Self::Disc, Self::Square, Self::Up, Self::Diamond, Self::Down, Self::Cross];
}

/// One thing to draw.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// A filled rectangle.
    Fill(Rect, Color),
    /// The outline of a rectangle.
    Outline(Rect, Stroke),
    /// A line through points.
    Line(Vec<(f64, f64)>, Stroke),
    /// A filled polygon.
    Polygon(Vec<(f64, f64)>, Color),
    /// A mark of a radius around a point.
    Mark(Mark, (f64, f64), f64, Color),
    /// A text.
    Text(Label),
}

/// A whole figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// Width in points.
    pub width: f64,
    /// Height in points.
    pub height: f64,
    /// What it shows, for readers that cannot see it.
    pub title: String,
    /// The numbers that it shows, for the same readers and for programs.
    pub description: String,
    /// What to draw, first things lowest.
    pub shapes: Vec<Shape>,
}

impl Scene {
    /// An empty figure.
    pub fn new(width: f64, height: f64) -> Self {
        Self { width, height, title: String::new(), description: String::new(), shapes: Vec::new() }
    }

    /// Fills a rectangle.
    pub fn fill(&mut self, rect: Rect, color: Color) {
        self.shapes.push(Shape::Fill(rect, color));
    }

    /// Outlines a rectangle.
    pub fn outline(&mut self, rect: Rect, stroke: Stroke) {
        self.shapes.push(Shape::Outline(rect, stroke));
    }

    /// Draws a line through points.
    pub fn line(&mut self, points: Vec<(f64, f64)>, stroke: Stroke) {
        if points.len() > 1 {
            self.shapes.push(Shape::Line(points, stroke));
        }
    }

    /// Writes a text.
    pub fn text(&mut self, at: (f64, f64), text: impl Into<String>, size: f64, color: Color, align: Align) {
        self.shapes.push(Shape::Text(Label { at, text: text.into(), size, color, align, turned: false }));
    }

    /// Writes a text that runs upwards.
    pub fn turned(&mut self, at: (f64, f64), text: impl Into<String>, size: f64, color: Color, align: Align) {
        self.shapes.push(Shape::Text(Label { at, text: text.into(), size, color, align, turned: true }));
    }

    /// All texts.
    pub fn labels(&self) -> impl Iterator<Item = &Label> {
        self.shapes.iter().filter_map(|shape| if let Shape::Text(label) = shape { Some(label) } else { None })
    }

    /// Labels that overlap or leave the page, in words; empty for a sound figure.
    pub fn misplaced_labels(&self) -> Vec<String> {
        let labels: Vec<_> = self.labels().map(|l| (l, l.bounds())).collect();
        let mut found = Vec::new();
        for (i, (label, bounds)) in labels.iter().enumerate() {
            let inside =
                bounds.x >= 0.0 && bounds.y >= 0.0 && bounds.right() <= self.width && bounds.bottom() <= self.height;
            if !inside {
                found.push(format!("{:?} leaves the page", label.text));
            }
            let over = labels[..i].iter().filter(|(_, other)| bounds.overlaps(*other, 0.3));
            found.extend(over.map(|(other, _)| format!("{:?} overlaps {:?}", label.text, other.text)));
        }
        found
    }
}
