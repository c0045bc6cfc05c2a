//! Applies the options and the initial command of a script to the run and its host.

use packet::IpVersion;
use tcp::TcpState;
use tcp::profile::{BurstRule, Family};
use units::Duration;

use super::{NonFatal, Result, RunOptions, Runner, ScriptStop};
use crate::ast::{Script, ScriptOption, ScriptSpan};
use crate::diagnostic::Diagnostic;
use crate::settings::{FastOpenCache, ScriptHost, SysctlError};
use crate::shell::{self, HostSettingKind};

/// Options of the run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// Minimum tolerance of times.
    pub(super) tolerance: Duration,
    /// Tick length of TCP timestamps; they are compared only if it is set.
    pub(super) tick: Option<Duration>,
    /// Payload per packet of inbound bursts.
    pub(super) mss: Option<u16>,
    /// Echoed timestamps that were never sent are mapped by their distance from the first.
    pub(super) scaled_echo: bool,
    /// Data packets are not coalesced.
    pub(super) strict_segments: bool,
    pub(super) ip: IpVersion,
    /// Kinds of events whose failures do not end the run.
    pub(super) non_fatal: NonFatal,
}

impl Default for Rules {
    fn default() -> Self {
        let tolerance = Duration::from_millis(4);
        Self {
            tolerance,
            tick: None,
            mss: None,
            scaled_echo: false,
            strict_segments: false,
            non_fatal: NonFatal::default(),
            ip: IpVersion::V4,
        }
    }
}

pub(super) fn configure(
    text: &str,
    script: &Script,
    options: &RunOptions<'_>,
    notes: &mut Vec<String>,
) -> Result<(Rules, ScriptHost)> {
    let mut rules = Rules::default();
    let mut host = ScriptHost::new(options.profile.clone());
    for option in &script.options {
        take_option(text, option, &mut rules, &mut host)?;
    }
    rules.tolerance = options.overrides.tolerance.unwrap_or(rules.tolerance);
    rules.ip = options.overrides.ip.unwrap_or(rules.ip);
    rules.non_fatal = options.overrides.non_fatal.unwrap_or(rules.non_fatal);
    if let Some(mtu) = options.overrides.mtu {
        host.profile.mtu = mtu;
    }
    if rules.ip == IpVersion::V6 && host.profile.mtu < 1_280 {
        let span = script.options.first().map_or(ScriptSpan { start: 0, end: 0 }, |o| o.name.span);
        let error = Diagnostic::new(text, span, "this MTU is too small for IPv6");
        let error = error.expected("1280 or more").found(host.profile.mtu.to_string());
        return Err(ScriptStop::Failed(error));
    }
    host.profile.hz = options.overrides.hz.unwrap_or(host.profile.hz);
    if let BurstRule::Linux(rule) = &mut host.profile.burst {
        rule.device_holds |= options.overrides.holds_packets;
    }
    if let Some(command) = script.init.as_ref().filter(|_| options.real.is_none()) {
        take_command(text, &command.value, command.span, options, &mut host, notes)?;
    }
    Ok((rules, host))
}

fn take_option(
    text: &str,
    option: &ScriptOption,
    rules: &mut Rules,
    host: &mut ScriptHost,
) -> Result<()> {
    let place = option.value.as_ref().map_or(option.name.span, |value| value.span);
    let value = option.value.as_ref().map_or("", |value| value.value.as_str());
    let bad = |expected: &str| {
        let error = Diagnostic::new(text, place, "this option has another value");
        ScriptStop::Failed(error.expected(expected).found(format!("`{value}`")))
    };
    let number = |most: u64| {
        let number = value.parse::<u64>().ok().filter(|&n| n <= most);
        number.ok_or_else(|| bad(&format!("a whole number up to {most}")))
    };
    match option.name.value.as_str() {
        "tolerance_usecs" => rules.tolerance = Duration::from_micros(number(3_600_000_000)?),
        "tcp_ts_tick_usecs" => {
            rules.tick = Some(number(1_000_000)?).filter(|&n| n > 0).map(Duration::from_micros);
        }
        "mss" => rules.mss = Some(number(65_535)? as u16).filter(|&mss| mss > 0),
        "mtu" => {
            let mtu = number(65_535)? as u32;
            if mtu < 72 {
                return Err(bad("72 or more"));
            }
            host.profile.mtu = mtu;
        }
        "strict_segments" => rules.strict_segments = true,
        "ip_version" => {
            rules.ip = match value {
                "ipv4" => IpVersion::V4,
                "ipv6" => IpVersion::V6,
                "ipv4-mapped-ipv6" => IpVersion::V4,
                _ => return Err(bad("`ipv4`, `ipv6` or `ipv4-mapped-ipv6`")),
            };
        }
        "local_ip" => {
            host.fast_open.addresses.local =
                Some(address(value).ok_or_else(|| bad("an IP address"))?);
        }
        "remote_ip" => {
            host.fast_open.addresses.remote =
                Some(address(value).ok_or_else(|| bad("an IP address"))?);
        }
        "tcp_ts_ecr_scaled" => rules.scaled_echo = true,
        "non_fatal" => {
            rules.non_fatal = NonFatal::parse(value)
                .ok_or_else(|| bad("`packet`, `syscall` or both with a comma"))?;
        }
        name @ ("tolerance_percent" | "define" | "udp_encaps" | "udp_encapsulation"
        | "tcp_md5_secret" | "psp_udp_port") => {
            let message = format!("`--{name}` is not supported");
            return Err(ScriptStop::Unsupported(Diagnostic::new(text, option.name.span, message)));
        }
        // Addresses, ports and devices do not exist here.
        _ => {}
    }
    Ok(())
}

