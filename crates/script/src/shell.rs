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

/// What a command does.
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
    /// `ip tcp_metrics flush`: the host forgets what it knows about its peers.
    FlushMetrics,
    /// A command about the host without effect on the model: the command.
    Ignored(String),
    /// `sockstat ... | grep -c STATE | grep N`: FreeBSD's sockets in a state are counted.
    CountSockets(SocketCount),
    /// `tcpdrop -s STATE`: connections in that state end.
    Drop(String),
}

/// A count of FreeBSD's sockets: `sockstat -4 -P tcp -s | grep -c SYN_RCVD | grep 0`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketCount {
    /// 4 or 6 if only that version of IP is listed.
    pub ip: Option<u8>,
    /// State in sockstat's spelling.
    pub state: String,
    /// Text that the count must contain.
    pub count: String,
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
    for (at, line) in logical_lines(command) {
        let blank = line.len() - line.trim_start().len();
        let start = span.start + at;
        let end = start + line.trim_end().len().max(blank);
        let here = ScriptSpan { start: start + blank, end };
        read_line(line, here, file, DEPTH, &mut settings)?;
    }
    Ok(settings)
}

/// Splits into lines; a backslash at the end of a line joins the next. Also returns their offsets.
fn logical_lines(text: &str) -> Vec<(usize, &str)> {
    let mut lines = Vec::new();
    let (mut start, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        at += line.len();
        if !line.trim_end_matches('\n').ends_with('\\') || at == text.len() {
            lines.push((start, text[start..at].trim_end_matches('\n')));
            start = at;
        }
    }
    lines
}

fn read_line(
    line: &str,
    span: ScriptSpan,
    file: &dyn Fn(&str) -> Option<String>,
    depth: usize,
    settings: &mut Vec<HostSetting>,
) -> Result<(), CommandError> {
    let refuse = |why: String| CommandError { span, why };
    if let Some(parameter) = module_parameter(line) {
        return match parameter {
            Ok(()) => Ok(()),
            Err(why) => Err(refuse(why)),
        };
    }
    let line = arithmetic(line).map_err(refuse)?;
    for pipeline in pipelines(&line) {
        let kinds = match pipeline.as_slice() {
            [command] => read_command(command, span, file, depth, settings)?,
            commands => read_pipeline(commands).map_err(refuse)?,
        };
        settings.extend(kinds.into_iter().map(|kind| HostSetting { kind, span }));
    }
    Ok(())
}

