//! Commands beside `tc`: those that do not change a path, and the MTU of `ip link` and `ip route`.

use super::quantity::count;
use super::tokens::{Given, ImportError, ScriptToken, TokenReader, set_once};

/// Offloads of a host, which a scenario has not by default.
const OFFLOADS: &[&str] = &["tso", "gso", "gro", "lro", "ufo", "sg", "tx", "rx"];
/// Queue length of a device, in packets.
const QUEUE_LENGTH: u64 = 1_000;
/// Types of devices that forward packets at once.
const DEVICE_TYPES: &[&str] = &["veth", "ifb", "bridge", "dummy"];
/// Options of `ip route` that name a route and have one value.
const ROUTE_NAMES: &[&str] =
    &["via", "dev", "src", "metric", "proto", "protocol", "scope", "table", "preference"];
/// Options of `ip route` that change the senders.
const ROUTE_SENDERS: &[&str] = &[
    "initcwnd",
    "initrwnd",
    "window",
    "rto_min",
    "cwnd",
    "ssthresh",
    "rtt",
    "rttvar",
    "quickack",
    "congctl",
    "advmss",
    "features",
    "hoplimit",
    "reordering",
];

/// What a script says about the hosts.
#[derive(Debug, Default)]
pub(super) struct HostCommands<'t> {
    /// MTU of the devices.
    pub(super) mtu: Option<Given<'t, u64>>,
}

impl<'t> HostCommands<'t> {
    /// Reads a command of a program other than tc and ipfw; returns false for an unknown program.
    pub(super) fn command(
        &mut self,
        program: ScriptToken<'t>,
        reader: &mut TokenReader<'t>,
    ) -> Result<bool, ImportError> {
        match program.text {
            "ip" => self.ip(reader)?,
            "ifconfig" => self.ifconfig(reader)?,
            "ethtool" => self.ethtool(reader)?,
            "sysctl" => {
                reader.next_is("-q");
                reader.next_is("-w");
                let setting = reader.value("a setting")?;
                let name = setting.text.split('=').next().unwrap_or_default().trim();
                if !name.ends_with("ip_forward") && !name.ends_with("forwarding") {
                    let message = format!("sysctl: `{name}` is a setting of a host");
                    let hint = "leave the command out, and set it under [host.NAME.knobs]";
                    return Err(setting.error(message).hint(hint));
                }
            }
            // In a network namespace: it sends traffic, or waits.
            "ping" | "iperf" | "iperf3" | "sleep" => while reader.next().is_some() {},
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn ip(&mut self, reader: &mut TokenReader<'t>) -> Result<(), ImportError> {
        while reader.next_if(|word| matches!(word, "-4" | "-6" | "-force")).is_some() {}
        let object = reader.value("`link`, `route`, `addr` or `netns`")?;
        match object.text {
            "link" | "l" => self.link(reader),
            "route" | "r" | "ro" => self.route(reader),
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
        while let Some(word) = reader.next() {
            match word.text {
                "mtu" => self.mtu(word, reader)?,
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
                _ => {}
            }
        }
        Ok(())
    }

    fn route(&mut self, reader: &mut TokenReader<'t>) -> Result<(), ImportError> {
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
                _ => {}
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
