//! Key logs: the secrets that TLS libraries write to the file that `SSLKEYLOGFILE` names (RFC 9850).

use core::fmt;
use std::collections::BTreeMap;

use packet::Dir;

/// Bytes of the random of a ClientHello.
const RANDOM: usize = 32;
/// Lengths of the secrets of TLS 1.3 in QUIC: SHA-256 and SHA-384.
const SECRETS: [usize; 2] = [32, 48];

/// Secrets of one connection.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct ConnectionSecrets {
    /// Of 0-RTT packets.
    pub(super) early: Option<Vec<u8>>,
    /// Of Handshake packets, by direction.
    pub(super) handshake: [Option<Vec<u8>>; 2],
    /// Of the first 1-RTT packets, by direction.
    pub(super) application: [Option<Vec<u8>>; 2],
}

/// Secrets by the random of the ClientHello.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct KeyLog {
    connections: BTreeMap<[u8; RANDOM], ConnectionSecrets>,
}

// Secrets are not printed.
impl fmt::Debug for KeyLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyLog").field("connections", &self.connections.len()).finish()
    }
}

impl fmt::Debug for ConnectionSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionSecrets").finish_non_exhaustive()
    }
}

/// Why a key log cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyLogError {
    /// Line, from 1; `None` if it is about the whole text.
    pub line: Option<usize>,
    what: &'static str,
}

impl fmt::Display for KeyLogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.what),
            None => f.write_str(self.what),
        }
    }
}

impl core::error::Error for KeyLogError {}

impl KeyLog {
    /// Reads a key log. Comments, empty lines and other labels are ignored, and a last line without its end, which a
    /// library may still be writing.
    ///
    /// # Errors
    /// A line that is none of a key log, or no secret of TLS 1.3 at all.
    pub fn parse(text: &[u8]) -> Result<Self, KeyLogError> {
        let log = Self::parse_part(text)?;
        if log.is_empty() {
            let what = "no secret of TLS 1.3, as QUIC needs: expected lines such as CLIENT_TRAFFIC_SECRET_0";
            return Err(KeyLogError { line: None, what });
        }
        Ok(log)
    }

    /// Reads a part of a key log, which may have no secret of TLS 1.3: a block of a capture.
    ///
    /// # Errors
    /// A line that is none of a key log.
    pub(in crate::inputs) fn parse_part(text: &[u8]) -> Result<Self, KeyLogError> {
        let mut log = Self::default();
        let ends_with_line = text.ends_with(b"\n");
        let lines: Vec<&[u8]> = text.split(|&byte| byte == b'\n').collect();
        let last = lines.len();
        for (number, line) in (1..).zip(lines) {
            let result = log.line(line);
            match result {
                Err(_) if number == last && !ends_with_line && !log.is_empty() => {}
                Err(what) => return Err(KeyLogError { line: Some(number), what }),
                Ok(()) => {}
            }
        }
        Ok(log)
    }

    fn line(&mut self, line: &[u8]) -> Result<(), &'static str> {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            return Ok(());
        }
        let mut fields = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
        let (Some(label), Some(random), Some(secret), None) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            return Err("expected a label, the random of a ClientHello and a secret");
        };
        let is_label =
            |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_';
        if !label.iter().all(is_label) {
            return Err("expected a label in capitals, such as CLIENT_TRAFFIC_SECRET_0");
        }
        let client = Dir::Forward as usize;
        let server = Dir::Reverse as usize;
        let place = match label {
            b"CLIENT_EARLY_TRAFFIC_SECRET" => None,
            b"CLIENT_HANDSHAKE_TRAFFIC_SECRET" | b"QUIC_CLIENT_HANDSHAKE_TRAFFIC_SECRET" => {
                Some((true, client))
            }
            b"SERVER_HANDSHAKE_TRAFFIC_SECRET" | b"QUIC_SERVER_HANDSHAKE_TRAFFIC_SECRET" => {
                Some((true, server))
            }
            b"CLIENT_TRAFFIC_SECRET_0" | b"QUIC_CLIENT_TRAFFIC_SECRET_0" => Some((false, client)),
            b"SERVER_TRAFFIC_SECRET_0" | b"QUIC_SERVER_TRAFFIC_SECRET_0" => Some((false, server)),
            // Of other versions, or of exporters.
            _ => return Ok(()),
        };
        let random: [u8; RANDOM] = hex(random)
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or("expected a random of 64 hexadecimal digits")?;
        let secret = hex(secret)
            .filter(|secret| SECRETS.contains(&secret.len()))
            .ok_or("expected a secret of 64 or 96 hexadecimal digits")?;
        let connection = self.connections.entry(random).or_default();
        match place {
            None => connection.early = Some(secret),
            Some((is_handshake, dir)) => {
                let ConnectionSecrets { handshake, application, .. } = connection;
                let secrets = if is_handshake { handshake } else { application };
                secrets[dir] = Some(secret);
            }
        }
        Ok(())
    }

    /// Adds the secrets of another log, which may have others of the same connections.
    pub fn extend(&mut self, other: Self) {
        for (random, secrets) in other.connections {
            self.connections.entry(random).or_default().extend(secrets);
        }
    }

    /// The number of connections that it has secrets of.
    pub fn len(&self) -> usize {
        self.connections.len()
    }

    /// Whether it has no secret.
    pub fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    pub(super) fn of(&self, random: &[u8; RANDOM]) -> Option<&ConnectionSecrets> {
        self.connections.get(random)
    }

    /// The secrets of all connections, in the order of their randoms.
    pub(super) fn all(&self) -> impl Iterator<Item = (&[u8; RANDOM], &ConnectionSecrets)> {
        self.connections.iter()
    }
}

