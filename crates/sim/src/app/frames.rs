//! The receiver of a paced application: when each of its chunks, the frames, was complete.

use units::{Bytes, Duration, Instant};

/// Reads all available data and notes the arrival of frames.
#[derive(Debug, Clone)]
pub(crate) struct FrameReader {
    chunk: u64,
    /// Bytes of all frames; the last may be shorter than a chunk.
    total: u64,
    got: u64,
    arrivals: Vec<Instant>,
}

impl FrameReader {
    pub(crate) fn new(chunk: Bytes, bytes: Option<Bytes>) -> Self {
        let total = bytes.map_or(u64::MAX, Bytes::get);
        Self { chunk: chunk.get().max(1), total, got: 0, arrivals: Vec::new() }
    }

    /// Called when `bytes` were read.
    pub(crate) fn read(&mut self, now: Instant, bytes: u64) {
        self.got += bytes;
        let complete = match self.got >= self.total {
            true => self.total.div_ceil(self.chunk),
            false => self.got / self.chunk,
        };
        self.arrivals.resize(complete as usize, now);
    }

    /// The delays of the frames from the time at which each was due: the first at `first`, the others
    /// `every` apart.
    pub(crate) fn delays(&self, first: Instant, every: Duration) -> impl Iterator<Item = Duration> {
        let due = move |frame: u64| first + every.saturating_mul(frame);
        self.arrivals.iter().zip(0..).map(move |(at, frame)| at.since(due(frame)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_arrives_with_its_last_byte_and_the_last_may_be_short() {
        let ms = Duration::from_millis;
        let at = |n| Instant::ZERO + ms(n);
        let mut reader = FrameReader::new(Bytes(100), Some(Bytes(250)));
        reader.read(at(7), 99);
        let delays = |reader: &FrameReader| reader.delays(at(0), ms(10)).collect::<Vec<_>>();
        assert_eq!(delays(&reader), []);
        reader.read(at(8), 1);
        reader.read(at(25), 149);
        reader.read(at(31), 1);
        // Due at 0, 10 and 20 ms.
        assert_eq!(delays(&reader), [ms(8), ms(15), ms(11)]);
    }
}
