//! A draft as the text of a scenario file, and what a sweep changes in it.

use core::fmt::Write as _;

use units::{Duration, Rate};

use super::mapping::{CLIENT, Draft, SERVER, Stack, Unmapped};

/// How long a run lasts whose file does not say it.
const DURATION: Duration = Duration::from_secs(11);
/// When the application of INET's example begins.
const START: Duration = Duration::from_secs(2);
/// Rate of a line whose file does not say it.
const RATE: u64 = 100_000_000_000;
const HOSTS: [&str; 2] = ["client", "server"];

/// What may change from one combination of values to another: a key as for `--set`, and a value in
/// TOML.
pub(super) type Setting = (String, String);

/// Which sides lose packets in any combination, so that the element is there in all.
pub(super) type Lossy = [bool; 2];

/// Values that go together, key by key: an axis of `[sweep.axes]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Axis {
    pub(super) keys: Vec<String>,
    /// For each value of the sweep one value of each key.
    pub(super) values: Vec<Vec<String>>,
}

impl Draft {
    /// All that a combination of values may change, always the same keys in the same order.
    pub(super) fn settings(&self, lossy: Lossy) -> Vec<Setting> {
        let mut settings = Vec::new();
        let mut set = |key: String, value: String| settings.push((key, value));
        if let Some(seed) = self.seed {
            set("seed".to_owned(), seed.to_string());
        }
        set("duration".to_owned(), self.duration_text());
        for (side, host) in self.sides.iter().zip(HOSTS) {
            if let Some(mtu) = self.mtu {
                set(format!("host.{host}.mtu"), format!("\"{}B\"", mtu.get()));
            }
            for (knob, value) in &side.knobs {
                set(format!("host.{host}.knobs.{knob}"), value.clone());
            }
        }
        for (side, way) in ["forward", "return"].into_iter().enumerate() {
            let first = usize::from(lossy[side]);
            if lossy[side] {
                set(format!("path.0.{way}.0.loss"), self.loss_text(side));
            }
            set(format!("path.0.{way}.{first}.link.rate"), self.rate_text());
            set(format!("path.0.{way}.{}.delay", first + 1), self.delay_text());
        }
        settings
    }

    pub(super) fn lossy(&self) -> Lossy {
        [CLIENT, SERVER].map(|side| self.sides[side].loss().is_some())
    }

    /// When the application begins: as in INET's example, unless the run is over by then.
    fn start(&self) -> Duration {
        if self.duration.unwrap_or(DURATION) > START { START } else { Duration::ZERO }
    }

    fn duration_text(&self) -> String {
        format!("\"{}\"", self.duration.unwrap_or(DURATION))
    }

    fn loss_text(&self, side: usize) -> String {
        self.sides[side].loss().unwrap_or_else(|| "\"0%\"".to_owned())
    }

    fn rate_text(&self) -> String {
        format!("\"{}bit/s\"", self.rate.map_or(RATE, Rate::bits_per_second))
    }

    fn delay_text(&self) -> String {
        format!("\"{}\"", self.delay.unwrap_or_default())
    }

    /// The elements of one way. A TCP's handshake is spared: INET's QUIC of February 2025 has none.
    fn road(&self, side: usize, lossy: Lossy, stack: Stack) -> String {
        let loss = match (lossy[side], stack) {
            (false, _) => String::new(),
            (true, Stack::Quic) => format!("    {{ loss = {} }},\n", self.loss_text(side)),
            (true, Stack::Tcp) => {
                format!("    {{ loss = {}, only = \"data\" }},\n", self.loss_text(side))
            }
        };
        format!(
            "[\n{loss}    {{ link = {{ rate = {}, buffer = \"200p\" }} }},\n    {{ delay = {} }},\n]",
            self.rate_text(),
            self.delay_text(),
        )
    }

