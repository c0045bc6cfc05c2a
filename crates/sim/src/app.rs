//! What applications do.
//!
//! Each end of a connection has one. It reads all there is, or what it wants of it, offers what it
//! has to write, and is told how much of it the stack took.

mod bursts;
mod dialogue;
mod reader;
mod writer;

use units::{Instant, Stream};

use crate::outcome::Latency;
use crate::scenario::{App, Reads};
use bursts::Bursts;
use dialogue::{Answerer, Asker};
use reader::Reader;
use writer::Writer;

/// The application at one end.
#[derive(Debug, Clone)]
pub(crate) enum Application {
    /// Reads to the end.
    Sink,
    /// The same, slowly.
    Reader(Reader),
    Writer(Writer),
    Bursts(Box<Bursts>),
    Asker(Box<Asker>),
    Answerer(Answerer),
}

impl Application {
    /// The one that connects; `draws` decides what is left to chance.
    pub(crate) fn client(app: &App, draws: impl FnOnce() -> Stream) -> Self {
        match *app {
            App::Bulk { bytes, write } => Self::Writer(Writer::bulk(bytes, write)),
            App::Paced { chunk, every, bytes } => Self::Writer(Writer::paced(chunk, every, bytes)),
            App::OnOff { on, off, bytes } => {
                Self::Bursts(Box::new(Bursts::new(on, off, bytes, draws())))
            }
            App::Requests { request, response, think, count } => {
                Self::Asker(Box::new(Asker::new(request, response, think, count)))
            }
        }
    }

    /// The one that listens.
    pub(crate) fn server(app: &App, reads: Option<Reads>) -> Self {
        match (*app, reads) {
            (App::Requests { request, response, .. }, _) => {
                Self::Answerer(Answerer::new(request, response))
            }
            (_, Some(reads)) => Self::Reader(Reader::new(reads)),
            (App::Bulk { .. } | App::Paced { .. } | App::OnOff { .. }, None) => Self::Sink,
        }
    }

    /// The connection is established.
    pub(crate) fn begin(&mut self, now: Instant) {
        match self {
            Self::Writer(writer) => writer.begin(now),
            Self::Bursts(bursts) => bursts.begin(now),
            Self::Asker(asker) => asker.begin(now),
            Self::Sink | Self::Reader(_) | Self::Answerer(_) => {}
        }
    }

    /// How much it wants to read now at most.
    #[inline]
    pub(crate) fn most(&self, now: Instant) -> u64 {
        match self {
            Self::Reader(reader) => reader.most(now),
            _ => u64::MAX,
        }
    }

    /// It has read `bytes`.
    #[inline]
    pub(crate) fn read(&mut self, now: Instant, bytes: u64) {
        match self {
            Self::Asker(asker) => asker.read(now, bytes),
            Self::Answerer(answerer) => answerer.read(bytes),
            Self::Reader(reader) => reader.read(now, bytes),
            Self::Sink | Self::Writer(_) | Self::Bursts(_) => {}
        }
    }

    /// Bytes to offer to the stack now.
    #[inline]
    pub(crate) fn offer(&mut self, now: Instant) -> u64 {
        match self {
            Self::Sink | Self::Reader(_) => 0,
            Self::Writer(writer) => writer.offer(now),
            Self::Bursts(bursts) => bursts.offer(now),
            Self::Asker(asker) => asker.offer(now),
            Self::Answerer(answerer) => answerer.offer(),
        }
    }

    /// The stack has taken `bytes` of what was offered.
    #[inline]
    pub(crate) fn taken(&mut self, now: Instant, bytes: u64) {
        match self {
            Self::Sink | Self::Reader(_) => {}
            Self::Writer(writer) => writer.taken(bytes),
            Self::Bursts(bursts) => bursts.taken(now, bytes),
            Self::Asker(asker) => asker.taken(bytes),
            Self::Answerer(answerer) => answerer.taken(bytes),
        }
    }

    /// Will it write no more? `at_end`: all that the peer had to say has been read.
    pub(crate) fn done(&self, at_end: bool) -> bool {
        match self {
            Self::Sink | Self::Reader(_) => at_end,
            Self::Writer(writer) => writer.done(),
            Self::Bursts(bursts) => bursts.done(),
            Self::Asker(asker) => asker.done(),
            Self::Answerer(answerer) => at_end && answerer.done(),
        }
    }

    /// When it wants to run though nothing is said to it.
    pub(crate) fn next_act(&self, now: Instant) -> Option<Instant> {
        match self {
            Self::Sink | Self::Answerer(_) => None,
            Self::Reader(reader) => Some(reader.next_read()),
            Self::Writer(writer) => writer.next_write(),
            Self::Bursts(bursts) => bursts.next_write(now),
            Self::Asker(asker) => asker.next_write(),
        }
    }

    /// What requests took, where it makes any.
    pub(crate) fn latency(&self) -> Option<Latency> {
        match self {
            Self::Asker(asker) => asker.latency(),
            _ => None,
        }
    }
}
