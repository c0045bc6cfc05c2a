//! `[host.NAME]`: an end host, its stack and its NIC.

use core::num::NonZeroU32;

use cc::{Algorithm, ControllerNameError, registry};
use quic::profile::NAMES as QUIC_NAMES;
use quic::{CongestionControl, real};
use serde_json::{Value as Json, json};
use sim::scenario::{HostSpec, Offload, QuicStack, RealQuicStack, StackSpec, TcpStack};
use tcp::profile::{NAMES, TcpProfile};
use units::{Bytes, Duration};

use super::kernel::{GUEST, KERNEL, KERNEL_MEMORY, SYSCTL, TCP_INFO};
use super::keys::{Key, KeyCodec, KeyType, Located, ScenarioReader};
use super::kinds::{
    BoolType, DurationType, EnumType, IntegerType, SizeType, TableType, self_named, type_mismatch,
};
use super::knobs;
use super::listen::{self, ListenTable};
use super::nearest::did_you_mean;
use super::not_modelled;
use super::offload::{self, GroTable, LroTable, ReceiveOffload, ReceiveOffloadType};
use super::real_stacks::{self, STACK};
use super::setting::{KnobsType, RawValues};
use super::source::{SpannedError, TextSpan};
use super::table::table;
use super::tree::{TomlNode, TomlValue};

static PROFILE: Key<ProfileType> =
    Key::required("profile", ProfileType, "TCP stack (operating system) or QUIC stack of the host");
/// Names of the TCP profiles, followed by the QUIC profiles and the real implementations of QUIC.
pub(super) const ALL_NAMES: [&str; NAMES.len() + QUIC_NAMES.len() + real::NAMES.len()] = {
    let mut all = [""; NAMES.len() + QUIC_NAMES.len() + real::NAMES.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < NAMES.len() {
            NAMES[at]
        } else if at < NAMES.len() + QUIC_NAMES.len() {
            QUIC_NAMES[at - NAMES.len()]
        } else {
            real::NAMES[at - NAMES.len() - QUIC_NAMES.len()]
        };
        at += 1;
    }
    all
};
static CC: Key<CongestionControlType> =
    Key::optional("cc", CongestionControlType, "the profile's default", "congestion control");
static MTU: Key<SizeType> = Key::optional(
    "mtu",
    SizeType { least: Bytes(576), most: Bytes(65_535) },
    "the profile's value, 1500 B",
    "MTU of the interface",
);
static DELAY: Key<DurationType> = Key::optional(
    "delay",
    DurationType { least: Duration::ZERO, default_unit: "us" },
    "0s",
    "processing delay of a burst: from arrival to the stack, and from the stack's wakeup to the \
     application's next write",
);
static CLOCK_PHASE: Key<DurationType> = Key::optional(
    "clock_phase",
    DurationType { least: Duration::ZERO, default_unit: "us" },
    "0s",
    "phase of the kernel clock within its tick at the start of the run",
);
static ISN: Key<IntegerType> = Key::optional(
    "isn",
    IntegerType { least: 0, most: u32::MAX as u64 },
    "random, by `seed`",
    "initial sequence number of the host's connections",
);
static TIMESTAMP: Key<IntegerType> = Key::optional(
    "timestamp",
    IntegerType { least: 0, most: u32::MAX as u64 },
    "random, by `seed`",
    "TCP timestamp clock of the host at the start of the run",
);
static TSO: Key<BoolType> = Key::optional(
    "tso",
    BoolType,
    "false",
    "TCP segmentation offload: the NIC segments large packets of the stack (without it Linux does so ahead of the NIC)",
);
static LRO: Key<ReceiveOffloadType<LroTable>> = Key::optional(
    "lro",
    ReceiveOffloadType::of(&offload::LRO),
    "false",
    "large receive offload of FreeBSD (tcp_lro.c); a table sets its limits",
);
static GRO: Key<ReceiveOffloadType<GroTable>> = Key::optional(
    "gro",
    ReceiveOffloadType::of(&offload::GRO),
    "false",
    "generic receive offload of Linux (tcp_gro_receive); a table sets its limits",
);
static RX_BUDGET: Key<IntegerType> = Key::optional(
    "rx_budget",
    IntegerType { least: 1, most: u32::MAX as u64 },
    "no limit",
    "maximum packets per receive pass of the driver (iflib's rx_budget)",
);
static INTERRUPT_MODERATION: Key<DurationType> = Key::optional(
    "interrupt_moderation",
    DurationType { least: Duration::ZERO, default_unit: "us" },
    "0us",
    "interrupt coalescing: time from the first received packet to the interrupt, which passes all \
     packets through the receive offload (ethtool's rx-usecs); unlike `delay`, it does not delay \
     applications",
);
static KNOBS: Key<KnobsType> = Key::optional(
    "knobs",
    KnobsType,
    "the profile's values",
    "sysctls and build options by their own names, in quotes",
);

