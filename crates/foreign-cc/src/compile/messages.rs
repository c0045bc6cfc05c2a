//! Messages of the C compiler in the words of this interface: what a file uses that is not provided.

use std::fmt;

/// Why a file was not compiled: a message per mistake, each with file and line where it has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileError {
    /// The messages.
    pub messages: Vec<String>,
}

impl CompileError {
    pub(super) fn of(message: String) -> Self {
        Self { messages: vec![message] }
    }

    /// Only the type of `cong_control` is wrong.
    pub(super) fn is_of_signature(&self) -> bool {
        self.messages
            .iter()
            .any(|message| message.contains("incompatible") && message.contains("rate_sample"))
    }
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.messages.join("\n"))
    }
}

impl core::error::Error for CompileError {}

/// The errors in what a compiler (GCC or Clang) or linker printed, each once.
pub(super) fn read(printed: &str) -> CompileError {
    let mut messages: Vec<String> = Vec::new();
    for line in printed.lines() {
        let Some(message) = translated(line) else { continue };
        if !messages.contains(&message) {
            messages.push(message);
        }
    }
    if messages.is_empty() {
        messages.push(printed.trim().to_owned());
    }
    CompileError { messages }
}

/// One line of the compiler; `None` if it reports no error.
fn translated(line: &str) -> Option<String> {
    if let Some((_, name)) = line.split_once("undefined reference to ") {
        let name = name.trim().trim_matches(QUOTES);
        return Some(format!("the function `{name}` of the kernel is not provided"));
    }
    let (place, text) =
        line.split_once(": fatal error: ").or_else(|| line.split_once(": error: "))?;
    let mut parts = place.rsplitn(3, ':');
    let numbers = (parts.next(), parts.next());
    let place = match (numbers, parts.next()) {
        ((Some(column), Some(row)), Some(file)) if is_number(column) && is_number(row) => {
            format!("{file}:{row}")
        }
        _ => place.to_owned(),
    };
    Some(format!("{place}: {}", in_our_words(text)))
}

const QUOTES: [char; 4] = ['\'', '`', '\u{2018}', '\u{2019}'];

fn is_number(text: &str) -> bool {
    text.parse::<u32>().is_ok()
}

fn in_our_words(text: &str) -> String {
    let quoted: Vec<&str> = text.split(QUOTES).skip(1).step_by(2).collect();
    if text.contains("no member named") {
        // GCC: 'struct tcp_sock' has no member named 'x'; Clang: no member named 'x' in 'struct tcp_sock'.
        let (kind, field) = match quoted.as_slice() {
            [one, two, ..] if text.starts_with("no member") => (*two, *one),
            [one, two, ..] => (*one, *two),
            _ => return text.to_owned(),
        };
        let kind = kind.trim_start_matches("const ");
        return format!(
            "the field `{field}` of {kind} is not mapped: the sender of Ackclock has nothing that corresponds to it"
        );
    }
    if let [name, ..] = quoted.as_slice() {
        if text.contains("implicit declaration of function")
            || text.contains("call to undeclared function")
        {
            return format!("the function `{name}` of the kernel is not provided");
        }
        if text.contains("undeclared") || text.starts_with("unknown type name") {
            return format!("`{name}` of the kernel is not provided");
        }
        if text.contains("file not found") {
            return format!("the header `{name}` of the kernel is not provided");
        }
    }
    match text.strip_suffix(": No such file or directory") {
        Some(name) => format!("the header `{name}` of the kernel is not provided"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_field_is_named_with_its_line() {
        let gcc = "tcp_x.c:12:8: error: 'struct tcp_sock' has no member named 'rack'\n\
                   tcp_x.c:12:8: error: 'struct tcp_sock' has no member named 'rack'";
        let clang = "tcp_x.c:12:8: error: no member named 'rack' in 'struct tcp_sock'";
        let expected = "tcp_x.c:12: the field `rack` of struct tcp_sock is not mapped: the sender of Ackclock has \
                        nothing that corresponds to it";
        assert_eq!(read(gcc).messages, [expected]);
        assert_eq!(read(clang).messages, [expected]);
    }

    #[test]
    fn functions_names_and_headers_that_are_missing_are_named() {
        let text = "a.c:3:2: error: implicit declaration of function 'tcp_ack' [-Werror=x]\n\
                    a.c:4:2: error: 'TCP_FOO' undeclared (first use in this function)\n\
                    a.c:1:10: fatal error: linux/rhashtable.h: No such file or directory\n\
                    a.c:(.text+0x1): undefined reference to `tcp_rack'\n\
                    a.c:9:1: note: something\n";
        let read = read(text).messages;
        assert_eq!(
            read,
            [
                "a.c:3: the function `tcp_ack` of the kernel is not provided",
                "a.c:4: `TCP_FOO` of the kernel is not provided",
                "a.c:1: the header `linux/rhashtable.h` of the kernel is not provided",
                "the function `tcp_rack` of the kernel is not provided",
            ]
        );
    }
}
