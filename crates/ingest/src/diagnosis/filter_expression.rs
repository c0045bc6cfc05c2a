//! Conditions on connections, such as `port = 443 and (lost > 1s or code = CC003)`.
//!
//! `and` binds more than `or`; `not` negates the next comparison or parenthesis. Operators and fields of Wireshark's display
//! filters mean the same: `tcp.port == 443 && !(ip.addr eq 192.0.2.1)`.

use core::fmt;
use std::net::{IpAddr, SocketAddr};

use scenario::units_text::{duration, rate, size};

/// What a condition can compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    /// Either host.
    Host,
    Client,
    Server,
    /// Either port.
    Port,
    /// A finding.
    Code,
    /// Payload of the main direction.
    Bytes,
    /// From the first to the last packet, in ns.
    Time,
    /// Cost of the finding that limited it, in ns.
    Lost,
    /// Time that the network, the client, the server or the transfer took, in ns.
    NetworkTime,
    ClientTime,
    ServerTime,
    TransferTime,
    /// Bits per second.
    Goodput,
    Flow,
}

/// Names of Wireshark's fields that a connection has.
const WIRESHARK: [(&str, Field); 5] = [
    ("ip.addr", Field::Host),
    ("ipv6.addr", Field::Host),
    ("tcp.port", Field::Port),
    ("udp.port", Field::Port),
    ("tcp.stream", Field::Flow),
];

const FIELDS: [(&str, Field); 14] = [
    ("host", Field::Host),
    ("client", Field::Client),
    ("server", Field::Server),
    ("port", Field::Port),
    ("code", Field::Code),
    ("bytes", Field::Bytes),
    ("time", Field::Time),
    ("lost", Field::Lost),
    ("network-time", Field::NetworkTime),
    ("client-time", Field::ClientTime),
    ("server-time", Field::ServerTime),
    ("transfer-time", Field::TransferTime),
    ("goodput", Field::Goodput),
    ("flow", Field::Flow),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

const COMPARISONS: [(&str, Comparison); 13] = [
    ("=", Comparison::Equal),
    ("!=", Comparison::Unequal),
    ("<", Comparison::Less),
    ("<=", Comparison::LessOrEqual),
    (">", Comparison::Greater),
    (">=", Comparison::GreaterOrEqual),
    ("==", Comparison::Equal),
    ("eq", Comparison::Equal),
    ("ne", Comparison::Unequal),
    ("lt", Comparison::Less),
    ("le", Comparison::LessOrEqual),
    ("gt", Comparison::Greater),
    ("ge", Comparison::GreaterOrEqual),
];

/// A value that a connection is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FieldValue {
    Number(u64),
    Address(IpAddr),
    Endpoint(SocketAddr),
    Code(&'static str),
}

/// What a connection has of a field.
pub(super) trait ComparedConnection {
    /// The number of a numeric field.
    fn number(&self, field: Field) -> u64;
    /// Whether it has an address, port or code.
    fn has(&self, field: Field, value: &FieldValue) -> bool;
}

/// A condition on connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterExpression(Node);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    Compare(Field, Comparison, FieldValue),
    Not(Box<Self>),
    And(Vec<Self>),
    Or(Vec<Self>),
}

/// A mistake in an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterError {
    /// Position in the text, in characters from 1.
    pub column: usize,
    /// What was expected, and what was found.
    pub message: String,
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}", self.column, self.message)
    }
}

impl core::error::Error for FilterError {}

impl FilterExpression {
    /// Parses an expression.
    ///
    /// # Errors
    /// The first mistake, with its column.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        let mut parser = FilterParser { tokens: tokens(text), at: 0, depth: 0 };
        let node = parser.any()?;
        match parser.peek() {
            "" => Ok(Self(node)),
            _ => Err(parser.expected("`and`, `or` or the end")),
        }
    }

    /// Whether the condition is true of a connection.
    pub(super) fn holds(&self, of: &impl ComparedConnection) -> bool {
        self.0.holds(of)
    }
}

