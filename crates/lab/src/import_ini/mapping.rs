//! What the parameters of INET's example `lossy_link` mean in a scenario.

use units::{Bytes, Duration, Rate};

use super::sweep::{Sweeps, Variant, decimal};
use super::text::Entry;
use crate::scenario::{self, Overrides, ScenarioError};
use crate::units_text::{self, Misread};

/// A scenario, and what of the ini file is not in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The scenario as a TOML file.
    pub toml: String,
    /// The values of its sweeps.
    pub variant: Variant,
    /// Lines that are not in it, in the order of the file.
    pub unmapped: Vec<Unmapped>,
}

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
/// How long a run lasts whose file does not say it.
const DURATION: Duration = Duration::from_secs(10);

/// Where a parameter belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Client,
    Server,
    Both,
}

/// What is known of the scenario so far.
#[derive(Debug, Default)]
struct Draft {
    duration: Option<Duration>,
    delay: Option<Duration>,
    rate: Option<Rate>,
    mtu: Option<Bytes>,
    /// Loss rate as a fraction, and whether one packet is lost after 1/p others.
    loss: Option<(u64, u64)>,
    periodic: Option<bool>,
    ack_every: Option<u64>,
}

/// The scenario of a variant.
pub(super) fn import(
    file: &str,
    config: &str,
    entries: &[&Entry],
    sweeps: &Sweeps,
    variant: &Variant,
    profile: &str,
) -> Result<Imported, Vec<ScenarioError>> {
    let mut draft = Draft::default();
    let mut unmapped = Vec::new();
    let mut errors = Vec::new();
    let mut seen: Vec<(&str, Side, usize)> = Vec::new();
    for entry in entries {
        let value = sweeps.value(entry, variant)?;
        let (name, side) = parameter(&entry.key);
        let before =
            seen.iter().find(|(known, of, _)| *known == name && (*of == side || *of == Side::Both));
        let outcome = match before {
            Some((.., line)) => Ok(Some(format!("line {line} comes before it"))),
            None => draft.take(name, side, &value, profile),
        };
        seen.push((name, side, entry.line));
        match outcome {
            Ok(None) => {}
            Ok(Some(why)) => unmapped.push(Unmapped {
                line: entry.line,
                column: entry.key_column,
                key: entry.key.clone(),
                why,
            }),
            Err(misread) => {
                let message = format!("{name}: {value:?} {}", misread.message);
                let mut error = entry.wrong(file, message, &misread.expected);
                error.hint = misread.hint;
                errors.push(error);
            }
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    unmapped.sort_by_key(|unmapped| unmapped.line);
    let toml = draft.toml(file, config, variant, profile, &unmapped);
    // What is written must be a scenario; what is not is the profile's fault.
    scenario::load(&toml, "the scenario", &Overrides::default())?;
    Ok(Imported { toml, variant: variant.clone(), unmapped })
}

/// Name and place of the parameter that a key such as `**.client.quic.sendQueueLimit` is about.
fn parameter(key: &str) -> (&str, Side) {
    let name = key.rsplit('.').next().unwrap_or(key);
    let side = match () {
        () if key.split('.').any(|part| part == "client") => Side::Client,
        () if key.split('.').any(|part| part == "server") => Side::Server,
        () => Side::Both,
    };
    (name, side)
}

impl Draft {
    /// Takes a parameter; why it is not mapped, if it is not.
    fn take(
        &mut self,
        name: &str,
        side: Side,
        value: &str,
        profile: &str,
    ) -> Result<Option<String>, Misread> {
        let quic = || Some(format!("belongs to INET's QUIC; the sender here is {profile}"));
        let not_the_sender = || Some("only what the client sends is lost here".to_owned());
        match name {
            "network" if value == NETWORK => {}
            "network" => {
                return Ok(Some(format!("only {NETWORK} is known; a single line is taken")));
            }
            "sim-time-limit" => self.duration = Some(units_text::duration(value)?),
            "linkDelay" => self.delay = Some(units_text::duration(value)?),
            "linkDatarate" => self.rate = Some(units_text::rate(value)?),
            "mtu" => self.mtu = Some(units_text::size(value)?),
            "periodicSendLossRate" | "sendLossRate" if side == Side::Server => {
                return Ok(not_the_sender());
            }
            "periodicSendLossRate" | "sendLossRate" => {
                self.loss = loss(value)?;
                if name == "periodicSendLossRate" {
                    self.periodic = Some(true);
                }
            }
            "periodicSendLoss" => self.periodic = Some(switch(value)?),
            "numReceivedAckElicitingsBeforeAck" if side == Side::Client => {
                return Ok(Some("the client receives no data".to_owned()));
            }
            "numReceivedAckElicitingsBeforeAck" => match value.parse() {
                Ok(every @ 1..=2) => self.ack_every = Some(every),
                Ok(3..=u64::MAX) => {
                    return Ok(Some(
                        "receivers here acknowledge every packet or every other".to_owned(),
                    ));
                }
                _ => return Err(misread("is no number of packets", "1 or 2")),
            },
            "sendQueueLimit" => {
                return Ok(Some("the application here always has data to send".to_owned()));
            }
            "initialMaxData"
            | "initialMaxStreamDataBidiRemote"
            | "initialMaxStreamDataBidiLocal"
            | "initialMaxStreamDataUni" => {
                return Ok(Some(
                    "the window of a TCP receiver is its buffer, which grows by itself".to_owned(),
                ));
            }
            "sendQueueLowWaterRatio"
            | "accurateIncreaseInNewRenoCongestionAvoidance"
            | "bundleAckForNonAckElicitingPackets" => return Ok(quic()),
            "repeat" | "seed-set" => {
                return Ok(Some("change the seed instead: ackclock run --seed N".to_owned()));
            }
            "extends" | "description" => {}
            _ => return Ok(Some("not known here".to_owned())),
        }
        Ok(None)
    }

    fn toml(
        &self,
        file: &str,
        config: &str,
        variant: &Variant,
        profile: &str,
        unmapped: &[Unmapped],
    ) -> String {
        let values: Vec<String> =
            variant.values.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        let mut head = vec![format!("# {file}, [{config}], run {}", variant.run)];
        if !values.is_empty() {
            head.push(format!("# {}", values.join(", ")));
        }
        if !unmapped.is_empty() {
            head.push("# Not in here:".to_owned());
        }
        head.extend(unmapped.iter().map(|one| format!("#   line {}: {}", one.line, one.key)));
        // A line break in a name would end the comment.
        let head: Vec<String> =
            head.iter().map(|line| line.replace(|c: char| c.is_control(), " ")).collect();
        let delay = self.delay.unwrap_or_default();
        let rate = self.rate.map_or(100_000_000_000, Rate::bits_per_second);
        let mtu = self.mtu.map_or_else(String::new, |mtu| format!("mtu = \"{}B\"\n", mtu.get()));
        let loss = self.loss.map_or_else(String::new, |(num, den)| {
            let rule = if self.periodic == Some(false) {
                // num/den of hundred.
                format!("\"{}%\"", percent(num, den))
            } else {
                // INET drops once a counter is above 1/p.
                format!("{{ pass = {} }}", den / num)
            };
            format!("    {{ loss = {rule}, only = \"data\" }},\n")
        });
        let acks = match self.ack_every {
            Some(1) => "\n[host.server.knobs]\n\"net.inet.tcp.delayed_ack\" = 0\n",
            Some(_) => "\n[host.server.knobs]\n\"net.inet.tcp.delayed_ack\" = 1\n",
            None => "",
        };
        let cc = if profile.starts_with("linux") { "reno" } else { "newreno" };
        let title = toml_text(&format!("{config}, run {}", variant.run));
        let profile = toml_text(profile);
        let duration = self.duration.unwrap_or(DURATION);
        format!(
            r#"{head}

title = {title}
duration = "{duration}"

[host.client]
profile = {profile}
cc = "{cc}"
{mtu}
[host.server]
profile = "freebsd-14.3"
cc = "newreno"
{mtu}{acks}
[[path]]
from = "client"
to = "server"
forward = [
{loss}    {{ link = {{ rate = "{rate}bit/s", buffer = "200p" }} }},
    {{ delay = "{delay}" }},
]
return = [{{ delay = "{delay}" }}]

[[flow]]
name = "stream"
from = "client"
to = "server"
bulk = "unlimited"
"#,
            head = head.join("\n"),
        )
    }
}

/// A text as a basic string of TOML.
fn toml_text(text: &str) -> String {
    toml_edit::value(text).to_string().trim().to_owned()
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

/// A fraction of a power of ten in percent.
fn percent(num: u64, den: u64) -> String {
    let text = format!("{}.{:012}", num * 100 / den, (num * 100 % den) * (1_000_000_000_000 / den));
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
