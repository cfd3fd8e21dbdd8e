//! The picture that `igen-cpu` computes, as a PNG file.

use std::io::Write;

use ironbench_core::{Error, Result};

use crate::mandelbrot::View;

/// Encodes the steps of each point, row by row. The set is black, and other points go from blue to white with their
/// number of steps.
pub fn png(view: View, steps: &[u32]) -> Result<Vec<u8>> {
    let failed = |error: png::EncodingError| Error::failure("picture", error.to_string());
    let (width, height) = (view.width as u32, view.height as u32);
    let palette = palette(view.limit);
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().map_err(failed)?;
    let mut rows = writer.stream_writer().map_err(failed)?;
    for row in steps.chunks_exact(view.width) {
        let colours: Vec<u8> = row.iter().flat_map(|&step| palette[step as usize]).collect();
        rows.write_all(&colours).map_err(|error| failed(error.into()))?;
    }
    rows.finish().map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(file)
}

/// Returns a colour for each number of steps, on a logarithmic scale, because most points leave early.
fn palette(limit: u32) -> Vec<[u8; 3]> {
    let whole = f64::from(limit).ln_1p();
    let colour = |step: u32| {
        let share = f64::from(step).ln_1p() / whole;
        [(2.6, 1.2), (1.9, 0.6), (1.4, 0.0)]
            .map(|(slope, offset)| ((share * slope - offset).clamp(0.0, 1.0) * 255.0) as u8)
    };
    (0..limit).map(colour).chain([[0, 0, 0]]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mandelbrot::{Variant, draw};

    #[test]
    fn the_picture_is_a_png_of_the_set() {
        let view = View { width: 90, height: 60, limit: 100 };
        let mut steps = vec![0; 90 * 60];
        draw(view, Variant::Scalar, &mut steps);
        let file = png(view, &steps).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height, info.color_type), (90, 60, png::ColorType::Rgb));
        let at = |row: usize, column: usize| &pixels[(row * 90 + column) * 3..][..3];
        assert_eq!(at(30, 45), [0, 0, 0], "about −0.5 lies within the set");
        assert_ne!(at(0, 0), [0, 0, 0]);
        for (point, step) in pixels.chunks_exact(3).zip(&steps) {
            assert_eq!(point, palette(100)[*step as usize]);
        }
    }
}
