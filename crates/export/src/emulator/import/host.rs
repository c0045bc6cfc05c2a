//! Commands beside `tc`: those that do not change a path, the MTU of `ip link` and `ip route`, and the
//! settings of a host that a scenario has: `ip route ... initcwnd` and `sysctl`.

use super::quantity::count;
use super::tokens::{Given, ImportError, ScriptToken, TokenReader, set_once};

/// Offloads of a host, which a scenario has not by default.
const OFFLOADS: &[&str] = &["tso", "gso", "gro", "lro", "ufo", "sg", "tx", "rx"];
/// Queue length of a device, in packets.
const QUEUE_LENGTH: u64 = 1_000;
/// Types of devices that forward packets at once.
const DEVICE_TYPES: &[&str] = &["veth", "ifb", "bridge", "dummy"];
/// Words of `ip link` that stand alone, and those with a value, which do not change a path.
const LINK_FLAGS: &[&str] = &["up", "down", "nomaster", "permanent"];
const LINK_VALUES: &[&str] = &[
    "netns",
    "address",
    "addr",
    "broadcast",
    "brd",
    "master",
    "link",
    "alias",
    "group",
    "promisc",
    "arp",
    "multicast",
    "allmulticast",
    "numtxqueues",
    "numrxqueues",
    "index",
    "stp_state",
    "forward_delay",
    "ageing_time",
];
/// Words of `ifconfig` that stand alone, and those with a value.
const IFCONFIG_FLAGS: &[&str] = &[
    "up",
    "down",
    "promisc",
    "-promisc",
    "arp",
    "-arp",
    "multicast",
    "inet",
    "inet6",
    "alias",
    "hw",
];
const IFCONFIG_VALUES: &[&str] = &["netmask", "broadcast", "ether", "add", "del", "pointopoint"];
/// Options of `ip route` that name a route and have one value.
const ROUTE_NAMES: &[&str] =
    &["via", "dev", "src", "metric", "proto", "protocol", "scope", "table", "preference"];
/// Options of `ip route` that change the senders.
const ROUTE_SENDERS: &[&str] = &[
    "initrwnd",
    "window",
    "rto_min",
    "cwnd",
    "ssthresh",
    "rtt",
    "rttvar",
    "congctl",
    "advmss",
    "features",
    "hoplimit",
    "reordering",
];

/// Kinds of values of the knobs that are sysctls of Linux, too.
#[derive(Debug, Clone, Copy)]
enum KnobValue {
    Switch,
    Integer,
    Size,
    ThreeSizes,
}

/// Sysctls that are knobs of a host.
const KNOBS: &[(&str, KnobValue)] = &[
    ("net.ipv4.tcp_rmem", KnobValue::ThreeSizes),
    ("net.ipv4.tcp_wmem", KnobValue::ThreeSizes),
    ("net.core.rmem_max", KnobValue::Size),
    ("net.ipv4.tcp_notsent_lowat", KnobValue::Integer),
    ("net.ipv4.tcp_moderate_rcvbuf", KnobValue::Switch),
    ("net.ipv4.tcp_min_tso_segs", KnobValue::Integer),
    ("net.ipv4.tcp_timestamps", KnobValue::Switch),
    ("net.ipv4.tcp_window_scaling", KnobValue::Switch),
    ("net.ipv4.tcp_ecn", KnobValue::Integer),
    ("net.ipv4.tcp_sack", KnobValue::Switch),
    ("net.ipv4.tcp_early_retrans", KnobValue::Integer),
    ("net.ipv4.tcp_slow_start_after_idle", KnobValue::Switch),
    ("net.ipv4.tcp_retries2", KnobValue::Integer),
    ("net.ipv4.tcp_syn_retries", KnobValue::Integer),
    ("net.ipv4.tcp_synack_retries", KnobValue::Integer),
];

/// A setting of the hosts in a network namespace.
#[derive(Debug)]
pub(super) struct HostSetting<'t> {
    /// Empty for the machine itself.
    pub(super) namespace: &'t str,
    /// A setting of a route is that of the host that sends there; a sysctl without a namespace is that
    /// of both hosts.
    pub(super) is_of_route: bool,
    pub(super) key: HostKey,
    /// As TOML.
    pub(super) value: String,
    pub(super) token: ScriptToken<'t>,
}

/// Where a setting is in a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostKey {
    CongestionControl,
    /// A key of `[host.NAME.knobs]`.
    Knob(&'static str),
}

/// What a script says about the hosts.
#[derive(Debug, Default)]
pub(super) struct HostCommands<'t> {
    /// MTU of the devices.
    pub(super) mtu: Option<Given<'t, u64>>,
    pub(super) settings: Vec<HostSetting<'t>>,
}

