//! Decodes the frequent events straight from their bytes, without a tree of JSON values: those of
//! 0.3 and later about packets, losses and metrics.
//!
//! Fields beyond the model are skipped. Whatever is unusual (a number as text, an unknown frame, an
//! invalid field) is left to [`super::decode`], which gives the same data and reports problems.

use core::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Value};
use units::Duration;

use super::header::{Context, TimeFormat};
use super::model::{Metrics, PacketHeader, QlogData, QlogEvent, QlogFrame, QlogPacket};

/// An object whose fields are read into a value that exists, without moving it.
trait LeanObject<'de> {
    /// Reads the value of a field, of any name.
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error>;
}

/// Reads an object into its target.
struct ReadInto<'t, T>(&'t mut T);

impl<'de, T: LeanObject<'de>> DeserializeSeed<'de> for ReadInto<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, T: LeanObject<'de>> Visitor<'de> for ReadInto<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        // Names with escapes are left to the complete decoder.
        while let Some(name) = map.next_key::<&str>()? {
            self.0.field(name, &mut map)?;
        }
        Ok(())
    }
}

fn skip<'de, A: MapAccess<'de>>(map: &mut A) -> Result<(), A::Error> {
    map.next_value::<IgnoredAny>().map(drop)
}

#[derive(Default)]
struct LeanEvent<'a> {
    time: Option<f64>,
    name: &'a str,
    group_id: Option<&'a str>,
    has_data: bool,
    data: LeanData<'a>,
}

impl<'de> LeanObject<'de> for LeanEvent<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "time" => self.time = map.next_value()?,
            "name" => self.name = map.next_value()?,
            "group_id" => self.group_id = map.next_value()?,
            "data" => {
                self.has_data = true;
                self.data = LeanData::default();
                map.next_value_seed(ReadInto(&mut self.data))?;
            }
            // Fields that change the meaning of the event.
            "time_format" | "delta_time" | "trigger" => {
                if map.next_value::<Option<IgnoredAny>>()?.is_some() {
                    return Err(A::Error::custom("left to the complete decoder"));
                }
            }
            _ => skip(map)?,
        }
        Ok(())
    }
}

/// The fields of all events decoded here.
#[derive(Default)]
struct LeanData<'a> {
    header: LeanHeader<'a>,
    packet_type: Option<&'a str>,
    packet_number: Option<u64>,
    packet_size: Option<u64>,
    raw: LeanRaw,
    frames: Vec<QlogFrame>,
    /// A frame was unusual.
    unusual: bool,
    /// Delays of ACK frames in the unit of the log, in the order of the frames.
    delays: Vec<f64>,
    trigger: Option<&'a str>,
    min_rtt: Option<f64>,
    smoothed_rtt: Option<f64>,
    latest_rtt: Option<f64>,
    rtt_variance: Option<f64>,
    metrics: Metrics,
    cwnd: Option<u64>,
}

impl<'de> LeanObject<'de> for LeanData<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        let metrics = &mut self.metrics;
        match name {
            "header" => {
                self.header = LeanHeader::default();
                map.next_value_seed(ReadInto(&mut self.header))?;
            }
            "packet_type" => self.packet_type = map.next_value()?,
            "packet_number" => self.packet_number = map.next_value()?,
            "packet_size" => self.packet_size = map.next_value()?,
            "raw" => {
                self.raw = LeanRaw::default();
                map.next_value_seed(ReadInto(&mut self.raw))?;
            }
            "frames" => {
                (self.frames, self.delays) = (Vec::new(), Vec::new());
                map.next_value_seed(FrameList(self))?;
            }
            "trigger" => self.trigger = map.next_value()?,
            "min_rtt" => self.min_rtt = map.next_value()?,
            "smoothed_rtt" => self.smoothed_rtt = map.next_value()?,
            "latest_rtt" => self.latest_rtt = map.next_value()?,
            "rtt_variance" => self.rtt_variance = map.next_value()?,
            "pto_count" => metrics.pto_count = map.next_value()?,
            "congestion_window" => metrics.congestion_window = map.next_value()?,
            "cwnd" => self.cwnd = map.next_value()?,
            "bytes_in_flight" => metrics.bytes_in_flight = map.next_value()?,
            "ssthresh" => metrics.ssthresh = map.next_value()?,
            "packets_in_flight" => metrics.packets_in_flight = map.next_value()?,
            "pacing_rate" => metrics.pacing_rate = map.next_value()?,
            _ => skip(map)?,
        }
        Ok(())
    }
}

#[derive(Default)]
struct LeanHeader<'a> {
    packet_type: Option<&'a str>,
    packet_number: Option<u64>,
    packet_size: Option<u64>,
    length: Option<u64>,
}

impl<'de> LeanObject<'de> for LeanHeader<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "packet_type" => self.packet_type = map.next_value()?,
            "packet_number" => self.packet_number = map.next_value()?,
            "packet_size" => self.packet_size = map.next_value()?,
            "length" => self.length = map.next_value()?,
            _ => skip(map)?,
        }
        Ok(())
    }
}

#[derive(Default)]
struct LeanRaw {
    length: Option<u64>,
    payload_length: Option<u64>,
}

impl<'de> LeanObject<'de> for LeanRaw {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "length" => self.length = map.next_value()?,
            "payload_length" => self.payload_length = map.next_value()?,
            _ => skip(map)?,
        }
        Ok(())
    }
}