/// Reads a command with its words; files that it names add to `settings`.
fn read_command(
    command: &[String],
    span: ScriptSpan,
    file: &dyn Fn(&str) -> Option<String>,
    depth: usize,
    settings: &mut Vec<HostSetting>,
) -> Result<Vec<HostSettingKind>, CommandError> {
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    let refuse = |why: String| Err(CommandError { span, why });
    Ok(match words.as_slice() {
        [] | ["true" | ":" | "exit" | "sleep" | "set" | "sync" | "export", ..] => Vec::new(),
        ["ip", "tcp_metrics", "flush", ..] => vec![HostSettingKind::FlushMetrics],
        // The default queue of a link without a rate.
        ["tc", "qdisc", "add" | "replace", "dev", _, "root", "pfifo"] => Vec::new(),
        ["nstat" | "modprobe" | "kldload" | "kldstat" | "sockstat" | "ss" | "netstat", ..]
        | ["ethtool", "-k" | "-i" | "-S", ..]
        | ["tc", "-s", ..]
        | ["tc", "qdisc", "show" | "del" | "delete", ..] => {
            vec![HostSettingKind::Ignored(words.join(" "))]
        }
        ["ethtool", "-K", _, features @ ..] if offloads(features).is_some() => {
            offloads(features).into_iter().flatten().map(HostSettingKind::Tso).collect()
        }
        ["tcpdrop", "-s", state] => vec![HostSettingKind::Drop((*state).to_owned())],
        ["sysctl", rest @ ..] => {
            let mut kinds = Vec::new();
            for word in rest.iter().filter(|word| !word.starts_with('-')) {
                let Some((name, value)) = word.split_once('=') else {
                    return refuse(format!("`sysctl {word}` sets nothing"));
                };
                kinds.push(sysctl(name, value));
            }
            kinds
        }
        [name, rest @ ..] if name.ends_with("set_sysctls.py") => {
            let mut kinds = Vec::new();
            for word in rest {
                let path = word.split_once('=');
                let Some((path, value)) = path.filter(|(path, _)| path.starts_with("/proc/sys/"))
                else {
                    return refuse(format!("`{word}` is no setting"));
                };
                let name = path["/proc/sys/".len()..].replace('/', ".");
                kinds.push(sysctl(&name, value));
            }
            kinds
        }
        // set_sysctls.py leaves this script to restore the previous values.
        [name] if name.starts_with("/tmp/sysctl_restore_") => Vec::new(),
        [name] if name.ends_with(".sh") => {
            let Some(text) = file(name) else {
                return refuse(format!("there is no file `{name}` beside the script"));
            };
            if depth == 0 {
                return refuse(format!("`{name}` names files that name files without end"));
            }
            for (at, line) in logical_lines(&text) {
                // The line is not quoted: the name may be that of any file.
                let refuse = |_| CommandError {
                    span,
                    why: format!(
                        "line {} of `{name}` has a command Ackclock does not know",
                        text[..at].lines().count() + 1
                    ),
                };
                read_line(line, span, file, depth - 1, settings).map_err(refuse)?;
            }
            Vec::new()
        }
        _ => {
            return refuse(format!("`{}` is a command Ackclock does not know", words.join(" ")));
        }
    })
}

/// Parameters of the module tcp_cubic and their defaults, which are the ones that are modelled.
const CUBIC: [(&str, &str); 7] = [
    ("beta", "717"),
    ("bic_scale", "41"),
    ("fast_convergence", "1"),
    ("hystart", "1"),
    ("hystart_detect", "3"),
    ("hystart_low_window", "16"),
    ("tcp_friendliness", "1"),
];

/// Reads `echo 3 > /sys/module/tcp_cubic/parameters/hystart_detect`: a default, or an error;
/// `None` for other commands.
fn module_parameter(line: &str) -> Option<Result<(), String>> {
    let (value, path) = line.trim().strip_prefix("echo ")?.split_once('>')?;
    let name = path.trim().strip_prefix("/sys/module/tcp_cubic/parameters/")?;
    let value = value.trim();
    Some(match CUBIC.iter().find(|(parameter, _)| *parameter == name) {
        Some((_, default)) if value == *default => Ok(()),
        Some((_, default)) => {
            Err(format!("`{name}` of the module tcp_cubic: only {default} is modelled"))
        }
        None => Err(format!("`{name}` of the module tcp_cubic is not modelled")),
    })
}

/// Reads the features of `ethtool -K`: whether TSO is set, and to what. Software segmentation sends
/// the same packets.
fn offloads(features: &[&str]) -> Option<Option<bool>> {
    let mut tso = None;
    for feature in features.chunks(2) {
        match feature {
            ["tso", value @ ("on" | "off")] => tso = Some(*value == "on"),
            ["gso" | "gro", "on" | "off"] => {}
            _ => return None,
        }
    }
    Some(tso)
}

