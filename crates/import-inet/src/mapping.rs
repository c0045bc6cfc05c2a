//! What the parameters of INET's example `lossy_link` mean in a scenario.
//!
//! As in OMNeT++, of two lines about the same parameter of the same host the first counts.

use units::{Bytes, Duration, Rate, Ratio};

use super::sweep::decimal;
use super::text::Entry;
use scenario::ScenarioError;
use scenario::document::{Choice, RuleTable, Setting, given};
use scenario::units_text::{self, Misread};

/// A line that could not be mapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmapped {
    /// Its number, from 1.
    pub line: usize,
    /// Column of its key, from 1.
    pub column: usize,
    /// Its key.
    pub key: String,
    /// Why.
    pub why: String,
}

/// The network of the example.
const NETWORK: &str = "lossy_link_shared";
/// Names of the knobs of QUIC that the file's parameters stand for.
const MAX_DATA: &str = "initial_max_data";
const MAX_STREAM_DATA: &str = "initial_max_stream_data";
const ACK_EVERY: &str = "numReceivedAckElicitingsBeforeAck";

/// Hosts: the one that sends and the one that receives.
pub(super) const CLIENT: usize = 0;
pub(super) const SERVER: usize = 1;

/// What runs at the hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stack {
    /// A profile of QUIC at both.
    Quic,
    /// A TCP at the sender, FreeBSD's at the receiver.
    Tcp,
}

impl Stack {
    pub(super) fn of(profile: &str) -> Self {
        match quic::Profile::named(profile) {
            Some(_) => Self::Quic,
            None => Self::Tcp,
        }
    }
}

/// What one host is given.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Side {
    /// Knobs and their values.
    pub(super) knobs: Vec<(&'static str, Setting)>,
    /// Share of its packets that is lost, as a fraction.
    loss: Option<(u64, u64)>,
    periodic: Option<bool>,
}

/// What the parameters say.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Draft {
    pub(super) duration: Option<Duration>,
    pub(super) seed: Option<u64>,
    pub(super) repeat: Option<u64>,
    pub(super) delay: Option<Duration>,
    pub(super) rate: Option<Rate>,
    pub(super) mtu: Option<Bytes>,
    pub(super) sides: [Side; 2],
}

impl Side {
    /// Its rule of loss, if packets are lost.
    pub(super) fn loss(&self) -> Option<Choice> {
        let (num, den) = self.loss?;
        match self.periodic {
            // INET drops once a counter is above 1/p.
            Some(true) => {
                let rule = RuleTable { pass: given(den / num), ..RuleTable::default() };
                Some(Choice::Rule(rule.into()))
            }
            _ => Ratio::new(num, den).map(Choice::Share),
        }
    }

    fn knob(&mut self, name: &'static str, value: Setting) {
        self.knobs.push((name, value));
    }
}

/// What a parameter came to.
type Taken = Result<Option<String>, Misread>;

