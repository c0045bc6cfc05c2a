//! Converts parameters to a scenario file, and sweeps to its axes.

use net::selection::PacketClass;
use scenario::document::{
    ElementTable, FlowTable, HostTable, LinkTable, PacketRule, PathTable, RawValue, ScenarioFile,
    SweepTable, TransferSize, given, named, tables,
};
use scenario::units_text::BufferSize;
use units::{Duration, Rate, Ratio};

use super::mapping::{CLIENT, InetParameters, SERVER, StackKind, UnmappedLine};

/// Default duration of a run.
const DURATION: Duration = Duration::from_secs(11);
/// Start of the application in INET's example.
const START: Duration = Duration::from_secs(2);
/// Default rate of a link.
const RATE: Rate = Rate::from_bits_per_second(100_000_000_000).unwrap();
/// Loss rate of a direction that loses packets in other combinations.
const NO_LOSS: Ratio = Ratio::new(0, 1).unwrap();
const HOSTS: [&str; 2] = ["client", "server"];

/// A value that can differ between combinations: a key as for `--set`, and its value.
pub(super) type SettingChange = (String, RawValue);

/// The directions that lose packets in any combination, so that the element exists in all.
pub(super) type Lossy = [bool; 2];

/// Keys that vary together: an axis of `[sweep.axes]`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AxisChanges {
    pub(super) keys: Vec<String>,
    /// For each value of the sweep, one value per key.
    pub(super) values: Vec<Vec<RawValue>>,
}

impl InetParameters {
    /// Returns all settings that can differ between combinations, in a fixed order of keys.
    pub(super) fn settings(&self, lossy: Lossy) -> Vec<SettingChange> {
        let mut settings = Vec::new();
        let mut set = |key: String, value: RawValue| settings.push((key, value));
        if let Some(seed) = self.seed {
            set("seed".to_owned(), seed.into());
        }
        set("duration".to_owned(), self.duration().into());
        for (side, host) in self.sides.iter().zip(HOSTS) {
            if let Some(mtu) = self.mtu {
                set(format!("host.{host}.mtu"), mtu.into());
            }
            for (knob, value) in &side.knobs {
                set(format!("host.{host}.knobs.{knob}"), value.clone());
            }
        }
        for (side, direction) in ["forward", "return"].into_iter().enumerate() {
            let first = usize::from(lossy[side]);
            if lossy[side] {
                set(format!("path.0.{direction}.0.loss"), self.loss(side).setting());
            }
            set(format!("path.0.{direction}.{first}.link.rate"), self.rate().into());
            let delay = self.delay.unwrap_or_default();
            set(format!("path.0.{direction}.{}.delay", first + 1), delay.into());
        }
        settings
    }

    pub(super) fn lossy(&self) -> Lossy {
        [CLIENT, SERVER].map(|side| self.sides[side].loss().is_some())
    }

    /// Returns the start of the application: as in INET's example, unless the run ends before.
    fn start(&self) -> Duration {
        if self.duration() > START { START } else { Duration::ZERO }
    }

    fn duration(&self) -> Duration {
        self.duration.unwrap_or(DURATION)
    }

    fn loss(&self, side: usize) -> PacketRule {
        self.sides[side].loss().unwrap_or(PacketRule::Share(NO_LOSS))
    }

    fn rate(&self) -> Rate {
        self.rate.unwrap_or(RATE)
    }

    /// Returns the elements of one direction. TCP handshakes are not lost, since INET's QUIC of
    /// February 2025 has no handshake.
    fn elements(&self, side: usize, lossy: Lossy, stack: StackKind) -> Vec<ElementTable> {
        let loss = lossy[side].then(|| ElementTable {
            loss: given(self.loss(side)),
            only: (stack == StackKind::Tcp).then(|| PacketClass::Data.into()),
            ..ElementTable::default()
        });
        let link = LinkTable {
            rate: given(self.rate()),
            buffer: given(BufferSize::Packets(200)),
            ..LinkTable::default()
        };
        let link = ElementTable { link: given(link), ..ElementTable::default() };
        let delay = given(self.delay.unwrap_or_default());
        let delay = ElementTable { delay, ..ElementTable::default() };
        loss.into_iter().chain([link, delay]).collect()
    }

