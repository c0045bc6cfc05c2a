//! A scenario under construction: the tree of its file, with the parts that faults and cures change.

use toml::{Table, Value};
use units::Duration;

/// Shortest rest after which a sender may forget its window: the shortest retransmission timeout.
const SHORTEST_REST: Duration = Duration::from_millis(200);

/// Host that connects.
pub(crate) const CLIENT: &str = "client";
/// Host that listens.
pub(crate) const SERVER: &str = "server";

/// Where the data flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataDirection {
    /// The client sends.
    Upload,
    /// The server sends.
    Download,
}

impl DataDirection {
    /// Name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Upload => "upload",
            Self::Download => "download",
        }
    }
}

/// The applications of the transfer: the keys of `exchange`.
#[derive(Debug, Clone, Default)]
pub(crate) struct ExchangeDraft {
    pub(crate) opening: Vec<Value>,
    pub(crate) steps: Vec<Value>,
    pub(crate) count: u64,
    /// `reads` of the receiver of the data.
    pub(crate) reads: Option<Value>,
}

impl ExchangeDraft {
    /// Removes the rests that are longer than a retransmission timeout; returns their sum.
    pub(crate) fn take_rests(&mut self) -> Duration {
        let mut sum = Duration::ZERO;
        for step in &mut self.steps {
            let Value::Table(keys) = step else { continue };
            let text = keys.get("after").and_then(Value::as_str);
            let wait = text.and_then(|text| text.strip_suffix("us")?.parse().ok());
            let wait = Duration::from_micros(wait.unwrap_or_default());
            if wait >= SHORTEST_REST {
                keys.remove("after");
                sum += wait * self.count;
            }
        }
        sum
    }

    /// Makes one exchange of all, with the same bytes and waits.
    pub(crate) fn merge(&mut self) {
        let count = core::mem::replace(&mut self.count, 1);
        for step in &mut self.steps {
            let Value::Table(keys) = step else { continue };
            for key in ["client", "server", "after"] {
                let Some(Value::String(text)) = keys.get_mut(key) else { continue };
                let unit = text.trim_start_matches(|c: char| c.is_ascii_digit()).to_owned();
                let number = text.trim_end_matches(|c: char| !c.is_ascii_digit());
                let number: u64 = number.parse().unwrap_or_default();
                *text = format!("{}{unit}", number * count);
            }
        }
    }
}

/// A scenario under construction.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) title: String,
    pub(crate) seed: u64,
    pub(crate) direction: DataDirection,
    pub(crate) is_quic: bool,
    /// Keys of the host that sends the data.
    pub(crate) sender: Table,
    /// Keys of the host that receives the data.
    pub(crate) receiver: Table,
    /// Elements from the sender to the receiver, the first at the sender.
    pub(crate) data_path: Vec<Value>,
    /// Elements from the receiver to the sender, the first at the receiver.
    pub(crate) ack_path: Vec<Value>,
    pub(crate) exchange: ExchangeDraft,
    pub(crate) nodelay: bool,
    /// Elements that several routes include.
    pub(crate) shared: Table,
    /// Further hosts, paths and flows: traffic beside the transfer.
    pub(crate) others: Vec<(&'static str, Value)>,
    pub(crate) other_hosts: Table,
}

impl Draft {
    /// Sets a knob of the sender or the receiver.
    pub(crate) fn set_knob(host: &mut Table, name: &str, value: Value) {
        let knobs = host.entry("knobs").or_insert_with(|| Table::new().into());
        if let Value::Table(knobs) = knobs {
            knobs.insert(name.to_owned(), value);
        }
    }

    /// Is this host Linux?
    pub(crate) fn is_linux(host: &Table) -> bool {
        host.get("profile").and_then(Value::as_str).is_some_and(|name| name.starts_with("linux-"))
    }

    /// Elements from the client to the server.
    pub(crate) fn upstream(&mut self) -> &mut Vec<Value> {
        match self.direction {
            DataDirection::Upload => &mut self.data_path,
            DataDirection::Download => &mut self.ack_path,
        }
    }

    /// Elements from the server to the client.
    pub(crate) fn downstream(&mut self) -> &mut Vec<Value> {
        match self.direction {
            DataDirection::Upload => &mut self.ack_path,
            DataDirection::Download => &mut self.data_path,
        }
    }

