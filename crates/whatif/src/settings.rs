//! Settings and controllers as users of a system write them.

use scenario::ScenarioError;
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

/// A setting as the user wrote it, and as a key of the fitted scenario with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GivenSetting {
    given: String,
    /// Whether it names a knob.
    is_knob: bool,
    /// `KEY=VALUE` of the fitted scenario.
    pub(crate) text: String,
}

/// Name of `--set` in errors.
const SET: &str = "--set";

impl GivenSetting {
    /// Translates a setting in the form of `sysctl`: `tcp_rmem="4096 131072 6291456"`. Other settings stay as
    /// they are.
    pub(crate) fn of(setting: &str) -> Self {
        let knob = scenario_setting(setting);
        let is_knob = knob.is_some();
        let text = knob.unwrap_or_else(|| setting.to_owned());
        Self { given: setting.to_owned(), is_knob, text }
    }

    /// Moves an error in the translated text to the text that the user wrote; others stay as they are.
    pub(crate) fn restore(&self, error: &mut ScenarioError) {
        self.name_parts(error);
        if !self.is_knob || error.file != SET || error.source_line != self.text {
            return;
        }
        let (Some((of_scenario, translated)), Some((key, value))) =
            (self.text.split_once('='), self.given.split_once('='))
        else {
            return;
        };
        let is_in_key = error.column <= of_scenario.chars().count();
        let (start, part) = if is_in_key {
            (0, key)
        } else {
            let wrong = wrong_word(value);
            if let Some((_, word)) = wrong {
                error.expected = Some("a number of bytes".to_owned());
                error.found = Some(format!("\"{word}\""));
            } else if value.trim() != translated {
                error.found = Some(value.trim().to_owned());
                let is_list = |expected: &String| expected.starts_with(THREE_SIZES);
                if error.expected.as_ref().is_some_and(is_list) {
                    error.expected = Some("three sizes such as \"4096 131072 6291456\"".to_owned());
                }
            }
            let (offset, part) = wrong.unwrap_or((0, value));
            (key.len() + 1 + offset, part)
        };
        let skipped = part.len() - part.trim_start().len();
        error.column = self.given[..start + skipped].chars().count() + 1;
        error.width = part.trim().chars().count();
        error.source_line.clone_from(&self.given);
    }
}

impl GivenSetting {
    /// Names the parts of a fitted path in place of the numbers of those that scenarios have.
    fn name_parts(&self, error: &mut ScenarioError) {
        let key = self.text.split('=').next().unwrap_or_default().trim();
        let part = [FORWARD, RETURN, "path."].into_iter().find(|part| key.starts_with(part));
        let is_path = error.file == SET && error.source_line == self.text;
        let Some(part) = part.filter(|_| is_path && error.message.contains(NO_ENTRY)) else {
            return;
        };
        error.message = format!("a fitted path has no `{key}`");
        (error.column, error.width) = (1, key.chars().count());
        let parts = match part {
            FORWARD => {
                "path.forward.loss, .losses, .outage, .marks, .reorder, .policer, .link or .delay"
            }
            RETURN => "path.return.loss, .link, .thin or .delay",
            _ => "path.forward, path.return, path.opening.loss or path.strip",
        };
        error.expected = Some(parts.to_owned());
        error.found = None;
    }
}

/// Beginnings of the keys of a fitted path.
const FORWARD: &str = "path.forward.";
const RETURN: &str = "path.return.";
/// What scenarios say of a path without a number.
const NO_ENTRY: &str = "has no entry";

/// What scenarios expect of a knob with three sizes.
const THREE_SIZES: &str = "three sizes";

/// A value without its quotes.
fn unquoted(value: &str) -> &str {
    value.trim().trim_matches(['"', '\'']).trim()
}

/// The first of several words of a value that is no number, with its offset.
fn wrong_word(value: &str) -> Option<(usize, &str)> {
    let text = unquoted(value);
    if text.starts_with('[') || text.split_ascii_whitespace().count() < 2 {
        return None;
    }
    let is_number = |word: &&str| word.bytes().all(|byte| byte.is_ascii_digit());
    let word = text.split_ascii_whitespace().find(|word| !is_number(word))?;
    Some((value.find(word)?, word))
}