/// Parses an address; a prefix length is ignored.
fn address(text: &str) -> Option<core::net::IpAddr> {
    text.split('/').next()?.parse().ok()
}

/// A command that acts on or queries the connection, with its position.
pub(super) struct HostQuery {
    pub(super) kind: HostSettingKind,
    pub(super) span: ScriptSpan,
}

/// Applies the settings of a command; returns what it does to connections.
fn take_command(
    text: &str,
    command: &str,
    span: ScriptSpan,
    options: &RunOptions<'_>,
    host: &mut ScriptHost,
    notes: &mut Vec<String>,
) -> Result<Vec<HostQuery>> {
    let unsupported = |span, message| ScriptStop::Unsupported(Diagnostic::new(text, span, message));
    let settings = shell::read(command, span, options.files)
        .map_err(|refused| unsupported(refused.span, refused.why))?;
    let mut queries = Vec::new();
    for setting in settings {
        match setting.kind {
            // TCP of Linux always builds bursts (sk_setup_caps); without TSO they are split before
            // the card, which makes no difference here.
            HostSettingKind::Tso(on) => host.tso = on || host.profile.family == Family::Linux,
            HostSettingKind::FlushMetrics => host.fast_open.cache = FastOpenCache::default(),
            HostSettingKind::Sysctl { name, value } => {
                host.set(&name, &value).map_err(|refusal| match refusal {
                    SysctlError::NotModelled(why) => {
                        unsupported(setting.span, format!("`{name}={value}`: {why}"))
                    }
                    SysctlError::Bad { expected } => {
                        let message = format!("`{name}` has another value");
                        let error = Diagnostic::new(text, setting.span, message);
                        ScriptStop::Failed(error.expected(expected).found(format!("`{value}`")))
                    }
                })?;
            }
            HostSettingKind::Ignored(command) => {
                let note = format!("`{command}` was not run");
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
            kind @ (HostSettingKind::CountSockets(_) | HostSettingKind::Drop(_)) => {
                queries.push(HostQuery { kind, span: setting.span });
            }
        }
    }
    Ok(queries)
}

impl Runner<'_> {
    /// Runs a command on the real host.
    fn command_real(&mut self, command: &str, span: ScriptSpan) -> Result<()> {
        let settings = shell::read(command, span, self.options.files);
        let settings = settings.map_err(|refused| {
            ScriptStop::Unsupported(Diagnostic::new(self.text, refused.span, refused.why))
        })?;
        for setting in settings {
            match setting.kind {
                HostSettingKind::Sysctl { name, value } => {
                    self.set_real(&name, &value, setting.span)?;
                }
                HostSettingKind::Ignored(command) => self.notes.push(command),
                // A fresh kernel knows no peers, and its card always has TSO.
                HostSettingKind::Tso(_) | HostSettingKind::FlushMetrics => {}
                HostSettingKind::CountSockets(_) | HostSettingKind::Drop(_) => {
                    return self.unsupported(setting.span, "this command is FreeBSD's");
                }
            }
        }
        Ok(())
    }

    /// Runs a command between events; its settings apply to later connections.
    pub(super) fn command(&mut self, command: &str, span: ScriptSpan) -> Result<()> {
        if self.world.real.is_some() {
            return self.command_real(command, span);
        }
        let queries = take_command(
            self.text,
            command,
            span,
            &self.options,
            &mut self.world.host,
            &mut self.notes,
        )?;
        for query in queries {
            match query.kind {
                HostSettingKind::Drop(state) if sockstat_name(self.world.state()) == state => {
                    self.world.connection = None;
                }
                HostSettingKind::CountSockets(wanted) => {
                    let version = match self.rules.ip {
                        IpVersion::V4 => 4,
                        IpVersion::V6 => 6,
                    };
                    let listed = wanted.ip.is_none_or(|ip| ip == version)
                        && sockstat_name(self.world.state()) == wanted.state;
                    let found = if listed { "1" } else { "0" };
                    if !found.contains(&wanted.count) {
                        let message = format!("another number of sockets is in {}", wanted.state);
                        let state = sockstat_name(self.world.state());
                        let error =
                            self.at(query.span, message).expected(wanted.count).found(found);
                        return Err(ScriptStop::Failed(
                            error.hint(format!("the connection is in {state}")),
                        ));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Returns the name of a state as sockstat of FreeBSD prints it.
const fn sockstat_name(state: TcpState) -> &'static str {
    match state {
        TcpState::Closed => "CLOSED",
        TcpState::Listen => "LISTEN",
        TcpState::SynSent => "SYN_SENT",
        TcpState::SynReceived => "SYN_RCVD",
        TcpState::Established => "ESTABLISHED",
        TcpState::CloseWait => "CLOSE_WAIT",
        TcpState::FinWait1 => "FIN_WAIT_1",
        TcpState::Closing => "CLOSING",
        TcpState::LastAck => "LAST_ACK",
        TcpState::FinWait2 => "FIN_WAIT_2",
        TcpState::TimeWait => "TIME_WAIT",
    }
}
