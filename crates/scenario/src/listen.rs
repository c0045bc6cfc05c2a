//! `listen` of `[host.NAME]`: the accept queue of the host's listening applications.

use sim::scenario::AcceptQueueSpec;
use tcp::profile::Family;
use units::Duration;

use super::keys::{Key, Located, ScenarioReader};
use super::kinds::{DurationType, IntegerType};
use super::source::SpannedError;
use super::table::table;

static BACKLOG: Key<IntegerType> = Key::required(
    "backlog",
    IntegerType { least: 0, most: u32::MAX as u64 },
    "length of the queue as of listen(2); it is full with one connection more, as on Linux",
);
static ACCEPT: Key<DurationType> = Key::required(
    "accept",
    DurationType { least: Duration::from_nanos(1), default_unit: "ms" },
    "the application takes one connection each such time, the first after one",
);

table! {
    /// An accept queue.
    pub ListenTable: SECTION = "`listen`" {
        backlog: u64 = BACKLOG,
        accept: Duration = ACCEPT,
    }
    elsewhere: |key| match key {
        "queue" | "length" | "somaxconn" => Some("the length of the queue is called `backlog`"),
        "every" | "interval" => Some("the time from one connection to the next is called `accept`"),
        _ => None,
    },
}

/// Returns the accept queue of a host whose stack is of that family (`None`: not TCP); reports one
/// that is not modelled. A kernel has applications of its own.
pub(super) fn accept_queue(
    listen: &Located<Box<ListenTable>>,
    family: Option<Family>,
    is_external: bool,
    reader: &mut ScenarioReader,
) -> Option<AcceptQueueSpec> {
    let message = match family {
        _ if is_external => "a host with `kernel` or `guest` accepts connections by itself",
        Some(Family::Linux) => {
            let ListenTable { backlog, accept } = &*listen.value;
            let backlog = backlog.as_ref()?.value as u32;
            return Some(AcceptQueueSpec { backlog, accept: accept.as_ref()?.value });
        }
        _ => "the accept queue is modelled for Linux only",
    };
    let fault = SpannedError::new(listen.span, message);
    reader.report(fault.hint("profile = \"linux-6.18\" has it".to_owned()));
    None
}
