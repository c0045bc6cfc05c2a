//! Sound senders: no criterion may fail them.

use cc::external::ReportTrigger;

use super::rules::{Aimd, Own, Window};
use super::{ZooKind, ZooSender};

const fn sound(name: &'static str, what: &'static str, kind: ZooKind) -> ZooSender {
    ZooSender { name, what, is_sound: true, kind }
}

pub(super) static SENDERS: [ZooSender; 6] = [
    sound(
        "own-reno",
        "the stack's Reno, as a controller that decides nothing",
        ZooKind::Own {
            every: ReportTrigger::Round,
            base_grows: true,
            make: || Box::new(Window::new(Own)),
        },
    ),
    sound(
        "aimd-1-half",
        "one segment a round trip, half after a loss (RFC 5681)",
        ZooKind::Own {
            every: ReportTrigger::Ack,
            base_grows: false,
            make: || Box::new(Window::new(Aimd { add: 1.0, keep: 0.5 })),
        },
    ),
    sound(
        "aimd-cubic-friendly",
        "0.53 segments a round trip, 0.7 after a loss: the Reno-friendly region of RFC 9438 section 4.3",
        ZooKind::Own {
            every: ReportTrigger::Ack,
            base_grows: false,
            make: || Box::new(Window::new(Aimd { add: 0.529, keep: 0.7 })),
        },
    ),
    sound(
        "gaimd",
        "0.31 segments a round trip, 7/8 after a loss (Yang and Lam, ICNP 2000)",
        ZooKind::Own {
            every: ReportTrigger::Ack,
            base_grows: false,
            make: || Box::new(Window::new(Aimd { add: 0.31, keep: 0.875 })),
        },
    ),
    sound("freebsd-newreno", "FreeBSD's NewReno on Linux's stack", ZooKind::BuiltIn("newreno")),
    sound("rfc-cubic", "CUBIC of RFC 9438 on Linux's stack", ZooKind::BuiltIn("cubic-rfc9438")),
];
