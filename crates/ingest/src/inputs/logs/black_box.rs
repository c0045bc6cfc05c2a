//! FreeBSD's Black Box Log.

use std::io::{self, Read};

use diagnose::{CapturedPacket, StateSample};
use trace::bblog::{BblogItem, BblogReader, BblogRecord, flags, t_flags};
use trace::pcapng::PacketDirection;
use units::{Bytes, Duration, Instant};

use super::super::File;
use super::{Anchor, LogEpoch, LogFile};

/// `snd_ssthresh` before any loss: TCP_MAXWIN << TCP_MAX_WINSHIFT (tcp_subr.c).
const UNSET: u32 = 65_535 << 14;

pub(super) fn read(input: impl Read, file: &mut File) -> io::Result<LogFile> {
    let mut logs = LogFile { times: LogEpoch::Since1970, ..LogFile::default() };
    let mut reader = BblogReader::new(input);
    let mut section = None;
    while let Some(item) = reader.next() {
        let record = match item {
            // The rest of a damaged compressed file is lost.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                file.problems.push(&error);
                break;
            }
            Err(error) => return Err(error),
            Ok(BblogItem::Problem(problem)) => {
                file.problems.push(&problem);
                continue;
            }
            Ok(BblogItem::Section(new)) => {
                section = Some(new);
                continue;
            }
            Ok(BblogItem::Record(record)) => record,
        };
        file.frames += 1;
        let connection = section.as_ref().and_then(|section| section.connection.as_ref());
        let named = connection.map(|connection| (connection.local, connection.remote));
        let ends = named.or(record.packet.map(|packet| {
            let (src, dst) = (packet.between.src, packet.between.dst);
            if packet.way == PacketDirection::Out { (src, dst) } else { (dst, src) }
        }));
        let Some(ends) = ends else { continue };
        let micros = section
            .as_ref()
            .and_then(|section| section.srtt_in_micros(record.info.stack_id))
            // RACK and BBR add their own state, the default stack does not.
            .unwrap_or(record.info.has(flags::STACKINFO));
        let hz = reader.hz();
        let round_trip = |value: u32| match (micros, hz) {
            _ if value == 0 => None,
            (true, _) => Some(Duration::from_micros(u64::from(value))),
            (false, hz) => hz?.srtt_nanos(value).map(Duration::from_nanos),
        };
        let sample = StateSample {
            srtt: round_trip(record.info.srtt),
            // The default stack keeps 16 times the variance, its srtt 32 times the value.
            rttvar: if micros {
                round_trip(record.info.rttvar)
            } else {
                round_trip(record.info.rttvar.saturating_mul(2))
            },
            hz: hz.and_then(|hz| hz.value),
            ..sample(&record)
        };
        let at = record.at.map(Duration::as_nanos);
        let frame = file.frames;
        let Some(log) = logs.word(ends, at, sample) else { continue };
        if let (Some(at), Some(packet)) = (at, record.packet) {
            let segment = packet.segment;
            match packet.way {
                PacketDirection::Out if segment.payload > 0 => {
                    log.anchors.push((Anchor::Sent(segment.seq.0), at));
                }
                PacketDirection::In => {
                    let ack = segment.acknowledgment();
                    log.anchors.extend(ack.map(|ack| (Anchor::Acked(ack.0), at)));
                }
                PacketDirection::Out => {}
            }
            // The log has headers only, which is not truncation.
            let captured = segment.wire_len().get() as u32;
            let packet_at = CapturedPacket {
                at: Instant::ZERO,
                frame,
                segment,
                captured,
                id: 0,
                ttl: 0,
                options_cut: false,
            };
            log.packets.push((at, packet.between, packet_at));
        }
    }
    Ok(logs)
}

fn sample(record: &BblogRecord) -> StateSample {
    let info = &record.info;
    let bytes = |value: u32| Some(Bytes(u64::from(value)));
    let recovering = t_flags::FASTRECOVERY | t_flags::CONGRECOVERY;
    // Sequence numbers are valid only once the connection is established.
    let established = info.state >= 4;
    StateSample {
        cwnd: bytes(info.snd_cwnd),
        ssthresh: bytes(info.snd_ssthresh).filter(|_| info.snd_ssthresh < UNSET),
        inflight: bytes(info.snd_max.wrapping_sub(info.snd_una)).filter(|_| established),
        snd_wnd: bytes(info.snd_wnd),
        send_buffer: bytes(info.txbuf_acc).filter(|_| info.has(flags::TXBUF)),
        ticks: Some(info.ticks),
        in_recovery: Some(info.t_flags & recovering != 0),
        ..LogFile::blank()
    }
}
