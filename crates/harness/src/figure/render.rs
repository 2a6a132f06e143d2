//! Drawing a scene: the same shapes through the SVG and the bitmap backend of plotters.

use super::scene::{Align, Color, Label, Mark, Rect, Scene, Shape, Stroke};
use super::text;
use plotters::coord::Shift;
use plotters::prelude::{
    BitMapBackend, Circle, DrawingArea, DrawingBackend, FontDesc, FontFamily, FontStyle, IntoDrawingArea, PathElement,
    Polygon, RGBAColor, Rectangle, SVGBackend, WHITE,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color as _, FontTransform, TextStyle};
use std::error::Error;
use std::fmt::Write;

/// Units of the drawing per point, in SVG: the backend knows whole numbers only.
const SVG_UNITS: f64 = 20.0;

/// Pixels per point in PNG: 360 pixels per inch.
const PNG_PIXELS: f64 = 5.0;

/// Why a scene could not be drawn.
type Failure = Box<dyn Error + Send + Sync>;

/// Draws a scene as SVG.
///
/// # Errors
/// When the backend fails.
pub fn svg(scene: &Scene) -> Result<String, Failure> {
    let (width, height) = size(scene, SVG_UNITS);
    let mut body = String::new();
    {
        let root = SVGBackend::with_string(&mut body, (width, height)).into_drawing_area();
        Pen { area: &root, unit: SVG_UNITS, rise: 0.0 }.scene(scene)?;
        root.present().map_err(|e| e.to_string())?;
    }
    // The backend sizes the picture in its own units; on paper it has the size of the scene.
    let old = format!("width=\"{width}\" height=\"{height}\" viewBox");
    let new = format!("width=\"{}pt\" height=\"{}pt\" viewBox", scene.width, scene.height);
    let mut sized = body.replacen(&old, &new, 1);
    if let Some(end) = sized.find('>') {
        let mut words = String::new();
        write!(words, "\n<title>{}</title>\n<desc>{}</desc>", escaped(&scene.title), escaped(&scene.description))?;
        sized.insert_str(end + 1, &words);
    }
    Ok(sized)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Draws a scene as PNG, with its size on paper and its title in it.
///
/// # Errors
/// When the backend or the encoder fails.
pub fn png(scene: &Scene) -> Result<Vec<u8>, Failure> {
    let (width, height) = size(scene, PNG_PIXELS);
    let mut pixels = vec![255u8; width as usize * height as usize * 3];
    {
        let root = BitMapBackend::with_buffer(&mut pixels, (width, height)).into_drawing_area();
        Pen { area: &root, unit: PNG_PIXELS, rise: BITMAP_RISE }.scene(scene)?;
        root.present().map_err(|e| e.to_string())?;
    }
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let per_metre = (PNG_PIXELS * 72.0 / 0.0254).round() as u32;
    let unit = png::Unit::Meter;
    encoder.set_pixel_dims(Some(png::PixelDimensions { xppu: per_metre, yppu: per_metre, unit }));
    encoder.add_itxt_chunk("Title".to_owned(), scene.title.clone())?;
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixels)?;
    writer.finish()?;
    Ok(bytes)
}

fn size(scene: &Scene, unit: f64) -> (u32, u32) {
    ((scene.width * unit).round() as u32, (scene.height * unit).round() as u32)
}

/// How far above the middle the bitmap backend sets its text, in em.
const BITMAP_RISE: f64 = 0.17;

struct Pen<'a, DB: DrawingBackend> {
    area: &'a DrawingArea<DB, Shift>,
    /// Units of the drawing per point.
    unit: f64,
    /// How far above the middle the backend sets text, in em.
    rise: f64,
}

fn paint(color: Color) -> RGBAColor {
    let [r, g, b] = color.rgb;
    RGBAColor(r, g, b, color.alpha)
}

