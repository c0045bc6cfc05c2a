//! A client and a server of quinn-proto as external hosts of a simulated world: their packets
//! traverse its elements in its virtual time.
//!
//! A QUIC packet is represented by a TCP segment of the same size on the wire, which is equivalent
//! for the elements; its sequence number identifies the packet.

#[cfg(quinn_qlog)]
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
#[cfg(quinn_qlog)]
use std::sync::{Mutex, PoisonError};

use packet::{Dir, Flags, Segment};
use quinn_host::QuinnClock;
use quinn_host::null_crypto::NullCrypto;
#[cfg(quinn_qlog)]
use quinn_proto::QlogConfig;
use quinn_proto::congestion::{BbrConfig, CubicConfig, NewRenoConfig};
use quinn_proto::{
    AckFrequencyConfig, ClientConfig, Connection, ConnectionHandle, ConnectionId,
    ConnectionIdGenerator, DatagramEvent, Dir as Streams, Endpoint, EndpointConfig, ServerConfig,
    StreamEvent, StreamId, TransportConfig, VarInt,
};
use sim::Scenario;
use sim::live::{ExternalDelivery, ExternalPacket, LiveSimulation};
use units::{FlowId, Instant, SeqNum};

use crate::meter::{HEADERS, PACKET, SenderMeter};

/// Headers of IPv4 and TCP, which carry the packet's bytes as payload.
const TCP_HEADERS: u32 = 40;
/// Bytes per write of the application.
const CHUNK: &[u8] = &[0; 16_384];

/// Connection IDs of a host: quinn's own generators draw them from the operating system.
struct SeededConnectionIds {
    seed: u8,
    generated: u32,
}

impl ConnectionIdGenerator for SeededConnectionIds {
    fn generate_cid(&mut self) -> ConnectionId {
        self.generated += 1;
        let [a, b, c, d] = self.generated.to_be_bytes();
        ConnectionId::new(&[self.seed, 0xc1, 0xd0, 0, a, b, c, d])
    }

    fn cid_len(&self) -> usize {
        8
    }

    fn cid_lifetime(&self) -> Option<std::time::Duration> {
        None
    }
}

/// A host.
struct QuinnHost {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    dir: Dir,
    stream: Option<StreamId>,
    /// Bytes that the application has yet to write.
    left: u64,
    /// All bytes were acknowledged.
    finished: bool,
}

/// The controller of the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuinnController {
    /// With an initial window of ten packets.
    NewReno,
    /// The default.
    Cubic,
    /// Its BBR, whose phases are random whatever the seed.
    Bbr,
}

/// The configuration of both endpoints: the defaults of a [`TransportConfig`], its send window of 10 MB among
/// them, with unlimited flow control windows and without MTU discovery; NewReno with the values of RFC 9002.
fn transport(every: u32, cc: QuinnController) -> TransportConfig {
    let mut config = TransportConfig::default();
    let mut newreno = NewRenoConfig::default();
    newreno.initial_window(10 * u64::from(PACKET));
    match cc {
        QuinnController::NewReno => config.congestion_controller_factory(Arc::new(newreno)),
        QuinnController::Cubic => {
            config.congestion_controller_factory(Arc::new(CubicConfig::default()))
        }
        QuinnController::Bbr => {
            config.congestion_controller_factory(Arc::new(BbrConfig::default()))
        }
    };
    config
        .initial_mtu(PACKET as u16)
        .mtu_discovery_config(None)
        .enable_segmentation_offload(false)
        .stream_receive_window(VarInt::from_u32(u32::MAX))
        .receive_window(VarInt::from_u32(u32::MAX));
    if every == 1 {
        // Every packet is acknowledged at once; gaps as without the extension.
        let mut asked = AckFrequencyConfig::default();
        asked
            .ack_eliciting_threshold(VarInt::from_u32(0))
            .reordering_threshold(VarInt::from_u32(1));
        config.ack_frequency_config(Some(asked));
    }
    config
}

#[cfg(quinn_qlog)]
fn with_controller(config: &mut TransportConfig, cc: QuinnController) {
    match cc {
        QuinnController::NewReno => {
            config.congestion_controller_factory(Arc::new(NewRenoConfig::default()))
        }
        QuinnController::Cubic => {
            config.congestion_controller_factory(Arc::new(CubicConfig::default()))
        }
        QuinnController::Bbr => {
            config.congestion_controller_factory(Arc::new(BbrConfig::default()))
        }
    };
}