static LISTEN: Key<TableType<ListenTable>> = Key::optional(
    "listen",
    TableType::of(&listen::SECTION),
    "each connection is accepted at once",
    "accept queue that the host's listening applications share (Linux)",
);
static COUNT: Key<IntegerType> = Key::optional(
    "count",
    IntegerType { least: 1, most: 10_000 },
    "a single host",
    "number of hosts like this, NAME-0, NAME-1 and so on, each with the paths, flows and taps that \
     name NAME; shared elements are common to all",
);

table! {
    /// An end host.
    pub HostTable: SECTION = "a host" {
        profile: String = PROFILE,
        cc: String = CC,
        mtu: Bytes = MTU,
        delay: Duration = DELAY,
        clock_phase: Duration = CLOCK_PHASE,
        isn: u64 = ISN,
        timestamp: u64 = TIMESTAMP,
        tso: bool = TSO,
        lro: ReceiveOffload<LroTable> = LRO,
        gro: ReceiveOffload<GroTable> = GRO,
        rx_budget: u64 = RX_BUDGET,
        interrupt_moderation: Duration = INTERRUPT_MODERATION,
        knobs: RawValues = KNOBS,
        listen: Box<ListenTable> = LISTEN,
        kernel: String = KERNEL,
        kernel_memory: Bytes = KERNEL_MEMORY,
        sysctl: RawValues = SYSCTL,
        tcp_info: Duration = TCP_INFO,
        guest: String = GUEST,
        stack: String = STACK,
        count: u64 = COUNT,
    }
    elsewhere: elsewhere,
}

fn elsewhere(key: &str) -> Option<&'static str> {
    match key {
        "tap" | "taps" => Some("a capture point is a table of its own: [[tap]] host = ..."),
        "link" | "rate" | "buffer" | "loss" => {
            Some("links and losses between hosts are elements of a [[path]]")
        }
        _ if key.contains('.') || matches!(key, "net" | "kern") => {
            Some("sysctls go into the host's knobs: [host.NAME.knobs]")
        }
        _ => None,
    }
}