    /// The link of the data path: its bottleneck.
    pub(crate) fn link(&mut self) -> Option<&mut Table> {
        let links = self.data_path.iter_mut().filter_map(|element| element.get_mut("link"));
        links.filter_map(Value::as_table_mut).next()
    }

    /// The text of the scenario file; captured at the sender and the receiver.
    pub(crate) fn text(&self) -> String {
        let (client, server) = match self.direction {
            DataDirection::Upload => (&self.sender, &self.receiver),
            DataDirection::Download => (&self.receiver, &self.sender),
        };
        let (forward, back) = match self.direction {
            DataDirection::Upload => (&self.data_path, &self.ack_path),
            DataDirection::Download => (&self.ack_path, &self.data_path),
        };
        let mut hosts = self.other_hosts.clone();
        hosts.insert(CLIENT.into(), client.clone().into());
        hosts.insert(SERVER.into(), server.clone().into());
        let path = table([
            ("from", CLIENT.into()),
            ("to", SERVER.into()),
            ("forward", forward.clone().into()),
            ("return", back.clone().into()),
        ]);
        let ExchangeDraft { opening, steps, count, reads } = &self.exchange;
        let mut exchange = Table::new();
        if !opening.is_empty() {
            exchange.insert("opening".into(), opening.clone().into());
        }
        exchange.insert("steps".into(), steps.clone().into());
        exchange.insert("count".into(), Value::Integer(*count as i64));
        if let Some(reads) = reads {
            let key = match self.direction {
                DataDirection::Upload => "server_reads",
                DataDirection::Download => "client_reads",
            };
            exchange.insert(key.into(), reads.clone());
        }
        let mut flow = Table::new();
        flow.insert("name".into(), "transfer".into());
        flow.insert("from".into(), CLIENT.into());
        flow.insert("to".into(), SERVER.into());
        flow.insert("exchange".into(), exchange.into());
        if self.nodelay && !self.is_quic {
            flow.insert("nodelay".into(), true.into());
        }
        let others = |kind: &str| {
            let of_kind = self.others.iter().filter(|(of, _)| *of == kind);
            of_kind.map(|(_, value)| value.clone()).collect::<Vec<_>>()
        };
        // The packets of the wires are for a capture between the hosts.
        let taps = [(CLIENT, "stack"), (SERVER, "stack"), (CLIENT, "wire"), (SERVER, "wire")]
            .map(|(host, at)| table([("host", host.into()), ("at", at.into())]));
        let mut root = Table::new();
        root.insert("title".into(), self.title.clone().into());
        // Seeds of scenarios are signed in TOML.
        root.insert("seed".into(), Value::Integer((self.seed >> 1) as i64));
        root.insert("duration".into(), LONGEST.into());
        root.insert("host".into(), hosts.into());
        if !self.shared.is_empty() {
            root.insert("shared".into(), self.shared.clone().into());
        }
        root.insert("path".into(), [vec![path], others("path")].concat().into());
        root.insert("flow".into(), [vec![flow.into()], others("flow")].concat().into());
        if !self.is_quic {
            root.insert("tap".into(), taps.to_vec().into());
        }
        root.to_string()
    }
}

/// Virtual time after which a transfer counts as failed.
pub(crate) const LONGEST: &str = "90s";

/// A table of these entries.
pub(crate) fn table<const N: usize>(entries: [(&str, Value); N]) -> Value {
    let entries = entries.into_iter().map(|(key, value)| (key.to_owned(), value));
    Value::Table(entries.collect())
}

/// A duration in microseconds, as text.
pub(crate) fn micros(us: u64) -> Value {
    format!("{us}us").into()
}

/// A size in bytes, as text.
pub(crate) fn bytes(bytes: u64) -> Value {
    format!("{bytes}B").into()
}

/// A rate in kbit/s, as text.
pub(crate) fn kbits(kbits: u64) -> Value {
    format!("{kbits}kbit/s").into()
}

/// Hundredths of a percent, as text.
pub(crate) fn hundredths(n: u64) -> Value {
    format!("{}.{:02}%", n / 100, n % 100).into()
}
