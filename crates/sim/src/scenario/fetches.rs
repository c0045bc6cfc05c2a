//! Applications that fetch one response after another, each of its own size: video and web pages.

use units::{Bytes, Duration, Rate};

use super::TransferSizes;

/// A video in chunks, each of a bit rate that the player selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VideoSpec {
    /// Bit rates of the encodings, in ascending order, at least one.
    pub ladder: Vec<Rate>,
    /// Playing time of a chunk.
    pub chunk: Duration,
    /// Number of chunks; `None` continues until the run ends.
    pub chunks: Option<u64>,
    /// Playing time that the player buffers at most, at least a chunk.
    pub buffer: Duration,
    /// Buffered playing time at which the video begins to play, at most `buffer`.
    pub startup: Duration,
    /// How the player selects the bit rate.
    pub rule: BitrateRule,
    /// Bytes of a request for a chunk.
    pub request: Bytes,
}

/// How a video player selects the bit rate of the next chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BitrateRule {
    /// The highest bit rate below the harmonic mean of the throughput of the last five chunks: the
    /// rate-based algorithm of Yin, Jindal, Sekar and Sinopoli, SIGCOMM 2015, section 7.1.
    Throughput,
    /// BBA-0: a function of the buffered playing time, from the lowest bit rate at `reservoir` to the
    /// highest at `reservoir` + `cushion` (Huang, Johari, McKeown, Trunnell and Watson, SIGCOMM 2014,
    /// algorithm 1).
    Buffer {
        /// Buffered playing time up to which the bit rate is the lowest.
        reservoir: Duration,
        /// Width of the range above it, over which the bit rate rises to the highest; positive.
        cushion: Duration,
    },
}

/// Web pages, one after another: a document, then the objects that it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageSpec {
    /// Size of the document.
    pub html: Bytes,
    /// Number of objects.
    pub objects: u32,
    /// Size of each object.
    pub sizes: TransferSizes,
    /// Bytes of a request.
    pub request: Bytes,
    /// Connections, at least one. All but the first are opened once the first document has arrived.
    pub connections: u32,
    /// Maximum outstanding requests of a connection, at least one: the streams of HTTP/2 and HTTP/3.
    /// Responses are written in the order of the requests.
    pub streams: u32,
    /// Time from the end of a page to the request of the next.
    pub think: Duration,
    /// Number of pages; `None` continues until the run ends.
    pub count: Option<u64>,
}
