//! The media that every kind of picture is drawn for.

use super::WIDTH;
use super::canvas::{Canvas, Medium};

/// Picture that can be drawn on screens and on paper.
pub(crate) trait Draw {
    /// Returns the title.
    fn title(&self) -> &str;

    /// Draws the picture and returns its height.
    fn drawn(&self, medium: Medium) -> (Canvas, f64);

    /// Draws the picture as a document of its own.
    fn document(&self) -> String {
        let (canvas, height) = self.drawn(Medium::Screen);
        canvas.finish(WIDTH, height)
    }

    /// Draws the picture as a document for paper: black on white, whatever the reader prefers.
    fn drawing(&self) -> String {
        let (canvas, height) = self.drawn(Medium::Paper);
        canvas.finish(WIDTH, height)
    }

    /// Draws the picture as an element of a page whose style sheet has the rules of
    /// [`style_sheet`](super::style_sheet); it is as wide as the page allows.
    fn figure(&self) -> String {
        let (canvas, height) = self.drawn(Medium::Screen);
        canvas.figure(WIDTH, height, self.title())
    }
}