impl Node {
    fn holds(&self, of: &impl ComparedConnection) -> bool {
        match self {
            Self::Not(node) => !node.holds(of),
            Self::And(nodes) => nodes.iter().all(|node| node.holds(of)),
            Self::Or(nodes) => nodes.iter().any(|node| node.holds(of)),
            Self::Compare(field, comparison, value) => {
                let FieldValue::Number(number) = value else {
                    return of.has(*field, value) == (*comparison == Comparison::Equal);
                };
                if *field == Field::Port {
                    return of.has(*field, value) == (*comparison == Comparison::Equal);
                }
                let own = of.number(*field);
                match comparison {
                    Comparison::Equal => own == *number,
                    Comparison::Unequal => own != *number,
                    Comparison::Less => own < *number,
                    Comparison::LessOrEqual => own <= *number,
                    Comparison::Greater => own > *number,
                    Comparison::GreaterOrEqual => own >= *number,
                }
            }
        }
    }
}

/// The tokens of a text and their columns, with an empty one at the end.
fn tokens(text: &str) -> Vec<(usize, String)> {
    let mut all: Vec<(usize, String)> = Vec::new();
    let kind = |letter: char| match letter {
        '(' | ')' => 0,
        '=' | '!' | '<' | '>' => 1,
        '&' | '|' => 3,
        _ => 2,
    };
    let mut before = None;
    for (n, letter) in text.chars().enumerate() {
        if letter.is_whitespace() {
            before = None;
            continue;
        }
        match all.last_mut() {
            Some((_, token)) if before == Some(kind(letter)) && kind(letter) != 0 => {
                token.push(letter);
            }
            _ => all.push((n + 1, letter.to_string())),
        }
        before = Some(kind(letter));
    }
    all.push((text.chars().count() + 1, String::new()));
    all
}

/// Deepest nesting.
const MAX_DEPTH: usize = 64;

struct FilterParser {
    tokens: Vec<(usize, String)>,
    at: usize,
    depth: usize,
}

impl FilterParser {
    fn peek(&self) -> &str {
        self.tokens.get(self.at).map_or("", |(_, token)| token)
    }

    fn takes(&mut self, word: &str) -> bool {
        let found = self.peek().eq_ignore_ascii_case(word);
        self.at += usize::from(found);
        found
    }

    fn error(&self, message: String) -> FilterError {
        let column = self.tokens.get(self.at).map_or(1, |(column, _)| *column);
        FilterError { column, message }
    }

    fn expected(&self, what: &str) -> FilterError {
        match self.peek() {
            "" => self.error(format!("expected {what}, found the end")),
            found => self.error(format!("expected {what}, found `{found}`")),
        }
    }

    fn any(&mut self) -> Result<Node, FilterError> {
        let mut nodes = vec![self.all()?];
        while self.takes("or") || self.takes("||") {
            nodes.push(self.all()?);
        }
        Ok(Node::Or(nodes))
    }

    fn all(&mut self) -> Result<Node, FilterError> {
        let mut nodes = vec![self.one()?];
        while self.takes("and") || self.takes("&&") {
            nodes.push(self.one()?);
        }
        Ok(Node::And(nodes))
    }

    fn one(&mut self) -> Result<Node, FilterError> {
        if self.depth == MAX_DEPTH {
            return Err(self.error(format!("nested deeper than {MAX_DEPTH}")));
        }
        self.depth += 1;
        let node = if self.takes("not") || self.takes("!") {
            Node::Not(Box::new(self.one()?))
        } else if self.takes("(") {
            let node = self.any()?;
            if !self.takes(")") {
                return Err(self.expected("`)`"));
            }
            node
        } else {
            self.comparison()?
        };
        self.depth -= 1;
        Ok(node)
    }

    fn comparison(&mut self) -> Result<Node, FilterError> {
        let known = FIELDS.iter().chain(&WIRESHARK);
        let known = known.into_iter().find(|(name, _)| self.peek().eq_ignore_ascii_case(name));
        let Some(&(name, field)) = known else {
            let names: Vec<_> = FIELDS.iter().map(|(name, _)| *name).collect();
            return Err(self.expected(&format!("one of {}", names.join(", "))));
        };
        self.at += 1;
        let known = COMPARISONS.iter().find(|(text, _)| self.peek().eq_ignore_ascii_case(text));
        let Some(&(_, comparison)) = known else {
            return Err(self.expected("one of = != < <= > >="));
        };
        let ordered = !matches!(comparison, Comparison::Equal | Comparison::Unequal);
        if ordered && !is_number(field) {
            return Err(self.error(format!("`{name}` can be compared with = and != only")));
        }
        self.at += 1;
        let value = self.value(field)?;
        self.at += 1;
        Ok(Node::Compare(field, comparison, value))
    }

