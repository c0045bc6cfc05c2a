//! Syntax tree of a script; every part has its position.

use packet::{Flags, SackBlock};
use units::Duration;

pub use crate::diagnostic::ScriptSpan;

/// A value with its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Its position.
    pub span: ScriptSpan,
}

/// A script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// Options at the top: `--name=value`.
    pub options: Vec<ScriptOption>,
    /// The command before the first event.
    pub init: Option<Spanned<String>>,
    /// The events, in the order of the text.
    pub events: Vec<ScriptEvent>,
    /// The command after the last event, which restores the host.
    pub cleanup: Option<Spanned<String>>,
}

/// An option at the top of a script: `--tolerance_usecs=6000`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptOption {
    /// Name, without the dashes.
    pub name: Spanned<String>,
    /// Value after the `=`.
    pub value: Option<Spanned<String>>,
}

/// An event with its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptEvent {
    /// Its time.
    pub when: Spanned<When>,
    /// Its action.
    pub action: Action,
    /// Position of the action.
    pub span: ScriptSpan,
}

/// The time of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// `*`: at any time.
    Any,
    /// `0.1`: since the start of the script.
    Absolute(Duration),
    /// `+0.1`: since the previous event.
    Relative(Duration),
    /// `0.1~0.2`, or `+0.1~+0.2`.
    Between {
        /// Relative to the previous event, not to the start.
        relative: bool,
        /// Earliest.
        from: Duration,
        /// Latest.
        to: Duration,
    },
    /// `0.1...0.2`, or `+0.1...0.2`: a call that blocks.
    Blocking {
        /// Relative to the previous event, not to the start.
        relative: bool,
        /// Time of the call.
        from: Duration,
        /// Time of its return.
        to: Duration,
    },
}

/// The action of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A packet is received or sent.
    Packet(Box<ScriptPacket>),
    /// The application makes a system call.
    Call(Box<SystemCall>),
    /// `` `...` ``: a command for the shell.
    Command(Spanned<String>),
    /// `%{ ... }%`: assertions, line by line.
    Code(Vec<Statement>),
}

/// A line of an assertion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The statement.
    pub kind: StatementKind,
    /// Its position.
    pub span: ScriptSpan,
}

/// Statements of assertions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StatementKind {
    /// `assert condition, message`
    Assert(AssertionExpr, Option<AssertionExpr>),
    /// `name = value`, or with an operator: `name += value`.
    Assign(String, Option<Operator>, AssertionExpr),
    /// `print(...)`: the values are a line of the packets of the run.
    Print(AssertionExpr),
    /// `if`, with the condition and the statements of each branch in order, and those of `else`.
    If(Vec<(AssertionExpr, Vec<Statement>)>, Vec<Statement>),
    /// `pass`: no effect.
    Nothing,
}

/// An expression in an assertion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssertionExpr {
    /// The expression.
    pub kind: AssertionExprKind,
    /// Its position.
    pub span: ScriptSpan,
}

/// Expressions of assertions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AssertionExprKind {
    /// An integer.
    Int(i64),
    /// A string.
    Text(String),
    /// A variable, a field of tcp_info, or a constant.
    Name(String),
    /// `-x`
    Negative(Box<AssertionExpr>),
    /// `not x`
    Not(Box<AssertionExpr>),
    /// `a + b`
    Binary(Box<AssertionExpr>, Operator, Box<AssertionExpr>),
    /// `a < b <= c`
    Compare(Box<AssertionExpr>, Vec<(CompareOperator, AssertionExpr)>),
    /// `a and b`
    And(Box<AssertionExpr>, Box<AssertionExpr>),
    /// `a or b`
    Or(Box<AssertionExpr>, Box<AssertionExpr>),
    /// `abs(x)`, `min(x, y)`
    Function(String, Vec<AssertionExpr>),
    /// `(x, y)`
    Tuple(Vec<AssertionExpr>),
}

/// Operators on values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `//` and `/`, rounded down.
    Divide,
    /// `%`: remainder, or string formatting.
    Rest,
    /// `&`
    And,
    /// `|`
    Or,
    /// `<<`
    Left,
    /// `>>`
    Right,
}

/// Comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompareOperator {
    /// `==`
    Equal,
    /// `!=`
    Unequal,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// A packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptPacket {
    /// `>`: the host sends it; `<`: the host receives it.
    pub outbound: bool,
    /// ECN field: `[ect0]` and similar.
    pub ecn: Option<Spanned<EcnMark>>,
    /// Other fields of the IP header.
    pub ip: IpFields,
    /// Contents of the packet.
    pub body: Body,
}