impl KnobValue {
    /// Writes a value of a sysctl as TOML; `None` if a knob cannot have it.
    fn toml(self, value: &str) -> Option<String> {
        let size = |word: &str| word.parse::<u64>().ok().map(|bytes| format!("\"{bytes}B\""));
        match self {
            Self::Switch => match value {
                "0" => Some("false".to_owned()),
                "1" | "2" => Some("true".to_owned()),
                _ => None,
            },
            Self::Integer => value.parse::<u64>().ok().map(|number| number.to_string()),
            Self::Size => size(value),
            Self::ThreeSizes => {
                let sizes: Option<Vec<String>> = value.split_whitespace().map(size).collect();
                sizes
                    .filter(|sizes| sizes.len() == 3)
                    .map(|sizes| format!("[{}]", sizes.join(", ")))
            }
        }
    }
}

impl<'t> HostCommands<'t> {
    /// Reads a command of a program other than tc and ipfw; returns false for an unknown program.
    pub(super) fn command(
        &mut self,
        namespace: &'t str,
        program: ScriptToken<'t>,
        reader: &mut TokenReader<'t>,
    ) -> Result<bool, ImportError> {
        match program.text {
            "ip" => self.ip(namespace, reader)?,
            "ifconfig" => self.ifconfig(reader)?,
            "ethtool" => self.ethtool(reader)?,
            "sysctl" => {
                while reader.next_if(|word| matches!(word, "-q" | "-w")).is_some() {}
                let first = reader.value("a setting")?;
                self.sysctl(namespace, first)?;
                while let Some(setting) = reader.next() {
                    self.sysctl(namespace, setting)?;
                }
            }
            // In a network namespace: it sends traffic, or waits.
            "ping" | "iperf" | "iperf3" | "sleep" => while reader.next().is_some() {},
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Reads `NAME=VALUE`.
    fn sysctl(&mut self, namespace: &'t str, setting: ScriptToken<'t>) -> Result<(), ImportError> {
        let (name, value) = setting.text.split_once('=').unwrap_or((setting.text, ""));
        let (name, value) = (name.trim(), value.trim());
        if name.ends_with("ip_forward") || name.ends_with("forwarding") {
            return Ok(());
        }
        let known = KNOBS.iter().find(|(knob, _)| *knob == name);
        let (key, written) = match known {
            None if name == "net.ipv4.tcp_congestion_control" && !value.is_empty() => {
                (HostKey::CongestionControl, Some(format!("{value:?}")))
            }
            None => {
                let message = format!("sysctl: `{name}` is not a setting of a scenario");
                let hint = "`ackclock scenario keys` lists the knobs of hosts";
                return Err(setting.error(message).hint(hint));
            }
            Some((knob, kind)) => (HostKey::Knob(knob), kind.toml(value)),
        };
        let value = written.ok_or_else(|| {
            setting.error(format!("sysctl: `{name}` cannot have the value `{value}`"))
        })?;
        let is_of_route = false;
        self.settings.push(HostSetting { namespace, is_of_route, key, value, token: setting });
        Ok(())
    }

    fn ip(&mut self, namespace: &'t str, reader: &mut TokenReader<'t>) -> Result<(), ImportError> {
        let mut namespace = namespace;
        while let Some(option) =
            reader.next_if(|word| matches!(word, "-4" | "-6" | "-force" | "-n" | "-netns"))
        {
            if matches!(option.text, "-n" | "-netns") {
                namespace = reader.value("a namespace")?.text;
            }
        }
        let object = reader.value("`link`, `route`, `addr` or `netns`")?;
        match object.text {
            "link" | "l" => self.link(reader),
            "route" | "r" | "ro" => self.route(namespace, reader),
            // Addresses and neighbours do not change a path.
            "addr" | "address" | "a" | "neigh" | "neighbour" | "netns" => {
                while reader.next().is_some() {}
                Ok(())
            }
            other => Err(object.error(format!("ip: `{other}` is not supported"))),
        }
    }

    fn link(&mut self, reader: &mut TokenReader<'t>) -> Result<(), ImportError> {
        let verb = reader.value("`add` or `set`")?;
        if !matches!(verb.text, "add" | "a" | "set" | "s" | "del" | "delete") {
            return Err(verb.error(format!("ip link: `{}` is not supported", verb.text)));
        }
        // The name of the device, and that of its peer.
        let mut is_named = false;
        while let Some(word) = reader.next() {
            match word.text {
                "mtu" => self.mtu(word, reader)?,
                "dev" | "name" => {
                    reader.value("a name")?;
                    is_named = true;
                }
                "peer" => is_named = false,
                flag if LINK_FLAGS.contains(&flag) => {}
                name if LINK_VALUES.contains(&name) => {
                    reader.value("a value")?;
                }
                "type" => {
                    let kind = reader.value("a type")?;
                    if !DEVICE_TYPES.contains(&kind.text) {
                        let message = format!("ip link: type `{}` is not supported", kind.text);
                        return Err(kind.error(message));
                    }
                }
                "txqueuelen" | "qlen" => {
                    let length = reader.value("packets")?;
                    if count(length, "packets")? != QUEUE_LENGTH {
                        let message = format!("ip link: `{}` is not supported", word.text);
                        let hint = "write the limit of the qdisc: pfifo limit 1000";
                        return Err(word.error(message).hint(hint));
                    }
                }
                "gso_max_size" | "gro_max_size" | "gso_max_segs" | "xdp" => {
                    return Err(word.error(format!("ip link: `{}` is not supported", word.text)));
                }
                _ if !is_named => is_named = true,
                other => return Err(word.error(format!("ip link: unexpected word `{other}`"))),
            }
        }
        Ok(())
    }

    fn route(
        &mut self,
        namespace: &'t str,
        reader: &mut TokenReader<'t>,
    ) -> Result<(), ImportError> {
        let verb = reader.value("`add` or `change`")?;
        if !matches!(verb.text, "add" | "a" | "change" | "chg" | "replace" | "del" | "delete") {
            return Err(verb.error(format!("ip route: `{}` is not supported", verb.text)));
        }
        reader.value("a destination")?;
        while let Some(word) = reader.next() {
            match word.text {
                "mtu" => {
                    reader.next_is("lock");
                    self.mtu(word, reader)?;
                }
                "initcwnd" | "quickack" => {
                    let value = count(reader.value("a number")?, "a number")?;
                    let (knob, value) = match word.text {
                        "initcwnd" => ("ip-route.initcwnd", value.to_string()),
                        _ => ("ip-route.quickack", (value > 0).to_string()),
                    };
                    let key = HostKey::Knob(knob);
                    let is_of_route = true;
                    let setting = HostSetting { namespace, is_of_route, key, value, token: word };
                    self.settings.push(setting);
                }
                "onlink" => {}
                name if ROUTE_NAMES.contains(&name) => {
                    reader.value("a name")?;
                }
                name if ROUTE_SENDERS.contains(&name) => {
                    let message = format!("ip route: `{name}` is not a setting of a scenario");
                    return Err(word
                        .error(message)
                        .hint("`ackclock scenario keys` lists those of hosts"));
                }
                other => return Err(word.error(format!("ip route: unexpected word `{other}`"))),
            }
        }
        Ok(())
    }

    /// Reads `ethtool -K DEVICE tso off ...`.
    fn ethtool(&self, reader: &mut TokenReader<'t>) -> Result<(), ImportError> {
        reader.expect("-K")?;
        reader.value("a device")?;
        while let Some(name) = reader.next() {
            let value = reader.value("on or off")?;
            if !OFFLOADS.contains(&name.text) || value.text != "off" {
                let message = format!("ethtool: `{} {}` is not supported", name.text, value.text);
                let hint = "offloads are keys of a host: [host.NAME] tso = true, gro = true";
                return Err(name.error(message).hint(hint));
            }
        }
        Ok(())
    }

    fn ifconfig(&mut self, reader: &mut TokenReader<'t>) -> Result<(), ImportError> {
        reader.value("a device")?;
        while let Some(word) = reader.next() {
            match word.text {
                "mtu" => self.mtu(word, reader)?,
                "txqueuelen" => {
                    let length = reader.value("packets")?;
                    if count(length, "packets")? != QUEUE_LENGTH {
                        let error = word.error("ifconfig: `txqueuelen` is not supported");
                        return Err(error.hint("write the limit of the qdisc: pfifo limit 1000"));
                    }
                }
                flag if IFCONFIG_FLAGS.contains(&flag) => {}
                name if IFCONFIG_VALUES.contains(&name) => {
                    reader.value("a value")?;
                }
                address if address.contains(['.', ':']) => {}
                other => return Err(word.error(format!("ifconfig: unexpected word `{other}`"))),
            }
        }
        Ok(())
    }

    fn mtu(
        &mut self,
        word: ScriptToken<'t>,
        reader: &mut TokenReader<'t>,
    ) -> Result<(), ImportError> {
        let mtu = count(reader.value("bytes")?, "bytes")?;
        match &self.mtu {
            // Both ends of a pair have the same.
            Some(first) if first.value == mtu => Ok(()),
            Some(first) => {
                let line = first.token.position.line;
                let message = format!("MTU {mtu} differs from {} in line {line}", first.value);
                Err(word.error(message).hint("a scenario has an MTU per host: set it there"))
            }
            None => set_once(&mut self.mtu, word, mtu),
        }
    }
}