/// Reads commands that are joined by `|`.
fn read_pipeline(commands: &[Vec<String>]) -> Result<Vec<HostSettingKind>, String> {
    let words: Vec<Vec<&str>> =
        commands.iter().map(|command| command.iter().map(String::as_str).collect()).collect();
    let text = words.iter().map(|words| words.join(" ")).collect::<Vec<_>>().join(" | ");
    let owner = |command: &[&str]| matches!(command, ["grep", "packetdril" | "packetdrill"]);
    Ok(match words.as_slice() {
        [first, between @ .., counted, expected]
            if first.first() == Some(&"sockstat") && between.iter().all(|words| owner(words)) =>
        {
            let (["grep", "-c", state], ["grep", count]) =
                (counted.as_slice(), expected.as_slice())
            else {
                return Err(format!("`{text}` is a command Ackclock does not know"));
            };
            let ip = match (first.contains(&"-4"), first.contains(&"-6")) {
                (true, false) => Some(4),
                (false, true) => Some(6),
                _ => None,
            };
            vec![HostSettingKind::CountSockets(SocketCount {
                ip,
                state: (*state).to_owned(),
                count: (*count).to_owned(),
            })]
        }
        // Counters of the whole host.
        [first, ..] if first.first() == Some(&"nstat") => vec![HostSettingKind::Ignored(text)],
        _ => return Err(format!("`{text}` is a command Ackclock does not know")),
    })
}

fn sysctl(name: &str, value: &str) -> HostSettingKind {
    let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
    HostSettingKind::Sysctl { name: name.trim().to_owned(), value }
}

/// Replaces `$((...))` by its value.
fn arithmetic(line: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find("$((") {
        let (before, after) = (&rest[..at], &rest[at + 3..]);
        let Some(length) = after.find("))") else {
            return Err("`$((` is not closed".to_owned());
        };
        let value = sum(&after[..length])
            .ok_or_else(|| format!("`$(({}))` has no value", &after[..length]))?;
        out.push_str(before);
        out.push_str(&value.to_string());
        rest = &after[length + 2..];
    }
    out.push_str(rest);
    Ok(out)
}

/// Evaluates sums and products of whole numbers: `15*1024*1024 + 1`.
fn sum(text: &str) -> Option<i64> {
    let mut total: i64 = 0;
    for part in text.split('+') {
        for (nth, part) in part.split('-').enumerate() {
            let mut product: i64 = 1;
            for factor in part.split('*') {
                let mut quotients = factor.split('/').map(|n| n.trim().parse::<i64>().ok());
                let first = quotients.next()??;
                let value = quotients.try_fold(first, |value, n| value.checked_div(n?))?;
                product = product.checked_mul(value)?;
            }
            total =
                if nth == 0 { total.checked_add(product)? } else { total.checked_sub(product)? };
        }
    }
    Some(total)
}

