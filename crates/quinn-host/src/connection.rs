//! One end of a connection.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes as Buffer;
use machine::Signal;
use packet::IpVersion;
use quic::QuicSide;
use quic::real::{Datagram, RealConfig, RealEndpoint, RealState};
use quinn_proto::congestion::{CubicConfig, NewRenoConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, ConnectionId, ConnectionIdGenerator, DatagramEvent,
    Dir, EcnCodepoint, Endpoint, EndpointConfig, Event, ServerConfig, StreamEvent, StreamId,
    TimeSource, TransportConfig, VarInt,
};
use units::{Bytes, Duration, Instant};

use crate::CUBIC;
use crate::clock::QuinnClock;
use crate::null_crypto::NullCrypto;
use crate::stream_frames::stream_frames;

/// Bytes of a connection ID.
const ID: usize = 8;
const UDP_HEADER: u32 = 8;
/// What the application writes.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// Connection IDs of a host: quinn's own generators draw them from the operating system.
struct SeededConnectionIds {
    seed: [u8; 4],
    generated: u32,
}

impl ConnectionIdGenerator for SeededConnectionIds {
    fn generate_cid(&mut self) -> ConnectionId {
        self.generated += 1;
        let mut id = [0; ID];
        id[..4].copy_from_slice(&self.seed);
        id[4..].copy_from_slice(&self.generated.to_be_bytes());
        ConnectionId::new(&id)
    }

    fn cid_len(&self) -> usize {
        ID
    }

    fn cid_lifetime(&self) -> Option<std::time::Duration> {
        None
    }
}

/// The date of tokens: a constant.
struct FixedDate;

impl TimeSource for FixedDate {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

/// One end of a connection. It has one stream, of both directions.
pub(crate) struct QuinnEndpoint {
    clock: QuinnClock,
    side: QuicSide,
    endpoint: Endpoint,
    client: Option<ClientConfig>,
    connection: Option<(ConnectionHandle, Connection)>,
    stream: Option<StreamId>,
    /// Datagrams that do not belong to a connection.
    answers: VecDeque<Vec<u8>>,
    signals: VecDeque<Signal>,
    /// UDP payload of the largest datagram that the host can send.
    largest: usize,
    peer: SocketAddr,
    connected: bool,
    /// The application was refused bytes.
    blocked: bool,
    /// The peer's stream was read to its end.
    at_end: bool,
    /// The own stream was acknowledged to its end.
    finished: bool,
    over: bool,
    /// End of the stream bytes sent so far.
    sent_to: u64,
    data_packets: u64,
    retransmitted_packets: u64,
}

impl core::fmt::Debug for QuinnEndpoint {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("QuinnEndpoint").field("side", &self.side).finish_non_exhaustive()
    }
}

/// quinn's defaults, one datagram at a time.
fn transport(cc: &str) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    match cc {
        CUBIC => config.congestion_controller_factory(Arc::new(CubicConfig::default())),
        _ => config.congestion_controller_factory(Arc::new(NewRenoConfig::default())),
    };
    config.enable_segmentation_offload(false);
    Arc::new(config)
}

fn address(ip: IpVersion, side: QuicSide) -> SocketAddr {
    let host = if side == QuicSide::Client { 1 } else { 2 };
    let ip = match ip {
        IpVersion::V4 => IpAddr::V4(Ipv4Addr::new(192, 0, 2, host)),
        IpVersion::V6 => IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(host))),
    };
    SocketAddr::new(ip, 4_433)
}