    fn host(&self, side: usize, profile: &str, stack: StackKind) -> HostTable {
        let profile =
            if stack == StackKind::Tcp && side == SERVER { "freebsd-14.3" } else { profile };
        let cc = if profile.starts_with("linux") { "reno" } else { "newreno" };
        let knobs = &self.sides[side].knobs;
        HostTable {
            profile: given(profile),
            cc: given(cc),
            mtu: self.mtu.and_then(given),
            knobs: (!knobs.is_empty()).then_some(knobs.clone()).and_then(named),
            ..HostTable::default()
        }
    }

    /// Builds the scenario file; `head` is its comment.
    pub(super) fn file(
        &self,
        head: Vec<String>,
        title: &str,
        (profile, stack): (&str, StackKind),
        lossy: Lossy,
        axes: Vec<AxisChanges>,
    ) -> ScenarioFile {
        let path = PathTable {
            from: given(HOSTS[CLIENT]),
            to: given(HOSTS[SERVER]),
            forward: tables(self.elements(CLIENT, lossy, stack)),
            return_: tables(self.elements(SERVER, lossy, stack)),
            ..PathTable::default()
        };
        let flow = FlowTable {
            name: given("stream"),
            from: given(HOSTS[CLIENT]),
            to: given(HOSTS[SERVER]),
            start: given(self.start()),
            bulk: given(TransferSize::Unlimited),
            ..FlowTable::default()
        };
        let is_sweep = self.repeat.is_some() || !axes.is_empty();
        let axes = (!axes.is_empty()).then_some(axes.into_iter().map(AxisChanges::entry));
        let sweep = SweepTable {
            axes: axes.and_then(named),
            repeat: self.repeat.and_then(given),
            ..SweepTable::default()
        };
        let host = |side: usize| (HOSTS[side], self.host(side, profile, stack));
        ScenarioFile {
            comment: head,
            title: given(title),
            seed: self.seed.and_then(given),
            duration: given(self.duration()),
            host: named([CLIENT, SERVER].map(host)),
            path: tables([path]),
            flow: tables([flow]),
            sweep: is_sweep.then_some(sweep).and_then(given),
            ..ScenarioFile::default()
        }
    }
}

impl AxisChanges {
    /// Returns the key and the values of `[sweep.axes]`.
    fn entry(self) -> (String, RawValue) {
        let values = self.values.into_iter().map(|mut values| match values.len() {
            1 => values.remove(0),
            _ => RawValue::from(values),
        });
        (self.keys.join(", "), RawValue::from(values.collect::<Vec<_>>()))
    }
}

/// Returns comment lines that list the unmapped parameters.
pub(super) fn omissions(unmapped: &[UnmappedLine]) -> Vec<String> {
    let mut lines = Vec::new();
    if !unmapped.is_empty() {
        lines.push("Not imported:".to_owned());
    }
    lines.extend(unmapped.iter().map(|one| format!("  line {}: {}", one.line, one.key)));
    lines
}

/// Why a run's goodput is below INET's figure.
const COUNTING: [&str; 2] = [
    "A run's goodput counts the bytes of the stream. INET's throughput counts whole packets, which is more by their",
    "headers and retransmissions; ackclock theory mathis --run quic-inet-2025-02 counts as INET does.",
];

/// Returns comment lines that list assumptions for missing parameters.
pub(super) fn assumptions(draft: &InetParameters) -> Vec<String> {
    let mut lines = Vec::new();
    let mut suppose = |given: bool, what: String| {
        if !given {
            lines.push(format!("Not in the file: {what}"));
        }
    };
    suppose(draft.duration.is_some(), format!("sim-time-limit, {DURATION} is assumed"));
    suppose(draft.delay.is_some(), "linkDelay, 0 is assumed".to_owned());
    suppose(draft.rate.is_some(), "linkDatarate, 100 Gbit/s is assumed".to_owned());
    suppose(draft.mtu.is_some(), "mtu, the profile's is assumed".to_owned());
    let start = draft.start();
    suppose(false, format!("start of the application, {start} is assumed as in INET's example"));
    lines.extend(COUNTING.map(str::to_owned));
    lines
}
