//! Decodes the frequent events straight from their bytes, without a tree of JSON values: those of
//! 0.3 and later about packets, losses and metrics.
//!
//! Fields beyond the model are skipped. Whatever is unusual (a number as text, an unknown frame, an
//! invalid field) is left to [`super::decode`], which gives the same data and reports problems.

use core::fmt;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use units::Duration;

use super::header::{Context, TimeFormat};
use super::model::{Metrics, PacketHeader, QlogData, QlogEvent, QlogFrame, QlogPacket};

#[derive(Deserialize)]
struct LeanEvent<'a> {
    time: Option<f64>,
    #[serde(borrow)]
    name: &'a str,
    #[serde(borrow)]
    data: LeanData<'a>,
    // Fields that change the meaning of the event.
    time_format: Option<&'a str>,
    delta_time: Option<f64>,
    group_id: Option<&'a str>,
    trigger: Option<&'a str>,
}

/// The fields of all events decoded here.
#[derive(Deserialize)]
struct LeanData<'a> {
    #[serde(borrow)]
    header: Option<LeanHeader<'a>>,
    packet_type: Option<&'a str>,
    packet_number: Option<u64>,
    packet_size: Option<u64>,
    raw: Option<LeanRaw>,
    frames: Option<Vec<LeanFrame<'a>>>,
    trigger: Option<&'a str>,
    min_rtt: Option<f64>,
    smoothed_rtt: Option<f64>,
    latest_rtt: Option<f64>,
    rtt_variance: Option<f64>,
    pto_count: Option<u64>,
    congestion_window: Option<u64>,
    cwnd: Option<u64>,
    bytes_in_flight: Option<u64>,
    ssthresh: Option<u64>,
    packets_in_flight: Option<u64>,
    pacing_rate: Option<u64>,
}

#[derive(Deserialize)]
struct LeanHeader<'a> {
    packet_type: Option<&'a str>,
    packet_number: Option<u64>,
    packet_size: Option<u64>,
}

#[derive(Deserialize)]
struct LeanRaw {
    length: Option<u64>,
}

#[derive(Deserialize)]
struct LeanFrame<'a> {
    frame_type: &'a str,
    stream_id: Option<u64>,
    offset: Option<u64>,
    length: Option<u64>,
    raw: Option<LeanRaw>,
    fin: Option<bool>,
    maximum: Option<u64>,
    ack_delay: Option<f64>,
    acked_ranges: Option<Vec<LeanRange>>,
    ce: Option<u64>,
}

/// A range of packet numbers: `[from, to]` or `[one]`.
#[derive(Clone, Copy)]
struct LeanRange(u64, u64);

impl<'de> Deserialize<'de> for LeanRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(LeanRangeVisitor)
    }
}

struct LeanRangeVisitor;

impl<'de> Visitor<'de> for LeanRangeVisitor {
    type Value = LeanRange;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one or two packet numbers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<LeanRange, A::Error> {
        let from: u64 = list.next_element()?.ok_or_else(|| A::Error::invalid_length(0, &self))?;
        let to = list.next_element()?.unwrap_or(from);
        match list.next_element::<u64>()? {
            None if from <= to => Ok(LeanRange(from, to)),
            _ => Err(A::Error::custom("no range of packet numbers")),
        }
    }
}

/// Decodes an event; `None` leaves it to the complete decoder.
pub(super) fn event(bytes: &[u8], context: &mut Context) -> Option<QlogEvent> {
    // The other form of events is a list.
    if bytes.first() != Some(&b'{') {
        return None;
    }
    // Strings that are skipped must be text too.
    let text = core::str::from_utf8(bytes).ok()?;
    let event: LeanEvent<'_> = serde_json::from_str(text).ok()?;
    let own_time = event.time_format.is_some() || event.delta_time.is_some();
    if own_time || event.group_id.is_some() || event.trigger.is_some() {
        return None;
    }
    let nanos = nanos(event.time?, context.unit)?;
    let at = match context.time {
        TimeFormat::Relative => nanos,
        TimeFormat::Delta => context.last.saturating_add(nanos),
        TimeFormat::Absolute => nanos.checked_sub(context.epoch.unwrap_or(0))?,
    };
    let data = data(event.name, event.data, context.unit)?;
    context.last = at;
    Some(QlogEvent::new(Duration::from_nanos(at), data))
}

