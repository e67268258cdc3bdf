//! What the pictures are drawn with: a white sheet, which is readable on a dark page too, texts in
//! the reader's own sans-serif, and colours that colour-blind readers can tell apart.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// The width of every picture, in pixels.
pub const WIDTH: i32 = 860;

pub const INK: RGBColor = RGBColor(31, 35, 40);
pub const PALE_INK: RGBColor = RGBColor(89, 99, 110);
pub const RULE: RGBColor = RGBColor(209, 215, 222);
pub const GREY: RGBColor = RGBColor(140, 149, 159);
pub const BLUE: RGBColor = RGBColor(0, 114, 178);
pub const SKY: RGBColor = RGBColor(86, 180, 233);
pub const ORANGE: RGBColor = RGBColor(230, 159, 0);
pub const VERMILLION: RGBColor = RGBColor(213, 94, 0);
pub const PURPLE: RGBColor = RGBColor(204, 121, 167);

/// A place, in pixels from the upper left corner.
pub type Place = (i32, i32);

pub struct Canvas<'a>(DrawingArea<SVGBackend<'a>, Shift>);

/// The colour of a limiter or another contender: the same in every picture.
pub fn colour_of(contender: &str) -> RGBColor {
    match contender.split([' ', ',']).next().unwrap_or_default() {
        "RL.SWC" => SKY,
        name if name.starts_with("RL.") => BLUE,
        "GCRA" | "CL.THROTTLE" => ORANGE,
        "fixed" | "Lua" => VERMILLION,
        "classic" | "MULTI" => PURPLE,
        _ => GREY,
    }
}

/// What stands around a picture: above it what it shows, below it where the figures are from.
pub struct Frame<'a> {
    pub title: &'a str,
    pub notes: &'a [&'a str],
    pub origin: &'a str,
}

/// Draws a picture of that height.
pub fn picture(height: i32, frame: Frame, paint: impl FnOnce(&Canvas)) -> String {
    let mut svg = String::new();
    {
        let backend = SVGBackend::with_string(&mut svg, (WIDTH as u32, height as u32));
        let canvas = Canvas(backend.into_drawing_area());
        canvas.0.fill(&WHITE).expect(TAKES_ALL);
        canvas.text((20, 28), frame.title, Text::of(18, INK).bold());
        canvas.text((20, height - 16), frame.origin, Text::of(11, PALE_INK));
        for (line, note) in frame.notes.iter().enumerate() {
            canvas.text((20, 52 + 18 * line as i32), note, Text::of(12, PALE_INK));
        }
        paint(&canvas);
        canvas.0.present().expect(TAKES_ALL);
    }
    svg
}

const TAKES_ALL: &str = "a string takes all that is drawn";

/// How a text looks, and which of its ends is at the place given. Its middle is at the height given.
#[derive(Clone, Copy)]
pub struct Text {
    size: i32,
    colour: RGBColor,
    style: FontStyle,
    end: HPos,
}

impl Text {
    pub fn of(size: i32, colour: RGBColor) -> Self {
        Self { size, colour, style: FontStyle::Normal, end: HPos::Left }
    }

    pub fn bold(self) -> Self {
        Self { style: FontStyle::Bold, ..self }
    }

    pub fn centred(self) -> Self {
        Self { end: HPos::Center, ..self }
    }

    pub fn to_the_left(self) -> Self {
        Self { end: HPos::Right, ..self }
    }
}

impl Canvas<'_> {
    pub fn text(&self, at: Place, text: &str, look: Text) {
        // The backend divides by this.
        let size = f64::from(look.size) * 1.24;
        let style = FontDesc::new(FontFamily::SansSerif, size, look.style)
            .color(&look.colour)
            .pos(Pos::new(look.end, VPos::Center));
        self.0.draw_text(text, &style, at).expect(TAKES_ALL);
    }

    /// A filled rectangle.
    pub fn bar(&self, from: Place, to: Place, colour: impl Color) {
        self.0.draw(&Rectangle::new([from, to], colour.filled())).expect(TAKES_ALL);
    }

    pub fn line(&self, points: Vec<Place>, colour: RGBColor, width: u32) {
        self.0.draw(&PathElement::new(points, colour.stroke_width(width))).expect(TAKES_ALL);
    }

    pub fn dot(&self, at: Place, radius: i32, colour: RGBColor) {
        self.0.draw(&Circle::new(at, radius, colour.filled())).expect(TAKES_ALL);
    }

    /// A dashed line to the right or down.
    pub fn dashes(&self, from: Place, to: Place, colour: RGBColor) {
        let steps = (to.0 - from.0).max(to.1 - from.1);
        let (across, down) = ((to.0 - from.0).signum(), (to.1 - from.1).signum());
        for step in (0..steps).step_by(7) {
            let at = |step: i32| (from.0 + across * step, from.1 + down * step);
            self.line(vec![at(step), at((step + 4).min(steps))], colour, 1);
        }
    }
}