/// Builds the host `name`; `None` if it has an error.
pub(super) fn host(name: &str, table: &HostTable, reader: &mut ScenarioReader) -> Option<HostSpec> {
    let before = reader.errors.len();
    let mut stack = table.profile.as_ref().and_then(|named| stack(named, reader));
    if let (Some(cc), Some(stack)) = (&table.cc, &mut stack) {
        set_cc(cc, stack, reader);
    }
    if let (Some(mtu), Some(stack)) = (&table.mtu, &mut stack) {
        set_mtu(stack, mtu.value.get() as u32, mtu.span, reader);
    }
    if let Some(knobs) = &table.knobs {
        match &mut stack {
            Some(StackSpec::Tcp(tcp)) => knobs::apply(&knobs.value, Some(&mut tcp.profile), reader),
            Some(StackSpec::Quic(quic)) => {
                knobs::apply_quic(&knobs.value, &mut quic.profile, reader);
            }
            Some(StackSpec::Real(real)) => {
                let message =
                    format!("{} has no knobs: it runs with its defaults", real.stack.name());
                reader.report(SpannedError::new(knobs.span, message));
            }
            None => knobs::apply(&knobs.value, None, reader),
        }
    }
    if let Some(named) = &table.stack {
        stack = stack.map(|modelled| real_stacks::replaced(named, modelled, table, reader));
    }
    if let (Some(listen), Some(stack)) = (&table.listen, &mut stack) {
        let family = stack.tcp().map(|tcp| tcp.profile.family);
        let is_external = table.kernel.is_some() || table.guest.is_some();
        let queue = listen::accept_queue(listen, family, is_external, reader);
        if let StackSpec::Tcp(tcp) = stack {
            tcp.listen = queue;
        }
    }
    let profile = stack.as_ref().and_then(StackSpec::tcp).map(|tcp| &tcp.profile);
    let offload = offload::receive(table.lro.as_ref(), table.gro.as_ref(), profile, reader);
    let span = |span: &Option<Located<Duration>>| span.as_ref().map_or(Duration::ZERO, |s| s.value);
    let tso = table.tso.as_ref().is_some_and(|tso| tso.value);
    let moderation = span(&table.interrupt_moderation);
    let budget = table.rx_budget.as_ref().and_then(|n| NonZeroU32::new(n.value as u32));
    let clock_phase = span(&table.clock_phase);
    let isn = table.isn.as_ref().map(|number| number.value as u32);
    let timestamp = table.timestamp.as_ref().map(|number| number.value as u32);
    if reader.errors.len() != before {
        return None;
    }
    Some(HostSpec {
        name: name.to_owned(),
        stack: match stack? {
            StackSpec::Tcp(tcp) => StackSpec::Tcp(TcpStack { clock_phase, isn, timestamp, ..tcp }),
            quic @ (StackSpec::Quic(_) | StackSpec::Real(_)) => quic,
        },
        offload: Offload { tso, budget, moderation, ..offload },
        delay: span(&table.delay),
    })
}

/// Returns the stack of a profile, with the profile's congestion control; reports a real implementation that
/// this build lacks.
fn stack(named: &Located<String>, reader: &mut ScenarioReader) -> Option<StackSpec> {
    let name = named.value.as_str();
    if real::NAMES.contains(&name) {
        let found = real_stacks::named(name);
        if found.is_none() {
            let message = format!("this build of Ackclock has no {name}");
            let hint =
                "build it with --features quinn, or take the model \"quinn-0.11\"".to_owned();
            reader.report(SpannedError::new(named.span, message).hint(hint));
        }
        let stack = found?;
        let cc = stack.controllers().first()?;
        return Some(StackSpec::Real(RealQuicStack { stack, cc, mtu: 1_500 }));
    }
    if let Some(profile) = quic::QuicProfile::named(name) {
        return Some(StackSpec::Quic(QuicStack { profile, cc: profile.controller() }));
    }
    let profile = TcpProfile::named(name)?;
    let cc = profile.controller();
    Some(StackSpec::Tcp(TcpStack::new(profile, cc)))
}

/// Sets the congestion control; reports one that the stack does not offer.
fn set_cc(cc: &Located<String>, stack: &mut StackSpec, reader: &mut ScenarioReader) {
    let external = reader.controllers.iter().copied().find(|one| one.name() == cc.value);
    let linux = stack.tcp().is_some_and(|tcp| tcp.profile.family == tcp::profile::Family::Linux);
    if external.is_some_and(|one| one.library().is_some()) && !linux {
        let message = format!("`{}` has the operations of Linux: it needs Linux's stack", cc.value);
        let fault = SpannedError::new(cc.span, message);
        reader.report(fault.hint("profile = \"linux-6.18\" runs it".to_owned()));
        return;
    }
    let offered = match stack {
        StackSpec::Tcp(tcp) => {
            let found = external.map_or_else(
                || tcp.profile.algorithm(&cc.value),
                |one| Ok(Algorithm::Outside(one)),
            );
            found.map(|found| tcp.cc = found)
        }
        StackSpec::Quic(quic) => {
            let named = || CongestionControl::named(&cc.value);
            let found = external.map_or_else(named, |one| Ok(CongestionControl::External(one)));
            found.map(|found| quic.cc = found)
        }
        StackSpec::Real(real) => {
            let offered = real.stack.controllers();
            match offered.iter().find(|offered| **offered == cc.value) {
                Some(found) => real.cc = found,
                None => {
                    let name = real.stack.name();
                    let message = format!("`{}` is not offered by {name} here", cc.value);
                    let fault = SpannedError::new(cc.span, message);
                    reader.report(fault.expected(format!("for {name}: {}", quoted(offered))));
                }
            }
            return;
        }
    };
    // Names of the registry exist on every system.
    if offered == Err(ControllerNameError::RfcOnly) {
        let message = format!("`{}` is BBR of the IETF draft: no kernel has it", cc.value);
        let fault = SpannedError::new(cc.span, message);
        let hint = "profile = \"rfc\" and those of QUIC offer it; Linux has `bbr` and `bbr3`";
        reader.report(fault.hint(hint.to_owned()));
    }
    if offered != Err(ControllerNameError::OtherStack) {
        return;
    }
    let message = format!("`{}` needs the delivery rates of Linux's stack", cc.value);
    let fault = SpannedError::new(cc.span, message);
    reader.report(fault.hint("profile = \"linux-6.18\" offers it".to_owned()));
}