/// A key of the fitted scenario with its value, of a setting in the form of `sysctl`.
fn scenario_setting(setting: &str) -> Option<String> {
    let (key, value) = setting.split_once('=')?;
    let key = key.trim();
    let (host, name) = match key.split_once(".knobs.") {
        Some((host, name)) => (Some(host), name.trim_matches('"')),
        None => (None, key),
    };
    let with_prefix = format!("{LINUX}{name}");
    let is_named = |knob: &&knobs::Knob| knob.name == name || knob.name == with_prefix;
    let knob = knobs::all().find(is_named)?;
    let host = host.unwrap_or(match OF_RECEIVER.contains(&knob.name) {
        true => "receiver",
        false => "sender",
    });
    Some(format!("{host}.knobs.{}={}", knob.name, knob_value(knob.kind(), value.trim())))
}

/// A value as scenarios have it: sizes of `sysctl` are in bytes, without a unit.
fn knob_value(kind: KnobKind, value: &str) -> String {
    let text = unquoted(value);
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

/// The stack of a controller in a library, unless the recorded sender has Linux's.
const LIBRARY_PROFILE: &str = "linux-6.18";

/// A sender to compare with: a profile, a profile with its controller, or a controller of the best sender.
pub(crate) fn compared_sender<'a>(
    name: &'a str,
    best: &BestSender<'a>,
) -> (&'a str, Option<&'a str>) {
    if foreign_cc::named::library_file(name).is_some() {
        let of_profile = |(profile, _): &(&str, &str)| NAMES.contains(profile);
        return match name.split_once('/').filter(of_profile) {
            Some((profile, library)) => (profile, Some(library)),
            None if best.profile.starts_with("linux") => (best.profile, Some(name)),
            None => (LIBRARY_PROFILE, Some(name)),
        };
    }
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
            assert_eq!(GivenSetting::of(given).text, expected);
        }
    }

    /// The error of the fitted scenario, moved to the setting that was given.
    fn error_of(given: &str) -> ScenarioError {
        let scenario = "[host.sender]\nprofile = \"linux-6.18\"\n\n[host.receiver]\nprofile = \"linux-6.18\"\n";
        let setting = GivenSetting::of(given);
        let set = vec![setting.text.clone()];
        let overrides = scenario::Overrides { set, ..scenario::Overrides::default() };
        let errors = scenario::load(scenario, "the fitted scenario", &overrides).unwrap_err();
        let mut error = errors.into_iter().find(|error| error.file == SET).unwrap();
        setting.restore(&mut error);
        error
    }

    #[test]
    fn errors_point_at_the_setting_that_was_given() {
        for (given, part, found) in [
            (r#"tcp_rmem="4096 131072 oops""#, "oops", r#""oops""#),
            (r#"receiver.knobs.net.ipv4.tcp_rmem="4096 x 1""#, "x", r#""x""#),
            (r#"tcp_rmem="4096 131072""#, r#""4096 131072""#, r#""4096 131072""#),
            ("net.ipv4.tcp_wmem = 4096 9 1", "4096 9 1", "4096 9 1"),
            ("tcp_slow_start_after_idle=7", "7", "7"),
        ] {
            let error = error_of(given);
            assert_eq!(error.source_line, given);
            let marked: String = given.chars().skip(error.column - 1).take(error.width).collect();
            assert_eq!(marked, part, "{error}");
            assert_eq!(error.found.as_deref(), Some(found), "{error}");
            assert!(!error.to_string().contains("KiB"), "{error}");
        }
        // A knob of another system is an error of the key.
        let error = error_of(" net.inet.tcp.recvspace=65536");
        assert_eq!((error.column, error.width), (2, "net.inet.tcp.recvspace".len()));
        assert_eq!(error.source_line, " net.inet.tcp.recvspace=65536");
    }

    /// A fitted path has names of parts; scenarios have numbers.
    #[test]
    fn an_unknown_part_of_the_path_is_refused_with_the_known_ones() {
        let scenario =
            "[host.sender]\n[host.receiver]\n\n[[path]]\nfrom = \"sender\"\nto = \"receiver\"\n";
        for (given, known) in
            [("path.forward.jitter=3ms", "path.forward.loss"), ("path.foo=1", "path.strip")]
        {
            let setting = GivenSetting::of(given);
            let set = vec![given.to_owned()];
            let overrides = scenario::Overrides { set, ..scenario::Overrides::default() };
            let errors = scenario::load(scenario, "the fitted scenario", &overrides).unwrap_err();
            let mut error = errors.into_iter().find(|error| error.file == SET).unwrap();
            setting.restore(&mut error);
            let key = given.split('=').next().unwrap();
            assert!(error.message.contains(key), "{error}");
            assert!(error.expected.as_ref().unwrap().contains(known), "{error}");
            assert_eq!((error.column, error.width), (1, key.len()));
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
