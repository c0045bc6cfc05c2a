//! `[host.NAME]`: a machine, its system, its network card.

use core::num::NonZeroU32;

use cc::{Algorithm, NoController, registry};
use quic::CongestionControl;
use serde_json::{Value as Json, json};
use sim::scenario::{Host, Offload, QuicStack, Stack, TcpStack};
use tcp::profile::{NAMES, Profile};
use units::{Bytes, Duration};

use super::keys::{Key, Kind, Located, Reader, Shape};
use super::kinds::{OneOf, Size, Span, Switch, Whole, themselves, wrong_kind};
use super::knobs;
use super::nearest::did_you_mean;
use super::offload::{self, AnyMerging, GroTable, LroTable, Merging};
use super::setting::{Knobs, Settings};
use super::source::{Fault, Place};
use super::table::table;
use super::tree::{Node, Value};

static PROFILE: Key<ProfileName> = Key::required(
    "profile",
    ProfileName,
    "the system whose TCP the host runs, or the QUIC it runs",
);
/// Profiles of TCP, then those of QUIC.
const ALL_NAMES: [&str; NAMES.len() + quic::profile::NAMES.len()] = {
    let mut all = [""; NAMES.len() + quic::profile::NAMES.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < NAMES.len() { NAMES[at] } else { quic::profile::NAMES[at - NAMES.len()] };
        at += 1;
    }
    all
};
static CC: Key<Controller> =
    Key::optional("cc", Controller, "the profile's own", "congestion control");
static MTU: Key<Size> = Key::optional(
    "mtu",
    Size { least: Bytes(576), most: Bytes(65_535) },
    "the profile's own, 1500 B",
    "largest IP packet of the interface",
);
static DELAY: Key<Span> = Key::optional(
    "delay",
    Span { least: Duration::ZERO, usual: "us" },
    "0s",
    "host time for a burst: from its arrival to the stack, and from the stack's wake-up call to \
     the application's next write",
);
static CLOCK_PHASE: Key<Span> = Key::optional(
    "clock_phase",
    Span { least: Duration::ZERO, usual: "us" },
    "0s",
    "how far into its tick the kernel clock stands when the run begins",
);
static ISN: Key<Whole> = Key::optional(
    "isn",
    Whole { least: 0, most: u32::MAX as u64 },
    "drawn from the seed",
    "initial sequence number of the host's connections",
);
static TIMESTAMP: Key<Whole> = Key::optional(
    "timestamp",
    Whole { least: 0, most: u32::MAX as u64 },
    "drawn from the seed",
    "value of the host's TCP timestamp clock when the run begins",
);
static TSO: Key<Switch> = Key::optional(
    "tso",
    Switch,
    "false",
    "segmentation offload: bursts leave the stack whole and the card splits them",
);
static LRO: Key<AnyMerging<LroTable>> = Key::optional(
    "lro",
    AnyMerging::of(&offload::LRO),
    "false",
    "FreeBSD's receive offload (tcp_lro.c); a table changes its limits",
);
static GRO: Key<AnyMerging<GroTable>> = Key::optional(
    "gro",
    AnyMerging::of(&offload::GRO),
    "false",
    "Linux's receive offload (tcp_gro_receive); a table changes its rules",
);
static RX_BUDGET: Key<Whole> = Key::optional(
    "rx_budget",
    Whole { least: 1, most: u32::MAX as u64 },
    "no limit",
    "packets that one pass of the driver takes through the receive offload (iflib's rx_budget)",
);
static INTERRUPT_MODERATION: Key<Span> = Key::optional(
    "interrupt_moderation",
    Span { least: Duration::ZERO, usual: "us" },
    "0us",
    "received packets wait for the interrupt this long after the first of them, then all go through \
     the receive offload in one pass (ethtool's rx-usecs); unlike `delay` it does not delay applications",
);
static KNOBS: Key<Knobs> = Key::optional(
    "knobs",
    Knobs,
    "the profile's own values",
    "sysctls and build options under their own names, in quotes",
);

