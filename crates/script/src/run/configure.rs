//! Applies the options and the initial command of a script to the run and its host.

use packet::IpVersion;
use units::Duration;

use super::{Result, RunOptions, Runner, ScriptStop};
use crate::ast::{Script, ScriptOption, ScriptSpan};
use crate::diagnostic::Diagnostic;
use crate::settings::{ScriptHost, SysctlError};
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
    /// Data packets are not coalesced.
    pub(super) strict_segments: bool,
    pub(super) ip: IpVersion,
}

impl Default for Rules {
    fn default() -> Self {
        let tolerance = Duration::from_millis(4);
        Self { tolerance, tick: None, mss: None, strict_segments: false, ip: IpVersion::V4 }
    }
}

pub(super) fn configure(
    text: &str,
    script: &Script,
    options: &RunOptions<'_>,
) -> Result<(Rules, ScriptHost)> {
    let mut rules = Rules::default();
    let mut host = ScriptHost::new(options.profile.clone());
    for option in &script.options {
        take_option(text, option, &mut rules, &mut host)?;
    }
    if let Some(command) = &script.init {
        take_command(text, &command.value, command.span, options, &mut host)?;
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
            if mtu < 576 {
                return Err(bad("576 or more"));
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
        name @ ("tolerance_percent" | "non_fatal" | "define" | "udp_encaps" | "send_omit_free"
        | "tcp_ts_ecr_scaled") => {
            let message = format!("`--{name}` is not supported");
            return Err(ScriptStop::Unsupported(Diagnostic::new(text, option.name.span, message)));
        }
        // Addresses, ports and devices do not exist here.
        _ => {}
    }
    Ok(())
}

/// Applies the settings of a command.
fn take_command(
    text: &str,
    command: &str,
    span: ScriptSpan,
    options: &RunOptions<'_>,
    host: &mut ScriptHost,
) -> Result<()> {
    let unsupported = |span, message| ScriptStop::Unsupported(Diagnostic::new(text, span, message));
    let settings = shell::read(command, span, options.files)
        .map_err(|refused| unsupported(refused.span, refused.why))?;
    for setting in settings {
        match setting.kind {
            HostSettingKind::Tso(on) => host.tso = on,
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
        }
    }
    Ok(())
}

impl Runner<'_> {
    /// Runs a command between events; it applies to later connections.
    pub(super) fn command(&mut self, command: &str, span: ScriptSpan) -> Result<()> {
        take_command(self.text, command, span, &self.options, &mut self.world.host)
    }
}