/// Reads parameters and tells which have no meaning here; `value` gives what a line says.
pub(super) fn read(
    file: &str,
    entries: &[&Entry],
    stack: Stack,
    value: impl Fn(&Entry) -> Result<String, Vec<ScenarioError>>,
) -> Result<(Draft, Vec<Unmapped>), Vec<ScenarioError>> {
    let mut draft = Draft::default();
    let mut unmapped = Vec::new();
    let mut errors = Vec::new();
    let mut seen: Vec<(&str, usize, usize)> = Vec::new();
    let mut streams: Vec<(&Entry, usize, String)> = Vec::new();
    for entry in entries {
        let text = value(entry)?;
        let (name, hosts) = parameter(&entry.key);
        let before = |host: &usize| {
            seen.iter().find(|(known, of, _)| *known == name && of == host).map(|&(.., line)| line)
        };
        let left: Vec<usize> =
            hosts.iter().copied().filter(|host| before(host).is_none()).collect();
        let outcome = match (left.as_slice(), hosts.first().and_then(before)) {
            ([], Some(line)) => Ok(Some(format!("line {line} comes before it"))),
            _ => draft.take(name, &left, &text, stack),
        };
        if name.starts_with("initialMaxStreamData") && outcome == Ok(None) {
            streams.extend(left.iter().map(|&host| (*entry, host, text.clone())));
        }
        seen.extend(left.iter().map(|&host| (name, host, entry.line)));
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

fn missing(entry: &Entry, why: String) -> Unmapped {
    Unmapped { line: entry.line, column: entry.key_column, key: entry.key.clone(), why }
}

/// Windows of other kinds of streams, where they differ: there is one stream here.
fn other_streams(streams: &[(&Entry, usize, String)]) -> Vec<Unmapped> {
    let mut lines: Vec<Unmapped> = Vec::new();
    for (place, (entry, host, text)) in streams.iter().enumerate() {
        let first = streams[..place].iter().find(|(_, of, _)| of == host);
        if let Some((first, _, other)) = first
            && other != text
            && lines.iter().all(|one| one.line != entry.line)
        {
            let why = format!("there is one stream here, with the window of line {}", first.line);
            lines.push(missing(entry, why));
        }
    }
    lines
}

/// Name and hosts of the parameter that a key such as `**.client.quic.sendQueueLimit` is about.
fn parameter(key: &str) -> (&str, &'static [usize]) {
    let name = key.rsplit('.').next().unwrap_or(key);
    let hosts: &[usize] = match () {
        () if key.split('.').any(|part| part == "client") => &[CLIENT],
        () if key.split('.').any(|part| part == "server") => &[SERVER],
        () => &[CLIENT, SERVER],
    };
    (name, hosts)
}

impl Draft {
    /// Takes a parameter of these hosts; why it is not mapped, if it is not.
    fn take(&mut self, name: &str, hosts: &[usize], value: &str, stack: Stack) -> Taken {
        match name {
            "network" if value == NETWORK => {}
            "network" => {
                return Ok(Some(format!("only {NETWORK} is known; a single line is taken")));
            }
            "sim-time-limit" => self.duration = Some(units_text::duration(value)?),
            "repeat" => self.repeat = Some(count(value, 1)?),
            // The seed of a repetition is the scenario's and its number.
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

    /// A parameter of INET's module Quic.
    fn take_quic(&mut self, name: &str, hosts: &[usize], text: &str, stack: Stack) -> Taken {
        let (knob, value) = match name {
            ACK_EVERY => (ACK_EVERY, Setting::from(count(text, 1)?)),
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
                    "an application that was refused is called again once an eighth of the queue \
                     is free"
                        .to_owned(),
                ));
            }
            _ => return Ok(Some("not known here".to_owned())),
        };
        match (stack, knob) {
            (Stack::Quic, _) => {
                for &host in hosts {
                    let side = &mut self.sides[host];
                    if side.knobs.iter().all(|(known, _)| *known != knob) {
                        side.knob(knob, value.clone());
                    }
                }
            }
            (Stack::Tcp, ACK_EVERY) if hosts == [CLIENT] => {
                return Ok(Some("the client receives no data".to_owned()));
            }
            (Stack::Tcp, ACK_EVERY) => match count(text, 1)? {
                every @ 1..=2 => {
                    self.sides[SERVER].knob("net.inet.tcp.delayed_ack", (every - 1).into());
                }
                _ => {
                    let why = "a TCP receiver acknowledges every packet or every other";
                    return Ok(Some(why.to_owned()));
                }
            },
            (Stack::Tcp, _) => {
                return Ok(Some("belongs to INET's QUIC, and the sender here is a TCP".to_owned()));
            }
        }
        Ok(None)
    }
}

fn misread(message: &str, expected: &str) -> Misread {
    Misread { message: message.to_owned(), expected: expected.to_owned(), hint: None }
}

fn switch(value: &str) -> Result<bool, Misread> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(misread("is no switch", "true or false")),
    }
}

fn count(value: &str, least: u64) -> Result<u64, Misread> {
    let count = value.parse().ok().filter(|count| (least..=i64::MAX as u64).contains(count));
    count.ok_or_else(|| misread("is no such number", &format!("a whole number from {least} on")))
}

/// Bytes; INET counts them with a unit or without.
fn bytes(value: &str) -> Result<Bytes, Misread> {
    let bytes = match value.parse::<u64>() {
        Ok(bytes) => Bytes(bytes),
        Err(_) => units_text::size(value)?,
    };
    match bytes.get() {
        // RFC 9000 section 16: the largest variable-length integer.
        1..=0x3fff_ffff_ffff_ffff => Ok(bytes),
        _ => Err(misread("is no number of bytes", "1 to 4611686018427387903")),
    }
}

/// A loss rate between 0 and 1 as a fraction; none at 0.
fn loss(value: &str) -> Result<Option<(u64, u64)>, Misread> {
    let expected = "a share such as 0.02";
    let Some((digits, behind)) = decimal(value) else {
        return Err(misread("is no number", expected));
    };
    let den = 10_u64.pow(behind);
    match u64::try_from(digits) {
        Ok(0) => Ok(None),
        Ok(num) if num <= den => Ok(Some((num, den))),
        _ => Err(misread("does not lie between 0 and 1", expected)),
    }
}
