//! Which connections `ackclock diagnose` shows.

use diagnose::quic::rules::quic_rule;
use diagnose::rules::rule;
use ingest::diagnosis::{ConnectionFilter, ConnectionOrder, DiagnosisReport, FilterExpression};
use scenario::units_text::size;

use crate::cli::{DiagnoseArgs, SortOrder};
use crate::failure::Failure;

/// The conditions of the arguments; `None` without any.
pub(super) fn filter(args: &DiagnoseArgs) -> Result<Option<ConnectionFilter>, Failure> {
    let code = |name: &String| {
        let of_quic = || quic_rule(name).map(|rule| rule.code);
        rule(name).map(|rule| rule.code).or_else(of_quic).ok_or_else(|| {
            Failure::new(format!("--code {name}: no finding has this code"))
                .hint("codes are listed by: ackclock explain")
        })
    };
    let min_bytes = args.min_bytes.as_deref().map(|text| {
        size(text).map_err(|error| Failure::new(format!("--min-bytes: `{text}` {error}")))
    });
    let expression = args.filter.as_deref().map(|text| {
        FilterExpression::parse(text)
            .map_err(|error| Failure::new(format!("--filter {text}: {error}")))
    });
    let filter = ConnectionFilter {
        hosts: args.host.clone(),
        ports: args.port.clone(),
        codes: args.code.iter().map(code).collect::<Result<_, _>>()?,
        min_bytes: min_bytes.transpose()?.map_or(0, |bytes| bytes.0),
        expression: expression.transpose()?,
    };
    let is_set = !filter.hosts.is_empty()
        || !filter.ports.is_empty()
        || !filter.codes.is_empty()
        || args.min_bytes.is_some()
        || args.filter.is_some();
    Ok(is_set.then_some(filter))
}

/// Keeps and orders connections.
pub(super) fn select(
    report: &mut DiagnosisReport,
    filter: Option<&ConnectionFilter>,
    order: SortOrder,
) -> Result<(), Failure> {
    if let Some(filter) = filter
        && report.retain(filter) == 0
    {
        return Err(Failure::new("no connection meets the conditions")
            .hint("conditions are --host, --port, --code, --min-bytes and --filter"));
    }
    let order = match order {
        SortOrder::Lost => return Ok(()),
        SortOrder::Bytes => ConnectionOrder::Bytes,
        SortOrder::Time => ConnectionOrder::Time,
        SortOrder::Goodput => ConnectionOrder::Goodput,
        SortOrder::Flow => ConnectionOrder::Flow,
    };
    report.sort(order);
    Ok(())
}