fn data(name: &str, data: LeanData<'_>, unit: f64) -> Option<QlogData> {
    let (space, kind) = name.split_once(':')?;
    match (space, kind) {
        ("quic" | "transport", "packet_sent") => packet(data, unit).map(QlogData::PacketSent),
        ("quic" | "transport", "packet_received") => {
            packet(data, unit).map(QlogData::PacketReceived)
        }
        ("quic" | "recovery", "packet_lost") => Some(QlogData::PacketLost {
            header: header(&data),
            trigger: data.trigger.map(str::to_owned),
        }),
        ("quic", "recovery_metrics_updated") | ("recovery", "metrics_updated") => {
            metrics(&data, unit).map(QlogData::MetricsUpdated)
        }
        _ => None,
    }
}

fn header(data: &LeanData<'_>) -> PacketHeader {
    let inner = data.header.as_ref();
    let packet_type = inner.and_then(|header| header.packet_type).or(data.packet_type);
    PacketHeader {
        packet_type: packet_type.filter(|name| !name.is_empty()).unwrap_or("unknown").to_owned(),
        packet_number: inner.and_then(|header| header.packet_number).or(data.packet_number),
    }
}

fn packet(data: LeanData<'_>, unit: f64) -> Option<QlogPacket> {
    let header = header(&data);
    let of_raw = data.raw.as_ref().and_then(|raw| raw.length);
    let of_header = data.header.as_ref().and_then(|header| header.packet_size);
    let frames = data.frames.unwrap_or_default();
    Some(QlogPacket {
        header,
        length: of_raw.or(of_header).or(data.packet_size),
        frames: frames.iter().map(|one| frame(one, unit)).collect::<Option<_>>()?,
        trigger: data.trigger.map(str::to_owned),
    })
}

fn frame(frame: &LeanFrame<'_>, unit: f64) -> Option<QlogFrame> {
    let length = frame.length.or_else(|| frame.raw.as_ref().and_then(|raw| raw.length));
    match frame.frame_type {
        "stream" => Some(QlogFrame::Stream {
            stream_id: frame.stream_id?,
            offset: frame.offset?,
            length: length?,
            fin: frame.fin.unwrap_or(false),
        }),
        "crypto" => Some(QlogFrame::Crypto { offset: frame.offset?, length: length? }),
        "ack" if frame.ce.is_none() => {
            let ranges = frame.acked_ranges.as_deref().unwrap_or_default();
            let delay = match frame.ack_delay {
                Some(delay) => Some(Duration::from_nanos(nanos(delay, unit)?)),
                None => None,
            };
            Some(QlogFrame::Ack {
                ranges: ranges.iter().map(|range| (range.0, range.1)).collect(),
                delay,
            })
        }
        "max_data" => Some(QlogFrame::MaxData { maximum: frame.maximum? }),
        "max_stream_data" => {
            Some(QlogFrame::MaxStreamData { stream_id: frame.stream_id?, maximum: frame.maximum? })
        }
        "padding" | "ping" => {
            let kind = Value::String(frame.frame_type.to_owned());
            Some(QlogFrame::Other(Map::from_iter([("frame_type".to_owned(), kind)])))
        }
        _ => None,
    }
}

fn metrics(data: &LeanData<'_>, unit: f64) -> Option<Metrics> {
    let span = |value: Option<f64>| match value {
        None => Some(None),
        Some(value) => nanos(value, unit).map(|ns| Some(Duration::from_nanos(ns))),
    };
    Some(Metrics {
        min_rtt: span(data.min_rtt)?,
        smoothed_rtt: span(data.smoothed_rtt)?,
        latest_rtt: span(data.latest_rtt)?,
        rtt_variance: span(data.rtt_variance)?,
        pto_count: data.pto_count,
        congestion_window: data.congestion_window.or(data.cwnd),
        bytes_in_flight: data.bytes_in_flight,
        ssthresh: data.ssthresh,
        packets_in_flight: data.packets_in_flight,
        pacing_rate: data.pacing_rate,
    })
}

/// As [`super::fields::nanos`] of a number.
fn nanos(number: f64, unit: f64) -> Option<u64> {
    let nanos = (number * unit).round();
    (0.0..9.2e18).contains(&nanos).then_some(nanos as u64)
}