table! {
    /// A machine.
    pub HostTable: SECTION = "a host" {
        profile: String = PROFILE,
        cc: String = CC,
        mtu: Bytes = MTU,
        delay: Duration = DELAY,
        clock_phase: Duration = CLOCK_PHASE,
        isn: u64 = ISN,
        timestamp: u64 = TIMESTAMP,
        tso: bool = TSO,
        lro: Merging<LroTable> = LRO,
        gro: Merging<GroTable> = GRO,
        rx_budget: u64 = RX_BUDGET,
        interrupt_moderation: Duration = INTERRUPT_MODERATION,
        knobs: Settings = KNOBS,
    }
    elsewhere: elsewhere,
}

fn elsewhere(key: &str) -> Option<&'static str> {
    match key {
        "tap" | "taps" => Some("a capture point is a table of its own: [[tap]] host = ..."),
        "link" | "rate" | "buffer" | "loss" => {
            Some("what lies between hosts belongs to the elements of a [[path]]")
        }
        _ if key.contains('.') || matches!(key, "net" | "kern") => {
            Some("sysctls go into the host's knobs: [host.NAME.knobs]")
        }
        _ => None,
    }
}

/// The host called `name`; `None` if anything about it was reported.
pub(super) fn host(name: &str, table: &HostTable, reader: &mut Reader) -> Option<Host> {
    let before = reader.faults.len();
    let mut stack = table.profile.as_ref().and_then(|named| stack(&named.value));
    if let (Some(cc), Some(stack)) = (&table.cc, &mut stack) {
        set_cc(cc, stack, reader);
    }
    if let (Some(mtu), Some(stack)) = (&table.mtu, &mut stack) {
        set_mtu(stack, mtu.value.get() as u32, mtu.place, reader);
    }
    if let Some(knobs) = &table.knobs {
        match &mut stack {
            Some(Stack::Tcp(tcp)) => knobs::apply(&knobs.value, Some(&mut tcp.profile), reader),
            Some(Stack::Quic(quic)) => knobs::apply_quic(&knobs.value, &mut quic.profile, reader),
            None => knobs::apply(&knobs.value, None, reader),
        }
    }
    let profile = stack.as_ref().and_then(Stack::tcp).map(|tcp| &tcp.profile);
    let offload = offload::receive(table.lro.as_ref(), table.gro.as_ref(), profile, reader);
    let span = |span: &Option<Located<Duration>>| span.as_ref().map_or(Duration::ZERO, |s| s.value);
    let tso = table.tso.as_ref().is_some_and(|tso| tso.value);
    let moderation = span(&table.interrupt_moderation);
    let budget = table.rx_budget.as_ref().and_then(|n| NonZeroU32::new(n.value as u32));
    let clock_phase = span(&table.clock_phase);
    let isn = table.isn.as_ref().map(|number| number.value as u32);
    let timestamp = table.timestamp.as_ref().map(|number| number.value as u32);
    if reader.faults.len() != before {
        return None;
    }
    Some(Host {
        name: name.to_owned(),
        stack: match stack? {
            Stack::Tcp(tcp) => Stack::Tcp(TcpStack { clock_phase, isn, timestamp, ..tcp }),
            quic @ Stack::Quic(_) => quic,
        },
        offload: Offload { tso, budget, moderation, ..offload },
        delay: span(&table.delay),
    })
}

/// The stack whose profile has that name, with its own congestion control.
fn stack(name: &str) -> Option<Stack> {
    if let Some(profile) = quic::Profile::named(name) {
        return Some(Stack::Quic(QuicStack { profile, cc: profile.controller() }));
    }
    let profile = Profile::named(name)?;
    let cc = profile.controller();
    Some(Stack::Tcp(TcpStack::new(profile, cc)))
}

