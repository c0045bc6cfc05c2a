//! What is known of a QUIC connection of a capture.

use diagnose::quic::QuicAnalysis;
use diagnose::quic::captured::{CapturedQuicAnalysis, captured_findings};
use diagnose::rules::Finding;
use packet::Dir;
use packet::quic::{ConnectionId, QuicVersion};
use packet::wire::Endpoints;

use super::{CapturedQuicTable, DecryptedCounts, QuicClientHello};
use crate::inputs::quic::beside::SeenDatagram;

/// A QUIC connection of a capture.
#[derive(Debug, Clone, PartialEq)]
pub struct CapturedQuicConnection {
    /// Index of its file in [`Reading::files`](crate::inputs::Reading::files).
    pub file: usize,
    /// Index of the capture point in [`File::interfaces`](crate::inputs::File::interfaces).
    pub interface: usize,
    /// Its number in the file, from 0, in order of the first datagrams.
    pub number: u32,
    /// The client and the server.
    pub ends: Endpoints,
    /// The client's first Initial was captured; else the host with the well-known or lower port is taken
    /// for the server.
    pub has_opening: bool,
    /// Versions of its long headers in order of appearance, with the direction.
    pub versions: Vec<(Dir, QuicVersion)>,
    /// Versions that the server offered in a Version Negotiation.
    pub offered: Vec<QuicVersion>,
    /// The first connection IDs that the client and the server chose, by [`Dir`] of their packets; of
    /// the server also the client's first choice for it.
    pub ids: [Vec<ConnectionId>; 2],
    /// What the client offers; `None` if its ClientHello was not captured whole.
    pub client_hello: Option<QuicClientHello>,
    /// Changes of the connection ID in short headers, by direction of the packets.
    pub id_changes: [u64; 2],
    /// Later addresses: those of the client or the server that changed, the time in ns and the frame.
    pub migrations: Vec<QuicMigration>,
    /// What its datagrams show.
    pub analysis: CapturedQuicAnalysis,
    /// Whether the capture point is at the client, what its decrypted packets show, and their numbers.
    pub(in crate::inputs) decrypted: Option<Box<(bool, QuicAnalysis, DecryptedCounts)>>,
    /// Its packets were decrypted, so that it is among the connections of logs, with their findings.
    pub is_decrypted: bool,
    /// Its datagrams, if they are compared with a log.
    pub(in crate::inputs) datagrams: Vec<SeenDatagram>,
}

impl CapturedQuicConnection {
    /// What is found without its keys; nothing if its packets were decrypted.
    pub fn findings(&self) -> Vec<Finding> {
        if self.is_decrypted { Vec::new() } else { captured_findings(&self.analysis) }
    }
}

/// A datagram at other addresses with a connection ID of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuicMigration {
    /// Time in ns, on the clock of the file.
    pub at: u64,
    /// Frame of the capture.
    pub frame: u64,
    /// The client and the server since then.
    pub ends: Endpoints,
}

/// Counts of the UDP datagrams of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuicCounts {
    /// Datagrams that were assigned to a connection.
    pub datagrams: u64,
    /// Connections that were not analysed, as there were too many.
    pub left_out: u64,
    /// Connections whose secrets were given, by key logs and the file itself.
    pub secrets: u64,
    /// Datagrams among the others until a Version Negotiation showed that they are QUIC.
    pub(in crate::inputs) recovered: u64,
}

impl CapturedQuicTable {
    /// Ends the file: its connections, and the time of the first datagram.
    pub(in crate::inputs) fn finish(mut self, file: usize) -> Vec<CapturedQuicConnection> {
        self.end_secrets();
        if let Some((index, held)) = self.held.take() {
            self.analyse(index, &held);
        }
        let connections = self.open.into_iter().filter_map(|open| {
            let analysis = open.analyzer.finish()?;
            let decrypted = open.decryption.and_then(|one| {
                // The host that the capture point is nearer to.
                let is_client = analysis
                    .handshake
                    .round_trip
                    .is_none_or(|trip| trip.client_side <= trip.server_side);
                let (analysis, counts) = one.finish(is_client)?;
                Some(Box::new((is_client, analysis, counts)))
            });
            Some(CapturedQuicConnection {
                file,
                interface: open.interface as usize,
                number: 0,
                ends: open.ends,
                has_opening: open.has_opening,
                versions: open.versions,
                offered: open.offered,
                ids: open.ids,
                client_hello: open.hello.finish(),
                id_changes: open.id_changes,
                migrations: open.migrations,
                datagrams: open.datagrams,
                is_decrypted: decrypted.is_some(),
                analysis,
                decrypted,
            })
        });
        let mut connections: Vec<_> = connections.collect();
        for (number, one) in connections.iter_mut().enumerate() {
            one.number = number as u32;
        }
        connections
    }
}
