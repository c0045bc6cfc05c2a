//! Settings and controllers as users of a system write them.

use tcp::knobs::{self, KnobKind};
use tcp::profile::{NAMES, TcpProfile};

use super::BestSender;

/// Prefix of Linux sysctls that users leave out.
const LINUX: &str = "net.ipv4.";
/// Knobs of the host that receives the data; all others are those of its sender.
const OF_RECEIVER: [&str; 4] = [
    "net.ipv4.tcp_rmem",
    "net.inet.tcp.recvspace",
    "net.inet.tcp.recvbuf_auto",
    "net.inet.tcp.recvbuf_max",
];

/// A key of the fitted scenario with its value, of a setting in the form of `sysctl`:
/// `tcp_rmem="4096 131072 6291456"`. Other settings are returned as they are.
pub(crate) fn scenario_setting(setting: &str) -> String {
    let Some((key, value)) = setting.split_once('=') else { return setting.to_owned() };
    let key = key.trim();
    let (host, name) = match key.split_once(".knobs.") {
        Some((host, name)) => (Some(host), name.trim_matches('"')),
        None => (None, key),
    };
    let with_prefix = format!("{LINUX}{name}");
    let is_named = |knob: &&knobs::Knob| knob.name == name || knob.name == with_prefix;
    let Some(knob) = knobs::all().find(is_named) else { return setting.to_owned() };
    let host = host.unwrap_or(match OF_RECEIVER.contains(&knob.name) {
        true => "receiver",
        false => "sender",
    });
    format!("{host}.knobs.{}={}", knob.name, knob_value(knob.kind(), value.trim()))
}

/// A value as scenarios have it: sizes of `sysctl` are in bytes, without a unit.
fn knob_value(kind: KnobKind, value: &str) -> String {
    let text = value.trim_matches(['"', '\'']).trim();
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    if words.is_empty() || !words.iter().all(|word| is_number(word)) {
        return value.to_owned();
    }
    match (kind, words.as_slice()) {
        (KnobKind::Sizes, words) => {
            let sizes: Vec<_> = words.iter().map(|word| format!("\"{word}B\"")).collect();
            format!("[{}]", sizes.join(","))
        }
        (KnobKind::Size, [size]) => format!("{size}B"),
        _ => value.to_owned(),
    }
}

/// A sender to compare with: a profile, a profile with its controller, or a controller of the best sender.
pub(crate) fn compared_sender<'a>(
    name: &'a str,
    best: &BestSender<'a>,
) -> (&'a str, Option<&'a str>) {
    match name.split_once('/') {
        Some((profile, cc)) => (profile, Some(cc)),
        None if is_controller(name) => (best.profile, Some(name)),
        None => (name, None),
    }
}

/// Whether a modelled system has a controller of this name.
fn is_controller(name: &str) -> bool {
    let mut profiles = NAMES.iter().filter_map(|profile| TcpProfile::named(profile));
    profiles.any(|profile| profile.algorithm(name).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_sysctl_become_keys_of_the_scenario() {
        let rmem = r#"receiver.knobs.net.ipv4.tcp_rmem=["4096B","131072B","6291456B"]"#;
        for (given, expected) in [
            (r#"tcp_rmem="4096 131072 6291456""#, rmem),
            ("net.ipv4.tcp_rmem=4096 131072 6291456", rmem),
            ("net.ipv4.tcp_rmem = 4096\t131072\t6291456", rmem),
            (r#"receiver.knobs.net.ipv4.tcp_rmem="4096 131072 6291456""#, rmem),
            ("net.inet.tcp.recvspace=65536", "receiver.knobs.net.inet.tcp.recvspace=65536B"),
            ("net.inet.tcp.sendspace=64KiB", "sender.knobs.net.inet.tcp.sendspace=64KiB"),
            ("net.inet.tcp.abc_l_var=45", "sender.knobs.net.inet.tcp.abc_l_var=45"),
            ("path.forward.loss=0%", "path.forward.loss=0%"),
            ("sender.cc=bbr", "sender.cc=bbr"),
            ("net.ipv4.tcp_rmen=1", "net.ipv4.tcp_rmen=1"),
        ] {
            assert_eq!(scenario_setting(given), expected);
        }
    }

    #[test]
    fn a_controller_alone_is_that_of_the_recorded_sender() {
        let best = BestSender {
            profile: "linux-6.18",
            cc: Some("cubic"),
            time_s: 1.0,
            misfit: 0.0,
            error: 0.0,
        };
        assert_eq!(compared_sender("bbr", &best), ("linux-6.18", Some("bbr")));
        assert_eq!(compared_sender("freebsd-14.3", &best), ("freebsd-14.3", None));
        assert_eq!(compared_sender("rfc/newreno", &best), ("rfc", Some("newreno")));
    }
}
