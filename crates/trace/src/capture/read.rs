//! Reader of both formats.

use std::io::{self, Read};

use super::{
    CaptureInterface, CaptureItem, CaptureProblem, CaptureProblemKind, CaptureStats, OpenError,
    pcap, pcapng,
};
use crate::window::Window;

/// Reads a capture with bounded memory.
#[derive(Debug)]
pub struct CaptureReader<R> {
    form: FrameReader<R>,
    tally: CaptureStats,
}

#[derive(Debug)]
enum FrameReader<R> {
    Pcap(pcap::PcapFrames<R>),
    PcapNg(pcapng::PcapngFrames<R>),
}

/// The next frame or problem.
pub(super) enum NextFrame {
    Frame(pcap::FrameLocation),
    Problem(CaptureProblem),
    /// Secrets of TLS: their offset in the block, and their length.
    Secrets {
        from: usize,
        len: usize,
    },
    End,
}

impl<R: Read> CaptureReader<R> {
    /// Reads from `input`, which need not be buffered.
    ///
    /// # Errors
    ///
    /// [`OpenError`] if it does not begin like a capture.
    pub fn new(input: R) -> Result<Self, OpenError> {
        let mut window = Window::new(input);
        window.fill(4);
        let begins = window.bytes();
        let begins = &begins[..begins.len().min(4)];
        let form = if pcapng::begins(begins) {
            FrameReader::PcapNg(pcapng::PcapngFrames::new(window))
        } else if let Some(variant) = pcap::PcapFormat::of(begins) {
            FrameReader::Pcap(pcap::PcapFrames::new(window, variant))
        } else {
            let begins = begins.to_vec();
            return Err(match window.take_error() {
                Some(error) => OpenError::Read(error),
                None if begins.is_empty() => OpenError::Empty,
                None => OpenError::Foreign { begins },
            });
        };
        Ok(Self { form, tally: CaptureStats::default() })
    }

    /// The interfaces declared so far, indexed by
    /// [`CapturedFrame::interface`](super::CapturedFrame::interface).
    pub fn interfaces(&self) -> &[CaptureInterface] {
        match &self.form {
            FrameReader::Pcap(frames) => frames.interfaces(),
            FrameReader::PcapNg(frames) => frames.interfaces(),
        }
    }

    /// Whether the format has blocks of secrets, which may be anywhere: see [`CaptureItem::Secrets`].
    pub const fn may_have_secrets(&self) -> bool {
        matches!(self.form, FrameReader::PcapNg(_))
    }

    /// Counts of frames and problems so far.
    pub const fn tally(&self) -> &CaptureStats {
        &self.tally
    }

    /// The next frame or problem; `None` at the end.
    ///
    /// # Errors
    ///
    /// Those of the input. Damage is a [`CaptureProblem`] instead.
    #[expect(clippy::should_implement_trait, reason = "a frame borrows from the reader")]
    pub fn next(&mut self) -> io::Result<Option<CaptureItem<'_>>> {
        let next = match &mut self.form {
            FrameReader::Pcap(frames) => frames.next(&mut self.tally),
            FrameReader::PcapNg(frames) => frames.next(&mut self.tally),
        };
        let place = match next {
            NextFrame::Frame(place) => place,
            NextFrame::Problem(problem) => return Ok(Some(self.problem(problem))),
            NextFrame::Secrets { from, len } => {
                return Ok(match &self.form {
                    FrameReader::PcapNg(frames) => {
                        Some(CaptureItem::Secrets(frames.secret_bytes(from, len)))
                    }
                    FrameReader::Pcap(_) => None,
                });
            }
            NextFrame::End => return self.end(),
        };
        self.tally.frames += 1;
        let bytes = match &self.form {
            FrameReader::Pcap(frames) => frames.bytes(&place),
            FrameReader::PcapNg(frames) => frames.bytes(&place),
        };
        Ok(Some(CaptureItem::Frame(place.frame(self.tally.frames, bytes))))
    }

    fn problem(&mut self, problem: CaptureProblem) -> CaptureItem<'static> {
        self.tally.problems += 1;
        if let CaptureProblemKind::Skipped { bytes, .. }
        | CaptureProblemKind::Record { skipped: bytes, .. } = problem.kind
        {
            self.tally.skipped_bytes += bytes;
        }
        CaptureItem::Problem(problem)
    }

    fn end(&mut self) -> io::Result<Option<CaptureItem<'_>>> {
        let window = match &mut self.form {
            FrameReader::Pcap(frames) => frames.window(),
            FrameReader::PcapNg(frames) => frames.window(),
        };
        let Some(error) = window.take_error() else { return Ok(None) };
        if error.kind() != io::ErrorKind::InvalidData {
            return Err(error);
        }
        let (offset, message) = (window.offset(), error.to_string());
        Ok(Some(
            self.problem(CaptureProblem { offset, kind: CaptureProblemKind::Packed { message } }),
        ))
    }
}