    fn value(&self, field: Field) -> Result<FieldValue, FilterError> {
        let text = self.peek();
        let quantity = |read: Result<u64, scenario::units_text::QuantityError>| {
            read.map(FieldValue::Number).map_err(|error| self.error(format!("`{text}` {error}")))
        };
        match field {
            Field::Bytes => quantity(size(text).map(|bytes| bytes.0)),
            Field::Time
            | Field::Lost
            | Field::NetworkTime
            | Field::ClientTime
            | Field::ServerTime
            | Field::TransferTime => quantity(duration(text).map(|time| time.as_nanos())),
            Field::Goodput => quantity(rate(text).map(|rate| rate.bits_per_second())),
            Field::Port | Field::Flow => match text.parse() {
                Ok(number) => Ok(FieldValue::Number(number)),
                Err(_) => Err(self.expected("a number")),
            },
            Field::Code => {
                let code = diagnose::rules::rule(text).map(|rule| rule.code);
                let of_quic = || diagnose::quic::rules::quic_rule(text).map(|rule| rule.code);
                code.or_else(of_quic)
                    .map(FieldValue::Code)
                    .ok_or_else(|| self.expected("the code of a finding, such as CC201"))
            }
            Field::Host | Field::Client | Field::Server => {
                if let Ok(address) = text.parse() {
                    return Ok(FieldValue::Address(address));
                }
                let end = text.parse().map(FieldValue::Endpoint);
                end.map_err(|_| self.expected("an address, such as 192.0.2.1 or 192.0.2.1:443"))
            }
        }
    }
}

const fn is_number(field: Field) -> bool {
    !matches!(field, Field::Host | Field::Client | Field::Server | Field::Port | Field::Code)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Example;

    impl ComparedConnection for Example {
        fn number(&self, field: Field) -> u64 {
            match field {
                Field::Bytes => 1_000_000,
                Field::Time | Field::Lost => 2_000_000_000,
                Field::Goodput => 4_000_000,
                _ => 7,
            }
        }

        fn has(&self, _: Field, value: &FieldValue) -> bool {
            [FieldValue::Number(443), FieldValue::Code("CC201")].contains(value)
        }
    }

    #[test]
    fn and_binds_more_than_or() {
        for (text, holds) in [
            ("bytes >= 1MB", true),
            ("bytes > 1MB", false),
            ("port = 443 and lost = 2s", true),
            ("port != 443", false),
            ("port = 80 or port = 443 and code = cc201", true),
            ("(port = 80 or port = 443) and flow > 7", false),
            ("not port = 80 and goodput<5Mbit/s", true),
            ("not (port = 443 or flow = 7)", false),
            ("server = 192.0.2.1:443 or time <= 2000ms", true),
            ("tcp.port == 443 && lost == 2s", true),
            ("tcp.port==80||tcp.stream gt 7", false),
            ("!(tcp.port eq 443) || bytes le 1MB", true),
            ("!tcp.port == 443", false),
            ("ip.addr == 192.0.2.1 || code == CC811", false),
        ] {
            assert_eq!(FilterExpression::parse(text).unwrap().holds(&Example), holds, "{text}");
        }
    }

    #[test]
    fn mistakes_have_their_column() {
        for (text, column, part) in [
            ("", 1, "found the end"),
            ("bytes", 6, "one of = !="),
            ("port > 80", 6, "= and != only"),
            ("size > 1MB", 1, "found `size`"),
            ("lost > 5", 8, "`5`"),
            ("lost > 5s and", 14, "found the end"),
            ("lost > 5s flow = 1", 11, "`and`, `or` or the end"),
            ("(lost > 5s", 11, "`)`"),
            ("code = CC999", 8, "the code of a finding"),
            ("host = nowhere", 8, "an address"),
        ] {
            let error = FilterExpression::parse(text).unwrap_err();
            assert_eq!(error.column, column, "{text}: {error}");
            assert!(error.message.contains(part), "{text}: {error}");
        }
        assert!(FilterExpression::parse(&"(".repeat(10_000)).is_err());
    }
}
