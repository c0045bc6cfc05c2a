//! The shell commands of a script that the engine supports: `sysctl`, scripts with it, and some
//! without effect here.

use crate::diagnostic::ScriptSpan;

/// A setting made by a command, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSetting {
    /// The setting.
    pub kind: HostSettingKind,
    /// The line of the script that sets it or that names the file which does.
    pub span: ScriptSpan,
}

/// Settings that commands make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostSettingKind {
    /// `sysctl name=value`
    Sysctl {
        /// Name in the system's spelling.
        name: String,
        /// Value; several parts are separated by single spaces.
        value: String,
    },
    /// `ethtool -K tun0 tso off`
    Tso(bool),
}

/// A command that is not supported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandError {
    /// Its position.
    pub span: ScriptSpan,
    /// The reason.
    pub why: String,
}

impl core::fmt::Display for CommandError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.why)
    }
}

impl core::error::Error for CommandError {}

/// Maximum nesting of shell scripts.
const DEPTH: usize = 4;

/// Parses the command at `span` of a script; `file` returns the text of a file that it names.
///
/// # Errors
/// The first command that is not supported.
pub fn read(
    command: &str,
    span: ScriptSpan,
    file: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<HostSetting>, CommandError> {
    let mut settings = Vec::new();
    let mut at = span.start;
    for line in command.split('\n') {
        let blank = line.len() - line.trim_start().len();
        let here = ScriptSpan { start: at + blank, end: at + line.trim_end().len().max(blank) };
        read_line(line, here, file, DEPTH, &mut settings)?;
        at += line.len() + 1;
    }
    Ok(settings)
}

fn read_line(
    line: &str,
    span: ScriptSpan,
    file: &dyn Fn(&str) -> Option<String>,
    depth: usize,
    settings: &mut Vec<HostSetting>,
) -> Result<(), CommandError> {
    for command in commands(line) {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let refuse = |why: String| Err(CommandError { span, why });
        match words.as_slice() {
            [] | ["true" | ":" | "exit" | "sleep" | "set" | "sync" | "export", ..] => {}
            // Counters of the whole host.
            ["nstat", "-n"] => {}
            ["ip", "tcp_metrics", "flush", ..] => {}
            ["tc", "qdisc", "add" | "replace", "dev", _, "root", "pfifo"] => {}
            ["ethtool", "-K", _, "tso", value @ ("on" | "off")] => {
                settings.push(HostSetting { kind: HostSettingKind::Tso(*value == "on"), span });
            }
            ["sysctl", rest @ ..] => {
                for word in rest.iter().filter(|word| !word.starts_with('-')) {
                    let Some((name, value)) = word.split_once('=') else {
                        return refuse(format!("`sysctl {word}` sets nothing"));
                    };
                    settings.push(sysctl(name, value, span));
                }
            }
            [name, rest @ ..] if name.ends_with("set_sysctls.py") => {
                for word in rest {
                    let path = word.split_once('=');
                    let Some((path, value)) =
                        path.filter(|(path, _)| path.starts_with("/proc/sys/"))
                    else {
                        return refuse(format!("`{word}` is no setting"));
                    };
                    let name = path["/proc/sys/".len()..].replace('/', ".");
                    settings.push(sysctl(&name, value, span));
                }
            }
            // set_sysctls.py leaves this script to restore the previous values.
            [name] if name.starts_with("/tmp/sysctl_restore_") => {}
            [name] if name.ends_with(".sh") => {
                let Some(text) = file(name) else {
                    return refuse(format!("there is no file `{name}` beside the script"));
                };
                if depth == 0 {
                    return refuse(format!("`{name}` names files that name files without end"));
                }
                for (index, line) in text.lines().enumerate() {
                    // The line is not quoted: the name may be that of any file.
                    let refuse = |_| CommandError {
                        span,
                        why: format!(
                            "line {} of `{name}` has a command Ackclock does not know",
                            index + 1
                        ),
                    };
                    read_line(line, span, file, depth - 1, settings).map_err(refuse)?;
                }
            }
            _ => {
                return refuse(format!(
                    "`{}` is a command Ackclock does not know",
                    words.join(" ")
                ));
            }
        }
    }
    Ok(())
}

fn sysctl(name: &str, value: &str, span: ScriptSpan) -> HostSetting {
    let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
    HostSetting { kind: HostSettingKind::Sysctl { name: name.trim().to_owned(), value }, span }
}

/// Splits a line into commands and words, without quotes and redirections.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let end_word = |word: &mut Option<String>, words: &mut Vec<String>| {
        words.extend(word.take());
    };
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(letter),
            (None, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, ';' | '&' | '|') if !word.as_deref().is_some_and(|word| word.ends_with('>')) => {
                end_word(&mut word, &mut words);
                // The output of a pipe depends on the host, so `|` is kept as a word.
                if letter == '|' {
                    words.push("|".to_owned());
                }
                if letter != '|' && !words.is_empty() {
                    commands.push(core::mem::take(&mut words));
                }
            }
            (None, letter) if letter.is_whitespace() => end_word(&mut word, &mut words),
            (None, letter) => word.get_or_insert_default().push(letter),
        }
    }
    end_word(&mut word, &mut words);
    if !words.is_empty() {
        commands.push(words);
    }
    for words in &mut commands {
        let into_file = |word: &String| {
            let arrow = word.trim_start_matches(|c: char| c.is_ascii_digit());
            arrow.starts_with('>') && (arrow.contains("/dev/null") || arrow.contains('&'))
        };
        words.retain(|word| !into_file(word));
    }
    commands.retain(|words| !words.is_empty());
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(command: &str) -> Result<Vec<(String, String)>, String> {
        let file = |name: &str| (name == "./a.sh").then(|| "# x\nsysctl -q f.g=1\n".to_owned());
        let span = ScriptSpan { start: 0, end: command.len() };
        let read = read(command, span, &file).map_err(|refused| refused.why)?;
        Ok(read
            .into_iter()
            .map(|setting| match setting.kind {
                HostSettingKind::Sysctl { name, value } => (name, value),
                HostSettingKind::Tso(on) => ("tso".to_owned(), on.to_string()),
            })
            .collect())
    }

    fn pairs(expected: &[(&str, &str)]) -> Result<Vec<(String, String)>, String> {
        Ok(expected.iter().map(|&(a, b)| (a.to_owned(), b.to_owned())).collect())
    }

    #[test]
    fn settings_are_parsed_in_every_spelling() {
        assert_eq!(
            settings("sysctl -q a.b=1 c=\"1 2\t3\" >/dev/null 2>&1"),
            pairs(&[("a.b", "1"), ("c", "1 2 3")])
        );
        assert_eq!(settings("sysctl -w a=1; true\n # no\n"), pairs(&[("a", "1")]));
        assert_eq!(settings("./a.sh\nsysctl b=2"), pairs(&[("f.g", "1"), ("b", "2")]));
        assert_eq!(
            settings("../common/set_sysctls.py /proc/sys/net/ipv4/tcp_ecn=1"),
            pairs(&[("net.ipv4.tcp_ecn", "1")])
        );
        assert_eq!(settings("ethtool -K tun0 tso off"), pairs(&[("tso", "false")]));
        assert_eq!(settings("tc qdisc add dev tun0 root pfifo 2>/dev/null"), pairs(&[]));
    }

    #[test]
    fn commands_that_use_the_host_are_rejected() {
        for command in
            ["nstat | grep x", "tc qdisc replace dev tun0 root pfifo limit 0", "./b.sh", "rm -r x"]
        {
            assert!(settings(command).is_err(), "{command}");
        }
    }

    #[test]
    fn a_setting_has_the_position_of_its_line() {
        let command = "true\n  sysctl a=1";
        let read = read(command, ScriptSpan { start: 100, end: 116 }, &|_| None).unwrap();
        assert_eq!(read[0].span, ScriptSpan { start: 107, end: 117 });
    }
}
