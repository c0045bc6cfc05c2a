//! The reader of both formats.

use std::io::{self, Read};

use super::{CaptureProblem, CaptureProblemKind, Interface, Item, OpenError, Tally, pcap, pcapng};
use crate::window::Window;

/// Reads a capture; memory is bounded whatever the file is.
#[derive(Debug)]
pub struct Reader<R> {
    form: Form<R>,
    tally: Tally,
}

#[derive(Debug)]
enum Form<R> {
    Pcap(pcap::Frames<R>),
    PcapNg(pcapng::Frames<R>),
}

/// A frame or a problem, found but not yet handed out.
pub(super) enum Next {
    Frame(pcap::Place),
    Problem(CaptureProblem),
    End,
}

impl<R: Read> Reader<R> {
    /// Reads from `input`, which need not be buffered.
    ///
    /// # Errors
    ///
    /// [`OpenError`] if it does not begin as a capture does.
    pub fn new(input: R) -> Result<Self, OpenError> {
        let mut window = Window::new(input);
        window.fill(4);
        let begins = window.bytes();
        let begins = &begins[..begins.len().min(4)];
        let form = if pcapng::begins(begins) {
            Form::PcapNg(pcapng::Frames::new(window))
        } else if let Some(variant) = pcap::Variant::of(begins) {
            Form::Pcap(pcap::Frames::new(window, variant))
        } else {
            let begins = begins.to_vec();
            return Err(match window.take_error() {
                Some(error) => OpenError::Read(error),
                None if begins.is_empty() => OpenError::Empty,
                None => OpenError::Foreign { begins },
            });
        };
        Ok(Self { form, tally: Tally::default() })
    }

    /// The interfaces declared so far; numbers of frames point into them.
    pub fn interfaces(&self) -> &[Interface] {
        match &self.form {
            Form::Pcap(frames) => frames.interfaces(),
            Form::PcapNg(frames) => frames.interfaces(),
        }
    }

    /// What is there and what is missing, so far.
    pub const fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The next frame or problem; `None` at the end.
    ///
    /// # Errors
    ///
    /// Those of the input, but not that it is damaged: that is a [`CaptureProblem`].
    #[expect(clippy::should_implement_trait, reason = "a frame borrows from the reader")]
    pub fn next(&mut self) -> io::Result<Option<Item<'_>>> {
        let next = match &mut self.form {
            Form::Pcap(frames) => frames.next(&mut self.tally),
            Form::PcapNg(frames) => frames.next(&mut self.tally),
        };
        let place = match next {
            Next::Frame(place) => place,
            Next::Problem(problem) => return Ok(Some(self.problem(problem))),
            Next::End => return self.end(),
        };
        self.tally.frames += 1;
        let bytes = match &self.form {
            Form::Pcap(frames) => frames.bytes(&place),
            Form::PcapNg(frames) => frames.bytes(&place),
        };
        Ok(Some(Item::Frame(place.frame(self.tally.frames, bytes))))
    }

    fn problem(&mut self, problem: CaptureProblem) -> Item<'static> {
        self.tally.problems += 1;
        if let CaptureProblemKind::Skipped { bytes, .. }
        | CaptureProblemKind::Record { skipped: bytes, .. } = problem.kind
        {
            self.tally.skipped_bytes += bytes;
        }
        Item::Problem(problem)
    }

    fn end(&mut self) -> io::Result<Option<Item<'_>>> {
        let window = match &mut self.form {
            Form::Pcap(frames) => frames.window(),
            Form::PcapNg(frames) => frames.window(),
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
