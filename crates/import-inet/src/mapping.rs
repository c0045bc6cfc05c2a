//! Maps the parameters of INET's example `lossy_link` to settings of a scenario.
//!
//! As in OMNeT++, the first of several lines for the same parameter of the same host applies.

use std::collections::BTreeMap;

use units::{Bytes, Duration, Rate, Ratio};

use super::sweep::decimal;
use super::text::IniEntry;
use scenario::ScenarioError;
use scenario::document::{PacketRule, RawValue, RuleTable, given};
use scenario::units_text::{self, QuantityError};

/// A line that could not be mapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmappedLine {
    /// Line, from 1.
    pub line: usize,
    /// Column of its key, from 1.
    pub column: usize,
    /// The key.
    pub key: String,
    /// The reason.
    pub why: String,
}

/// The network of the example.
const NETWORK: &str = "lossy_link_shared";
/// QUIC knobs that the parameters map to.
const MAX_DATA: &str = "initial_max_data";
const MAX_STREAM_DATA: &str = "initial_max_stream_data";
const ACK_EVERY: &str = "numReceivedAckElicitingsBeforeAck";

/// Host indices: the sender and the receiver.
pub(super) const CLIENT: usize = 0;
pub(super) const SERVER: usize = 1;

/// Stacks of the hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StackKind {
    /// A QUIC profile at both hosts.
    Quic,
    /// A TCP profile at the sender, FreeBSD's TCP at the receiver.
    Tcp,
}

impl StackKind {
    pub(super) fn of(profile: &str) -> Self {
        match quic::QuicProfile::named(profile) {
            Some(_) => Self::Quic,
            None => Self::Tcp,
        }
    }
}

/// Parameters of one host.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct HostParameters {
    /// Knobs and their values.
    pub(super) knobs: Vec<(&'static str, RawValue)>,
    /// Loss rate of its packets, as numerator and denominator.
    loss: Option<(u64, u64)>,
    periodic: Option<bool>,
}

/// Parsed parameters.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct InetParameters {
    pub(super) duration: Option<Duration>,
    pub(super) seed: Option<u64>,
    pub(super) repeat: Option<u64>,
    pub(super) delay: Option<Duration>,
    pub(super) rate: Option<Rate>,
    pub(super) mtu: Option<Bytes>,
    pub(super) sides: [HostParameters; 2],
}

impl HostParameters {
    /// Returns its loss rule, if packets are lost.
    pub(super) fn loss(&self) -> Option<PacketRule> {
        let (num, den) = self.loss?;
        match self.periodic {
            // INET drops once a counter is above 1/p.
            Some(true) => {
                let rule = RuleTable { pass: given(den / num), ..RuleTable::default() };
                Some(PacketRule::Rule(rule.into()))
            }
            _ => Ratio::new(num, den).map(PacketRule::Share),
        }
    }

    fn knob(&mut self, name: &'static str, value: RawValue) {
        self.knobs.push((name, value));
    }
}

/// Result of a parameter: the reason if it is not mapped.
type MappingResult = Result<Option<String>, QuantityError>;