    /// The scenario file; `head` are lines of its comment.
    pub(super) fn toml(
        &self,
        head: &[String],
        title: &str,
        (profile, stack): (&str, Stack),
        lossy: Lossy,
        axes: &[Axis],
    ) -> String {
        let mut text = String::new();
        for line in head {
            // A line break in a name would end the comment.
            let line = line.replace(|c: char| c.is_control(), " ");
            let _ = writeln!(text, "# {line}");
        }
        let _ = writeln!(text, "\ntitle = {}", toml_text(title));
        if let Some(seed) = self.seed {
            let _ = writeln!(text, "seed = {seed}");
        }
        let _ = writeln!(text, "duration = {}", self.duration_text());
        for (side, host) in self.sides.iter().zip(HOSTS) {
            let profile =
                if stack == Stack::Tcp && host == "server" { "freebsd-14.3" } else { profile };
            let cc = if profile.starts_with("linux") { "reno" } else { "newreno" };
            let _ =
                write!(text, "\n[host.{host}]\nprofile = {}\ncc = \"{cc}\"\n", toml_text(profile));
            if let Some(mtu) = self.mtu {
                let _ = writeln!(text, "mtu = \"{}B\"", mtu.get());
            }
            if !side.knobs.is_empty() {
                let _ = writeln!(text, "\n[host.{host}.knobs]");
            }
            for (knob, value) in &side.knobs {
                let name = if knob.contains('.') { toml_text(knob) } else { (*knob).to_owned() };
                let _ = writeln!(text, "{name} = {value}");
            }
        }
        let _ = write!(
            text,
            "\n[[path]]\nfrom = \"client\"\nto = \"server\"\nforward = {}\nreturn = {}\n\n\
             [[flow]]\nname = \"stream\"\nfrom = \"client\"\nto = \"server\"\nstart = \"{}\"\n\
             bulk = \"unlimited\"\n",
            self.road(CLIENT, lossy, stack),
            self.road(SERVER, lossy, stack),
            self.start(),
        );
        if self.repeat.is_some() || !axes.is_empty() {
            text += "\n[sweep]\n";
        }
        if let Some(repeat) = self.repeat {
            let _ = writeln!(text, "repeat = {repeat}");
        }
        if !axes.is_empty() {
            text += "\n[sweep.axes]\n";
        }
        for axis in axes {
            let values = axis.values.iter().map(|value| match value.as_slice() {
                [one] => one.clone(),
                several => format!("[{}]", several.join(", ")),
            });
            let values: Vec<String> = values.collect();
            let _ =
                writeln!(text, "{} = [{}]", toml_text(&axis.keys.join(", ")), values.join(", "));
        }
        text
    }
}

/// Lines of the comment that say what is not in the scenario.
pub(super) fn left_out(unmapped: &[Unmapped]) -> Vec<String> {
    let mut lines = Vec::new();
    if !unmapped.is_empty() {
        lines.push("Not in here:".to_owned());
    }
    lines.extend(unmapped.iter().map(|one| format!("  line {}: {}", one.line, one.key)));
    lines
}

/// Lines of the comment that say what the file does not, and what is taken instead.
pub(super) fn supposed(draft: &Draft) -> Vec<String> {
    let mut lines = Vec::new();
    let mut suppose = |told: bool, what: String| {
        if !told {
            lines.push(format!("Not in the file: {what}"));
        }
    };
    suppose(draft.duration.is_some(), format!("sim-time-limit, {DURATION} is taken"));
    suppose(draft.delay.is_some(), "linkDelay, none is taken".to_owned());
    suppose(draft.rate.is_some(), "linkDatarate, 100 Gbit/s is taken".to_owned());
    suppose(draft.mtu.is_some(), "mtu, the profile's is taken".to_owned());
    let start = draft.start();
    suppose(false, format!("when the application begins, {start} is taken as in INET's example"));
    lines
}

/// A text as a basic string of TOML.
pub(super) fn toml_text(text: &str) -> String {
    toml_edit::value(text).to_string().trim().to_owned()
}
