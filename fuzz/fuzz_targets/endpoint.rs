//! A hostile peer: any segments, at any time, in every state. No panic, no endless sending, and
//! no byte delivered that was not in the stream.
//!
//! Byte n of the peer's stream may only be delivered if a segment covered it. The input is split
//! into steps of 16 bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use machine::{Cx, Endpoint as _};
use packet::{
    Dir, Flags, IpVersion, Options, SackBlock, SackBlocks, Segment, SynExtras, SynLayout,
    SynOptions, Timestamps,
};
use record::{EventSource, NullRecorder};
use tcp::profile::{NAMES, TcpProfile};
use tcp::{Keepalive, TcpConfig, TcpEndpoint, TcpSide, TcpState};
use units::{Duration, FlowId, Instant, RandomStream, SeqNum};

const STEP: usize = 16;
const MOST_AT_ONCE: usize = 100_000;

struct Victim {
    tcp: TcpEndpoint,
    now: Instant,
    /// Last numbers it sent, near which the peer chooses its own.
    seq: u32,
    ack: u32,
    window: u32,
    /// Bytes of the peer's stream in segments so far.
    offered: u64,
    read: u64,
}

fn cx(now: Instant, rec: &mut NullRecorder) -> Cx<'_, NullRecorder> {
    Cx { now, source: EventSource::default(), rec }
}

impl Victim {
    fn new(choice: u8) -> Self {
        let profile = TcpProfile::named(NAMES[usize::from(choice) % NAMES.len()]).unwrap();
        let linux = profile.name.starts_with("linux");
        let side = if choice & 0x80 == 0 { TcpSide::Client } else { TcpSide::Server };
        let keepalive = (choice & 0x40 != 0).then_some(Keepalive {
            idle: Duration::from_secs(10),
            interval: Duration::from_secs(1),
            count: 3,
        });
        let mut tcp = TcpEndpoint::new(TcpConfig {
            algorithm: if linux { cc::Algorithm::Reno } else { cc::Algorithm::NewReno },
            profile: profile.into(),
            side,
            flow: FlowId(0),
            ip: IpVersion::V4,
            draws: RandomStream::named(1, "victim", "controller"),
            isn: SeqNum(0xffff_f000),
            timestamp: 5,
            clock_phase: Duration::ZERO,
            tso: choice & 0x20 != 0,
            nodelay: choice & 0x10 != 0,
            keepalive,
        });
        if side == TcpSide::Client {
            tcp.open();
        }
        let now = Instant::ZERO;
        let mut victim = Self { tcp, now, seq: 0, ack: 0, window: 0, offered: 0, read: 0 };
        victim.settle();
        victim
    }

    fn settle(&mut self) {
        let mut slot = Segment::default();
        for sent in 0.. {
            assert!(sent < MOST_AT_ONCE, "endless sending");
            if self.tcp.poll_transmit(&mut cx(self.now, &mut NullRecorder), &mut slot).is_err() {
                break;
            }
            self.seq = slot.seq.0.wrapping_add(slot.seq_len());
            if slot.flags.has(Flags::ACK) {
                self.ack = slot.ack.0;
            }
            self.window = u32::from(slot.window);
        }
        while self.tcp.poll_signal().is_some() {}
    }

    fn receive(&mut self, b: &[u8]) {
        let number = |at: usize| u16::from_le_bytes([b[at], b[at + 1]]);
        let near = |base: u32, by: u16, wide: bool| {
            let by = i32::from(by as i16);
            base.wrapping_add_signed(if wide { by.wrapping_mul(70_001) } else { by })
        };
        let flags = Flags(b[1]);
        let payload = match b[2] % 4 {
            0 => 0,
            1 => u32::from(b[3]),
            2 => 1_448,
            _ => u32::from(number(3)) % 65_000,
        };
        let options = if flags.has(Flags::SYN) {
            Options::Syn(SynOptions {
                mss: number(12),
                window_scale: (b[14] & 1 != 0).then_some(b[14] >> 1),
                sack_permitted: b[15] & 1 != 0,
                layout: SynLayout::Linux,
                fast_open: None,
                extras: SynExtras::default(),
            })
        } else {
            let mut blocks = SackBlocks::EMPTY;
            for n in 0..b[14] % 4 {
                let left = near(self.seq, number(12).rotate_left(u32::from(n)), false);
                let right = left.wrapping_add_signed(i32::from(b[15] as i8) * 100);
                blocks.push(SackBlock { left: SeqNum(left), right: SeqNum(right) });
            }
            blocks.into()
        };
        let segment = Segment {
            dir: Dir::Reverse,
            ecn: b[15] >> 6,
            flags,
            seq: SeqNum(near(self.ack, number(5), b[0] & 8 != 0)),
            ack: SeqNum(near(self.seq, number(7), b[0] & 16 != 0)),
            payload,
            window: number(9),
            timestamps: (b[0] & 32 != 0)
                .then(|| Timestamps { val: u32::from(b[11]) * 50, ecr: u32::from(b[12]) }),
            options,
            ..Segment::default()
        };
        self.offered += u64::from(payload);
        self.tcp.handle_segment(&mut cx(self.now, &mut NullRecorder), &segment);
    }

    fn step(&mut self, b: &[u8]) {
        match b[0] % 8 {
            0 => {
                let until = self.now + Duration::from_millis(u64::from(b[1]) << (b[2] % 16));
                while let Some((at, _)) = self.tcp.poll_timeout().filter(|&(at, _)| at <= until) {
                    self.now = self.now.max(at);
                    self.tcp.handle_timeout(&mut cx(self.now, &mut NullRecorder));
                    let next = self.tcp.poll_timeout();
                    assert!(next.is_none_or(|(at, _)| at > self.now), "a deadline remains");
                    self.settle();
                }
                self.now = until;
            }
            1 => drop(
                self.tcp
                    .write(&mut cx(self.now, &mut NullRecorder), u64::from(b[1]) << (b[2] % 12)),
            ),
            2 => {
                self.read += self.tcp.read(&mut cx(self.now, &mut NullRecorder));
                assert!(self.read <= self.offered, "delivered bytes that were not sent");
            }
            3 if b[1] == 0 => self.tcp.close(),
            3 if b[1] == 1 => {
                self.tcp.on_path_mtu(&mut cx(self.now, &mut NullRecorder), u32::from(b[2]) * 8)
            }
            3 if b[1] == 2 && b[2] == 0 => self.tcp.reset(&mut cx(self.now, &mut NullRecorder)),
            _ => self.receive(b),
        }
        self.settle();
        let _: TcpState = self.tcp.state();
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((&choice, steps)) = input.split_first() else { return };
    let mut victim = Victim::new(choice);
    steps.chunks_exact(STEP).for_each(|step| victim.step(step));
});
