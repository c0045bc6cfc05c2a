//! Inbound packets of the script.

use packet::{Dir, FastOpenOption, Flags, Options, SackBlocks, Segment, SynOptions, Timestamps};
use tcp::profile::Family;
use tcp::{TcpSide, TcpState};
use units::SeqNum;

use super::header::ECN;
use super::sockets::SocketOptions;
use super::{Result, Runner};
use crate::ast::{Body, EcnMark, OptionList, ScriptPacket, ScriptSegment, TcpOption};

impl Runner<'_> {
    pub(super) fn arrive(&mut self, packet: &ScriptPacket) -> Result<()> {
        let tcp = match &packet.body {
            Body::Tcp(tcp) => tcp,
            Body::Icmp(message) => return self.icmp(message),
            Body::Other(what) => {
                return self.unsupported(what.span, format!("`{}` is not supported", what.value));
            }
        };
        self.check_absolute(tcp, false)?;
        self.check_accurate_ecn(tcp)?;
        if self.world.real.is_some() {
            return self.arrive_real(packet, tcp);
        }
        let flags = tcp.flags.value;
        if self.drops_for_hops(packet) {
            let segment = self.segment_of(packet, tcp)?;
            self.world.log(self.world.now(), false, segment);
            return Ok(());
        }
        self.renew_listener(flags, tcp.seq.value);
        if self.world.connection.is_none() {
            // No socket: the host itself refuses the segment.
            let config = SocketOptions::default();
            self.world.begin(config.config(&self.world.host, self.world.ip, TcpSide::Client));
        }
        // A SYN that opens a connection sets the start of the peer's stream.
        let opens = flags.has(Flags::SYN)
            && matches!(
                self.world.state(),
                TcpState::Listen | TcpState::SynSent | TcpState::Closed
            );
        if opens {
            self.numbers.peer_isn = tcp.seq.value;
        }
        let segment = self.segment_of(packet, tcp)?;
        if self.world.state() == TcpState::Listen {
            self.offer_fast_open();
        }
        self.answers(packet, &segment);
        self.world.arrive(&segment);
        self.world.answered = None;
        self.cache_fast_open();
        Ok(())
    }

    /// Returns the packet with the numbers of this host.
    pub(super) fn segment_of(&self, packet: &ScriptPacket, tcp: &ScriptSegment) -> Result<Segment> {
        let flags = tcp.flags.value;
        let ecn = match packet.ecn.map(|mark| mark.value) {
            // Linux takes an ECN-capable SYN for a broken one, unless it asks for accurate ECN
            // (tcp_ecn_create_request).
            _ if tcp.ae && flags.has(Flags::SYN) && self.world.real.is_none() => 0,
            None => packet.ip.tos.map_or(0, |tos| tos.value & ECN),
            Some(EcnMark::NotCapable) => 0,
            Some(EcnMark::Ect1) => 1,
            Some(EcnMark::Ect0 | EcnMark::Either) => 2,
            Some(EcnMark::Met) => 3,
        };
        let burst = self.rules.mss.filter(|&mss| tcp.len.value > u32::from(mss));
        let mut segment = Segment {
            dir: match self.side() {
                TcpSide::Client => Dir::Reverse,
                TcpSide::Server => Dir::Forward,
            },
            ip: self.rules.ip,
            ecn,
            flags,
            // A SYN has an absolute sequence number; others are relative to it.
            seq: SeqNum(if flags.has(Flags::SYN) {
                tcp.seq.value
            } else {
                self.numbers.peer_isn.wrapping_add(tcp.seq.value)
            }),
            ack: SeqNum(tcp.ack.map_or(0, |ack| ack.value)),
            payload: tcp.len.value,
            window: tcp.window.map_or(0, |window| window.value),
            gso_size: burst.unwrap_or(0),
            ..Segment::default()
        };
        self.put_options(tcp, &mut segment)?;
        Ok(segment)
    }

    /// Lets a listener whose connection has ended accept the next one.
    fn renew_listener(&mut self, flags: Flags, seq: u32) {
        let over = matches!(self.world.state(), TcpState::Closed | TcpState::TimeWait);
        let opens = flags.has(Flags::SYN) && !flags.has(Flags::ACK) && !flags.has(Flags::RST);
        let dropped = self.world.host.profile.lax.drop_synfin && flags.has(Flags::SYN | Flags::FIN);
        // tcp_twcheck: a SYN after the old connection's end opens a new one.
        let replaces = self.world.state() == TcpState::TimeWait
            && self.world.host.profile.family == Family::FreeBsd
            && opens
            && !dropped
            && self.world.connection.as_ref().is_some_and(|end| {
                let isn = SeqNum(self.numbers.peer_isn.wrapping_add(seq));
                (isn.0.wrapping_sub(end.next_expected().0) as i32) > 0
            });
        if self.world.state() == TcpState::Listen && opens {
            // The SYN comes from another port than the segments that the listener has refused.
            self.world.sent.retain(|sent| !sent.segment.flags.has(Flags::RST));
        }
        if !over || !opens || self.sockets.connected() && !replaces {
            return;
        }
        if self.sockets.listener().is_some() && replaces {
            self.sockets.replace_connection();
        }
        let config = self.sockets.listener().map(|listener| {
            listener.wishes.config(&self.world.host, self.world.ip, TcpSide::Server)
        });
        if let Some(config) = config {
            self.world.begin(config);
        }
    }

    fn put_options(&self, tcp: &ScriptSegment, segment: &mut Segment) -> Result<()> {
        let OptionList::ExactList(options) = &tcp.options.value else {
            return self
                .unsupported(tcp.options.span, "a packet that arrives needs its options written");
        };
        let mut syn = SynOptions { layout: packet::SynLayout::Linux, ..SynOptions::default() };
        let mut reported = SackBlocks::EMPTY;
        for option in options {
            match &option.value {
                TcpOption::Nop | TcpOption::Eol => {}
                TcpOption::Mss(mss) => syn.mss = *mss,
                TcpOption::WindowScale(shift) => syn.window_scale = Some(*shift),
                TcpOption::SackOk => syn.sack_permitted = true,
                TcpOption::Sack(blocks) => {
                    for &block in blocks {
                        reported.push(block);
                    }
                }
                TcpOption::Timestamps { val, ecr } => {
                    let ecr = self
                        .numbers
                        .clock
                        .ours(*ecr, self.rules.scaled_echo || self.rules.tick.is_some());
                    segment.timestamps = Some(Timestamps { val: *val, ecr });
                }
                // Others are ignored, as are invalid cookies (tcp_parse_fastopen_option).
                TcpOption::FastOpen { cookie, experimental } => {
                    self.requires_fast_open(option.span)?;
                    syn.fast_open = FastOpenOption::new(cookie, *experimental);
                }
                // Without accurate ECN it has no effect.
                TcpOption::AccurateEcn { .. } if self.world.real.is_none() => {}
                TcpOption::AccurateEcn { .. } => {
                    return self.unsupported(
                        option.span,
                        "a kernel cannot get the option of accurate ECN here",
                    );
                }
                TcpOption::Other(name) => {
                    return self.unsupported(
                        option.span,
                        format!("the TCP option `{name}` is not supported"),
                    );
                }
            }
        }
        segment.options =
            if segment.flags.has(Flags::SYN) { Options::Syn(syn) } else { reported.into() };
        Ok(())
    }

    /// Returns the side of the connection that this host is.
    fn side(&self) -> TcpSide {
        if self.numbers.active_open { TcpSide::Client } else { TcpSide::Server }
    }
}