impl<DB: DrawingBackend> Pen<'_, DB> {
    fn scene(&self, scene: &Scene) -> Result<(), Failure> {
        text::register();
        self.area.fill(&WHITE).map_err(|e| e.to_string())?;
        scene.shapes.iter().try_for_each(|shape| self.shape(shape))
    }

    fn shape(&self, shape: &Shape) -> Result<(), Failure> {
        match shape {
            Shape::Fill(rect, color) => self.fill(*rect, *color),
            Shape::Outline(rect, stroke) => {
                let (l, t, r, b) = (rect.x, rect.y, rect.right(), rect.bottom());
                self.line(&[(l, t), (r, t), (r, b), (l, b), (l, t)], *stroke)
            }
            Shape::Line(points, stroke) => self.line(points, *stroke),
            Shape::Polygon(points, color) => self.polygon(points, *color),
            Shape::Mark(mark, at, radius, color) => self.mark(*mark, *at, *radius, *color),
            Shape::Text(label) => self.text(label),
        }
    }

    fn point(&self, (x, y): (f64, f64)) -> (i32, i32) {
        ((x * self.unit).round() as i32, (y * self.unit).round() as i32)
    }

    fn fill(&self, rect: Rect, color: Color) -> Result<(), Failure> {
        let (from, mut to) = (self.point((rect.x, rect.y)), self.point((rect.right(), rect.bottom())));
        // The backends leave out the last pixel; what is thinner than a pixel shows as one.
        to = (to.0.max(from.0 + 1), to.1.max(from.1 + 1));
        self.area.draw(&Rectangle::new([from, to], paint(color).filled())).map_err(|e| e.to_string().into())
    }

    fn line(&self, points: &[(f64, f64)], stroke: Stroke) -> Result<(), Failure> {
        let width = ((stroke.width * self.unit).round() as u32).max(1);
        let style = paint(stroke.color).stroke_width(width);
        let draw = |points: &[(f64, f64)]| -> Result<(), Failure> {
            let points: Vec<_> = points.iter().map(|&p| self.point(p)).collect();
            self.area.draw(&PathElement::new(points, style)).map_err(|e| e.to_string().into())
        };
        match stroke.dash {
            None => draw(points),
            Some(dash) => dashes(points, dash).iter().try_for_each(|piece| draw(piece)),
        }
    }

    fn polygon(&self, points: &[(f64, f64)], color: Color) -> Result<(), Failure> {
        let points: Vec<_> = points.iter().map(|&p| self.point(p)).collect();
        self.area.draw(&Polygon::new(points, paint(color))).map_err(|e| e.to_string().into())
    }

    fn mark(&self, mark: Mark, (x, y): (f64, f64), r: f64, color: Color) -> Result<(), Failure> {
        let polygon = |points: &[(f64, f64)]| {
            let points: Vec<_> = points.iter().map(|(dx, dy)| (x + dx * r, y + dy * r)).collect();
            self.polygon(&points, color)
        };
        match mark {
            Mark::Disc => {
                let radius = (r * self.unit).round() as i32;
                self.area
                    .draw(&Circle::new(self.point((x, y)), radius, paint(color).filled()))
                    .map_err(|e| e.to_string().into())
            }
            Mark::Square => polygon(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
            Mark::Up => polygon(&[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)]),
            Mark::Down => polygon(&[(0.0, 1.2), (1.1, -0.8), (-1.1, -0.8)]),
            Mark::Diamond => polygon(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
            Mark::Cross => {
                let stroke = Stroke::solid(color, r * 0.6);
                self.line(&[(x - r, y - r), (x + r, y + r)], stroke)?;
                self.line(&[(x - r, y + r), (x + r, y - r)], stroke)
            }
        }
    }

    fn text(&self, label: &Label) -> Result<(), Failure> {
        let size = label.size * self.unit * text::EM;
        let h = match label.align {
            Align::Left => HPos::Left,
            Align::Center => HPos::Center,
            Align::Right => HPos::Right,
        };
        let turn = if label.turned { FontTransform::Rotate270 } else { FontTransform::None };
        let font = FontDesc::new(FontFamily::Name(text::FAMILY), size, FontStyle::Normal).transform(turn);
        let color = paint(label.color);
        let style = TextStyle::from(font).color(&color).pos(Pos::new(h, VPos::Center));
        let (x, y) = label.at;
        let rise = self.rise * label.size;
        let at = if label.turned { (x + rise, y) } else { (x, y + rise) };
        self.area.draw_text(&label.text, &style, self.point(at)).map_err(|e| e.to_string().into())
    }
}

/// The pieces of a dashed line.
fn dashes(points: &[(f64, f64)], (on, off): (f64, f64)) -> Vec<Vec<(f64, f64)>> {
    let (mut pieces, mut piece) = (Vec::new(), Vec::new());
    let (mut drawing, mut left) = (true, on);
    for pair in points.windows(2) {
        let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
        let length = (x1 - x0).hypot(y1 - y0);
        let at = |t: f64| (x0 + (x1 - x0) * t / length, y0 + (y1 - y0) * t / length);
        let mut done = 0.0;
        if drawing {
            piece.push((x0, y0));
        }
        while length - done > left {
            done += left;
            piece.push(at(done));
            if drawing {
                pieces.push(std::mem::take(&mut piece));
            }
            drawing = !drawing;
            left = if drawing { on } else { off };
        }
        left -= length - done;
        if drawing && length > 0.0 {
            piece.push((x1, y1));
        }
    }
    if drawing && piece.len() > 1 {
        pieces.push(piece);
    }
    pieces.retain(|p| p.len() > 1);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashes_cover_their_share_of_a_line() {
        let pieces = dashes(&[(0.0, 0.0), (5.0, 0.0), (10.0, 0.0)], (2.0, 1.0));
        let length: f64 = pieces.iter().map(|p| p[p.len() - 1].0 - p[0].0).sum();
        assert_eq!(pieces.iter().map(|p| p[0].0).collect::<Vec<_>>(), [0.0, 3.0, 6.0, 9.0]);
        assert_eq!(length, 7.0);
        assert!(dashes(&[(1.0, 1.0), (1.0, 1.0)], (2.0, 1.0)).iter().all(|p| p.len() > 1));
    }

    #[test]
    fn both_forms_hold_what_was_drawn() {
        let black = Color::rgb(0, 0, 0);
        let mut scene = Scene::new(72.0, 36.0);
        scene.title = "a < b".to_owned();
        scene.description = "one & two".to_owned();
        scene.fill(Rect { x: 0.0, y: 0.0, w: 36.0, h: 36.0 }, Color::rgb(255, 0, 0));
        scene.text((54.0, 18.0), "spill", 8.0, black, Align::Center);
        let svg = svg(&scene).unwrap();
        assert!(svg.starts_with("<svg width=\"72pt\" height=\"36pt\" viewBox=\"0 0 1440 720\""), "{svg}");
        assert!(svg.contains("<title>a &lt; b</title>\n<desc>one &amp; two</desc>"));
        assert!(svg.contains("spill") && svg.contains("#FF0000"));
        let png = png(&scene).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(&png)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height), (360, 180));
        let pixel = |x: usize, y: usize| &pixels[(y * 360 + x) * 3..][..3];
        assert_eq!(
            (pixel(0, 0), pixel(179, 179), pixel(181, 0)),
            (&[255, 0, 0][..], &[255, 0, 0][..], &[255, 255, 255][..])
        );
        let dark =
            (200..340).flat_map(|x| (60..120).map(move |y| (x, y))).filter(|&(x, y)| pixel(x, y)[0] < 100).count();
        assert!(dark > 50, "the text has {dark} dark pixels");
    }
}