/// Splits a line into pipelines of commands of words, without quotes and redirections.
fn pipelines(line: &str) -> Vec<Vec<Vec<String>>> {
    let mut pipelines = Vec::new();
    let mut pipeline: Vec<Vec<String>> = Vec::new();
    let mut words: Vec<String> = Vec::new();
    // The word that follows a redirection names a file.
    let mut redirected = false;
    for token in tokens(line) {
        match token {
            ShellToken::Word(word) => {
                if !core::mem::take(&mut redirected) {
                    words.push(word);
                }
            }
            ShellToken::Redirection => redirected = true,
            ShellToken::Pipe => pipeline.push(core::mem::take(&mut words)),
            ShellToken::End => {
                pipeline.push(core::mem::take(&mut words));
                pipelines.push(core::mem::take(&mut pipeline));
            }
        }
    }
    pipeline.push(words);
    pipelines.push(pipeline);
    pipelines.retain(|pipeline| pipeline.iter().any(|words| !words.is_empty()));
    pipelines
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ShellToken {
    Word(String),
    /// `>`, `2>`, `>>`, `<`
    Redirection,
    Pipe,
    /// `;`, `&&`, `&`
    End,
}

fn tokens(line: &str) -> Vec<ShellToken> {
    let mut tokens = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(letter),
            (None, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, '>' | '<') => {
                // A number before it is that of a file descriptor.
                let descriptor = |word: &String| word.bytes().all(|b| b.is_ascii_digit());
                tokens.extend(word.take().filter(|word| !descriptor(word)).map(ShellToken::Word));
                while letters.next_if(|&c| matches!(c, '>' | '&')).is_some() {}
                tokens.push(ShellToken::Redirection);
            }
            (None, ';' | '&' | '|') => {
                tokens.extend(word.take().map(ShellToken::Word));
                let twice = letters.next_if_eq(&letter).is_some();
                let pipe = letter == '|' && !twice;
                tokens.push(if pipe { ShellToken::Pipe } else { ShellToken::End });
            }
            (None, '\\') => {
                // A line end after it is a blank.
                if let Some(next) = letters.next().filter(|&next| next != '\n') {
                    word.get_or_insert_default().push(next);
                }
            }
            (None, letter) if letter.is_whitespace() => {
                tokens.extend(word.take().map(ShellToken::Word));
            }
            (None, letter) => word.get_or_insert_default().push(letter),
        }
    }
    tokens.extend(word.map(ShellToken::Word));
    tokens
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
                HostSettingKind::FlushMetrics => ("flush".to_owned(), String::new()),
                HostSettingKind::Ignored(command) => ("ignored".to_owned(), command),
                HostSettingKind::Drop(state) => ("drop".to_owned(), state),
                HostSettingKind::CountSockets(count) => (count.state, count.count),
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
    fn parameters_of_cubic_are_accepted_at_their_defaults_only() {
        let path = "/sys/module/tcp_cubic/parameters";
        assert_eq!(settings(&format!("echo 3 > {path}/hystart_detect")), pairs(&[]));
        for command in ["echo 2 > ", "echo 1 >"].map(|echo| format!("{echo}{path}/hystart_detect"))
        {
            let span = ScriptSpan { start: 0, end: command.len() };
            let refused = read(&command, span, &|_| None).unwrap_err();
            assert!(refused.why.contains("only 3 is modelled"), "{}", refused.why);
        }
    }

    #[test]
    fn redirections_arithmetic_and_continuations_are_read_as_in_a_shell() {
        assert_eq!(
            settings("ip tcp_metrics flush all > /dev/null 2>&1\nsysctl -q a=$((15*1024*1024))"),
            pairs(&[("flush", ""), ("a", "15728640")])
        );
        assert_eq!(
            settings("sysctl -q a=\"4096 $((256*1024)) 4194304\" 2> /dev/null \\\n  b=2"),
            pairs(&[("a", "4096 262144 4194304"), ("b", "2")])
        );
        assert_eq!(settings("/tmp/sysctl_restore_${PPID}.sh"), pairs(&[]));
        assert_eq!(settings("sysctl a=1 && sysctl b=2 || true"), pairs(&[("a", "1"), ("b", "2")]));
        assert!(settings("sysctl a=$((x))").is_err());
        assert_eq!(sum("2 + 3*4 - 10/5"), Some(12));
    }

    #[test]
    fn host_commands_without_effect_are_named() {
        assert_eq!(
            settings("nstat > /dev/null; modprobe tcp_bbr; tcpdrop -s TIME_WAIT"),
            pairs(&[("ignored", "nstat"), ("ignored", "modprobe tcp_bbr"), ("drop", "TIME_WAIT")])
        );
        let read = read(
            "sockstat -4 -P tcp -s | grep packetdril | grep -c TIME_WAIT | grep 1",
            ScriptSpan { start: 0, end: 1 },
            &|_| None,
        );
        let count = SocketCount { ip: Some(4), state: "TIME_WAIT".into(), count: "1".into() };
        assert_eq!(read.unwrap()[0].kind, HostSettingKind::CountSockets(count));
    }

    #[test]
    fn commands_that_use_the_host_are_rejected() {
        for command in
            ["cat x | grep x", "tc qdisc replace dev tun0 root pfifo limit 0", "./b.sh", "rm -r x"]
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