/// Fields of the IP header that the script gives: `(tos 0x28, flowlabel 0x1)`, `(ttl 4)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IpFields {
    /// `ttl`, or `hlim` of IPv6: the hops that are left.
    pub hops: Option<Spanned<u8>>,
    /// `tos`, or `class` of IPv6: differentiated services and ECN.
    pub tos: Option<Spanned<u8>>,
    /// `flowlabel` of IPv6.
    pub label: Option<Spanned<u32>>,
}

/// ECN field of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EcnMark {
    /// `[noecn]`: not capable (0).
    NotCapable,
    /// `[ect1]`: 1.
    Ect1,
    /// `[ect0]`: 2.
    Ect0,
    /// `[ect01]`: ECT(0) or ECT(1).
    Either,
    /// `[ce]`: congestion experienced (3).
    Met,
}

/// Contents of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// A TCP segment.
    Tcp(Box<ScriptSegment>),
    /// An ICMP error.
    Icmp(IcmpMessage),
    /// `udp`, `icmp` and others that are parsed but not run: the keyword.
    Other(Spanned<String>),
}

/// An ICMP error: `icmp unreachable frag_needed mtu 800 [0:10(10)]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IcmpMessage {
    /// Its type.
    pub kind: Spanned<String>,
    /// Its code; 0 without one.
    pub code: Option<Spanned<String>>,
    /// MTU of the next link in bytes, of a message that a packet was too large.
    pub mtu: Option<u32>,
    /// Sequence number of the segment that it quotes; that of the SYN if there is none.
    pub seq: u32,
}

/// A TCP segment: `P. 1:1001(1000) ack 1 win 257 <nop,nop,TS val 1 ecr 2>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptSegment {
    /// Control bits.
    pub flags: Spanned<Flags>,
    /// The AE flag of accurate ECN (RFC 9768): `A` among the flags, or 4 in the digit of the ACE field.
    pub ae: bool,
    /// First sequence number, relative to the start of the stream.
    pub seq: Spanned<u32>,
    /// `...(0)`: any sequence number; `seq` is 0.
    pub any_seq: bool,
    /// Position of `!`: the sequence number is that of the wire (nplab).
    pub absolute: Option<ScriptSpan>,
    /// Bytes of payload.
    pub len: Spanned<u32>,
    /// Acknowledgment number.
    pub ack: Option<Spanned<u32>>,
    /// Window field.
    pub window: Option<Spanned<u16>>,
    /// Urgent pointer.
    pub urgent: Option<Spanned<u16>>,
    /// TCP options.
    pub options: Spanned<OptionList>,
}

/// The options of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionList {
    /// `<...>`: any options.
    Any,
    /// Exactly these, in this order; none if the list is empty.
    ExactList(Vec<Spanned<TcpOption>>),
}

/// One TCP option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TcpOption {
    /// `nop`
    Nop,
    /// `eol`
    Eol,
    /// `mss 1460`
    Mss(u16),
    /// `wscale 8`
    WindowScale(u8),
    /// `sackOK`
    SackOk,
    /// `sack 1:2 3:4`
    Sack(Vec<SackBlock>),
    /// `TS val 1 ecr 2`
    Timestamps {
        /// TSval.
        val: u32,
        /// TSecr.
        ecr: u32,
    },
    /// `ECN e1b 1 ceb 0 e0b 1`: the counters of accurate ECN in bytes (RFC 9768), up to three.
    AccurateEcn {
        /// That of ECT(0) is the first, that of ECT(1) the last: option 172 instead of 174.
        e0b_first: bool,
        /// As on the wire, in 24 bits.
        counters: Vec<u32>,
    },
    /// `FO 0123456789abcdef`, `FOEXP`: TCP Fast Open.
    FastOpen {
        /// The cookie; empty in a request.
        cookie: Vec<u8>,
        /// `FOEXP`: the experimental option.
        experimental: bool,
    },
    /// An option that is parsed but not run: `md5` and similar.
    Other(String),
}

/// A call: `write(4, ..., 1000) = 1000`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemCall {
    /// Name of the system call.
    pub name: Spanned<String>,
    /// Arguments.
    pub args: Vec<Expr>,
    /// Return value.
    pub result: Expr,
    /// Error: `EAGAIN` and similar.
    pub errno: Option<Spanned<String>>,
}

/// An expression in a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expr {
    /// The expression.
    pub kind: ExprKind,
    /// Its position.
    pub span: ScriptSpan,
}

/// Expressions of calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExprKind {
    /// `...`: any value.
    Any,
    /// A number.
    Int(i64),
    /// The name of a constant.
    Word(String),
    /// `"text"`
    Text(String),
    /// `A|B`
    Or(Vec<Expr>),
    /// `[...]`
    List(Vec<Expr>),
    /// `{name=value, ...}`
    Struct(Vec<(Option<String>, Expr)>),
    /// `htons(80)`
    Function(String, Vec<Expr>),
}