/// Reads parameters and returns the unmapped lines; `value` returns the value of a line.
pub(super) fn read(
    file: &str,
    entries: &[&IniEntry],
    stack: StackKind,
    value: impl Fn(&IniEntry) -> Result<String, Vec<ScenarioError>>,
) -> Result<(InetParameters, Vec<UnmappedLine>), Vec<ScenarioError>> {
    let mut draft = InetParameters::default();
    let mut unmapped = Vec::new();
    let mut errors = Vec::new();
    // The lines by parameter and host.
    let mut seen: BTreeMap<(&str, usize), usize> = BTreeMap::new();
    let mut streams: Vec<(&IniEntry, usize, String)> = Vec::new();
    for entry in entries {
        let text = value(entry)?;
        let (name, hosts) = parameter(&entry.key);
        let before = |host: &usize| seen.get(&(name, *host)).copied();
        let left: Vec<usize> =
            hosts.iter().copied().filter(|host| before(host).is_none()).collect();
        let outcome = match (left.as_slice(), hosts.first().and_then(before)) {
            ([], Some(line)) => Ok(Some(format!("overridden by line {line}"))),
            _ => draft.take(name, &left, &text, stack),
        };
        if name.starts_with("initialMaxStreamData") && outcome == Ok(None) {
            streams.extend(left.iter().map(|&host| (*entry, host, text.clone())));
        }
        seen.extend(left.iter().map(|&host| ((name, host), entry.line)));
        match outcome {
            Ok(None) => {}
            Ok(Some(why)) => unmapped.push(missing(entry, why)),
            Err(misread) => {
                let message = format!("{name}: {text:?} {}", misread.message);
                let mut error = entry.wrong(file, message, &misread.expected);
                error.hint = misread.hint;
                errors.push(error);
            }
        }
    }
    unmapped.extend(other_streams(&streams));
    unmapped.sort_by_key(|unmapped| unmapped.line);
    if errors.is_empty() { Ok((draft, unmapped)) } else { Err(errors) }
}

fn missing(entry: &IniEntry, why: String) -> UnmappedLine {
    UnmappedLine { line: entry.line, column: entry.key_column, key: entry.key.clone(), why }
}

/// Returns lines with differing windows of other stream types: the scenario has one stream.
fn other_streams(streams: &[(&IniEntry, usize, String)]) -> Vec<UnmappedLine> {
    let mut lines: Vec<UnmappedLine> = Vec::new();
    for (place, (entry, host, text)) in streams.iter().enumerate() {
        let first = streams[..place].iter().find(|(_, of, _)| of == host);
        if let Some((first, _, other)) = first
            && other != text
            && lines.iter().all(|one| one.line != entry.line)
        {
            let why = format!("a scenario has one stream, with the window of line {}", first.line);
            lines.push(missing(entry, why));
        }
    }
    lines
}

/// Returns name and hosts of the parameter of a key such as `**.client.quic.sendQueueLimit`.
fn parameter(key: &str) -> (&str, &'static [usize]) {
    let name = key.rsplit('.').next().unwrap_or(key);
    let hosts: &[usize] = match () {
        () if key.split('.').any(|part| part == "client") => &[CLIENT],
        () if key.split('.').any(|part| part == "server") => &[SERVER],
        () => &[CLIENT, SERVER],
    };
    (name, hosts)
}

impl InetParameters {
    /// Applies a parameter to these hosts; returns the reason if it is not mapped.
    fn take(
        &mut self,
        name: &str,
        hosts: &[usize],
        value: &str,
        stack: StackKind,
    ) -> MappingResult {
        match name {
            "network" if value == NETWORK => {}
            "network" => {
                return Ok(Some(format!("only {NETWORK} is known; a single link is assumed")));
            }
            "sim-time-limit" => self.duration = Some(units_text::duration(value)?),
            "repeat" => self.repeat = Some(count(value, 1)?),
            // The seed of a repetition is the scenario's plus its number.
            "seed-set" => self.seed = Some(count(value, 0)?),
            "linkDelay" => self.delay = Some(units_text::duration(value)?),
            "linkDatarate" => self.rate = Some(units_text::rate(value)?),
            "mtu" => self.mtu = Some(units_text::size(value)?),
            "periodicSendLossRate" | "sendLossRate" => {
                let rate = loss(value)?;
                for &host in hosts {
                    self.sides[host].loss = rate;
                    if name == "periodicSendLossRate" {
                        self.sides[host].periodic = Some(true);
                    }
                }
            }
            "periodicSendLoss" => {
                let on = switch(value)?;
                hosts.iter().for_each(|&host| self.sides[host].periodic = Some(on));
            }
            "extends" | "description" => {}
            _ => return self.take_quic(name, hosts, value, stack),
        }
        Ok(None)
    }

