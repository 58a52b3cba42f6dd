//! Rasters: pictures of so many marks that they are pixels instead of elements.

use crate::markup::base64;

/// Levels of colour, by pixel; level 0 is transparent, so that the page's own colour shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Raster {
    width: u32,
    height: u32,
    levels: Vec<u8>,
}

impl Raster {
    /// Creates an empty raster of at least one pixel and at most [`SIDE_MAX`] a side.
    pub(super) fn new(width: u32, height: u32) -> Self {
        let [width, height] = [width, height].map(|side| side.clamp(1, SIDE_MAX));
        Self {
            width,
            height,
            levels: vec![0; width as usize * height as usize],
        }
    }

    /// Creates an empty raster for an area of a picture.
    pub(super) fn over(width: f64, height: f64) -> Self {
        Self::new(whole(width * FINENESS), whole(height * FINENESS))
    }

    /// Draws a dot around a place in the picture, from the corner of the raster.
    pub(super) fn dot(&mut self, (x, y): (f64, f64)) {
        let (x, y) = (x * FINENESS, y * FINENESS);
        self.raise((x - 1.0, y - 1.0), (x + 1.0, y + 1.0), 1);
    }

    pub(super) const fn width(&self) -> u32 {
        self.width
    }

    pub(super) const fn height(&self) -> u32 {
        self.height
    }

    /// Raises the pixels between two corners to a level; of several marks in a pixel the highest
    /// is seen. A mark narrower than a pixel takes one; what lies outside is left out.
    pub(super) fn raise(
        &mut self,
        (left, top): (f64, f64),
        (right, bottom): (f64, f64),
        level: u8,
    ) {
        let (columns, rows) = (
            pixels(left, right, self.width),
            pixels(top, bottom, self.height),
        );
        for row in rows {
            let start = row * self.width as usize;
            let row = &mut self.levels[start + columns.start..start + columns.end];
            for pixel in row {
                *pixel = (*pixel).max(level);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn has(&self, level: u8) -> bool {
        self.levels.contains(&level)
    }

    /// Returns the PNG with the colours of levels 1, 2, …: red, green, blue and opacity.
    pub(super) fn png(&self, colours: &[[u8; 4]]) -> Result<Vec<u8>, png::EncodingError> {
        let all = || std::iter::once(&[0; 4]).chain(colours).take(256);
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, self.width, self.height);
        encoder.set_color(png::ColorType::Indexed);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_palette(
            all()
                .flat_map(|[r, g, b, _]| [*r, *g, *b])
                .collect::<Vec<_>>(),
        );
        encoder.set_trns(all().map(|[.., opacity]| *opacity).collect::<Vec<_>>());
        // Rows repeat those above them, which only this filter makes use of.
        encoder.set_filter(png::Filter::Up);
        encoder.set_compression(png::Compression::High);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.levels)?;
        writer.finish()?;
        Ok(bytes)
    }

    /// Returns the address of the PNG for an element; empty if there is none.
    pub(super) fn address(&self, colours: &[[u8; 4]]) -> String {
        // Writing to memory cannot fail, and the sides are bounded.
        let png = self.png(colours).unwrap_or_default();
        format!("data:image/png;base64,{}", base64(&png))
    }
}

/// Returns the pixels from one place to another that are inside.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "casts saturate, and NaN becomes 0"
)]
fn pixels(from: f64, to: f64, side: u32) -> std::ops::Range<usize> {
    let outside = !(from < f64::from(side) && to >= 0.0);
    if outside {
        return 0..0;
    }
    let first = from.max(0.0).floor() as usize;
    let end = (to.ceil() as usize).max(first + 1).min(side as usize);
    first..end
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "casts saturate, and NaN becomes 0"
)]
pub(super) fn whole(value: f64) -> u32 {
    value.round() as u32
}

/// Pixels to a unit of the picture, which a page shows wider than it is.
const FINENESS: f64 = 2.0;

/// Largest side: pictures are 800 pixels wide, and their rasters twice as fine.
pub(super) const SIDE_MAX: u32 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pngs_are_read_back_as_they_were() {
        let mut raster = Raster::new(7, 3);
        raster.raise((1.2, 0.0), (3.0, 1.0), 2);
        raster.raise((2.0, -5.0), (2.1, 99.0), 1);
        raster.raise((-9.0, 0.0), (-1.0, 3.0), 2);
        raster.raise((f64::NAN, 0.0), (f64::NAN, 3.0), 2);
        let want = [
            0, 2, 2, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0,
        ];
        assert_eq!(raster.levels, want);
        let png = raster.png(&[[1, 2, 3, 255], [4, 5, 6, 128]]).unwrap();
        let decoder = png::Decoder::new(std::io::Cursor::new(&png));
        let mut reader = decoder.read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut bytes).unwrap();
        assert_eq!(bytes, want);
        assert_eq!(reader.info().palette.as_deref().unwrap()[3..6], [1, 2, 3]);
        assert_eq!(reader.info().trns.as_deref().unwrap(), [0, 255, 128]);
    }

    #[test]
    fn sides_are_bounded() {
        let raster = Raster::new(0, u32::MAX);
        assert_eq!((raster.width(), raster.height()), (1, SIDE_MAX));
    }
}
