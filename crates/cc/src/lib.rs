//! Congestion controllers. Layer 1, depends on `units` only.
//!
//! Reading order: [`contract`] (the interface), [`newreno`] (FreeBSD's NewReno, by kernel version),
//! [`linux_reno`] (Linux's `reno`), [`cubic`] (by system and version), [`linux`] (common state of
//! Linux's controllers), [`hystart`] and [`hystart_rfc`] (delay-based exit from slow start),
//! [`quic_newreno`] (RFC 9002, with events of its own), [`bbr`] and [`bbr3`] (Linux's BBR, versions 1 and 3), [`bbr_draft`]
//! (the IETF draft's, and dialects of it), [`any`](mod@any)
//! (one of them, chosen at run time), [`external`] (user-defined controllers), [`kernel`] (controllers in C with Linux's operations), [`registry`]
//! (names).
//!
//! A controller is a pure value: event structs in, [`Control`] and [`WindowChange`] out. It has no
//! clock, no socket and no log, and it can be cloned for what-if questions.
//!
//! Loss detection, counting the flight, limiting transmission during recovery and timers belong to
//! the stack, which sets the window with [`Controller::set_window`].

pub mod any;
pub mod bbr;
pub mod bbr3;
pub mod bbr_draft;
pub mod contract;
pub mod cubic;
pub mod external;
mod freebsd;
pub mod hystart;
pub mod hystart_rfc;
pub mod kernel;
pub mod linux;
pub mod linux_reno;
pub mod newreno;
pub mod quic_newreno;
pub mod registry;

pub use any::{AnyController, RateBased};
pub use bbr::Bbr;
pub use bbr_draft::BbrDraft;
pub use bbr3::Bbr3;
pub use contract::{
    AckEvent, AckSample, CongestionEvent, CongestionSignal, ConnectionStart, Control, Controller,
    ControllerInputs, DeclaredInputs, DeliveryRate, Growth, IdleEvent, LostSegment, PathSignals,
    RateController, RateSample, RecoveryEnd, RttSample, SmoothedRtt, TxSample, WindowChange,
    WindowController,
};
pub use cubic::{FreeBsdCubic, LinuxCubic, RfcCubic};
pub use external::ExternalAlgorithm;
pub use kernel::KernelController;
pub use linux_reno::LinuxReno;
pub use newreno::NewReno;
pub use quic_newreno::QuicNewReno;
pub use registry::{Algorithm, ControllerNameError};
