//! Test packets: a typical connection, and random headers.

use crate::trace::pcapng::PacketDirection;
use packet::wire::Endpoints;
use packet::{
    Flags, IpVersion, Options, SackBlock, SackBlocks, Segment, SynLayout, SynOptions, Timestamps,
};
use units::{Instant, Offset, RandomStream, SeqNum};

/// A packet with the arguments of the writers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packet {
    pub(crate) at: Instant,
    pub(crate) way: PacketDirection,
    pub(crate) between: Endpoints,
    pub(crate) segment: Segment,
    pub(crate) offset: Offset,
}

pub(crate) fn pair(ip: IpVersion, client_port: u16) -> Endpoints {
    let (client, server) = match ip {
        IpVersion::V4 => ("10.0.0.1", "10.0.0.2"),
        IpVersion::V6 => ("2001:db8::1", "2001:db8:0:1::2"),
    };
    let at = |host: &str, port| (host.parse::<std::net::IpAddr>().unwrap(), port).into();
    Endpoints { src: at(client, client_port), dst: at(server, 5_001) }
}

/// Generates the packets of a FreeBSD client that sends to a Linux server.
pub(crate) struct Talk {
    between: Endpoints,
    ip: IpVersion,
    client_isn: SeqNum,
    server_isn: SeqNum,
    micros: u64,
    pub(crate) packets: Vec<Packet>,
}

impl Talk {
    pub(crate) fn new(between: Endpoints, client_isn: u32, server_isn: u32) -> Self {
        let ip = if between.src.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 };
        let (client_isn, server_isn) = (SeqNum(client_isn), SeqNum(server_isn));
        Self { between, ip, client_isn, server_isn, micros: 0, packets: Vec::new() }
    }

    /// Appends `segment` of the client (or the server), 12.345 ms after the last.
    fn say(&mut self, way: PacketDirection, segment: Segment) {
        let at = Instant::from_nanos(self.micros * 1_000 + 999);
        self.micros += 12_345;
        let (between, isn) = match way {
            PacketDirection::Out => (self.between, self.client_isn),
            PacketDirection::In => (self.between.reversed(), self.server_isn),
        };
        let timestamps = Some(Timestamps { val: self.micros as u32 / 1_000, ecr: 563_185_696 });
        let offset = Offset(u64::from(segment.seq.0.wrapping_sub(isn.0).wrapping_sub(1)));
        let segment = Segment { ip: self.ip, timestamps, ..segment };
        self.packets.push(Packet { at, way, between, segment, offset });
    }

    fn client(&self, seq: u32) -> SeqNum {
        Offset(u64::from(seq)).to_seq(self.client_isn)
    }

    fn server(&self, seq: u32) -> SeqNum {
        Offset(u64::from(seq)).to_seq(self.server_isn)
    }

    pub(crate) fn handshake(&mut self) {
        let syn = |layout, window_scale| {
            Options::Syn(SynOptions {
                mss: 1_460,
                window_scale: Some(window_scale),
                sack_permitted: true,
                layout,
                ..SynOptions::default()
            })
        };
        self.say(
            PacketDirection::Out,
            Segment {
                flags: Flags::SYN,
                seq: self.client_isn,
                window: 65_535,
                options: syn(SynLayout::FreeBsd, 10),
                ..Segment::default()
            },
        );
        self.say(
            PacketDirection::In,
            Segment {
                flags: Flags::SYN | Flags::ACK,
                seq: self.server_isn,
                ack: self.client(1),
                window: 65_160,
                options: syn(SynLayout::Linux, 7),
                ..Segment::default()
            },
        );
        self.say(
            PacketDirection::Out,
            Segment {
                flags: Flags::ACK,
                seq: self.client(1),
                ack: self.server(1),
                window: 65,
                ..Segment::default()
            },
        );
    }

    /// The client sends `payload` bytes from relative sequence number `seq`.
    pub(crate) fn send(&mut self, seq: u32, payload: u32, flags: Flags) {
        self.say(
            PacketDirection::Out,
            Segment {
                flags: Flags::ACK | flags,
                seq: self.client(seq),
                ack: self.server(1),
                window: 65,
                payload,
                gso_size: if payload > 1_448 { 1_448 } else { 0 },
                ..Segment::default()
            },
        );
    }

    /// The server acknowledges up to relative number `ack`, with these SACK blocks.
    pub(crate) fn ack(&mut self, ack: u32, blocks: &[(u32, u32)], flags: Flags) {
        let mut sack = SackBlocks::EMPTY;
        for &(left, right) in blocks {
            sack.push(SackBlock { left: self.client(left), right: self.client(right) });
        }
        self.say(
            PacketDirection::In,
            Segment {
                flags: Flags::ACK | flags,
                seq: self.server(1),
                ack: self.client(ack),
                window: 427,
                options: sack.into(),
                ..Segment::default()
            },
        );
    }

    /// The client resets the connection, with or without an acknowledgment.
    pub(crate) fn reset(&mut self, seq: u32, flags: Flags) {
        self.say(
            PacketDirection::Out,
            Segment { flags: Flags::RST | flags, seq: self.client(seq), ..Segment::default() },
        );
    }
}

