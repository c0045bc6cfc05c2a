//! The contents of a packet slot: the header fields of most segments in compact form, the handle of
//! a QUIC packet, or a UDP datagram.

use packet::{Dir, Flags, IpVersion, Options, PacketTooBig, Segment, Timestamps};
use units::{FlowId, SeqNum};

use crate::datagrams::DatagramId;

/// The contents of a packet. The fields of its IP header and of its payload come first, in the
/// order of [`Segment`], so that neighbours are copied together.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct PacketContents {
    pub(super) flow: FlowId,
    /// First payload byte: TCP's sequence number, or the low bits of the offset in a QUIC stream.
    pub(super) seq: SeqNum,
    pub(super) payload: u32,
    pub(super) dir: Dir,
    pub(super) ip: IpVersion,
    pub(super) ecn: u8,
    /// Control bits of TCP, here to be copied with their neighbours; 0 for QUIC.
    pub(super) flags: Flags,
    pub(super) transport: TransportHeader,
}

/// Half a cache line: tens of thousands of packets can be in flight.
const _: () = assert!(size_of::<PacketContents>() <= 32);

/// The transport header.
#[derive(Debug, Clone, Copy)]
pub(super) enum TransportHeader {
    Tcp(TcpHeader),
    /// The QUIC packet is stored in [`Datagrams`](crate::datagrams::Datagrams).
    Quic(DatagramId),
    /// The same of a real implementation.
    Real(DatagramId),
    /// A UDP datagram: its number is in place of TCP's sequence number.
    Udp,
    /// An ICMP error about a segment that was too large, with its sequence number.
    TooBig {
        /// IP bytes of that segment.
        size: u16,
        /// MTU of the next link in bytes.
        mtu: u16,
    },
}

impl Default for TransportHeader {
    fn default() -> Self {
        Self::Tcp(TcpHeader::default())
    }
}

/// The header of a TCP segment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TcpHeader {
    pub(super) ack: SeqNum,
    stamps: Timestamps,
    window: u16,
    form: OptionsForm,
}

/// How the options of a segment are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
enum OptionsForm {
    /// The segment has no options.
    #[default]
    Plain,
    /// The segment has timestamps only.
    Stamped,
    /// The whole segment is stored in the cold pool, under the number in `stamps.val`.
    Cold,
}

impl TcpHeader {
    #[inline(always)]
    fn of(segment: &Segment, form: OptionsForm, stamps: Timestamps) -> Self {
        Self { ack: segment.ack, stamps, window: segment.window, form }
    }

    /// Returns the index of the segment in the cold pool, if it is stored there.
    #[inline(always)]
    pub(super) fn cold(&self) -> Option<u32> {
        (self.form == OptionsForm::Cold).then_some(self.stamps.val)
    }
}

impl PacketContents {
    /// Encodes a segment, if its fields fit.
    #[inline(always)]
    pub(super) fn inline(segment: &Segment) -> Option<Self> {
        let more = segment.gso_size | segment.nsegs != 0;
        if more || !matches!(segment.options, Options::None) {
            return None;
        }
        let form =
            if segment.timestamps.is_some() { OptionsForm::Stamped } else { OptionsForm::Plain };
        let stamps = segment.timestamps.unwrap_or_default();
        Some(Self::of(segment, TransportHeader::Tcp(TcpHeader::of(segment, form, stamps))))
    }

    /// Encodes a segment that is stored in the cold pool at that index.
    pub(super) fn cold(segment: &Segment, number: u32) -> Self {
        let stamps = Timestamps { val: number, ecr: 0 };
        Self::of(segment, TransportHeader::Tcp(TcpHeader::of(segment, OptionsForm::Cold, stamps)))
    }

    /// Encodes a QUIC packet that is stored under that number.
    pub(super) fn quic(packet: &quic::QuicPacket, id: DatagramId) -> Self {
        Self {
            flow: packet.flow,
            seq: SeqNum(packet.stream.map_or(0, |chunk| chunk.offset) as u32),
            payload: packet.payload(),
            dir: packet.dir,
            ip: packet.ip,
            ecn: packet.ecn,
            flags: Flags::NONE,
            transport: TransportHeader::Quic(id),
        }
    }

    /// Encodes a datagram of a real implementation that is stored under that number, the `number`-th of
    /// its end.
    pub(super) fn real(
        (flow, dir, ip): (FlowId, Dir, IpVersion),
        number: u32,
        datagram: &quic::real::Datagram,
        id: DatagramId,
    ) -> Self {
        Self {
            flow,
            seq: SeqNum(number),
            payload: datagram.stream_bytes,
            dir,
            ip,
            ecn: datagram.ecn,
            flags: Flags::NONE,
            transport: TransportHeader::Real(id),
        }
    }

    /// Encodes UDP datagram `number`.
    pub(super) const fn udp(flow: FlowId, dir: Dir, ip: IpVersion, number: u32, size: u32) -> Self {
        Self {
            flow,
            seq: SeqNum(number),
            payload: size,
            dir,
            ip,
            ecn: 0,
            flags: Flags::NONE,
            transport: TransportHeader::Udp,
        }
    }

    /// Encodes an ICMP error.
    pub(super) const fn too_big(message: &PacketTooBig) -> Self {
        let (size, mtu) = (message.size as u16, message.mtu as u16);
        Self {
            flow: message.flow,
            seq: message.seq,
            payload: 0,
            dir: message.dir,
            ip: message.ip,
            ecn: 0,
            flags: Flags::NONE,
            transport: TransportHeader::TooBig { size, mtu },
        }
    }

    #[inline(always)]
    fn of(segment: &Segment, transport: TransportHeader) -> Self {
        Self {
            flow: segment.flow,
            seq: segment.seq,
            payload: segment.payload,
            dir: segment.dir,
            ip: segment.ip,
            ecn: segment.ecn,
            flags: segment.flags,
            transport,
        }
    }

    /// Decodes the segment with that header, which is not stored in the cold pool.
    #[inline(always)]
    pub(super) fn segment(&self, tcp: &TcpHeader) -> Segment {
        Segment {
            flow: self.flow,
            seq: self.seq,
            payload: self.payload,
            dir: self.dir,
            ip: self.ip,
            ecn: self.ecn,
            flags: self.flags,
            ack: tcp.ack,
            window: tcp.window,
            gso_size: 0,
            nsegs: 0,
            timestamps: (tcp.form == OptionsForm::Stamped).then_some(tcp.stamps),
            options: Options::None,
        }
    }
}