impl QuinnEndpoint {
    pub(crate) fn new(config: &RealConfig) -> Self {
        let [a, b, c, d, first @ .., _, _, _, _] = config.seed;
        let mut endpoint = EndpointConfig::new(Arc::new(NullCrypto));
        endpoint.rng_seed(Some(config.seed));
        let seed = [a, b, c, d];
        endpoint.cid_generator(move || Box::new(SeededConnectionIds { seed, generated: 0 }));
        let (client, server) = match config.side {
            QuicSide::Client => {
                let mut client = ClientConfig::new(Arc::new(NullCrypto));
                client.transport_config(transport(config.cc));
                let first = ConnectionId::new(&first[..ID]);
                client.initial_dst_cid_provider(Arc::new(move || first));
                (Some(client), None)
            }
            QuicSide::Server => {
                let mut server = ServerConfig::new(Arc::new(NullCrypto), Arc::new(NullCrypto));
                server.transport_config(transport(config.cc)).time_source(Arc::new(FixedDate));
                (None, Some(Arc::new(server)))
            }
        };
        let other = match config.side {
            QuicSide::Client => QuicSide::Server,
            QuicSide::Server => QuicSide::Client,
        };
        let headers = config.ip.header_len() + UDP_HEADER;
        Self {
            clock: QuinnClock::default(),
            side: config.side,
            endpoint: Endpoint::new(Arc::new(endpoint), server, true, None),
            client,
            connection: None,
            stream: None,
            answers: VecDeque::new(),
            signals: VecDeque::new(),
            largest: config.mtu.saturating_sub(headers) as usize,
            peer: address(config.ip, other),
            connected: false,
            blocked: false,
            at_end: false,
            finished: false,
            over: false,
            sent_to: 0,
            data_packets: 0,
            retransmitted_packets: 0,
        }
    }

    fn signal(&mut self, signal: Signal) {
        if !self.signals.contains(&signal) {
            self.signals.push_back(signal);
        }
    }

    fn abort(&mut self) {
        if !core::mem::replace(&mut self.over, true) {
            self.signal(Signal::Aborted);
        }
    }

    /// Passes events between endpoint and connection, and to the application.
    fn process_events(&mut self) {
        let Some((handle, connection)) = &mut self.connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        let mut events = Vec::new();
        while let Some(event) = connection.poll() {
            events.push(event);
        }
        events.into_iter().for_each(|event| self.on_event(&event));
    }

    fn on_event(&mut self, event: &Event) {
        match event {
            Event::Connected => {
                self.connected = true;
                if self.side == QuicSide::Client
                    && let Some((_, connection)) = &mut self.connection
                {
                    self.stream = connection.streams().open(Dir::Bi);
                }
                self.signal(Signal::Connected);
            }
            Event::ConnectionLost { .. } => self.abort(),
            Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                if let Some((_, connection)) = &mut self.connection {
                    self.stream = self.stream.or_else(|| connection.streams().accept(Dir::Bi));
                }
                self.signal(Signal::Readable);
            }
            Event::Stream(StreamEvent::Readable { .. }) => self.signal(Signal::Readable),
            Event::Stream(StreamEvent::Writable { .. }) if self.blocked => {
                self.blocked = false;
                self.signal(Signal::Writable);
            }
            Event::Stream(StreamEvent::Finished { .. }) => {
                self.finished = true;
                self.check_closed();
            }
            _ => {}
        }
    }

    /// Signals the close once both streams are complete.
    fn check_closed(&mut self) {
        if self.finished && self.at_end && !core::mem::replace(&mut self.over, true) {
            self.signal(Signal::Closed);
        }
    }

    /// Counts the stream bytes of a datagram sent; returns their number.
    fn count(&mut self, datagram: &[u8]) -> u32 {
        let (mut bytes, mut repeated) = (0, false);
        for (offset, length) in stream_frames(datagram, ID) {
            bytes += length;
            repeated |= length > 0 && offset < self.sent_to;
            self.sent_to = self.sent_to.max(offset.saturating_add(length));
        }
        self.data_packets += u64::from(bytes > 0);
        self.retransmitted_packets += u64::from(repeated);
        bytes as u32
    }
}

