//! Applications.
//!
//! Each end of a connection has one. It reads all available data or a limited amount, offers data
//! to write, and is informed how much the stack accepted.

mod bursts;
mod exchange;
mod fetcher;
mod frames;
mod origin;
mod player;
mod reader;
mod requests;
mod writer;

use units::{Duration, Instant, RandomStream};

use crate::outcome::LatencyKind;
use crate::scenario::{App, ExchangeSide, FlowSpec, ReadPattern};
use bursts::OnOffWriter;
use exchange::Exchanger;
pub(crate) use fetcher::Fetcher;
use frames::FrameReader;
use origin::Origin;
pub(crate) use player::Player;
use reader::PacedReader;
use requests::{Requester, Responder};
use writer::DataWriter;

/// The application at one end.
#[derive(Debug, Clone)]
pub(crate) enum Application {
    /// Reads to the end.
    Sink,
    /// Reads slowly.
    Reader(PacedReader),
    /// Reads to the end and notes when frames arrive.
    Frames(Box<FrameReader>),
    Writer(DataWriter),
    Bursts(Box<OnOffWriter>),
    Asker(Box<Requester>),
    Answerer(Responder),
    Exchanger(Box<Exchanger>),
    Player(Box<Player>),
    Fetcher(Box<Fetcher>),
    Origin(Box<Origin>),
}

impl Application {
    /// Creates the connecting application; `draws` supplies its randomness, and `page` is the index of
    /// its web page in the world.
    pub(crate) fn client(flow: &FlowSpec, page: u32, draws: impl FnOnce() -> RandomStream) -> Self {
        match flow.app {
            App::Video(ref spec) => {
                Self::Player(Box::new(Player::new(spec, Instant::ZERO + flow.start)))
            }
            App::Page { page: ref spec, connection } => {
                Self::Fetcher(Box::new(Fetcher::new(spec.request, page, connection)))
            }
            App::Bulk { bytes, write } => Self::Writer(DataWriter::bulk(bytes, write)),
            App::Paced { chunk, every, bytes, blocking } => {
                Self::Writer(DataWriter::paced(chunk, every, bytes, blocking))
            }
            App::OnOff { on, off, bytes } => {
                Self::Bursts(Box::new(OnOffWriter::new(on, off, bytes, draws())))
            }
            // The endpoints of datagrams are their own applications.
            App::Datagrams(_) => Self::Sink,
            App::Requests { request, response, think, count } => {
                Self::Asker(Box::new(Requester::new(request, response, think, count)))
            }
            App::Exchange(ref spec) => {
                Self::Exchanger(Box::new(Exchanger::new(spec, ExchangeSide::Client)))
            }
        }
    }

    /// Creates the listening application.
    pub(crate) fn server(app: &App, reads: Option<ReadPattern>) -> Self {
        match (app, reads) {
            (App::Datagrams(_), _) => Self::Sink,
            (App::Video(video), _) => Self::Origin(Box::new(Origin::new(video.request))),
            (App::Page { page, .. }, _) => Self::Origin(Box::new(Origin::new(page.request))),
            (&App::Requests { request, response, .. }, _) => {
                Self::Answerer(Responder::new(request, response))
            }
            (App::Exchange(spec), _) => {
                Self::Exchanger(Box::new(Exchanger::new(spec, ExchangeSide::Server)))
            }
            (_, Some(reads)) => Self::Reader(PacedReader::new(reads)),
            (&App::Paced { chunk, bytes, .. }, None) => {
                Self::Frames(Box::new(FrameReader::new(chunk, bytes)))
            }
            (App::Bulk { .. } | App::OnOff { .. }, None) => Self::Sink,
        }
    }

    /// Called when the connection is established.
    pub(crate) fn begin(&mut self, now: Instant) {
        match self {
            Self::Writer(writer) => writer.begin(now),
            Self::Bursts(bursts) => bursts.begin(now),
            Self::Asker(asker) => asker.begin(now),
            Self::Exchanger(exchanger) => exchanger.begin(now),
            Self::Player(player) => player.begin(now),
            Self::Fetcher(fetcher) => fetcher.begin(now),
            Self::Sink
            | Self::Reader(_)
            | Self::Frames(_)
            | Self::Answerer(_)
            | Self::Origin(_) => {}
        }
    }

    /// Maximum bytes to read now.
    #[inline]
    pub(crate) fn most(&self, now: Instant) -> u64 {
        match self {
            Self::Reader(reader) => reader.most(now),
            Self::Exchanger(exchanger) => exchanger.most(now),
            _ => u64::MAX,
        }
    }

    /// Called when `bytes` were read.
    #[inline]
    pub(crate) fn read(&mut self, now: Instant, bytes: u64) {
        match self {
            Self::Asker(asker) => asker.read(now, bytes),
            Self::Answerer(answerer) => answerer.read(bytes),
            Self::Exchanger(exchanger) => exchanger.read(now, bytes),
            Self::Player(player) => player.read(now, bytes),
            Self::Fetcher(fetcher) => fetcher.read(bytes),
            Self::Origin(origin) => origin.read(bytes),
            Self::Reader(reader) => reader.read(now, bytes),
            Self::Frames(reader) => reader.read(now, bytes),
            Self::Sink | Self::Writer(_) | Self::Bursts(_) => {}
        }
    }