/// A connection with bursts, losses, SACK, D-SACK, FIN and RST.
pub(crate) fn whole_connection(between: Endpoints, client_isn: u32) -> Vec<Packet> {
    let mut talk = Talk::new(between, client_isn, 708_257_395);
    talk.handshake();
    talk.send(1, 14_480, Flags::NONE);
    talk.ack(14_481, &[], Flags::NONE);
    talk.send(14_481, 1_448, Flags::NONE);
    talk.send(15_929, 1_448, Flags::PSH);
    talk.send(17_377, 65_160, Flags::NONE);
    talk.ack(14_481, &[(15_929, 17_377)], Flags::NONE);
    talk.ack(14_481, &[(18_825, 82_537), (15_929, 17_377)], Flags::NONE);
    talk.ack(14_481, &[(40_000, 82_537), (18_825, 30_000), (15_929, 17_377)], Flags::ECE);
    talk.send(14_481, 1_448, Flags::CWR);
    talk.ack(82_537, &[], Flags::NONE);
    // A spurious retransmission: the ACK begins with a D-SACK.
    talk.send(14_481, 1_448, Flags::NONE);
    talk.ack(82_537, &[(14_481, 15_929)], Flags::NONE);
    talk.send(82_537, 1, Flags::PSH | Flags::FIN);
    talk.ack(82_539, &[], Flags::FIN);
    talk.reset(82_539, Flags::NONE);
    talk.reset(82_539, Flags::ACK);
    talk.packets
}

/// `count` packets of eight connections with random headers.
pub(crate) fn random(count: usize) -> Vec<Packet> {
    let mut dice = RandomStream::named(1, "packets", "fields");
    let mut nanos = 0;
    (0..count)
        .map(|_| {
            nanos += dice.below(3_000_000_000);
            let ip = if dice.below(2) == 0 { IpVersion::V4 } else { IpVersion::V6 };
            let between = pair(ip, 40_000 + dice.below(4) as u16);
            let way = if dice.below(2) == 0 { PacketDirection::Out } else { PacketDirection::In };
            let between = if way == PacketDirection::Out { between } else { between.reversed() };
            // Mostly segments with ACK, sometimes random flags.
            let flags = match dice.below(4) {
                0 => Flags(dice.next_u32() as u8),
                _ => Flags::ACK,
            };
            let timestamps = (dice.below(2) == 0)
                .then(|| Timestamps { val: dice.next_u32(), ecr: dice.next_u32() });
            let segment = Segment {
                ip,
                ecn: dice.below(4) as u8,
                flags,
                seq: SeqNum(dice.next_u32()),
                ack: SeqNum(dice.next_u32()),
                window: dice.next_u32() as u16,
                payload: dice.below(2) as u32 * dice.below(3_000) as u32,
                timestamps,
                options: random_options(&mut dice, flags.has(Flags::SYN)),
                ..Segment::default()
            };
            let at = Instant::from_nanos(nanos);
            Packet { at, way, between, segment, offset: Offset(dice.below(1 << 40)) }
        })
        .collect()
}

fn random_options(dice: &mut RandomStream, is_syn: bool) -> Options {
    if is_syn {
        return Options::Syn(SynOptions {
            mss: dice.below(2) as u16 * dice.next_u32() as u16,
            window_scale: (dice.below(2) == 0).then(|| dice.below(15) as u8),
            sack_permitted: dice.below(2) == 0,
            layout: if dice.below(2) == 0 { SynLayout::FreeBsd } else { SynLayout::Linux },
            ..SynOptions::default()
        });
    }
    let mut blocks = SackBlocks::EMPTY;
    for _ in 0..dice.below(4) {
        let (left, right) = (SeqNum(dice.next_u32()), SeqNum(dice.next_u32()));
        blocks.push(SackBlock { left, right });
    }
    blocks.into()
}