impl RealEndpoint for QuinnEndpoint {
    fn open(&mut self, now: Instant) {
        let Some(config) = self.client.take() else { return };
        let at = self.clock.theirs(now);
        match self.endpoint.connect(at, config, self.peer, "server") {
            Ok(opened) => self.connection = Some(opened),
            Err(_) => self.abort(),
        }
        self.process_events();
    }

    fn write(&mut self, _: Instant, bytes: u64) -> u64 {
        let (Some((_, connection)), Some(stream)) = (&mut self.connection, self.stream) else {
            return 0;
        };
        let mut taken = 0;
        while taken < bytes {
            let chunk = (bytes - taken).min(ZEROS.len() as u64) as usize;
            let mut chunks = [Buffer::from_static(&ZEROS[..chunk])];
            match connection.send_stream(stream).write_chunks(&mut chunks) {
                Ok(written) if written.bytes > 0 => taken += written.bytes as u64,
                _ => {
                    self.blocked = true;
                    break;
                }
            }
        }
        taken
    }

    fn read(&mut self, _: Instant, most: u64) -> u64 {
        let (Some((_, connection)), Some(stream)) = (&mut self.connection, self.stream) else {
            return 0;
        };
        let mut read = 0;
        let mut stream = connection.recv_stream(stream);
        let Ok(mut chunks) = stream.read(true) else { return 0 };
        while read < most {
            match chunks.next(usize::try_from(most - read).unwrap_or(usize::MAX)) {
                Ok(Some(chunk)) => read += chunk.bytes.len() as u64,
                Ok(None) => {
                    self.at_end = true;
                    break;
                }
                Err(_) => break,
            }
        }
        // A MAX_DATA that is due is sent with the next datagrams in any case.
        let _ = chunks.finalize();
        self.check_closed();
        read
    }

    fn close(&mut self, _: Instant) {
        if let (Some((_, connection)), Some(stream)) = (&mut self.connection, self.stream) {
            // An error means that it is finished or stopped already.
            let _ = connection.send_stream(stream).finish();
        }
    }

    fn reset(&mut self, now: Instant) {
        if let Some((_, connection)) = &mut self.connection {
            connection.close(self.clock.theirs(now), VarInt::from_u32(0), Buffer::new());
        }
        self.abort();
    }

    fn at_end(&self) -> bool {
        self.at_end
    }