impl ConnectionSecrets {
    fn extend(&mut self, other: Self) {
        self.early = other.early.or(self.early.take());
        let mine = self.handshake.iter_mut().chain(&mut self.application);
        for (mine, other) in mine.zip(other.handshake.into_iter().chain(other.application)) {
            *mine = other.or(mine.take());
        }
    }
}

/// Bytes of hexadecimal digits.
fn hex(digits: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let (pairs, []) = digits.as_chunks::<2>() else { return None };
    pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(label: &str, random: u8, secret: usize) -> String {
        format!("{label} {} {}\n", format!("{random:02x}").repeat(32), "ab".repeat(secret))
    }

    #[test]
    fn secrets_are_found_by_the_random() {
        let text = [
            "# a comment\n\nCLIENT_RANDOM 00 11\n".to_owned(),
            line("CLIENT_TRAFFIC_SECRET_0", 7, 32),
            line("SERVER_HANDSHAKE_TRAFFIC_SECRET", 9, 48),
            line("EXPORTER_SECRET", 7, 32),
        ];
        let log = KeyLog::parse(text.concat().as_bytes()).unwrap();
        let one = log.of(&[7; 32]).unwrap();
        assert_eq!(one.application[0].as_deref(), Some(&[0xab; 32][..]));
        assert_eq!(log.of(&[9; 32]).unwrap().handshake[1].as_ref().map(Vec::len), Some(48));
        assert_eq!(log.of(&[8; 32]), None);
    }

    #[test]
    fn lines_that_are_none_are_named() {
        for (text, message) in [
            ("CLIENT_TRAFFIC_SECRET_0 00\n", "line 1: expected a label, the random"),
            ("# x\nclient 1 2\n", "line 2: expected a label in capitals"),
            ("CLIENT_TRAFFIC_SECRET_0 0g 00\n", "line 1: expected a random"),
            (&*line("CLIENT_TRAFFIC_SECRET_0", 1, 33), "line 1: expected a secret"),
            ("", "no secret of TLS 1.3"),
            (&*line("CLIENT_RANDOM", 1, 48), "no secret of TLS 1.3"),
        ] {
            let error = KeyLog::parse(text.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
        // A library may still be writing the last line.
        let text = line("CLIENT_TRAFFIC_SECRET_0", 1, 32) + "SERVER_TRAF";
        assert!(KeyLog::parse(text.as_bytes()).is_ok());
    }

    #[test]
    fn secrets_of_a_connection_from_several_logs_are_merged() {
        let labels = [
            "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
            "SERVER_HANDSHAKE_TRAFFIC_SECRET",
            "CLIENT_TRAFFIC_SECRET_0",
            "SERVER_TRAFFIC_SECRET_0",
            "CLIENT_EARLY_TRAFFIC_SECRET",
            "EXPORTER_SECRET",
            "ECH_CONFIG",
        ];
        let mut log = KeyLog::default();
        for label in labels {
            log.extend(KeyLog::parse_part(line(label, 7, 32).as_bytes()).unwrap());
        }
        let all: String = labels.iter().map(|label| line(label, 7, 32)).collect();
        assert_eq!(log, KeyLog::parse(all.as_bytes()).unwrap());
        let one = log.of(&[7; 32]).unwrap();
        assert!(one.handshake.iter().chain(&one.application).all(Option::is_some));
        assert!(one.early.is_some() && log.len() == 1);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(text in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = KeyLog::parse(&text);
        }
    }
}