    /// Bytes to offer to the stack now.
    #[inline]
    pub(crate) fn offer(&mut self, now: Instant) -> u64 {
        match self {
            Self::Sink | Self::Reader(_) | Self::Frames(_) => 0,
            Self::Writer(writer) => writer.offer(now),
            Self::Bursts(bursts) => bursts.offer(now),
            Self::Asker(asker) => asker.offer(now),
            Self::Answerer(answerer) => answerer.offer(),
            Self::Exchanger(exchanger) => exchanger.offer(now),
            Self::Player(player) => player.offer(),
            Self::Fetcher(fetcher) => fetcher.offer(),
            Self::Origin(origin) => origin.offer(),
        }
    }

    /// Does it make requests whose responses have sizes of their own?
    #[inline]
    pub(crate) const fn fetches(&self) -> bool {
        matches!(self, Self::Player(_) | Self::Fetcher(_))
    }

    /// Passes the size of the response to a request that the peer makes now.
    pub(crate) fn expect(&mut self, size: u64) {
        if let Self::Origin(origin) = self {
            origin.expect(size);
        }
    }

    /// Called when the stack has accepted `bytes` of the offer.
    #[inline]
    pub(crate) fn taken(&mut self, now: Instant, bytes: u64) {
        match self {
            Self::Sink | Self::Reader(_) | Self::Frames(_) => {}
            Self::Writer(writer) => writer.taken(bytes),
            Self::Bursts(bursts) => bursts.taken(now, bytes),
            Self::Asker(asker) => asker.taken(bytes),
            Self::Answerer(answerer) => answerer.taken(bytes),
            Self::Exchanger(exchanger) => exchanger.taken(now, bytes),
            Self::Player(player) => player.taken(bytes),
            Self::Fetcher(fetcher) => fetcher.taken(bytes),
            Self::Origin(origin) => origin.taken(bytes),
        }
    }

    /// Returns whether it will write no more; `at_end`: all data of the peer has been read.
    pub(crate) fn done(&self, now: Instant, at_end: bool) -> bool {
        match self {
            Self::Sink | Self::Frames(_) => at_end,
            // The end of the stream is what its next read returns.
            Self::Reader(reader) => at_end && reader.next_read() <= now,
            Self::Writer(writer) => writer.done(),
            Self::Bursts(bursts) => bursts.done(),
            Self::Asker(asker) => asker.done(),
            Self::Answerer(answerer) => at_end && answerer.done(),
            Self::Exchanger(exchanger) => exchanger.done(now, at_end),
            Self::Player(player) => player.done(),
            Self::Fetcher(fetcher) => fetcher.done(),
            Self::Origin(origin) => at_end && origin.done(),
        }
    }

    /// Returns when it wants to run without a prior event.
    pub(crate) fn next_act(&self, now: Instant) -> Option<Instant> {
        match self {
            Self::Sink | Self::Frames(_) | Self::Answerer(_) | Self::Origin(_) => None,
            Self::Player(player) => player.next_act(),
            Self::Fetcher(fetcher) => fetcher.next_act(),
            Self::Reader(reader) => Some(reader.next_read()),
            Self::Writer(writer) => writer.next_write(),
            Self::Bursts(bursts) => bursts.next_write(now),
            Self::Asker(asker) => asker.next_write(),
            Self::Exchanger(exchanger) => exchanger.next_act(now),
        }
    }

    /// Does it have results of its own when the connection is over?
    pub(crate) const fn has_results(&self) -> bool {
        match self {
            Self::Asker(_)
            | Self::Exchanger(_)
            | Self::Frames(_)
            | Self::Player(_)
            | Self::Fetcher(_) => true,
            Self::Writer(writer) => writer.frames().is_some(),
            Self::Sink
            | Self::Reader(_)
            | Self::Bursts(_)
            | Self::Answerer(_)
            | Self::Origin(_) => false,
        }
    }

    /// Does it only read, all available data at once?
    #[inline]
    pub(crate) const fn only_reads(&self) -> bool {
        matches!(self, Self::Sink | Self::Frames(_))
    }

    /// Appends the response times of a connecting application that makes requests, or the delays of the
    /// frames that it paces and `peer` receives; returns what they are.
    pub(crate) fn latencies(&self, peer: &Self, times: &mut Vec<Duration>) -> Option<LatencyKind> {
        match (self, peer) {
            (Self::Asker(asker), _) => {
                times.extend_from_slice(asker.latencies());
                Some(LatencyKind::Requests)
            }
            (Self::Exchanger(exchanger), _) => {
                times.extend_from_slice(exchanger.latencies());
                Some(LatencyKind::Requests)
            }
            (Self::Writer(writer), Self::Frames(reader)) => {
                let (first, every) = writer.frames()?;
                times.extend(reader.delays(first, every));
                Some(LatencyKind::Frames)
            }
            _ => None,
        }
    }
}