/// Sets the congestion control, and reports one that the stack does not offer.
fn set_cc(cc: &Located<String>, stack: &mut Stack, reader: &mut Reader) {
    let external = reader.controllers.iter().copied().find(|one| one.name() == cc.value);
    let offered = match stack {
        Stack::Tcp(tcp) => {
            let found = external.map_or_else(
                || tcp.profile.algorithm(&cc.value),
                |one| Ok(Algorithm::Outside(one)),
            );
            found.map(|found| tcp.cc = found)
        }
        Stack::Quic(quic) => {
            let named = || CongestionControl::named(&cc.value);
            let found = external.map_or_else(named, |one| Ok(CongestionControl::External(one)));
            found.map(|found| quic.cc = found)
        }
    };
    // A name of the registry is one on every system.
    if offered != Err(NoController::OtherStack) {
        return;
    }
    let message = format!("`{}` needs the delivery rates of Linux's stack", cc.value);
    let fault = Fault::new(cc.place, message);
    reader.report(match stack {
        Stack::Tcp(_) => fault.hint("profile = \"linux-6.18\" has it".to_owned()),
        Stack::Quic(quic) => {
            let offered: Vec<&str> = CongestionControl::names().collect();
            fault.expected(format!("for {}: {}", quic.profile.name, quoted(&offered)))
        }
    });
}

/// Sets the MTU, and reports one that is too small for the stack.
fn set_mtu(stack: &mut Stack, mtu: u32, place: Place, reader: &mut Reader) {
    match stack {
        Stack::Tcp(tcp) => tcp.profile.mtu = mtu,
        Stack::Quic(quic) => {
            quic.profile.mtu = mtu;
            // RFC 9000 section 14: datagrams of 1200 bytes must fit.
            if mtu < 1_228 {
                let message = "QUIC needs packets of 1228 B: 1200 and the headers of UDP and IPv4";
                reader.report(Fault::new(place, message));
            }
        }
    }
}

/// A profile by its name.
struct ProfileName;

const PROFILES: OneOf = OneOf { names: &themselves(ALL_NAMES) };

impl Shape for ProfileName {
    fn schema(&self) -> Json {
        PROFILES.schema()
    }

    fn takes(&self) -> String {
        PROFILES.takes()
    }
}

impl Kind for ProfileName {
    type Value = String;

    fn read(&self, key: &str, node: &Node, reader: &mut Reader) -> Option<String> {
        PROFILES.read(key, node, reader).map(str::to_owned)
    }

    fn write(&self, value: &String) -> toml_edit::Value {
        value.as_str().into()
    }
}

/// A congestion controller by its name.
struct Controller;

impl Shape for Controller {
    fn schema(&self) -> Json {
        json!({ "enum": registry::NAMES })
    }

    fn takes(&self) -> String {
        quoted(&registry::NAMES)
    }
}

impl Kind for Controller {
    type Value = String;

    fn read(&self, key: &str, node: &Node, reader: &mut Reader) -> Option<String> {
        let outside: Vec<&str> = reader.controllers.iter().map(|outside| outside.name()).collect();
        let names: Vec<&'static str> = registry::NAMES.into_iter().chain(outside).collect();
        let Value::Text(name) = &node.value else {
            return wrong_kind(key, node, &quoted(&names), reader);
        };
        if names.contains(&name.as_str()) {
            return Some(name.clone());
        }
        let message = match registry::NOT_MODELLED.contains(&name.as_str()) {
            true => format!("`{name}` is not modelled yet"),
            false => format!("{} is no congestion control", node.describe()),
        };
        let fault = Fault::new(node.place, message).expected(quoted(&names));
        reader.report(fault.hint(did_you_mean(name, names)));
        None
    }

    fn write(&self, value: &String) -> toml_edit::Value {
        value.as_str().into()
    }
}

fn quoted(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    quoted.join(" or ")
}