/// Sets the MTU; reports one that is too small for the stack.
fn set_mtu(stack: &mut StackSpec, mtu: u32, place: TextSpan, reader: &mut ScenarioReader) {
    match stack {
        StackSpec::Tcp(tcp) => tcp.profile.mtu = mtu,
        StackSpec::Quic(quic) => quic.profile.mtu = mtu,
        StackSpec::Real(real) => real.mtu = mtu,
    }
    // RFC 9000 section 14: datagrams of 1200 bytes must fit.
    if stack.is_quic() && mtu < 1_228 {
        let message = "QUIC needs an MTU of 1228 B: 1200 B and the UDP and IPv4 headers";
        reader.report(SpannedError::new(place, message));
    }
}

/// The name of a profile.
struct ProfileType;

const PROFILES: EnumType = EnumType { names: &self_named(ALL_NAMES) };

impl KeyType for ProfileType {
    fn schema(&self) -> Json {
        PROFILES.schema()
    }

    fn type_name(&self) -> String {
        PROFILES.type_name()
    }
}

impl KeyCodec for ProfileType {
    type Value = String;

    fn read(&self, key: &str, node: &TomlNode, reader: &mut ScenarioReader) -> Option<String> {
        let advice = |name: &str| not_modelled::profile(name, &ALL_NAMES);
        PROFILES.read_or(key, node, reader, advice).map(str::to_owned)
    }

    fn write(&self, value: &String) -> toml_edit::Value {
        value.as_str().into()
    }
}

/// The name of a congestion controller.
struct CongestionControlType;

impl KeyType for CongestionControlType {
    fn schema(&self) -> Json {
        let library = json!({ "type": "string", "pattern": "\\.(so|dylib)$" });
        json!({ "anyOf": [{ "enum": registry::NAMES }, library] })
    }

    fn type_name(&self) -> String {
        quoted(&registry::NAMES)
    }
}

impl KeyCodec for CongestionControlType {
    type Value = String;

    fn read(&self, key: &str, node: &TomlNode, reader: &mut ScenarioReader) -> Option<String> {
        let outside: Vec<&str> = reader.controllers.iter().map(|outside| outside.name()).collect();
        let names: Vec<&'static str> = registry::NAMES.into_iter().chain(outside).collect();
        let TomlValue::Text(name) = &node.value else {
            return type_mismatch(key, node, &quoted(&names), reader);
        };
        if names.contains(&name.as_str()) {
            return Some(name.clone());
        }
        match reader.files.controller(name) {
            Some(Ok(controller)) => {
                reader.controllers.push(controller);
                return Some(name.clone());
            }
            Some(Err(message)) => {
                reader.report(SpannedError::new(node.span, message));
                return None;
            }
            None => {}
        }
        let advice = not_modelled::congestion_control(name);
        let is_real = not_modelled::is_congestion_control(name);
        let message = match is_real {
            true => format!("`{name}` is not modelled yet"),
            false => format!("unknown congestion control `{name}`"),
        };
        let fault = SpannedError::new(node.span, message).expected(quoted(&names));
        reader.report(match is_real {
            true => fault.hint(advice.map(str::to_owned)),
            false => fault.hint(did_you_mean(name, names)),
        });
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