    /// Applies a parameter of INET's module Quic.
    fn take_quic(
        &mut self,
        name: &str,
        hosts: &[usize],
        text: &str,
        stack: StackKind,
    ) -> MappingResult {
        let (knob, value) = match name {
            ACK_EVERY => (ACK_EVERY, RawValue::from(count(text, 1)?)),
            "initialMaxData" => (MAX_DATA, bytes(text)?.into()),
            "initialMaxStreamDataBidiRemote"
            | "initialMaxStreamDataBidiLocal"
            | "initialMaxStreamDataUni" => (MAX_STREAM_DATA, bytes(text)?.into()),
            "sendQueueLimit" => ("sendQueueLimit", bytes(text)?.into()),
            "accurateIncreaseInNewRenoCongestionAvoidance" => {
                ("accurateIncreaseInNewRenoCongestionAvoidance", switch(text)?.into())
            }
            "bundleAckForNonAckElicitingPackets" => {
                ("bundleAckForNonAckElicitingPackets", switch(text)?.into())
            }
            "sendQueueLowWaterRatio" => {
                return Ok(Some(
                    "a blocked application is notified once an eighth of the queue \
                     is free"
                        .to_owned(),
                ));
            }
            _ => return Ok(Some("unknown parameter".to_owned())),
        };
        match (stack, knob) {
            (StackKind::Quic, _) => {
                for &host in hosts {
                    let side = &mut self.sides[host];
                    if side.knobs.iter().all(|(known, _)| *known != knob) {
                        side.knob(knob, value.clone());
                    }
                }
            }
            (StackKind::Tcp, ACK_EVERY) if hosts == [CLIENT] => {
                return Ok(Some("the client receives no data".to_owned()));
            }
            (StackKind::Tcp, ACK_EVERY) => match count(text, 1)? {
                every @ 1..=2 => {
                    self.sides[SERVER].knob("net.inet.tcp.delayed_ack", (every - 1).into());
                }
                _ => {
                    let why = "a TCP receiver acknowledges every packet or every second one";
                    return Ok(Some(why.to_owned()));
                }
            },
            (StackKind::Tcp, _) => {
                return Ok(Some("applies to INET's QUIC; the sender is a TCP".to_owned()));
            }
        }
        Ok(None)
    }
}

fn misread(message: &str, expected: &str) -> QuantityError {
    QuantityError { message: message.to_owned(), expected: expected.to_owned(), hint: None }
}

fn switch(value: &str) -> Result<bool, QuantityError> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(misread("is not a Boolean", "true or false")),
    }
}

fn count(value: &str, least: u64) -> Result<u64, QuantityError> {
    let count = value.parse().ok().filter(|count| (least..=i64::MAX as u64).contains(count));
    count.ok_or_else(|| misread("is out of range", &format!("a whole number from {least} on")))
}

/// Parses bytes; INET accepts them with or without a unit.
fn bytes(value: &str) -> Result<Bytes, QuantityError> {
    let bytes = match value.parse::<u64>() {
        Ok(bytes) => Bytes(bytes),
        Err(_) => units_text::size(value)?,
    };
    match bytes.get() {
        // RFC 9000 section 16: the largest variable-length integer.
        1..=0x3fff_ffff_ffff_ffff => Ok(bytes),
        _ => Err(misread("is not a number of bytes", "1 to 4611686018427387903")),
    }
}

/// Parses a loss rate between 0 and 1 as a fraction; `None` for 0.
fn loss(value: &str) -> Result<Option<(u64, u64)>, QuantityError> {
    let expected = "a fraction such as 0.02";
    let Some((digits, behind)) = decimal(value) else {
        return Err(misread("is not a number", expected));
    };
    let den = 10_u64.pow(behind);
    match u64::try_from(digits) {
        Ok(0) => Ok(None),
        Ok(num) if num <= den => Ok(Some((num, den))),
        _ => Err(misread("is not between 0 and 1", expected)),
    }
}