/// The qlog that quinn-proto writes.
#[cfg(quinn_qlog)]
#[derive(Debug, Clone, Default)]
struct SharedLog(Arc<Mutex<Vec<u8>>>);

#[cfg(quinn_qlog)]
impl Write for SharedLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// quinn-proto's own qlog, in virtual time, of a transfer of `bytes` bytes with its defaults.
#[cfg(quinn_qlog)]
pub(crate) fn qlog(scenario: &Scenario, cc: QuinnController, seed: u8, bytes: u64) -> Vec<u8> {
    let clock = QuinnClock::default();
    let log = SharedLog::default();
    let config = || {
        let mut config = TransportConfig::default();
        with_controller(&mut config, cc);
        config.enable_segmentation_offload(false);
        config
    };
    let mut client = config();
    let mut qlog = QlogConfig::default();
    qlog.writer(Box::new(log.clone()))
        .title(Some("quinn".to_owned()))
        .start_time(clock.theirs(Instant::ZERO));
    client.qlog_stream(qlog.into_stream());
    let meter = SenderMeter::new(Instant::ZERO);
    drive(scenario, clock, [client, config()], (seed, Some(bytes)), meter, |_, _, _| {});
    let mut log = log.0.lock().unwrap_or_else(PoisonError::into_inner);
    core::mem::take(&mut *log)
}

fn endpoint(server: Option<ServerConfig>, seed: u8) -> Endpoint {
    let mut config = EndpointConfig::new(Arc::new(NullCrypto));
    config.rng_seed(Some([seed; 32]));
    config.cid_generator(move || Box::new(SeededConnectionIds { seed, generated: 0 }));
    Endpoint::new(Arc::new(config), server.map(Arc::new), true, None)
}

fn address(host: u8) -> SocketAddr {
    (Ipv4Addr::new(192, 0, 2, host), 4_433).into()
}

/// Runs both over the path of `scenario` in place of its two hosts, for its duration. The receiver
/// acknowledges every n-th packet, `every` being 1 or 2.
pub(crate) fn run(
    scenario: &Scenario,
    controller: (u32, QuinnController),
    seed: u8,
    meter: SenderMeter,
) -> SenderMeter {
    run_recorded(scenario, controller, seed, meter, |_, _, _| {})
}

/// Like [`run`], with each datagram sent.
pub(crate) fn run_recorded(
    scenario: &Scenario,
    (every, cc): (u32, QuinnController),
    seed: u8,
    meter: SenderMeter,
    on_sent: impl FnMut(Instant, Dir, &[u8]),
) -> SenderMeter {
    let configs = [transport(every, cc), transport(every, cc)];
    drive(scenario, QuinnClock::default(), configs, (seed, None), meter, on_sent)
}

/// Runs a client and a server with these configurations, until the client's bytes are acknowledged or the
/// scenario ends.
fn drive(
    scenario: &Scenario,
    clock: QuinnClock,
    [of_client, of_server]: [TransportConfig; 2],
    (seed, bytes): (u8, Option<u64>),
    mut meter: SenderMeter,
    mut on_sent: impl FnMut(Instant, Dir, &[u8]),
) -> SenderMeter {
    let mut server_config = ServerConfig::new(Arc::new(NullCrypto), Arc::new(NullCrypto));
    server_config.transport_config(Arc::new(of_server));
    let mut client = endpoint(None, seed);
    let mut config = ClientConfig::new(Arc::new(NullCrypto));
    config.transport_config(Arc::new(of_client));
    config.initial_dst_cid_provider(Arc::new(move || ConnectionId::new(&[seed; 8])));
    let opened = client
        .connect(clock.theirs(Instant::ZERO), config, address(2), "server")
        .expect("the address is one");
    let host = |endpoint, connection, dir| QuinnHost {
        endpoint,
        connection,
        dir,
        stream: None,
        left: bytes.unwrap_or(u64::MAX),
        finished: false,
    };
    let mut hosts = [
        host(client, Some(opened), Dir::Forward),
        host(endpoint(Some(server_config), seed.wrapping_add(128)), None, Dir::Reverse),
    ];
    let mut world = LiveSimulation::new(scenario, &[0, 1], &mut meter).expect("a world");
    let end = Instant::ZERO + scenario.duration;
    let mut datagrams: Vec<Vec<u8>> = Vec::new();
    let mut received: Vec<ExternalDelivery> = Vec::new();
    let mut now = Instant::ZERO;
    loop {
        world.advance(now);
        world.take_leaving(&mut received);
        for one in received.drain(..) {
            let ExternalPacket::Tcp(segment) = one.packet else { continue };
            let datagram = core::mem::take(&mut datagrams[segment.seq.0 as usize]);
            hosts[one.host].receive(clock.theirs(now), &datagram);
        }
        for host in &mut hosts {
            host.act(clock.theirs(now));
            while let Some(datagram) = host.poll_datagram(clock.theirs(now)) {
                on_sent(now, host.dir, &datagram);
                let number = datagrams.len() as u32;
                let payload = datagram.len() as u32 + HEADERS - TCP_HEADERS;
                datagrams.push(datagram);
                let segment = Segment {
                    flow: FlowId(0),
                    dir: host.dir,
                    seq: SeqNum(number),
                    flags: Flags::ACK,
                    payload,
                    ..Segment::default()
                };
                assert!(world.inject(now, &segment));
            }
        }
        if hosts[0].finished {
            break;
        }
        if let Some((_, connection)) = &hosts[0].connection {
            world.observer().window(now, connection.congestion_state().window());
        }
        let deadlines = hosts.iter_mut().filter_map(|host| host.deadline(clock));
        let next = deadlines.chain(world.next_at()).min();
        match next {
            // Events due at the current instant are processed in another iteration.
            Some(at) if at <= end => now = now.max(at),
            _ => break,
        }
    }
    drop(world);
    meter
}

