//! Charts as PNG: the SVG drawn by resvg, at twice its size.
//!
//! The font is built in, so that a picture does not depend on the fonts of the machine.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

use crate::failure::Failure;

/// Pixels per SVG pixel.
const SCALE: f32 = 2.0;

/// Renders an SVG as PNG.
pub(crate) fn of_svg(svg: &str) -> Result<Vec<u8>, Failure> {
    let failed =
        |what: &dyn std::fmt::Display| Failure::new(format!("cannot draw the PNG: {what}"));
    let mut options = Options::default();
    let fonts = options.fontdb_mut();
    fonts.load_font_data(epaint_default_fonts::UBUNTU_LIGHT.to_vec());
    let family = fonts.faces().next().and_then(|face| face.families.first());
    let family = family.map(|(name, _)| name.clone()).unwrap_or_default();
    fonts.set_sans_serif_family(family);
    let tree = Tree::from_str(svg, &options).map_err(|error| failed(&error))?;
    let size = tree.size().to_int_size();
    let (width, height) = (size.width() as f32 * SCALE, size.height() as f32 * SCALE);
    let mut picture =
        Pixmap::new(width as u32, height as u32).ok_or_else(|| failed(&"it has no size"))?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut picture.as_mut());
    picture.encode_png().map_err(|error| failed(&error))
}