#[derive(Default)]
struct LeanFrame<'a> {
    frame_type: &'a str,
    stream_id: Option<u64>,
    offset: Option<u64>,
    length: Option<u64>,
    raw: LeanRaw,
    fin: Option<bool>,
    maximum: Option<u64>,
    ack_delay: Option<f64>,
    acked_ranges: Vec<(u64, u64)>,
    ce: Option<u64>,
}

impl<'de> LeanObject<'de> for LeanFrame<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "frame_type" => self.frame_type = map.next_value()?,
            "stream_id" => self.stream_id = map.next_value()?,
            "offset" => self.offset = map.next_value()?,
            "length" => self.length = map.next_value()?,
            "raw" => {
                self.raw = LeanRaw::default();
                map.next_value_seed(ReadInto(&mut self.raw))?;
            }
            "fin" => self.fin = map.next_value()?,
            "maximum" => self.maximum = map.next_value()?,
            "ack_delay" => self.ack_delay = map.next_value()?,
            "acked_ranges" => {
                self.acked_ranges.clear();
                map.next_value_seed(RangeList(&mut self.acked_ranges))?;
            }
            "ce" => self.ce = map.next_value()?,
            _ => skip(map)?,
        }
        Ok(())
    }
}

/// Reads the frames of a packet.
struct FrameList<'t, 'a>(&'t mut LeanData<'a>);

impl<'de> DeserializeSeed<'de> for FrameList<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for FrameList<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("frames")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let data = self.0;
        loop {
            let mut one = LeanFrame::default();
            if list.next_element_seed(ReadInto(&mut one))?.is_none() {
                return Ok(());
            }
            match frame(&mut one) {
                Some(frame) => data.frames.push(frame),
                None => data.unusual = true,
            }
            data.delays.extend(one.ack_delay.filter(|_| one.frame_type == "ack"));
        }
    }
}

/// Reads ranges of packet numbers: `[from, to]` or `[one]`.
struct RangeList<'t>(&'t mut Vec<(u64, u64)>);

impl<'de> DeserializeSeed<'de> for RangeList<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for RangeList<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ranges of packet numbers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(LeanRange(from, to)) = list.next_element()? {
            self.0.push((from, to));
        }
        Ok(())
    }
}

/// A range of packet numbers.
#[derive(Clone, Copy)]
struct LeanRange(u64, u64);

impl<'de> serde::Deserialize<'de> for LeanRange {
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
    let mut event = LeanEvent::default();
    let mut reader = serde_json::Deserializer::from_str(text);
    ReadInto(&mut event).deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    if !event.has_data {
        return None;
    }
    let group_id = event.group_id.map(str::to_owned);
    let nanos = nanos(event.time?, context.unit)?;
    let at = match context.time {
        TimeFormat::Relative => nanos,
        TimeFormat::Delta => context.last.saturating_add(nanos),
        TimeFormat::Absolute => nanos.checked_sub(context.epoch.unwrap_or(0))?,
    };
    let data = data(event.name, event.data, context.unit)?;
    context.last = at;
    Some(QlogEvent { group_id, ..QlogEvent::new(Duration::from_nanos(at), data) })
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
    let packet_type = data.header.packet_type.or(data.packet_type);
    PacketHeader {
        packet_type: packet_type.filter(|name| !name.is_empty()).unwrap_or("unknown").to_owned(),
        packet_number: data.header.packet_number.or(data.packet_number),
    }
}

fn packet(mut data: LeanData<'_>, unit: f64) -> Option<QlogPacket> {
    if data.unusual {
        return None;
    }
    let mut delays = data.delays.iter();
    for frame in &mut data.frames {
        if let QlogFrame::Ack { delay: Some(delay), .. } = frame {
            *delay = Duration::from_nanos(nanos(*delays.next()?, unit)?);
        }
    }
    let length = data.raw.length.or(data.header.packet_size).or(data.packet_size);
    let length = length.or(data.header.length).or(data.raw.payload_length);
    Some(QlogPacket {
        header: header(&data),
        length,
        frames: data.frames,
        trigger: data.trigger.map(str::to_owned),
    })
}

/// The frame, if it is a usual one; the delay of an ACK is set later.
fn frame(frame: &mut LeanFrame<'_>) -> Option<QlogFrame> {
    // Of several lengths, the others would be lost.
    let mut lengths =
        [frame.length, frame.raw.payload_length, frame.raw.length].into_iter().flatten();
    let length = lengths.next();
    if lengths.next().is_some() {
        return None;
    }
    match frame.frame_type {
        "stream" => Some(QlogFrame::Stream {
            stream_id: frame.stream_id?,
            offset: frame.offset?,
            length: length?,
            fin: frame.fin.unwrap_or(false),
        }),
        "crypto" => Some(QlogFrame::Crypto { offset: frame.offset?, length: length? }),
        "ack" if frame.ce.is_none() => Some(QlogFrame::Ack {
            ranges: core::mem::take(&mut frame.acked_ranges),
            delay: frame.ack_delay.map(|_| Duration::ZERO),
        }),
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
        congestion_window: data.metrics.congestion_window.or(data.cwnd),
        ..data.metrics.clone()
    })
}

/// As [`super::fields::nanos`] of a number.
fn nanos(number: f64, unit: f64) -> Option<u64> {
    let nanos = (number * unit).round();
    (0.0..9.2e18).contains(&nanos).then_some(nanos as u64)
}