impl QuinnHost {
    fn deadline(&mut self, clock: QuinnClock) -> Option<Instant> {
        let (_, connection) = self.connection.as_mut()?;
        connection.poll_timeout().map(|at| clock.ours(at))
    }

    fn receive(&mut self, now: std::time::Instant, datagram: &[u8]) {
        let mut answer = Vec::new();
        let from = address(if self.dir == Dir::Forward { 2 } else { 1 });
        let event = self.endpoint.handle(now, from, None, None, datagram.into(), &mut answer);
        match event {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = self.endpoint.accept(incoming, now, &mut answer, None);
                self.connection =
                    Some(accepted.unwrap_or_else(|error| panic!("{:?}", error.cause)));
            }
            Some(DatagramEvent::Response(_)) => panic!("a response without a connection"),
            None => {}
        }
    }

    /// Processes timers and events; the application writes and reads.
    fn act(&mut self, now: std::time::Instant) {
        let Some((handle, connection)) = &mut self.connection else { return };
        if connection.poll_timeout().is_some_and(|at| at <= now) {
            connection.handle_timeout(now);
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            match event {
                quinn_proto::Event::ConnectionLost { reason } => {
                    panic!("the connection was lost: {reason}");
                }
                quinn_proto::Event::Stream(StreamEvent::Finished { .. }) => self.finished = true,
                _ => {}
            }
        }
        if connection.is_handshaking() {
            return;
        }
        if self.dir == Dir::Forward {
            let stream = self.stream.or_else(|| connection.streams().open(Streams::Uni));
            self.stream = stream;
            let Some(stream) = stream else { return };
            let before = self.left;
            while self.left > 0 {
                let chunk = usize::try_from(self.left).unwrap_or(usize::MAX).min(CHUNK.len());
                match connection.send_stream(stream).write(&CHUNK[..chunk]) {
                    Ok(taken) if taken > 0 => self.left -= taken as u64,
                    _ => break,
                }
            }
            if before > 0 && self.left == 0 {
                let _ = connection.send_stream(stream).finish();
            }
        } else {
            let stream = self.stream.or_else(|| connection.streams().accept(Streams::Uni));
            self.stream = stream;
            let Some(stream) = stream else { return };
            let mut stream = connection.recv_stream(stream);
            if let Ok(mut chunks) = stream.read(true) {
                while let Ok(Some(_)) = chunks.next(usize::MAX) {}
                let _ = chunks.finalize();
            }
        }
    }

    fn poll_datagram(&mut self, now: std::time::Instant) -> Option<Vec<u8>> {
        let (_, connection) = self.connection.as_mut()?;
        let mut datagram = Vec::new();
        let sent = connection.poll_transmit(now, 1, &mut datagram)?;
        assert_eq!(sent.size, datagram.len());
        Some(datagram)
    }
}
