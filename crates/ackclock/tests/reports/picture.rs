//! Checks of screenshots.

use std::collections::BTreeMap;
use std::path::Path;

/// Saves a picture and fails on an empty one: fewer than 40 colours, or more than 97 of 100 pixels
/// of one colour.
pub(crate) fn keep(png: &[u8], path: &Path) {
    std::fs::write(path, png).unwrap();
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    let size = info.color_type.samples();
    let mut colours: BTreeMap<&[u8], usize> = BTreeMap::new();
    let pixels = &pixels[..info.buffer_size()];
    pixels.chunks_exact(size).for_each(|pixel| *colours.entry(pixel).or_default() += 1);
    let most = colours.values().max().copied().unwrap_or_default();
    let all = pixels.len() / size;
    assert!(colours.len() >= 40, "{}: {} colours", path.display(), colours.len());
    assert!(most * 100 <= all * 97, "{}: {most} of {all} pixels alike", path.display());
}
