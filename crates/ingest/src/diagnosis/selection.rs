//! Which connections of a report are shown, and in which order. Neither changes their numbers.

use core::cmp::Reverse;
use std::collections::BTreeSet;
use std::net::IpAddr;

use diagnose::ExchangeShare;
use diagnose::rules::RULES;

use super::exchange::{ExchangeSummary, Exchanges};
use super::filter_expression::{ComparedConnection, Field, FieldValue, FilterExpression};
use super::{ConnectionReport, DiagnosisReport};
use crate::inputs::CapturedQuicConnection;

/// Conditions that a connection must meet, all of them; of hosts, ports and codes one.
#[derive(Debug, Clone, Default)]
pub struct ConnectionFilter {
    /// Addresses of either host.
    pub hosts: Vec<IpAddr>,
    /// Ports of either host.
    pub ports: Vec<u16>,
    /// Codes of findings.
    pub codes: Vec<&'static str>,
    /// Least payload of the main direction, in bytes.
    pub min_bytes: u64,
    /// A condition.
    pub expression: Option<FilterExpression>,
}

/// Order of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ConnectionOrder {
    /// Failed ones first, then the costliest.
    #[default]
    Lost,
    /// Most payload first.
    Bytes,
    /// Longest first.
    Time,
    /// Least goodput first.
    Goodput,
    /// By their numbers.
    Flow,
}

impl ConnectionFilter {
    fn admits(&self, one: &ConnectionReport, exchanges: &Exchanges) -> bool {
        let ends = one.stream.ends();
        let any = |listed: bool, found: bool| !listed || found;
        let has_ip = |ip: &IpAddr| ends.src.ip() == *ip || ends.dst.ip() == *ip;
        let has_port = |port: &u16| ends.src.port() == *port || ends.dst.port() == *port;
        any(!self.hosts.is_empty(), self.hosts.iter().any(has_ip))
            && any(!self.ports.is_empty(), self.ports.iter().any(has_port))
            && any(!self.codes.is_empty(), self.codes.iter().any(|code| one.has_finding(code)))
            && one.bytes >= self.min_bytes
            && self.expression.as_ref().is_none_or(|expression| {
                expression.holds(&SelectedConnection { one, exchange: exchanges.of(one) })
            })
    }

    /// Whether a QUIC connection of a capture meets it. No expression holds for it.
    fn admits_captured_quic(&self, one: &CapturedQuicConnection) -> bool {
        let ends = [one.ends.src, one.ends.dst];
        let has_ip = |ip: &IpAddr| ends.iter().any(|end| end.ip() == *ip);
        let has_port = |port: &u16| ends.iter().any(|end| end.port() == *port);
        (self.hosts.is_empty() || self.hosts.iter().any(has_ip))
            && (self.ports.is_empty() || self.ports.iter().any(has_port))
            && (self.codes.is_empty()
                || one.findings().iter().any(|found| self.codes.contains(&found.code)))
            && one.analysis.bytes() >= self.min_bytes
            && self.expression.is_none()
    }

    /// Whether it has conditions on what a log of QUIC lacks: addresses.
    const fn concerns_tcp_only(&self) -> bool {
        !self.hosts.is_empty() || !self.ports.is_empty() || self.expression.is_some()
    }
}

/// A connection that is compared with an expression.
struct SelectedConnection<'a> {
    one: &'a ConnectionReport,
    exchange: Option<&'a ExchangeSummary>,
}

impl ComparedConnection for SelectedConnection<'_> {
    fn number(&self, field: Field) -> u64 {
        let spent = |share| self.exchange.map_or(0, |one| one.spent(share).as_nanos());
        match field {
            Field::Bytes => self.one.bytes,
            Field::Time => self.one.duration.as_nanos(),
            Field::Lost => self.one.cost.as_nanos(),
            Field::Goodput => self.one.goodput_bps,
            Field::NetworkTime => spent(ExchangeShare::Network),
            Field::ClientTime => spent(ExchangeShare::Client),
            Field::ServerTime => spent(ExchangeShare::Server),
            Field::TransferTime => spent(ExchangeShare::Transfer),
            _ => u64::from(self.one.number()),
        }
    }

    fn has(&self, field: Field, value: &FieldValue) -> bool {
        let ends = self.one.stream.ends();
        let sides = match field {
            Field::Client => vec![ends.src],
            Field::Server => vec![ends.dst],
            _ => vec![ends.src, ends.dst],
        };
        match value {
            FieldValue::Code(code) => self.one.has_finding(code),
            FieldValue::Address(ip) => sides.iter().any(|end| end.ip() == *ip),
            FieldValue::Endpoint(other) => sides.contains(other),
            FieldValue::Number(port) => sides.iter().any(|end| u64::from(end.port()) == *port),
        }
    }
}

/// A set of codes: a bit for each of [`RULES`].
const _: () = assert!(RULES.len() <= u64::BITS as usize);

/// The bit of a code.
pub(super) fn code_bit(code: &str) -> u64 {
    RULES.iter().position(|rule| rule.code == code).map_or(0, |index| 1 << index)
}

/// The codes of a set, in order.
pub(super) fn codes(set: u64) -> impl Iterator<Item = &'static str> {
    RULES.iter().map(|rule| rule.code).filter(move |code| set & code_bit(code) != 0)
}

impl ConnectionReport {
    /// Whether it has a finding with this code.
    pub fn has_finding(&self, code: &str) -> bool {
        self.codes & code_bit(code) != 0
    }
}

impl DiagnosisReport {
    /// Keeps the connections that meet the conditions; returns how many those are.
    pub fn retain(&mut self, filter: &ConnectionFilter) -> usize {
        let mut kept = 0;
        for file in &mut self.files {
            file.keep(|one, exchanges| filter.admits(one, exchanges));
            file.quic.retain(|one| {
                let found = |code: &&str| one.diagnosis.findings.iter().any(|f| f.code == *code);
                !filter.concerns_tcp_only()
                    && (filter.codes.is_empty() || filter.codes.iter().any(found))
                    && one.connection.analysis.bytes() >= filter.min_bytes
            });
            file.captured_quic.retain(|one| filter.admits_captured_quic(one));
            kept += file.connections.len() + file.quic.len() + file.captured_quic.len();
        }
        let files = &self.files;
        let shown: BTreeSet<(&str, u32)> = files
            .iter()
            .flat_map(|file| {
                file.connections.iter().map(|one| (file.file.name.as_str(), one.number()))
            })
            .collect();
        self.joined.retain(|pair| pair.points().iter().any(|point| shown.contains(point)));
        kept
    }

    /// Orders the connections of each file.
    pub fn sort(&mut self, order: ConnectionOrder) {
        for file in &mut self.files {
            let all = &mut file.connections;
            match order {
                ConnectionOrder::Lost => all.sort_by_key(|one| Reverse(one.rank())),
                ConnectionOrder::Bytes => all.sort_by_key(|one| Reverse(one.bytes)),
                ConnectionOrder::Time => all.sort_by_key(|one| Reverse(one.duration)),
                ConnectionOrder::Goodput => all.sort_by_key(|one| one.goodput_bps),
                ConnectionOrder::Flow => all.sort_by_key(ConnectionReport::number),
            }
        }
    }
}