    fn receive(&mut self, now: Instant, datagram: &[u8], ecn: u8) {
        let at = self.clock.theirs(now);
        let ecn = EcnCodepoint::from_bits(ecn);
        let mut answer = Vec::new();
        match self.endpoint.handle(at, self.peer, None, ecn, datagram.into(), &mut answer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) if self.connection.is_none() => {
                match self.endpoint.accept(incoming, at, &mut answer, None) {
                    Ok(accepted) => self.connection = Some(accepted),
                    Err(error) => {
                        self.answers.extend(error.response.map(|_| answer));
                        self.abort();
                    }
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.endpoint.ignore(incoming),
            Some(DatagramEvent::Response(_)) => self.answers.push_back(answer),
            None => {}
        }
        self.process_events();
    }

    fn handle_timeout(&mut self, now: Instant) {
        let at = self.clock.theirs(now);
        if let Some((_, connection)) = &mut self.connection
            && connection.poll_timeout().is_some_and(|due| due <= at)
        {
            connection.handle_timeout(at);
        }
        self.process_events();
    }

    fn poll_transmit(&mut self, now: Instant, into: &mut Datagram) -> bool {
        into.bytes.clear();
        into.stream_bytes = 0;
        if let Some(answer) = self.answers.pop_front() {
            (into.bytes, into.ecn) = (answer, 0);
            return true;
        }
        let at = self.clock.theirs(now);
        loop {
            let Some((_, connection)) = &mut self.connection else { return false };
            let Some(sent) = connection.poll_transmit(at, 1, &mut into.bytes) else {
                self.process_events();
                return false;
            };
            // A probe of the path MTU above the interface's: the socket refuses it (EMSGSIZE).
            if into.bytes.len() > self.largest {
                into.bytes.clear();
                continue;
            }
            into.ecn = sent.ecn.map_or(0, |ecn| ecn as u8);
            into.stream_bytes = self.count(&into.bytes);
            return true;
        }
    }

    fn poll_signal(&mut self) -> Option<Signal> {
        self.signals.pop_front()
    }

    fn deadline(&mut self) -> Instant {
        let timer = self.connection.as_mut().and_then(|(_, connection)| connection.poll_timeout());
        timer.map_or(Instant::MAX, |at| self.clock.ours(at))
    }

    fn state(&self) -> RealState {
        let counted = RealState {
            data_packets: self.data_packets,
            retransmitted_packets: self.retransmitted_packets,
            ..RealState::default()
        };
        let Some((_, connection)) = &self.connection else { return counted };
        let path = connection.stats().path;
        let duration = |span: std::time::Duration| Duration::from_nanos(span.as_nanos() as u64);
        // Before the first sample quinn has its initial value, and no minimum.
        let sampled = self.connected.then_some(path);
        RealState {
            cwnd: Bytes(path.cwnd),
            datagram: Bytes(u64::from(path.current_mtu)),
            srtt: sampled.map(|path| duration(path.rtt)),
            min_rtt: sampled.map(|path| duration(path.min_rtt)),
            lost_packets: path.lost_packets,
            ..counted
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All datagrams of both ends over a path of 5 ms each way, on which every 50th is lost.
    fn exchange(seed: u8, cc: &'static str) -> Vec<(Instant, Vec<u8>)> {
        let config = |side, seed| RealConfig {
            flow: 0,
            side,
            cc,
            seed: [seed; 32],
            mtu: 1_500,
            ip: IpVersion::V4,
        };
        let mut ends = [
            QuinnEndpoint::new(&config(QuicSide::Client, seed)),
            QuinnEndpoint::new(&config(QuicSide::Server, seed + 100)),
        ];
        let delay = Duration::from_millis(5);
        let mut sent = Vec::new();
        let mut flying: VecDeque<(Instant, usize, Datagram)> = VecDeque::new();
        let (mut now, mut left, mut read) = (Instant::ZERO, 400_000, 0);
        ends[0].open(now);
        while now < Instant::from_nanos(3_000_000_000) {
            while flying.front().is_some_and(|(at, ..)| *at <= now) {
                let Some((_, to, datagram)) = flying.pop_front() else { break };
                ends[to].receive(now, &datagram.bytes, datagram.ecn);
            }
            for (from, end) in ends.iter_mut().enumerate() {
                end.handle_timeout(now);
                while end.poll_signal().is_some() {}
                if from == 0 {
                    left -= end.write(now, left);
                    if left == 0 {
                        end.close(now);
                    }
                } else {
                    read += end.read(now, u64::MAX);
                }
                let mut datagram = Datagram::default();
                while end.poll_transmit(now, &mut datagram) {
                    sent.push((now, datagram.bytes.clone()));
                    if sent.len() % 50 != 0 {
                        flying.push_back((now + delay, 1 - from, datagram.clone()));
                    }
                }
            }
            let timers = ends.iter_mut().map(QuinnEndpoint::deadline);
            let next = timers.chain(flying.front().map(|(at, ..)| *at)).min();
            now = next.unwrap_or(Instant::MAX).max(now);
        }
        assert_eq!(read, 400_000);
        assert!(ends[1].at_end());
        let state = ends[0].state();
        assert!(state.retransmitted_packets > 0 && state.lost_packets > 0);
        assert!(state.min_rtt.is_some_and(|rtt| rtt >= delay + delay));
        sent
    }

    #[test]
    fn equal_seeds_give_equal_bytes() {
        for cc in [CUBIC, "newreno"] {
            let first = exchange(1, cc);
            assert!(first == exchange(1, cc));
            assert!(first != exchange(2, cc));
        }
    }
}
